//! `sharing`: protocol P of Miyamoto, Kakugawa and Yamashita, as it is printed and as it works.
//!
//! *Extended distributed k-mutual exclusion*: units differ, and processes may not use them all. P
//! gives each process a set of quorums (one set per group of processes that may use the same units)
//! and locks one of them, so that counts never exceed what the units allow. It names no unit, and a
//! claim is for one.
//!
//! | message | from, to | means |
//! |---|---|---|
//! | `request` | requester to arbiter | REQ: give me your OK |
//! | `ok` | arbiter to requester | OK: you have it, alone |
//! | `release` | requester to arbiter | REL: I do not need it any more |
//!
//! A use costs 3 messages per arbiter. An arbiter gives its OK to one request at a time and keeps
//! the others in the order in which they came. *As printed* a process asks all of its quorum at
//! once ([`Order::AtOnce`]), and quorums of two or more arbiters deadlock: theorem 2 of the paper
//! is false for its own protocol, as a footnote of it half admits (labels spec E10). Asking
//! one arbiter after the other, in an order that is the same for all ([`Order::Ascending`]), cures
//! that, and starvation with it (labels spec E13 and 4.6): the holder of the highest arbiter that
//! is asked for waits for nobody.
//!
//! This is the reference, not what a pool should run: no lease, no crash, no lost message. The
//! arbiters of the paper's constructions are more than there are processes (labels spec E15), so
//! they are roles, and a node may play several.

mod explore;
mod pool;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::fmt;

use quorate_core::{
    Claim, ClaimId, Entry, Event, EventOf, Fence, LeaseEnd, Moment, NodeId, NodeSet, Outbox,
    Protocol, Refusal, Seat, Share, Shares, Stamp, Standing, Start, Unit, Units,
};

pub use pool::{Order, Pool, PoolError};

/// What seats of a `sharing` pool tell each other. See the table in [the module's
/// documentation](self).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Message {
    /// Which of the three.
    pub kind: Kind,
    /// The arbiter it is about: a node may be several.
    pub arbiter: u32,
    /// The claim it is about.
    pub claim: ClaimId,
}

/// The kinds of message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs, reason = "see the table")]
pub enum Kind {
    Request,
    Ok,
    Release,
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} a{}", Sharing::KINDS[self.kind as usize], self.claim, self.arbiter)
    }
}

/// One node's seat in a pool that protocol P guards.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Sharing {
    claims: BTreeMap<ClaimId, Local>,
    /// The arbiters that this node plays.
    arbiters: BTreeMap<u32, Arbiter>,
    /// A node that restarts has forgotten what it promised, and stays out.
    member: bool,
}

/// A local client's claim.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Local {
    /// The quorum it committed to, ascending.
    quorum: Vec<u32>,
    /// Which of it have been asked: the first so many.
    asked: usize,
    oks: BTreeSet<u32>,
}

/// QUEUE_j of the paper, and whether an OK is out.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Arbiter {
    /// Who has the OK, and who waits for it, in the order in which they came.
    queue: VecDeque<(NodeId, ClaimId)>,
}

type Post<'a> = crate::post::Post<'a, Sharing>;

impl Sharing {
    fn on_claim(&mut self, seat: &Seat<'_, Self>, claim: &Claim, post: &mut Post<'_>) {
        if claim.wanted.lines.is_some() {
            return post.out.refuse(claim.id, Refusal::NotByName);
        }
        if claim.wanted.units != Units::ONE {
            return post.out.refuse(claim.id, Refusal::TooManyForOneNode);
        }
        if self.claims.contains_key(&claim.id) || !self.member {
            return;
        }
        let quorum = seat.pool.quorum(seat.me, claim.draw);
        self.claims.insert(claim.id, Local { quorum, asked: 0, oks: BTreeSet::new() });
        self.go_on(seat, claim.id, post);
    }

    /// Asks whom it should ask next, and tells the client once there is nobody left.
    fn go_on(&mut self, seat: &Seat<'_, Self>, claim: ClaimId, post: &mut Post<'_>) {
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        if local.oks.len() == local.quorum.len() {
            // Counts only: which unit it is nobody knows.
            let share = Share { unit: Unit(0), fence: Fence::default() };
            return post.out.grant(claim, Shares::new(&[share]), Moment::NEVER);
        }
        let upto = match seat.pool.order {
            Order::AtOnce => local.quorum.len(),
            Order::Ascending => local.oks.len() + 1,
        };
        for &arbiter in &local.quorum[local.asked..upto.max(local.asked)] {
            let message = Message { kind: Kind::Request, arbiter, claim };
            post.send(seat.pool.host(arbiter), message);
        }
        local.asked = local.asked.max(upto);
    }

    /// The paper has no cancel: whoever was asked is told that it is over.
    fn on_release(&mut self, seat: &Seat<'_, Self>, claim: ClaimId, post: &mut Post<'_>) {
        let Some(local) = self.claims.remove(&claim) else { return };
        for &arbiter in &local.quorum[..local.asked] {
            let message = Message { kind: Kind::Release, arbiter, claim };
            post.send(seat.pool.host(arbiter), message);
        }
    }

    fn hear(&mut self, seat: &Seat<'_, Self>, from: NodeId, message: Message, post: &mut Post<'_>) {
        let Message { kind, arbiter, claim } = message;
        if kind == Kind::Ok {
            let Some(local) = self.claims.get_mut(&claim) else {
                return; // It was cancelled, and the release is on its way.
            };
            let asked = &local.quorum[..local.asked];
            if from != seat.pool.host(arbiter) || !asked.contains(&arbiter) {
                return post.out.anomaly(from, "an OK that nobody asked it for");
            }
            if local.oks.insert(arbiter) {
                self.go_on(seat, claim, post);
            }
            return;
        }
        let Some(played) = self.arbiters.get_mut(&arbiter) else {
            return post.out.anomaly(from, "a message for an arbiter that this node is not");
        };
        let queue = &mut played.queue;
        let place = queue.iter().position(|waiting| *waiting == (from, claim));
        match (kind, place) {
            (Kind::Request, None) => {
                queue.push_back((from, claim));
                if queue.len() > 1 {
                    return;
                }
            }
            (Kind::Release, Some(place)) => {
                queue.remove(place);
                if place > 0 {
                    return;
                }
            }
            _ => return post.out.anomaly(from, "a request made twice, or a release of none"),
        }
        if let Some(&(node, claim)) = played.queue.front() {
            post.send(node, Message { kind: Kind::Ok, arbiter, claim });
        }
    }
}

impl Protocol for Sharing {
    type Pool = Pool;
    type Message = Message;
    type Alarm = Infallible;
    type Durable = ();

    const NAME: &'static str = "sharing";
    const KINDS: &'static [&'static str] = &["request", "ok", "release"];

    fn boot(seat: &Seat<'_, Self>, start: Start<()>, _: &mut Outbox<Self>) -> Self {
        let played = seat.pool.arbiters().filter(|arbiter| seat.pool.host(*arbiter) == seat.me);
        let arbiters = played.map(|arbiter| (arbiter, Arbiter::default())).collect();
        Sharing { claims: BTreeMap::new(), arbiters, member: start == Start::First }
    }

    fn step(&mut self, seat: &Seat<'_, Self>, event: EventOf<Self>, out: &mut Outbox<Self>) {
        let post = &mut Post::new(seat.me, out);
        match event {
            Event::Claim(claim) => self.on_claim(seat, &claim, post),
            Event::Release(claim) | Event::Withdraw(claim) => {
                self.on_release(seat, claim, post);
            }
            Event::Cancel(claim) => {
                self.on_release(seat, claim, post);
                post.out.refuse(claim, Refusal::Cancelled);
            }
            Event::Hear { from, message } => self.hear(seat, from, message, post),
            Event::Renew { .. } | Event::Suspect(_) | Event::Trust(_) | Event::Charter(_) => {}
            Event::Ring(alarm) => match alarm {},
        }
        while let Some(message) = post.next_own() {
            self.hear(seat, seat.me, message, post);
        }
    }

    fn audit(&self, seat: &Seat<'_, Self>) {
        for local in self.claims.values() {
            assert!(local.oks.iter().all(|ok| local.quorum[..local.asked].contains(ok)));
        }
        assert!(self.arbiters.keys().all(|arbiter| seat.pool.host(*arbiter) == seat.me));
    }

    fn ledger(&self, show: &mut dyn FnMut(Entry)) {
        for arbiter in self.arbiters.values() {
            for (place, &(node, claim)) in arbiter.queue.iter().enumerate() {
                let standing = if place == 0 { Standing::Granted } else { Standing::Waiting };
                let stamp = Stamp { clock: place as u64, node };
                show(Entry { claim, stamp, units: Units::ONE, standing, kept: None });
            }
        }
    }

    fn lease_end(alarm: &Infallible) -> LeaseEnd {
        match *alarm {}
    }

    fn kind(message: &Message) -> usize {
        message.kind as usize
    }

    fn capacity(pool: &Pool) -> u32 {
        pool.units
    }

    /// Each arbiter serves first what came first; together they promise no order.
    fn overtakes_max(_: &Pool) -> Option<u32> {
        None
    }

    fn names_units(_: &Pool) -> bool {
        false
    }

    fn can_lose(_: &Pool, dead: &NodeSet) -> bool {
        dead.is_empty()
    }
}
