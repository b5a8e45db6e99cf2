//! Claims by what will do for them, and units by who wants them: both only make the flow small.

use super::flow::Flow;
use super::free_set::FreeSet;
use super::layout::{Among, Group, Layout};
use super::queue::Shape;
use super::{Allocator, Impossible, Want};

/// Groups without claims that are kept for claims to come.
const IDLE_GROUPS_MAX: usize = 32;

impl Allocator {
    pub(super) fn join_groups(&mut self, shape: &Shape) {
        for (group, _) in shape.iter() {
            self.groups[*group].claims += 1;
        }
    }

    pub(super) fn leave_groups(&mut self, shape: &Shape) {
        for (group, _) in shape.iter() {
            self.groups[*group].claims -= 1;
        }
    }

    /// The group of those for whom these units will do; a new one cuts classes if it must.
    pub(super) fn group_of(&mut self, among: &Among) -> usize {
        if let Some(known) = self.groups.iter().position(|group| group.among == *among) {
            return known;
        }
        self.groups.push(Group { among: among.clone(), classes: Vec::new(), claims: 0 });
        self.flow.add_group();
        self.queue.keep_shapes();
        match self.layout.classes_among(among) {
            Some(classes) => self.groups.last_mut().expect("just pushed").classes = classes,
            None => self.cut_classes(),
        }
        self.order_classes();
        self.groups.len() - 1
    }

    /// Lays the units out anew, as the groups now need it.
    pub(super) fn cut_classes(&mut self) {
        self.lay_out(self.layout.units());
    }

    /// The same for so many units, of which those that are new are not free yet.
    pub(super) fn lay_out(&mut self, units: u32) {
        let layout = Layout::of(units, &self.groups);
        let mut free: Vec<FreeSet> =
            (0..layout.classes()).map(|class| FreeSet::empty(layout.size(class))).collect();
        for class in 0..self.layout.classes() {
            for unit in self.layout.members(class).filter(|unit| self.is_free(*unit)) {
                let (class, place) = layout.place(unit);
                free[class].insert(place);
            }
        }
        (self.layout, self.free) = (layout, free);
        for group in &mut self.groups {
            let classes = self.layout.classes_among(&group.among);
            group.classes = classes.expect("laid out so that no group cuts a class");
        }
        self.recount();
    }

    /// Scarcity order: a class that fewer groups want comes first.
    pub(super) fn order_classes(&mut self) {
        let mut wanted = vec![0; self.layout.classes()];
        for class in self.groups.iter().flat_map(|group| &group.classes) {
            wanted[*class] += 1;
        }
        for group in &mut self.groups {
            group.classes.sort_unstable_by_key(|class| (wanted[*class], *class));
        }
    }

    /// The lines of a claim by group, if an empty pool could serve them.
    pub(super) fn shape_of(&mut self, wants: &[Want]) -> Result<Shape, Impossible> {
        self.forget_groups();
        let shape = self.grouped(wants);
        self.possible(&shape)?;
        Ok(shape)
    }

    /// The lines of a claim by group, whether or not anybody could serve them.
    pub(super) fn grouped(&mut self, wants: &[Want]) -> Shape {
        wants.iter().map(|want| (self.group_of(&want.among), want.units)).collect()
    }

    /// Whether the pool could serve such a claim if nobody else were there.
    ///
    /// # Errors
    /// It could not.
    pub fn serves(mut self, wants: &[Want]) -> Result<(), Impossible> {
        self.shape_of(wants).map(|_| ())
    }

    pub(super) fn possible(&self, lines: &Shape) -> Result<(), Impossible> {
        if let [(group, units)] = &**lines {
            let there_are = self.groups[*group].classes.iter().map(|class| self.capacity(*class));
            let (there_are, wanted) = (there_are.sum(), *units);
            if wanted > there_are {
                return Err(Impossible { lines: vec![0], wanted, there_are });
            }
            return Ok(());
        }
        let capacity: Vec<u32> =
            (0..self.layout.classes()).map(|class| self.capacity(class)).collect();
        let mut empty = Flow::new(self.groups.len(), capacity);
        for (group, units) in lines.iter() {
            if empty.augment(&self.groups, *group, *units, &mut Vec::new()) == *units {
                continue;
            }
            let full = empty.full(&self.groups, *group).expect("it found too little");
            let inside = |(group, _): &(usize, u32)| {
                self.groups[*group].classes.iter().all(|class| full.classes.contains(class))
            };
            let chosen = lines.iter().enumerate().filter(|(_, line)| inside(line));
            return Err(Impossible {
                lines: chosen.clone().map(|(index, _)| index).collect(),
                wanted: chosen.map(|(_, (_, units))| *units).sum(),
                there_are: full.classes.iter().map(|class| self.capacity(*class)).sum(),
            });
        }
        Ok(())
    }

    /// Units of a class that can be granted, now or later.
    pub(super) fn capacity(&self, class: usize) -> u32 {
        if self.drained.is_empty() {
            return self.layout.size(class);
        }
        if self.layout.classes() == 1 {
            return self.layout.size(class) - self.drained.len() as u32;
        }
        let here = self.drained.iter().filter(|unit| self.layout.class_of(**unit) == class);
        self.layout.size(class) - here.count() as u32
    }

    /// Forgets groups without claims once there are many, and with them the classes they cut.
    pub(super) fn forget_groups(&mut self) {
        let live = |group: &(usize, &Group)| group.0 == 0 || group.1.claims > 0;
        let count = self.groups.iter().enumerate().filter(live).count();
        if self.groups.len() < 2 * count + IDLE_GROUPS_MAX || self.is_moving() {
            return;
        }
        let mut names = vec![usize::MAX; self.groups.len()];
        let mut kept = Vec::with_capacity(count);
        for (old, group) in self.groups.iter().enumerate().filter(live) {
            names[old] = kept.len();
            kept.push(group.clone());
        }
        self.groups = kept;
        self.queue.rename(|group| names[group], |_| {});
        for mover in self.movers.values_mut() {
            mover.shape = mover.shape.iter().map(|(group, n)| (names[*group], *n)).collect();
        }
        self.cut_classes();
        self.order_classes();
    }
}
