//! Node 0 is the doorman: it lets claims in in the order in which they come, for one lease, and
//! takes back what nobody gave back by then. It writes nothing down: one that restarts lets nobody
//! in until whatever it promised before must be over.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use quorate_core::{
    Claim, ClaimId, Entry, Event, EventOf, Explorable, Fence, Lease, LeaseEnd, Moment, NodeId,
    NodeSet, Outbox, Protocol, Refusal, Seat, Share, Shares, Stamp, Standing, Start, Unit, Units,
    numbers,
};
use quorate_lab::Own;
use quorate_sim::{Needs, PoolPlan};

const DOORMAN: NodeId = NodeId(0);

/// What all nodes agree on.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    units: u32,
    lease: Lease,
    retry: Duration,
}

/// What nodes tell each other. Readings of clocks travel with them: a lease is counted from before
/// the question was asked, so that who asked gives up before who promised does.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Message {
    Ask { claim: ClaimId, units: Units, sent: Moment },
    Enter { claim: ClaimId, shares: Shares, sent: Moment, waited: Duration },
    Leave { claim: ClaimId },
}

/// Timers, at most one of each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Alarm {
    /// Ask again, in case something was lost.
    Retry,
    /// Nobody gave these back.
    LeaseEnd(ClaimId),
    /// Whatever an earlier life promised is over.
    Grace,
}

/// Who stands before the door.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Asked {
    claim: ClaimId,
    by: NodeId,
    units: Units,
    sent: Moment,
    arrived: Moment,
}

/// One node.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Doorman {
    /// Claims of this node's clients, with what they wait for; nothing, once they are in.
    own: BTreeMap<ClaimId, Option<Units>>,
    /// At the door: who waits, who is in, and whether it is shut.
    queue: VecDeque<Asked>,
    inside: BTreeMap<ClaimId, (Asked, Shares)>,
    shut: bool,
    fence: Fence,
}

type Out<'a> = &'a mut Outbox<Doorman>;
type Place<'a> = Seat<'a, Doorman>;

impl Doorman {
    /// A node does not send itself messages.
    fn tell(&mut self, seat: &Place<'_>, to: NodeId, message: Message, out: Out<'_>) {
        if to == seat.me { self.hear(seat, to, message, out) } else { out.tell(to, message) }
    }

    fn hear(&mut self, seat: &Place<'_>, from: NodeId, message: Message, out: Out<'_>) {
        match message {
            Message::Ask { claim, units, sent } => {
                let asked = Asked { claim, by: from, units, sent, arrived: seat.now };
                if let Some((_, shares)) = self.inside.get(&claim) {
                    // It was told, and asks again: that was lost, or is on its way.
                    let shares = shares.clone();
                    self.let_in(seat, asked, shares, out);
                } else if !self.queue.iter().any(|other| other.claim == claim) {
                    self.queue.push_back(asked);
                    self.open(seat, out);
                }
            }
            Message::Enter { claim, shares, sent, waited } => {
                let until = seat.pool.lease.deadline(sent, waited);
                if let Some(waiting @ Some(_)) = self.own.get_mut(&claim)
                    && until > seat.now
                {
                    *waiting = None;
                    out.grant(claim, shares, until);
                }
            }
            Message::Leave { claim } => {
                self.queue.retain(|asked| asked.claim != claim);
                if self.inside.remove(&claim).is_some() {
                    out.disarm(Alarm::LeaseEnd(claim));
                }
                self.open(seat, out);
            }
        }
    }

    /// Lets in whoever is first, as long as there is room.
    fn open(&mut self, seat: &Place<'_>, out: Out<'_>) {
        while let Some(first) = self.queue.front()
            && !self.shut
        {
            let taken =
                |unit| self.inside.values().any(|(_, has)| has.iter().any(|s| s.unit == unit));
            let free = (0..seat.pool.units).map(Unit).filter(|unit| !taken(*unit));
            let free: Vec<Unit> = free.take(first.units.get() as usize).collect();
            if free.len() < first.units.get() as usize {
                return;
            }
            // Larger than any of an earlier life.
            self.fence = self.fence.max(Fence::floor(seat.boot)).next();
            let fence = self.fence;
            let shares: Vec<Share> = free.into_iter().map(|unit| Share { unit, fence }).collect();
            let asked = self.queue.pop_front().expect("there is a first");
            self.let_in(seat, asked, Shares::new(&shares), out);
        }
    }

    /// A lease begins, or begins anew for who asked again.
    fn let_in(&mut self, seat: &Place<'_>, asked: Asked, shares: Shares, out: Out<'_>) {
        let Asked { claim, by, sent, arrived, .. } = asked;
        self.inside.insert(claim, (asked, shares.clone()));
        out.arm(Alarm::LeaseEnd(claim), seat.pool.lease.length());
        let waited = seat.now.since(arrived);
        self.tell(seat, by, Message::Enter { claim, shares, sent, waited }, out);
    }

    fn ask(&mut self, seat: &Place<'_>, claim: ClaimId, units: Units, out: Out<'_>) {
        out.arm(Alarm::Retry, seat.pool.retry);
        self.tell(seat, DOORMAN, Message::Ask { claim, units, sent: seat.now }, out);
    }

    fn leave(&mut self, seat: &Place<'_>, claim: ClaimId, out: Out<'_>) {
        self.own.remove(&claim);
        self.tell(seat, DOORMAN, Message::Leave { claim }, out);
    }
}

impl Protocol for Doorman {
    type Pool = Pool;
    type Message = Message;
    type Alarm = Alarm;
    type Durable = ();

    const NAME: &'static str = "doorman";
    const KINDS: &'static [&'static str] = &["ask", "enter", "leave"];

    fn boot(seat: &Place<'_>, start: Start<()>, out: &mut Outbox<Self>) -> Self {
        let shut = seat.me == DOORMAN && start != Start::First;
        if shut {
            out.arm(Alarm::Grace, seat.pool.lease.length());
        }
        Doorman { shut, ..Doorman::default() }
    }

    fn step(&mut self, seat: &Place<'_>, event: EventOf<Self>, out: &mut Outbox<Self>) {
        match event {
            // Said twice.
            Event::Claim(claim) if self.own.contains_key(&claim.id) => {}
            Event::Claim(Claim { id, wanted, .. }) => {
                self.own.insert(id, Some(wanted.units));
                self.ask(seat, id, wanted.units, out);
            }
            Event::Release(claim) | Event::Withdraw(claim) => self.leave(seat, claim, out),
            Event::Cancel(claim) => {
                out.refuse(claim, Refusal::Cancelled);
                self.leave(seat, claim, out);
            }
            Event::Hear { from, message } => self.hear(seat, from, message, out),
            Event::Ring(Alarm::Retry) => {
                let waiting =
                    self.own.iter().filter_map(|(claim, units)| Some((*claim, (*units)?)));
                let waiting: Vec<(ClaimId, Units)> = waiting.collect();
                waiting.into_iter().for_each(|(claim, units)| self.ask(seat, claim, units, out));
            }
            Event::Ring(Alarm::LeaseEnd(claim)) => {
                let (_, shares) = self.inside.remove(&claim).expect("armed for who is in");
                out.reclaim(claim, shares);
                self.open(seat, out);
            }
            Event::Ring(Alarm::Grace) => {
                self.shut = false;
                self.open(seat, out);
            }
            // No lease is longer than the first, and nobody else decides.
            Event::Renew { .. } | Event::Suspect(_) | Event::Trust(_) | Event::Charter(_) => {}
        }
    }

    fn audit(&self, seat: &Place<'_>) {
        assert!(seat.me == DOORMAN || self.inside.is_empty(), "only the doorman lets in");
    }

    fn ledger(&self, show: &mut dyn FnMut(Entry)) {
        for (place, asked) in (1..).zip(&self.queue) {
            let stamp = Stamp { clock: place, node: DOORMAN };
            let Asked { claim, units, .. } = *asked;
            show(Entry { claim, stamp, units, standing: Standing::Waiting, kept: None });
        }
        for (asked, _) in self.inside.values() {
            let stamp = Stamp { clock: 0, node: DOORMAN };
            let Asked { claim, units, .. } = *asked;
            show(Entry { claim, stamp, units, standing: Standing::Granted, kept: None });
        }
    }

    fn lease_end(alarm: &Alarm) -> LeaseEnd {
        match alarm {
            Alarm::Retry => LeaseEnd::Nothing,
            Alarm::LeaseEnd(claim) => LeaseEnd::Of(*claim),
            Alarm::Grace => LeaseEnd::Earlier,
        }
    }

    fn kind(message: &Message) -> usize {
        match message {
            Message::Ask { .. } => 0,
            Message::Enter { .. } => 1,
            Message::Leave { .. } => 2,
        }
    }

    fn capacity(pool: &Pool) -> u32 {
        pool.units
    }

    /// In the order of arrival, which is not the order in which clients asked.
    fn overtakes_max(_: &Pool) -> Option<u32> {
        None
    }

    fn can_lose(_: &Pool, dead: &NodeSet) -> bool {
        !dead.contains(DOORMAN)
    }
}

// What only counts, for the checker, which renames it.
numbers!(Doorman { own, queue, inside, shut, fence });
numbers!(Asked { claim, by, units, sent, arrived });
numbers!(enum Message {
    Ask { claim, units, sent },
    Enter { claim, shares, sent, waited },
    Leave { claim },
});

impl Explorable for Doorman {
    fn promise(message: &Message) -> Option<ClaimId> {
        match message {
            Message::Enter { claim, .. } => Some(*claim),
            Message::Ask { .. } | Message::Leave { .. } => None,
        }
    }
}

impl Own for Doorman {
    const ABOUT: &'static str = "Node 0 lets in whoever comes first";
    const NEEDS: Needs = Needs { order: false, reliability: false, permanence: false };
    const HAS_BOOKS: bool = true;

    fn pool(plan: &PoolPlan, _nodes: u32) -> Result<Pool, String> {
        // Without an end of leases a client that died would be in for ever.
        let length = plan.lease.ok_or("the doorman needs a lease: --lease 10s")?;
        let lease = Lease::new(length, plan.drift_ppm);
        Ok(Pool { units: plan.units, lease, retry: plan.retry })
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::Ask { claim, units, .. } => write!(f, "ask {claim} h{units}"),
            Message::Enter { claim, shares, .. } => write!(f, "enter {claim} {shares}"),
            Message::Leave { claim } => write!(f, "leave {claim}"),
        }
    }
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Alarm::Retry => f.write_str("retry"),
            Alarm::LeaseEnd(claim) => write!(f, "lease-end {claim}"),
            Alarm::Grace => f.write_str("grace"),
        }
    }
}
