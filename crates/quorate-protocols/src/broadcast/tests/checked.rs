//! The generic checker on small worlds: claims of several clients at one node, claims that are
//! taken back at any moment, messages that are repeated or lost.

use std::time::Duration;

use quorate_check::{Budget, Limits, Network, Report, Restart, Scope, Verdict, check};
use quorate_core::{Explorable, Lease, NodeId, NodeSet};

use crate::broadcast::pool::Mutant;
use crate::broadcast::{Pool, Weighted};
use crate::reference::{Raymond, Raynal};

fn checked<P: Explorable<Pool = Pool>>(
    pool: Pool,
    wants: &[(u32, u32)],
    network: Network,
    budget: Budget,
) -> Report {
    let report = explored::<P>(pool, wants, network, budget);
    assert!(report.holds(), "{} {report}", P::NAME);
    report
}

fn explored<P: Explorable<Pool = Pool>>(
    pool: Pool,
    wants: &[(u32, u32)],
    network: Network,
    budget: Budget,
) -> Report {
    let wants: Vec<(NodeId, u32)> = wants.iter().map(|&(home, h)| (NodeId(home), h)).collect();
    // Answers that are differences may be equal, and none of them may be lost; who asks again and
    // again does not mind.
    let copies_max = if pool.retry.is_some() { 1 } else { 4 };
    let scope = Scope::<P>::new(pool.nodes as usize, pool, &wants).unwrap();
    let scope = Scope { network, budget, copies_max, restart: Restart::Amnesia, ..scope };
    let crashing = NodeSet::first(scope.nodes);
    check(&Scope { crashing, ..scope }, &Limits::default(), &mut |_| {})
}

#[test]
fn claims_may_be_taken_back_at_any_moment() {
    let one = Budget { cancels: 1, ..Budget::default() };
    let wants = [(0, 1), (1, 1), (0, 1)];
    let network = Network::Reordering;
    checked::<Raymond>(Pool::raymond(2, 1), &wants, network, one);
    checked::<Raynal>(Pool::raynal(2, 2), &[(0, 2), (1, 1), (0, 1)], network, one);
    checked::<Weighted>(Pool::timer_free(2, 1, 0), &wants, network, one);
}

/// Two clients at one node, whose requests are under way at the same time.
#[test]
fn a_node_may_ask_for_several_clients_at_once() {
    let pool = Pool { retry: None, probe: None, ..Pool::weighted(2, 3, 2, 0) };
    let wants = [(0, 1), (0, 1), (1, 2)];
    checked::<Weighted>(pool.clone(), &wants, Network::Reordering, Budget::default());
    let repeated = Budget { duplicates: 1, ..Budget::default() };
    checked::<Weighted>(pool, &wants, Network::Fifo, repeated);
}

/// The network may lose any message; whoever waits asks again.
#[test]
fn a_lost_message_is_made_good_by_asking_again() {
    let pool = Pool { probe: None, ..Pool::weighted(2, 1, 1, 0) };
    let lossy = Budget { losses: 1, ..Budget::default() };
    checked::<Weighted>(pool, &[(0, 1), (1, 1)], Network::Fifo, lossy);
}

/// A pool whose nodes come back after a crash.
fn returning(nodes: u32, units: u32, mutant: Option<Mutant>) -> Pool {
    let lease = Some(Lease::new(Duration::from_secs(10), 200));
    Pool { lease, probe: None, retry: None, mutant, ..Pool::weighted(nodes, units, 1, 0) }
}

/// Any node crashes between any two effects, forgets everything and comes back, while its clients
/// go on with what they have.
#[test]
fn a_node_that_comes_back_breaks_nothing() {
    let once = Budget { crashes: 1, ..Budget::default() };
    for (network, states) in [(Network::Fifo, 63_900), (Network::Reordering, 357_837)] {
        let report = checked::<Weighted>(returning(3, 1, None), &[(0, 1), (1, 1)], network, once);
        assert_eq!(report.states, states, "{network}");
    }
}

/// Of two that are down at once the first to come back finds nobody, and must go on asking.
#[test]
#[cfg(feature = "long-checks")]
fn two_nodes_that_come_back_break_nothing() {
    let twice = Budget { crashes: 2, ..Budget::default() };
    let pool = Pool { retry: Some(Duration::from_secs(1)), ..returning(2, 1, None) };
    let report = checked::<Weighted>(pool, &[(0, 1), (1, 1)], Network::Fifo, twice);
    assert_eq!(report.states, 3_078_243);
}

/// Without the grace, the answers of everybody or their clocks it does.
#[test]
fn a_node_that_comes_back_too_boldly_is_found_out() {
    let once = Budget { crashes: 1, ..Budget::default() };
    let wants = [(0, 1), (1, 1)];
    for (mutant, law) in [
        (Mutant::NoGrace, "capacity"),
        (Mutant::JoinAlone, "no anomaly"),
        (Mutant::JoinWithoutClock, "capacity"),
    ] {
        let pool = returning(3, 1, Some(mutant));
        let report = explored::<Weighted>(pool, &wants, Network::Fifo, once);
        let Verdict::Broken(counterexample) = report.verdict else {
            panic!("{mutant:?} is not found: {report}")
        };
        assert_eq!(counterexample.breach.law, law, "{mutant:?}");
    }
}
