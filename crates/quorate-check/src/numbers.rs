//! Renaming clocks and fences, so that the worlds that differ only in how far they have counted are
//! one world and the state space is finite.
//!
//! **Clocks.** Let a world contain the clocks `c1 < c2 < ...`. Each is renamed so that 0 stays 0
//! and every gap is kept up to a limit G: `new(c[i]) = new(c[i-1]) + min(c[i] - c[i-1], G)`.
//! Protocols do three things with a clock: compare it, take the larger of two, and count it up by
//! one when a claim is stamped. Comparing and taking the larger give the same answer before and
//! after an order-preserving renaming. Counting up can only tell two worlds apart if a clock can
//! catch up with the next larger one in one of them and not in the other. A gap that was cut to G
//! is larger than the number of stamps that can still be given, so it is closed in neither: every
//! claim that is not over is stamped at most once more, and once more for each crash, lapse, loss
//! or suspicion that is still allowed. Zero is never renamed, because a node that forgot everything
//! starts there.
//!
//! A protocol that counts more often than that is explored under numbers that may meet sooner than
//! they really would. Two things keep that honest: every counterexample is played again under real
//! numbers (`transcript.rs`), and tests compare what clients see with and without the renaming
//! ([`crate::client_views`]).
//!
//! **Fences** are ranked densely above the floor of the boot that gave them
//! ([`quorate_core::Fence::floor`]), and floors keep their place because a restarted arbiter starts
//! there. A new fence is the successor of the largest one its giver knows: above everything in
//! either world, or in either world not above something it should be above, which is the breach we
//! look for.

use quorate_core::{Fence, Number};

use crate::hash::Lookup;
use crate::scope::NODES_MAX;
use crate::shelf::Shelf;

/// The clocks and fences that occur in something, ascending and without repeats.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct NumberSet {
    clocks: Vec<u64>,
    fences: Vec<u64>,
}

impl NumberSet {
    /// Collects what `show` shows.
    pub(crate) fn collect(show: impl FnOnce(&mut dyn FnMut(Number<'_>))) -> Self {
        let mut set = NumberSet::default();
        show(&mut |number| match number {
            Number::Clock(clock) => set.clocks.push(*clock),
            Number::Fence(fence) => set.fences.push(fence.0),
        });
        set.tidy();
        set
    }

    fn tidy(&mut self) {
        for numbers in [&mut self.clocks, &mut self.fences] {
            numbers.sort_unstable();
            numbers.dedup();
        }
    }

    fn renaming(&self, gap: u64) -> Renaming {
        let mut clocks = Vec::new();
        let (mut old_before, mut new_before) = (0, 0);
        for &old in &self.clocks {
            let new = new_before + (old - old_before).min(gap);
            clocks.push((old, new));
            (old_before, new_before) = (old, new);
        }
        let per_boot = Fence::floor(1).0 / NODES_MAX as u64; // See `Fence::floor_of_all`.
        let mut fences = Vec::new();
        let mut highest = 0;
        for &old in &self.fences {
            let floor = old - old % per_boot;
            let new = if old == floor { floor } else { highest.max(floor) + 1 };
            fences.push((old, new));
            highest = new;
        }
        Renaming { clocks, fences }
    }
}

/// New names for the numbers of one world.
#[derive(Debug)]
pub(crate) struct Renaming {
    clocks: Vec<(u64, u64)>,
    fences: Vec<(u64, u64)>,
}

impl Renaming {
    fn changes_nothing(&self) -> bool {
        self.clocks.iter().chain(&self.fences).all(|(old, new)| old == new)
    }

    /// Gives one number its new name.
    pub(crate) fn rename(&self, number: Number<'_>) {
        let new = |names: &[(u64, u64)], old: u64| {
            let place = names.binary_search_by_key(&old, |&(old, _)| old);
            names[place.expect("a number is shown when it is renamed and was not before")].1
        };
        match number {
            Number::Clock(clock) => *clock = new(&self.clocks, *clock),
            Number::Fence(fence) => fence.0 = new(&self.fences, fence.0),
        }
    }
}

/// All sets of numbers met so far, by number. The empty set is number 0.
#[derive(Debug)]
pub(crate) struct Names {
    sets: Shelf<NumberSet, ()>,
    unions: Lookup<u64, u32>,
    renamings: Vec<Renaming>,
    /// By set and gap; `None` where nothing changes.
    renaming_of: Lookup<u64, Option<u32>>,
}

impl Names {
    pub(crate) const NONE: u32 = 0;

    pub(crate) fn new() -> Self {
        let mut sets = Shelf::new();
        sets.put(NumberSet::default(), |_| ());
        Names {
            sets,
            unions: Lookup::default(),
            renamings: Vec::new(),
            renaming_of: Lookup::default(),
        }
    }

    pub(crate) fn put(&mut self, set: NumberSet) -> u32 {
        self.sets.put(set, |_| ())
    }

    pub(crate) fn union(&mut self, a: u32, b: u32) -> u32 {
        if a == b || b == Self::NONE {
            return a;
        }
        if a == Self::NONE {
            return b;
        }
        let key = u64::from(a.min(b)) << 32 | u64::from(a.max(b));
        if let Some(&known) = self.unions.get(&key) {
            return known;
        }
        let mut union = self.sets.get(a).clone();
        union.clocks.extend(&self.sets.get(b).clocks);
        union.fences.extend(&self.sets.get(b).fences);
        union.tidy();
        let number = self.put(union);
        self.unions.insert(key, number);
        number
    }

    /// How a world with these numbers is renamed; `None` if it has its final names already.
    pub(crate) fn renaming_of(&mut self, set: u32, gap: u32) -> Option<u32> {
        let key = u64::from(set) << 32 | u64::from(gap);
        if let Some(&known) = self.renaming_of.get(&key) {
            return known;
        }
        let renaming = self.sets.get(set).renaming(u64::from(gap));
        let number = (!renaming.changes_nothing()).then(|| {
            self.renamings.push(renaming);
            self.renamings.len() as u32 - 1
        });
        self.renaming_of.insert(key, number);
        number
    }

    pub(crate) fn renaming(&self, number: u32) -> &Renaming {
        &self.renamings[number as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renamed(clocks: &[u64], fences: &[u64], gap: u64) -> (Vec<u64>, Vec<u64>) {
        let renaming = NumberSet { clocks: clocks.to_vec(), fences: fences.to_vec() }.renaming(gap);
        let new = |names: &[(u64, u64)]| names.iter().map(|&(_, new)| new).collect();
        (new(&renaming.clocks), new(&renaming.fences))
    }

    #[test]
    fn gaps_are_kept_up_to_the_limit_and_zero_stays_zero() {
        assert_eq!(renamed(&[0, 1, 5, 7], &[], 3).0, [0, 1, 4, 6]);
        assert_eq!(renamed(&[9, 10], &[], 3).0, [3, 4]);
        assert_eq!(renamed(&[3, 4, 7], &[], 3).0, [3, 4, 7], "renaming twice changes nothing");
    }

    #[test]
    fn fences_are_ranked_above_the_floor_of_their_boot() {
        let (one, two) = (Fence::floor(1).0, Fence::floor(2).0);
        let (_, fences) = renamed(&[], &[0, 4, 9, one + 3, two, two + 8], 1);
        assert_eq!(fences, [0, 1, 2, one + 1, two, two + 1]);
        assert_eq!(renamed(&[], &fences, 1).1, fences);
    }

    #[test]
    fn a_union_has_the_numbers_of_both() {
        let mut names = Names::new();
        let set = |clocks: &[u64]| NumberSet { clocks: clocks.to_vec(), fences: vec![] };
        let (a, b) = (names.put(set(&[1, 4])), names.put(set(&[2, 4])));
        let both = names.put(set(&[1, 2, 4]));
        assert_eq!(names.union(a, b), both);
        assert_eq!(names.union(b, a), both);
        assert_eq!(names.union(Names::NONE, a), a);
        assert_eq!(names.renaming_of(both, 5), None);
        assert!(names.renaming_of(both, 1).is_some());
    }
}
