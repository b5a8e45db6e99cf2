//! A world driven by hand with clients, disks and alarms, judged by the laws after every step.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::{Deref, DerefMut};

use quorate_core::{
    Claim, ClaimId, Effect, EffectOf, Event, EventOf, Moment, NodeId, Outbox, Protocol, Seat,
    Shares, Start,
};
use quorate_laws::{Breach, End, Observation, StatuteBook};

use super::{ByHand, Parcel};

/// A claim in use.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    pub(crate) node: NodeId,
    /// Which boot of the node answers for it.
    pub(crate) boot: u32,
    pub(crate) shares: Shares,
    /// When its client must stop.
    pub(crate) until: Moment,
}

/// See the module.
pub(crate) struct Judged<P: Protocol> {
    world: ByHand<P>,
    pub(crate) disks: Vec<Option<P::Durable>>,
    pub(crate) alarms: Vec<BTreeSet<P::Alarm>>,
    pub(crate) using: BTreeMap<ClaimId, Use>,
    pub(crate) waiting: BTreeMap<ClaimId, NodeId>,
    /// Where each claim was made first.
    homes: BTreeMap<ClaimId, NodeId>,
    pub(crate) laws: StatuteBook,
    /// The first law that was broken.
    pub(crate) breach: Option<Breach>,
    /// Whose clients were told a deadline in the last step.
    pub(crate) dated: Vec<ClaimId>,
    /// Messages so far, by kind.
    pub(crate) kinds: BTreeMap<&'static str, usize>,
    pub(crate) grants: u64,
    pub(crate) reclaims: u64,
    /// What happened, if it is kept.
    pub(crate) trace: String,
    is_traced: bool,
    /// Messages went on for ever.
    pub(crate) storm: bool,
    /// Clients do not hear that they lost what they have.
    pub(crate) deaf: bool,
}

impl<P: Protocol> Deref for Judged<P> {
    type Target = ByHand<P>;

    fn deref(&self) -> &ByHand<P> {
        &self.world
    }
}

impl<P: Protocol> DerefMut for Judged<P> {
    fn deref_mut(&mut self) -> &mut ByHand<P> {
        &mut self.world
    }
}

impl<P: Protocol> Judged<P> {
    /// Nodes that start for the first time; `is_traced` if what happens is worth its words.
    pub(crate) fn new(nodes: usize, pool: P::Pool, now: Moment, is_traced: bool) -> Self {
        let laws = laws::<P>(&pool);
        let (world, wanted) = ByHand::started(nodes, pool, now);
        let (using, waiting, homes, kinds) = Default::default();
        let mut judged = Judged {
            world,
            disks: vec![None; nodes],
            alarms: vec![BTreeSet::new(); nodes],
            using,
            waiting,
            homes,
            laws,
            breach: None,
            dated: Vec::new(),
            kinds,
            grants: 0,
            reclaims: 0,
            trace: String::new(),
            is_traced,
            storm: false,
            deaf: false,
        };
        for (node, effect) in wanted {
            judged.perform(node, vec![effect]);
        }
        judged
    }

    /// The laws begin anew.
    pub(crate) fn forget_breaches(&mut self) {
        (self.laws, self.breach) = (laws::<P>(&self.world.pool), None);
    }

    fn note(&mut self, line: std::fmt::Arguments<'_>) {
        if self.is_traced {
            let _ = writeln!(self.trace, "{line}");
        }
    }

    pub(crate) fn step(&mut self, node: NodeId, event: EventOf<P>) {
        self.note(format_args!("{node} {event}"));
        self.act(node, |participant, seat, out| participant.step(seat, event, out));
    }

    /// The same for what is no event.
    pub(crate) fn act(
        &mut self,
        node: NodeId,
        act: impl FnOnce(&mut P, &Seat<'_, P>, &mut Outbox<P>),
    ) {
        let ((), wanted) = self.world.acted(node, act);
        self.perform(node, wanted);
        let mut books = Vec::new();
        self.world.nodes[node.index()].ledger(&mut |entry| books.push(entry));
        let judged = self.laws.see_books(node, &books);
        self.judge(judged);
    }

    fn judge(&mut self, judged: Result<(), Breach>) {
        if let Err(breach) = judged {
            self.note(format_args!("BREACH {breach}"));
            self.breach.get_or_insert(breach);
        }
    }

    pub(crate) fn see(&mut self, seen: Observation<'_>) {
        let judged = self.laws.see(seen);
        self.judge(judged);
    }

    fn perform(&mut self, node: NodeId, wanted: Vec<EffectOf<P>>) {
        self.dated.clear();
        for effect in wanted {
            self.note(format_args!("   {effect}"));
            if let Effect::Tell { message, .. } = &effect {
                *self.kinds.entry(P::KINDS[P::kind(message)]).or_default() += 1;
            }
            let Some(effect) = self.world.send(node, effect) else { continue };
            match effect {
                Effect::Arm { alarm, .. } => drop(self.alarms[node.index()].insert(alarm)),
                Effect::Disarm(alarm) => drop(self.alarms[node.index()].remove(&alarm)),
                Effect::Persist(record) => self.disks[node.index()] = Some(record),
                Effect::Grant { claim, shares, until } => {
                    let claim = self.alias(node, claim);
                    self.grants += 1;
                    self.waiting.remove(&claim);
                    self.see(Observation::Granted { claim, shares: &shares });
                    let boot = self.world.boots[node.index()];
                    self.using.insert(claim, Use { node, boot, shares, until });
                    self.dated.push(claim);
                }
                Effect::Extend { claim, until } => self.extend(self.alias(node, claim), until),
                Effect::Lose { .. } if self.deaf => {}
                Effect::Lose { claim } => self.end(self.alias(node, claim), End::Told),
                Effect::Refuse { claim, why } => {
                    let claim = self.alias(node, claim);
                    self.waiting.remove(&claim);
                    self.see(Observation::Refused { claim, why });
                }
                Effect::Reclaim { .. } => self.reclaims += 1,
                Effect::Anomaly { peer, what } => {
                    let what = format!("{node} from {peer}: {what}");
                    self.judge(Err(Breach { law: "no anomaly", what }));
                }
                Effect::Tell { .. } => unreachable!("it is on its way"),
                Effect::Move { .. } | Effect::AskLicence { .. } | Effect::Vouch { .. } => {
                    panic!("nobody here answers that: {effect}")
                }
            }
        }
    }

    fn extend(&mut self, claim: ClaimId, until: Moment) {
        let Some(used) = self.using.get_mut(&claim) else { return };
        assert!(until >= used.until, "a lease is never shortened");
        let was = std::mem::replace(&mut used.until, until);
        self.dated.push(claim);
        if was <= self.world.now {
            let what = format!("{claim} goes on after its deadline");
            self.judge(Err(Breach { law: "dead is for good", what }));
        }
    }

    /// A client stops using what it has, if it has something.
    pub(crate) fn end(&mut self, claim: ClaimId, how: End) {
        if let Some(Use { shares, .. }) = self.using.remove(&claim) {
            self.see(Observation::Ended { claim, shares: &shares, how });
        }
    }

    pub(crate) fn claim_as(&mut self, node: NodeId, claim: Claim) {
        self.homes.entry(claim.id).or_insert(node);
        let seen = self.alias(node, claim.id);
        self.see(Observation::Claimed { claim: seen, units: claim.wanted.units });
        self.waiting.insert(seen, node);
        self.step(node, Event::Claim(claim));
    }

    /// What the laws call a claim as a node knows it: one that is repeated at another node than the
    /// first is judged like a claim of its own.
    pub(crate) fn alias(&self, node: NodeId, claim: ClaimId) -> ClaimId {
        let at_home = self.homes.get(&claim).is_none_or(|&home| home == node);
        if at_home { claim } else { ClaimId { origin: 2 + u64::from(node.0), ..claim } }
    }

    pub(crate) fn home_of(&self, claim: ClaimId) -> NodeId {
        self.homes[&claim]
    }

    pub(crate) fn arrive(&mut self, (from, to, message): Parcel<P::Message>) {
        self.step(to, Event::Hear { from, message });
    }

    /// The message at this place arrives.
    pub(crate) fn take(&mut self, place: usize) -> Parcel<P::Message> {
        self.world.wire.remove(place).expect("it is on its way")
    }

    /// Everything on its way arrives, in the order of sending, and what comes of it too.
    pub(crate) fn settle(&mut self) {
        for _ in 0..10_000 {
            if self.world.wire.is_empty() || self.breach.is_some() {
                return;
            }
            let parcel = self.take(0);
            self.arrive(parcel);
        }
        self.storm = true;
    }

    pub(crate) fn ring(&mut self, node: u32, alarm: P::Alarm) {
        let node = NodeId(node);
        let armed = self.alarms[node.index()].remove(&alarm);
        assert!(armed, "{alarm} is not armed at {node}");
        self.step(node, Event::Ring(alarm));
    }

    /// A node is gone with everything on its way to it, and comes back.
    pub(crate) fn restart(&mut self, node: u32, start: Start<P::Durable>) {
        let node = NodeId(node);
        self.alarms[node.index()].clear();
        self.laws.see_restart(node);
        self.note(format_args!("{node} restarts"));
        let wanted = self.world.restarted(node, start);
        self.perform(node, wanted);
    }

    /// Fails with the transcript if a law was broken.
    pub(crate) fn must_be_lawful(&self) {
        assert!(!self.storm, "it never settles:\n{}", &self.trace[..5_000]);
        if let Some(breach) = &self.breach {
            panic!("{breach}\n{}", self.trace);
        }
    }

    /// Fails with the transcript unless this law was broken.
    pub(crate) fn must_break(&self, law: &str) {
        let broken = self.breach.as_ref().map(|breach| breach.law);
        assert_eq!(broken, Some(law), "\n{}", self.trace);
    }
}

fn laws<P: Protocol>(pool: &P::Pool) -> StatuteBook {
    let laws = StatuteBook::new(P::capacity(pool), P::overtakes_max(pool));
    if P::names_units(pool) { laws } else { laws.anonymous() }
}
