//! A toy protocol for the simulator's own tests: node 0 grants in order of arrival, for one lease,
//! without renewal. Correct under every fault, unless told to make a mistake.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use quorate_core::{
    Claim, ClaimId, Entry, Event, EventOf, Fence, Lease, LeaseEnd, Moment, NodeId, NodeSet, Outbox,
    Protocol, Refusal, Seat, Share, Shares, Stamp, Standing, Start, Unit, Units,
};

const ARBITER: NodeId = NodeId(0);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Pool {
    pub(crate) units: u32,
    pub(crate) lease: Lease,
    pub(crate) retry: Duration,
    pub(crate) durable: bool,
    pub(crate) mistake: Option<Mistake>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Mistake {
    TellBeforePersist,
    GrantWithoutRoom,
    NeverRetry,
    Panic,
    IgnoreDrift,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Message {
    Ask { claim: ClaimId, units: Units, sent: Moment },
    Have { claim: ClaimId, shares: Shares, sent: Moment, waited: Duration },
    Done { claim: ClaimId },
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::Ask { claim, units, .. } => write!(f, "ask {claim} h{units}"),
            Message::Have { claim, shares, .. } => write!(f, "have {claim} {shares}"),
            Message::Done { claim } => write!(f, "done {claim}"),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Alarm {
    Retry,
    LeaseEnd(ClaimId),
    Grace,
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

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Asked {
    claim: ClaimId,
    by: NodeId,
    units: Units,
    sent: Moment,
    arrived: Moment,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Books {
    grants: BTreeMap<ClaimId, (Asked, Shares)>,
    grace: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Toy {
    /// Clients' claims here that were not granted yet; a granted one has no units to ask for.
    pending: BTreeMap<ClaimId, Option<Units>>,
    queue: VecDeque<Asked>,
    books: Books,
    fence: Fence,
}

type Out<'a> = &'a mut Outbox<Toy>;

impl Toy {
    fn ask(&mut self, seat: &Seat<'_, Toy>, claim: ClaimId, units: Units, out: Out<'_>) {
        let message = Message::Ask { claim, units, sent: seat.now };
        self.send(seat, ARBITER, message, out);
    }

    fn send(&mut self, seat: &Seat<'_, Toy>, to: NodeId, message: Message, out: Out<'_>) {
        if to == seat.me { self.hear(seat, to, message, out) } else { out.tell(to, message) }
    }

    fn hear(&mut self, seat: &Seat<'_, Toy>, from: NodeId, message: Message, out: Out<'_>) {
        match message {
            Message::Ask { claim, units, sent } => {
                let asked = Asked { claim, by: from, units, sent, arrived: seat.now };
                if self.books.grants.contains_key(&claim) {
                    self.promise(seat, asked, None, out);
                } else if !self.queue.iter().any(|other| other.claim == claim) {
                    self.queue.push_back(asked);
                    self.schedule(seat, out);
                }
            }
            Message::Have { claim, shares, sent, waited } => {
                let mut until = seat.pool.lease.deadline(sent, waited);
                if seat.pool.mistake == Some(Mistake::IgnoreDrift) {
                    until = sent.after(waited + seat.pool.lease.length());
                }
                if let Some(pending @ Some(_)) = self.pending.get_mut(&claim)
                    && until > seat.now
                {
                    *pending = None;
                    out.grant(claim, shares, until);
                }
            }
            Message::Done { claim } => {
                self.queue.retain(|asked| asked.claim != claim);
                if self.books.grants.remove(&claim).is_some() {
                    out.disarm(Alarm::LeaseEnd(claim));
                }
                self.schedule(seat, out);
            }
        }
    }

    fn schedule(&mut self, seat: &Seat<'_, Toy>, out: Out<'_>) {
        while let Some(first) = self.queue.front()
            && !self.books.grace
        {
            let free = self.free(seat);
            if free.len() < first.units.get() as usize {
                break;
            }
            let asked = self.queue.pop_front().expect("there is a first");
            assert!(seat.pool.mistake != Some(Mistake::Panic), "the toy is told to panic");
            self.fence = self.fence.max(Fence::floor(seat.boot)).next();
            let shares: Vec<Share> = free[..asked.units.get() as usize]
                .iter()
                .map(|&unit| Share { unit, fence: self.fence })
                .collect();
            self.promise(seat, asked, Some(Shares::new(&shares)), out);
        }
    }

    /// A new promise, or a repeated one under the reading of the newest question.
    fn promise(
        &mut self,
        seat: &Seat<'_, Toy>,
        asked: Asked,
        shares: Option<Shares>,
        out: Out<'_>,
    ) {
        let (claim, sent, by) = (asked.claim, asked.sent, asked.by);
        let waited = seat.now.since(asked.arrived);
        let shares = shares.unwrap_or_else(|| self.books.grants[&claim].1.clone());
        self.books.grants.insert(claim, (asked, shares.clone()));
        let have = Message::Have { claim, shares, sent, waited };
        let hasty = seat.pool.mistake == Some(Mistake::TellBeforePersist);
        out.arm(Alarm::LeaseEnd(claim), seat.pool.lease.length());
        if hasty {
            self.send(seat, by, have.clone(), out);
        }
        if seat.pool.durable {
            out.persist(self.books.clone());
        }
        if !hasty {
            self.send(seat, by, have, out);
        }
    }

    fn free(&self, seat: &Seat<'_, Toy>) -> Vec<Unit> {
        let used = |unit| self.books.grants.values().any(|(_, s)| s.iter().any(|s| s.unit == unit));
        let blind = seat.pool.mistake == Some(Mistake::GrantWithoutRoom);
        (0..seat.pool.units).map(Unit).filter(|unit| blind || !used(*unit)).collect()
    }
}

impl Protocol for Toy {
    type Pool = Pool;
    type Message = Message;
    type Alarm = Alarm;
    type Durable = Books;

    const NAME: &'static str = "toy";
    const KINDS: &'static [&'static str] = &["ask", "have", "done"];

    fn boot(seat: &Seat<'_, Self>, start: Start<Books>, out: &mut Outbox<Self>) -> Self {
        let mut toy = Toy::default();
        match start {
            _ if seat.me != ARBITER => {}
            Start::First => {}
            Start::Recovered(record) if seat.pool.durable => {
                toy.books = record.unwrap_or_default();
                for claim in toy.books.grants.keys() {
                    out.arm(Alarm::LeaseEnd(*claim), seat.pool.lease.length());
                }
            }
            Start::Recovered(_) | Start::Amnesia => toy.books.grace = true,
        }
        if toy.books.grace {
            if seat.pool.durable {
                out.persist(toy.books.clone());
            }
            out.arm(Alarm::Grace, seat.pool.lease.length());
        }
        toy
    }

    fn step(&mut self, seat: &Seat<'_, Self>, event: EventOf<Self>, out: &mut Outbox<Self>) {
        match event {
            Event::Claim(Claim { id, wanted, .. }) => {
                if self.pending.contains_key(&id) {
                    return;
                }
                self.pending.insert(id, Some(wanted.units));
                if seat.pool.mistake != Some(Mistake::NeverRetry) {
                    out.arm(Alarm::Retry, seat.pool.retry);
                }
                self.ask(seat, id, wanted.units, out);
            }
            Event::Release(claim) | Event::Cancel(claim) | Event::Withdraw(claim) => {
                if matches!(event, Event::Cancel(_)) {
                    out.refuse(claim, Refusal::Cancelled);
                }
                self.pending.remove(&claim);
                self.send(seat, ARBITER, Message::Done { claim }, out);
            }
            Event::Renew { .. } | Event::Suspect(_) | Event::Trust(_) | Event::Charter(_) => {}
            Event::Hear { from, message } => self.hear(seat, from, message, out),
            Event::Ring(Alarm::Retry) => {
                for (claim, units) in self.pending.clone() {
                    if let Some(units) = units {
                        out.arm(Alarm::Retry, seat.pool.retry);
                        self.ask(seat, claim, units, out);
                    }
                }
            }
            Event::Ring(Alarm::LeaseEnd(claim)) => {
                let (_, shares) = self.books.grants.remove(&claim).expect("armed for grants only");
                out.reclaim(claim, shares);
                self.schedule(seat, out);
            }
            Event::Ring(Alarm::Grace) => {
                self.books.grace = false;
                if seat.pool.durable {
                    out.persist(self.books.clone());
                }
                self.schedule(seat, out);
            }
        }
    }

    fn audit(&self, seat: &Seat<'_, Self>) {
        assert!(seat.me == ARBITER || self.books == Books::default());
    }

    fn ledger(&self, show: &mut dyn FnMut(Entry)) {
        for (place, asked) in self.queue.iter().enumerate() {
            let stamp = Stamp { clock: place as u64, node: ARBITER };
            let Asked { claim, units, .. } = *asked;
            show(Entry { claim, stamp, units, standing: Standing::Waiting, kept: None });
        }
        for (&claim, (asked, _)) in &self.books.grants {
            let stamp = Stamp { clock: 0, node: ARBITER };
            show(Entry {
                claim,
                stamp,
                units: asked.units,
                standing: Standing::Adopted,
                kept: None,
            });
        }
    }

    fn lease_end(_: &Alarm) -> LeaseEnd {
        LeaseEnd::Nothing
    }

    fn kind(message: &Message) -> usize {
        match message {
            Message::Ask { .. } => 0,
            Message::Have { .. } => 1,
            Message::Done { .. } => 2,
        }
    }

    fn capacity(pool: &Pool) -> u32 {
        pool.units
    }

    fn overtakes_max(_: &Pool) -> Option<u32> {
        None
    }

    fn can_lose(_: &Pool, dead: &NodeSet) -> bool {
        !dead.contains(ARBITER)
    }
}
