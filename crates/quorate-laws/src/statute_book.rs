//! All laws of one pool together, as drivers use them.

use quorate_core::{ClaimId, Entry, NodeId, Unit, numbers};

use crate::{
    BoundedOvertaking, Breach, CancelledIsOver, Capacity, EveryoneServed, Exclusivity, FenceOrder,
    Observation, OneGrantPerClaim, StandingStays, UnitsInForce, no_lost_units,
};

/// All laws of one pool. A plain value, so that a checker can make it part of a state.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct StatuteBook {
    capacity: Capacity,
    exclusivity: Exclusivity,
    fence_order: FenceOrder,
    one_grant_per_claim: OneGrantPerClaim,
    cancelled_is_over: CancelledIsOver,
    bounded_overtaking: BoundedOvertaking,
    everyone_served: EveryoneServed,
    standing_stays: StandingStays,
    units_in_force: UnitsInForce,
    /// Whether units have names; if not, exclusivity and fence order are nobody's promise.
    named: bool,
}

numbers!(StatuteBook {
    capacity: plain,
    exclusivity: plain,
    fence_order,
    one_grant_per_claim: plain,
    cancelled_is_over: plain,
    bounded_overtaking,
    everyone_served: plain,
    standing_stays: plain,
    units_in_force: plain,
    named,
});

impl StatuteBook {
    /// The laws of a pool of `k` units in which no claim is overtaken more than `overtakes_max`
    /// times.
    pub fn new(k: u32, overtakes_max: Option<u32>) -> Self {
        StatuteBook {
            capacity: Capacity::new(k),
            exclusivity: Exclusivity::new(k),
            fence_order: FenceOrder::new(k),
            one_grant_per_claim: OneGrantPerClaim::default(),
            cancelled_is_over: CancelledIsOver::default(),
            bounded_overtaking: BoundedOvertaking::new(overtakes_max),
            everyone_served: EveryoneServed::default(),
            standing_stays: StandingStays::default(),
            units_in_force: UnitsInForce::default(),
            named: true,
        }
    }

    /// The same for a pool that only counts its units.
    pub fn anonymous(self) -> Self {
        StatuteBook { named: false, ..self }
    }

    /// Something a client did or was told.
    ///
    /// # Errors
    /// The first law it breaks.
    pub fn see(&mut self, seen: Observation<'_>) -> Result<(), Breach> {
        self.cancelled_is_over.see(seen)?;
        self.one_grant_per_claim.see(seen)?;
        self.capacity.see(seen)?;
        if self.named {
            self.exclusivity.see(seen)?;
            self.fence_order.see(seen)?;
        }
        self.everyone_served.see(seen);
        self.units_in_force.see(seen)?;
        self.standing_stays.see(seen)
    }

    /// The pool has so many units, as soon as those who decide know of it. The laws are made for
    /// the most that it will ever have.
    pub fn amended(&mut self, units: u32, drained: &[Unit]) {
        self.units_in_force.amended(units, drained);
    }

    /// Nobody decides any more by how the pool was before it was amended so often.
    pub fn applied(&mut self, edition: usize) {
        self.units_in_force.applied(edition);
    }

    /// A client that claims asks for a hold without a lease.
    pub fn stands(&mut self, claim: ClaimId) {
        self.standing_stays.stands(claim);
    }

    /// An arbiter's books after one of its steps.
    ///
    /// # Errors
    /// The breach, if somebody was overtaken once too often.
    pub fn see_books(&mut self, arbiter: NodeId, entries: &[Entry]) -> Result<(), Breach> {
        self.bounded_overtaking.see(arbiter, entries)
    }

    /// An arbiter was restarted.
    pub fn see_restart(&mut self, arbiter: NodeId) {
        self.bounded_overtaking.forget(arbiter);
    }

    /// The world is at rest: faults stopped long ago, nobody claims any more, nothing is on its
    /// way.
    ///
    /// # Errors
    /// The first law that this rest breaks.
    pub fn at_rest<'a>(
        &self,
        books: impl IntoIterator<Item = (NodeId, &'a [Entry])>,
    ) -> Result<(), Breach> {
        self.everyone_served.at_rest()?;
        no_lost_units(books)
    }

    /// Units in use now.
    pub fn in_use(&self) -> u64 {
        self.capacity.in_use()
    }

    /// Claims waiting now.
    pub fn waiting(&self) -> usize {
        self.everyone_served.waiting()
    }

    /// How often any claim was overtaken, in all.
    pub fn overtakes(&self) -> u64 {
        self.bounded_overtaking.overtakes()
    }

    /// Forgets running totals, which would make every state of a checker a new one.
    pub fn forget_totals(&mut self) {
        self.bounded_overtaking.forget_total();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{claimed, granted, id, shares};

    #[test]
    fn a_pool_that_only_counts_is_judged_by_the_count() {
        let mut named = StatuteBook::new(2, None);
        let mut counted = StatuteBook::new(2, None).anonymous();
        for book in [&mut named, &mut counted] {
            (1..=3).for_each(|claim| book.see(claimed(id(claim), 1)).unwrap());
            book.see(granted(id(1), &shares(&[(0, 1)]))).unwrap();
        }
        assert_eq!(named.see(granted(id(2), &shares(&[(0, 1)]))).unwrap_err().law, "exclusivity");
        counted.see(granted(id(2), &shares(&[(0, 1)]))).unwrap();
        assert_eq!(counted.see(granted(id(3), &shares(&[(0, 1)]))).unwrap_err().law, "capacity");
    }
}
