//! `central`: one node decides.
//!
//! The singleton k-arbiter of Baldoni, Manabe, Raynal and Aoyagi (RR-2523, section 4.2.1): one
//! arbiter, whose single permission suffices. Every node is a requester for its own clients; the
//! node named in the pool is the arbiter as well. What follows is the protocol of quorums
//! (arbiter spec 7.3 and 7.4) with everything gone that one arbiter does not need (preemption,
//! re-selection), and with its recovery rules (arbiter spec C1 to C3).
//!
//! | message | from, to | means |
//! |---|---|---|
//! | `request` | requester to arbiter | put this claim in the queue, or tell me again how it stands |
//! | `grant` | arbiter to requester | these units are yours, for one lease |
//! | `release` | requester to arbiter | the claim is over, for good |
//! | `decline` | requester to arbiter | I do not want this grant: I no longer have the claim it answers |
//! | `renew` | requester to arbiter | I have these units; let the lease start again |
//! | `renewed` | arbiter to requester | it did |
//! | `lost` | arbiter to requester | the claim has no units here |
//! | `move` | arbiter to requester | you have this unit too; leave that one, and renew without it |
//! | `refused` | arbiter to requester | as units are now, the claim can never be granted |
//!
//! A grant costs `request`, `grant`, `release`: three messages for a remote client, none for a
//! local one. Nothing here needs ordered, lossless or duplicate-free links:
//!
//! * *Lost requests and lost grants.* A requester repeats what waits too long (alarm `retry`); the
//!   arbiter answers a repeated request with the same grant, or not at all while it waits.
//! * *Stale messages.* Every request carries an [`Attempt`]; the arbiter's answers repeat it, and
//!   an answer to another attempt is not taken. A grant whose claim is gone is declined, and a
//!   decline counts only against the attempt it names, so that no tombstones are needed (arbiter
//!   spec 7.6, M8, M14).
//! * *Lost releases.* The lease ends by itself.
//! * *A restarted requester* knows nothing of its clients' claims, and they may still be using
//!   their units. It never declines what an earlier boot asked for (arbiter spec C3): clients
//!   repeat their claim, renew or release through it under the claim's name, or the lease ends.
//! * *A restarted arbiter* reloads its record (`durable`), or waits out one lease before it
//!   promises anything (*grace*), while holders that renew get their units back into its books.
//!
//! Suspicion frees no units: leases do that soundly. It takes the waiting claims of a node that
//! seems dead out of their turn, until a node asks for them again (`absent`).

mod absent;
pub(crate) mod arbiter;
pub(crate) mod booked;
mod explore;
mod leases;
mod message;
mod moves;
pub mod moving;
pub(crate) mod orders;
pub(crate) mod pool;
mod record;
mod requester;
mod schedule;
#[cfg(test)]
pub(crate) mod tests;

use std::fmt;

use quorate_core::{
    ClaimId, Entry, Event, EventOf, Fact, Health, Hurdle, LeaseEnd, NodeId, NodeSet, Obeys, Order,
    Outbox, Outlook, Protocol, Purpose, Refusal, Relabelled, Shortage, Start, Unit,
};

use arbiter::Arbiter;
use pool::broken;
use requester::Requester;

pub use crate::attempt::Attempt;
pub use arbiter::Record;
pub use message::Message;
#[cfg(test)]
pub(crate) use pool::Mutant;
pub use pool::Pool;
pub use record::RecordLine;

/// One node's seat in a pool that one node decides.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Central {
    requester: Requester,
    /// On the pool's arbiter only, and then boxed: every other seat stays small.
    pub(crate) arbiter: Option<Box<Arbiter>>,
}

/// The timers of `central`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Alarm {
    /// Requester: ask again for what has waited too long.
    Retry,
    /// Arbiter: the holder of this claim did not renew in time.
    LeaseEnd(ClaimId),
    /// Arbiter: whatever was promised before the boot is over.
    Grace,
    /// Arbiter: claims of this node, which seemed dead, are not asked for any more.
    Absent(NodeId),
    /// Arbiter: the record has grants that are over.
    WriteDown,
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Alarm::Retry => f.write_str("retry"),
            Alarm::LeaseEnd(claim) => write!(f, "lease-end {claim}"),
            Alarm::Grace => f.write_str("grace"),
            Alarm::Absent(node) => write!(f, "absent {node}"),
            Alarm::WriteDown => f.write_str("write-down"),
        }
    }
}

type Post<'a> = crate::post::Post<'a, Central>;
type Seat<'a> = quorate_core::Seat<'a, Central>;

impl Central {
    /// For a driver in whose pools nothing happens for long: gives back room that is not needed.
    /// The seat is the same afterwards.
    pub fn rest(&mut self) {
        self.requester.rest();
        if let Some(arbiter) = &mut self.arbiter {
            arbiter.rest();
        }
    }

    #[inline(always)]
    fn hear(&mut self, seat: &Seat<'_>, from: NodeId, message: Message, post: &mut Post<'_>) {
        if message.is_for_arbiter() {
            match &mut self.arbiter {
                Some(arbiter) => arbiter.hear(seat, from, message, post),
                None => post.out.anomaly(from, "a message for the arbiter, which this node is not"),
            }
        } else if from == seat.pool.arbiter {
            self.requester.hear(seat, None, message, post);
        } else {
            post.out.anomaly(from, "an arbiter's message from a node that is not the arbiter");
        }
    }

    fn deliver_own(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        while let Some(message) = post.next_own() {
            self.hear(seat, seat.me, message, post);
        }
    }
}

impl Protocol for Central {
    type Pool = Pool;
    type Message = Message;
    type Alarm = Alarm;
    type Durable = Record;

    const NAME: &'static str = "central";
    const KINDS: &'static [&'static str] = Message::KINDS;

    fn boot(seat: &Seat<'_>, start: Start<Record>, out: &mut Outbox<Self>) -> Self {
        let arbiter =
            (seat.me == seat.pool.arbiter).then(|| Box::new(Arbiter::boot(seat, start, out)));
        Central { requester: Requester::default(), arbiter }
    }

    fn step(&mut self, seat: &Seat<'_>, event: EventOf<Self>, out: &mut Outbox<Self>) {
        let post = &mut Post::new(seat.me, out);
        match event {
            Event::Claim(claim) => self.requester.on_claim(seat, &claim, post),
            Event::Release(claim) => self.requester.on_release(seat, claim, post),
            Event::Cancel(claim) if broken!(seat, ForgetCancel) => {
                post.out.refuse(claim, Refusal::Cancelled);
            }
            Event::Cancel(claim) => self.requester.on_cancel(seat, claim, post),
            Event::Withdraw(claim) => self.requester.on_withdraw(seat, claim, post),
            Event::Renew { claim, shares } => self.requester.on_renew(seat, claim, shares, post),
            Event::Hear { from, message } => self.hear(seat, from, message, post),
            Event::Ring(Alarm::Retry) => self.requester.on_ring_retry(seat, post),
            Event::Ring(alarm) => {
                let arbiter = self.arbiter.as_mut().expect("only an arbiter arms this alarm");
                match alarm {
                    Alarm::LeaseEnd(claim) => arbiter.on_ring_lease_end(seat, claim, post),
                    Alarm::Grace => arbiter.on_ring_grace(seat, post),
                    Alarm::WriteDown => arbiter.on_ring_write_down(seat, post),
                    Alarm::Absent(node) => arbiter.on_ring_absent(node),
                    Alarm::Retry => unreachable!("it is the requester's"),
                }
            }
            Event::Suspect(node) => {
                if let Some(arbiter) = &mut self.arbiter {
                    arbiter.on_suspect(seat, node, post);
                }
            }
            Event::Trust(node) if node == seat.pool.arbiter => {
                self.requester.ask_all_again(seat, post);
            }
            Event::Trust(_) | Event::Charter(_) => {}
        }
        self.deliver_own(seat, post);
    }

    fn audit(&self, seat: &Seat<'_>) {
        assert_eq!(self.arbiter.is_some(), seat.me == seat.pool.arbiter);
        if let Some(arbiter) = &self.arbiter {
            arbiter.audit(seat);
        }
    }

    fn ledger(&self, show: &mut dyn FnMut(Entry)) {
        if let Some(arbiter) = &self.arbiter {
            arbiter.ledger(show);
        }
    }

    fn health(&self, _seat: &Seat<'_>) -> Health {
        let in_grace = self.arbiter.as_ref().is_some_and(|arbiter| arbiter.grace);
        Health { in_grace, ..Health::default() }
    }

    fn facts(&self, _seat: &Seat<'_>, show: &mut dyn FnMut(Fact)) {
        if let Some(arbiter) = &self.arbiter {
            show(Fact::gauge("decides", true));
            show(Fact::gauge("in_grace", arbiter.grace));
        }
    }

    fn explain(&self, _seat: &Seat<'_>, claim: ClaimId) -> Option<Shortage> {
        self.arbiter.as_ref()?.explain(claim)
    }

    fn lease_end(alarm: &Alarm) -> LeaseEnd {
        match alarm {
            Alarm::Retry | Alarm::WriteDown | Alarm::Absent(_) => LeaseEnd::Nothing,
            Alarm::LeaseEnd(claim) => LeaseEnd::Of(*claim),
            Alarm::Grace => LeaseEnd::Earlier,
        }
    }

    fn rings_at_stop(alarm: &Alarm) -> bool {
        *alarm == Alarm::WriteDown
    }

    fn purpose(alarm: &Alarm) -> Purpose {
        match alarm {
            Alarm::Retry => Purpose::Retry,
            Alarm::LeaseEnd(_) | Alarm::Grace | Alarm::Absent(_) => Purpose::Lease,
            Alarm::WriteDown => Purpose::Protocol,
        }
    }

    fn kind(message: &Message) -> usize {
        message.kind()
    }

    fn capacity(pool: &Pool) -> u32 {
        pool.goods.units
    }

    fn overtakes_max(pool: &Pool) -> Option<u32> {
        pool.goods.overtakes_max()
    }

    fn can_lose(pool: &Pool, dead: &NodeSet) -> bool {
        !dead.contains(pool.arbiter)
    }

    fn grants(pool: &Pool, away: &NodeSet) -> Outlook {
        #[cfg(test)]
        if pool.goods.mutant == Some(Mutant::PromiseWithoutArbiter) {
            return Outlook::all(pool.goods.units);
        }
        match away.contains(pool.arbiter) {
            true => Outlook::nothing(Hurdle::Away([pool.arbiter].into_iter().collect())),
            false => Outlook::all(pool.goods.units),
        }
    }
}

impl Obeys for Central {
    fn obey(&mut self, seat: &Seat<'_>, order: Order, out: &mut Outbox<Self>) -> bool {
        let Some(arbiter) = &mut self.arbiter else { return false };
        let relabels = matches!(order, Order::Relabel { .. });
        if order.unit().0 >= seat.pool.goods.units || (relabels && seat.pool.goods.labels.is_none())
        {
            return false;
        }
        let post = &mut Post::new(seat.me, out);
        arbiter.obey(seat, order, post);
        self.deliver_own(seat, post);
        true
    }

    fn drained(&self, show: &mut dyn FnMut(Unit, bool)) {
        let Some(arbiter) = &self.arbiter else { return };
        for unit in arbiter.allocator.drained() {
            show(unit, arbiter.entries.values().any(|booked| orders::holds(booked, unit)));
        }
    }

    fn relabelled(&self) -> Option<Relabelled<'_>> {
        self.arbiter.as_ref().map(|arbiter| arbiter.tags.changed())
    }
}
