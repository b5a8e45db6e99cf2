//! The timer-free protocol and its weighted generalization (broadcast spec 2.3, 2.4).
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

use quorate_core::{ClaimId, Clock, Moment, NodeId, Outbox, Seat, Stamp, Units};

use super::deferred::{Deferrals, Deferred};
use super::desk::{Desk, shares};
use super::detect::Detector;
use super::join::Membership;
use super::message::{Life, Message};
use super::pool::broken;
use super::reclaim::{Counting, hold_end};
use super::tally::Tally;
use super::{Alarm, Weighted};

/// A claim that is being asked for, or held.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Asked {
    /// The timestamp of the request.
    pub(super) clock: u64,
    pub(super) claim: ClaimId,
    pub(super) units: Units,
    pub(super) standing: AskedPhase,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum AskedPhase {
    /// What the others may use ahead of it.
    Waiting(Tally),
    /// The client was told.
    Held {
        /// When its client stops by itself: the earlier of the end of its hold and of this node's
        /// own lease, where there are such.
        until: Moment,
        /// When it would stop if only it had to renew.
        hold_end: Moment,
        /// Whether there would have been room without counting anybody out.
        clean: bool,
    },
    /// The client was told that it no longer has it. Until it says that it heard, or its deadline
    /// has passed, it may go on.
    Lost,
}

impl AskedPhase {
    /// Whether a client may be using the units.
    pub(super) fn is_in_use(&self) -> bool {
        matches!(self, AskedPhase::Held { .. } | AskedPhase::Lost)
    }
}

impl Weighted {
    pub(super) fn new(nodes: u32, life: Life, membership: Membership) -> Self {
        Weighted {
            clock: Clock::default(),
            desk: Desk::default(),
            asked: Vec::new(),
            deferred: Deferrals::default(),
            detector: Detector::new(nodes),
            counting: Counting::default(),
            retrying: false,
            life,
            expulsions: 0,
            expelled: false,
            membership,
        }
    }

    /// Asks for the oldest clients' claims, as far as this node may use so much.
    pub(super) fn ask(&mut self, seat: &Seat<'_, Self>, out: &mut Outbox<Self>) {
        if !self.is_member() || self.is_expelled(seat) {
            return;
        }
        while let Some((claim, units)) = self.desk.next_within(self.room(seat)) {
            self.request(seat, claim, units, out);
        }
        self.check(seat, out);
    }

    /// How many more units this node may ask for.
    fn room(&self, seat: &Seat<'_, Self>) -> u32 {
        let asked: u32 = self.asked.iter().map(|asked| asked.units.get()).sum();
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
        let standing = AskedPhase::Waiting(tally);
        let is_younger = self.asked.last().is_none_or(|before| before.clock < clock);
        assert!(is_younger || broken!(seat, ClockNotAdvanced), "no two requests are alike");
        self.asked.push(Asked { clock, claim, units, standing });
        // Broadcast spec E5: a query that has not ended goes on, and the request travels without
        // one.
        let query = (self.may_query(seat) || broken!(seat, AbandonQueries)).then_some(clock);
        if query.is_some() {
            self.start_query(seat, clock, out);
        }
        let oldest = self.oldest_waiting().expect("this one waits");
        for peer in pool.peers(seat.me).filter(|&peer| !self.counting.is_out(peer)) {
            out.tell_with(peer, || {
                let known = self.detector.known.clone();
                Message::Request { clock, oldest, query, known }
            });
        }
        if query.is_some() {
            self.renew_lease(seat, out); // The only node of a pool has all answers at once.
        }
        if let (Some(retry), false) = (pool.retry, self.retrying) {
            self.retrying = true;
            out.arm(Alarm::Retry, retry);
        }
    }

    /// A number no request or query of this node has had (broadcast spec E2).
    pub(super) fn next_clock(&mut self, seat: &Seat<'_, Self>) -> u64 {
        if broken!(seat, ClockNotAdvanced) { self.clock.0 + 1 } else { self.clock.tick() }
    }

    fn oldest_waiting(&self) -> Option<u64> {
        let waits = |asked: &Asked| matches!(asked.standing, AskedPhase::Waiting(_));
        self.asked.iter().find(|asked| waits(asked)).map(|asked| asked.clock)
    }

    /// How many units this node may use ahead of a request: what it holds, and what it asked for
    /// earlier.
    fn used_ahead_of(&self, seat: &Seat<'_, Self>, theirs: Stamp) -> u32 {
        let is_ahead = |asked: &&Asked| match asked.standing {
            AskedPhase::Held { .. } | AskedPhase::Lost => true,
            AskedPhase::Waiting(_) if broken!(seat, TieBreakByIdentity) => {
                asked.clock < theirs.clock
            }
            // The node number breaks ties (broadcast spec E1).
            AskedPhase::Waiting(_) => Stamp { clock: asked.clock, node: seat.me } < theirs,
        };
        self.asked.iter().filter(is_ahead).map(|asked| asked.units.get()).sum()
    }

    /// Grants whatever there is room for, oldest first.
    #[inline]
    pub(super) fn check(&mut self, seat: &Seat<'_, Self>, out: &mut Outbox<Self>) {
        let units = u64::from(seat.pool.units);
        let has_room = |asked: &Asked| match &asked.standing {
            AskedPhase::Waiting(tally) => {
                u64::from(asked.units.get()) + self.used_by_others(seat, tally) <= units
            }
            AskedPhase::Held { .. } | AskedPhase::Lost => false,
        };
        // Mostly the others leave no room, whatever this node holds itself.
        if self.asked.iter().any(has_room) {
            self.enter(seat, out);
        }
    }

    /// What the others may use, as far as they count.
    fn used_by_others(&self, seat: &Seat<'_, Self>, tally: &Tally) -> u64 {
        if broken!(seat, KeepPermissionsOfTheDead) {
            return tally.total().saturating_sub(self.counting.out().len() as u64);
        }
        // Capacity: who was counted out is left out altogether, permission and all (broadcast spec
        // E4).
        tally.total_without(self.counting.out())
    }

    fn enter(&mut self, seat: &Seat<'_, Self>, out: &mut Outbox<Self>) {
        let in_use = self.asked.iter().filter(|asked| asked.standing.is_in_use());
        let held: u32 = in_use.map(|asked| asked.units.get()).sum();
        let (mut ours, units) = (u64::from(held), u64::from(seat.pool.units));
        for place in 0..self.asked.len() {
            let asked = &self.asked[place];
            let AskedPhase::Waiting(tally) = &asked.standing else { continue };
            ours += u64::from(asked.units.get());
            let clean = ours + tally.total() <= units;
            if ours + self.used_by_others(seat, tally) > units {
                continue;
            }
            let hold_end = hold_end(seat);
            let until = self.counting.deadline(seat).min(hold_end);
            if until <= seat.now {
                // Somebody may have counted us out: a lease covers waiting too (broadcast spec D4).
                return;
            }
            let asked = &mut self.asked[place];
            asked.standing = AskedPhase::Held { until, hold_end, clean };
            if let Some(lease) = seat.pool.lease {
                out.arm(Alarm::HoldEnd(asked.claim), lease.length());
            }
            out.grant(asked.claim, shares(asked.units), until);
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
        if !self.is_settled() {
            // In grace this node cannot say what clients of its earlier life use, but it shows that
            // it lives.
            self.clock.hear(theirs.clock);
            query.into_iter().for_each(|query| self.answer_query(theirs.node, query, out));
            return;
        }
        // A repeated request may carry a query that is younger than itself.
        self.clock.hear(query.map_or(theirs.clock, |query| query.max(theirs.clock)));
        self.clock.tick();
        let used = self.used_ahead_of(seat, theirs);
        let Stamp { clock, node } = theirs;
        self.deferred.forget_before(node, oldest);
        if used > 0 {
            self.deferred.insert(Deferred { node, clock, query, oldest, told: used });
        }
        self.reply(theirs, used, query, out);
    }

    fn reply(&self, theirs: Stamp, used: u32, query: Option<u64>, out: &mut Outbox<Self>) {
        let (request, known) = (Some(theirs.clock), &self.detector.known);
        out.tell_with(theirs.node, || {
            let known = known.clone();
            Message::Reply { request, used, query, known }
        });
    }

    /// Takes what a peer may use ahead of one of our requests.
    pub(super) fn on_used(&mut self, seat: &Seat<'_, Self>, from: NodeId, clock: u64, used: u32) {
        let asked = if broken!(seat, UnmatchedReplies) {
            self.asked.iter_mut().find(|asked| matches!(asked.standing, AskedPhase::Waiting(_)))
        } else {
            // Broadcast spec E3: an answer counts for the request it names.
            self.asked.iter_mut().find(|asked| asked.clock == clock)
        };
        if let Some(Asked { standing: AskedPhase::Waiting(tally), .. }) = asked {
            tally.lower(from, used);
        }
    }

    /// A client is done with a claim, whatever became of it.
    pub(super) fn end(&mut self, seat: &Seat<'_, Self>, claim: ClaimId, out: &mut Outbox<Self>) {
        self.desk.remove(claim);
        let Some(place) = self.place_of(claim) else { return };
        if broken!(seat, ReleaseInTwoSteps) {
            std::mem::take(&mut self.deferred).retain(|deferred| {
                self.reply(deferred.stamp(), 0, deferred.query, out);
                false
            });
            return; // The state changes later, in `end_second_step`.
        }
        // Broadcast spec E6: the state changes first, so that whoever asks from now on is answered
        // as it is.
        let over = self.asked.remove(place);
        let is_watched = match over.standing {
            AskedPhase::Waiting(_) => false,
            AskedPhase::Held { .. } => seat.pool.lease.is_some(),
            AskedPhase::Lost => seat.pool.hold_max().is_some(),
        };
        if is_watched {
            out.disarm(Alarm::HoldEnd(claim));
        }
        if broken!(seat, DropDeferred) {
            self.deferred.clear();
        }
        self.answer_deferred(seat, out);
        self.join_if_idle(seat, out);
        self.ask(seat, out);
    }

    /// The second half of a release that is not atomic.
    #[cfg(test)]
    pub(super) fn end_second_step(&mut self, claim: ClaimId) {
        if let Some(place) = self.place_of(claim) {
            self.asked.remove(place);
            self.deferred.clear();
        }
    }

    /// Where a claim is among those asked for.
    pub(super) fn place_of(&self, claim: ClaimId) -> Option<usize> {
        self.asked.iter().position(|asked| asked.claim == claim)
    }

    /// Answers deferred requests again of which this node now uses less ahead than it last said.
    pub(super) fn answer_deferred(&mut self, seat: &Seat<'_, Self>, out: &mut Outbox<Self>) {
        let mut all = std::mem::take(&mut self.deferred);
        all.retain(|deferred| {
            let theirs = deferred.stamp();
            let used = self.used_ahead_of(seat, theirs);
            if used < deferred.told && !self.counting.is_out(theirs.node) {
                self.reply(theirs, used, deferred.query, out);
                deferred.told = used;
            }
            used > 0
        });
        self.deferred = all;
    }

    /// Messages may have been lost: says everything again that waits for an answer.
    pub(super) fn on_ring_retry(&mut self, seat: &Seat<'_, Self>, out: &mut Outbox<Self>) {
        self.retrying = false;
        self.announce(seat, out);
        if self.oldest_waiting().is_none() {
            return;
        }
        for peer in seat.pool.peers(seat.me).filter(|&peer| !self.counting.is_out(peer)) {
            self.ask_again(peer, out);
        }
        if let Some(retry) = seat.pool.retry {
            self.retrying = true;
            out.arm(Alarm::Retry, retry);
        }
    }

    /// Repeats every request that waits to a node that may stand in its way, and the query with it.
    pub(super) fn ask_again(&self, peer: NodeId, out: &mut Outbox<Self>) {
        let Some(oldest) = self.oldest_waiting() else { return };
        let query = self.detector.query.filter(|_| !self.detector.is_done());
        for asked in &self.asked {
            if let AskedPhase::Waiting(tally) = &asked.standing
                && tally.used(peer) > 0
            {
                let (clock, known) = (asked.clock, self.detector.known.clone());
                out.tell(peer, Message::Request { clock, oldest, query, known });
            }
        }
    }
}
