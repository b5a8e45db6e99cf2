//! Larger worlds explored exhaustively, those of arbiter spec 7.7 and 7.11 that take from
//! seconds to minutes each: `cargo xtask checks` runs them, CI does not. The counts are pinned.

use quorate_check::{Budget, Network, Scope};
use quorate_core::{Line, Unit, Units};

use super::checks::{THREE, explore, once, scope};
use crate::arbiter::{Arbiter, Pool};
use crate::quorums::Quorums;

/// Explores all of it, and says how many states there are. Nobody repeats itself in these worlds,
/// so no state may come back.
fn states(mut scope: Scope<Arbiter>) -> usize {
    scope.ends = true;
    let report = explore(&scope, 60_000_000);
    assert!(report.holds(), "{report}");
    report.states
}

#[test]
fn three_claims_go_round_an_arbiter_that_is_suspected() {
    let mut scope = scope(3, once(Pool::new(1, 3)), &THREE);
    scope.budget.suspicions = 1;
    assert_eq!(states(scope), 1_103_608);
}

#[test]
fn four_claims_to_majorities_of_three() {
    let wants = [(0, 1), (1, 1), (2, 1), (0, 1)];
    assert_eq!(states(scope(3, once(Pool::new(1, 3)), &wants)), 359_795);
}

#[test]
fn three_claims_over_links_that_reorder() {
    let mut scope = scope(3, once(Pool::new(1, 3)), &THREE);
    scope.network = Network::Reordering;
    assert_eq!(states(scope), 37_007);
}

#[test]
fn three_claims_over_links_that_reorder_and_repeat() {
    let mut scope = scope(3, once(Pool::new(1, 3)), &THREE);
    scope.network = Network::Reordering;
    scope.budget = Budget { duplicates: 1, ..Budget::default() };
    assert_eq!(states(scope), 597_229);
}

#[test]
fn three_claims_that_may_all_be_cancelled() {
    let mut scope = scope(3, once(Pool::new(1, 3)), &THREE);
    scope.budget = Budget { cancels: 3, ..Budget::default() };
    assert_eq!(states(scope), 904_339);
}

#[test]
fn three_units_of_five_nodes() {
    let wants = [(0, 3), (1, 2), (2, 1)];
    assert_eq!(states(scope(5, once(Pool::new(3, 5)), &wants)), 9_775_651);
}

/// All of `members` nodes are one quorum.
fn everybody(members: u32, units: u32, wants: &[(u32, u32)]) -> Scope<Arbiter> {
    let quorums = Quorums::Threshold { members, size: members };
    scope(members as usize, Pool { quorums, ..once(Pool::new(units, members)) }, wants)
}

#[test]
fn all_of_two_nodes_share_two_units() {
    assert_eq!(states(everybody(2, 2, &[(0, 2), (1, 1), (0, 1), (1, 2)])), 12_813);
}

#[test]
fn all_of_two_nodes_share_three_units() {
    assert_eq!(states(everybody(2, 3, &[(0, 3), (1, 1), (0, 1), (1, 2)])), 22_237);
}

#[test]
fn all_of_three_nodes_share_two_units() {
    assert_eq!(states(everybody(3, 2, &[(0, 2), (1, 1), (2, 1)])), 277_587);
}

#[test]
fn all_of_three_nodes_share_three_units() {
    assert_eq!(states(everybody(3, 3, &[(0, 2), (1, 1), (2, 1)])), 451_107);
}

#[test]
fn four_claims_to_all_of_three_nodes() {
    assert_eq!(states(everybody(3, 2, &[(0, 2), (1, 1), (2, 1), (0, 1)])), 7_088_015);
}

#[test]
fn four_claims_to_all_of_three_nodes_with_three_units() {
    assert_eq!(states(everybody(3, 3, &[(0, 2), (1, 1), (2, 1), (0, 1)])), 23_145_931);
}

/// Claims for ab, bc, ca and abc, in this order of clients.
fn sets(count: usize) -> Scope<Arbiter> {
    let sets: [&[u32]; 4] = [&[0, 1], &[1, 2], &[0, 2], &[0, 1, 2]];
    let wants: Vec<_> = [0, 1, 2, 0].into_iter().zip(sets.map(|set| set.len() as u32)).collect();
    let mut scope = scope(3, once(Pool::named(3, 3)), &wants[..count]);
    for (plan, set) in scope.clients.iter_mut().zip(sets) {
        let units = Units::new(set.len() as u32, 3).unwrap();
        let among = set.iter().copied().map(Unit).collect();
        plan.claim.wanted.lines = Some([Line::of(units, among)].into());
    }
    scope
}

#[test]
fn sets_of_units_by_name_that_overlap() {
    assert_eq!(states(sets(3)), 22_971);
}

#[test]
fn sets_of_units_by_name_and_one_of_all() {
    assert_eq!(states(sets(4)), 367_089);
}
