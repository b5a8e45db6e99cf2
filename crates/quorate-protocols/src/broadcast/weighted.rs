//! The timer-free protocol and its weighted generalization (spec 2.3, 2.4).
//!
//! A request goes to everybody. Each answers at once how many units it may use *ahead* of the
//! request, and again when that becomes less. One enters when these numbers leave room. They say
//! how things stand instead of what changed, and what a node may use ahead of a fixed request only
//! ever shrinks, so that the smallest answer is right whatever the order and however often it
//! comes.
//!
//! With at most one unit per node this is the algorithm of Bouillaguet, Arantes and Sens 2009 with
//! the corrections of the errata: 0 is their PERM, 1 their NOPERM. Beyond their one request per
//! process a node has as many requests under way as fit in what it may use at all: an answer adds
//! up those of its requests that are ahead, and the argument for safety (the youngest holder saw
//! everybody older) never asks to whom they belong.

use std::collections::BTreeMap;

use quorate_core::{ClaimId, Clock, Moment, NodeId, Outbox, Seat, Stamp, Units};

use super::desk::{Desk, shares};
use super::detect::Detector;
use super::message::Message;
use super::pool::broken;
use super::reclaim::Counting;
use super::tally::Tally;
use super::{Alarm, Weighted};

/// A claim that is being asked for, or held.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Asked {
    pub(super) claim: ClaimId,
    pub(super) units: Units,
    pub(super) standing: Standing,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Standing {
    /// What the others may use ahead of it.
    Waiting(Tally),
    /// The client was told.
    Held {
        /// When its client stops by itself.
        until: Moment,
        /// Whether there would have been room without counting anybody out.
        clean: bool,
    },
}

/// A peer's request that something of ours is ahead of.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Deferred {
    pub(super) query: Option<u64>,
    /// The peer's oldest waiting request when it sent this one.
    pub(super) oldest: u64,
    /// What it was last told.
    told: u32,
}

impl Weighted {
    pub(super) fn new(nodes: u32, member: bool) -> Self {
        Weighted {
            clock: Clock::default(),
            desk: Desk::default(),
            asked: BTreeMap::new(),
            deferred: BTreeMap::new(),
            detector: Detector::new(nodes),
            counting: Counting::default(),
            retrying: false,
            member,
        }
    }

    /// Asks for the oldest clients' claims, as far as this node may use so much.
    pub(super) fn ask(&mut self, seat: &Seat<'_, Self>, out: &mut Outbox<Self>) {
        if !self.member || self.is_expelled(seat) {
            return;
        }
        while let Some((claim, units)) = self.desk.next_within(self.room(seat)) {
            self.request(seat, claim, units, out);
        }
        self.check(seat, out);
    }

    /// How many more units this node may ask for.
    fn room(&self, seat: &Seat<'_, Self>) -> u32 {
        let asked: u32 = self.asked.values().map(|asked| asked.units.get()).sum();
        seat.pool
            .node_units_max
            .checked_sub(asked)
            .expect("a node asks for no more than it may use")
    }

    fn request(
        &mut self,
        seat: &Seat<'_, Self>,
        claim: ClaimId,
        units: Units,
        out: &mut Outbox<Self>,
    ) {
        let pool = seat.pool;
        let clock = self.next_clock(seat);
        let tally = Tally::new(pool.nodes, seat.me, pool.node_units_max);
        let standing = Standing::Waiting(tally);
        let before = self.asked.insert(clock, Asked { claim, units, standing });
        assert!(before.is_none() || broken!(seat, ClockNotAdvanced), "no two requests are alike");
        // E5: a query that has not ended goes on, and the request travels without one.
        let query = self.may_query(seat).then_some(clock);
        if query.is_some() {
            self.start_query(seat, clock, out);
        }
        let oldest = self.oldest_waiting().expect("this one waits");
        let message = Message::Request { clock, oldest, query, known: self.detector.known.clone() };
        for peer in pool.peers(seat.me).filter(|&peer| !self.counting.is_out(peer)) {
            out.tell(peer, message.clone());
        }
        if let (Some(retry), false) = (pool.retry, self.retrying) {
            self.retrying = true;
            out.arm(Alarm::Retry, retry);
        }
    }

    /// A number no request or query of this node has had (E2).
    pub(super) fn next_clock(&mut self, seat: &Seat<'_, Self>) -> u64 {
        if broken!(seat, ClockNotAdvanced) { self.clock.0 + 1 } else { self.clock.tick() }
    }

    fn oldest_waiting(&self) -> Option<u64> {
        let waits = |asked: &Asked| matches!(asked.standing, Standing::Waiting(_));
        self.asked.iter().find(|(_, asked)| waits(asked)).map(|(&clock, _)| clock)
    }

    /// How many units this node may use ahead of a request: what it holds, and what it asked for
    /// earlier.
    fn used_ahead_of(&self, seat: &Seat<'_, Self>, theirs: Stamp) -> u32 {
        let is_ahead = |clock: u64, asked: &Asked| match asked.standing {
            Standing::Held { .. } => true,
            Standing::Waiting(_) if broken!(seat, TieBreakByIdentity) => clock < theirs.clock,
            Standing::Waiting(_) => Stamp { clock, node: seat.me } < theirs, // E1
        };
        let ahead = self.asked.iter().filter(|&(&clock, asked)| is_ahead(clock, asked));
        ahead.map(|(_, asked)| asked.units.get()).sum()
    }

    /// Grants whatever there is room for, oldest first.
    pub(super) fn check(&mut self, seat: &Seat<'_, Self>, out: &mut Outbox<Self>) {
        if self.asked.is_empty() {
            return;
        }
        let until = self.counting.deadline(seat);
        if until <= seat.now {
            return; // Somebody may have counted us out: a lease covers waiting as well (D4).
        }
        let mut ours: u32 = 0;
        let held = |asked: &Asked| matches!(asked.standing, Standing::Held { .. });
        let held_units: u32 =
            self.asked.values().filter(|asked| held(asked)).map(|asked| asked.units.get()).sum();
        for asked in self.asked.values_mut() {
            let h = asked.units.get();
            let Standing::Waiting(tally) = &asked.standing else { continue };
            let need = u64::from(held_units) + u64::from(ours) + u64::from(h);
            ours += h;
            let units = u64::from(seat.pool.units);
            let clean = need + tally.total() <= units;
            let mut others = tally.total_without(self.counting.out());
            if broken!(seat, KeepPermissionsOfTheDead) {
                let lowered = self.counting.out().len() as u64;
                others = tally.total().saturating_sub(lowered);
            }
            // Capacity: who was counted out is left out altogether, permission and all (E4).
            if need + others <= units {
                asked.standing = Standing::Held { until, clean };
                out.grant(asked.claim, shares(asked.units), until);
            }
        }
    }

    pub(super) fn on_request(
        &mut self,
        seat: &Seat<'_, Self>,
        theirs: Stamp,
        oldest: u64,
        query: Option<u64>,
        out: &mut Outbox<Self>,
    ) {
        self.clock.hear(theirs.clock);
        self.clock.tick();
        let used = self.used_ahead_of(seat, theirs);
        if !self.deferred.is_empty() {
            self.forget_deferred(theirs.node, oldest);
        }
        if used > 0 && !self.is_overtaken(theirs) {
            let key = (theirs.node, theirs.clock);
            self.deferred.insert(key, Deferred { query, oldest, told: used });
        }
        self.reply(theirs, used, query, out);
    }

    /// Requests of a node older than its oldest that waits are over, and need no answer.
    fn forget_deferred(&mut self, node: NodeId, oldest: u64) {
        while let Some((&key, _)) = self.deferred.range((node, 0)..(node, oldest)).next() {
            self.deferred.remove(&key);
        }
    }

    /// Whether a younger request of the same node, heard earlier, said that this one is over (E3b).
    fn is_overtaken(&self, theirs: Stamp) -> bool {
        let younger = self.deferred.range((theirs.node, theirs.clock)..=(theirs.node, u64::MAX));
        younger.into_iter().any(|(_, deferred)| deferred.oldest > theirs.clock)
    }

    fn reply(&self, theirs: Stamp, used: u32, query: Option<u64>, out: &mut Outbox<Self>) {
        let (request, known) = (Some(theirs.clock), self.detector.known.clone());
        out.tell(theirs.node, Message::Reply { request, used, query, known });
    }

    /// Takes what a peer may use ahead of one of our requests.
    pub(super) fn on_used(&mut self, seat: &Seat<'_, Self>, from: NodeId, clock: u64, used: u32) {
        let asked = if broken!(seat, UnmatchedReplies) {
            self.asked.values_mut().find(|asked| matches!(asked.standing, Standing::Waiting(_)))
        } else {
            self.asked.get_mut(&clock) // E3: an answer counts for the request it names.
        };
        if let Some(Asked { standing: Standing::Waiting(tally), .. }) = asked {
            tally.lower(from, used);
        }
    }

    /// A client is done with a claim, whatever became of it.
    pub(super) fn end(&mut self, seat: &Seat<'_, Self>, claim: ClaimId, out: &mut Outbox<Self>) {
        self.desk.remove(claim);
        let Some(clock) = self.clock_of(claim) else { return };
        if broken!(seat, ReleaseInTwoSteps) {
            for ((node, clock), deferred) in std::mem::take(&mut self.deferred) {
                self.reply(Stamp { clock, node }, 0, deferred.query, out);
            }
            return; // The state changes later, in `end_second_step`.
        }
        // E6: the state changes first, so that whoever asks from now on is answered as it is.
        self.asked.remove(&clock);
        if broken!(seat, DropDeferred) {
            self.deferred.clear();
        }
        self.answer_deferred(seat, out);
        self.ask(seat, out);
    }

    /// The second half of a release that is not atomic.
    #[cfg(test)]
    pub(super) fn end_second_step(&mut self, claim: ClaimId) {
        if let Some(clock) = self.clock_of(claim) {
            self.asked.remove(&clock);
            self.deferred.clear();
        }
    }

    pub(super) fn clock_of(&self, claim: ClaimId) -> Option<u64> {
        self.asked.iter().find(|(_, asked)| asked.claim == claim).map(|(&clock, _)| clock)
    }

    /// Tells everybody who waits for less of ours than it was told so.
    pub(super) fn answer_deferred(&mut self, seat: &Seat<'_, Self>, out: &mut Outbox<Self>) {
        for ((node, clock), mut deferred) in std::mem::take(&mut self.deferred) {
            let theirs = Stamp { clock, node };
            let used = self.used_ahead_of(seat, theirs);
            if used < deferred.told && !self.counting.is_out(node) {
                self.reply(theirs, used, deferred.query, out);
                deferred.told = used;
            }
            if used > 0 {
                self.deferred.insert((node, clock), deferred);
            }
        }
    }

    /// Repeats every request that waits to whoever may stand in its way, and the query with it.
    pub(super) fn on_ring_retry(&mut self, seat: &Seat<'_, Self>, out: &mut Outbox<Self>) {
        self.retrying = false;
        let Some(oldest) = self.oldest_waiting() else { return };
        let query = self.detector.query.filter(|_| !self.detector.is_done());
        for (&clock, asked) in &self.asked {
            let Standing::Waiting(tally) = &asked.standing else { continue };
            for peer in seat.pool.peers(seat.me) {
                if tally.used(peer) > 0 && !self.counting.is_out(peer) {
                    let known = self.detector.known.clone();
                    out.tell(peer, Message::Request { clock, oldest, query, known });
                }
            }
        }
        if let Some(retry) = seat.pool.retry {
            self.retrying = true;
            out.arm(Alarm::Retry, retry);
        }
    }
}
