//! `broadcast`: ask everybody.
//!
//! Permission-based h-out-of-k exclusion without arbiters or quorums: a request goes to all nodes,
//! in the order of Lamport stamps everybody knows who is ahead, and one enters when those ahead
//! leave room. Four variants, two values:
//!
//! | variant | after | value, pool |
//! |---|---|---|
//! | Raymond | Raymond 1989: one unit, counted answers | [`Raymond`](crate::reference::Raymond), [`Pool::raymond`] |
//! | Raynal | Raynal 1991: h units, differences | [`Raynal`](crate::reference::Raynal), [`Pool::raynal`] |
//! | timer-free | Bouillaguet, Arantes, Sens 2009 (inria-00394918), corrected | [`Weighted`], [`Pool::timer_free`] |
//! | weighted | the last two combined; what the daemon runs | [`Weighted`], [`Pool::weighted`] |
//!
//! Timer-free *is* weighted with one unit per node. The two older ones are reference. Errata and
//! counterexamples are in the specification (broadcast spec E1 to E27, D1 to D8, P1 to P4).
//!
//! Units have no names here: a grant's units are numbered from 0. A node that restarts comes back
//! under weighted where something is leased, except with [`Reclaim::TrustRp`] (`join.rs`);
//! elsewhere it stays out, because it may have forgotten whom it let pass, and the others treat it
//! as crashed.

mod deaths;
mod deferred;
pub(crate) mod desk;
mod detect;
mod explore;
mod facts;
mod join;
pub(crate) mod message;
pub(crate) mod pool;
mod reclaim;
mod tally;
mod weighted;

#[cfg(test)]
mod tests;

use std::fmt;

use quorate_core::{
    ClaimId, Clock, Entry, Event, EventOf, Fact, Health, LeaseEnd, NodeId, NodeSet, Outbox,
    Outlook, Protocol, Purpose, Refusal, Seat, Stamp, Start,
};

use deferred::Deferrals;
use desk::Desk;
use detect::Detector;
use join::Membership;
use reclaim::Counting;
use weighted::{Asked, AskedPhase};

pub use deaths::Deaths;
pub use message::{Knowledge, Known, Life, Message};
pub use pool::{Pool, Reclaim};

/// One node's seat under the timer-free or the weighted protocol. Tolerates links that repeat and
/// reorder; with [`Pool::retry`] also links that lose.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Weighted {
    clock: Clock,
    desk: Desk,
    /// What this node's clients wait for or hold, oldest request first.
    asked: Vec<Asked>,
    deferred: Deferrals,
    detector: Detector,
    counting: Counting,
    /// Whether the retry alarm is armed. It is left to ring rather than disarmed.
    retrying: bool,
    /// Which life of this node this is.
    life: Life,
    /// How often others believed that this node had crashed, and it let go of everything.
    expulsions: u32,
    /// Whether it holds nothing and asks for nothing since.
    expelled: bool,
    membership: Membership,
}

/// The timers of the weighted protocol. Raymond and Raynal have none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Alarm {
    /// A request may have been lost: ask again.
    Retry,
    /// No query for a while: make one.
    Probe,
    /// The lease of this suspect has ended.
    LeaseEnd(NodeId),
    /// A client of this node has not renewed what it holds.
    HoldEnd(ClaimId),
    /// Clients of an earlier life have stopped by themselves.
    Grace,
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Alarm::Retry => f.write_str("retry"),
            Alarm::Probe => f.write_str("probe"),
            Alarm::LeaseEnd(node) => write!(f, "lease-end {node}"),
            Alarm::HoldEnd(claim) => write!(f, "hold-end {claim}"),
            Alarm::Grace => f.write_str("grace"),
        }
    }
}

/// What a node has reason to tell its operator at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Warnings {
    /// Others believe that this node has crashed, which it has not, and do not hear it; or it was
    /// expelled for such a belief and is not back.
    pub falsely_suspected: bool,
    /// More nodes do not answer, or where that stops leases are believed to have crashed, than the
    /// pool allows for: that many crashed, or the network is split.
    pub too_many_crashed: bool,
}

impl Weighted {
    /// Who is believed to have crashed.
    pub fn crashed(&self) -> &NodeSet {
        self.detector.crashed()
    }

    /// Who is no longer counted.
    pub fn counted_out(&self) -> &NodeSet {
        self.counting.out()
    }

    /// How many units are held only because somebody was counted out.
    pub fn reclaimed(&self) -> u32 {
        let reclaimed = |a: &&Asked| matches!(a.standing, AskedPhase::Held { clean: false, .. });
        self.asked.iter().filter(reclaimed).map(|asked| asked.units.get()).sum()
    }

    fn hear(
        &mut self,
        seat: &Seat<'_, Self>,
        from: NodeId,
        message: &mut Message,
        out: &mut Outbox<Self>,
    ) {
        let said = message.known();
        if let Some(what) = self.objection(seat, from, message, said) {
            return out.anomaly(from, what);
        }
        if self.membership == Membership::Out {
            return;
        }
        if let Some(known) = said {
            // In most pools no node is suspected.
            let is_usual = known.life == self.detector.life(from) && self.crashed().is_empty();
            if !is_usual && !self.is_timely(seat, from, message, known.life, out) {
                return;
            }
            if !known.crashed.is_empty() {
                self.learn(seat, &known.crashed, out);
            }
        }
        if self.counting.is_out(from) {
            // It may have sent this before it died; if it lives it must know (broadcast spec 7.2).
            out.tell(from, Message::Expelled { life: self.detector.life(from) });
        }
        match message {
            &mut Message::Request { clock, oldest, query, .. } => {
                self.on_request(seat, Stamp { clock, node: from }, oldest, query, out);
            }
            &mut Message::Reply { request, used, query, ref mut known } => {
                let current = query.is_some() && query == self.detector.query; // Broadcast spec E3.
                if current || (query.is_some() && pool::broken!(seat, UnmatchedReplies)) {
                    self.on_answer(seat, from, std::mem::take(known), out);
                }
                if let Some(clock) = request {
                    self.on_used(seat, from, clock, used);
                }
            }
            rare => self.hear_rare(seat, from, rare, out),
        }
        self.check(seat, out); // Broadcast spec E4b: whatever was heard may have made room.
    }

    /// Whatever is neither a request nor a reply: apart, so that those two are told apart by one
    /// look.
    #[inline(never)]
    fn hear_rare(
        &mut self,
        seat: &Seat<'_, Self>,
        from: NodeId,
        message: &Message,
        out: &mut Outbox<Self>,
    ) {
        match *message {
            Message::Request { .. } | Message::Reply { .. } => unreachable!("they are frequent"),
            Message::Query { query, .. } => self.answer_query(from, query, out),
            Message::Notice { .. } => {}
            Message::Join { life } => self.on_join(seat, from, life, out),
            Message::Joined { life, clock, .. } => self.on_joined(seat, from, (life, clock), out),
            Message::Expelled { life } => self.on_expelled(seat, life, out),
        }
    }

    pub(super) fn answer_query(&mut self, from: NodeId, query: u64, out: &mut Outbox<Self>) {
        // If the asker restarts and joins, the clock that this node tells it must be behind all
        // queries of its earlier life.
        self.clock.hear(query);
        let (query, known) = (Some(query), self.detector.known.clone());
        out.tell(from, Message::Reply { request: None, used: 0, query, known });
    }

    /// Why no correct peer could have sent this.
    fn objection(
        &self,
        seat: &Seat<'_, Self>,
        from: NodeId,
        message: &Message,
        said: Option<&Knowledge>,
    ) -> Option<&'static str> {
        if from.0 >= seat.pool.nodes || from == seat.me {
            return Some("a message from a node that is not of this pool");
        }
        if said.is_some_and(|known| !self.detector.is_sound(known)) {
            return Some("a belief about a node that is not of this pool");
        }
        let latest = match *message {
            Message::Request { clock, oldest, query, .. } => {
                if oldest > clock {
                    return Some("a request younger than itself");
                }
                query.map_or(clock, |query| query.max(clock))
            }
            Message::Reply { request, used, query, .. } => {
                if used > seat.pool.node_units_max {
                    return Some("more units in use than a node may have");
                }
                let is_unasked = self.is_member() && request.max(query) > Some(self.clock.0);
                if is_unasked && !pool::broken!(seat, ClockNotAdvanced) {
                    return Some("an answer to what was never asked");
                }
                0
            }
            ref rare => rare.latest(),
        };
        (latest > message::CLOCK_MAX).then_some("a clock that cannot have been reached")
    }
}

impl Protocol for Weighted {
    type Pool = Pool;
    type Message = Message;
    type Alarm = Alarm;
    type Durable = ();

    const NAME: &'static str = "broadcast";
    const KINDS: &'static [&'static str] = Message::KINDS;

    fn boot(seat: &Seat<'_, Self>, start: Start<()>, out: &mut Outbox<Self>) -> Self {
        seat.pool.assert_sound();
        // Whoever was there when the pool began is known without joining: its life is the first.
        let life = if start == Start::First { 0 } else { message::first_life(seat.boot) };
        let membership = match (start, seat.pool.hold_max()) {
            (Start::First, _) => {
                if let Some(pace) = seat.pool.probe {
                    out.arm(Alarm::Probe, pace);
                }
                Membership::Member
            }
            (_, Some(grace)) if seat.pool.can_rejoin() => {
                out.arm(Alarm::Grace, grace);
                Membership::Grace
            }
            _ => Membership::Out,
        };
        let mut node = Weighted::new(seat.pool.nodes, life, membership);
        node.detector.begin(seat.me, life);
        if node.membership == Membership::Grace && pool::broken!(seat, NoGrace) {
            out.disarm(Alarm::Grace);
            node.join(seat, out);
        }
        node
    }

    fn step(&mut self, seat: &Seat<'_, Self>, mut event: EventOf<Self>, out: &mut Outbox<Self>) {
        // Nearly everything is heard, and looked at where it lies.
        if let Event::Hear { from, message } = &mut event {
            return self.hear(seat, *from, message, out);
        }
        match event {
            Event::Claim(claim) => match Desk::objection(&claim, seat.pool.node_units_max) {
                Some(why) => out.refuse(claim.id, why),
                None if self.place_of(claim.id).is_some() => {}
                None => {
                    self.desk.push(&claim);
                    self.ask(seat, out);
                }
            },
            Event::Release(claim) | Event::Withdraw(claim) => self.end(seat, claim, out),
            #[cfg(test)]
            Event::Cancel(claim) if pool::broken!(seat, ReleaseInTwoSteps) => {
                self.end_second_step(claim);
            }
            Event::Cancel(claim) => {
                self.end(seat, claim, out);
                out.refuse(claim, Refusal::Cancelled);
            }
            Event::Renew { claim, .. } => self.on_renew(seat, claim, out),
            Event::Hear { .. } => unreachable!("heard above"),
            Event::Ring(Alarm::Retry) => self.on_ring_retry(seat, out),
            Event::Ring(Alarm::Probe) => self.on_ring_probe(seat, out),
            Event::Ring(Alarm::LeaseEnd(node)) => self.on_ring_lease_end(seat, node, out),
            Event::Ring(Alarm::HoldEnd(claim)) => self.on_ring_hold_end(seat, claim, out),
            Event::Ring(Alarm::Grace) => self.on_ring_grace(seat, out),
            Event::Suspect(node) => self.on_fenced(seat, node, out),
            Event::Trust(_) | Event::Charter(_) => {}
        }
    }

    fn audit(&self, seat: &Seat<'_, Self>) {
        let asked: u32 = self.asked.iter().map(|asked| asked.units.get()).sum();
        assert!(asked <= seat.pool.node_units_max, "a node asks for no more than it may use");
        for asked in &self.asked {
            if let AskedPhase::Waiting(tally) = &asked.standing {
                tally.audit();
                assert_eq!(tally.used(seat.me), 0, "nobody waits for itself twice");
            }
        }
        assert!(self.asked.is_sorted_by_key(|asked| asked.clock));
        self.deferred.audit();
        assert!(!self.asked.is_empty() || self.deferred.is_empty(), "only who uses units defers");
        let is_lost = |asked: &Asked| asked.standing == AskedPhase::Lost;
        assert!(self.is_member() || self.asked.iter().all(is_lost));
        self.audit_counting(seat);
    }

    fn ledger(&self, _: &mut dyn FnMut(Entry)) {}

    fn health(&self, seat: &Seat<'_, Self>) -> Health {
        self.condition(seat)
    }

    fn outlook(&self, seat: &Seat<'_, Self>, away: &NodeSet) -> Outlook {
        self.prospect(seat, away)
    }

    fn facts(&self, seat: &Seat<'_, Self>, show: &mut dyn FnMut(Fact)) {
        self.show_facts(seat, show);
    }

    /// A suspect's lease is a node's, not a claim's: a checker that takes no order as given finds
    /// what happens without one.
    fn lease_end(alarm: &Alarm) -> LeaseEnd {
        match alarm {
            Alarm::Retry | Alarm::Probe | Alarm::LeaseEnd(_) => LeaseEnd::Nothing,
            Alarm::HoldEnd(claim) => LeaseEnd::Of(*claim),
            Alarm::Grace => LeaseEnd::Earlier,
        }
    }

    fn purpose(alarm: &Alarm) -> Purpose {
        match alarm {
            Alarm::Retry => Purpose::Retry,
            Alarm::LeaseEnd(_) | Alarm::HoldEnd(_) | Alarm::Grace => Purpose::Lease,
            Alarm::Probe => Purpose::Probe,
        }
    }

    fn kind(message: &Message) -> usize {
        message.kind()
    }

    fn capacity(pool: &Pool) -> u32 {
        pool.units
    }

    fn overtakes_max(_: &Pool) -> Option<u32> {
        None
    }

    fn names_units(_: &Pool) -> bool {
        false
    }

    fn can_lose(pool: &Pool, dead: &NodeSet) -> bool {
        pool.survives(dead.len())
    }

    /// Under leases up to `crashes_max` are counted out sooner or later, and cost nothing then.
    fn grants(pool: &Pool, away: &NodeSet) -> Outlook {
        let too_many = pool.is_leased() && away.len() > pool.crashes_max as usize;
        match pool.is_leased() && !too_many {
            true => pool.outlook(&NodeSet::new(), false),
            false => pool.outlook(away, too_many),
        }
    }
}
