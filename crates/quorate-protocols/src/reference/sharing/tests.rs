//! Every interleaving and every choice of quorums of small systems (`p_model` of labels spec 7),
//! with the numbers found there.
#![allow(clippy::disallowed_types, reason = "worlds are looked up, and never gone through")]

#[allow(clippy::disallowed_types, reason = "looked up, never iterated")]
use std::collections::HashSet;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use quorate_check::{Limits, Scope, check};
use quorate_core::{
    Claim, ClaimId, Effect, Event, EventOf, Moment, NodeId, Outbox, Protocol, Seat, Start, Units,
};
use quorate_quorum::sharing::{Construction, Structure};

use super::{Message, Order, Pool, Sharing};

/// A sharing structure of units r0, r1, ... with a process for every list.
fn structure(units: u32, alpha: &[&[u32]]) -> Structure {
    let name = |unit: &u32| format!("r{unit}");
    let names = |own: &&[u32]| own.iter().map(name).collect();
    let alpha = alpha.iter().map(names).enumerate().map(|(u, own)| (format!("u{u}"), own));
    Structure::new((0..units).map(|unit| name(&unit)).collect(), alpha.collect()).unwrap()
}

/// Processes are the first nodes, arbiters the next ones.
fn pool(structure: &Structure, construction: Construction, order: Order) -> Pool {
    let processes = structure.processes().len() as u32;
    let hosts: Vec<NodeId> = (processes..64).map(NodeId).collect();
    Pool { order, ..Pool::of(structure, construction, &hosts).unwrap() }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
enum Client {
    NotYet,
    Waiting,
    Using,
    Done,
}

/// All of a system: seats, what is on its way on each link, and where each client is.
#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    seats: Vec<Sharing>,
    links: BTreeMap<(NodeId, NodeId), VecDeque<Message>>,
    clients: Vec<Client>,
}

/// What is found among all worlds.
#[derive(PartialEq, Eq, Debug)]
struct Found {
    states: usize,
    /// Worlds in which somebody waits, and nothing happens unless somebody else claims.
    dead_ends: usize,
    /// Worlds in which more is in use than can be handed out.
    beyond_hall: usize,
}

struct Model<'a> {
    structure: &'a Structure,
    pool: Pool,
}

impl Model<'_> {
    fn first(&self) -> World {
        let nodes = self.pool.hosts.iter().map(|host| host.index() + 1).max().unwrap();
        let boot = |node: usize| Sharing::boot(&self.seat(node), Start::First, &mut Outbox::new());
        World {
            seats: (0..nodes).map(boot).collect(),
            links: BTreeMap::new(),
            clients: vec![Client::NotYet; self.structure.processes().len()],
        }
    }

    fn seat(&self, node: usize) -> Seat<'_, Sharing> {
        Seat { me: node.into(), boot: 0, now: Moment::ZERO, pool: &self.pool }
    }

    fn step(&self, world: &World, node: usize, event: EventOf<Sharing>) -> World {
        let (mut next, mut out) = (world.clone(), Outbox::new());
        next.seats[node].step(&self.seat(node), event, &mut out);
        next.seats[node].audit(&self.seat(node));
        for effect in out.drain() {
            match effect {
                Effect::Tell { to, message } => {
                    next.links.entry((node.into(), to)).or_default().push_back(message);
                }
                Effect::Grant { .. } => next.clients[node] = Client::Using,
                other => panic!("nothing else is wanted: {other}"),
            }
        }
        next
    }

    /// The worlds after a delivery or the end of a use, and those after a new claim.
    fn successors(&self, world: &World) -> (Vec<World>, Vec<World>) {
        let (mut moves, mut claims) = (Vec::new(), Vec::new());
        for (node, client) in world.clients.iter().enumerate() {
            let id = ClaimId { origin: node as u64, serial: 0 };
            match client {
                Client::NotYet => {
                    let choices = self.pool.quorums[node].len() as u64;
                    for draw in 0..choices {
                        let claim = Claim { draw, ..Claim::any(id, Units::ONE) };
                        let mut asked = world.clone();
                        asked.clients[node] = Client::Waiting;
                        claims.push(self.step(&asked, node, Event::Claim(claim)));
                    }
                }
                Client::Using => {
                    let mut over = world.clone();
                    over.clients[node] = Client::Done;
                    moves.push(self.step(&over, node, Event::Release(id)));
                }
                Client::Waiting | Client::Done => {}
            }
        }
        for &(from, to) in world.links.keys() {
            let mut rest = world.clone();
            let link = rest.links.get_mut(&(from, to)).unwrap();
            let message = link.pop_front().unwrap();
            if link.is_empty() {
                rest.links.remove(&(from, to));
            }
            moves.push(self.step(&rest, to.index(), Event::Hear { from, message }));
        }
        (moves, claims)
    }

    #[allow(clippy::disallowed_types, reason = "looked up, never iterated")]
    fn explore(&self) -> Found {
        let first = self.first();
        let mut seen = HashSet::from([first.clone()]);
        let mut left = vec![first];
        let mut found = Found { states: 0, dead_ends: 0, beyond_hall: 0 };
        while let Some(world) = left.pop() {
            found.states += 1;
            let (moves, claims) = self.successors(&world);
            let waits = world.clients.contains(&Client::Waiting);
            found.dead_ends += usize::from(moves.is_empty() && waits);
            let groups = self.structure.groups().iter();
            let using = |process: &&usize| world.clients[**process] == Client::Using;
            let counts: Vec<u32> =
                groups.map(|group| group.members.iter().filter(using).count() as u32).collect();
            found.beyond_hall += usize::from(!self.structure.is_hall(&counts));
            for next in moves.into_iter().chain(claims) {
                if seen.insert(next.clone()) {
                    left.push(next);
                }
            }
        }
        found
    }
}

fn explore(structure: &Structure, construction: Construction, order: Order) -> Found {
    Model { structure, pool: pool(structure, construction, order) }.explore()
}

fn safe(states: usize, dead_ends: usize) -> Found {
    Found { states, dead_ends, beyond_hall: 0 }
}

/// The paper's example, with two processes that may use both units and one that may use one.
fn example() -> Structure {
    structure(2, &[&[0, 1], &[0, 1], &[0]])
}

/// Theorem 2 says that there are none.
#[test]
fn as_printed_the_papers_product_has_32_dead_ends_and_in_order_none() {
    let example = example();
    assert_eq!(explore(&example, Construction::Product, Order::AtOnce), safe(46_072, 32));
    assert_eq!(explore(&example, Construction::Product, Order::Ascending), safe(11_184, 0));
}

#[test]
fn the_reduced_product_deadlocks_as_well_and_quorums_of_one_do_not() {
    let two_of_one = structure(2, &[&[0, 1], &[0], &[0]]);
    assert_eq!(explore(&two_of_one, Construction::Reduced, Order::AtOnce), safe(5_136, 16));
    assert_eq!(explore(&two_of_one, Construction::Reduced, Order::Ascending), safe(1_828, 0));
    assert_eq!(explore(&two_of_one, Construction::Named, Order::AtOnce), safe(312, 0));
}

/// One unit of the two to each of two processes, by majorities of three arbiters per unit.
#[test]
fn as_printed_majorities_per_unit_have_6_dead_ends() {
    let structure = structure(2, &[&[0, 1], &[0]]);
    let majority = |first: u32| [[0, 1], [0, 2], [1, 2]].map(|q| q.map(|a| first + a).to_vec());
    let first: Arc<[Vec<u32>]> = majority(0).into();
    let both = majority(0).into_iter().chain(majority(3)).collect();
    for (order, found) in [(Order::AtOnce, safe(2_254, 6)), (Order::Ascending, safe(878, 0))] {
        let hosts = (2..8).map(NodeId).collect();
        let quorums = [Arc::clone(&both), Arc::clone(&first)].into();
        let pool = Pool { units: 2, quorums, hosts, order };
        assert_eq!(Model { structure: &structure, pool }.explore(), found);
    }
}

/// Theorem 1 says that no common set of quorums works where two sets of processes differ. With one
/// process of each kind one does (labels spec E8), and one more process breaks it.
#[test]
fn a_common_set_of_quorums_works_until_it_is_crowded() {
    let common: Arc<[Vec<u32>]> = [vec![0], vec![1]].into();
    let play = |structure: &Structure| {
        let processes = structure.processes().len();
        let hosts = (processes..processes + 2).map(NodeId::from).collect();
        let quorums = vec![Arc::clone(&common); processes].into();
        let pool = Pool { units: 2, quorums, hosts, order: Order::AtOnce };
        Model { structure, pool }.explore()
    };
    let found = play(&structure(2, &[&[0, 1], &[0]]));
    assert_eq!((found.dead_ends, found.beyond_hall), (0, 0));
    let crowded = play(&structure(2, &[&[0, 1], &[0], &[0]]));
    assert!(crowded.beyond_hall > 0, "{crowded:?}");
}

/// What the general checker says of the same: two clients that ask the same two arbiters.
#[test]
fn the_checker_prints_how_it_comes_to_a_dead_end() {
    let example = example();
    let report = |order| {
        let pool = pool(&example, Construction::Product, order);
        let nodes = 3 + pool.hosts.len();
        let scope = Scope::<Sharing>::new(nodes, pool, &[(NodeId(0), 1), (NodeId(1), 1)]).unwrap();
        check(&scope, &Limits::default(), &mut |_| {})
    };
    assert!(report(Order::Ascending).holds());
    let broken = report(Order::AtOnce);
    assert_eq!(broken.broken_law(), Some("no deadlock"));
    for asked in ["request 1.1 a0", "request 2.1 a0"] {
        assert!(broken.to_string().contains(asked), "{broken}");
    }
}
