//! A maximum flow from groups to classes of units, grown path by path.
//!
//! All claims of a group are alike to it, and all units of a class, so its size is that of the two
//! lists and not of the pool or the queue.

use std::collections::VecDeque;

use super::layout::Group;

/// How many units of each class each group uses.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Flow {
    classes: usize,
    /// By group, then by class.
    amount: Vec<u32>,
    /// Likewise: what holders that can be moved have. Between passes the two are equal.
    seated: Vec<u32>,
    /// Units of each class that nobody uses.
    spare: Vec<u32>,
    spare_total: u32,
}

/// A step of an augmentation, for taking it back: these many more (or fewer) of a class for a
/// group.
#[derive(Clone, Copy)]
pub(super) struct Change {
    group: usize,
    class: usize,
    by: i64,
}

/// Why no more could be found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Full {
    /// Classes that are full, whichever way the claims on them are shifted.
    pub(super) classes: Vec<usize>,
    /// The groups that have units of these classes: they can use nothing else.
    pub(super) groups: Vec<usize>,
}

impl Flow {
    pub(super) fn new(groups: usize, spare: Vec<u32>) -> Self {
        let spare_total = spare.iter().sum();
        let amount = vec![0; groups * spare.len()];
        Flow { classes: spare.len(), seated: amount.clone(), amount, spare, spare_total }
    }

    pub(super) fn amount(&self, group: usize, class: usize) -> u32 {
        self.amount[group * self.classes + class]
    }

    /// Units that nobody uses.
    pub(super) fn spare_total(&self) -> u32 {
        self.spare_total
    }

    pub(super) fn seated(&self, group: usize, class: usize) -> u32 {
        self.seated[group * self.classes + class]
    }

    /// One more group, which uses nothing yet.
    pub(super) fn add_group(&mut self) {
        self.amount.extend(std::iter::repeat_n(0, self.classes));
        self.seated.extend(std::iter::repeat_n(0, self.classes));
    }

    /// A holder that can be moved comes, or goes. The flow knows it when it is settled.
    pub(super) fn seat(&mut self, group: usize, class: usize, by: i64) {
        let seated = &mut self.seated[group * self.classes + class];
        *seated = u32::try_from(i64::from(*seated) + by).expect("as many go as came");
    }

    /// Forgets what a pass has tried: only holders use units, and the rest is spare.
    pub(super) fn settle(&mut self, spare: impl Iterator<Item = u32>) {
        self.amount.copy_from_slice(&self.seated);
        self.spare.iter_mut().zip(spare).for_each(|(place, spare)| *place = spare);
        self.spare_total = self.spare.iter().sum();
    }

    /// Units of a class come back, or a class loses some that nobody uses.
    pub(super) fn set_spare(&mut self, class: usize, spare: u32) {
        self.spare_total = self.spare_total - self.spare[class] + spare;
        self.spare[class] = spare;
    }

    /// More of a class for a group, or less.
    pub(super) fn add(&mut self, group: usize, class: usize, by: i64) {
        let amount = &mut self.amount[group * self.classes + class];
        *amount = u32::try_from(i64::from(*amount) + by).expect("a flow is not negative");
    }

    /// Finds up to `want` more units for a group, moving others aside where that helps; what each
    /// of them has in all stays the same. Says how many it found.
    pub(super) fn augment(
        &mut self,
        groups: &[Group],
        group: usize,
        want: u32,
        log: &mut Vec<Change>,
    ) -> u32 {
        let mut got = 0;
        while got < want && self.spare_total > 0 {
            for &class in &groups[group].classes {
                let by = self.spare[class].min(want - got);
                if by > 0 {
                    self.take(class, by);
                    self.change(group, class, i64::from(by), log);
                    got += by;
                }
            }
            if got == want {
                break;
            }
            match self.path(groups, group) {
                Ok(path) => got += self.shift(group, &path, want - got, log),
                Err(_) => break,
            }
        }
        got
    }

    /// Why a group finds nothing; `None` if it does.
    pub(super) fn full(&self, groups: &[Group], group: usize) -> Option<Full> {
        if groups[group].classes.iter().any(|class| self.spare[*class] > 0) {
            return None;
        }
        self.path(groups, group).err()
    }

    /// A shortest way from a group, all of whose classes are full, to a unit that nobody uses: the
    /// classes on it, each with the group that moves into it from the one before.
    fn path(&self, groups: &[Group], group: usize) -> Result<Vec<(usize, usize)>, Full> {
        let mut from: Vec<Option<(usize, usize)>> = vec![None; self.classes];
        let mut seen = vec![false; self.classes];
        let mut moved = vec![false; groups.len()];
        let mut open = VecDeque::new();
        for &class in &groups[group].classes {
            seen[class] = true;
            open.push_back(class);
        }
        while let Some(class) = open.pop_front() {
            for other in 0..groups.len() {
                if moved[other] || self.amount(other, class) == 0 {
                    continue;
                }
                moved[other] = true;
                for &next in &groups[other].classes {
                    if seen[next] {
                        continue;
                    }
                    seen[next] = true;
                    from[next] = Some((class, other));
                    if self.spare[next] > 0 {
                        return Ok(trace(&from, next));
                    }
                    open.push_back(next);
                }
            }
        }
        let chosen = |flags: Vec<bool>| (0..flags.len()).filter(|i| flags[*i]).collect();
        Err(Full { classes: chosen(seen), groups: chosen(moved) })
    }

    /// Moves as much as fits along a path.
    fn shift(
        &mut self,
        group: usize,
        path: &[(usize, usize)],
        want: u32,
        log: &mut Vec<Change>,
    ) -> u32 {
        let &(last, _) = path.last().expect("a path has an end");
        let mut by = want.min(self.spare[last]);
        for pair in path.windows(2) {
            let ((class, _), (_, mover)) = (pair[0], pair[1]);
            by = by.min(self.amount(mover, class));
        }
        assert!(by > 0, "a path carries something");
        self.take(last, by);
        let amount = i64::from(by);
        // From the end, so that taking it back step by step never lacks a unit.
        for pair in path.windows(2).rev() {
            let ((class, _), (next, mover)) = (pair[0], pair[1]);
            self.change(mover, class, -amount, log);
            self.change(mover, next, amount, log);
        }
        self.change(group, path[0].0, amount, log);
        by
    }

    fn take(&mut self, class: usize, by: u32) {
        self.spare[class] -= by;
        self.spare_total -= by;
    }

    fn change(&mut self, group: usize, class: usize, by: i64, log: &mut Vec<Change>) {
        self.add(group, class, by);
        log.push(Change { group, class, by });
    }

    /// Takes back what was logged beyond `len`.
    pub(super) fn undo(&mut self, log: &mut Vec<Change>, len: usize) {
        while log.len() > len {
            let Change { group, class, by } = log.pop().expect("longer than len");
            self.add(group, class, -by);
            let spare = i64::from(self.spare[class]) + by;
            let spare = u32::try_from(spare).expect("what was taken comes back");
            self.set_spare(class, spare);
        }
    }
}

/// The way to `end`: its classes, each with the group that moves into it (the first: none).
fn trace(from: &[Option<(usize, usize)>], end: usize) -> Vec<(usize, usize)> {
    let mut path = Vec::new();
    let mut at = end;
    while let Some((before, mover)) = from[at] {
        path.push((at, mover));
        at = before;
    }
    path.push((at, usize::MAX));
    path.reverse();
    path
}
