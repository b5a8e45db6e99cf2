//! Small pools explored exhaustively, with their state counts (arbiter spec 7.10), and the
//! scenarios arbiter spec T-1 to T-3 as rules that the same harness finds broken.

use std::time::Duration;

use quorate_check::{Budget, Limits, Network, Report, Restart, Scope, Sometimes, Verdict, check};
use quorate_core::{Lease, NodeId, NodeSet};

use crate::quorums::Quorums;
use crate::ticket::pool::Mutant;
use crate::ticket::{Pool, Ticket};

/// Clients at these nodes want so many units each; draws count up, so that quorums differ.
fn scope(nodes: usize, pool: Pool, wants: &[(u32, u32)]) -> Scope<Ticket> {
    let wants: Vec<_> = wants.iter().map(|&(node, h)| (NodeId(node), h)).collect();
    let mut scope = Scope::new(nodes, pool, &wants).unwrap();
    for (draw, plan) in scope.clients.iter_mut().enumerate() {
        plan.claim.draw = draw as u64;
    }
    scope
}

/// Leases never end, and nobody repeats itself.
fn once(units: u32, members: u32) -> Pool {
    let lease = Lease::new(Duration::MAX, 0);
    let mutant = Some(Mutant::NeverRetry);
    Pool { lease, patience: None, mutant, ..Pool::new(units, members) }
}

fn explore(scope: &Scope<Ticket>, states_max: usize) -> Report {
    check(scope, &Limits { states_max, ..Limits::default() }, &mut |_| {})
}

/// Explores all of it, and says how many states there are.
fn states(scope: &Scope<Ticket>) -> usize {
    let report = explore(scope, 1_500_000);
    assert!(report.holds(), "{report}");
    report.states
}

const THREE: [(u32, u32); 3] = [(0, 1), (1, 1), (2, 1)];

#[test]
fn three_clients_of_majorities_of_three_share_two_units() {
    assert_eq!(states(&scope(3, once(2, 3), &THREE)), 49_151);
}

#[test]
fn three_clients_of_majorities_of_three_share_one_unit() {
    assert_eq!(states(&scope(3, once(1, 3), &THREE)), 19_575);
}

#[test]
fn claims_of_different_sizes() {
    assert_eq!(states(&scope(3, once(3, 3), &[(0, 2), (1, 1), (2, 2)])), 36_911);
}

#[test]
fn links_that_reorder_and_repeat_and_clients_that_cancel() {
    let mut scope = scope(3, once(1, 3), &THREE[..2]);
    scope.network = Network::Reordering;
    scope.budget = Budget { duplicates: 1, cancels: 1, ..Budget::default() };
    assert_eq!(states(&scope), 20_325);
}

/// No lease would end what nobody waits for any more.
#[test]
fn a_client_that_hangs_up_while_it_waits_leaves_nothing_behind() {
    let mut scope = scope(3, once(1, 3), &THREE[..2]);
    scope.budget = Budget { hangups: 1, ..Budget::default() };
    let required = vec![Sometimes::HangUpCrossesGrant];
    let report = check(&scope, &Limits { states_max: 1_000_000, required }, &mut |_| {});
    assert!(report.holds(), "{report}");
    assert_eq!(report.states, 1_561);
}

#[cfg(feature = "long-checks")]
#[test]
fn three_clients_that_may_all_cancel() {
    let mut scope = scope(3, once(2, 3), &THREE);
    scope.budget = Budget { cancels: 3, ..Budget::default() };
    assert_eq!(explore_all(&scope), 894_251);
}

#[cfg(feature = "long-checks")]
#[test]
fn four_clients_of_majorities_of_three() {
    let wants = [(0, 1), (1, 1), (2, 1), (0, 1)];
    assert_eq!(explore_all(&scope(3, once(2, 3), &wants)), 1_340_975);
}

#[cfg(feature = "long-checks")]
fn explore_all(scope: &Scope<Ticket>) -> usize {
    let report = explore(scope, 60_000_000);
    assert!(report.holds(), "{report}");
    report.states
}

/// The law that is found broken when this rule is: three clients outside three members.
fn broken(mutant: Mutant) -> Option<&'static str> {
    let pool = Pool { mutant: Some(mutant), ..once(2, 3) };
    let mut scope = scope(3, pool, &THREE);
    scope.budget = Budget { early_rings: Some(0), ..Budget::default() };
    explore(&scope, 2_000_000).broken_law()
}

#[test]
fn t_1_one_round_of_views_is_not_enough() {
    assert_eq!(broken(Mutant::T1OneRound), Some("capacity"));
}

#[test]
fn t_2_members_must_raise_their_numbers_to_tickets() {
    assert_eq!(broken(Mutant::T2NoBump), Some("capacity"));
}

#[test]
fn t_3_claims_without_a_ticket_yet_must_be_counted() {
    assert_eq!(broken(Mutant::T3IgnoreUnsettled), Some("capacity"));
}

/// A release overtakes the registration it ends.
#[test]
fn an_entry_that_nobody_waits_for_is_given_back() {
    let mut scope = scope(3, Pool { mutant: Some(Mutant::NoHeal), ..once(1, 3) }, &THREE[..2]);
    scope.network = Network::Reordering;
    scope.budget = Budget { cancels: 1, early_rings: Some(0), ..Budget::default() };
    assert_eq!(explore(&scope, 300_000).broken_law(), Some("no deadlock"));
}

/// One member, with leases that end, and clients elsewhere; the member may forget everything.
fn forgetting() -> Scope<Ticket> {
    let quorums = Quorums::Threshold { members: 1, size: 1 };
    let pool = Pool { quorums, patience: None, ..Pool::new(1, 1) };
    let mut scope = scope(3, pool, &[(1, 1), (2, 1)]);
    scope.budget = Budget { crashes: 1, renewals: 1, early_rings: Some(0), ..Budget::default() };
    scope.crashing = [0].into_iter().collect::<NodeSet>();
    scope.restart = Restart::Amnesia;
    scope
}

/// Too many states to visit all: entries may end and be asked for again without end. No law is
/// broken in those nearest to the start.
#[test]
fn leases_and_a_member_that_forgets_near_the_start() {
    let report = explore(&forgetting(), 300_000);
    assert_eq!(report.verdict, Verdict::Incomplete, "{report}");
}

#[test]
fn a_member_that_forgot_and_speaks_at_once_is_found() {
    let mut scope = forgetting();
    scope.pool.mutant = Some(Mutant::NoGrace);
    assert_eq!(explore(&scope, 300_000).broken_law(), Some("capacity"));
}
