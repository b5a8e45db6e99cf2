//! `ticket`: any two quorums meet, and everybody enters in the order of its ticket.
//!
//! Where permissions need families in which any k+1 quorums meet, this needs a coterie: majorities
//! survive any minority whatever the number of units. The price is a second round trip. Skeen's way
//! to agree on a timestamp (as in ISIS; arbiter spec 7.10) gives each claim a *ticket* no smaller
//! than what any member of its quorum proposed; after that every member knows, of all claims that
//! come later, that they are younger. A claim enters once those that are older, or may be, leave
//! room for it.
//!
//! | message | from, to | means |
//! |---|---|---|
//! | `register` | requester to member | propose a ticket for this claim |
//! | `propose` | member to requester | not below this one |
//! | `settle` | requester to member | this is its ticket, or: it still is, how does it stand |
//! | `view` | member to requester | only these are older here, or may be |
//! | `queued` | member to requester | I know it, and too many are older |
//! | `renewed` | member to requester | I know that it is in use, and for how long |
//! | `lost` | member to requester | I do not know it |
//! | `release` | requester to member | it is over |
//!
//! A quiet grant costs `register`, `propose`, `settle`, `view`, `release`: 5(|Q|-1) messages if the
//! requester is one of its quorum. A member stays silent while older claims fill the pool already
//! at that member alone, so a long queue costs nothing but the polls that keep it alive.
//!
//! *Why it is safe.* Of two holders let z have the larger ticket and m be a member of both quorums.
//! If z had settled at m before the other one, j, registered there, m's proposal to j would have
//! exceeded z's ticket. So j was in every view that m gave z. The holder with the largest ticket
//! has therefore counted all others when it entered.
//!
//! *Time.* An entry lasts one lease from the last `register` or `settle`; its requester counts from
//! before it sent that, and relies on no member for longer. Members write nothing down: after every
//! restart they are in grace for one lease, in which they give neither proposals nor views and take
//! up what is in use and relied on them. Who waits goes on without a member that is silent or has
//! lost its entry if the others contain a quorum; else it starts again, with a larger ticket. Who
//! uses units goes on as long as some quorum of those it asked can be relied on: `spares` asks more
//! than a quorum from the start.
//!
//! *Migration.* A holder joins members that it never asked, or whose entry may have ended, while
//! others still know of it (arbiter spec C5). Whoever is younger and waits may have a view from
//! such a member without the holder, and one from where the holder was after it left: so the member
//! first recalls those views, and says that it knows of the holder when each of them was answered
//! or its entry is over. At every moment all of some quorum have the holder in whatever younger
//! claims can use, and that is what the proof above needs.

mod explore;
mod hearing;
mod local;
mod member;
mod message;
mod pool;
mod requester;
#[cfg(test)]
mod tests;

use std::fmt;

use quorate_core::{
    Entry, Event, EventOf, Fact, Health, LeaseEnd, NodeId, NodeSet, Outbox, Outlook, Protocol,
    Purpose, Start, Units,
};

use member::Member;
use requester::Requester;

pub use crate::attempt::{Attempt, Bid};
pub use message::{Message, Rival, Standing};
pub use pool::Pool;

type Post<'a> = crate::post::Post<'a, Ticket>;
type Seat<'a> = quorate_core::Seat<'a, Ticket>;

/// One node's seat in a pool of tickets.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ticket {
    requester: Requester,
    member: Option<Box<Member>>,
}

/// The timers of `ticket`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Alarm {
    /// Requester: ask again for what has waited too long.
    Retry,
    /// Member: nobody has asked for this claim in time.
    LeaseEnd(Bid),
    /// Member: whatever was told before the boot is over.
    Grace,
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Alarm::Retry => f.write_str("retry"),
            Alarm::LeaseEnd(bid) => write!(f, "lease-end {bid}"),
            Alarm::Grace => f.write_str("grace"),
        }
    }
}

impl Ticket {
    fn hear(&mut self, seat: &Seat<'_>, from: NodeId, message: Message, post: &mut Post<'_>) {
        if message.is_for_member() {
            match &mut self.member {
                Some(member) => member.hear(seat, from, message, post),
                None => post.out.anomaly(from, "a message for a member, which this node is not"),
            }
        } else if seat.pool.quorums.is_member(from) {
            self.requester.hear(seat, from, message, post);
        } else {
            post.out.anomaly(from, "a member's message from a node that is none");
        }
    }
}

impl Protocol for Ticket {
    type Pool = Pool;
    type Message = Message;
    type Alarm = Alarm;
    /// Members write nothing down.
    type Durable = ();

    const NAME: &'static str = "ticket";
    const KINDS: &'static [&'static str] = Message::KINDS;

    fn boot(seat: &Seat<'_>, start: Start<()>, out: &mut Outbox<Self>) -> Self {
        let votes = seat.pool.quorums.is_member(seat.me);
        let member = votes.then(|| Box::new(Member::boot(seat, start == Start::First, out)));
        Ticket { requester: Requester::default(), member }
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
                let member = self.member.as_mut().expect("only a member arms this alarm");
                match alarm {
                    Alarm::LeaseEnd(bid) => member.on_ring_lease_end(seat, bid, post),
                    Alarm::Grace => member.on_ring_grace(seat, post),
                    Alarm::Retry => unreachable!("it is the requester's"),
                }
            }
            Event::Suspect(node) => self.requester.on_suspect(seat, node, post),
            Event::Trust(node) => self.requester.on_trust(node),
            Event::Charter(_) => {}
        }
        while let Some(message) = post.next_own() {
            self.hear(seat, seat.me, message, post);
        }
    }

    fn audit(&self, seat: &Seat<'_>) {
        assert_eq!(self.member.is_some(), seat.pool.quorums.is_member(seat.me));
        if let Some(member) = &self.member {
            member.audit();
        }
        self.requester.audit(seat);
    }

    /// No member decides anything, so there are no books that laws about queues could read.
    fn ledger(&self, _show: &mut dyn FnMut(Entry)) {}

    fn health(&self, _seat: &Seat<'_>) -> Health {
        let in_grace = self.member.as_ref().is_some_and(|member| member.is_in_grace());
        Health { in_grace, ..Health::default() }
    }

    fn facts(&self, _seat: &Seat<'_>, show: &mut dyn FnMut(Fact)) {
        self.requester.facts(show);
        if let Some(member) = &self.member {
            member.facts(show);
        }
    }

    fn lease_end(alarm: &Alarm) -> LeaseEnd {
        match alarm {
            Alarm::Retry => LeaseEnd::Nothing,
            Alarm::LeaseEnd(bid) => LeaseEnd::Of(bid.claim),
            Alarm::Grace => LeaseEnd::Earlier,
        }
    }

    fn purpose(alarm: &Alarm) -> Purpose {
        match alarm {
            Alarm::Retry => Purpose::Retry,
            Alarm::LeaseEnd(_) | Alarm::Grace => Purpose::Lease,
        }
    }

    fn kind(message: &Message) -> usize {
        message.kind()
    }

    fn capacity(pool: &Pool) -> u32 {
        pool.units
    }

    /// A claim that lost an entry starts again, behind others.
    fn overtakes_max(_pool: &Pool) -> Option<u32> {
        None
    }

    /// Tickets count; a grant's units are numbered from 0.
    fn names_units(_pool: &Pool) -> bool {
        false
    }

    fn can_lose(pool: &Pool, dead: &NodeSet) -> bool {
        pool.quorums.contains_quorum(Units::ONE, &pool.quorums.members().difference(dead))
    }

    fn grants(pool: &Pool, away: &NodeSet) -> Outlook {
        pool.quorums.outlook(pool.units, away)
    }
}
