//! The arbiter's half: who gets which units, and until when.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry as Place};
use std::sync::Arc;
use std::time::Duration;

use quorate_core::{
    ClaimId, Clock, Entry, Fence, Holding, Line, Moment, NodeId, Outbox, Seat, Shares, Shortage,
    Stamp, Standing, Start, Unit, Units, Wanted,
};

use super::booked::{Asking, Booked, State};
use super::message::Message;
use super::orders::Tags;
use super::pool::broken;
use super::{Alarm, Central, Post};
use crate::allocator::{Allocator, Deed, Ticket};
use crate::attempt::Asker;
use crate::lag::Lag;

/// Longer books are not audited after every step.
const AUDIT_ENTRIES_MAX: usize = 256;

/// The books of the one who decides.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Arbiter {
    /// Stamps claims as they come.
    pub(crate) clock: Clock,
    /// Boxed: a map moves its values about whenever one comes or goes.
    pub(crate) entries: BTreeMap<ClaimId, Box<Booked>>,
    /// Who waits, oldest first, and what is free.
    pub(crate) allocator: Allocator,
    /// What the allocator wants done: nothing between two steps, and kept only for its room.
    pub(crate) deeds: Vec<Deed>,
    /// The labels of units, by which claims choose.
    pub(crate) tags: Tags,
    /// The last fence given.
    pub(crate) fence: Fence,
    /// Whether promises of an earlier life may still be in force.
    pub(crate) grace: bool,
    /// How long a promise may last that somebody else made, before now: at least a lease.
    pub(crate) longest: Duration,
    /// Claims that were promised something by another lease than the pool has now: the longest.
    pub(crate) promised: BTreeMap<ClaimId, Duration>,
    /// Whether the record has grants that are over.
    pub(crate) lag: Lag,
}

/// What a durable arbiter writes down: every grant in force, and for a moment some that are over
/// (`lag.rs`). The queue is not in it, since requesters ask again; nor is the last fence, since
/// those of the next boot are larger.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Record {
    pub(super) grants: Vec<(ClaimId, Booked)>,
    /// Whether promises older than this record may still be in force.
    pub(super) grace: bool,
    /// The units that are not to be granted, ascending.
    pub(super) drained: Vec<Unit>,
    /// Units that have other labels than the pool began with.
    pub(super) relabelled: BTreeMap<Unit, BTreeMap<String, String>>,
}

impl Arbiter {
    /// Gives back room that it does not need while nothing happens. It is the same afterwards.
    pub(crate) fn rest(&mut self) {
        let Arbiter { entries, deeds, promised, .. } = self;
        if entries.is_empty() {
            *entries = BTreeMap::new();
        }
        if promised.is_empty() {
            *promised = BTreeMap::new();
        }
        deeds.shrink_to_fit();
    }

    pub(super) fn boot(
        seat: &Seat<'_, Central>,
        start: Start<Record>,
        out: &mut Outbox<Central>,
    ) -> Self {
        let mut arbiter = Arbiter {
            clock: Clock::default(),
            entries: BTreeMap::new(),
            allocator: seat.pool.goods.allocator(),
            deeds: Vec::new(),
            tags: Tags::default(),
            fence: Fence::floor(seat.boot),
            grace: false,
            longest: seat.pool.goods.longest(),
            promised: BTreeMap::new(),
            lag: Lag::default(),
        };
        match start {
            Start::First => {}
            // A durable arbiter writes before it promises, so no record means no promise.
            Start::Recovered(None) if seat.pool.goods.durable => {}
            Start::Recovered(Some(record)) if seat.pool.goods.durable => {
                arbiter.grace = record.grace;
                for (claim, booked) in record.grants {
                    arbiter.recover(seat, claim, booked, out);
                }
                for unit in record.drained {
                    arbiter.allocator.drain(unit);
                }
                arbiter.tags = Tags::new(seat, record.relabelled);
            }
            Start::Recovered(_) | Start::Amnesia => {
                arbiter.grace = !broken!(seat, NoGrace);
                arbiter.write_down(seat, out);
            }
        }
        if arbiter.grace {
            out.arm(Alarm::Grace, arbiter.longest);
        }
        arbiter
    }

    fn recover(
        &mut self,
        seat: &Seat<'_, Central>,
        claim: ClaimId,
        mut booked: Booked,
        out: &mut Outbox<Central>,
    ) {
        let State::Granted { held, adopted, .. } = &mut booked.state else {
            unreachable!("only grants are written down");
        };
        self.allocator.take(held.shares.iter().map(|share| share.unit));
        *adopted = true;
        self.clock.hear(booked.stamp.clock);
        self.entries.insert(claim, Box::new(booked));
        // A fresh lease, whatever was left of the old one: our clock may have started anew.
        out.arm(Alarm::LeaseEnd(claim), seat.pool.goods.lease.length());
    }

    pub(super) fn hear(
        &mut self,
        seat: &Seat<'_, Central>,
        from: NodeId,
        message: Message,
        post: &mut Post<'_>,
    ) {
        match message {
            Message::Request { claim, attempt, mut wanted, sent } => {
                let goods = &seat.pool.goods;
                let asked_before = goods.ever.is_some() && self.entries.contains_key(&claim);
                if goods.ever.is_some() && !asked_before && !goods.has(&wanted) {
                    return; // Its home or we have not heard of a change yet, and will.
                }
                if !asked_before && wanted.units.get() > goods.units {
                    return post.out.anomaly(from, "a request for more units than the pool has");
                }
                if !asked_before && !goods.has(&wanted) {
                    return post
                        .out
                        .anomaly(from, "a request with lines that this pool cannot have");
                }
                let asker = Asker { node: from, attempt };
                wanted.movable &= seat.pool.goods.labels.is_some();
                wanted.lines = wanted.lines.filter(|_| !broken!(seat, IgnoreLines));
                self.on_request(seat, asker, claim, wanted, sent, post);
            }
            Message::Release { claim } => self.end(seat, claim, post),
            Message::Decline { claim, attempt, fence } => {
                let asker = Asker { node: from, attempt };
                let Some(booked) = self.entries.get_mut(&claim) else { return };
                let over = match &booked.state {
                    State::Waiting | State::Absent if !broken!(seat, GiveUpForAll) => {
                        booked.given_up_by(asker)
                    }
                    state => {
                        let is_its = booked.is_its_own() || broken!(seat, DeclineShared);
                        let is_it = fence.is_none_or(|fence| state.newest() <= Some(fence));
                        booked.asker == asker && is_its && (is_it || broken!(seat, EndByTry))
                    }
                };
                if over || broken!(seat, DeclineAnyAttempt) {
                    self.end(seat, claim, post);
                }
            }
            Message::Renew { claim, attempt, shares, sent } => {
                let asker = Asker { node: from, attempt };
                self.on_renew(seat, asker, claim, shares, sent, post);
            }
            Message::Grant { .. }
            | Message::Renewed { .. }
            | Message::Lost { .. }
            | Message::Move { .. }
            | Message::Refused { .. } => {
                unreachable!("messages for requesters go to the requester")
            }
        }
    }

    fn on_request(
        &mut self,
        seat: &Seat<'_, Central>,
        asker: Asker,
        claim: ClaimId,
        mut wanted: Wanted,
        sent: Moment,
        post: &mut Post<'_>,
    ) {
        let place_kept = self.bring_back(seat, claim, asker);
        let booked = match self.entries.entry(claim) {
            Place::Occupied(known) => known.into_mut(),
            Place::Vacant(place) => {
                let stamp = place_kept
                    .unwrap_or_else(|| Stamp { clock: self.clock.tick(), node: asker.node });
                let ticket = Ticket { age: stamp.clock, claim };
                let (any, chosen);
                let wants = match &wanted.lines {
                    // The common case, without an allocation.
                    None => {
                        any = [seat.pool.goods.any(asker.node, wanted.units)];
                        &any[..]
                    }
                    Some(lines) => {
                        let labels = self.tags.labels(seat);
                        chosen = seat.pool.goods.wants_by(labels, asker.node, lines);
                        &chosen[..]
                    }
                };
                let entered = match self.grace {
                    true => self.allocator.enter(ticket, wants, wanted.movable),
                    false => self.allocator.submit(ticket, wants, wanted.movable, &mut self.deeds),
                };
                let by_label = |lines: &Arc<[Line]>| lines.iter().any(|line| line.labels.is_some());
                // Where the pool may be another, who may use what may be too.
                wanted.lines =
                    wanted.lines.filter(|it| seat.pool.goods.ever.is_some() || by_label(it));
                let may_change =
                    wanted.lines.is_some() || self.allocator.drained().next().is_some();
                if entered.is_err() && seat.pool.goods.ever.is_some() {
                    return; // Its home or we have not heard of a change yet, and will.
                }
                if entered.is_err() && may_change {
                    let attempt = asker.attempt;
                    return post.send(asker.node, Message::Refused { claim, attempt });
                }
                if entered.is_err() {
                    let what = "a request for more units than its node may use";
                    return post.out.anomaly(asker.node, what);
                }
                let state = State::Waiting;
                let (arrived, others) = (seat.now, Vec::new());
                let booked = Booked { asker, stamp, wanted, sent, arrived, others, state };
                place.insert(Box::new(booked));
                return self.carry_out(seat, post);
            }
        };
        let others = || booked.others.iter().map(|other| other.asker);
        if asker.is_before(booked.asker) || others().any(|other| asker.is_before(other)) {
            return;
        }
        // A home repeats what it asked for though its client may have moved. That is no new try.
        let repeated = booked.state == State::Waiting && others().any(|other| other == asker);
        if repeated && !broken!(seat, GiveUpForAll) {
            return;
        }
        let anew = asker != booked.asker;
        if anew {
            // The client asks in a new try: its old clock reading means nothing any more.
            booked.asked_by(Asking { asker, sent, arrived: seat.now });
        }
        let State::Granted { waited, .. } = &mut booked.state else { return };
        if anew {
            *waited = Duration::ZERO;
            // Not written down: after a restart no try can be declined.
            post.out.arm(Alarm::LeaseEnd(claim), self.keeps(seat, claim));
        }
        let (node, answer) = self.entries[&claim].answer(claim);
        post.send(node, answer);
        self.tell_moves(claim, post);
    }

    fn on_renew(
        &mut self,
        seat: &Seat<'_, Central>,
        asker: Asker,
        claim: ClaimId,
        shares: Shares,
        sent: Moment,
        post: &mut Post<'_>,
    ) {
        let known = self.entries.get(&claim).map(|booked| (booked.asker, booked.sent));
        let held = match self.entries.get_mut(&claim) {
            Some(booked) if asker.is_before(booked.asker) => return,
            Some(booked) => booked.renew(asker, &shares, sent, seat.now),
            None => self.adopt(seat, asker, claim, &shares, sent, post.out).then(Vec::new),
        };
        let attempt = asker.attempt;
        let Some(left) = held else {
            // What a holder had before it moved, overtaken by what it said afterwards.
            let differ = seat.pool.goods.labels.is_some();
            if differ && known.is_some_and(|(by, last)| by == asker && sent <= last) {
                return;
            }
            let fence = shares.newest().unwrap_or_default();
            return post.send(asker.node, Message::Lost { claim, attempt, fence });
        };
        self.end_moves(claim, &left);
        self.is_renewed(seat, claim);
        if known.map(|(by, _)| by) != Some(asker) || !left.is_empty() {
            self.write_down(seat, post.out);
        }
        post.out.arm(Alarm::LeaseEnd(claim), self.keeps(seat, claim));
        post.send(asker.node, Message::Renewed { claim, attempt, sent });
        self.tell_moves(claim, post);
        if !left.is_empty() {
            self.schedule(seat, post);
        }
    }

    /// In grace, takes what a holder shows into the books, unless it cannot have come from us or is
    /// over. Says whether it did.
    pub(super) fn adopt(
        &mut self,
        seat: &Seat<'_, Central>,
        asker: Asker,
        claim: ClaimId,
        shares: &Shares,
        sent: Moment,
        out: &mut Outbox<Central>,
    ) -> bool {
        let all = shares.as_slice();
        let sound = self.grace
            && all.windows(2).all(|pair| pair[0].unit < pair[1].unit)
            && all
                .iter()
                .all(|s| s.unit.0 < seat.pool.goods.most() && s.fence < Fence::floor(seat.boot));
        let Ok(units) = Units::new(all.len() as u32, seat.pool.goods.most()) else { return false };
        if !sound || !self.evict_older_holders(seat, shares, out) {
            return false;
        }
        // What was drained meanwhile is nobody's already.
        let free = shares.iter().map(|share| share.unit).filter(|u| self.allocator.is_free(*u));
        let free: Vec<Unit> = free.collect();
        self.allocator.take(free);
        let stamp = Stamp { clock: self.clock.tick(), node: asker.node };
        let held = Holding::new(shares.clone());
        let state = State::Granted { held, waited: Duration::ZERO, adopted: true };
        let (arrived, wanted, others) = (seat.now, Wanted::any(units), Vec::new());
        let booked = Booked { asker, stamp, wanted, sent, arrived, others, state };
        self.entries.insert(claim, Box::new(booked));
        if self.longest > seat.pool.goods.lease.length() {
            self.promised.insert(claim, self.longest);
        }
        true
    }

    /// Two holders may show the same unit: a renewal of the earlier one was still on its way. The
    /// fence tells which of them is over. Says whether these shares are the later ones.
    fn evict_older_holders(
        &mut self,
        seat: &Seat<'_, Central>,
        shares: &Shares,
        out: &mut Outbox<Central>,
    ) -> bool {
        let mut rivals = BTreeMap::new();
        for (&claim, booked) in &self.entries {
            let State::Granted { held, .. } = &booked.state else { continue };
            let theirs = &held.shares;
            for (our, their) in shares.iter().flat_map(|o| theirs.iter().map(move |t| (o, t))) {
                if our.unit == their.unit {
                    let older = rivals.entry(claim).or_insert(true);
                    *older &= their.fence < our.fence && !broken!(seat, FirstShownStays);
                }
            }
        }
        if rivals.values().any(|older| !older) {
            return false;
        }
        for claim in rivals.into_keys() {
            self.remove(claim);
            out.disarm(Alarm::LeaseEnd(claim));
        }
        true
    }

    pub(super) fn on_ring_lease_end(
        &mut self,
        seat: &Seat<'_, Central>,
        claim: ClaimId,
        post: &mut Post<'_>,
    ) {
        if broken!(seat, NeverReclaim) {
            return;
        }
        let booked = self.entries.get(&claim).expect("a lease is armed for entries only");
        let State::Granted { held, .. } = &booked.state else {
            unreachable!("a lease is armed for grants only");
        };
        let Asker { node, attempt } = booked.asker;
        let fence = held.shares.newest().expect("whoever was granted units has some");
        post.out.reclaim(claim, held.shares.clone());
        post.send(node, Message::Lost { claim, attempt, fence });
        self.remove(claim);
        self.write_down_soon(seat, post.out);
        self.schedule(seat, post);
    }

    pub(super) fn on_ring_write_down(&mut self, seat: &Seat<'_, Central>, post: &mut Post<'_>) {
        self.write_down(seat, post.out);
    }

    pub(super) fn on_ring_grace(&mut self, seat: &Seat<'_, Central>, post: &mut Post<'_>) {
        assert!(self.grace, "grace ends once");
        self.grace = false;
        self.write_down(seat, post.out);
        self.schedule(seat, post);
    }

    /// The claim is over, if it was not already.
    fn end(&mut self, seat: &Seat<'_, Central>, claim: ClaimId, post: &mut Post<'_>) {
        let Some(held_units) = self.remove(claim) else { return };
        if held_units {
            post.out.disarm(Alarm::LeaseEnd(claim));
            self.write_down_soon(seat, post.out);
        }
        self.schedule(seat, post);
    }

    /// A grant is over that the record has.
    fn write_down_soon(&mut self, seat: &Seat<'_, Central>, out: &mut Outbox<Central>) {
        if seat.pool.goods.durable {
            self.lag.begin(Alarm::WriteDown, &seat.pool.goods.lease, out);
        }
    }

    /// Takes a claim out of the books: whether it held units, if it was there.
    pub(super) fn remove(&mut self, claim: ClaimId) -> Option<bool> {
        let booked = self.entries.remove(&claim)?;
        self.promised.remove(&claim);
        match &booked.state {
            State::Waiting => {
                let queued = self.allocator.cancel(booked.ticket(claim));
                assert!(queued, "whoever waits is in the queue");
                Some(false)
            }
            State::Absent => Some(false),
            State::Granted { held, .. } => {
                let units = held.shares.iter().map(|share| share.unit);
                self.allocator.release(booked.ticket(claim), units);
                Some(true)
            }
        }
    }

    /// Written before the rest of this step is told, which rests on these books.
    pub(super) fn write_down(&mut self, seat: &Seat<'_, Central>, out: &mut Outbox<Central>) {
        if !seat.pool.goods.durable {
            return;
        }
        self.lag.end(Alarm::WriteDown, out);
        let grants = self
            .entries
            .iter()
            .filter(|(_, booked)| matches!(booked.state, State::Granted { .. }))
            .map(|(&claim, booked)| {
                let wanted = Wanted::any(booked.wanted.units);
                (claim, Booked { wanted, ..(**booked).clone() })
            })
            .collect();
        let drained = self.allocator.drained().collect();
        let relabelled = self.tags.changed().clone();
        out.persist(Record { grants, grace: self.grace, drained, relabelled });
    }

    pub(super) fn ledger(&self, show: &mut dyn FnMut(Entry)) {
        for (&claim, booked) in &self.entries {
            let standing = match booked.state {
                State::Waiting => Standing::Waiting,
                State::Absent => Standing::Absent,
                State::Granted { adopted: false, .. } => Standing::Granted,
                State::Granted { adopted: true, .. } => Standing::Adopted,
            };
            show(Entry {
                claim,
                stamp: booked.stamp,
                units: booked.wanted.units,
                standing,
                kept: None,
            });
        }
    }

    /// Why a claim waits: the allocator's cut, with names.
    pub(super) fn explain(&self, claim: ClaimId) -> Option<Shortage> {
        let cut = self.allocator.explain(self.entries.get(&claim)?.ticket(claim))?;
        let held = self.entries.iter().filter_map(|(claim, booked)| match &booked.state {
            State::Granted { held, .. } => Some((*claim, &held.shares)),
            State::Waiting | State::Absent => None,
        });
        Some(cut.shortage(held))
    }

    pub(super) fn audit(&self, seat: &Seat<'_, Central>) {
        let broken = [
            broken!(seat, GrantWithoutRoom),
            broken!(seat, HandOverEarly),
            broken!(seat, StrictFifo),
            broken!(seat, BindEarly),
            broken!(seat, CountOnly),
        ];
        if broken.contains(&true) {
            return; // A test broke a rule on purpose: the laws must find it, not this assertion.
        }
        if self.entries.len() > AUDIT_ENTRIES_MAX {
            return; // Every step would cost as much as the books are long.
        }
        let (mut waiting, mut taken) = (0, BTreeSet::new());
        for (claim, booked) in &self.entries {
            match &booked.state {
                State::Waiting => {
                    waiting += 1;
                    assert!(self.allocator.waits(booked.ticket(*claim)));
                }
                State::Absent => assert!(!self.allocator.waits(booked.ticket(*claim))),
                State::Granted { held, .. } => {
                    let extra = held.moves.len();
                    assert_eq!(held.shares.len(), booked.wanted.units.get() as usize + extra);
                    for share in &held.shares {
                        assert!(share.fence <= self.fence);
                        assert!(!self.allocator.is_free(share.unit), "what is held is not free");
                        assert!(taken.insert(share.unit), "a unit has one holder");
                    }
                }
            }
        }
        self.allocator.audit();
        assert_eq!(waiting, self.allocator.waiting());
        let nobodys = |unit: &Unit| !taken.contains(unit) && !self.allocator.keeps(*unit);
        let drained = self.allocator.drained().filter(nobodys).count();
        let away = taken.len() as u32 + drained as u32 + self.allocator.kept_count();
        let free = self.allocator.units() - away;
        assert_eq!(free, self.allocator.free_count(), "what nobody holds is free");
    }
}
