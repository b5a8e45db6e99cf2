//! `central`, the value that daemon, simulator and checker drive, explored by stateright: the same
//! small world as `quorate-lab check --protocol central --early-rings 0`, where nothing goes wrong.
//!
//! Clients claim, use and release once each; links keep order and carry no two equal messages; an
//! alarm rings only while no message is on its way, and one that ends a lease only if its holder
//! has stopped. Clocks and fences are renamed as ours renames them. Prints the number of states,
//! which must be that of our checker, as JSON.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use quorate_core::{
    Claim, ClaimId, Effect, Event, Fence, LeaseEnd, Moment, NodeId, Number, Numbers, Outbox,
    Protocol, Seat, Shares, Start, Units,
};
use quorate_protocols::central::{Alarm, Central, Message, Pool};
use stateright::{Checker, Model, Property};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Client {
    Idle,
    Waiting,
    Using(Shares),
    Done,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct World {
    nodes: Vec<Central>,
    links: BTreeMap<(NodeId, NodeId), VecDeque<Message>>,
    alarms: BTreeSet<(NodeId, Alarm)>,
    clients: Vec<Client>,
}

#[derive(Clone, PartialEq, Debug)]
enum Act {
    Claim(usize),
    Release(usize),
    Deliver(NodeId, NodeId),
    Ring(NodeId, Alarm),
}

struct Scope {
    pool: Pool,
    /// Home and units of each client.
    wants: Vec<(NodeId, u32)>,
}

fn id(client: usize) -> ClaimId {
    ClaimId { origin: client as u64 + 1, serial: 1 }
}

fn client(claim: ClaimId) -> usize {
    claim.origin as usize - 1
}

impl Scope {
    fn seat(&self, me: NodeId) -> Seat<'_, Central> {
        Seat { me, boot: 0, now: Moment::ZERO, pool: &self.pool }
    }

    fn step(&self, world: &mut World, node: NodeId, event: Event<Message, Alarm>) {
        let mut out = Outbox::new();
        world.nodes[node.index()].step(&self.seat(node), event, &mut out);
        self.perform(world, node, &mut out);
    }

    fn perform(&self, world: &mut World, node: NodeId, out: &mut Outbox<Central>) {
        for effect in out.drain() {
            match effect {
                Effect::Tell { to, message } => {
                    let link = world.links.entry((node, to)).or_default();
                    if !link.contains(&message) {
                        link.push_back(message);
                    }
                }
                Effect::Arm { alarm, .. } => drop(world.alarms.insert((node, alarm))),
                Effect::Disarm(alarm) => drop(world.alarms.remove(&(node, alarm))),
                Effect::Grant { claim, shares, .. } => {
                    let client = &mut world.clients[client(claim)];
                    if *client == Client::Waiting {
                        *client = Client::Using(shares);
                    }
                }
                Effect::Extend { .. } | Effect::Reclaim { .. } => {}
                other => unreachable!("{other:?} in a world without faults"),
            }
        }
    }

    /// Whether the lease that this alarm ends can be over.
    fn may_ring(&self, world: &World, alarm: Alarm) -> bool {
        match Central::lease_end(&alarm) {
            LeaseEnd::Of(claim) => !matches!(world.clients[client(claim)], Client::Using(_)),
            _ => true,
        }
    }

    /// Renames clocks and fences: gaps between clocks up to the stamps that can still be given,
    /// fences without gaps.
    fn rename(&self, world: &mut World) {
        let live = world.clients.iter().filter(|it| **it != Client::Done).count() as u64;
        let (mut clocks, mut fences) = (BTreeSet::new(), BTreeSet::new());
        world.numbers(&mut |number| match number {
            Number::Clock(clock) => drop(clocks.insert(*clock)),
            Number::Fence(fence) => drop(fences.insert(fence.0)),
        });
        let (mut names, mut before) = (BTreeMap::new(), (0, 0));
        for clock in clocks {
            before = (clock, before.1 + (clock - before.0).min(live + 1));
            names.insert(clock, before.1);
        }
        let floor = Fence::floor(0).0;
        let dense: BTreeMap<u64, u64> = fences
            .into_iter()
            .filter(|fence| *fence != floor)
            .zip(floor + 1..)
            .chain([(floor, floor)])
            .collect();
        world.numbers(&mut |number| match number {
            Number::Clock(clock) => *clock = names[clock],
            Number::Fence(fence) => fence.0 = dense[&fence.0],
        });
    }
}

impl World {
    fn in_use(&self) -> Vec<u32> {
        let using = self.clients.iter().filter_map(|client| match client {
            Client::Using(shares) => Some(shares.iter().map(|share| share.unit.0)),
            _ => None,
        });
        using.flatten().collect()
    }
}

impl Numbers for World {
    fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>)) {
        self.nodes.iter_mut().for_each(|node| node.numbers(see));
        self.links.values_mut().flatten().for_each(|message| message.numbers(see));
        for client in &mut self.clients {
            if let Client::Using(shares) = client {
                shares.numbers(see);
            }
        }
    }
}

impl Model for Scope {
    type State = World;
    type Action = Act;

    fn init_states(&self) -> Vec<World> {
        let mut world = World {
            nodes: Vec::new(),
            links: BTreeMap::new(),
            alarms: BTreeSet::new(),
            clients: vec![Client::Idle; self.wants.len()],
        };
        for node in (0..3).map(NodeId) {
            let mut out = Outbox::new();
            world.nodes.push(Central::boot(&self.seat(node), Start::First, &mut out));
            self.perform(&mut world, node, &mut out);
        }
        self.rename(&mut world);
        vec![world]
    }

    fn actions(&self, world: &World, acts: &mut Vec<Act>) {
        for (number, client) in world.clients.iter().enumerate() {
            match client {
                Client::Idle => acts.push(Act::Claim(number)),
                Client::Using(_) => acts.push(Act::Release(number)),
                Client::Waiting | Client::Done => {}
            }
        }
        acts.extend(world.links.keys().map(|&(from, to)| Act::Deliver(from, to)));
        if world.links.is_empty() {
            let may = world.alarms.iter().filter(|(_, alarm)| self.may_ring(world, *alarm));
            acts.extend(may.map(|&(node, alarm)| Act::Ring(node, alarm)));
        }
    }

    fn next_state(&self, last: &World, act: Act) -> Option<World> {
        let mut world = last.clone();
        match act {
            Act::Claim(client) => {
                world.clients[client] = Client::Waiting;
                let (home, units) = self.wants[client];
                let units = Units::new(units, self.pool.goods.units).expect("h <= k");
                self.step(&mut world, home, Event::Claim(Claim::any(id(client), units)));
            }
            Act::Release(client) => {
                world.clients[client] = Client::Done;
                self.step(&mut world, self.wants[client].0, Event::Release(id(client)));
            }
            Act::Deliver(from, to) => {
                let link = world.links.get_mut(&(from, to)).expect("something is on its way");
                let message = link.pop_front().expect("something is on its way");
                if link.is_empty() {
                    world.links.remove(&(from, to));
                }
                self.step(&mut world, to, Event::Hear { from, message });
            }
            Act::Ring(node, alarm) => {
                world.alarms.remove(&(node, alarm));
                self.step(&mut world, node, Event::Ring(alarm));
            }
        }
        self.rename(&mut world);
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no unit has two users", |scope: &Scope, world: &World| {
                let units = world.in_use();
                let each: BTreeSet<u32> = units.iter().copied().collect();
                each.len() == units.len() && units.len() <= scope.pool.goods.units as usize
            }),
            Property::sometimes("all units are in use", |scope: &Scope, world: &World| {
                world.in_use().len() == scope.pool.goods.units as usize
            }),
        ]
    }
}

/// `WANTS HOMES THREADS`, as of `quorate-lab check --want --home`.
fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers = |text: &str| -> Vec<u32> {
        text.split(',').map(|number| number.parse().expect("a number")).collect()
    };
    let [wants, homes, threads] = &words[..] else {
        eprintln!("usage: beside-stateright WANTS HOMES THREADS");
        std::process::exit(2);
    };
    let homes = numbers(homes).into_iter().map(NodeId);
    let scope = Scope { pool: Pool::new(2), wants: homes.zip(numbers(wants)).collect() };
    let threads = threads.parse().expect("a number of threads");
    let checker = scope.checker().threads(threads).spawn_bfs().join();
    checker.assert_properties();
    println!("{{\"states\": {}}}", checker.unique_state_count());
}
