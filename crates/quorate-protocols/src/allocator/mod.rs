//! Who gets which units: AGE-RANK, the allocator of labelled pools (labels spec 6).
//!
//! Pure bookkeeping: no messages, no time. Claims wait in the order of their age; each asks for
//! some units among those that will do for it, in one or several lines, all at once or not at all.
//! [`Allocator::pass`] decides for all of them together by growing one maximum flow from groups of
//! claims to classes of units, oldest claim first:
//!
//! * a claim is granted iff the flow of everybody older plus itself can be that much larger;
//! * a claim that is blocked and *protected* keeps what it found, so that nobody younger takes it;
//! * units are named only at the end, when it is clear who else needs which.
//!
//! A pool of units that are all alike is the case of one class: the oldest while they fit, and the
//! lowest free units. What is promised (proofs in labels spec 6.2):
//!
//! * **S**: units of holders are disjoint, will do for their holder, and are as many as it asked
//!   for.
//! * **M**: if holders and all who wait can be served together, nobody is left waiting.
//! * **A**: a grant to a younger claim does not delay a protected one.
//! * **B, L**: the oldest claim is granted at the latest when all that held units when it became
//!   the oldest have released. So nobody starves.
//! * **W**: if all ask for one unit, nobody waits who could be served beside the holders, and no
//!   other choice would grant more.
//!
//! A holder that said it is *movable* may be asked to go to another unit. It gets the new one
//! before it gives up the old one, and a unit changes hands only when its last user has answered
//! ([`Allocator::moved`]) or released. While moves are under way no other pass is made.

mod explain;
mod flow;
mod free_set;
mod groups;
pub mod labels;
mod layout;
pub(crate) mod oracle;
mod pass;
mod place;
mod queue;
mod stock;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use quorate_core::{ClaimId, Unit};

use flow::Flow;
use free_set::FreeSet;
use layout::{Group, Layout};
use place::{Mover, Moves};
use queue::Queue;

pub use explain::Cut;
pub use layout::Among;

/// A claim as the allocator knows it: its age, smaller is older, and its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ticket {
    /// Given by whoever runs the allocator, in the order in which claims come.
    pub age: u64,
    /// Its name.
    pub claim: ClaimId,
}

/// One line of a claim: so many of these.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Want {
    /// The units that will do.
    pub among: Among,
    /// How many.
    pub units: u32,
}

/// Who may pass whom.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Policy {
    /// How many blocked claims keep what they found, oldest first. 0 starves claims for many units.
    pub protect: u32,
    /// How often the oldest claim is passed before it, and so anybody, is protected.
    pub patience: u32,
}

impl Policy {
    /// No claim is ever delayed by a younger one.
    pub const STRICT: Policy = Policy { protect: u32::MAX, patience: 0 };
}

/// Something for the driver to do.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Deed {
    /// The claim has these units now, line by line.
    Grant {
        /// Whose.
        ticket: Ticket,
        /// Which.
        units: Vec<Unit>,
    },
    /// The holder should use `add` instead of `drop`, and say so. It has both until then.
    Move {
        /// Whose.
        ticket: Ticket,
        /// The unit it gets.
        add: Unit,
        /// The unit it should leave.
        drop: Unit,
    },
}

/// A claim that no holder's release could ever satisfy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Impossible {
    /// The lines that together ask for too much.
    pub lines: Vec<usize>,
    /// How many units they ask for.
    pub wanted: u32,
    /// How many units there are for them.
    pub there_are: u32,
}

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Impossible { wanted, there_are, .. } = self;
        write!(f, "{wanted} units wanted, and the pool has {there_are} that will do")
    }
}

/// What has happened since the last pass.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum News {
    /// Nothing: everybody who waits is blocked, or nobody waits.
    Nothing,
    /// Claims came, this one first. Everybody older is blocked, and there are older ones.
    Since(Ticket),
    /// Units came back: any claim that waits may find something.
    Room,
}

/// The books: who waits, what is free, who can be moved. Holders that cannot be moved are known by
/// their units only.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Allocator {
    policy: Policy,
    layout: Layout,
    groups: Vec<Group>,
    /// The free units of every class, by their place in it.
    free: Vec<FreeSet>,
    /// Units that are not to be granted (again).
    drained: BTreeSet<Unit>,
    queue: Queue,
    movers: BTreeMap<Ticket, Mover>,
    /// Between passes: where the movable holders are, and what is free.
    flow: Flow,
    news: News,
    plan: Moves,
    #[cfg(test)]
    pub(crate) mutant: Option<Mutant>,
}

/// Whether a rule is broken: never, outside this crate's tests.
macro_rules! broken {
    ($allocator:expr, $mutant:ident) => {{
        #[cfg(test)]
        let broken = $allocator.mutant == Some($crate::allocator::Mutant::$mutant);
        #[cfg(not(test))]
        let broken = {
            let _ = &$allocator;
            false
        };
        broken
    }};
}
use broken;

/// Rules that tests break one at a time; the laws must notice each.
#[cfg(test)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Mutant {
    /// Nobody passes a blocked claim, whatever it asks for.
    StrictFifo,
    /// Units are named as soon as a claim is granted.
    BindEarly,
    /// A unit changes hands before its user has answered.
    HandOverEarly,
    /// Holders are counted as if they could move, and are not moved.
    CountOnly,
}

impl Allocator {
    /// All units of a pool free and alike.
    pub fn new(units: u32, policy: Policy) -> Self {
        let any = Group { among: None, classes: vec![0], claims: 0 };
        let mut queue = Queue::default();
        if policy.patience > 0 || policy.protect == 0 {
            queue.keep_shapes();
        }
        let mut free = FreeSet::empty(units);
        (0..units).for_each(|unit| free.insert(unit));
        Allocator {
            policy,
            layout: Layout::plain(units),
            groups: vec![any],
            free: vec![free],
            drained: BTreeSet::new(),
            queue,
            movers: BTreeMap::new(),
            flow: Flow::new(1, vec![units]),
            news: News::Nothing,
            plan: Moves::default(),
            #[cfg(test)]
            mutant: None,
        }
    }

    /// A claim comes. It waits until a pass grants it.
    ///
    /// # Errors
    /// It can never be granted. Nothing changed.
    pub fn enter(
        &mut self,
        ticket: Ticket,
        wants: &[Want],
        movable: bool,
    ) -> Result<(), Impossible> {
        let shape = self.shape_of(wants)?;
        self.join_groups(&shape);
        self.queue.insert(ticket, shape, movable);
        let first = match self.news {
            News::Nothing => ticket,
            News::Since(first) => first.min(ticket),
            News::Room => return Ok(()),
        };
        let oldest = self.queue.oldest().is_none_or(|(oldest, _)| first <= oldest);
        self.news = if oldest { News::Room } else { News::Since(first) };
        Ok(())
    }

    /// A claim comes, and is granted at once if it can be: an entry and a pass in one. Where nobody
    /// waits and enough is free, it does not even enter the queue.
    ///
    /// # Errors
    /// It can never be granted. Nothing changed.
    pub fn submit(
        &mut self,
        ticket: Ticket,
        wants: &[Want],
        movable: bool,
        deeds: &mut Vec<Deed>,
    ) -> Result<(), Impossible> {
        if let [want] = wants
            && self.queue.len() == 0
            && !movable
            && !self.is_moving()
            && let Some(group) = self.groups.iter().position(|group| group.among == want.among)
        {
            let classes = &self.groups[group].classes;
            let free: u32 = classes.iter().map(|class| self.free[*class].count()).sum();
            if want.units <= free {
                let mut units = Vec::with_capacity(want.units as usize);
                for at in 0..self.groups[group].classes.len() {
                    let class = self.groups[group].classes[at];
                    let left = want.units - units.len() as u32;
                    self.take_lowest(class, left.min(self.free[class].count()), &mut units);
                }
                units.sort_unstable();
                deeds.push(Deed::Grant { ticket, units });
                return Ok(());
            }
        }
        self.enter(ticket, wants, movable)?;
        self.pass(deeds);
        Ok(())
    }

    /// A claim that waits is over. Says whether it did wait.
    pub fn cancel(&mut self, ticket: Ticket) -> bool {
        if let Some((waiting, units)) = self.plan.cancel(ticket) {
            self.leave_groups(&waiting.shape);
            units.into_iter().for_each(|unit| self.put_back(unit));
            self.unsettle();
            return true;
        }
        let Some(waiting) = self.queue.remove(ticket) else { return false };
        self.leave_groups(&waiting.shape);
        self.unsettle();
        true
    }

    /// A holder gives back its units; `units` is what it has as far as the driver knows, and what
    /// it got by a move under way comes back too.
    pub fn release(&mut self, ticket: Ticket, units: impl IntoIterator<Item = Unit>) {
        match self.movers.remove(&ticket) {
            Some(mover) => {
                self.leave_groups(&mover.shape);
                for (group, unit) in mover.units() {
                    self.count_seat(group, unit, -1);
                    self.put_back(unit);
                }
                self.plan.forget(ticket).into_iter().for_each(|unit| self.put_back(unit));
                self.settle();
            }
            None => units.into_iter().for_each(|unit| self.put_back(unit)),
        }
        self.unsettle();
    }

    /// Takes exactly these units, which are free, for a holder that cannot be moved: it was granted
    /// them in an earlier life.
    pub fn take(&mut self, units: impl IntoIterator<Item = Unit>) {
        for unit in units {
            let (class, place) = self.layout.place(unit);
            self.free[class].remove(place);
            self.flow.set_spare(class, self.free[class].count());
        }
    }

    fn take_lowest(&mut self, class: usize, count: u32, units: &mut Vec<Unit>) {
        for _ in 0..count {
            let place = self.free[class].take_lowest();
            units.push(self.layout.unit(class, place));
        }
        self.flow.set_spare(class, self.free[class].count());
    }

    /// Whether a unit is free.
    pub fn is_free(&self, unit: Unit) -> bool {
        unit.0 < self.layout.units() && {
            let (class, place) = self.layout.place(unit);
            self.free[class].contains(place)
        }
    }

    /// How many units there are, with those that are not to be granted.
    pub fn units(&self) -> u32 {
        self.layout.units()
    }

    /// How many units are free.
    pub fn free_count(&self) -> u32 {
        self.free.iter().map(FreeSet::count).sum()
    }

    /// How many units are kept for claims that get the rest of theirs when holders have moved.
    pub fn kept_count(&self) -> u32 {
        self.plan.kept()
    }

    /// Whether a unit is among those.
    pub fn keeps(&self, unit: Unit) -> bool {
        self.plan.keeps(unit)
    }

    /// The units that are not to be granted, ascending.
    pub fn drained(&self) -> impl Iterator<Item = Unit> + '_ {
        self.drained.iter().copied()
    }

    /// How many claims wait.
    pub fn waiting(&self) -> usize {
        self.queue.len() + self.plan.granted()
    }

    /// Whether a claim waits.
    pub fn waits(&self, ticket: Ticket) -> bool {
        self.queue.get(ticket).is_some() || self.plan.is_granted(ticket)
    }

    /// How often claims were granted over this one and no younger one. With [`Allocator::recall`],
    /// for whoever writes the books down and makes them anew.
    pub fn passed(&self, ticket: Ticket) -> u32 {
        self.queue.passed(ticket)
    }

    /// A claim that has just entered had waited before, and was passed so often.
    pub fn recall(&mut self, ticket: Ticket, passed: u32) {
        self.queue.recall(ticket, passed);
    }

    /// Whether moves are under way.
    pub fn is_moving(&self) -> bool {
        !self.plan.is_empty()
    }

    /// Labels change: what was decided and nobody was told is decided anew. Holders that were told
    /// to move may go on.
    pub fn call_off(&mut self) {
        for (ticket, waiting, units) in self.plan.call_off() {
            self.queue.insert(ticket, waiting.shape, waiting.movable);
            units.into_iter().for_each(|unit| self.put_back(unit));
        }
        self.unsettle();
    }

    /// Other units will do for a claim than before, since labels changed and everything was
    /// [called off](Allocator::call_off). One that waits keeps its age; one that holds units it may
    /// no longer use keeps them, and is not moved from them.
    ///
    /// # Errors
    /// It waits, and can never be granted this. Nothing changed: cancel it.
    pub fn reselect(&mut self, ticket: Ticket, wants: &[Want]) -> Result<(), Impossible> {
        self.forget_groups();
        let shape = self.grouped(wants);
        let before = if self.queue.get(ticket).is_some() {
            self.possible(&shape)?;
            self.queue.replace(ticket, shape.clone())
        } else {
            let mover = self.movers.get_mut(&ticket);
            mover.map(|mover| std::mem::replace(&mut mover.shape, shape.clone()))
        };
        if let Some(before) = before {
            self.join_groups(&shape);
            self.leave_groups(&before);
        }
        self.recount();
        self.unsettle();
        Ok(())
    }

    /// How often the oldest claim was passed.
    pub(crate) fn oldest_passed(&self) -> u32 {
        self.queue.oldest_passed()
    }

    /// Units whose holders can be asked to leave them, each with the units that would do instead.
    pub(crate) fn seats(&self) -> impl Iterator<Item = (Unit, &Among)> {
        let seats = self.movers.values().flat_map(Mover::units);
        let seats = seats.filter(|(group, unit)| self.is_seat(*group, *unit));
        seats.map(|(group, unit)| (unit, &self.groups[group].among))
    }

    /// Whether a holder can be asked to move.
    pub fn is_movable(&self, ticket: Ticket) -> bool {
        self.movers.contains_key(&ticket)
    }

    /// Forgets who holds what.
    #[cfg(test)]
    pub(crate) fn pretend_free(&mut self) {
        for unit in (0..self.layout.units()).map(Unit) {
            if !self.is_free(unit) {
                self.put_back(unit);
            }
        }
        self.unsettle();
    }

    /// Numbers that can be counted in two ways must agree.
    fn audit_books(&self) {
        let mut counted = self.clone();
        counted.recount();
        assert_eq!(counted.flow, self.flow, "the flow at rest is where everybody is");
        for (class, free) in self.free.iter().enumerate() {
            let size = self.layout.size(class);
            assert!((0..size).filter(|place| free.contains(*place)).count() as u32 == free.count());
        }
        for (index, group) in self.groups.iter().enumerate() {
            let lines = self.queue.iter().flat_map(|(_, waiting)| waiting.shape.iter());
            let lines = lines.chain(self.movers.values().flat_map(|mover| mover.shape.iter()));
            let lines = lines.filter(|(group, _)| *group == index).count();
            assert!(lines as u32 <= group.claims, "a group knows its claims");
        }
    }

    /// Shows every age, to be replaced by another that keeps their order.
    pub fn ages(&mut self, age: &mut dyn FnMut(&mut u64)) {
        // All fields are named, so that none with ages in it is forgotten.
        let Allocator {
            queue,
            movers,
            news,
            plan,
            policy: _,
            layout: _,
            groups: _,
            free: _,
            drained: _,
            flow: _,
            #[cfg(test)]
                mutant: _,
        } = self;
        if let News::Since(first) = news {
            age(&mut first.age);
        }
        if queue.len() > 0 {
            queue.rename(|group| group, &mut *age);
        }
        if !movers.is_empty() {
            *movers = std::mem::take(movers)
                .into_iter()
                .map(|(mut ticket, mover)| {
                    age(&mut ticket.age);
                    (ticket, mover)
                })
                .collect();
        }
        plan.ages(age);
    }

    /// Whoever waits may find something now.
    fn unsettle(&mut self) {
        self.news = if self.queue.len() == 0 { News::Nothing } else { News::Room };
    }

    fn put_back(&mut self, unit: Unit) {
        // What was promised before it was drained is still handed over.
        if self.drained.contains(&unit) && !self.plan.awaits(unit) {
            return;
        }
        let (class, place) = self.layout.place(unit);
        self.free[class].insert(place);
        self.flow.set_spare(class, self.free[class].count());
    }

    /// The flow between passes: what is free, and where those are who can be moved.
    fn settle(&mut self) {
        self.flow.settle(self.free.iter().map(FreeSet::count));
    }

    /// The same from scratch, after classes, groups or units have changed.
    fn recount(&mut self) {
        self.flow = Flow::new(self.groups.len(), vec![0; self.layout.classes()]);
        let movers = std::mem::take(&mut self.movers);
        for (group, unit) in movers.values().flat_map(Mover::units) {
            self.count_seat(group, unit, 1);
        }
        self.movers = movers;
        self.settle();
    }

    /// Whether a holder can be moved from a unit: it is in the pool and will do for it.
    fn is_seat(&self, group: usize, unit: Unit) -> bool {
        !self.drained.contains(&unit)
            && self.groups[group].classes.contains(&self.layout.class_of(unit))
    }

    fn count_seat(&mut self, group: usize, unit: Unit, by: i64) {
        if self.is_seat(group, unit) {
            self.flow.seat(group, self.layout.class_of(unit), by);
        }
    }
}
