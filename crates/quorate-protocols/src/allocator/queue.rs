//! The claims that wait, oldest first, and by what they ask for.
//!
//! Claims that ask for the same are of one *shape*: if one of them is blocked, so are all younger
//! ones, since more is taken by then. So a pass looks at shapes, not at claims.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};
use std::ops::Deref;
use std::sync::Arc;

use super::Ticket;

/// What a claim asks for: so many units for a group, line by line. Nearly every claim has one line,
/// which lies in place.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Shape {
    Line([(usize, u32); 1]),
    Lines(Arc<[(usize, u32)]>),
}

impl Deref for Shape {
    type Target = [(usize, u32)];

    fn deref(&self) -> &Self::Target {
        match self {
            Shape::Line(line) => line,
            Shape::Lines(lines) => lines,
        }
    }
}

impl FromIterator<(usize, u32)> for Shape {
    fn from_iter<T: IntoIterator<Item = (usize, u32)>>(lines: T) -> Self {
        let mut lines = lines.into_iter();
        match (lines.next(), lines.next()) {
            (Some(line), None) => Shape::Line([line]),
            (first, second) => Shape::Lines(first.into_iter().chain(second).chain(lines).collect()),
        }
    }
}

/// A claim that waits.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Waiting {
    pub(super) shape: Shape,
    pub(super) movable: bool,
    /// Claims granted while this was the youngest of those older than them that wait. How often a
    /// claim was passed is the sum over it and all younger ones, so passing costs one addition.
    passed: u32,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Queue {
    /// Ascending: most come at one end and go at the other.
    claims: VecDeque<(Ticket, Waiting)>,
    /// Kept only where a pass may skip shapes: where all units are alike and nobody passes, the
    /// first claim that is blocked ends it.
    shapes: Option<BTreeMap<Shape, BTreeSet<Ticket>>>,
    /// The sum of `passed`: how often the oldest was passed.
    passed: u32,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.claims.len()
    }

    /// Where a claim is, or would be.
    fn find(&self, ticket: Ticket) -> Result<usize, usize> {
        match (self.claims.front(), self.claims.back()) {
            (Some((oldest, _)), _) if ticket == *oldest => Ok(0),
            (_, Some((youngest, _))) if ticket > *youngest => Err(self.claims.len()),
            _ => self.claims.binary_search_by_key(&ticket, |(ticket, _)| *ticket),
        }
    }

    pub(super) fn get(&self, ticket: Ticket) -> Option<&Waiting> {
        self.find(ticket).ok().map(|at| &self.claims[at].1)
    }

    fn get_mut(&mut self, ticket: Ticket) -> Option<&mut Waiting> {
        self.find(ticket).ok().map(|at| &mut self.claims[at].1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Ticket, &Waiting)> {
        self.claims.iter().map(|(ticket, waiting)| (*ticket, waiting))
    }

    pub(super) fn oldest(&self) -> Option<(Ticket, &Waiting)> {
        self.iter().next()
    }

    pub(super) fn after(&self, ticket: Ticket) -> Option<Ticket> {
        let next = self.find(ticket).map_or_else(|at| at, |at| at + 1);
        self.claims.get(next).map(|(ticket, _)| *ticket)
    }

    /// The oldest of this age or younger.
    pub(super) fn from(&self, ticket: Ticket) -> Option<Ticket> {
        let (Ok(at) | Err(at)) = self.find(ticket);
        self.claims.get(at).map(|(ticket, _)| *ticket)
    }

    /// From now on claims are also kept by shape.
    pub(super) fn keep_shapes(&mut self) {
        if self.shapes.is_some() {
            return;
        }
        let mut shapes: BTreeMap<Shape, BTreeSet<Ticket>> = BTreeMap::new();
        for (ticket, waiting) in &self.claims {
            shapes.entry(waiting.shape.clone()).or_default().insert(*ticket);
        }
        self.shapes = Some(shapes);
    }

    /// The oldest of a shape after `ticket`.
    pub(super) fn after_of(&self, shape: &Shape, ticket: Ticket) -> Option<Ticket> {
        self.shapes.as_ref()?.get(shape)?.range((Excluded(ticket), Unbounded)).next().copied()
    }

    /// The oldest of every shape.
    pub(super) fn heads(&self) -> impl Iterator<Item = (Ticket, &Shape)> {
        let first = |tickets: &BTreeSet<Ticket>| *tickets.first().expect("no shape is empty");
        let shapes = self.shapes.iter().flatten();
        shapes.map(move |(shape, tickets)| (first(tickets), shape))
    }

    /// How often the oldest was passed.
    pub(super) fn oldest_passed(&self) -> u32 {
        self.passed
    }

    pub(super) fn insert(&mut self, ticket: Ticket, shape: Shape, movable: bool) {
        self.join_shape(ticket, &shape);
        let at = self.find(ticket).expect_err("a ticket is used once");
        self.claims.insert(at, (ticket, Waiting { shape, movable, passed: 0 }));
    }

    /// A claim that waits asks for something else from now on: what it asked for before.
    pub(super) fn replace(&mut self, ticket: Ticket, shape: Shape) -> Option<Shape> {
        let before = std::mem::replace(&mut self.get_mut(ticket)?.shape, shape.clone());
        self.leave_shape(ticket, &before);
        self.join_shape(ticket, &shape);
        Some(before)
    }

    fn join_shape(&mut self, ticket: Ticket, shape: &Shape) {
        if let Some(shapes) = &mut self.shapes {
            shapes.entry(shape.clone()).or_default().insert(ticket);
        }
    }

    fn leave_shape(&mut self, ticket: Ticket, shape: &Shape) {
        let Some(shapes) = &mut self.shapes else { return };
        let tickets = shapes.get_mut(shape).expect("whoever waits has a shape");
        tickets.remove(&ticket);
        if tickets.is_empty() {
            shapes.remove(shape);
        }
    }

    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<Waiting> {
        let at = self.find(ticket).ok()?;
        let (_, gone) = self.claims.remove(at)?;
        // Those who passed it passed all older ones as well.
        match at.checked_sub(1) {
            Some(older) => {
                let passed = &mut self.claims[older].1.passed;
                *passed = passed.saturating_add(gone.passed);
            }
            None => self.passed -= gone.passed,
        }
        self.leave_shape(ticket, &gone.shape);
        Some(gone)
    }

    /// A claim is granted: everybody older who waits has been passed once more.
    pub(super) fn pass(&mut self, young: Ticket) -> bool {
        let (Ok(at) | Err(at)) = self.find(young);
        let Some(older) = at.checked_sub(1) else { return false };
        if self.passed < u32::MAX {
            self.claims[older].1.passed += 1;
            self.passed += 1;
        }
        true
    }

    /// How often a claim was passed that no younger one was.
    pub(super) fn passed(&self, ticket: Ticket) -> u32 {
        self.get(ticket).map_or(0, |waiting| waiting.passed)
    }

    /// A claim that came back into the queue was passed so often before.
    pub(super) fn recall(&mut self, ticket: Ticket, passed: u32) {
        let Some(waiting) = self.get_mut(ticket) else { return };
        let before = std::mem::replace(&mut waiting.passed, passed);
        self.passed = (self.passed - before).saturating_add(passed);
    }

    /// Renames groups and ages, which keep their order.
    pub(super) fn rename(
        &mut self,
        mut group: impl FnMut(usize) -> usize,
        mut age: impl FnMut(&mut u64),
    ) {
        for (ticket, waiting) in &mut self.claims {
            age(&mut ticket.age);
            waiting.shape = waiting.shape.iter().map(|(g, units)| (group(*g), *units)).collect();
        }
        if self.shapes.take().is_some() {
            self.keep_shapes();
        }
    }
}
