//! The claims that wait, oldest first, and by what they ask for.
//!
//! Claims that ask for the same are of one *shape*: if one of them is blocked, so are all younger
//! ones, since more is taken by then. So a pass looks at shapes, not at claims.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use super::Ticket;

/// So many units for a group, line by line.
pub(super) type Lines = [(usize, u32)];

/// A claim that waits.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Waiting {
    pub(super) lines: Arc<Lines>,
    pub(super) movable: bool,
    /// Claims granted while this was the youngest of those older than them that wait. How often a
    /// claim was passed is the sum over it and all younger ones, so passing costs one addition.
    passed: u32,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Queue {
    claims: BTreeMap<Ticket, Waiting>,
    /// Kept only where a pass may skip shapes: where all units are alike and nobody passes, the
    /// first claim that is blocked ends it.
    shapes: Option<BTreeMap<Arc<Lines>, BTreeSet<Ticket>>>,
    /// The sum of `passed`: how often the oldest was passed.
    passed: u32,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.claims.len()
    }

    pub(super) fn get(&self, ticket: Ticket) -> Option<&Waiting> {
        self.claims.get(&ticket)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Ticket, &Waiting)> {
        self.claims.iter().map(|(ticket, waiting)| (*ticket, waiting))
    }

    pub(super) fn oldest(&self) -> Option<(Ticket, &Waiting)> {
        self.claims.first_key_value().map(|(ticket, waiting)| (*ticket, waiting))
    }

    pub(super) fn after(&self, ticket: Ticket) -> Option<(Ticket, &Waiting)> {
        let next = self.claims.range((Excluded(ticket), Unbounded)).next();
        next.map(|(ticket, waiting)| (*ticket, waiting))
    }

    /// The oldest of this age or younger.
    pub(super) fn from(&self, ticket: Ticket) -> Option<(Ticket, &Waiting)> {
        self.claims.range(ticket..).next().map(|(ticket, waiting)| (*ticket, waiting))
    }

    /// From now on claims are also kept by shape.
    pub(super) fn keep_shapes(&mut self) {
        if self.shapes.is_some() {
            return;
        }
        let mut shapes: BTreeMap<Arc<Lines>, BTreeSet<Ticket>> = BTreeMap::new();
        for (ticket, waiting) in &self.claims {
            shapes.entry(Arc::clone(&waiting.lines)).or_default().insert(*ticket);
        }
        self.shapes = Some(shapes);
    }

    /// The oldest of a shape after `ticket`.
    pub(super) fn after_of(&self, lines: &Lines, ticket: Ticket) -> Option<Ticket> {
        self.shapes.as_ref()?.get(lines)?.range((Excluded(ticket), Unbounded)).next().copied()
    }

    /// The oldest of every shape.
    pub(super) fn heads(&self) -> impl Iterator<Item = (Ticket, &Arc<Lines>)> {
        let first = |tickets: &BTreeSet<Ticket>| *tickets.first().expect("no shape is empty");
        let shapes = self.shapes.iter().flatten();
        shapes.map(move |(lines, tickets)| (first(tickets), lines))
    }

    /// How often the oldest was passed.
    pub(super) fn oldest_passed(&self) -> u32 {
        self.passed
    }

    pub(super) fn insert(&mut self, ticket: Ticket, lines: Arc<Lines>, movable: bool) {
        if let Some(shapes) = &mut self.shapes {
            shapes.entry(Arc::clone(&lines)).or_default().insert(ticket);
        }
        let before = self.claims.insert(ticket, Waiting { lines, movable, passed: 0 });
        assert!(before.is_none(), "a ticket is used once");
    }

    /// A claim that waits asks for something else from now on: what it asked for before.
    pub(super) fn replace(&mut self, ticket: Ticket, lines: Arc<Lines>) -> Option<Arc<Lines>> {
        let waiting = self.claims.get_mut(&ticket)?;
        let before = std::mem::replace(&mut waiting.lines, Arc::clone(&lines));
        self.leave_shape(ticket, &before);
        if let Some(shapes) = &mut self.shapes {
            shapes.entry(lines).or_default().insert(ticket);
        }
        Some(before)
    }

    fn leave_shape(&mut self, ticket: Ticket, lines: &Lines) {
        let Some(shapes) = &mut self.shapes else { return };
        let tickets = shapes.get_mut(lines).expect("whoever waits has a shape");
        tickets.remove(&ticket);
        if tickets.is_empty() {
            shapes.remove(lines);
        }
    }

    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<Waiting> {
        let gone = self.claims.remove(&ticket)?;
        // Those who passed it passed all older ones as well.
        match self.claims.range_mut(..ticket).next_back() {
            Some((_, older)) => older.passed = older.passed.saturating_add(gone.passed),
            None => self.passed -= gone.passed,
        }
        self.leave_shape(ticket, &gone.lines);
        Some(gone)
    }

    /// A claim is granted: everybody older who waits has been passed once more.
    pub(super) fn pass(&mut self, young: Ticket) -> bool {
        let Some((_, older)) = self.claims.range_mut(..young).next_back() else { return false };
        if self.passed < u32::MAX {
            older.passed += 1;
            self.passed += 1;
        }
        true
    }

    /// How often a claim was passed that no younger one was.
    pub(super) fn passed(&self, ticket: Ticket) -> u32 {
        self.claims.get(&ticket).map_or(0, |waiting| waiting.passed)
    }

    /// A claim that came back into the queue was passed so often before.
    pub(super) fn recall(&mut self, ticket: Ticket, passed: u32) {
        let Some(waiting) = self.claims.get_mut(&ticket) else { return };
        self.passed = (self.passed - waiting.passed).saturating_add(passed);
        waiting.passed = passed;
    }

    /// Renames groups and ages.
    pub(super) fn rename(
        &mut self,
        mut group: impl FnMut(usize) -> usize,
        mut age: impl FnMut(&mut u64),
    ) {
        let before = std::mem::take(self);
        self.shapes = before.shapes.is_some().then(BTreeMap::new);
        for (mut ticket, waiting) in before.claims {
            age(&mut ticket.age);
            let lines = waiting.lines.iter().map(|(g, units)| (group(*g), *units)).collect();
            let passed = waiting.passed;
            self.insert(ticket, lines, waiting.movable);
            self.claims.get_mut(&ticket).expect("just inserted").passed = passed;
            self.passed += passed;
        }
    }
}
