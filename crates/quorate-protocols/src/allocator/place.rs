//! The placement: which units a grant gets, and which holders move for it.
//!
//! The pass decides on one flow, in which movable holders may stand anywhere. The placement starts
//! from where they really are: only holders whose unit is needed move, along shortest paths to a
//! free unit (labels spec 6.2 and 6.6.2).

use std::collections::{BTreeMap, VecDeque};

use quorate_core::Unit;

use super::pass::Granted;
use super::queue::{Shape, Waiting};
use super::{Allocator, Deed, Ticket, broken};

/// A holder that can be moved.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Mover {
    pub(super) shape: Shape,
    /// Its units, line by line.
    pub(super) held: Vec<Unit>,
}

impl Mover {
    /// Its units, each with the group of its line.
    pub(super) fn units(&self) -> impl Iterator<Item = (usize, Unit)> + '_ {
        let groups =
            self.shape.iter().flat_map(|(g, units)| std::iter::repeat_n(*g, *units as usize));
        groups.zip(self.held.iter().copied())
    }
}

/// Moves that are under way, and grants that wait for them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Plan {
    /// Moves whose new unit is not free yet: whose, from which unit, to which.
    due: Vec<(Ticket, Unit, Unit)>,
    /// Moves that the holder has been told of: the unit it leaves, and the one it got.
    told: BTreeMap<(Ticket, Unit), Unit>,
    grants: Vec<Promise>,
}

/// A grant whose units are not all free yet.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Promise {
    ticket: Ticket,
    waiting: Waiting,
    /// Its units line by line, and whether it has them already.
    units: Vec<(Unit, bool)>,
}

impl Plan {
    pub(super) fn is_empty(&self) -> bool {
        self.due.is_empty() && self.told.is_empty() && self.grants.is_empty()
    }

    pub(super) fn granted(&self) -> usize {
        self.grants.len()
    }

    /// Units that are kept for grants which are not complete yet.
    pub(super) fn kept(&self) -> u32 {
        let units = self.grants.iter().flat_map(|promise| &promise.units);
        units.filter(|(_, got)| *got).count() as u32
    }

    pub(super) fn is_granted(&self, ticket: Ticket) -> bool {
        self.grants.iter().any(|promise| promise.ticket == ticket)
    }

    /// Whether somebody is to get this unit from its present user.
    pub(super) fn awaits(&self, unit: Unit) -> bool {
        self.due.iter().any(|(_, _, add)| *add == unit)
            || self.grants.iter().any(|promise| promise.units.contains(&(unit, false)))
    }

    /// Whether a unit is kept for a grant which is not complete yet.
    pub(super) fn keeps(&self, unit: Unit) -> bool {
        self.grants.iter().any(|promise| promise.units.contains(&(unit, true)))
    }

    /// A claim that would be granted is over: what it asked for, and the units it has already.
    pub(super) fn cancel(&mut self, ticket: Ticket) -> Option<(Waiting, Vec<Unit>)> {
        let at = self.grants.iter().position(|promise| promise.ticket == ticket)?;
        let promise = self.grants.remove(at);
        let units = promise.units.into_iter().filter(|(_, got)| *got).map(|(unit, _)| unit);
        Some((promise.waiting, units.collect()))
    }

    /// Nothing is decided any more but the moves that holders were told of: who waits again, with
    /// the units it had already.
    pub(super) fn call_off(&mut self) -> Vec<(Ticket, Waiting, Vec<Unit>)> {
        self.due.clear();
        let back = std::mem::take(&mut self.grants).into_iter().map(|promise| {
            let units = promise.units.into_iter().filter(|(_, got)| *got).map(|(unit, _)| unit);
            (promise.ticket, promise.waiting, units.collect())
        });
        back.collect()
    }

    /// A holder is gone: the units it got by moves that it had not answered.
    pub(super) fn forget(&mut self, ticket: Ticket) -> Vec<Unit> {
        self.due.retain(|(mover, ..)| *mover != ticket);
        let told: Vec<_> =
            self.told.keys().filter(|(mover, _)| *mover == ticket).copied().collect();
        told.into_iter().filter_map(|key| self.told.remove(&key)).collect()
    }

    pub(super) fn ages(&mut self, age: &mut dyn FnMut(&mut u64)) {
        self.due.iter_mut().for_each(|(ticket, ..)| age(&mut ticket.age));
        let told = std::mem::take(&mut self.told);
        for ((mut ticket, drop), add) in told {
            age(&mut ticket.age);
            self.told.insert((ticket, drop), add);
        }
        self.grants.iter_mut().for_each(|promise| age(&mut promise.ticket.age));
    }
}

impl Allocator {
    /// Names units for those who are granted.
    pub(super) fn bind(&mut self, granted: Vec<Granted>, deeds: &mut Vec<Deed>) {
        if self.movers.is_empty() {
            for granted in granted {
                self.bind_alone(granted, deeds);
            }
        } else if !granted.is_empty() {
            self.bind_and_move(granted, deeds);
        }
        self.settle();
    }

    /// Nobody has to move: what the flow gives is free.
    fn bind_alone(&mut self, granted: Granted, deeds: &mut Vec<Deed>) {
        let Granted { ticket, waiting, classes } = granted;
        let mut units = Vec::with_capacity(waiting.shape.iter().map(|l| l.1 as usize).sum());
        for class in classes {
            self.take_lowest(class, 1, &mut units);
        }
        if units.is_empty() {
            for (group, count) in waiting.shape.iter() {
                let mut left = *count;
                for at in 0..self.groups[*group].classes.len() {
                    let class = self.groups[*group].classes[at];
                    let by = left.min(self.flow.amount(*group, class));
                    self.flow.add(*group, class, -i64::from(by));
                    self.take_lowest(class, by, &mut units);
                    left -= by;
                }
                assert_eq!(left, 0, "a granted line has its units in the flow");
            }
        }
        self.hand_out(ticket, waiting, units, deeds);
    }

    /// The same where holders may stand in the way: plans their moves.
    fn bind_and_move(&mut self, mut granted: Vec<Granted>, deeds: &mut Vec<Deed>) {
        for granted in &mut granted {
            self.choose_classes(granted);
        }
        let leaving = self.plan_moves(&granted);
        // Units that will be free once their users have moved, by class.
        let mut vacated: BTreeMap<usize, Vec<Unit>> = BTreeMap::new();
        for (_, drop, _) in &leaving {
            vacated.entry(self.layout.class_of(*drop)).or_default().push(*drop);
        }
        for (ticket, drop, class) in leaving {
            let (add, free) = self.find_unit(class, &mut vacated);
            if free {
                self.tell_move(ticket, drop, add, deeds);
            } else {
                self.plan.due.push((ticket, drop, add));
            }
        }
        for Granted { ticket, waiting, classes } in granted {
            let units: Vec<(Unit, bool)> =
                classes.into_iter().map(|class| self.find_unit(class, &mut vacated)).collect();
            self.plan.grants.push(Promise { ticket, waiting, units });
        }
        self.hand_out_complete(deeds);
    }

    /// A unit of a class that is free, and taken now, or else one that will be.
    fn find_unit(
        &mut self,
        class: usize,
        vacated: &mut BTreeMap<usize, Vec<Unit>>,
    ) -> (Unit, bool) {
        if self.free[class].count() > 0 {
            let place = self.free[class].take_lowest();
            return (self.layout.unit(class, place), true);
        }
        if broken!(self, CountOnly) {
            return (self.layout.unit(class, 0), true);
        }
        let unit = vacated.get_mut(&class).and_then(Vec::pop);
        (unit.expect("as many are free or leave as are needed"), false)
    }

    /// Which classes a grant gets its units from: what the flow gives the group of a line, less
    /// what holders of the group keep, scarcest first.
    pub(super) fn choose_classes(&mut self, granted: &mut Granted) {
        if !granted.classes.is_empty() {
            return;
        }
        for (group, units) in granted.waiting.shape.iter() {
            let mut left = *units;
            for &class in &self.groups[*group].classes {
                let given = self.flow.amount(*group, class);
                let kept = self.flow.seated(*group, class).min(given);
                let by = left.min(given - kept);
                self.flow.add(*group, class, -i64::from(by));
                granted.classes.extend(std::iter::repeat_n(class, by as usize));
                left -= by;
            }
            assert_eq!(left, 0, "a granted line has its units in the flow");
        }
    }

    /// Finds places for holders who stand where somebody else is granted: who leaves which unit,
    /// and for which class.
    fn plan_moves(&mut self, granted: &[Granted]) -> Vec<(Ticket, Unit, usize)> {
        let classes = self.layout.classes();
        let mut room: Vec<i64> = self.free.iter().map(|free| i64::from(free.count())).collect();
        for class in granted.iter().flat_map(|granted| &granted.classes) {
            room[*class] -= 1;
        }
        let mut leaving = Vec::new();
        if broken!(self, CountOnly) || room.iter().all(|room| *room >= 0) {
            return leaving;
        }
        let mut seated: Vec<Vec<u32>> = (0..self.groups.len())
            .map(|group| (0..classes).map(|class| self.flow.seated(group, class)).collect())
            .collect();
        // By group: from class, to class.
        let mut moves = vec![vec![0u32; classes * classes]; self.groups.len()];
        while let Some(full) = (0..classes).find(|class| room[*class] < 0) {
            for (group, from, to) in self.way_out(full, &seated, &room) {
                seated[group][from] -= 1;
                seated[group][to] += 1;
                room[from] += 1;
                room[to] -= 1;
                moves[group][from * classes + to] += 1;
            }
        }
        moves.iter_mut().for_each(|moves| join(moves, classes));
        cancel_exchanges(&mut moves, classes);
        for (group, moves) in moves.iter().enumerate() {
            for (pair, count) in moves.iter().enumerate().filter(|(_, count)| **count > 0) {
                let (from, to) = (pair / classes, pair % classes);
                self.choose_movers(group, from, to, *count as usize, &mut leaving);
            }
        }
        leaving
    }

    /// A shortest chain of moves from a class with too many to one with a free unit.
    fn way_out(
        &self,
        full: usize,
        seated: &[Vec<u32>],
        room: &[i64],
    ) -> Vec<(usize, usize, usize)> {
        let mut from: Vec<Option<(usize, usize)>> = vec![None; room.len()];
        let mut open = VecDeque::from([full]);
        let mut seen = vec![false; room.len()];
        seen[full] = true;
        while let Some(class) = open.pop_front() {
            for group in (0..seated.len()).filter(|group| seated[*group][class] > 0) {
                for &next in &self.groups[group].classes {
                    if seen[next] {
                        continue;
                    }
                    seen[next] = true;
                    from[next] = Some((group, class));
                    if room[next] > 0 {
                        let mut path = Vec::new();
                        let mut at = next;
                        while let Some((group, before)) = from[at] {
                            path.push((group, before, at));
                            at = before;
                        }
                        return path;
                    }
                    open.push_back(next);
                }
            }
        }
        unreachable!("the flow has a place for everybody")
    }

    /// The youngest holders move, from their highest units.
    fn choose_movers(
        &self,
        group: usize,
        from: usize,
        to: usize,
        count: usize,
        leaving: &mut Vec<(Ticket, Unit, usize)>,
    ) {
        let end = leaving.len() + count;
        for (ticket, mover) in self.movers.iter().rev() {
            let mut units: Vec<Unit> = mover
                .units()
                .filter(|(own, unit)| *own == group && self.is_seat(group, *unit))
                .map(|(_, unit)| unit)
                .filter(|unit| self.layout.class_of(*unit) == from)
                .filter(|unit| !leaving.iter().any(|(_, drop, _)| drop == unit))
                .collect();
            units.sort_unstable_by(|a, b| b.cmp(a));
            let most = end - leaving.len();
            leaving.extend(units.into_iter().take(most).map(|unit| (*ticket, unit, to)));
            if leaving.len() == end {
                return;
            }
        }
        unreachable!("those who are counted are there");
    }

    fn tell_move(&mut self, ticket: Ticket, drop: Unit, add: Unit, deeds: &mut Vec<Deed>) {
        self.plan.told.insert((ticket, drop), add);
        deeds.push(Deed::Move { ticket, add, drop });
        if broken!(self, HandOverEarly) {
            self.put_back(drop);
        }
    }

    /// A holder has left a unit for the one it got instead. An answer to a move that is not under
    /// way, since it crossed a release, is ignored; says whether it was. A pass should follow.
    pub fn moved(&mut self, ticket: Ticket, drop: Unit) -> bool {
        let Some(add) = self.plan.told.remove(&(ticket, drop)) else { return false };
        let mover = self.movers.get_mut(&ticket).expect("a mover that is gone has no moves");
        let (group, _) = mover.units().find(|(_, unit)| *unit == drop).expect("it held it");
        let held = mover.held.iter_mut().find(|unit| **unit == drop).expect("it held it");
        *held = add;
        self.count_seat(group, drop, -1);
        self.count_seat(group, add, 1);
        if !broken!(self, HandOverEarly) {
            self.put_back(drop);
        }
        self.settle();
        true
    }

    /// Hands over what has become free to whom it was promised. A grant is told when it is
    /// complete.
    pub(super) fn go_on(&mut self, deeds: &mut Vec<Deed>) {
        for (ticket, drop, add) in std::mem::take(&mut self.plan.due) {
            if self.is_free(add) {
                self.take([add]);
                self.tell_move(ticket, drop, add, deeds);
            } else {
                self.plan.due.push((ticket, drop, add));
            }
        }
        let mut grants = std::mem::take(&mut self.plan.grants);
        for (unit, got) in grants.iter_mut().flat_map(|promise| &mut promise.units) {
            if !*got && self.is_free(*unit) {
                self.take([*unit]);
                *got = true;
            }
        }
        self.plan.grants = grants;
        self.hand_out_complete(deeds);
        self.settle();
    }

    fn hand_out_complete(&mut self, deeds: &mut Vec<Deed>) {
        for promise in std::mem::take(&mut self.plan.grants) {
            if promise.units.iter().all(|(_, got)| *got) {
                let Promise { ticket, waiting, units } = promise;
                let units = units.into_iter().map(|(unit, _)| unit).collect();
                self.hand_out(ticket, waiting, units, deeds);
            } else {
                self.plan.grants.push(promise);
            }
        }
    }

    fn hand_out(
        &mut self,
        ticket: Ticket,
        waiting: Waiting,
        mut units: Vec<Unit>,
        deeds: &mut Vec<Deed>,
    ) {
        let mut line = units.as_mut_slice();
        for (_, count) in waiting.shape.iter() {
            let (first, rest) = line.split_at_mut(*count as usize);
            first.sort_unstable();
            line = rest;
        }
        if waiting.movable {
            let mover = Mover { shape: waiting.shape, held: units.clone() };
            for (group, unit) in mover.units() {
                self.count_seat(group, unit, 1);
            }
            self.movers.insert(ticket, mover);
        } else {
            self.leave_groups(&waiting.shape);
        }
        deeds.push(Deed::Grant { ticket, units });
    }
}

/// A holder of a group that would go on from where another of the same group just came stays where
/// it is, and the other goes all the way. Chains are found one by one, and a later one may begin
/// with a move of an earlier one.
fn join(moves: &mut [u32], classes: usize) {
    let step = |from: usize, to: usize| from * classes + to;
    for middle in 0..classes {
        for from in 0..classes {
            for to in 0..classes {
                let count = moves[step(from, middle)].min(moves[step(middle, to)]);
                moves[step(from, middle)] -= count;
                moves[step(middle, to)] -= count;
                if from != to {
                    moves[step(from, to)] += count;
                }
            }
        }
    }
}

/// Moves that only go round in a circle of classes are not made: whoever waits for a unit in such a
/// circle would wait for ever.
fn cancel_exchanges(moves: &mut [Vec<u32>], classes: usize) {
    while let Some(circle) = find_circle(moves, classes) {
        for (group, pair) in circle {
            moves[group][pair] -= 1;
        }
    }
}

fn find_circle(moves: &[Vec<u32>], classes: usize) -> Option<Vec<(usize, usize)>> {
    let step = |from: usize, to: usize| {
        let pair = from * classes + to;
        (0..moves.len()).find(|group| moves[*group][pair] > 0).map(|group| (group, pair))
    };
    for start in 0..classes {
        let mut from: Vec<Option<usize>> = vec![None; classes];
        let mut open = vec![start];
        while let Some(class) = open.pop() {
            for next in 0..classes {
                if step(class, next).is_none() {
                    continue;
                }
                if next == start {
                    let mut circle = vec![step(class, next).expect("just found")];
                    let mut at = class;
                    while at != start {
                        let before = from[at].expect("reached from the start");
                        circle.push(step(before, at).expect("an edge on the way"));
                        at = before;
                    }
                    return Some(circle);
                }
                if from[next].is_none() {
                    from[next] = Some(class);
                    open.push(next);
                }
            }
        }
    }
    None
}
