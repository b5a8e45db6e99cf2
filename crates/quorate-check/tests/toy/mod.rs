//! A toy behind the contract: node 0 keeps the units and gives them to the oldest claim first.
//! Small enough to see that it is right, and with flaws that can be switched on.
//!
//! It needs ordered links, and only node 0 may crash.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use quorate_core::{
    ClaimId, Clock, Entry, Event, EventOf, Explorable, Fence, LeaseEnd, Moment, NodeId, NodeSet,
    Outbox, Protocol, Refusal, Seat, Share, Shares, Stamp, Standing, Start, Unit, Units, numbers,
};

const ARBITER: NodeId = NodeId(0);
const A_WHILE: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub(crate) struct Pool {
    pub(crate) units: u32,
    pub(crate) leases: bool,
    pub(crate) flaw: Option<Flaw>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flaw {
    /// The record reaches the disk after the grant reached the wire.
    TellBeforePersist,
    /// A request that got no answer is not repeated.
    NeverAskAgain,
    /// The arbiter ends leases by an alarm that has nothing to do with their arithmetic.
    HastyLease,
    /// A grant that arrives after its deadline is used all the same.
    UseLateGrant,
    /// An arbiter that forgot everything grants at once.
    TrustOblivion,
    /// The arbiter does not hear of cancelled claims.
    CancelInSilence,
    /// The second claim in the queue makes the arbiter panic.
    FearOfQueues,
    /// Any unit is given, taken or not.
    GrantWithoutRoom,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Message {
    Ask { claim: ClaimId, units: Units, stamp: Stamp },
    Give { claim: ClaimId, shares: Shares },
    Free { claim: ClaimId },
    Freed { claim: ClaimId },
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Alarm {
    Retry(ClaimId),
    Lease(ClaimId),
    Hasty(ClaimId),
    Settle,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Here {
    Waiting { units: Units, stamp: Stamp },
    Using,
    Freeing,
}

pub(crate) type Record = (BTreeMap<ClaimId, Shares>, Fence);

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Toy {
    clock: Clock,
    here: BTreeMap<ClaimId, Here>,
    queue: BTreeMap<(Stamp, ClaimId), Units>,
    held: BTreeMap<ClaimId, Shares>,
    fence: Fence,
    settling: bool,
}

type Place<'a> = Seat<'a, Toy>;

impl Toy {
    fn ask(&self, seat: &Place<'_>, claim: ClaimId, out: &mut Outbox<Toy>) {
        let message = match self.here[&claim] {
            Here::Waiting { units, stamp } => Message::Ask { claim, units, stamp },
            Here::Freeing => Message::Free { claim },
            Here::Using => return,
        };
        out.tell(ARBITER, message);
        if seat.pool.flaw != Some(Flaw::NeverAskAgain) {
            out.arm(Alarm::Retry(claim), A_WHILE);
        }
    }

    fn on_claim(&mut self, seat: &Place<'_>, claim: ClaimId, units: Units, out: &mut Outbox<Toy>) {
        let stamp = Stamp { clock: self.clock.tick(), node: seat.me };
        self.here.insert(claim, Here::Waiting { units, stamp });
        if seat.me == ARBITER {
            self.on_ask(seat, seat.me, claim, units, stamp, out);
        } else {
            self.ask(seat, claim, out);
        }
    }

    fn on_free(&mut self, seat: &Place<'_>, claim: ClaimId, out: &mut Outbox<Toy>) {
        if seat.me == ARBITER {
            self.here.remove(&claim);
            self.take_back(seat, claim, out);
        } else {
            self.here.insert(claim, Here::Freeing);
            self.ask(seat, claim, out);
        }
    }

    fn on_ask(
        &mut self,
        seat: &Place<'_>,
        from: NodeId,
        claim: ClaimId,
        units: Units,
        stamp: Stamp,
        out: &mut Outbox<Toy>,
    ) {
        self.clock.hear(stamp.clock);
        if let Some(shares) = self.held.get(&claim).cloned() {
            return self.give(seat, from, claim, shares, out);
        }
        self.queue.retain(|(_, other), _| *other != claim);
        self.queue.insert((stamp, claim), units);
        assert!(
            self.queue.len() < 2 || seat.pool.flaw != Some(Flaw::FearOfQueues),
            "two in a queue"
        );
        self.serve(seat, out);
    }

    /// Grants while the oldest claim fits.
    fn serve(&mut self, seat: &Place<'_>, out: &mut Outbox<Toy>) {
        let reckless = seat.pool.flaw == Some(Flaw::GrantWithoutRoom);
        while let Some((&(stamp, claim), &units)) = self.queue.first_key_value() {
            let taken = |u: Unit| self.held.values().any(|s| s.iter().any(|s| s.unit == u));
            let fence = self.fence.next();
            let shares: Vec<Share> = (0..seat.pool.units)
                .map(Unit)
                .filter(|&unit| reckless || !taken(unit))
                .map(|unit| Share { unit, fence })
                .take(units.get() as usize)
                .collect();
            if shares.len() < units.get() as usize || self.settling {
                return;
            }
            self.fence = fence;
            self.queue.remove(&(stamp, claim));
            self.held.insert(claim, Shares::new(&shares));
            self.give(seat, stamp.node, claim, Shares::new(&shares), out);
        }
    }

    fn give(
        &mut self,
        seat: &Place<'_>,
        to: NodeId,
        claim: ClaimId,
        shares: Shares,
        out: &mut Outbox<Toy>,
    ) {
        let early = seat.pool.flaw == Some(Flaw::TellBeforePersist);
        if !early {
            out.persist((self.held.clone(), self.fence));
        }
        match seat.pool.flaw {
            Some(Flaw::HastyLease) => out.arm(Alarm::Hasty(claim), A_WHILE),
            _ if seat.pool.leases => out.arm(Alarm::Lease(claim), A_WHILE),
            _ => {}
        }
        if to == seat.me {
            self.on_give(seat, claim, shares, out);
        } else {
            out.tell(to, Message::Give { claim, shares });
        }
        if early {
            out.persist((self.held.clone(), self.fence));
        }
    }

    fn on_give(&mut self, seat: &Place<'_>, claim: ClaimId, shares: Shares, out: &mut Outbox<Toy>) {
        let late = seat.now == Moment::NEVER && seat.pool.flaw != Some(Flaw::UseLateGrant);
        if late || !matches!(self.here.get(&claim), Some(Here::Waiting { .. })) {
            return;
        }
        self.here.insert(claim, Here::Using);
        out.disarm(Alarm::Retry(claim));
        out.grant(claim, shares, Moment::ZERO);
    }

    fn take_back(&mut self, seat: &Place<'_>, claim: ClaimId, out: &mut Outbox<Toy>) {
        self.queue.retain(|(_, other), _| *other != claim);
        if self.held.remove(&claim).is_some() {
            out.persist((self.held.clone(), self.fence));
            out.disarm(Alarm::Lease(claim));
        }
        self.serve(seat, out);
    }
}

impl Protocol for Toy {
    type Pool = Pool;
    type Message = Message;
    type Alarm = Alarm;
    type Durable = Record;

    const NAME: &'static str = "toy";
    const KINDS: &'static [&'static str] = &["ask", "give", "free", "freed"];

    fn boot(seat: &Place<'_>, start: Start<Record>, out: &mut Outbox<Toy>) -> Toy {
        let mut toy = Toy::default();
        match start {
            Start::Recovered(Some((held, fence))) => {
                (toy.held, toy.fence) = (held, fence);
                if seat.pool.leases {
                    toy.held.keys().for_each(|claim| out.arm(Alarm::Lease(*claim), A_WHILE));
                }
            }
            Start::Amnesia if seat.pool.flaw != Some(Flaw::TrustOblivion) => {
                (toy.settling, toy.fence) = (true, Fence::floor(seat.boot));
                out.arm(Alarm::Settle, A_WHILE);
            }
            Start::Amnesia => toy.fence = Fence::floor(seat.boot),
            Start::First | Start::Recovered(None) => {}
        }
        toy
    }

    fn step(&mut self, seat: &Place<'_>, event: EventOf<Toy>, out: &mut Outbox<Toy>) {
        match event {
            Event::Claim(claim) => self.on_claim(seat, claim.id, claim.wanted.units, out),
            Event::Release(claim) | Event::Withdraw(claim) => self.on_free(seat, claim, out),
            Event::Cancel(claim) => {
                if seat.pool.flaw != Some(Flaw::CancelInSilence) {
                    self.on_free(seat, claim, out);
                } else {
                    self.here.remove(&claim);
                    out.disarm(Alarm::Retry(claim));
                }
                out.refuse(claim, Refusal::Cancelled);
            }
            Event::Hear { from, message } => match message {
                Message::Ask { claim, units, stamp } => {
                    self.on_ask(seat, from, claim, units, stamp, out);
                }
                Message::Give { claim, shares } => self.on_give(seat, claim, shares, out),
                Message::Free { claim } => {
                    self.take_back(seat, claim, out);
                    out.tell(from, Message::Freed { claim });
                }
                Message::Freed { claim } => {
                    if self.here.get(&claim) == Some(&Here::Freeing) {
                        self.here.remove(&claim);
                        out.disarm(Alarm::Retry(claim));
                    }
                }
            },
            Event::Ring(Alarm::Retry(claim)) => self.ask(seat, claim, out),
            Event::Ring(Alarm::Lease(claim) | Alarm::Hasty(claim)) => {
                if let Some(shares) = self.held.get(&claim).cloned() {
                    self.take_back(seat, claim, out);
                    out.reclaim(claim, shares);
                }
            }
            Event::Ring(Alarm::Settle) => {
                self.settling = false;
                self.serve(seat, out);
            }
            Event::Renew { .. } | Event::Suspect(_) | Event::Trust(_) | Event::Charter(_) => {}
        }
    }

    fn audit(&self, seat: &Place<'_>) {
        assert!(seat.me == ARBITER || self.held.is_empty());
    }

    fn ledger(&self, show: &mut dyn FnMut(Entry)) {
        for (&(stamp, claim), &units) in &self.queue {
            show(Entry { claim, stamp, units, standing: Standing::Waiting, kept: None });
        }
        for (&claim, shares) in &self.held {
            let units = Units::new(shares.len() as u32, u32::MAX >> 12).expect("h is at least 1");
            let stamp = Stamp::default();
            show(Entry { claim, stamp, units, standing: Standing::Granted, kept: None });
        }
    }

    fn lease_end(alarm: &Alarm) -> LeaseEnd {
        match alarm {
            Alarm::Retry(_) | Alarm::Hasty(_) => LeaseEnd::Nothing,
            Alarm::Lease(claim) => LeaseEnd::Of(*claim),
            Alarm::Settle => LeaseEnd::Earlier,
        }
    }

    fn kind(message: &Message) -> usize {
        match message {
            Message::Ask { .. } => 0,
            Message::Give { .. } => 1,
            Message::Free { .. } => 2,
            Message::Freed { .. } => 3,
        }
    }

    fn capacity(pool: &Pool) -> u32 {
        pool.units
    }

    fn overtakes_max(_: &Pool) -> Option<u32> {
        Some(0)
    }

    fn can_lose(_: &Pool, dead: &NodeSet) -> bool {
        !dead.contains(ARBITER)
    }
}

numbers!(Toy { clock, here, queue, held, fence, settling });
numbers!(enum Here { Waiting { units, stamp }, Using, Freeing });
numbers!(enum Message {
    Ask { claim, units, stamp },
    Give { claim, shares },
    Free { claim },
    Freed { claim },
});

impl Explorable for Toy {
    fn promise(message: &Message) -> Option<ClaimId> {
        match message {
            Message::Give { claim, .. } => Some(*claim),
            _ => None,
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::Ask { claim, units, stamp } => write!(f, "ask {claim} h{units} {stamp}"),
            Message::Give { claim, shares } => write!(f, "give {claim} {shares}"),
            Message::Free { claim } => write!(f, "free {claim}"),
            Message::Freed { claim } => write!(f, "freed {claim}"),
        }
    }
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Alarm::Retry(claim) => write!(f, "retry {claim}"),
            Alarm::Lease(claim) | Alarm::Hasty(claim) => write!(f, "lease {claim}"),
            Alarm::Settle => f.write_str("settle"),
        }
    }
}
