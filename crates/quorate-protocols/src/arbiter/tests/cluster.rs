//! A small world whose messages are delivered by hand, judged by the laws after every step.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use quorate_core::{
    Claim, ClaimId, Effect, Event, EventOf, Moment, NodeId, Outbox, Protocol, Seat, Shares, Start,
    Units,
};
use quorate_laws::{Breach, End, Observation, StatuteBook};

use crate::arbiter::{Alarm, Arbiter, Message, Pool, Record};

/// A message on its way.
#[derive(Clone, Debug)]
pub(super) struct Parcel {
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    pub(super) message: Message,
}

/// Nodes, what is on its way between them, and their clients.
pub(super) struct Cluster {
    pub(super) pool: Pool,
    pub(super) nodes: Vec<Arbiter>,
    boots: Vec<u32>,
    pub(super) disks: Vec<Option<Record>>,
    pub(super) alarms: Vec<BTreeSet<Alarm>>,
    pub(super) wires: Vec<Parcel>,
    /// Who uses what now, and when it must stop.
    pub(super) using: BTreeMap<ClaimId, (Shares, Moment)>,
    pub(super) waiting: BTreeMap<ClaimId, NodeId>,
    /// Where each claim was made first.
    homes: BTreeMap<ClaimId, NodeId>,
    pub(super) now: Moment,
    laws: StatuteBook,
    pub(super) breach: Option<Breach>,
    /// Network messages so far, by kind.
    pub(super) sent: BTreeMap<&'static str, usize>,
    pub(super) trace: String,
    /// Messages went on for ever.
    pub(super) storm: bool,
    /// Clients do not hear that they lost what they have.
    pub(super) deaf: bool,
}

pub(super) fn id(serial: u64) -> ClaimId {
    ClaimId { origin: 1, serial }
}

impl Cluster {
    pub(super) fn new(nodes: usize, pool: Pool) -> Self {
        let mut laws = StatuteBook::new(pool.units, Arbiter::overtakes_max(&pool));
        if !Arbiter::names_units(&pool) {
            laws = laws.anonymous();
        }
        let mut cluster = Cluster {
            pool,
            nodes: Vec::new(),
            boots: vec![0; nodes],
            disks: vec![None; nodes],
            alarms: vec![BTreeSet::new(); nodes],
            wires: Vec::new(),
            using: BTreeMap::new(),
            waiting: BTreeMap::new(),
            homes: BTreeMap::new(),
            now: Moment(1),
            laws,
            breach: None,
            sent: BTreeMap::new(),
            trace: String::new(),
            storm: false,
            deaf: false,
        };
        for index in 0..nodes {
            let mut out = Outbox::new();
            let seat =
                Seat { me: NodeId::from(index), boot: 0, now: Moment(1), pool: &cluster.pool };
            let node = Arbiter::boot(&seat, Start::First, &mut out);
            cluster.nodes.push(node);
            cluster.perform(NodeId::from(index), out);
        }
        cluster
    }

    pub(super) fn step(&mut self, node: NodeId, event: EventOf<Arbiter>) {
        let _ = writeln!(self.trace, "{node} {event}");
        let index = node.index();
        let seat = Seat { me: node, boot: self.boots[index], now: self.now, pool: &self.pool };
        let mut out = Outbox::new();
        self.nodes[index].step(&seat, event, &mut out);
        self.nodes[index].audit(&seat);
        self.perform(node, out);
        let mut books = Vec::new();
        self.nodes[index].ledger(&mut |entry| books.push(entry));
        let judged = self.laws.see_books(node, &books);
        self.judge(judged);
    }

    fn judge(&mut self, judged: Result<(), Breach>) {
        if let Err(breach) = judged {
            let _ = writeln!(self.trace, "BREACH {breach}");
            self.breach.get_or_insert(breach);
        }
    }

    fn see(&mut self, seen: Observation<'_>) {
        let judged = self.laws.see(seen);
        self.judge(judged);
    }

    fn perform(&mut self, node: NodeId, mut out: Outbox<Arbiter>) {
        for effect in out.drain() {
            let _ = writeln!(self.trace, "   {effect}");
            match effect {
                Effect::Tell { to, message } => {
                    assert_ne!(to, node, "nobody tells itself");
                    *self.sent.entry(Arbiter::KINDS[Arbiter::kind(&message)]).or_default() += 1;
                    self.wires.push(Parcel { from: node, to, message });
                }
                Effect::Arm { alarm, .. } => drop(self.alarms[node.index()].insert(alarm)),
                Effect::Disarm(alarm) => drop(self.alarms[node.index()].remove(&alarm)),
                Effect::Persist(record) => self.disks[node.index()] = Some(record),
                Effect::Grant { claim, shares, until } => {
                    let claim = self.alias(node, claim);
                    self.waiting.remove(&claim);
                    self.see(Observation::Granted { claim, shares: &shares });
                    self.using.insert(claim, (shares, until));
                }
                Effect::Extend { claim, until } => {
                    let claim = self.alias(node, claim);
                    if let Some((_, deadline)) = self.using.get_mut(&claim) {
                        assert!(until >= *deadline, "a lease is never shortened");
                        let was = std::mem::replace(deadline, until);
                        if was <= self.now {
                            let what = format!("{claim} goes on after its deadline");
                            self.judge(Err(Breach { law: "dead is for good", what }));
                        }
                    }
                }
                Effect::Lose { .. } if self.deaf => {}
                Effect::Lose { claim } => self.end(self.alias(node, claim), End::Told),
                Effect::Refuse { claim, why } => {
                    let claim = self.alias(node, claim);
                    self.waiting.remove(&claim);
                    self.see(Observation::Refused { claim, why });
                }
                Effect::Reclaim { .. }
                | Effect::Move { .. }
                | Effect::AskLicence { .. }
                | Effect::Vouch { .. } => {}
                Effect::Anomaly { peer, what } => {
                    let what = format!("{node} from {peer}: {what}");
                    self.judge(Err(Breach { law: "no anomaly", what }));
                }
            }
        }
    }

    pub(super) fn end(&mut self, claim: ClaimId, how: End) {
        if let Some((shares, _)) = self.using.remove(&claim) {
            self.see(Observation::Ended { claim, shares: &shares, how });
        }
    }

    pub(super) fn claim(&mut self, node: u32, serial: u64, h: u32, draw: u64) {
        let units = Units::new(h, self.pool.units).unwrap();
        self.claim_as(node, Claim { draw, ..Claim::any(id(serial), units) });
    }

    pub(super) fn claim_as(&mut self, node: u32, claim: Claim) {
        self.homes.entry(claim.id).or_insert(NodeId(node));
        let seen = self.alias(NodeId(node), claim.id);
        self.see(Observation::Claimed { claim: seen, units: claim.wanted.units });
        self.waiting.insert(seen, NodeId(node));
        self.step(NodeId(node), Event::Claim(claim));
    }

    /// What the laws call a claim as a node knows it: one that is repeated at another node than the
    /// first is judged like a claim of its own.
    pub(super) fn alias(&self, node: NodeId, claim: ClaimId) -> ClaimId {
        let at_home = self.homes.get(&claim).is_none_or(|&home| home == node);
        if at_home { claim } else { ClaimId { origin: 2 + u64::from(node.0), ..claim } }
    }

    pub(super) fn home_of(&self, claim: ClaimId) -> u32 {
        self.homes[&claim].0
    }

    pub(super) fn release(&mut self, node: u32, serial: u64) {
        self.end(self.alias(NodeId(node), id(serial)), End::Released);
        self.step(NodeId(node), Event::Release(id(serial)));
    }

    pub(super) fn cancel(&mut self, node: u32, serial: u64) {
        self.end(self.alias(NodeId(node), id(serial)), End::Released);
        self.step(NodeId(node), Event::Cancel(id(serial)));
    }

    pub(super) fn renew(&mut self, node: u32, serial: u64) {
        let (shares, _) = self.using[&self.alias(NodeId(node), id(serial))].clone();
        self.step(NodeId(node), Event::Renew { claim: id(serial), shares });
    }

    /// The first message of this kind on that link arrives.
    pub(super) fn deliver(&mut self, from: u32, to: u32, kind: &str) {
        let place = self.find(from, to, kind);
        let parcel = self.wires.remove(place);
        self.arrive(parcel);
    }

    /// It arrives, and a copy of it stays on its way.
    pub(super) fn deliver_and_keep(&mut self, from: u32, to: u32, kind: &str) {
        let parcel = self.wires[self.find(from, to, kind)].clone();
        self.arrive(parcel);
    }

    fn find(&self, from: u32, to: u32, kind: &str) -> usize {
        let is_it = |p: &Parcel| {
            p.from == NodeId(from)
                && p.to == NodeId(to)
                && Arbiter::KINDS[Arbiter::kind(&p.message)] == kind
        };
        let place = self.wires.iter().position(is_it);
        place.unwrap_or_else(|| panic!("no {kind} from {from} to {to}:\n{}", self.trace))
    }

    pub(super) fn arrive(&mut self, Parcel { from, to, message }: Parcel) {
        self.step(to, Event::Hear { from, message });
    }

    /// Everything on its way arrives, in the order of sending, and what comes of it too.
    pub(super) fn settle(&mut self) {
        for _ in 0..10_000 {
            if self.wires.is_empty() || self.breach.is_some() {
                return;
            }
            let parcel = self.wires.remove(0);
            self.arrive(parcel);
        }
        self.storm = true;
    }

    pub(super) fn ring(&mut self, node: u32, alarm: Alarm) {
        let armed = self.alarms[node as usize].remove(&alarm);
        assert!(armed, "{alarm} is not armed at n{node}");
        self.step(NodeId(node), Event::Ring(alarm));
    }

    /// A node is gone with everything on its way to it, and comes back.
    pub(super) fn restart(&mut self, node: u32, start: Start<Record>) {
        let (index, me) = (node as usize, NodeId(node));
        self.wires.retain(|parcel| parcel.to != me);
        self.alarms[index].clear();
        self.boots[index] += 1;
        self.laws.see_restart(me);
        let _ = writeln!(self.trace, "n{node} restarts");
        let mut out = Outbox::new();
        let seat = Seat { me, boot: self.boots[index], now: self.now, pool: &self.pool };
        self.nodes[index] = Arbiter::boot(&seat, start, &mut out);
        self.perform(me, out);
    }

    pub(super) fn is_using(&self, serial: u64) -> bool {
        self.using.contains_key(&id(serial))
    }

    pub(super) fn units_in_use(&self) -> usize {
        self.using.values().map(|(shares, _)| shares.len()).sum()
    }

    /// Fails with the transcript if a law was broken.
    pub(super) fn must_be_lawful(&self) {
        assert!(!self.storm, "it never settles:\n{}", &self.trace[..5_000]);
        if let Some(breach) = &self.breach {
            panic!("{breach}\n{}", self.trace);
        }
    }

    /// Fails with the transcript unless this law was broken.
    pub(super) fn must_break(&self, law: &str) {
        let broken = self.breach.as_ref().map(|breach| breach.law);
        assert_eq!(broken, Some(law), "\n{}", self.trace);
    }
}
