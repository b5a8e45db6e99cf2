//! The front desk of a node: its clients' claims, oldest first.
//!
//! The papers know one request per process. A node has many clients, so their claims queue here and
//! are asked for one after the other (Raymond, Raynal), or as many at a time as the node may use
//! (weighted). Nothing here need survive a crash: clients ask again.

use std::collections::VecDeque;

use quorate_core::{Claim, ClaimId, Fence, Refusal, Share, Shares, Unit, Units};

/// Claims that have not been asked for yet.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Desk {
    queue: VecDeque<(ClaimId, Units)>,
}

impl Desk {
    /// Why a claim cannot be served by this kind of pool at all.
    pub(crate) fn objection(claim: &Claim, node_units_max: u32) -> Option<Refusal> {
        if claim.wanted.lines.is_some() {
            Some(Refusal::NotByName)
        } else if claim.wanted.units.get() > node_units_max {
            Some(Refusal::TooManyForOneNode)
        } else {
            None
        }
    }

    /// Puts a claim at the end. A client that repeats itself changes nothing.
    pub(crate) fn push(&mut self, claim: &Claim) {
        if !self.queue.iter().any(|&(waiting, _)| waiting == claim.id) {
            self.queue.push_back((claim.id, claim.wanted.units));
        }
    }

    /// Puts a claim back that was asked for and has to be asked for again.
    pub(crate) fn push_front(&mut self, claim: ClaimId, units: Units) {
        self.queue.push_front((claim, units));
    }

    /// Takes the oldest claim out if it asks for no more than `room`. Younger ones do not pass it.
    pub(crate) fn next_within(&mut self, room: u32) -> Option<(ClaimId, Units)> {
        let fits = self.queue.front().is_some_and(|&(_, units)| units.get() <= room);
        if fits { self.queue.pop_front() } else { None }
    }

    /// Forgets a claim.
    pub(crate) fn remove(&mut self, claim: ClaimId) {
        self.queue.retain(|&(waiting, _)| waiting != claim);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

/// What a client gets where units are only counted: numbers from 0, and fences that say nothing.
pub(crate) fn shares(units: Units) -> Shares {
    let share = |unit| Share { unit: Unit(unit), fence: Fence::default() };
    if units == Units::ONE {
        return Shares::new(&[share(0)]);
    }
    Shares::new(&(0..units.get()).map(share).collect::<Vec<_>>())
}
