//! Every interleaving and every choice of quorums of small systems (`p_model` of labels spec 7),
//! with the numbers found there.

use std::sync::Arc;

use quorate_check::{Limits, Scope, Stage, check, every_sight};
use quorate_core::NodeId;
use quorate_quorum::sharing::{Construction, Structure};

use super::{Order, Pool, Sharing};

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

/// What is found among all worlds.
#[derive(PartialEq, Eq, Debug)]
struct Found {
    states: usize,
    /// Worlds in which somebody waits, and nothing happens unless somebody else claims.
    dead_ends: usize,
    /// Worlds in which more is in use than can be handed out.
    beyond_hall: usize,
}

/// Every interleaving of one claim of each process, with every choice of its quorum; `None` if the
/// general laws are broken.
fn explored(structure: &Structure, pool: Pool) -> Option<Found> {
    let processes = structure.processes().len();
    let wants: Vec<(NodeId, u32)> = (0..processes).map(|node| (node.into(), 1)).collect();
    let nodes = pool.hosts.iter().map(|host| host.index() + 1).max().unwrap();
    let draws = pool.quorums.iter().map(|quorums| quorums.len() as u64).collect();
    let scope = Scope { draws, ..Scope::<Sharing>::new(nodes, pool, &wants).unwrap() };
    let mut found = Found { states: 0, dead_ends: 0, beyond_hall: 0 };
    found.states = every_sight(&scope, &Limits::default(), |sight| {
        let waits = sight.clients.contains(&Stage::Waiting);
        found.dead_ends += usize::from(sight.is_at_rest && waits);
        let using = |process: &&usize| sight.clients[**process] == Stage::Using;
        let count = |members: &[usize]| members.iter().filter(using).count() as u32;
        let counts: Vec<u32> =
            structure.groups().iter().map(|group| count(&group.members)).collect();
        found.beyond_hall += usize::from(!structure.is_hall(&counts));
    })?;
    Some(found)
}

fn explore(structure: &Structure, construction: Construction, order: Order) -> Found {
    explored(structure, pool(structure, construction, order)).unwrap()
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
        assert_eq!(explored(&structure, pool), Some(found));
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
        explored(structure, pool)
    };
    let found = play(&structure(2, &[&[0, 1], &[0]])).unwrap();
    assert_eq!((found.dead_ends, found.beyond_hall), (0, 0));
    let crowded = play(&structure(2, &[&[0, 1], &[0], &[0]]));
    assert!(crowded.is_none_or(|found| found.beyond_hall > 0));
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
