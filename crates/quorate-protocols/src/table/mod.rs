//! `table`: units that differ, and no node is special.
//!
//! The quorum table (labels spec 6.4), made from *Extended distributed k-mutual
//! exclusion* of Miyamoto, Kakugawa and Yamashita: one table of all claims, decided by the
//! allocator that `central` uses ([`crate::allocator`]), and kept by any ordinary coterie. Every
//! node is a requester for its own clients; the members of the quorums keep copies of the table.
//! Whoever wants something of it locks a quorum, takes the newest copy, changes it, lets the
//! allocator grant what can be granted, and stores it with the quorum: a *section*.
//!
//! | message | from, to | means |
//! |---|---|---|
//! | `lock` | requester to member | give me your lock |
//! | `queued` | member to requester | another section has it |
//! | `locked` | member to requester | you have it, and this is the table |
//! | `refused` | member to requester | you do not have it, or no longer |
//! | `store` | requester to member | this is the table now, and the lock is yours again |
//! | `stored` | member to requester | I have it |
//! | `unlock` | requester to member | the section is over |
//! | `probe` | member to requester | is the section still going on? |
//! | `busy` | requester to member | it is |
//! | `notify` | requester to requester | your claim was granted, in my section |
//! | `lost` | requester to requester | the lease of your claim is over |
//! | `ask` | requester to member | does this claim still wait? |
//! | `told` | member to requester | it does, or it does not |
//! | `survey` | member to member | I forgot: which rounds and fences were there? |
//! | `report` | member to member | none above these |
//!
//! *Cost.* A section is `lock`, `locked` and `store` for each member, and a use of units is two of
//! them and a `notify` if the claim had to wait: 6|q|+1 messages, enough for nodes that do not
//! crash and links that lose nothing. Otherwise a section waits for `stored` before it tells
//! anybody ([`Pool::confirm`]): 8|q|+1. A node does in one section all that its clients want by
//! then.
//!
//! *Why it is safe.* Two quorums share a member, which gives one lock at a time and takes no table
//! but from who has it. So sections that were confirmed follow each other, and each has seen the
//! one before: together they are one run of the allocator.
//!
//! *Crashes.* A lock may be taken away at any moment (its holder seems dead, or a newer section of
//! the same node shows that it is over), and the member then serves later *rounds* only
//! ([`Version`]). A section that finds itself refused begins again. Let S be confirmed and T any
//! other section, with a member in common. If T had that member's lock after S stored there, T has
//! seen S, or something newer, and is newer still. Otherwise T had it before, and either stored
//! before S had it, so that S has seen T; or the lock was taken away, and S is of a later round. So
//! whatever is newer than S was made from it, and what a dead section left behind is only ever
//! older or seen.
//!
//! *Time.* A grant lasts for one lease from the section that made or renewed it. Every member that
//! stored it measures that by its own clock, and says in `locked` which grants are overdue; any one
//! of them is enough, if the newest table still has the same lease. A home counts from before its
//! section stored anything. For a claim that waited, the table carries how long, member by member;
//! what passes while a table is on its way is not in that. A home that is told of a grant with less
//! than half of its lease left tells nobody: it asks again, and its own section begins the lease.
//! A member that forgot gives no lock for one lease (`opening`); a durable one writes the table
//! down.

mod explore;
mod laws;
mod member;
mod message;
mod opening;
pub(crate) mod pool;
mod requester;
mod section;
mod sheet;
#[cfg(test)]
mod tests;

use std::fmt;

use quorate_core::{
    ClaimId, Entry, Event, EventOf, Fact, Health, LeaseEnd, NodeId, NodeSet, Outbox, Outlook,
    Protocol, Purpose, Shortage, Start, Units,
};

use member::Member;
use requester::Requester;

pub use crate::attempt::Attempt;
pub use member::Record;
pub use message::Message;
pub use pool::Pool;
pub use sheet::{Asking, Row, Sheet, State, Version};

type Post<'a> = crate::post::Post<'a, Table>;
type Seat<'a> = quorate_core::Seat<'a, Table>;

/// One node's seat in a pool whose table quorums keep.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Table {
    requester: Requester,
    /// On members of quorums only, and then boxed: every other seat stays small.
    member: Option<Box<Member>>,
}

/// The timers of `table`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Alarm {
    /// Requester: say again what was not answered.
    Retry,
    /// Member: the holder of this claim did not renew in time.
    LeaseEnd(ClaimId),
    /// Member: the lock has been out for long.
    Hold,
    /// Member: whatever was promised before the boot is over.
    Grace,
    /// Member: ask the others once more.
    Survey,
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Alarm::Retry => f.write_str("retry"),
            Alarm::LeaseEnd(claim) => write!(f, "lease-end {claim}"),
            Alarm::Hold => f.write_str("hold"),
            Alarm::Grace => f.write_str("grace"),
            Alarm::Survey => f.write_str("survey"),
        }
    }
}

impl Table {
    fn hear(&mut self, seat: &Seat<'_>, from: NodeId, message: Message, post: &mut Post<'_>) {
        if message.is_from_member() && !seat.pool.quorums.is_member(from) {
            return post.out.anomaly(from, "a member's message from a node that is none");
        }
        if !message.is_sound(&seat.pool.goods) {
            return post.out.anomaly(from, "numbers or units that no table of this pool has");
        }
        if !message.is_for_member() {
            return self.requester.hear(seat, from, message, post);
        }
        match &mut self.member {
            Some(member) => member.hear(seat, from, message, post),
            None => post.out.anomaly(from, "a message for a member, which this node is not"),
        }
    }

    fn ring(&mut self, seat: &Seat<'_>, alarm: Alarm, post: &mut Post<'_>) {
        if alarm == Alarm::Retry {
            return self.requester.on_ring_retry(seat, post);
        }
        let member = self.member.as_mut().expect("only a member arms this alarm");
        match alarm {
            Alarm::LeaseEnd(claim) => {
                member.on_ring_lease_end(seat, claim, post);
                self.requester.tidy_up(seat, post);
            }
            Alarm::Hold => member.on_ring_hold(seat, post),
            Alarm::Grace => member.on_ring_grace(seat, post),
            Alarm::Survey => member.on_ring_survey(seat, post),
            Alarm::Retry => unreachable!("it is the requester's"),
        }
    }
}

impl Protocol for Table {
    type Pool = Pool;
    type Message = Message;
    type Alarm = Alarm;
    type Durable = Record;

    const NAME: &'static str = "table";
    const KINDS: &'static [&'static str] = Message::KINDS;

    fn boot(seat: &Seat<'_>, start: Start<Record>, out: &mut Outbox<Self>) -> Self {
        let keeps = seat.pool.quorums.is_member(seat.me);
        let member = keeps.then(|| Box::new(Member::boot(seat, start, out)));
        let mut requester = Requester::default();
        requester.look_back(seat, &mut Post::new(seat.me, out));
        Table { requester, member }
    }

    fn step(&mut self, seat: &Seat<'_>, event: EventOf<Self>, out: &mut Outbox<Self>) {
        self.requester.own.changes.clear();
        let post = &mut Post::new(seat.me, out);
        match event {
            Event::Claim(claim) => self.requester.on_claim(seat, &claim, post),
            Event::Release(claim) => self.requester.on_release(seat, claim, post),
            Event::Cancel(claim) => self.requester.on_cancel(seat, claim, post),
            Event::Withdraw(claim) => self.requester.on_withdraw(seat, claim, post),
            Event::Renew { claim, shares } => self.requester.on_renew(seat, claim, shares, post),
            Event::Hear { from, message } => self.hear(seat, from, message, post),
            Event::Ring(alarm) => self.ring(seat, alarm, post),
            Event::Suspect(node) => {
                self.requester.on_suspect(seat, node, post);
                if let Some(member) = &mut self.member {
                    member.on_suspect(seat, node, post);
                }
            }
            Event::Trust(node) => self.requester.on_trust(seat, node, post),
            Event::Charter(_) => {}
        }
        while let Some(message) = post.next_own() {
            self.hear(seat, seat.me, message, post);
        }
    }

    fn audit(&self, seat: &Seat<'_>) {
        assert_eq!(self.member.is_some(), seat.pool.quorums.is_member(seat.me));
        if let Some(member) = &self.member {
            member.audit(seat);
        }
        self.requester.audit(seat);
    }

    fn ledger(&self, show: &mut dyn FnMut(Entry)) {
        if let Some(member) = &self.member {
            member.ledger(show);
        }
    }

    fn health(&self, _seat: &Seat<'_>) -> Health {
        let Some(member) = &self.member else { return Health::default() };
        Health { edition: member.edition(), in_grace: !member.is_open(), ..Health::default() }
    }

    fn facts(&self, seat: &Seat<'_>, show: &mut dyn FnMut(Fact)) {
        self.requester.facts(seat, show);
        if let Some(member) = &self.member {
            member.facts(show);
        }
    }

    /// By this member's copy of the table, if it is one.
    fn explain(&self, seat: &Seat<'_>, claim: ClaimId) -> Option<Shortage> {
        self.member.as_ref()?.sheet.explain(seat, claim)
    }

    fn lease_end(alarm: &Alarm) -> LeaseEnd {
        match alarm {
            Alarm::Retry | Alarm::Hold | Alarm::Survey => LeaseEnd::Nothing,
            Alarm::LeaseEnd(claim) => LeaseEnd::Of(*claim),
            Alarm::Grace => LeaseEnd::Earlier,
        }
    }

    fn purpose(alarm: &Alarm) -> Purpose {
        match alarm {
            Alarm::Retry => Purpose::Retry,
            Alarm::LeaseEnd(_) | Alarm::Grace => Purpose::Lease,
            Alarm::Survey => Purpose::Probe,
            Alarm::Hold => Purpose::Protocol,
        }
    }

    fn kind(message: &Message) -> usize {
        message.kind()
    }

    fn capacity(pool: &Pool) -> u32 {
        pool.goods.units
    }

    fn stands(pool: &Pool) -> bool {
        pool.goods.standing
    }

    fn overtakes_max(pool: &Pool) -> Option<u32> {
        pool.goods.overtakes_max()
    }

    fn is_whole(&self) -> bool {
        self.member.as_ref().is_none_or(|member| member.opening.is_sure())
    }

    fn can_lose(pool: &Pool, dead: &NodeSet) -> bool {
        pool.quorums.contains_quorum(Units::ONE, &pool.quorums.members().difference(dead))
    }

    fn grants(pool: &Pool, away: &NodeSet) -> Outlook {
        pool.quorums.outlook(pool.goods.units, away)
    }
}
