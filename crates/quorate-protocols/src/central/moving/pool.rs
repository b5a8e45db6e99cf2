//! What all seats of a pool whose decider may change agree on.

use std::time::Duration;

use quorate_core::{Moment, NodeId, NodeSet};

/// A pool that one node decides, and another when the charter says so.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pool {
    /// What there is. Its `arbiter` decides nothing: the charter does. Nothing is written down
    /// (`durable`): what a seat must know of the past it learns from the others.
    pub central: crate::central::Pool,
    /// Whoever may have clients with grants: all of them are called when the seat moves.
    pub members: NodeSet,
    /// How long a licence lasts: L of charter spec S1. Until a crash is noticed, and then as long
    /// as this, nobody renews: both are together at most half a lease (charter spec S3).
    pub licence: Duration,
    /// The node that decided before there was a charter, and does until that says who does
    /// (charter spec S18).
    pub pinned: Option<NodeId>,
}

impl Pool {
    /// A pool of these among the first `members` nodes, with licences of a fifth of a lease.
    ///
    /// # Panics
    /// If its seat is to write grants down: a record would be of one term, and read in another.
    pub fn new(central: crate::central::Pool, members: usize) -> Self {
        assert!(!central.goods.durable, "a seat that moves writes nothing down");
        let licence = central.goods.lease.length() / 5;
        // Homes answer rolls, so they know what their clients have (charter spec S5).
        let central = crate::central::Pool { moves: true, ..central };
        Pool { central, members: NodeSet::first(members), licence, pinned: None }
    }

    /// Until when a licence is valid that was asked for at this reading of one's own clock.
    pub(super) fn licensed_until(&self, asked: Moment) -> Moment {
        asked.after(self.licence.saturating_sub(self.drifted()))
    }

    /// How long it takes, by one's own clock, until nobody has a licence who asked before.
    pub(super) fn lull(&self) -> Duration {
        self.licence.saturating_add(self.drifted())
    }

    /// How often a licence is asked for.
    pub(super) fn ask_every(&self) -> Duration {
        self.licence / 3
    }

    /// By how much the clock of one node may be wrong in the course of a licence.
    fn drifted(&self) -> Duration {
        let ppm = u128::from(self.central.goods.lease.drift_ppm());
        let nanos = self.licence.as_nanos().saturating_mul(ppm).div_ceil(1_000_000);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}
