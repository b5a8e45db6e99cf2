//! `arbiter`: quorums decide, and no node is special.
//!
//! The protocol of Baldoni, Manabe, Raynal and Aoyagi (*k-Arbiter*, RR-2523, 1995, section 3.1),
//! with Maekawa's preemption made to work for many units. Every node is a requester for its own
//! clients; the members of the pool's quorums are arbiters as well. A claim for h units asks a
//! quorum; each arbiter gives permissions for at most k units in all; a client whose quorum has
//! given them may go. Over-allocation needs at most k+1 holders, whose quorums share an arbiter,
//! which would have had to give more than k (arbiter spec 7.5). With named units any two quorums
//! must share one.
//!
//! | message | from, to | means |
//! |---|---|---|
//! | `request` | requester to arbiter | put this claim in the queue, or tell me again how it stands |
//! | `grant` | arbiter to requester | you have my permission, for one lease |
//! | `queued` | arbiter to requester | I know, and it waits |
//! | `inquire` | arbiter to requester | an older claim needs that permission: are you using it? |
//! | `yield` | requester to arbiter | no: take it back, I wait again |
//! | `release` | requester to arbiter | the claim is over here |
//! | `renew` | requester to arbiter | I have this permission; let the lease start again |
//! | `renewed` | arbiter to requester | it did |
//! | `lost` | arbiter to requester | you do not have that permission |
//! | `retoken` | requester to arbiter | the fence will be larger than I said |
//! | `retokened` | arbiter to requester | I know |
//! | `survey` | arbiter to arbiter | I forgot: what fences were there? |
//! | `report` | arbiter to arbiter | none above this |
//! | `name` | requester to arbiter | these units, now that I have a quorum's permissions |
//! | `named` | arbiter to requester | they are yours |
//! | `taken` | arbiter to requester | pick others, unless your client uses them |
//! | `roll` | arbiter to requester | somebody waits: what do you still have here? |
//! | `alive` | requester to arbiter | this, of all that I asked for |
//!
//! A quiet grant costs `request`, `grant`, `release` per arbiter: 3(|Q|-1) messages if the
//! requester is one of its quorum. Nothing here needs ordered, lossless or duplicate-free links.
//!
//! Where we differ from the paper, and why:
//!
//! * *One entry per claim and home*, never a counter per node (arbiter spec E3, M3). A claim
//!   repeated at another node, or after a restart of its own, is served beside the first ([`Bid`]).
//! * *Preemption* (`inquire`, `yield`): without it crossed requests deadlock. It is considered
//!   after every change and not only on arrival, asks only younger claims, and only where that
//!   helps: elders go first (arbiter spec M1, M5 and M10).
//! * *Numbers.* Attempts tell an arbiter enlisted again from the first time, grant numbers a
//!   permission given again from the one that was yielded. A permission for which nobody waits is
//!   released at once, so no tombstones are needed (arbiter spec M14, M2 and M8).
//! * *Leases, renewal, grace, a durable record, re-selection* around nodes that seem dead,
//!   *migration* of what is held to other arbiters, *fences* with floors (arbiter spec C1 to C6).
//! * *Units.* In `Mode::Named` each unit is a lock (arbiter spec 7.11), and a grant has exactly the
//!   units it locked. In `Mode::Count` a pool of several units only counts: a grant's units are
//!   numbered from 0 and its fences mean nothing ([`Protocol::names_units`]), unless
//!   [`Pool::naming`] adds the round of messages in which holders agree who has which (arbiter spec
//!   C7).
//! * *What nobody waits for* ends before its lease if somebody is in need (arbiter spec C10).

mod booked;
mod choice;
mod explore;
mod floors;
mod grantor;
mod hearing;
mod local;
mod message;
mod naming;
mod offers;
mod picking;
mod pool;
mod record;
mod recovery;
mod requester;
mod roll;
mod schedule;
mod survey;
#[cfg(test)]
mod tests;

use std::fmt;

use quorate_core::{
    Entry, Event, EventOf, Fact, Health, LeaseEnd, NodeId, NodeSet, Outbox, Outlook, Protocol,
    Purpose, Start, Units,
};

use grantor::Grantor;
use requester::Requester;

pub use crate::attempt::{Attempt, Bid};
pub use message::{End, GrantNumber, Message, Pick, Wish};
#[cfg(test)]
pub(crate) use pool::Mutant;
pub use pool::{Mode, Pool};
pub use record::{RecordLine, RecordLines};
pub use recovery::Record;

type Post<'a> = crate::post::Post<'a, Arbiter>;
type Seat<'a> = quorate_core::Seat<'a, Arbiter>;

/// One node's seat in a pool that quorums decide.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Arbiter {
    requester: Requester,
    /// On members of quorums only, and then boxed: every other seat stays small.
    grantor: Option<Box<Grantor>>,
}

/// The timers of `arbiter`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Alarm {
    /// Requester: ask again for what has waited too long.
    Retry,
    /// Arbiter: nobody has asked for or renewed this claim in time.
    LeaseEnd(Bid),
    /// Arbiter: whatever was promised before the boot is over.
    Grace,
    /// Arbiter: ask the others once more what fences there were.
    Survey,
    /// Arbiter: the record has permissions that are over.
    WriteDown,
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Alarm::Retry => f.write_str("retry"),
            Alarm::LeaseEnd(bid) => write!(f, "lease-end {bid}"),
            Alarm::Grace => f.write_str("grace"),
            Alarm::Survey => f.write_str("survey"),
            Alarm::WriteDown => f.write_str("write-down"),
        }
    }
}

impl Arbiter {
    fn hear(&mut self, seat: &Seat<'_>, from: NodeId, message: Message, post: &mut Post<'_>) {
        if message.is_for_arbiter() {
            match &mut self.grantor {
                Some(grantor) => grantor.hear(seat, from, message, post),
                None => post.out.anomaly(from, "a message for an arbiter, which this node is not"),
            }
        } else if seat.pool.quorums.is_member(from) {
            self.requester.hear(seat, from, message, post);
        } else {
            post.out.anomaly(from, "an arbiter's message from a node that is none");
        }
    }
}

impl Arbiter {
    /// What this node's two halves say to each other.
    fn hear_own(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        while let Some(message) = post.next_own() {
            self.hear(seat, seat.me, message, post);
        }
    }
}

impl Protocol for Arbiter {
    type Pool = Pool;
    type Message = Message;
    type Alarm = Alarm;
    type Durable = Record;

    const NAME: &'static str = "arbiter";
    const KINDS: &'static [&'static str] = Message::KINDS;

    fn boot(seat: &Seat<'_>, start: Start<Record>, out: &mut Outbox<Self>) -> Self {
        let grantor =
            seat.pool.quorums.is_member(seat.me).then(|| Box::new(Grantor::boot(seat, start, out)));
        Arbiter { requester: Requester::default(), grantor }
    }

    fn step(&mut self, seat: &Seat<'_>, event: EventOf<Self>, out: &mut Outbox<Self>) {
        let post = &mut Post::new(seat.me, out);
        match event {
            Event::Claim(claim) => self.requester.on_claim(seat, &claim, post),
            Event::Release(claim) => self.requester.on_release(seat, claim, post),
            Event::Cancel(claim) => self.requester.on_cancel(seat, claim, post),
            Event::Withdraw(claim) => self.requester.on_withdraw(seat, claim, post),
            Event::Renew { claim, shares } => self.requester.on_renew(seat, claim, shares, post),
            Event::Hear { from, message } => self.hear(seat, from, message, post),
            Event::Ring(Alarm::Retry) => self.requester.on_ring_retry(seat, post),
            Event::Ring(alarm) => {
                let grantor = self.grantor.as_mut().expect("only an arbiter arms this alarm");
                match alarm {
                    Alarm::LeaseEnd(bid) => {
                        if grantor.on_ring_lease_end(seat, bid, post) {
                            self.hear_own(seat, post);
                            let grantor = self.grantor.as_mut().expect("it is one");
                            grantor.schedule(seat, post, None);
                        }
                    }
                    Alarm::Grace => grantor.on_ring_grace(seat, post),
                    Alarm::Survey => grantor.on_ring_survey(seat, post),
                    Alarm::WriteDown => grantor.write_down(seat, post.out),
                    Alarm::Retry => unreachable!("it is the requester's"),
                }
            }
            Event::Suspect(node) => self.requester.on_suspect(seat, node, post),
            Event::Trust(node) => self.requester.on_trust(node),
            Event::Charter(_) => {}
        }
        self.hear_own(seat, post);
    }

    fn audit(&self, seat: &Seat<'_>) {
        assert_eq!(self.grantor.is_some(), seat.pool.quorums.is_member(seat.me));
        if let Some(grantor) = &self.grantor {
            grantor.audit(seat);
        }
        self.requester.audit(seat);
    }

    fn ledger(&self, show: &mut dyn FnMut(Entry)) {
        if let Some(grantor) = &self.grantor {
            grantor.ledger(show);
        }
    }

    fn health(&self, _seat: &Seat<'_>) -> Health {
        let in_grace = self.grantor.as_ref().is_some_and(|grantor| !grantor.is_open());
        Health { in_grace, ..Health::default() }
    }

    fn facts(&self, _seat: &Seat<'_>, show: &mut dyn FnMut(Fact)) {
        self.requester.facts(show);
        if let Some(grantor) = &self.grantor {
            grantor.facts(show);
        }
    }

    fn lease_end(alarm: &Alarm) -> LeaseEnd {
        match alarm {
            Alarm::Retry | Alarm::Survey | Alarm::WriteDown => LeaseEnd::Nothing,
            Alarm::LeaseEnd(bid) => LeaseEnd::Of(bid.claim),
            Alarm::Grace => LeaseEnd::Earlier,
        }
    }

    fn rings_at_stop(alarm: &Alarm) -> bool {
        *alarm == Alarm::WriteDown
    }

    fn purpose(alarm: &Alarm) -> Purpose {
        match alarm {
            Alarm::Retry => Purpose::Retry,
            Alarm::LeaseEnd(_) | Alarm::Grace => Purpose::Lease,
            Alarm::Survey => Purpose::Probe,
            Alarm::WriteDown => Purpose::Protocol,
        }
    }

    fn kind(message: &Message) -> usize {
        message.kind()
    }

    fn capacity(pool: &Pool) -> u32 {
        pool.units
    }

    /// At any one arbiter. Where units have names, claims that share none pass each other freely.
    fn overtakes_max(pool: &Pool) -> Option<u32> {
        match pool.mode {
            Mode::Count { backfill, .. } => Some(backfill),
            Mode::Named => None,
        }
    }

    fn names_units(pool: &Pool) -> bool {
        pool.names_units()
    }

    /// An arbiter that lost its disk does not know what fences there were. Nor does anybody else
    /// know of those that it gave together with one that is dead: it counts like that one.
    fn is_whole(&self) -> bool {
        self.grantor.as_ref().is_none_or(|grantor| grantor.is_sure())
    }

    fn can_lose(pool: &Pool, dead: &NodeSet) -> bool {
        // The smallest claims have the largest quorums.
        pool.quorums.contains_quorum(Units::ONE, &pool.quorums.members().difference(dead))
    }

    fn grants(pool: &Pool, away: &NodeSet) -> Outlook {
        #[cfg(test)]
        if pool.mutant == Some(pool::Mutant::PromiseByLargest)
            && pool.quorums.outlook(pool.units, away).allows(pool.units)
        {
            return Outlook::all(pool.units);
        }
        pool.quorums.outlook(pool.units, away)
    }
}
