//! Seats as a driver sees them: whole pools under dice, judged by the laws.

use std::collections::{BTreeMap, BTreeSet};

use quorate_core::{Claim, ClaimId, Event, EventOf, Moment, NodeId, Protocol, Start, Units};
use quorate_laws::{End, Observation};

use super::super::pool::Mutant;
use super::*;
use crate::by_hand::{Judged, Use};

/// A pool in one process: order on links, and clients that keep their word.
struct Cluster {
    world: Judged<Ring>,
    /// What a restarted node is told: to forget, or (broken) that nobody can have anything.
    restart: Start<()>,
    /// The epoch of its node when a client was last told its deadline.
    epochs: BTreeMap<ClaimId, Option<Epoch>>,
    /// The epoch that the last suspicion began.
    suspected: Option<Epoch>,
    dice: Dice,
    serial: u64,
}

impl Cluster {
    fn new(pool: Pool, seed: u64) -> Self {
        Cluster {
            world: Judged::new(pool.nodes() as usize, pool, Moment::ZERO, false),
            restart: Start::Amnesia,
            epochs: BTreeMap::new(),
            suspected: None,
            dice: Dice::new(seed),
            serial: 0,
        }
    }

    fn step(&mut self, node: NodeId, event: EventOf<Ring>) {
        self.world.step(node, event);
        self.note_epochs(node);
    }

    fn note_epochs(&mut self, node: NodeId) {
        let epoch = self.world.nodes[node.index()].tether.epoch;
        self.epochs.extend(self.world.dated.iter().map(|&claim| (claim, epoch)));
        assert!(self.world.disks.iter().all(Option::is_none), "nothing is written down");
    }

    fn claim(&mut self, node: NodeId, units: u32) -> ClaimId {
        self.serial += 1;
        let id = ClaimId { origin: u64::from(node.0), serial: self.serial };
        let units = Units::new(units, Ring::capacity(&self.world.pool)).expect("1 <= h <= k");
        self.world.claim_as(node, Claim::any(id, units));
        self.note_epochs(node);
        id
    }

    /// A client stops, and says so unless it just ran into its deadline.
    fn end(&mut self, claim: ClaimId, how: End) {
        let Use { node, boot, .. } = self.world.using[&claim];
        self.world.end(claim, how);
        if how == End::Released && boot == self.world.boots[node.index()] {
            self.step(node, Event::Release(claim));
        }
    }

    /// The leases that are over when the alarm rings are over for their holders first.
    fn ring(&mut self, node: NodeId, alarm: Alarm) {
        let over: Vec<ClaimId> = match alarm {
            Alarm::LeaseEnd(claim) => self.world.using.contains_key(&claim).then_some(claim),
            _ => None,
        }
        .into_iter()
        .collect();
        if alarm == Alarm::Quarantine {
            self.whoever_was_left_out_stops();
        }
        let earlier: Vec<ClaimId> = match alarm {
            Alarm::Grace => self
                .world
                .using
                .iter()
                .filter(|(_, uses)| uses.node == node && uses.boot < self.world.boots[node.index()])
                .map(|(&claim, _)| claim)
                .collect(),
            _ => Vec::new(),
        };
        for claim in over.into_iter().chain(earlier) {
            self.end(claim, End::Deadline);
        }
        self.world.ring(node.0, alarm);
        self.note_epochs(node);
    }

    /// The order that licences give: when the root's quarantine ends, no node has a licence that
    /// has not passed on a frame since the last suspicion, and no client goes on whose deadline was
    /// set before that. A restarted node without a licence takes clients back, but sets none.
    fn whoever_was_left_out_stops(&mut self) {
        if self.world.pool.breaks(Mutant::NoFence) {
            return;
        }
        for node in (1..self.world.nodes.len()).map(NodeId::from) {
            let behind = self.world.nodes[node.index()].tether.epoch < self.suspected;
            if behind && self.world.alarms[node.index()].contains(&Alarm::Fence) {
                self.world.ring(node.0, Alarm::Fence);
                self.note_epochs(node);
            }
        }
        let over: Vec<ClaimId> = self
            .world
            .using
            .iter()
            .filter(|(claim, uses)| uses.node != NodeId(0) && self.epochs[claim] < self.suspected)
            .map(|(&claim, _)| claim)
            .collect();
        over.into_iter().for_each(|claim| self.end(claim, End::Deadline));
    }

    /// The root's failure detector changes its mind, rightly or not.
    fn change_opinion(&mut self, node: NodeId) {
        if node != NodeId(0) {
            let event = match self.world.nodes[0].tether.skipped.contains(node) {
                true => Event::Trust(node),
                false => Event::Suspect(node),
            };
            let suspicion = matches!(event, Event::Suspect(_));
            self.step(NodeId(0), event);
            if suspicion {
                self.suspected = self.world.nodes[0].tether.epoch;
            }
        }
    }

    /// Faults are over.
    fn everyone_is_trusted(&mut self) {
        let skipped = self.world.nodes[0].tether.skipped.clone();
        skipped.iter().for_each(|node| self.step(NodeId(0), Event::Trust(node)));
    }

    fn crash(&mut self, node: NodeId) {
        let world = &mut self.world;
        let lost: Vec<ClaimId> =
            world.waiting.iter().filter(|(_, at)| **at == node).map(|(&claim, _)| claim).collect();
        for claim in lost {
            world.waiting.remove(&claim);
            world.see(Observation::Abandoned { claim });
        }
        world.restart(node.0, self.restart);
        self.note_epochs(node);
    }

    /// Every alarm that is armed.
    fn alarms(&self) -> Vec<(NodeId, Alarm)> {
        let of = |node: usize| move |&alarm: &Alarm| (NodeId::from(node), alarm);
        let alarms = self.world.alarms.iter().enumerate();
        alarms.flat_map(|(node, armed)| armed.iter().map(of(node))).collect()
    }

    /// Whether the last message of all is to this node, and says that somebody waits.
    fn woken(&self, from: NodeId, to: NodeId) -> bool {
        let told = self.world.wire.back();
        told.is_some_and(|(a, b, told)| (*a, *b) == (from, to) && told.message == Message::Wake)
    }

    fn pick<T: Clone>(&mut self, among: Vec<T>) -> Option<T> {
        let len = among.len() as u64;
        (len > 0).then(|| among[self.dice.below(len) as usize].clone())
    }

    /// The oldest message of some link arrives.
    fn deliver(&mut self) {
        if self.world.alarms[0].contains(&Alarm::Hop) {
            return self.ring(NodeId(0), Alarm::Hop);
        }
        if let Some(place) = self.pick_link() {
            let parcel = self.world.take(place);
            let to = parcel.1;
            self.world.arrive(parcel);
            self.note_epochs(to);
        }
    }

    /// Where the oldest message of some link is.
    fn pick_link(&mut self) -> Option<usize> {
        let open: BTreeSet<(NodeId, NodeId)> =
            self.world.wire.iter().map(|&(from, to, _)| (from, to)).collect();
        let ends = self.pick(open.into_iter().collect())?;
        self.world.wire.iter().position(|&(from, to, _)| (from, to) == ends)
    }

    /// One thing happens. `faults` says how often, of a thousand, one of the unkind things does.
    fn happen(&mut self, asking: bool, faults: u64) {
        let node = NodeId(self.dice.below(u64::from(self.world.pool.nodes())) as u32);
        if self.dice.below(1000) < faults {
            match self.dice.below(6) {
                0 => self.crash(node),
                4 | 5 => self.change_opinion(node),
                1 => {
                    if let Some(place) = self.pick_link() {
                        self.world.take(place);
                    }
                }
                _ => {
                    if let Some((at, alarm)) = self.pick(self.alarms()) {
                        self.ring(at, alarm);
                    }
                }
            }
            return;
        }
        match self.dice.below(12) {
            0 if asking => {
                let units = 1 + self.dice.below(u64::from(Ring::capacity(&self.world.pool))) as u32;
                self.claim(node, units);
            }
            1 => {
                if let Some(claim) = self.pick(self.world.using.keys().copied().collect()) {
                    self.end(claim, End::Released);
                }
            }
            2 if asking => {
                if let Some((claim, at)) =
                    self.pick(self.world.waiting.iter().map(|(&c, &n)| (c, n)).collect())
                {
                    self.step(at, Event::Cancel(claim));
                }
            }
            3 => {
                let uses = self.world.using.iter().map(|(&c, uses)| (c, uses.clone())).collect();
                if let Some((claim, Use { node, shares, .. })) = self.pick(uses) {
                    self.step(node, Event::Renew { claim, shares });
                    // What a restarted node takes back is its own again.
                    if self.world.nodes[node.index()].place_of(claim).is_some() {
                        let boot = self.world.boots[node.index()];
                        self.world.using.get_mut(&claim).expect("it was picked").boot = boot;
                    }
                }
            }
            4 => self.kind_alarm(),
            _ => self.deliver(),
        }
    }

    /// Rings what has to ring for anything to go on; the root's patience is seldom too short.
    fn kind_alarm(&mut self) {
        let empty = self.world.wire.is_empty() && !self.world.alarms[0].contains(&Alarm::Hop);
        let impatient = empty || self.dice.below(300) == 0;
        let seldom = self.dice.below(20) == 0;
        let due = self.alarms().into_iter().filter(|(_, alarm)| match alarm {
            Alarm::Timeout | Alarm::Idle => impatient,
            Alarm::Grace | Alarm::Quarantine => true,
            Alarm::Fence => impatient && seldom,
            // Clients that go on renew in time.
            Alarm::LeaseEnd(claim) => !self.world.using.contains_key(claim),
            Alarm::Hop => false,
        });
        if let Some((at, alarm)) = self.pick(due.collect()) {
            self.ring(at, alarm);
        }
    }

    fn everyone_is_served(&mut self) {
        self.everyone_is_trusted();
        for _ in 0..200_000 {
            if self.world.waiting.is_empty() && self.world.using.is_empty() {
                assert_eq!(self.world.breach, None);
                assert_eq!(self.world.laws.at_rest(std::iter::empty()), Ok(()));
                return;
            }
            self.happen(false, 0);
        }
        panic!("{} still waiting, {:?} in use", self.world.waiting.len(), self.world.using);
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
                assert!(cluster.world.grants > 5, "{variant:?}");
                assert_eq!(cluster.world.reclaims, 0);
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
        cluster.world.breach.map(|breach| breach.law)
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
    assert!(claims.iter().all(|claim| cluster.world.using.contains_key(claim)));
    assert!(cluster.world.waiting.contains_key(&large), "only one unit is left");
    assert!(cluster.world.waiting.contains_key(&last), "nobody passes an older claim at home");
    for claim in claims {
        cluster.end(claim, End::Released);
    }
    for _ in 0..400 {
        cluster.deliver();
        cluster.kind_alarm();
    }
    assert!(cluster.world.using.contains_key(&large));
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
                let (world, dice) = (&mut cluster.world, &mut cluster.dice);
                world.act(NodeId(node), |ring, seat, out| {
                    ring.scramble(seat, &mut |bound| dice.below(bound), out);
                });
            }
            for _ in 0..3000 {
                cluster.deliver();
                cluster.kind_alarm();
            }
            cluster.world.forget_breaches();
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
    cluster.world.wire.clear();
    cluster.step(NodeId(1), Event::Trust(root));
    assert!(cluster.world.wire.is_empty(), "others are between them");
    cluster.step(last, Event::Suspect(root));
    assert!(cluster.world.wire.is_empty());
    cluster.step(last, Event::Trust(root));
    assert!(cluster.woken(last, root));
}

/// Found by the campaign: the root restarted between two frames of a pool in which somebody waited,
/// and nobody told it of the pool, since all still had a licence of the root before.
#[test]
fn a_root_that_restarts_is_told_of_claims_that_wait() {
    let mut cluster = Cluster::new(Pool::new(4, 3), 1);
    let (root, last) = (NodeId(0), NodeId(2));
    cluster.claim(NodeId(1), 4);
    while !cluster.world.waiting.is_empty() {
        cluster.happen(false, 0);
    }
    // All is in use, and nobody waits: there is nothing to tell a root.
    while cluster.world.nodes[last.index()].places[0].hears_of_claims() {
        cluster.deliver();
        cluster.kind_alarm();
    }
    cluster.world.wire.clear();
    let trusts_again = |cluster: &mut Cluster| {
        assert!(cluster.world.nodes[last.index()].tether.until.is_some(), "it has a licence");
        cluster.step(last, Event::Suspect(root));
        cluster.step(last, Event::Trust(root));
        cluster.woken(last, root)
    };
    assert!(!trusts_again(&mut cluster));
    let one = cluster.claim(NodeId(1), 1);
    while !cluster.world.nodes[last.index()].places[0].hears_of_claims() {
        cluster.deliver();
    }
    assert!(cluster.world.waiting.contains_key(&one));
    cluster.crash(root);
    cluster.world.wire.clear();
    assert!(trusts_again(&mut cluster));
}
