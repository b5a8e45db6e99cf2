//! Seats of small pools under the exhaustive driver: every history, judged by the laws.
//!
//! Alarms ring early only as often as the scope allows: a root with unlimited impatience would have
//! more traversals under way than there are sequence numbers here (ring spec E19).

use quorate_check::{Limits, Report, Restart, Scope, check};
use quorate_core::{NodeId, NodeSet};

use super::*;

/// A pool with few numbers, and clients that each want something at a node.
fn scope(
    variant: Variant,
    (nodes, units): (u32, u32),
    seqs: u64,
    wants: &[(u32, u32)],
) -> Scope<Ring> {
    let mut pool = Pool::new(units, nodes).with_seqs(seqs);
    pool.variant = variant;
    let wants: Vec<(NodeId, u32)> = wants.iter().map(|&(home, h)| (NodeId(home), h)).collect();
    let mut scope = Scope::new(nodes as usize, pool, &wants).expect("a sound scope");
    scope.restart = Restart::Amnesia;
    scope.budget.early_rings = Some(0);
    scope
}

fn explore(scope: &Scope<Ring>) -> Report {
    let limits = Limits { states_max: 3_000_000, ..Limits::default() };
    check(scope, &limits, &mut |_| ())
}

/// A changed number of states is a changed protocol or a changed checker.
#[test]
fn every_history_of_a_small_pool_keeps_the_laws() {
    for (variant, size, wants, states) in [
        (Variant::Core, (2, 1), &[(0, 1), (1, 1)][..], 1_172),
        (Variant::Core, (2, 2), &[(0, 2), (1, 2)], 4_776),
        (Variant::Core, (2, 2), &[(0, 1), (1, 2), (1, 1)], 84_227),
        (Variant::Core, (3, 2), &[(1, 2), (2, 1)], 27_671),
        (Variant::Train, (2, 1), &[(0, 1), (1, 1)], 2_304),
        (Variant::Train, (2, 2), &[(0, 2), (1, 2)], 2_304),
        (Variant::Train, (2, 2), &[(0, 1), (1, 2), (1, 1)], 39_777),
        (Variant::Train, (3, 2), &[(1, 2), (2, 1)], 13_385),
    ] {
        let mut scope = scope(variant, size, 2, wants);
        scope.budget.cancels = 1;
        let report = explore(&scope);
        assert!(report.holds(), "{variant:?} {size:?} {wants:?}: {report:#?}");
        assert_eq!(report.states, states, "{variant:?} {size:?} {wants:?}");
    }
}

#[test]
fn train_bears_losses_and_early_alarms_in_every_history() {
    for (losses, early, states) in [(1, 0, 12_204), (0, 2, 44_287)] {
        let mut scope = scope(Variant::Train, (2, 1), 5, &[(0, 1), (1, 1)]);
        scope.budget.losses = losses;
        scope.budget.early_rings = Some(early);
        let report = explore(&scope);
        assert!(report.holds(), "{report:#?}");
        assert_eq!(report.states, states);
    }
}

/// Nothing unsafe follows from a restart of a node that forgot everything. The checker then finds
/// fault with one thing only, and that is its own: while somebody waits the train never stands
/// still, so that the end of grace is always an *early* alarm here, and those are limited.
#[test]
fn a_restarted_node_gives_nothing_away_twice_in_any_history() {
    let mut scope = scope(Variant::Train, (2, 1), 5, &[(0, 1), (1, 1)]);
    scope.budget.crashes = 1;
    scope.budget.early_rings = Some(1);
    scope.crashing = std::iter::once(NodeId(1)).collect::<NodeSet>();
    let report = explore(&scope);
    assert_eq!(report.broken_law(), Some("no deadlock"), "{report:#?}");
}
