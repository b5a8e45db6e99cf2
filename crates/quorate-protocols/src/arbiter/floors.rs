//! Floors: the largest fence of each unit that an arbiter has seen end (spec C6).
//!
//! A later holder of a unit shares an arbiter with every earlier one, and that arbiter tells it the
//! floor; so its fence is larger. What counts is every permission that *may* have been used: one
//! that was released and one that expired, not one that was yielded.

use std::collections::BTreeMap;

use quorate_core::{Fence, Seat, Unit};

use super::Arbiter;
use super::message::Wish;

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Floors {
    /// Below it nothing is known: all that an earlier life may have seen.
    pub(super) base: Fence,
    pub(super) units: BTreeMap<Unit, Fence>,
}

impl Floors {
    /// What a holder of these units must exceed.
    pub(super) fn of(&self, seat: &Seat<'_, Arbiter>, wish: &Wish) -> Fence {
        if !seat.pool.names_units() {
            return Fence::default();
        }
        let known = |unit: &Unit| self.units.get(unit).copied().unwrap_or_default();
        let highest = match &wish.names {
            Some(names) => names.iter().map(known).max().unwrap_or_default(),
            None => known(&Unit(0)),
        };
        highest.max(self.base)
    }

    /// Somebody may have had these units with this fence.
    pub(super) fn raise(&mut self, wish: &Wish, token: Fence) {
        let mut raise = |unit: Unit| {
            let floor = self.units.entry(unit).or_default();
            *floor = token.max(*floor);
        };
        match &wish.names {
            Some(names) => names.iter().for_each(|&unit| raise(unit)),
            None => raise(Unit(0)),
        }
    }
}
