//! Every history of three seats in which the root leaves a node out, rightly or not, and takes it
//! in again. The exhaustive driver has no failure detector, so this is a small one of our own: two
//! clients that each claim once, a crash, a suspicion, a change of mind, and a licence that ends,
//! in any order.
//!
//! What clocks achieve is taken as given, as an order (`tether.rs`): when the quarantine ends, no
//! node has a licence that has not passed on a frame of the epoch.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use quorate_core::{Claim, ClaimId, Effect, Event, Moment, NodeId, Outbox, Protocol, Seat};
use quorate_core::{Start, Units};

use super::super::pool::Mutant;
use super::*;

/// Where a client stands. Each claims once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Client {
    Idle,
    Waiting,
    Using,
    Done,
}

/// What may still go wrong.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Budget {
    crashes: u8,
    suspicions: u8,
    trusts: u8,
    fences: u8,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct World {
    seats: Vec<Option<Ring>>,
    links: BTreeMap<(NodeId, NodeId), VecDeque<Parcel>>,
    alarms: BTreeSet<(NodeId, Alarm)>,
    clients: [Client; 2],
    budget: Budget,
}

const HOMES: [NodeId; 2] = [NodeId(1), NodeId(2)];
const ROOT: NodeId = NodeId(0);

impl World {
    fn new(pool: &Pool, budget: Budget) -> Self {
        let mut world = World {
            seats: vec![None; pool.nodes() as usize],
            links: BTreeMap::new(),
            alarms: BTreeSet::new(),
            clients: [Client::Idle; 2],
            budget,
        };
        for index in 0..world.seats.len() {
            let me = NodeId::from(index);
            let seat = Seat { me, boot: 0, now: Moment::ZERO, pool };
            let mut out = Outbox::new();
            world.seats[index] = Some(Ring::boot(&seat, Start::First, &mut out));
            world.perform(me, &mut out);
        }
        world
    }

    fn step(&mut self, pool: &Pool, me: NodeId, event: Event<Ring>) {
        let Some(ring) = &mut self.seats[me.index()] else { return };
        let seat = Seat { me, boot: 0, now: Moment::ZERO, pool };
        let mut out = Outbox::new();
        ring.step(&seat, event, &mut out);
        ring.audit(&seat);
        self.perform(me, &mut out);
    }

    fn perform(&mut self, me: NodeId, out: &mut Outbox<Ring>) {
        let client = |claim: ClaimId| claim.origin as usize;
        for effect in out.drain() {
            match effect {
                Effect::Tell { to, message } => {
                    self.links.entry((me, to)).or_default().push_back(message);
                }
                Effect::Arm { alarm, .. } => _ = self.alarms.insert((me, alarm)),
                Effect::Disarm(alarm) => _ = self.alarms.remove(&(me, alarm)),
                Effect::Grant { claim, .. } => {
                    assert_eq!(self.clients[client(claim)], Client::Waiting);
                    self.clients[client(claim)] = Client::Using;
                }
                Effect::Lose { claim } => self.clients[client(claim)] = Client::Done,
                Effect::Extend { .. } | Effect::Reclaim { .. } => {}
                Effect::Refuse { .. } | Effect::Persist(()) | Effect::Anomaly { .. } => {
                    panic!("{effect}")
                }
            }
        }
    }

    fn in_use(&self) -> usize {
        self.clients.iter().filter(|client| **client == Client::Using).count()
    }

    /// Everything that may happen next.
    fn successors(&self, pool: &Pool) -> Vec<World> {
        let mut found = Vec::new();
        let mut then = |change: &dyn Fn(&mut World)| {
            let mut next = self.clone();
            change(&mut next);
            next.links.retain(|_, queue| !queue.is_empty());
            // Totals decide nothing.
            next.seats.iter_mut().flatten().for_each(Ring::forget_totals);
            found.push(next);
        };
        for &(from, to) in self.links.keys() {
            then(&|world| {
                let queue = world.links.get_mut(&(from, to)).expect("it is a link");
                if let Some(message) = queue.pop_front() {
                    world.step(pool, to, Event::Hear { from, message });
                }
            });
        }
        for (index, home) in HOMES.into_iter().enumerate() {
            let id = ClaimId { origin: index as u64, serial: 0 };
            let up = self.seats[home.index()].is_some();
            match self.clients[index] {
                Client::Idle if up => then(&|world| {
                    world.clients[index] = Client::Waiting;
                    let units = Units::new(1, 1).expect("1 of 1");
                    world.step(pool, home, Event::Claim(Claim::any(id, units)));
                }),
                Client::Using => then(&|world| {
                    world.clients[index] = Client::Done;
                    world.step(pool, home, Event::Release(id));
                }),
                _ => {}
            }
        }
        // The root is not impatient, or there would be no end of traversals.
        let quiet = self.links.is_empty();
        for &(node, alarm) in &self.alarms {
            let may = match alarm {
                Alarm::Idle | Alarm::Timeout => quiet,
                Alarm::Fence => self.budget.fences > 0,
                Alarm::Quarantine => true,
                Alarm::Hop | Alarm::LeaseEnd(_) | Alarm::Grace => false,
            };
            if may && self.seats[node.index()].is_some() {
                then(&|world| world.ring(pool, node, alarm));
            }
        }
        let gone = NodeId(1);
        if self.budget.crashes > 0 {
            then(&|world| {
                world.budget.crashes -= 1;
                world.seats[gone.index()] = None;
                world.alarms.retain(|(node, _)| *node != gone);
                world.links.retain(|(_, to), _| *to != gone);
                if world.clients[0] == Client::Waiting {
                    world.clients[0] = Client::Done;
                }
            });
        }
        if self.budget.suspicions > 0 {
            then(&|world| {
                world.budget.suspicions -= 1;
                world.step(pool, ROOT, Event::Suspect(gone));
            });
        } else if self.budget.trusts > 0 {
            then(&|world| {
                world.budget.trusts -= 1;
                world.step(pool, ROOT, Event::Trust(gone));
            });
        }
        found
    }

    fn ring(&mut self, pool: &Pool, node: NodeId, alarm: Alarm) {
        self.alarms.remove(&(node, alarm));
        if alarm == Alarm::Fence {
            self.budget.fences -= 1;
        }
        if alarm == Alarm::Quarantine {
            let epoch = self.seats[0].as_ref().and_then(|root| root.tether.epoch);
            for index in 1..self.seats.len() {
                let home = NodeId::from(index);
                match &self.seats[index] {
                    Some(ring) if ring.tether.epoch == epoch => {}
                    Some(_) if self.alarms.remove(&(home, Alarm::Fence)) => {
                        self.step(pool, home, Event::Ring(Alarm::Fence));
                    }
                    // Its client counted by the licence it had.
                    None if self.clients[index - 1] == Client::Using => {
                        self.clients[index - 1] = Client::Done;
                    }
                    Some(_) | None => {}
                }
            }
        }
        self.step(pool, node, Event::Ring(alarm));
    }
}

/// How many states there are, and the most units in use in any of them.
#[allow(clippy::disallowed_types, reason = "looked up, never iterated")]
fn explore(budget: Budget, mutant: Option<Mutant>, most: usize) -> (usize, usize) {
    let mut pool = Pool::new(1, 3).with_seqs(2);
    pool.mutant = mutant;
    let mut known = std::collections::HashSet::new();
    let mut open = vec![World::new(&pool, budget)];
    let mut in_use = 0;
    while let Some(world) = open.pop() {
        in_use = in_use.max(world.in_use());
        if mutant.is_some() && in_use > 1 {
            break;
        }
        for next in world.successors(&pool) {
            if known.insert(next.clone()) {
                open.push(next);
            }
        }
        assert!(known.len() < most, "too many states");
    }
    (known.len(), in_use)
}

const CRASH: Budget = Budget { crashes: 1, suspicions: 1, trusts: 0, fences: 0 };
const WRONGED: Budget = Budget { crashes: 0, suspicions: 1, trusts: 0, fences: 0 };
const FICKLE: Budget = Budget { crashes: 0, suspicions: 1, trusts: 1, fences: 1 };

#[test]
fn in_every_history_no_unit_is_used_twice() {
    let mut counts = Vec::new();
    for budget in [CRASH, WRONGED] {
        let (states, in_use) = explore(budget, None, 600_000);
        assert_eq!(in_use, 1, "{budget:?}");
        counts.push(states);
    }
    assert_eq!(counts, [90_674, 57_645], "a changed number of states is a changed protocol");
}

#[test]
fn without_a_rule_some_history_uses_a_unit_twice() {
    for mutant in [Mutant::NoFence, Mutant::NoQuarantine, Mutant::AnyEpoch] {
        let (_, in_use) = explore(FICKLE, Some(mutant), 3_000_000);
        assert_eq!(in_use, 2, "{mutant:?}");
    }
}
