//! Raymond 1989 and Raynal 1991: permissions as differences.
//!
//! A request goes to everybody, and everybody owes an answer to it. Who is not interested answers
//! at once; who is ahead answers when it has left. One enters when what is still owed leaves room.
//!
//! | | Raymond, *A distributed algorithm for multiple entries to a critical section* | Raynal, *A distributed solution to the k-out of-M resources allocation problem* |
//! |---|---|---|
//! | a request is owed | one answer | M units |
//! | who is ahead answers at once | nothing | M - h |
//! | and when it leaves, per request | one answer | h |
//! | one enters when | fewer than k nodes owe anything | h + what is owed is at most M |
//!
//! The rest is the same and stands here once. What is owed is added up over all requests of a node
//! and never overwritten: an answer to an older request can then not be taken for one to the
//! current one, and who made several requests wait answers all of them (broadcast spec D6, D7 and
//! P4).
//!
//! A node serves its clients one at a time, oldest first: with two requests of one node under way
//! an answer could not say which of them it is for. Links must deliver each message exactly once,
//! in any order. A crashed node owes for ever: Raymond's pool loses a unit with each crash,
//! Raynal's blocks. A node that restarts stays out, since it may have forgotten whom it let pass.

use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;

use quorate_core::{
    ClaimId, Clock, Entry, Event, EventOf, Explorable, LeaseEnd, Moment, NodeId, NodeSet, Outbox,
    Protocol, Refusal, Seat, Stamp, Start, Units, numbers,
};

use crate::broadcast::desk::{Desk, shares};
use crate::broadcast::message::{CLOCK_MAX, Message};
use crate::broadcast::pool::{Pool, broken};

/// In what Raymond and Raynal differ.
pub trait Rule: Copy + Eq + Hash + fmt::Debug {
    /// The protocol's name.
    const NAME: &'static str;
    /// What everybody owes for one request.
    fn debt(pool: &Pool) -> u64;
    /// How much of it who is ahead with `units` owes until it leaves.
    fn withheld(units: Units) -> u64;
    /// How many units a node that owes this much may be using.
    fn used(owed: u64) -> u64;
    /// Whether everybody else is still served if these never come back.
    fn can_lose(pool: &Pool, dead: &NodeSet) -> bool;
}

/// See [`Raymond`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RaymondRule;

impl Rule for RaymondRule {
    const NAME: &'static str = "raymond";

    fn debt(_: &Pool) -> u64 {
        1
    }

    fn withheld(_: Units) -> u64 {
        1
    }

    fn used(owed: u64) -> u64 {
        owed.min(1)
    }

    fn can_lose(pool: &Pool, dead: &NodeSet) -> bool {
        dead.len() < pool.units as usize
    }
}

/// See [`Raynal`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RaynalRule;

impl Rule for RaynalRule {
    const NAME: &'static str = "raynal";

    fn debt(pool: &Pool) -> u64 {
        u64::from(pool.units)
    }

    fn withheld(units: Units) -> u64 {
        u64::from(units.get())
    }

    fn used(owed: u64) -> u64 {
        owed
    }

    fn can_lose(_: &Pool, dead: &NodeSet) -> bool {
        dead.is_empty()
    }
}

/// Raymond's protocol: one unit per claim.
pub type Raymond = Counted<RaymondRule>;
/// Raynal's protocol: several units per claim.
pub type Raynal = Counted<RaynalRule>;

/// One node's seat under [`Raymond`] or [`Raynal`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Counted<R: Rule> {
    pub(crate) clock: Clock,
    desk: Desk,
    pub(crate) asked: Option<Asked>,
    /// What each node still owes, over all requests of this node.
    owed: Vec<u64>,
    /// How many units the others may be using: what they owe, weighed and added up.
    used: u64,
    /// How many requests of each node wait until we leave.
    deferred: Vec<u32>,
    /// Whether this is the first boot; a later one stays out.
    member: bool,
    rule: PhantomData<R>,
}

/// The claim that is being served.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Asked {
    claim: ClaimId,
    units: Units,
    pub(crate) clock: u64,
    held: bool,
}

impl<R: Rule> Counted<R> {
    /// The request of the oldest client, if none is under way.
    fn ask(&mut self, seat: &Seat<'_, Self>, out: &mut Outbox<Self>) {
        if self.asked.is_some() || !self.member {
            return;
        }
        let Some((claim, units)) = self.desk.next_within(seat.pool.node_units_max) else { return };
        let clock = self.clock.tick();
        self.asked = Some(Asked { claim, units, clock, held: false });
        for peer in seat.pool.peers(seat.me) {
            let before = self.owed[peer.index()];
            let debt = R::debt(seat.pool);
            let after = if broken!(seat, AssignUsed) { debt } else { before.saturating_add(debt) };
            self.owe(peer, after);
            out.tell_with(peer, || Difference::Request { clock });
        }
        self.check(seat, out);
    }

    /// Sets what a node owes.
    fn owe(&mut self, peer: NodeId, after: u64) {
        let before = std::mem::replace(&mut self.owed[peer.index()], after);
        self.used = self.used - R::used(before) + R::used(after);
    }

    /// Enters if there is room.
    fn check(&mut self, seat: &Seat<'_, Self>, out: &mut Outbox<Self>) {
        let Some(asked) = self.asked.as_mut().filter(|asked| !asked.held) else { return };
        // Capacity: who owes something may be using units.
        if u64::from(asked.units.get()) + self.used <= u64::from(seat.pool.units) {
            asked.held = true;
            out.grant(asked.claim, shares(asked.units), Moment::NEVER);
        }
    }

    fn on_request(
        &mut self,
        seat: &Seat<'_, Self>,
        from: NodeId,
        clock: u64,
        out: &mut Outbox<Self>,
    ) {
        self.clock.hear(clock);
        let debt = R::debt(seat.pool);
        let theirs = Stamp { clock, node: from };
        let ahead = self
            .asked
            .as_ref()
            .filter(|ours| ours.held || Stamp { clock: ours.clock, node: seat.me } < theirs);
        let mut amount = debt;
        if let Some(ours) = ahead {
            amount -= R::withheld(ours.units);
            let deferred = &mut self.deferred[from.index()];
            *deferred = if broken!(seat, DeferOnce) { 1 } else { deferred.saturating_add(1) };
        }
        if amount > 0 {
            out.tell_with(from, || Difference::Permit { amount });
        }
    }

    fn on_permit(
        &mut self,
        seat: &Seat<'_, Self>,
        from: NodeId,
        amount: u64,
        out: &mut Outbox<Self>,
    ) {
        let owed = self.owed[from.index()];
        let left = owed.checked_sub(amount).filter(|_| amount > 0);
        let left = if broken!(seat, AssignUsed) { Some(owed.saturating_sub(amount)) } else { left };
        match left {
            Some(left) => self.owe(from, left),
            None => return out.anomaly(from, "an answer to more than was asked"),
        }
        self.check(seat, out);
    }

    /// The claim being served is over, granted or not: those who waited for it are answered, and
    /// the next client's turn comes. What this node is still owed stays owed.
    fn leave(&mut self, seat: &Seat<'_, Self>, out: &mut Outbox<Self>) {
        let asked = self.asked.take().expect("only who asked leaves");
        for peer in seat.pool.peers(seat.me) {
            let requests = u64::from(std::mem::take(&mut self.deferred[peer.index()]));
            if requests == 0 || broken!(seat, DropDeferred) {
                continue;
            }
            let requests = if broken!(seat, LoseCount) { 1 } else { requests };
            out.tell(peer, Difference::Permit { amount: requests * R::withheld(asked.units) });
        }
        self.ask(seat, out);
    }

    /// A client is done with a claim, whatever became of it.
    fn end(&mut self, seat: &Seat<'_, Self>, claim: ClaimId, out: &mut Outbox<Self>) {
        if self.asked.as_ref().is_some_and(|asked| asked.claim == claim) {
            self.leave(seat, out);
        } else {
            self.desk.remove(claim);
        }
    }

    fn hear(
        &mut self,
        seat: &Seat<'_, Self>,
        from: NodeId,
        message: &Difference,
        out: &mut Outbox<Self>,
    ) {
        if from.0 >= seat.pool.nodes || from == seat.me {
            return out.anomaly(from, "a message from a node that is not of this pool");
        }
        if !self.member {
            return;
        }
        match *message {
            Difference::Request { clock } if clock > CLOCK_MAX => {
                out.anomaly(from, "a clock that cannot have been reached");
            }
            Difference::Request { clock } => self.on_request(seat, from, clock, out),
            Difference::Permit { amount } => self.on_permit(seat, from, amount, out),
        }
    }
}

impl<R: Rule> Protocol for Counted<R> {
    type Pool = Pool;
    type Message = Difference;
    type Alarm = std::convert::Infallible;
    type Durable = ();

    const NAME: &'static str = R::NAME;
    const KINDS: &'static [&'static str] = Difference::KINDS;

    fn boot(seat: &Seat<'_, Self>, start: Start<()>, _: &mut Outbox<Self>) -> Self {
        seat.pool.assert_sound();
        let nodes = seat.pool.nodes as usize;
        Counted {
            clock: Clock::default(),
            desk: Desk::default(),
            asked: None,
            owed: vec![0; nodes],
            used: 0,
            deferred: vec![0; nodes],
            member: start == Start::First,
            rule: PhantomData,
        }
    }

    fn step(&mut self, seat: &Seat<'_, Self>, event: EventOf<Self>, out: &mut Outbox<Self>) {
        match event {
            Event::Claim(claim) => match Desk::objection(&claim, seat.pool.node_units_max) {
                Some(why) => out.refuse(claim.id, why),
                None if self.asked.as_ref().is_some_and(|asked| asked.claim == claim.id) => {}
                None => {
                    self.desk.push(&claim);
                    self.ask(seat, out);
                }
            },
            Event::Release(claim) | Event::Withdraw(claim) => self.end(seat, claim, out),
            Event::Cancel(claim) => {
                self.end(seat, claim, out);
                out.refuse(claim, Refusal::Cancelled);
            }
            Event::Renew { claim, .. } => {
                // Nothing is leased: it is held here, or its holder outlived an earlier boot.
                if self.asked.as_ref().is_none_or(|asked| asked.claim != claim) {
                    out.lose(claim);
                }
            }
            Event::Hear { from, message } => self.hear(seat, from, &message, out),
            Event::Ring(never) => match never {},
            Event::Suspect(_) | Event::Trust(_) | Event::Charter(_) => {}
        }
    }

    fn audit(&self, seat: &Seat<'_, Self>) {
        assert_eq!(self.owed[seat.me.index()], 0, "nobody owes itself");
        assert_eq!(self.used, self.owed.iter().map(|&owed| R::used(owed)).sum::<u64>());
        assert!(self.asked.is_some() || self.deferred.iter().all(|&requests| requests == 0));
        assert!(self.asked.is_some() || self.desk.is_empty() || !self.member);
    }

    fn ledger(&self, _: &mut dyn FnMut(Entry)) {}

    fn lease_end(alarm: &std::convert::Infallible) -> LeaseEnd {
        match *alarm {}
    }

    fn kind(message: &Difference) -> usize {
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
        R::can_lose(pool, dead)
    }
}

#[cfg(test)]
impl<R: Rule> Counted<R> {
    pub(crate) fn units_held(&self) -> u32 {
        self.asked.as_ref().filter(|asked| asked.held).map_or(0, |asked| asked.units.get())
    }

    /// Forgets what a node that is gone was made to wait for.
    pub(crate) fn forget_deferred(&mut self, node: NodeId) {
        self.deferred[node.index()] = 0;
    }

    /// Whether nothing is owed and nobody is made to wait, as it must be when all is quiet.
    pub(crate) fn is_settled(&self) -> bool {
        self.owed.iter().all(|&owed| owed == 0) && self.deferred.iter().all(|&waits| waits == 0)
    }
}

/// A message of Raymond's and Raynal's protocols, whose answers are differences: each must arrive
/// exactly once.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u64)]
#[allow(missing_docs, reason = "the fields are described once, below")]
pub enum Difference {
    /// Raymond: `amount` requests of yours are answered (REPLY(count)). Raynal: `amount` of the
    /// units you were not sure of are not used by me (NOT_USED).
    Permit { amount: u64 },
    /// A request, `clock` being its timestamp.
    Request { clock: u64 },
}

impl Difference {
    const KINDS: &'static [&'static str] = Message::ALL_KINDS.split_at(2).0;

    fn kind(&self) -> usize {
        match self {
            Difference::Permit { .. } => 0,
            Difference::Request { .. } => 1,
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::KINDS[self.kind()])?;
        match self {
            Difference::Permit { amount } => write!(f, " x{amount}"),
            Difference::Request { clock } => write!(f, " @{clock}"),
        }
    }
}

impl<R: Rule> Explorable for Counted<R> {
    fn promise(_: &Difference) -> Option<ClaimId> {
        None
    }
}

numbers!([R: Rule] Counted<R> {
    clock,
    desk: plain,
    asked,
    owed: plain,
    used: plain,
    deferred,
    member,
    rule: plain,
});
numbers!(Asked { claim, units, clock: clock, held });
numbers!(
    enum Difference {
        Permit { amount: plain },
        Request { clock: clock },
    }
);
