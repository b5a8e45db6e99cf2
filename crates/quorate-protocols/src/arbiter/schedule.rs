//! Who is next at one arbiter: grant, backfill, inquire, after every change (arbiter spec 7.3, 7.8,
//! 7.11).
//!
//! Oldest first. Where the oldest waits only for younger claims, their permissions are asked back:
//! that is what makes crossed requests at several arbiters end (Maekawa 1985; the paper's section
//! 3.1 leaves it out and deadlocks: arbiter spec M1). A requester that is not yet using its units
//! gives a permission back; one that is answers by releasing. Backfill lets a younger claim pass a
//! blocked one, but only where elders block it anyway: otherwise the same permissions are given and
//! asked back for ever; and only so often (arbiter spec M12 and M13).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

use quorate_core::{Stamp, Unit};

use super::booked::{Booked, State};
use super::grantor::Grantor;
use super::pool::{Mode, broken};
use super::{Post, Seat};
use crate::attempt::Bid;

/// What permissions add up to.
#[derive(Clone, Copy, Default)]
struct Load {
    units: u32,
    holders: u32,
}

impl Load {
    fn and(self, booked: &Booked) -> Load {
        Load { units: self.units + booked.units(), holders: self.holders + 1 }
    }

    fn fits(self, limit: Load) -> bool {
        self.units <= limit.units && self.holders <= limit.holders
    }

    fn without(self, less: Load) -> Load {
        Load {
            units: self.units.saturating_sub(less.units),
            holders: self.holders.saturating_sub(less.holders),
        }
    }
}

impl Grantor {
    /// Looks again at who may have a permission. `arrived` is the claim whose request brought us
    /// here, if one did.
    pub(super) fn schedule(&mut self, seat: &Seat<'_>, post: &mut Post<'_>, arrived: Option<Bid>) {
        self.settle_names(seat, post);
        if !self.is_open() {
            return;
        }
        match seat.pool.mode {
            Mode::Named => {
                self.schedule_named(seat, post);
                self.offer_free(seat, post);
            }
            Mode::Count { holders_max, backfill } => {
                let limit = Load { units: seat.pool.units, holders: holders_max };
                self.grant_oldest(seat, limit, post);
                if backfill > 0 {
                    self.backfill(seat, limit, backfill, post);
                }
                if !broken!(seat, M5InquireOnArrival) || arrived.is_some() {
                    self.inquire(seat, limit, post);
                }
            }
        }
    }

    fn load(&self, seat: &Seat<'_>) -> Load {
        if broken!(seat, M3CounterPerNode) {
            let last_of_each: BTreeMap<_, _> = self
                .granted
                .iter()
                .map(|(_, bid)| &self.entries[bid])
                .map(|booked| (booked.asker.node, booked.units()))
                .collect();
            let units = last_of_each.values().sum();
            return Load { units, holders: last_of_each.len() as u32 };
        }
        Load { units: self.used, holders: self.granted.len() as u32 }
    }

    fn grant_oldest(&mut self, seat: &Seat<'_>, limit: Load, post: &mut Post<'_>) {
        while let Some(&(_, head)) = self.queue.first() {
            if !self.load(seat).and(&self.entries[&head]).fits(limit) {
                break;
            }
            self.grant(seat, head, post);
        }
    }

    /// What permissions older than `key` add up to.
    fn elders(&self, key: (Stamp, Bid)) -> Load {
        self.granted
            .range(..key)
            .fold(Load::default(), |load, (_, bid)| load.and(&self.entries[bid]))
    }

    fn backfill(&mut self, seat: &Seat<'_>, limit: Load, bound: u32, post: &mut Post<'_>) {
        let Some(&head) = self.queue.first() else { return };
        let blocked_by_elders = !self.elders(head).and(&self.entries[&head.1]).fits(limit);
        let (no_elders, no_bound) =
            (broken!(seat, M12BackfillWithoutElders), broken!(seat, M13BackfillWithoutBound));
        if !blocked_by_elders && !no_elders && !no_bound {
            return; // Younger ones will give way: nobody may take their place (arbiter spec M12).
        }
        let mut after = head;
        let mut patience = self.patience(seat, head.1, bound);
        while patience > 0 {
            let Some(&next) = self.queue.range((Excluded(after), Unbounded)).next() else { break };
            after = next;
            if self.load(seat).and(&self.entries[&next.1]).fits(limit) {
                patience -= 1;
                self.count_overtake(seat, next);
                self.grant(seat, next.1, post);
            } else {
                patience = patience.min(self.patience(seat, next.1, bound));
            }
        }
    }

    /// How many more may pass a claim.
    fn patience(&self, seat: &Seat<'_>, bid: Bid, bound: u32) -> u32 {
        if broken!(seat, M13BackfillWithoutBound) {
            return u32::MAX;
        }
        bound.saturating_sub(self.entries[&bid].overtaken)
    }

    /// Everybody older who waits has been passed once more.
    fn count_overtake(&mut self, seat: &Seat<'_>, young: (Stamp, Bid)) {
        if broken!(seat, M13BackfillWithoutBound) {
            return; // Passes are not counted where there is no bound.
        }
        for (_, older) in self.queue.range(..young) {
            let booked = self.entries.get_mut(older).expect("whoever is in the queue is booked");
            booked.overtaken = booked.overtaken.saturating_add(1);
        }
    }

    /// If the oldest that waits could go but for younger ones, asks as many of those as it needs,
    /// youngest first.
    fn inquire(&mut self, seat: &Seat<'_>, limit: Load, post: &mut Post<'_>) {
        if broken!(seat, M1NoInquire) {
            return;
        }
        let Some(&head) = self.queue.first() else { return };
        let booked = &self.entries[&head.1];
        let any_age = broken!(seat, M10VictimsMayBeOlder);
        if !any_age && !self.elders(head).and(booked).fits(limit) {
            return; // Elders go first; asking younger ones for anything would be in vain.
        }
        let wanted = self.load(seat).and(booked);
        // Who uses units already (its clock is 0) is not let in by whoever releases next: it must
        // be known here before its lease elsewhere ends. Those that are asked may be using theirs
        // and not answer, so all are.
        let all = head.0.clock == 0 && !broken!(seat, AskTheYoungest);
        let mut coming = Load::default();
        let mut victims = Vec::new();
        let from = if any_age { Unbounded } else { Excluded(head) };
        let younger = || self.granted.range((from, Unbounded)).rev().map(|&(_, bid)| bid);
        for bid in younger() {
            let State::Granted { inquired, .. } = self.entries[&bid].state else {
                unreachable!("whoever is granted does not wait");
            };
            if inquired {
                coming = coming.and(&self.entries[&bid]);
            }
        }
        for bid in younger() {
            let State::Granted { grant, inquired, .. } = self.entries[&bid].state else {
                unreachable!("whoever is granted does not wait");
            };
            if wanted.without(coming).fits(limit) && !all {
                break;
            }
            if broken!(seat, M11OneInquireAtATime) && coming.holders > 0 {
                break;
            }
            if !inquired {
                coming = coming.and(&self.entries[&bid]);
                victims.push((bid, grant));
            }
        }
        for (bid, grant) in victims {
            self.mark_inquired(bid);
            self.tell_inquire(bid, grant, post);
        }
    }

    fn mark_inquired(&mut self, bid: Bid) {
        let booked = self.entries.get_mut(&bid).expect("whoever is granted is booked");
        let State::Granted { inquired, .. } = &mut booked.state else {
            unreachable!("whoever is granted does not wait");
        };
        *inquired = true;
    }

    /// Units by name: a claim gets its permission when nobody has one of its units and nobody older
    /// waits for one. Younger claims that have one are asked for it back.
    fn schedule_named(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        let waiting: Vec<(Stamp, Bid)> = self.queue.iter().copied().collect();
        let mut spoken_for: BTreeSet<Unit> = BTreeSet::new();
        for key in waiting {
            let names = self.entries[&key.1].wish.names.clone().expect("units have names here");
            let is_free =
                |unit: &Unit| !self.locks.contains_key(unit) && !spoken_for.contains(unit);
            if names.iter().all(is_free) {
                self.grant(seat, key.1, post);
                continue;
            }
            let holders: BTreeSet<Bid> =
                names.iter().filter_map(|unit| self.locks.get(unit).copied()).collect();
            for holder in holders {
                self.inquire_younger(seat, key, holder, post);
            }
            spoken_for.extend(names.iter());
        }
    }

    fn inquire_younger(
        &mut self,
        seat: &Seat<'_>,
        elder: (Stamp, Bid),
        bid: Bid,
        post: &mut Post<'_>,
    ) {
        let booked = &self.entries[&bid];
        let State::Granted { grant, inquired, .. } = booked.state else {
            unreachable!("whoever has a lock does not wait");
        };
        let younger = (booked.stamp, bid) > elder;
        if inquired || !younger || broken!(seat, M1NoInquire) {
            return;
        }
        self.mark_inquired(bid);
        self.tell_inquire(bid, grant, post);
    }

    fn grant(&mut self, seat: &Seat<'_>, bid: Bid, post: &mut Post<'_>) {
        self.last = self.last.next();
        let waited = seat.now.since(self.entries[&bid].arrived);
        let (grant, inquired, adopted) = (self.last, false, false);
        self.give(bid, State::Granted { grant, inquired, waited, adopted });
        if broken!(seat, TellBeforePersist) {
            self.tell_grant(seat, bid, post);
        }
        self.write_down(seat, post.out);
        self.arm_lease(seat, bid, post.out);
        if !broken!(seat, TellBeforePersist) {
            self.tell_grant(seat, bid, post);
        }
    }
}
