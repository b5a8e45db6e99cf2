//! Floors: the largest fence of each unit that an arbiter has seen end (arbiter spec C6).
//!
//! A later holder of a unit shares an arbiter with every earlier one, and that arbiter tells it the
//! floor; so its fence is larger. What counts is every permission that *may* have been used: one
//! that was released and one that expired, not one that was yielded.

use std::collections::BTreeMap;

use quorate_core::{Fence, Unit};

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Floors {
    /// Below it nothing is known: all that an earlier life may have seen.
    pub(super) base: Fence,
    pub(super) units: BTreeMap<Unit, Fence>,
}

impl Floors {
    /// What a holder of these units must exceed; nothing, if units have no fences.
    pub(super) fn of(&self, units: &[Unit]) -> Fence {
        let known = |unit: &Unit| self.units.get(unit).copied().unwrap_or_default();
        units.iter().map(known).max().map_or(Fence::default(), |floor| floor.max(self.base))
    }

    /// Somebody may have had these units with this fence.
    pub(super) fn raise(&mut self, units: &[Unit], token: Fence) {
        for &unit in units {
            let floor = self.units.entry(unit).or_default();
            *floor = token.max(*floor);
        }
    }
}
