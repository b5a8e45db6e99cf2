//! The arbiter's half: whom this node gives its permission, and until when (arbiter spec 7.3, C1,
//! C2).
//!
//! One entry per [`Bid`], never a counter per node (arbiter spec E3). A permission ends when its
//! requester yields or releases it, or when its lease does. Whatever changes, [`super::schedule`]
//! looks again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use quorate_core::{ClaimId, Clock, Entry, Fact, Fence, NodeId, Outbox, Stamp, Standing, Unit};

use super::booked::{Booked, State, is_sensible};
use super::floors::Floors;
use super::message::{End, GrantNumber, Message};
use super::pool::{Mode, broken};
use super::recovery::is_it;
use super::{Alarm, Arbiter, Post, Seat};
use crate::attempt::{Asker, Bid};
use crate::count::Count;
use crate::lag::Lag;
use crate::opening::Opening;

/// The books of one arbiter.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Grantor {
    pub(super) clock: Clock,
    pub(super) entries: BTreeMap<Bid, Booked>,
    /// The claims that wait, oldest first.
    pub(super) queue: BTreeSet<(Stamp, Bid)>,
    /// The claims that have this arbiter's permission, oldest first.
    pub(super) granted: BTreeSet<(Stamp, Bid)>,
    /// Units that those have, together.
    pub(super) used: u32,
    /// Who has which unit, where units have names.
    pub(super) locks: BTreeMap<Unit, Bid>,
    /// The last number given.
    pub(super) last: GrantNumber,
    pub(super) floors: Floors,
    /// The last boot of every node that asked: what earlier ones queued is over (arbiter spec C10).
    pub(super) boots: BTreeMap<NodeId, u32>,
    /// The largest fence of any permission given.
    pub(super) top: Fence,
    /// Fences up to this one are on disk, if only permissions are not.
    pub(super) ceiling: Fence,
    pub(super) opening: Opening,
    /// Whether the record has permissions that are over.
    pub(super) lag: Lag,
    /// How many permissions of an earlier life were taken into the books.
    pub(super) reclaims: Count,
}

impl Grantor {
    pub(super) fn hear(
        &mut self,
        seat: &Seat<'_>,
        from: NodeId,
        message: Message,
        post: &mut Post<'_>,
    ) {
        match message {
            Message::Request { claim, attempt, stamp, wish, token, sent } => {
                if let Err(what) = is_sensible(seat, &wish, false) {
                    return post.out.anomaly(from, what);
                }
                self.clock.hear(stamp.clock.max(attempt.clock));
                let asker = Asker { node: from, attempt };
                let stamp = match broken!(seat, M9ArrivalOrder) {
                    true => Stamp { clock: self.clock.tick(), node: from },
                    false => stamp,
                };
                let booked = Booked::new(asker, stamp, wish, token, (sent, seat.now));
                self.on_request(seat, claim, booked, post);
                self.hear_boot(seat, asker, post);
            }
            Message::Yield { claim, attempt, grant } => {
                self.on_yield(seat, claim, Asker { node: from, attempt }, grant, post);
            }
            Message::Release { claim, attempt, end } => {
                self.clock.hear(attempt.clock);
                self.on_release(seat, claim, Asker { node: from, attempt }, end, post);
            }
            Message::Renew { claim, attempt, grant, stamp, wish, token, sent } => {
                if let Err(what) = is_sensible(seat, &wish, true) {
                    return post.out.anomaly(from, what);
                }
                self.clock.hear(stamp.clock.max(attempt.clock));
                let asker = Asker { node: from, attempt };
                self.hear_boot(seat, asker, post);
                let shown = Booked::new(asker, stamp, wish, token, (sent, seat.now));
                self.on_renew(seat, claim, grant, shown, post);
            }
            Message::Retoken { claim, attempt, grant, token } => {
                let asker = Asker { node: from, attempt };
                self.on_retoken(seat, claim, asker, grant, token, post);
            }
            Message::Survey { clock } => {
                self.clock.hear(clock);
                self.on_survey(seat, from, post);
            }
            Message::Report { highest, boot, sure, clock } => {
                self.clock.hear(clock);
                self.on_report(seat, from, (highest, boot, sure), post);
            }
            Message::Name { claim, attempt, grant, pick, used } => {
                let asker = Asker { node: from, attempt };
                self.clock.hear(pick.round);
                self.on_name(seat, claim, (asker, grant), (pick, used), post);
            }
            Message::Alive { attempt, claims } => {
                self.clock.hear(attempt.clock);
                self.on_alive(seat, Asker { node: from, attempt }, &claims, post);
            }
            Message::Grant { .. }
            | Message::Queued { .. }
            | Message::Inquire { .. }
            | Message::Renewed { .. }
            | Message::Lost { .. }
            | Message::Retokened { .. }
            | Message::Named { .. }
            | Message::Taken { .. }
            | Message::Roll { .. } => {
                unreachable!("messages for requesters go to the requester")
            }
        }
    }

    fn on_request(
        &mut self,
        seat: &Seat<'_>,
        claim: ClaimId,
        mut new: Booked,
        post: &mut Post<'_>,
    ) {
        let bid = new.asker.bid(claim);
        if broken!(seat, OneEntryPerClaim) {
            let others: Vec<Bid> = self.bids(claim).filter(|&other| other != bid).collect();
            others.into_iter().for_each(|other| self.end(seat, other, true, post.out));
        }
        if self.bids(claim).any(|known| bid.is_earlier_life_of(known)) {
            return;
        }
        // A holder's home asks (its clock is 0), and this arbiter gave an earlier life of it what
        // it asks for. What another home was given is not its own: somebody else may have repeated
        // the claim there, and go in with that.
        let may_give_again = self.is_open() || broken!(seat, GiveAgainInGrace);
        if new.stamp.clock == 0 && may_give_again && self.gave_before(seat, bid, &new) {
            if self.entries.contains_key(&bid) {
                self.end(seat, bid, false, post.out);
            }
            let handed = self.hand_over(seat, bid, None, &new, post.out);
            assert!(handed, "it was found above");
            return self.give_again(seat, bid, new, post);
        }
        self.drop_earlier_lives(seat, bid, &mut new, post.out);
        if let Some(known) = self.entries.get_mut(&bid) {
            if new.asker.is_before(known.asker) {
                return;
            }
            if new.asker == known.asker {
                if broken!(seat, L4WaitedOnResetStamp) {
                    known.sent = new.sent;
                }
                return self.answer_poll(seat, bid, post);
            }
            // A holder's home heard, perhaps late or twice, that this arbiter had forgotten, and
            // asks again. What its client uses may rest on this permission: it goes on. In grace it
            // is not promised anew, since its number is not shown; the home will ask again.
            let held = new.stamp.clock == 0 && !known.is_waiting() && known.wish == new.wish;
            if held && !broken!(seat, EndWhatIsAskedAgain) {
                if !may_give_again {
                    return;
                }
                (known.asker, known.token) = (new.asker, known.token.max(new.token));
                return self.give_again(seat, bid, new, post);
            }
            if known.shared {
                return; // It will ask again when the lease has ended.
            }
            // The requester gave up its earlier try here.
            if known.stamp == new.stamp {
                new.overtaken = known.overtaken; // The same wait goes on.
            }
            self.end(seat, bid, false, post.out);
        }
        let key = (new.stamp, bid);
        self.entries.insert(bid, new);
        self.queue.insert(key);
        self.arm_lease(seat, bid, post.out);
        self.schedule(seat, post, Some(bid));
        let is_behind = |other: &(Stamp, Bid)| *other < key;
        if broken!(seat, MaekawaFailed)
            && self.entries[&bid].is_waiting()
            && self.granted.iter().chain(&self.queue).any(is_behind)
        {
            self.answer_poll(seat, bid, post);
        }
    }

    /// Whether an earlier life of a home has what this one asks for and waits for.
    fn gave_before(&self, seat: &Seat<'_>, bid: Bid, new: &Booked) -> bool {
        let waits = self.entries.get(&bid).is_none_or(|known| {
            known.is_waiting() && !new.asker.is_before(known.asker) && !known.shared
        });
        let may_have =
            |other: &Bid| other.is_earlier_life_of(bid) || broken!(seat, TakeFromAnother);
        let is_it = |other: Bid| is_it(seat, &self.entries[&other], None, new);
        waits && self.bids(bid.claim).filter(may_have).any(is_it)
    }

    /// What was handed over is promised to its new home from now on.
    fn give_again(&mut self, seat: &Seat<'_>, bid: Bid, new: Booked, post: &mut Post<'_>) {
        let booked = self.entries.get_mut(&bid).expect("it was handed over");
        let State::Granted { waited, .. } = &mut booked.state else {
            unreachable!("it is a permission");
        };
        *waited = Duration::ZERO;
        (booked.sent, booked.arrived) = (new.sent, new.arrived);
        self.write_down(seat, post.out);
        self.arm_lease(seat, bid, post.out);
        self.tell_grant(seat, bid, post);
    }

    /// All that asked for a claim.
    pub(super) fn bids(&self, claim: ClaimId) -> impl Iterator<Item = Bid> + '_ {
        let first = Bid { claim, node: NodeId(0), boot: 0 };
        self.entries.range(first..).map(|(&bid, _)| bid).take_while(move |bid| bid.claim == claim)
    }

    /// A home was restarted: nobody waits for what its earlier life had in the queue. What that
    /// life was given may be in use (arbiter spec C3, C10).
    fn drop_earlier_lives(
        &mut self,
        seat: &Seat<'_>,
        bid: Bid,
        new: &mut Booked,
        out: &mut Outbox<Arbiter>,
    ) {
        let is_over =
            |earlier: &Bid| earlier.is_earlier_life_of(bid) && self.entries[earlier].is_waiting();
        let over: Vec<Bid> = self.bids(bid.claim).filter(is_over).collect();
        for earlier in over {
            let known = &self.entries[&earlier];
            if known.stamp == new.stamp {
                new.overtaken = known.overtaken; // The same wait goes on.
            }
            self.end(seat, earlier, false, out);
        }
    }

    /// The same request again: how it stands. Nothing changes, except that somebody still wants it.
    fn answer_poll(&mut self, seat: &Seat<'_>, bid: Bid, post: &mut Post<'_>) {
        let (booked, claim) = (&self.entries[&bid], bid.claim);
        let Asker { node, attempt } = booked.asker;
        match booked.state {
            State::Waiting => {
                self.arm_lease(seat, bid, post.out);
                let (taken, clock) = (self.taken_from(seat, bid), self.clock.0);
                post.send(node, Message::Queued { claim, attempt, taken, clock });
                self.call_roll(bid, post);
            }
            State::Granted { grant, inquired, .. } => {
                match seat.pool.mode {
                    Mode::Named => self.tell_others(seat, bid, true, post),
                    Mode::Count { .. } => self.tell_grant(seat, bid, post),
                }
                if inquired {
                    self.tell_inquire(bid, grant, post);
                }
            }
        }
    }

    fn on_yield(
        &mut self,
        seat: &Seat<'_>,
        claim: ClaimId,
        asker: Asker,
        number: GrantNumber,
        post: &mut Post<'_>,
    ) {
        let bid = asker.bid(claim);
        if !self.is_granted(seat, bid, asker, number) || self.entries[&bid].shared {
            return;
        }
        let booked = self.remove(bid).expect("it is granted");
        self.write_down_soon(seat, post.out);
        if broken!(seat, M6ForgetYielded) {
            post.out.disarm(Alarm::LeaseEnd(bid));
            return self.schedule(seat, post, None);
        }
        // It keeps its age. That it was asked back is forgotten with the permission.
        self.queue.insert((booked.stamp, bid));
        let (state, picked, offered) = (State::Waiting, None, None);
        self.entries.insert(bid, Booked { state, picked, offered, ..booked });
        self.arm_lease(seat, bid, post.out);
        self.schedule(seat, post, None);
    }

    /// Whether this try of this node has exactly this permission.
    pub(super) fn is_granted(
        &self,
        seat: &Seat<'_>,
        bid: Bid,
        asker: Asker,
        number: GrantNumber,
    ) -> bool {
        self.entries.get(&bid).is_some_and(|booked| match booked.state {
            State::Granted { grant, .. } => {
                booked.asker == asker && (grant == number || broken!(seat, M2NoGrantNumbers))
            }
            State::Waiting => false,
        })
    }

    fn on_release(
        &mut self,
        seat: &Seat<'_>,
        claim: ClaimId,
        asker: Asker,
        end: End,
        post: &mut Post<'_>,
    ) {
        // A release that was overtaken by a newer request of its node is not about that one
        // (arbiter spec M14).
        let bid = asker.bid(claim);
        let is_meant = |known: &Bid| {
            let booked = &self.entries[known];
            let whose = *known == bid || (end == End::Over && known.is_earlier_life_of(bid));
            whose && booked.asker.attempt <= asker.attempt && !booked.shared
        };
        let over: Vec<Bid> = self.bids(claim).filter(is_meant).collect();
        let held = end != End::Unused && !broken!(seat, F1FloorOnExpiryOnly);
        for &bid in &over {
            self.end(seat, bid, held, post.out);
        }
        if !over.is_empty() {
            self.schedule(seat, post, None);
        }
    }

    fn on_retoken(
        &mut self,
        seat: &Seat<'_>,
        claim: ClaimId,
        asker: Asker,
        grant: GrantNumber,
        token: Fence,
        post: &mut Post<'_>,
    ) {
        let (node, attempt, clock) = (asker.node, asker.attempt, self.clock.0);
        let bid = asker.bid(claim);
        if !self.is_granted(seat, bid, asker, grant) {
            let lost = Message::Lost { claim, attempt, grant: Some(grant), clock };
            return post.send(node, lost);
        }
        let booked = self.entries.get_mut(&bid).expect("it is granted");
        booked.token = booked.token.max(token);
        self.top = self.top.max(token);
        self.write_down(seat, post.out);
        post.send(node, Message::Retokened { claim, attempt, grant, token, clock });
    }

    /// A permission or a place in the queue was not renewed in time. Says whether it is over: then
    /// others may have it, as soon as its home has heard. If that is this node and its claim still
    /// waits, it asks again, and is older than they are.
    pub(super) fn on_ring_lease_end(
        &mut self,
        seat: &Seat<'_>,
        bid: Bid,
        post: &mut Post<'_>,
    ) -> bool {
        let booked = self.entries.get(&bid).expect("a lease is armed for entries only");
        let (Asker { node, attempt }, claim) = (booked.asker, bid.claim);
        if booked.is_waiting() && (node, attempt.boot) == (seat.me, seat.boot) {
            // The requester is this very node and would have said that the claim is over. If the
            // node stood still for a whole lease, its own clients keep their places.
            self.arm_lease(seat, bid, post.out);
            return false;
        }
        if !booked.is_waiting() {
            post.out.reclaim(claim, booked.shares());
        }
        post.send(node, Message::Lost { claim, attempt, grant: None, clock: self.clock.0 });
        // Its holder may have used it to the last moment (arbiter spec C6).
        self.end(seat, bid, true, post.out);
        if broken!(seat, ServeBeforeItHears) {
            self.schedule(seat, post, None);
        }
        true
    }

    /// The claim has nothing here any more, neither a permission nor a place in the queue.
    pub(super) fn end(
        &mut self,
        seat: &Seat<'_>,
        bid: Bid,
        maybe_held: bool,
        out: &mut Outbox<Arbiter>,
    ) {
        let booked = self.remove(bid).expect("only what is in the books ends");
        if maybe_held {
            self.floors.raise(booked.fenced(seat.pool), booked.token);
        }
        if !booked.is_waiting() {
            self.write_down_soon(seat, out);
        }
        if seat.pool.leases_end() {
            out.disarm(Alarm::LeaseEnd(bid));
        }
    }

    pub(super) fn remove(&mut self, bid: Bid) -> Option<Booked> {
        let booked = self.entries.remove(&bid)?;
        let key = (booked.stamp, bid);
        match booked.state {
            State::Waiting => {
                let queued = self.queue.remove(&key);
                assert!(queued, "whoever waits is in the queue");
            }
            State::Granted { .. } => {
                let granted = self.granted.remove(&key);
                assert!(granted, "whoever does not wait is granted");
                self.used -= booked.units();
                self.unlock(bid, booked.locked());
            }
        }
        Some(booked)
    }

    /// Gives a permission: the one place where units become used.
    pub(super) fn give(&mut self, bid: Bid, state: State) {
        let booked = self.entries.get_mut(&bid).expect("only booked claims are granted");
        let queued = self.queue.remove(&(booked.stamp, bid));
        assert!(queued, "only waiting claims are granted");
        booked.state = state;
        booked.offered = None;
        self.granted.insert((booked.stamp, bid));
        self.used += booked.wish.units.get();
        self.top = self.top.max(booked.token);
        let names: Vec<Unit> = booked.locked().to_vec();
        self.lock(bid, &names);
    }

    pub(super) fn lock(&mut self, bid: Bid, names: &[Unit]) {
        for &unit in names {
            let before = self.locks.insert(unit, bid);
            assert_eq!(before, None, "exclusivity: the caller has made sure of it");
        }
    }

    pub(super) fn unlock(&mut self, bid: Bid, names: &[Unit]) {
        for unit in names {
            let owner = self.locks.remove(unit);
            assert_eq!(owner, Some(bid), "exclusivity: a unit comes back from its owner");
        }
    }

    pub(super) fn tell_grant(&self, seat: &Seat<'_>, bid: Bid, post: &mut Post<'_>) {
        let taken = match seat.pool.picks_units() {
            true => self.locked_by_others(bid),
            false => Default::default(),
        };
        self.send_grant(seat, bid, taken, post);
    }

    pub(super) fn send_grant(
        &self,
        seat: &Seat<'_>,
        bid: Bid,
        taken: Arc<[Unit]>,
        post: &mut Post<'_>,
    ) {
        let (booked, claim) = (&self.entries[&bid], bid.claim);
        let State::Granted { grant, waited, .. } = booked.state else {
            unreachable!("only permissions are told");
        };
        let floor = self.floors.of(booked.fenced(seat.pool));
        let Asker { node, attempt } = booked.asker;
        let (sent, clock) = (booked.sent, self.clock.0);
        let told = Message::Grant { claim, attempt, grant, floor, sent, waited, taken, clock };
        post.send(node, told);
    }

    pub(super) fn tell_inquire(&self, bid: Bid, grant: GrantNumber, post: &mut Post<'_>) {
        let (Asker { node, attempt }, claim) = (self.entries[&bid].asker, bid.claim);
        post.send(node, Message::Inquire { claim, attempt, grant, clock: self.clock.0 });
    }

    pub(super) fn arm_lease(&self, seat: &Seat<'_>, bid: Bid, out: &mut Outbox<Arbiter>) {
        if seat.pool.leases_end() {
            out.arm(Alarm::LeaseEnd(bid), seat.pool.lease.length());
        }
    }

    pub(super) fn ledger(&self, show: &mut dyn FnMut(Entry)) {
        for (bid, booked) in &self.entries {
            let claim = bid.claim;
            let standing = match booked.state {
                State::Waiting => Standing::Waiting,
                State::Granted { adopted: false, .. } => Standing::Granted,
                State::Granted { adopted: true, .. } => Standing::Adopted,
            };
            show(Entry {
                claim,
                stamp: booked.stamp,
                units: booked.wish.units,
                standing,
                kept: None,
            });
        }
    }

    pub(super) fn facts(&self, show: &mut dyn FnMut(Fact)) {
        show(Fact::gauge("in_grace", !self.is_open()));
        show(Fact::gauge("permissions", self.granted.len() as u64));
        show(Fact::gauge("waiting", self.queue.len() as u64));
        show(Fact::counter("reclaims", self.reclaims.get()));
    }

    pub(super) fn audit(&self, seat: &Seat<'_>) {
        let (mut used, mut locks) = (0, 0);
        for (&bid, booked) in &self.entries {
            assert_eq!(booked.asker.bid(bid.claim), bid, "an entry is its asker's");
            let key = (booked.stamp, bid);
            assert_eq!(self.queue.contains(&key), booked.is_waiting());
            assert_eq!(self.granted.contains(&key), !booked.is_waiting());
            if booked.is_waiting() {
                continue;
            }
            used += booked.units();
            for unit in booked.locked() {
                assert_eq!(self.locks.get(unit), Some(&bid), "exclusivity at one arbiter");
                locks += 1;
            }
        }
        assert_eq!(self.queue.len() + self.granted.len(), self.entries.len());
        assert_eq!(used, self.used);
        assert_eq!(locks, self.locks.len());
        if broken!(seat, M3CounterPerNode) {
            return; // A test broke a rule on purpose: the laws must find it, not this assertion.
        }
        assert!(used <= seat.pool.units, "permissions exceed the pool (arbiter spec I1)");
        if let Mode::Count { holders_max, .. } = seat.pool.mode {
            assert!(
                self.granted.len() <= holders_max as usize,
                "too many holders (arbiter spec R2)"
            );
        }
    }
}
