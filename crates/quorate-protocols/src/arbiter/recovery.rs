//! What an arbiter does about time and forgetting: renewals, grace, the durable record (arbiter
//! spec C2, C3).
//!
//! An arbiter that forgot must not promise. Every boot but the very first is in *grace* for one
//! lease: it queues requests, gives no permission, and takes into its books whatever requesters
//! show it that it gave before. A durable one writes permissions down before it tells them, and
//! reads them back. A peer that was restarted loses nothing: its clients may still be using their
//! units.

use std::time::Duration;

use quorate_core::{ClaimId, Clock, Fence, Outbox, Start};

use super::booked::{Booked, State};
use super::floors::Floors;
use super::grantor::Grantor;
use super::message::{GrantNumber, Message};
use super::naming::{PickState, Picked};
use super::pool::{Mode, broken};
use super::{Alarm, Arbiter, Post, Seat};
use crate::attempt::{Asker, Bid};
use crate::opening::Opening;

/// What a durable arbiter writes down: every permission in force, for a moment some that are over
/// (`lag.rs`), and the floors of fences. The queue is not in it, since requesters ask again.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Record {
    pub(super) grants: Vec<(ClaimId, Booked)>,
    pub(super) floors: Floors,
    /// Whether promises or fences older than this record may have been forgotten.
    pub(super) unsure: bool,
}

impl Record {
    /// What an arbiter that is not durable writes down: nothing but how far fences have come.
    pub(super) fn of_fences(ceiling: Fence, sure: bool) -> Record {
        let floors = Floors { base: ceiling, ..Floors::default() };
        Record { grants: Vec::new(), floors, unsure: !sure }
    }
}

impl Grantor {
    pub(super) fn boot(seat: &Seat<'_>, start: Start<Record>, out: &mut Outbox<Arbiter>) -> Self {
        let mut grantor = Grantor {
            clock: Clock::default(),
            entries: Default::default(),
            queue: Default::default(),
            granted: Default::default(),
            used: 0,
            locks: Default::default(),
            last: GrantNumber::floor(seat.boot),
            floors: Floors::default(),
            boots: Default::default(),
            top: Fence::default(),
            ceiling: Fence::default(),
            opening: Opening::Open,
            lag: Default::default(),
            reclaims: Default::default(),
        };
        match start {
            Start::First => {}
            // An arbiter that writes does so before it promises: no record means no promise.
            Start::Recovered(None) if seat.pool.durable || seat.pool.names_units() => {}
            Start::Recovered(None) => grantor.opening = Opening::Grace { sure: true },
            Start::Recovered(Some(record)) => {
                grantor.floors = record.floors;
                if record.unsure || !seat.pool.durable {
                    let sure = !record.unsure || !seat.pool.names_units();
                    grantor.opening = Opening::Grace { sure };
                }
                for (claim, booked) in record.grants {
                    grantor.recover(seat, claim, booked, out);
                }
            }
            Start::Amnesia => {
                // Only pools whose units have names have fences to be unsure of.
                grantor.opening = Opening::Grace { sure: !seat.pool.names_units() };
                grantor.write_down(seat, out);
            }
        }
        if broken!(seat, L2NoGrace) {
            grantor.opening = Opening::Open;
        }
        if !grantor.is_open() && seat.pool.leases_end() {
            out.arm(Alarm::Grace, seat.pool.lease.length());
        }
        grantor
    }

    fn recover(
        &mut self,
        seat: &Seat<'_>,
        claim: ClaimId,
        booked: Booked,
        out: &mut Outbox<Arbiter>,
    ) {
        let State::Granted { grant, inquired, waited, .. } = booked.state else {
            unreachable!("only permissions are written down");
        };
        self.clock.hear(booked.stamp.clock.max(booked.asker.attempt.clock));
        let bid = booked.asker.bid(claim);
        self.queue.insert((booked.stamp, bid));
        // What it waited is counted from now: the reading of its arrival is another life's clock.
        let arrived = seat.now;
        // Only locked units are taken up; whether the client uses them, its home must say again.
        let locked = booked.picked.clone().filter(|picked| picked.state == PickState::Locked);
        let picked = locked.map(|picked| Picked { used: false, asked: false, ..picked });
        let state = State::Waiting;
        self.entries.insert(bid, Booked { state, arrived, picked, ..booked });
        self.give(bid, State::Granted { grant, inquired, waited, adopted: true });
        // A fresh lease, whatever was left of the old one: our clock may have started anew.
        self.arm_lease(seat, bid, out);
    }

    /// A requester wants to keep a permission, and shows all that we may have forgotten.
    pub(super) fn on_renew(
        &mut self,
        seat: &Seat<'_>,
        claim: ClaimId,
        wanted: Option<GrantNumber>,
        mut shown: Booked,
        post: &mut Post<'_>,
    ) {
        let (Asker { node, attempt }, bid) = (shown.asker, shown.asker.bid(claim));
        let sent = shown.sent;
        if self.bids(claim).any(|known| bid.is_earlier_life_of(known)) {
            return;
        }
        let handed = self.hand_over(seat, bid, wanted, &shown, post.out);
        let known = self.entries.get_mut(&bid);
        if known.as_ref().is_some_and(|known| shown.asker.is_before(known.asker)) {
            return;
        }
        match known {
            Some(known) if is_it(seat, known, wanted, &shown) => {
                let State::Granted { waited, .. } = &mut known.state else {
                    unreachable!("it is a permission");
                };
                // A new promise, counted from here: what is repeated later must not mix the two.
                *waited = Duration::ZERO;
                known.token = known.token.max(shown.token);
                (known.asker, known.sent, known.arrived) = (shown.asker, sent, seat.now);
                if handed {
                    self.write_down(seat, post.out);
                }
            }
            known => {
                let absent = known.is_none_or(|known| known.is_waiting());
                if !absent || !self.could_have_promised(seat, wanted, &shown) {
                    let clock = self.clock.0;
                    let lost = Message::Lost { claim, attempt, grant: wanted, clock };
                    return post.send(node, lost);
                }
                if seat.pool.picks_units() {
                    shown.wish.names = None;
                }
                self.adopt(bid, wanted.unwrap_or(self.last), shown);
                self.write_down(seat, post.out);
            }
        }
        self.arm_lease(seat, bid, post.out);
        let booked = &self.entries[&bid];
        let State::Granted { grant, inquired, .. } = booked.state else {
            unreachable!("only permissions are renewed");
        };
        let (floor, clock) = (self.floors.of(booked.fenced(seat.pool)), self.clock.0);
        let round = booked.round();
        post.send(node, Message::Renewed { claim, attempt, grant, floor, round, sent, clock });
        if inquired {
            self.tell_inquire(bid, grant, post); // The first one may have been lost.
        }
    }

    /// A client shows, through this bid's home, what another home was given for the same claim: the
    /// client moved, or its home was restarted. That home's entry becomes this one's. Says whether
    /// one did.
    ///
    /// An earlier life relies on nothing. But another node may, as long as it was promised: as a
    /// holder whose client talks to both, or waiting for the rest of a quorum while what is shown
    /// here is an old story. So from then on the permission ends with its lease and not before.
    ///
    /// In grace only a number moves it. What was taken up may have ended before the crash, and only
    /// the home that had the number can tell (`hearing::take`); one that has none could not.
    pub(super) fn hand_over(
        &mut self,
        seat: &Seat<'_>,
        to: Bid,
        wanted: Option<GrantNumber>,
        shown: &Booked,
        out: &mut Outbox<Arbiter>,
    ) -> bool {
        let unproven = wanted.is_none() && !self.is_open() && !broken!(seat, GiveAgainInGrace);
        if self.entries.contains_key(&to) || unproven {
            return false;
        }
        let fits = |from: &Bid| is_it(seat, &self.entries[from], wanted, shown);
        let own = |from: &Bid| from.is_earlier_life_of(to) && fits(from);
        let from = self.bids(to.claim).find(own).or_else(|| self.bids(to.claim).find(fits));
        let Some(from) = from else { return false };
        let mut booked = self.remove(from).expect("it was found here");
        let state = std::mem::replace(&mut booked.state, State::Waiting);
        booked.shared |= !from.is_earlier_life_of(to) && !broken!(seat, HandOverWhole);
        booked.asker = shown.asker;
        if let Some(picked) = &mut booked.picked {
            // The new home counts its rounds from here.
            (picked.pick.round, picked.used) = (shown.asker.attempt.clock, true);
        }
        self.queue.insert((booked.stamp, to));
        self.entries.insert(to, booked);
        self.give(to, state);
        if seat.pool.leases_end() {
            out.disarm(Alarm::LeaseEnd(from));
        }
        true
    }

    /// Whether an earlier life of ours could have given this, beside all that was shown so far.
    fn could_have_promised(
        &self,
        seat: &Seat<'_>,
        wanted: Option<GrantNumber>,
        shown: &Booked,
    ) -> bool {
        let fits = match seat.pool.mode {
            Mode::Named => {
                let mut names = shown.wish.names.iter().flat_map(|names| names.iter());
                names.all(|unit| !self.locks.contains_key(unit))
            }
            Mode::Count { holders_max, .. } => {
                self.used + shown.units() <= seat.pool.units
                    && self.granted.len() < holders_max as usize
            }
        };
        // Only a permission's number shows that this arbiter gave it. A client that outlived its
        // home has no number to show; to believe it would add a permission to those already given.
        let earlier = wanted.is_some_and(|number| number < GrantNumber::floor(seat.boot))
            || (wanted.is_none() && broken!(seat, AdoptUnnumbered));
        matches!(self.opening, Opening::Grace { .. }) && fits && earlier
    }

    /// The units that a claim picked are not taken up with its permission: its requester hears that
    /// we do not know them, and tells us what it uses ([`super::naming`]).
    fn adopt(&mut self, bid: Bid, grant: GrantNumber, shown: Booked) {
        self.reclaims.add();
        self.remove(bid); // Its request may have come first, and waits.
        self.queue.insert((shown.stamp, bid));
        self.entries.insert(bid, shown);
        let (inquired, waited) = (false, Duration::ZERO);
        self.give(bid, State::Granted { grant, inquired, waited, adopted: true });
    }

    /// Written before the rest of this step is told, which rests on these books.
    pub(super) fn write_down(&mut self, seat: &Seat<'_>, out: &mut Outbox<Arbiter>) {
        if !seat.pool.durable {
            return self.write_down_fences(seat, out);
        }
        self.lag.end(Alarm::WriteDown, out);
        let grants =
            self.granted.iter().map(|(_, bid)| (bid.claim, self.entries[bid].clone())).collect();
        let unsure = !self.is_open();
        out.persist(Record { grants, floors: self.floors.clone(), unsure });
    }

    /// A permission is over that the record has.
    pub(super) fn write_down_soon(&mut self, seat: &Seat<'_>, out: &mut Outbox<Arbiter>) {
        if seat.pool.durable {
            self.lag.begin(Alarm::WriteDown, &seat.pool.lease, out);
        }
    }
}

/// Whether the books have the permission that is shown.
pub(super) fn is_it(
    seat: &Seat<'_>,
    known: &Booked,
    wanted: Option<GrantNumber>,
    shown: &Booked,
) -> bool {
    let State::Granted { grant, .. } = known.state else { return false };
    let names_agree = match (wanted, seat.pool.picks_units()) {
        (_, false) => known.wish == shown.wish,
        // A number says it all; without one, the units that the client has must.
        (Some(_), true) => known.wish.units == shown.wish.units,
        (None, true) => shown.wish.names.as_deref() == Some(known.locked()),
    };
    // A holder's home has told the arbiters its fence; a client that shows a larger one made it up.
    let agrees = wanted.map_or(shown.token <= known.token, |number| number == grant);
    names_agree && agrees
}
