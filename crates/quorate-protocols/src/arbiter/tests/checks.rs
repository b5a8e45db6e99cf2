//! Small pools explored exhaustively, with their state counts: a changed number is a changed
//! protocol (arbiter spec 7.7). Nothing is lost in these worlds, so most are explored without
//! repeated requests, as the paper's are.

use quorate_check::{Budget, Limits, Network, Report, Restart, Scope, Sometimes, check};
use quorate_core::{NodeId, NodeSet};

use super::walk::forever;
use crate::arbiter::pool::Mutant;
use crate::arbiter::{Arbiter, Mode, Pool};
use crate::quorums::Quorums;

/// Clients at these nodes want so many units each; draws count up, so that quorums differ.
pub(super) fn scope(nodes: usize, pool: Pool, wants: &[(u32, u32)]) -> Scope<Arbiter> {
    let wants: Vec<_> = wants.iter().map(|&(node, h)| (NodeId(node), h)).collect();
    let mut scope = Scope::new(nodes, pool, &wants).unwrap();
    for (draw, plan) in scope.clients.iter_mut().enumerate() {
        plan.claim.draw = draw as u64;
    }
    scope
}

/// Leases never end, and nobody repeats itself.
pub(super) fn once(pool: Pool) -> Pool {
    Pool { once: true, ..forever(pool) }
}

pub(super) fn explore(scope: &Scope<Arbiter>, states_max: usize) -> Report {
    check(scope, &Limits { states_max, ..Limits::default() }, &mut |_| {})
}

/// Explores all of it, and says how many states there are.
fn states(scope: &Scope<Arbiter>) -> usize {
    let report = explore(scope, 1_000_000);
    assert!(report.holds(), "{report}");
    report.states
}

const TWO: [(u32, u32); 2] = [(0, 1), (1, 1)];
pub(super) const THREE: [(u32, u32); 3] = [(0, 1), (1, 1), (2, 1)];

#[test]
fn majorities_of_three_nodes() {
    assert_eq!(states(&scope(3, once(Pool::new(1, 3)), &THREE)), 22_971);
    assert_eq!(states(&scope(3, forever(Pool::new(1, 3)), &TWO)), 22_353);
}

#[test]
fn majorities_with_links_that_reorder_and_repeat_and_clients_that_cancel() {
    let mut scope = scope(3, once(Pool::new(1, 3)), &TWO);
    scope.network = Network::Reordering;
    scope.budget = Budget { duplicates: 1, cancels: 1, ..Budget::default() };
    assert_eq!(states(&scope), 31_717);
}

/// No lease would end what nobody waits for any more.
#[test]
fn a_client_that_hangs_up_while_it_waits_leaves_nothing_behind() {
    let required = vec![Sometimes::HangUpCrossesGrant];
    let limits = Limits { states_max: 1_000_000, required };
    let states = |pool: Pool| {
        let mut scope = scope(3, once(pool), &TWO);
        scope.budget = Budget { hangups: 1, ..Budget::default() };
        let report = check(&scope, &limits, &mut |_| {});
        assert!(report.holds(), "{report}");
        report.states
    };
    assert_eq!(states(Pool::new(1, 3)), 1_789);
    states(Pool::named(1, 3));
}

#[test]
fn a_claim_for_everything_among_two_for_one() {
    let wants = [(0, 2), (1, 1), (1, 1)];
    let mut scope = scope(2, once(Pool::new(2, 2)), &wants);
    scope.budget = Budget { cancels: 1, ..Budget::default() };
    assert_eq!(states(&scope), 11_955);
}

#[test]
fn two_units_of_four_nodes() {
    let wants = [(0, 2), (1, 1), (2, 1)];
    assert_eq!(states(&scope(4, once(Pool::new(2, 4)), &wants)), 184_231);
}

#[test]
fn one_arbiter_more_than_needed_is_asked() {
    let pool = Pool { hedge: 1, ..Pool::new(1, 3) };
    assert_eq!(states(&scope(3, once(pool), &TWO)), 57_721);
}

#[test]
fn units_by_name() {
    let mut scope = scope(3, once(Pool::named(2, 3)), &[(0, 1), (1, 2), (2, 1)]);
    scope.clients[2].claim.draw = 1; // The first and the third share no unit.
    assert_eq!(states(&scope), 15_671);
}

/// Whoever hears that its unit is taken asks for another, and none of them goes to and fro for
/// ever: two clients by majorities of three, who begin with the same unit, and three by the word of
/// two arbiters.
#[test]
fn units_by_name_that_clients_choose() {
    let mut two = scope(3, once(Pool::named(2, 3)), &TWO);
    two.clients[1].claim.draw = 2;
    two.ends = true;
    assert_eq!(states(&two), 12_041);
    let quorums = Quorums::Threshold { members: 2, size: 2 };
    let pool = Pool { quorums, ..once(Pool::named(2, 2)) };
    let mut three = scope(2, pool, &[(0, 1), (1, 1), (0, 1)]);
    three.ends = true;
    assert_eq!(states(&three), 5_367);
}

/// Re-selection, there and back: a home takes arbiters for dead for a moment, and asks others.
#[test]
fn claims_go_round_arbiters_that_are_suspected_and_come_back() {
    for (suspicions, count) in [(1, 15_038), (2, 202_059)] {
        let mut scope = scope(3, once(Pool::new(1, 3)), &TWO);
        scope.budget.suspicions = suspicions;
        assert_eq!(states(&scope), count, "{suspicions}");
    }
}

/// One home asks {0,1}, {1,2} and {0,1} again, the other {0,2}: an answer to the first try is not
/// one to the second, although links keep their order.
#[test]
fn m14_tries_that_are_not_told_apart_are_found() {
    let pair = |a: u32, b: u32| [a, b].into_iter().collect::<NodeSet>();
    let quorums = Quorums::Explicit([pair(0, 1), pair(0, 2), pair(1, 2)].into());
    let mutant = Some(Mutant::M14NoAttempts);
    let mut scope = scope(5, Pool { mutant, quorums, ..once(Pool::new(1, 3)) }, &[(3, 1), (4, 1)]);
    scope.budget.suspicions = 2;
    assert_eq!(explore(&scope, 1_000_000).broken_law(), Some("capacity"));
}

/// Leases that end, and node 0, an arbiter, that crashes once between any two effects of any step.
/// Alarms ring when nothing is on its way: leases are long for messages.
fn crashing(pool: Pool, restart: Restart, wants: &[(u32, u32)]) -> Scope<Arbiter> {
    let durable = restart == Restart::Durable;
    let nodes = wants.iter().map(|want| want.0 as usize + 1).max().unwrap_or(1);
    let nodes = nodes.max(pool.quorums.members().len());
    let mut scope = scope(nodes, Pool { patience: None, durable, ..pool }, wants);
    scope.budget = Budget { crashes: 1, early_rings: Some(0), ..Budget::default() };
    scope.crashing = [0].into_iter().collect::<NodeSet>();
    scope.restart = restart;
    scope
}

/// One arbiter, for clients elsewhere: every promise it makes is at stake when it crashes.
fn only() -> Pool {
    Pool { quorums: Quorums::Threshold { members: 1, size: 1 }, ..Pool::new(1, 1) }
}

const ELSEWHERE: [(u32, u32); 2] = [(1, 1), (2, 1)];

#[test]
fn an_arbiter_with_leases_crashes_and_remembers() {
    assert_eq!(states(&crashing(only(), Restart::Durable, &ELSEWHERE)), 54_070);
}

#[test]
fn an_arbiter_with_leases_crashes_and_forgets() {
    assert_eq!(states(&crashing(only(), Restart::Amnesia, &ELSEWHERE)), 107_592);
    let mut at_home = crashing(only(), Restart::Amnesia, &TWO);
    at_home.budget.renewals = 1;
    assert_eq!(states(&at_home), 32_448);
}

#[test]
fn one_of_two_arbiters_with_leases_crashes() {
    let both = Pool { quorums: Quorums::Threshold { members: 2, size: 2 }, ..Pool::new(1, 2) };
    assert_eq!(states(&crashing(both.clone(), Restart::Durable, &[(0, 1)])), 2_090);
    assert_eq!(states(&crashing(both, Restart::Amnesia, &[(0, 1)])), 2_608);
}

/// Majorities of three: a holder that renews asks the third arbiter too, and goes on without the
/// one that forgot, which is its home as well.
#[test]
fn whoever_renews_asks_all_arbiters_and_one_of_them_forgets() {
    let pool = || Pool { patience: None, ..Pool::new(1, 3) };
    let mut quiet = scope(3, pool(), &TWO);
    quiet.budget = Budget { renewals: 1, early_rings: Some(0), ..Budget::default() };
    assert_eq!(states(&quiet), 184_370);
    for (renewals, count) in [(1, 5_261), (2, 8_400)] {
        let mut forgets = crashing(pool(), Restart::Amnesia, &[(0, 1)]);
        forgets.budget.renewals = renewals;
        assert_eq!(states(&forgets), count, "{renewals}");
    }
}

/// Alarms that ring at any moment, as often as they like, and the same crash.
fn hasty(pool: Pool, restart: Restart, wants: &[(u32, u32)]) -> Scope<Arbiter> {
    let mut scope = crashing(pool, restart, wants);
    scope.budget.early_rings = None;
    scope
}

#[test]
fn alarms_ring_at_any_moment_and_an_arbiter_crashes() {
    let both = Pool { quorums: Quorums::Threshold { members: 2, size: 2 }, ..Pool::new(1, 2) };
    assert_eq!(states(&hasty(both, Restart::Durable, &[(0, 1)])), 307_371);
    assert_eq!(states(&hasty(only(), Restart::Durable, &[(1, 1)])), 1_058);
    assert_eq!(states(&hasty(only(), Restart::Amnesia, &[(1, 1)])), 5_454);
}

/// Two clients of the arbiter, and one alarm that is too early.
#[test]
fn an_alarm_rings_early_and_an_arbiter_with_two_clients_crashes() {
    for (wants, restart, count) in [
        (TWO, Restart::Durable, 60_388),
        (TWO, Restart::Amnesia, 46_455),
        (ELSEWHERE, Restart::Durable, 297_981),
        (ELSEWHERE, Restart::Amnesia, 523_350),
    ] {
        let mut scope = crashing(only(), restart, &wants);
        scope.budget.early_rings = Some(1);
        assert_eq!(states(&scope), count, "{wants:?} {restart:?}");
    }
}

/// The same crash, without grace.
#[test]
fn l_2_an_arbiter_that_forgot_and_grants_at_once_is_found() {
    let pool = Pool { mutant: Some(Mutant::L2NoGrace), ..only() };
    let report = explore(&crashing(pool, Restart::Amnesia, &ELSEWHERE), 300_000);
    assert_eq!(report.broken_law(), Some("capacity"), "{report}");
}

/// The same harness, with a rule broken: two arbiters, both needed, and clients at these nodes.
fn broken(mutant: Mutant, homes: [u32; 2], duplicates: u8) -> Option<&'static str> {
    let pool = Pool { mutant: Some(mutant), ..forever(Pool::new(1, 2)) };
    let mut scope = scope(homes[1] as usize + 1, pool, &homes.map(|home| (home, 1)));
    scope.budget = Budget { duplicates, ..Budget::default() };
    explore(&scope, 300_000).broken_law()
}

#[test]
fn broken_rules_are_found_without_being_told_where() {
    assert_eq!(broken(Mutant::M1NoInquire, [0, 1], 0), Some("no deadlock"));
    assert_eq!(broken(Mutant::M4HolderYields, [0, 1], 0), Some("capacity"));
    assert_eq!(broken(Mutant::M7CountGrants, [2, 3], 1), Some("capacity"));
    assert_eq!(broken(Mutant::F1FloorOnExpiryOnly, [0, 1], 0), Some("fence order"));
}

/// Two arbiters, both needed, two units, and nobody repeats itself.
fn broken_of_two(mutant: Mutant, wants: &[(u32, u32)]) -> Option<&'static str> {
    let quorums = Quorums::Threshold { members: 2, size: 2 };
    let pool = Pool { mutant: Some(mutant), quorums, ..once(Pool::new(2, 2)) };
    explore(&scope(3, pool, wants), 300_000).broken_law()
}

/// Majorities of three, written out; one unit, clients that do not vote, links that reorder.
fn broken_of_majorities(mutant: Mutant, cancels: u8) -> Option<&'static str> {
    let pair = |a: u32, b: u32| [a, b].into_iter().collect::<NodeSet>();
    let quorums = Quorums::Explicit([pair(0, 2), pair(0, 1), pair(1, 2)].into());
    let pool = Pool { mutant: Some(mutant), quorums, ..once(Pool::new(1, 3)) };
    let mut scope = scope(5, pool, &[(3, 1), (4, 1)]);
    scope.network = Network::Reordering;
    scope.budget = Budget { cancels, ..Budget::default() };
    explore(&scope, 300_000).broken_law()
}

#[test]
fn m2_permissions_without_numbers_are_found() {
    assert_eq!(broken_of_majorities(Mutant::M2NoGrantNumbers, 0), Some("capacity"));
}

#[test]
fn m3_a_counter_per_node_is_found() {
    let wants = [(0, 1), (0, 1), (1, 1)];
    assert_eq!(broken_of_two(Mutant::M3CounterPerNode, &wants), Some("capacity"));
}

#[test]
fn m5_asking_back_on_arrival_only_is_found() {
    let wants = [(0, 1), (1, 2), (2, 1)];
    assert_eq!(broken_of_two(Mutant::M5InquireOnArrival, &wants), Some("no deadlock"));
}

#[test]
fn m6_forgetting_who_yielded_is_found() {
    let wants = [(0, 2), (1, 1), (2, 1)];
    assert_eq!(broken_of_two(Mutant::M6ForgetYielded, &wants), Some("no deadlock"));
}

#[test]
fn m8_ignoring_a_permission_that_nobody_waits_for_is_found() {
    assert_eq!(broken_of_majorities(Mutant::M8NoHeal, 1), Some("no deadlock"));
}

#[test]
fn m9_a_queue_in_order_of_arrival_is_found() {
    let wants = [(0, 2), (1, 1), (2, 1)];
    assert_eq!(broken_of_two(Mutant::M9ArrivalOrder, &wants), Some("no deadlock"));
}

/// The paper's section 3.1 as printed, and Maekawa's original rule that only those give way who
/// have heard that they fail (Sanders 1987 found what is wrong with it). Both deadlock; how is
/// printed.
#[test]
#[allow(clippy::disallowed_macros, reason = "the histories are worth reading")]
fn the_algorithms_as_published_deadlock() {
    for mutant in [Mutant::M1NoInquire, Mutant::MaekawaFailed] {
        let quorums = Quorums::Threshold { members: 2, size: 2 };
        let pool = Pool { mutant: Some(mutant), quorums, ..once(Pool::new(1, 2)) };
        let report = explore(&scope(5, pool, &[(2, 1), (3, 1), (4, 1)]), 4_000_000);
        println!("{mutant:?}: {report}");
        assert_eq!(report.broken_law(), Some("no deadlock"), "{report}");
    }
}

#[test]
fn telling_a_permission_before_writing_it_down_is_found() {
    let quorums = Quorums::Threshold { members: 1, size: 1 };
    let mutant = Some(Mutant::TellBeforePersist);
    let pool = Pool { quorums, durable: true, mutant, ..forever(Pool::new(1, 1)) };
    let mut scope = scope(3, pool, &[(1, 1), (2, 1)]);
    scope.budget = Budget { crashes: 1, ..Budget::default() };
    scope.crashing = [0].into_iter().collect::<NodeSet>();
    assert_eq!(explore(&scope, 300_000).broken_law(), Some("capacity"));
}

/// Asking elders to give way too: two clients ask each other for ever.
#[test]
fn m10_asking_elders_to_yield_is_found() {
    let quorums = Quorums::Threshold { members: 2, size: 2 };
    for (mutant, law) in [(None, None), (Some(Mutant::M10VictimsMayBeOlder), Some("no livelock"))] {
        let pool = Pool { mutant, quorums: quorums.clone(), ..once(Pool::new(1, 2)) };
        let mut scope = scope(4, pool, &[(2, 1), (3, 1)]);
        scope.ends = true;
        let report = explore(&scope, 300_000);
        assert_eq!(report.broken_law(), law, "{report}");
        assert!(law.is_some() || report.holds(), "{report}");
    }
}

/// A claim for both units, older than two for one each, where younger ones may pass it twice.
fn passing(mutant: Option<Mutant>, homes: [u32; 3]) -> Scope<Arbiter> {
    let quorums = Quorums::Threshold { members: 2, size: 2 };
    let mode = Mode::Count { holders_max: 2, backfill: 2 };
    let pool = Pool { mutant, quorums, mode, ..once(Pool::new(2, 2)) };
    let wants = [(homes[0], 2), (homes[1], 1), (homes[2], 1)];
    let mut scope = scope(homes[2] as usize + 1, pool, &wants);
    scope.ends = true;
    scope
}

/// Two defences. The elder rule keeps permissions from going back and forth at all; the bound ends
/// it after so many times. Without the first every history still ends, after many more messages.
/// Without both it does not.
#[test]
fn m12_m13_younger_claims_that_pass_are_kept_in_bounds_twice() {
    assert_eq!(states(&passing(None, [0, 1, 2])), 25_471);
    let no_elders = passing(Some(Mutant::M12BackfillWithoutElders), [0, 1, 2]);
    assert_eq!(states(&no_elders), 155_039);
    let neither = passing(Some(Mutant::M13BackfillWithoutBound), [1, 2, 3]);
    assert_eq!(explore(&neither, 300_000).broken_law(), Some("no livelock"));
}

/// Two arbiters, both needed; clients at these nodes want one unit each, and pick the same first.
fn picking(mutant: Option<Mutant>, units: u32, homes: &[u32]) -> Scope<Arbiter> {
    let quorums = Quorums::Threshold { members: 2, size: 2 };
    let pool = Pool { mutant, quorums, naming: true, ..once(Pool::new(units, 2)) };
    let wants: Vec<(u32, u32)> = homes.iter().map(|&home| (home, 1)).collect();
    let mut scope = scope(2.max(*homes.iter().max().unwrap() as usize + 1), pool, &wants);
    scope.clients.iter_mut().for_each(|plan| plan.claim.draw = 0);
    scope.ends = true;
    scope
}

#[test]
fn n_1_claims_that_pick_the_same_unit_all_get_one() {
    assert_eq!(states(&picking(None, 2, &[0, 1])), 685);
    assert_eq!(states(&picking(None, 2, &[2, 3])), 177_913);
}

/// Each of two claims is refused by the arbiter where the other came first.
#[test]
fn n_1_refusing_whoever_comes_second_is_found() {
    let refusing = picking(Some(Mutant::N1RefuseWithoutPriority), 2, &[0, 1]);
    assert_eq!(explore(&refusing, 300_000).broken_law(), Some("no deadlock"));
}

#[test]
fn c7_taking_a_unit_before_it_was_given_up_is_found() {
    let scope = picking(Some(Mutant::C7TakeUnasked), 2, &[2, 3]);
    assert_eq!(explore(&scope, 300_000).broken_law(), Some("exclusivity"));
}
