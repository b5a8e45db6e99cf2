//! Seats as a driver sees them: whole pools under dice, judged by the laws.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use quorate_core::{
    Claim, ClaimId, Effect, Event, EventOf, Moment, NodeId, Outbox, Protocol, Seat, Shares,
};
use quorate_core::{Start, Units};
use quorate_laws::{Breach, End, Observation, StatuteBook};

use super::super::pool::Mutant;
use super::*;

/// A pool in one process: order on links, and clients that keep their word.
struct Cluster {
    pool: Pool,
    seats: Vec<Ring>,
    boots: Vec<u32>,
    links: BTreeMap<(NodeId, NodeId), VecDeque<Parcel>>,
    alarms: BTreeSet<(NodeId, Alarm)>,
    laws: StatuteBook,
    /// The first law broken.
    broken: Option<Breach>,
    /// What a restarted node is told: to forget, or (broken) that nobody can have anything.
    restart: Start<()>,
    waiting: BTreeMap<ClaimId, NodeId>,
    using: BTreeMap<ClaimId, Use>,
    /// The epoch that the last suspicion began.
    suspected: Option<Epoch>,
    dice: Dice,
    serial: u64,
    grants: u64,
    reclaims: u64,
}

/// A claim in use.
#[derive(Clone, Debug)]
struct Use {
    node: NodeId,
    /// Which boot of the node answers for it.
    boot: u32,
    shares: Shares,
    /// The node's epoch when it last set the client's deadline.
    epoch: Option<Epoch>,
}

impl Cluster {
    fn new(pool: Pool, seed: u64) -> Self {
        let nodes = pool.nodes() as usize;
        let mut cluster = Cluster {
            laws: StatuteBook::new(Ring::capacity(&pool), None),
            broken: None,
            restart: Start::Amnesia,
            pool,
            seats: Vec::new(),
            boots: vec![0; nodes],
            links: BTreeMap::new(),
            alarms: BTreeSet::new(),
            waiting: BTreeMap::new(),
            using: BTreeMap::new(),
            suspected: None,
            dice: Dice::new(seed),
            serial: 0,
            grants: 0,
            reclaims: 0,
        };
        for node in 0..nodes {
            let (pool, me) = (cluster.pool.clone(), NodeId::from(node));
            let mut out = Outbox::new();
            let seat = Seat { me, boot: 0, now: Moment::ZERO, pool: &pool };
            cluster.seats.push(Ring::boot(&seat, Start::First, &mut out));
            cluster.perform(me, &mut out);
        }
        cluster
    }

    fn step(&mut self, node: NodeId, event: EventOf<Ring>) {
        let pool = self.pool.clone();
        let boot = self.boots[node.index()];
        let seat = Seat { me: node, boot, now: Moment::ZERO, pool: &pool };
        let mut out = Outbox::new();
        self.seats[node.index()].step(&seat, event, &mut out);
        self.seats[node.index()].audit(&seat);
        self.perform(node, &mut out);
    }

    fn perform(&mut self, node: NodeId, out: &mut Outbox<Ring>) {
        for effect in out.drain() {
            match effect {
                Effect::Tell { to, message } => {
                    assert_ne!(to, node);
                    self.links.entry((node, to)).or_default().push_back(message);
                }
                Effect::Arm { alarm, .. } => {
                    self.alarms.insert((node, alarm));
                }
                Effect::Disarm(alarm) => {
                    self.alarms.remove(&(node, alarm));
                }
                Effect::Grant { claim, shares, .. } => {
                    self.grants += 1;
                    self.waiting.remove(&claim).expect("whoever is granted was waiting");
                    self.see(Observation::Granted { claim, shares: &shares });
                    let boot = self.boots[node.index()];
                    let epoch = self.seats[node.index()].tether.epoch;
                    self.using.insert(claim, Use { node, boot, shares, epoch });
                }
                Effect::Refuse { claim, why } => {
                    self.waiting.remove(&claim);
                    self.see(Observation::Refused { claim, why });
                }
                Effect::Reclaim { .. } => self.reclaims += 1,
                Effect::Move { .. } => unreachable!("tokens do not ask holders to move"),
                Effect::Lose { claim } => {
                    if self.using.contains_key(&claim) {
                        self.end(claim, End::Deadline);
                    }
                }
                Effect::Extend { claim, .. } => {
                    let epoch = self.seats[node.index()].tether.epoch;
                    self.using.get_mut(&claim).expect("only users renew").epoch = epoch;
                }
                Effect::Persist(())
                | Effect::AskLicence { .. }
                | Effect::Vouch { .. }
                | Effect::Anomaly { .. } => {
                    panic!("{effect}")
                }
            }
        }
    }

    fn see(&mut self, seen: Observation<'_>) {
        if let Err(breach) = self.laws.see(seen) {
            self.broken.get_or_insert(breach);
        }
    }

    fn claim(&mut self, node: NodeId, units: u32) -> ClaimId {
        self.serial += 1;
        let id = ClaimId { origin: u64::from(node.0), serial: self.serial };
        let units = Units::new(units, Ring::capacity(&self.pool)).expect("1 <= h <= k");
        self.see(Observation::Claimed { claim: id, units });
        self.waiting.insert(id, node);
        self.step(node, Event::Claim(Claim::any(id, units)));
        id
    }

    /// A client stops, and says so unless it just ran into its deadline.
    fn end(&mut self, claim: ClaimId, how: End) {
        let Use { node, boot, shares, .. } = self.using.remove(&claim).expect("it uses something");
        self.see(Observation::Ended { claim, shares: &shares, how });
        if how == End::Released && boot == self.boots[node.index()] {
            self.step(node, Event::Release(claim));
        }
    }

    /// The leases that are over when the alarm rings are over for their holders first.
    fn ring(&mut self, node: NodeId, alarm: Alarm) {
        self.alarms.remove(&(node, alarm));
        let over: Vec<ClaimId> = match alarm {
            Alarm::LeaseEnd(claim) => self.using.contains_key(&claim).then_some(claim),
            _ => None,
        }
        .into_iter()
        .collect();
        if alarm == Alarm::Quarantine {
            self.whoever_was_left_out_stops();
        }
        let earlier: Vec<ClaimId> = match alarm {
            Alarm::Grace => self
                .using
                .iter()
                .filter(|(_, uses)| uses.node == node && uses.boot < self.boots[node.index()])
                .map(|(&claim, _)| claim)
                .collect(),
            _ => Vec::new(),
        };
        for claim in over.into_iter().chain(earlier) {
            self.end(claim, End::Deadline);
        }
        self.step(node, Event::Ring(alarm));
    }

    /// The order that licences give: when the root's quarantine ends, no node has a licence that
    /// has not passed on a frame since the last suspicion, and no client goes on whose deadline was
    /// set before that. A restarted node without a licence takes clients back, but sets none.
    fn whoever_was_left_out_stops(&mut self) {
        if self.pool.breaks(Mutant::NoFence) {
            return;
        }
        for node in (1..self.seats.len()).map(NodeId::from) {
            let behind = self.seats[node.index()].tether.epoch < self.suspected;
            if behind && self.alarms.remove(&(node, Alarm::Fence)) {
                self.step(node, Event::Ring(Alarm::Fence));
            }
        }
        let over: Vec<ClaimId> = self
            .using
            .iter()
            .filter(|(_, uses)| uses.node != NodeId(0) && uses.epoch < self.suspected)
            .map(|(&claim, _)| claim)
            .collect();
        over.into_iter().for_each(|claim| self.end(claim, End::Deadline));
    }

    /// The root's failure detector changes its mind, rightly or not.
    fn change_opinion(&mut self, node: NodeId) {
        if node != NodeId(0) {
            let event = match self.seats[0].tether.skipped.contains(node) {
                true => Event::Trust(node),
                false => Event::Suspect(node),
            };
            let suspicion = matches!(event, Event::Suspect(_));
            self.step(NodeId(0), event);
            if suspicion {
                self.suspected = self.seats[0].tether.epoch;
            }
        }
    }

    /// Faults are over.
    fn everyone_is_trusted(&mut self) {
        let skipped = self.seats[0].tether.skipped.clone();
        skipped.iter().for_each(|node| self.step(NodeId(0), Event::Trust(node)));
    }

    fn crash(&mut self, node: NodeId) {
        self.links.retain(|(_, to), _| *to != node);
        self.alarms.retain(|(at, _)| *at != node);
        let lost: Vec<ClaimId> =
            self.waiting.iter().filter(|(_, at)| **at == node).map(|(&claim, _)| claim).collect();
        for claim in lost {
            self.waiting.remove(&claim);
            self.see(Observation::Abandoned { claim });
        }
        self.boots[node.index()] += 1;
        let (pool, boot) = (self.pool.clone(), self.boots[node.index()]);
        let seat = Seat { me: node, boot, now: Moment::ZERO, pool: &pool };
        let mut out = Outbox::new();
        self.seats[node.index()] = Ring::boot(&seat, self.restart, &mut out);
        self.perform(node, &mut out);
    }

    fn pick<T: Clone>(&mut self, among: Vec<T>) -> Option<T> {
        let len = among.len() as u64;
        (len > 0).then(|| among[self.dice.below(len) as usize].clone())
    }

    /// The oldest message of some link arrives.
    fn deliver(&mut self) {
        if self.alarms.contains(&(NodeId(0), Alarm::Hop)) {
            return self.ring(NodeId(0), Alarm::Hop);
        }
        let open = self.links.iter().filter(|(_, queue)| !queue.is_empty()).map(|(&ends, _)| ends);
        if let Some((from, to)) = self.pick(open.collect()) {
            let queue = self.links.get_mut(&(from, to)).expect("it was picked");
            let message = queue.pop_front().expect("it is open");
            self.step(to, Event::Hear { from, message });
        }
    }

    /// One thing happens. `faults` says how often, of a thousand, one of the unkind things does.
    fn happen(&mut self, asking: bool, faults: u64) {
        let node = NodeId(self.dice.below(u64::from(self.pool.nodes())) as u32);
        if self.dice.below(1000) < faults {
            match self.dice.below(6) {
                0 => self.crash(node),
                4 | 5 => self.change_opinion(node),
                1 => {
                    let queues = self.links.keys().copied().collect();
                    if let Some(ends) = self.pick(queues) {
                        self.links.get_mut(&ends).expect("it was picked").pop_front();
                    }
                }
                _ => {
                    if let Some((at, alarm)) = self.pick(self.alarms.iter().copied().collect()) {
                        self.ring(at, alarm);
                    }
                }
            }
            return;
        }
        match self.dice.below(12) {
            0 if asking => {
                let units = 1 + self.dice.below(u64::from(Ring::capacity(&self.pool))) as u32;
                self.claim(node, units);
            }
            1 => {
                if let Some(claim) = self.pick(self.using.keys().copied().collect()) {
                    self.end(claim, End::Released);
                }
            }
            2 if asking => {
                if let Some((claim, at)) =
                    self.pick(self.waiting.iter().map(|(&c, &n)| (c, n)).collect())
                {
                    self.step(at, Event::Cancel(claim));
                }
            }
            3 => {
                let uses = self.using.iter().map(|(&c, uses)| (c, uses.clone())).collect();
                if let Some((claim, Use { node, shares, .. })) = self.pick(uses) {
                    self.step(node, Event::Renew { claim, shares });
                    // What a restarted node takes back is its own again.
                    if self.seats[node.index()].place_of(claim).is_some() {
                        let boot = self.boots[node.index()];
                        self.using.get_mut(&claim).expect("it was picked").boot = boot;
                    }
                }
            }
            4 => self.kind_alarm(),
            _ => self.deliver(),
        }
    }

    /// Rings what has to ring for anything to go on; the root's patience is seldom too short.
    fn kind_alarm(&mut self) {
        let hop = (NodeId(0), Alarm::Hop);
        let empty = self.links.values().all(VecDeque::is_empty) && !self.alarms.contains(&hop);
        let impatient = empty || self.dice.below(300) == 0;
        let seldom = self.dice.below(20) == 0;
        let due = self.alarms.iter().copied().filter(|(_, alarm)| match alarm {
            Alarm::Timeout | Alarm::Idle => impatient,
            Alarm::Grace | Alarm::Quarantine => true,
            Alarm::Fence => impatient && seldom,
            // Clients that go on renew in time.
            Alarm::LeaseEnd(claim) => !self.using.contains_key(claim),
            Alarm::Hop => false,
        });
        if let Some((at, alarm)) = self.pick(due.collect()) {
            self.ring(at, alarm);
        }
    }

    fn everyone_is_served(&mut self) {
        self.everyone_is_trusted();
        for _ in 0..200_000 {
            if self.waiting.is_empty() && self.using.is_empty() {
                assert_eq!(self.broken, None);
                assert_eq!(self.laws.at_rest(std::iter::empty()), Ok(()));
                return;
            }
            self.happen(false, 0);
        }
        panic!("{} still waiting, {:?} in use", self.waiting.len(), self.using);
    }
}

fn pools(variant: Variant) -> Vec<Pool> {
    let star: Vec<(NodeId, NodeId)> = (1..4).map(|i| (NodeId(0), NodeId(i))).collect();
    let mut pools =
        vec![Pool::new(1, 1), Pool::new(2, 2), Pool::new(4, 3), Pool::new(6, 5), Pool::new(3, 1)];
    pools.push(Pool::on_network(3, &star).expect("a star is connected"));
    for pool in &mut pools {
        pool.variant = variant;
    }
    pools
}

#[test]
fn the_laws_hold_and_everyone_is_served() {
    for variant in [Variant::Core, Variant::Train] {
        for pool in pools(variant) {
            for seed in 0..20 {
                let mut cluster = Cluster::new(pool.clone(), seed);
                for _ in 0..2500 {
                    cluster.happen(true, 0);
                }
                cluster.everyone_is_served();
                assert!(cluster.grants > 5, "{variant:?}");
                assert_eq!(cluster.reclaims, 0);
            }
        }
    }
}

#[test]
fn train_stays_within_capacity_through_losses_early_alarms_and_restarts() {
    for pool in pools(Variant::Train) {
        for seed in 0..100 {
            let mut cluster = Cluster::new(pool.clone(), seed);
            for _ in 0..2500 {
                cluster.happen(true, 20);
            }
            cluster.everyone_is_served();
        }
    }
}

/// A node that takes its second boot for its first lets the root believe that its clients are
/// gone.
#[test]
fn a_restarted_node_that_is_not_blind_is_caught() {
    let law = first_broken(&Pool::new(2, 3), Start::First).expect("somebody notices");
    assert!(["capacity", "exclusivity"].contains(&law), "{law}");
}

/// The first law broken under faults, by any of a hundred seeds.
fn first_broken(pool: &Pool, restart: Start<()>) -> Option<&'static str> {
    (0..100).find_map(|seed| {
        let mut cluster = Cluster::new(pool.clone(), seed);
        cluster.restart = restart;
        for _ in 0..2500 {
            cluster.happen(true, 20);
        }
        cluster.broken.map(|breach| breach.law)
    })
}

#[test]
fn each_rule_about_leaving_a_node_out_is_needed() {
    for mutant in [Mutant::NoFence, Mutant::NoQuarantine, Mutant::AnyEpoch] {
        let mut pool = Pool::new(2, 4);
        pool.mutant = Some(mutant);
        let law = first_broken(&pool, Start::Amnesia);
        let law = law.unwrap_or_else(|| panic!("nobody notices {mutant:?}"));
        assert!(["capacity", "exclusivity", "fence order"].contains(&law), "{mutant:?}: {law}");
    }
}

#[test]
fn a_node_serves_its_own_claims_oldest_first_and_several_at_once() {
    let mut cluster = Cluster::new(Pool::new(4, 2), 1);
    let node = NodeId(1);
    let claims: Vec<ClaimId> = (0..3).map(|_| cluster.claim(node, 1)).collect();
    let large = cluster.claim(node, 4);
    let last = cluster.claim(node, 1);
    for _ in 0..400 {
        cluster.deliver();
        cluster.kind_alarm();
    }
    assert!(claims.iter().all(|claim| cluster.using.contains_key(claim)));
    assert!(cluster.waiting.contains_key(&large), "only one unit is left");
    assert!(cluster.waiting.contains_key(&last), "nobody passes an older claim at home");
    for claim in claims {
        cluster.end(claim, End::Released);
    }
    for _ in 0..400 {
        cluster.deliver();
        cluster.kind_alarm();
    }
    assert!(cluster.using.contains_key(&large));
    cluster.everyone_is_served();
}

#[test]
fn a_scrambled_pool_heals_while_its_clients_go_on() {
    for variant in [Variant::Core, Variant::Train] {
        for seed in 0..40 {
            let mut pool = Pool::new(4, 4);
            pool.variant = variant;
            let mut cluster = Cluster::new(pool.clone(), seed);
            for _ in 0..500 {
                cluster.happen(true, 0);
            }
            cluster.everyone_is_served();
            // A fault may give anything to anybody: the laws begin anew when it is over.
            for node in 0..pool.nodes() {
                let seat = Seat { me: NodeId(node), boot: 0, now: Moment::ZERO, pool: &pool };
                let mut out = Outbox::new();
                let dice = &mut cluster.dice;
                let ring = &mut cluster.seats[node as usize];
                ring.scramble(&seat, &mut |bound| dice.below(bound), &mut out);
                cluster.perform(NodeId(node), &mut out);
            }
            for _ in 0..3000 {
                cluster.deliver();
                cluster.kind_alarm();
            }
            cluster.laws = StatuteBook::new(Ring::capacity(&pool), None);
            cluster.broken = None;
            for _ in 0..1500 {
                cluster.happen(true, 0);
            }
            cluster.everyone_is_served();
        }
    }
}

/// Found by the campaign: a pool that was first used while its root was away waited for ever, since
/// the one wake was lost and the root knew nothing of the pool.
#[test]
fn a_wake_that_was_lost_is_sent_again_when_the_right_neighbour_is_back() {
    let mut cluster = Cluster::new(Pool::new(4, 3), 1);
    let (root, last) = (NodeId(0), NodeId(2));
    cluster.links.clear();
    cluster.step(NodeId(1), Event::Trust(root));
    assert!(cluster.links.is_empty(), "others are between them");
    cluster.step(last, Event::Suspect(root));
    assert!(cluster.links.is_empty());
    cluster.step(last, Event::Trust(root));
    let told = &cluster.links[&(last, root)];
    assert!(matches!(told.back().map(|parcel| &parcel.message), Some(Message::Wake)));
}
