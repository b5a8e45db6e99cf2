//! The generic checker on small worlds: claims of several clients at one node, claims that are
//! taken back at any moment, messages that are repeated or lost.

use quorate_check::{Budget, Limits, Network, Report, Scope, check};
use quorate_core::{Explorable, NodeId};

use crate::broadcast::{Pool, Raymond, Raynal, Weighted};

fn checked<P: Explorable<Pool = Pool>>(
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
    let scope = Scope { network, budget, copies_max, ..scope };
    let report = check(&scope, &Limits::default(), &mut |_| {});
    assert!(report.holds(), "{} {report}", P::NAME);
    report
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
