//! Who is next: oldest first, and how far younger claims may pass.
//!
//! A claim is stamped when it first arrives and keeps that stamp while the arbiter lives, however
//! often it is asked for again. Stamps that requesters gave would let whoever has heard least jump
//! the queue: their clocks stand still between grants. Backfill is bounded (conventions 2.11): a
//! younger claim passes blocked older ones only if it fits now, and each of them has been passed
//! fewer times than the pool allows.

use std::ops::Bound::{Excluded, Unbounded};

use quorate_core::{ClaimId, Fence, Seat, Stamp, Units};

use super::arbiter::{Arbiter, State};
use super::pool::{Fairness, broken};
use super::room::Room;
use super::{Alarm, Central, Post};

impl Arbiter {
    /// Grants whatever may be granted now: the oldest while they fit, then, if the pool allows it,
    /// younger ones that fit beside those that do not.
    pub(super) fn schedule(&mut self, seat: &Seat<'_, Central>, post: &mut Post<'_>) {
        if self.grace {
            return;
        }
        while let Some(&(_, oldest)) = self.queue.first() {
            let units = self.entries[&oldest].units;
            if !self.room.fits(units) && !self.pretends_room(seat, units) {
                break;
            }
            self.grant(seat, oldest, post);
        }
        if let Fairness::Backfill(bound) = seat.pool.fairness {
            self.backfill(seat, bound, post);
        }
    }

    fn pretends_room(&mut self, seat: &Seat<'_, Central>, units: Units) -> bool {
        let pretends = broken!(seat, GrantWithoutRoom) && units.get() <= seat.pool.units;
        if pretends {
            self.room = Room::new(seat.pool.units);
        }
        pretends
    }

    fn backfill(&mut self, seat: &Seat<'_, Central>, bound: u32, post: &mut Post<'_>) {
        let mut after = None;
        // How many more may pass those who are blocked so far: the least patient one decides.
        let mut patience = u32::MAX;
        while self.room.free_count() > 0 && patience > 0 {
            let next = match after {
                None => self.queue.first(),
                Some(key) => self.queue.range((Excluded(key), Unbounded)).next(),
            };
            let Some(&(stamp, claim)) = next else { break };
            after = Some((stamp, claim));
            let booked = &self.entries[&claim];
            let State::Waiting { overtaken } = booked.state else {
                unreachable!("whoever is in the queue waits");
            };
            if self.room.fits(booked.units) {
                patience -= 1;
                self.count_overtake((stamp, claim));
                self.grant(seat, claim, post);
            } else if !broken!(seat, OvertakeWithoutBound) {
                patience = patience.min(bound.saturating_sub(overtaken));
            }
        }
    }

    /// Everybody older who waits has been passed once more.
    fn count_overtake(&mut self, young: (Stamp, ClaimId)) {
        for (_, older) in self.queue.range(..young) {
            let booked = self.entries.get_mut(older).expect("whoever is in the queue is booked");
            let State::Waiting { overtaken } = &mut booked.state else {
                unreachable!("whoever is in the queue waits");
            };
            *overtaken = overtaken.saturating_add(1);
        }
    }

    fn grant(&mut self, seat: &Seat<'_, Central>, claim: ClaimId, post: &mut Post<'_>) {
        let booked = self.entries.get_mut(&claim).expect("only booked claims are granted");
        if !broken!(seat, ReuseFence) || self.fence == Fence::floor(seat.boot) {
            self.fence = self.fence.next();
        }
        let shares = self.room.take_lowest(booked.units, self.fence);
        let waited = seat.now.since(booked.arrived);
        booked.state = State::Granted { shares, waited, adopted: false };
        let queued = self.queue.remove(&(booked.stamp, claim));
        assert!(queued, "only waiting claims are granted");
        if broken!(seat, TellBeforePersist) {
            self.tell_grant(claim, post);
        }
        self.write_down(seat, post.out);
        post.out.arm(Alarm::LeaseEnd(claim), seat.pool.lease.length());
        if !broken!(seat, TellBeforePersist) {
            self.tell_grant(claim, post);
        }
    }
}
