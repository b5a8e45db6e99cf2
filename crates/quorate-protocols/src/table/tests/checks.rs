//! Small pools explored exhaustively, with their state counts: a changed number is a changed
//! protocol.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quorate_check::{Budget, Limits, Network, Report, Restart, Scope, Sometimes, check};
use quorate_core::{Lease, Line, NodeId, NodeSet, Unit, Units};

use crate::allocator::labels::Labels;
use crate::table::pool::Mutant;
use crate::table::{Pool, Table};

/// Clients at these nodes want so many units each; draws count up, so that quorums differ.
fn scope(nodes: usize, pool: Pool, wants: &[(u32, u32)]) -> Scope<Table> {
    let wants: Vec<_> = wants.iter().map(|&(node, h)| (NodeId(node), h)).collect();
    let mut scope = Scope::new(nodes, pool, &wants).unwrap();
    for (draw, plan) in scope.clients.iter_mut().enumerate() {
        plan.claim.draw = draw as u64;
    }
    scope.budget = Budget { early_rings: Some(0), ..Budget::default() };
    scope
}

/// Leases never end, and nobody repeats or confirms anything: the world of the specification.
fn once(units: u32, members: u32) -> Pool {
    let mut pool = Pool { patience: None, confirm: false, ..Pool::new(units, members) };
    pool.goods.lease = Lease::new(Duration::MAX, 0);
    pool.mutant = Some(Mutant::NeverRetry);
    pool
}

/// Everything that is to survive faults, but nobody is given up.
fn robust(units: u32, members: u32) -> Pool {
    Pool { patience: None, ..Pool::new(units, members) }
}

fn explore(scope: &Scope<Table>, required: &[Sometimes]) -> Report {
    let limits = Limits { states_max: 10_000_000, required: required.to_vec() };
    check(scope, &limits, &mut |_| {})
}

const TWO: [(u32, u32); 2] = [(0, 1), (1, 1)];
const THREE: [(u32, u32); 3] = [(0, 1), (1, 1), (2, 1)];

/// These nodes may crash, once in all, between any two effects.
fn crashing(mut scope: Scope<Table>, nodes: &[u32], restart: Restart) -> Scope<Table> {
    scope.budget.crashes = 1;
    scope.crashing = nodes.iter().copied().collect::<NodeSet>();
    scope.restart = restart;
    scope.pool.goods.durable = restart == Restart::Durable;
    scope
}

fn with(mut scope: Scope<Table>, change: impl FnOnce(&mut Budget)) -> Scope<Table> {
    change(&mut scope.budget);
    scope
}

fn reordering(mut scope: Scope<Table>) -> Scope<Table> {
    scope.network = Network::Reordering;
    scope
}

/// Locks are taken away whenever their holder is slow.
fn impatient(mut scope: Scope<Table>) -> Scope<Table> {
    scope.pool.patience = Some(0);
    scope
}

/// Nodes take others for dead, wrongly and for good.
fn doubting(suspicions: u8, mut scope: Scope<Table>) -> Scope<Table> {
    scope.budget.suspicions = suspicions;
    scope.trusts_again = false;
    scope
}

/// A node with a client is a member too, and forgets everything.
fn forgetting(mutant: Option<Mutant>) -> Scope<Table> {
    let pool = Pool { mutant, ..robust(1, 3) };
    crashing(scope(3, pool, &TWO), &[1], Restart::Amnesia)
}

/// The same as below, with a section of the node that forgot and of whose clients nobody is left.
#[cfg(feature = "long-checks")]
#[test]
fn a_node_that_forgot_looks_back() {
    let report = explore(&forgetting(None), &[Sometimes::CrashSurvived]);
    assert!(report.holds(), "{report}");
    assert_eq!(report.states, 2_485_550);
}

#[test]
fn small_worlds_are_exhausted_in_as_many_states_as_ever() {
    use Restart::Durable;
    use Sometimes::{CrashSurvived, Enter, Full, HangUpCrossesGrant, Reclaim};
    let confirmed = Pool { confirm: true, ..once(1, 3) };
    // No lease would end what nobody waits for any more.
    let silent = confirmed.clone();
    let mut counted = Vec::new();
    let mut pinned = Vec::new();
    for (name, scope, required, states) in [
        ("as specified", scope(3, once(1, 3), &THREE), &[Enter][..], 7_396),
        ("sizes", scope(3, once(2, 3), &[(0, 1), (1, 2), (2, 1)]), &[Full], 9_864),
        ("confirmed", scope(3, confirmed, &THREE), &[Enter], 10_914),
        ("leases", with(scope(3, robust(1, 3), &TWO), |b| b.deaths = 1), &[Reclaim], 8_239),
        ("renewal", with(scope(3, robust(1, 3), &TWO), |b| b.renewals = 1), &[Enter], 4_354),
        ("cancel", with(scope(3, robust(1, 3), &TWO), |b| b.cancels = 1), &[Enter], 4_703),
        ("hang up", with(scope(3, silent, &TWO), |b| b.hangups = 1), &[HangUpCrossesGrant], 1_985),
        ("loss", with(scope(3, robust(1, 3), &TWO), |b| b.losses = 1), &[Enter], 26_814),
        ("reordering", reordering(scope(3, robust(1, 3), &TWO)), &[Enter], 1_364),
        (
            "durable",
            crashing(scope(3, robust(1, 3), &TWO), &[0], Durable),
            &[CrashSurvived],
            183_619,
        ),
        ("amnesia", forgetting(Some(Mutant::LeaveEarlierLives)), &[CrashSurvived], 572_822),
        ("opinions", doubting(2, scope(3, robust(1, 3), &TWO)), &[Enter], 407_055),
        (
            "impatient",
            impatient(with(scope(3, robust(1, 3), &TWO), |b| b.early_rings = Some(1))),
            &[Enter],
            48_507,
        ),
    ] {
        let report = explore(&scope, required);
        assert!(report.holds(), "{name}: {report}");
        counted.push((name, report.states));
        pinned.push((name, states));
    }
    assert_eq!(counted, pinned);
}

/// Of every kind so many: who may use the first unit, the second, either, and who wants both.
fn clients_of_two_units(count: u32) -> Vec<[u32; 4]> {
    let mut all = Vec::new();
    for a in 0..=count {
        for b in 0..=(count - a).min(a) {
            for either in 0..=count - a - b {
                all.push([a, b, either, count - a - b - either]);
            }
        }
    }
    all
}

/// The scope of `msg_quorum` (labels spec 7): clients of two units, and majorities of
/// three members, here at the members' own nodes.
fn system(kinds: [u32; 4]) -> Scope<Table> {
    let among: [(u32, &[u32]); 4] = [(1, &[0]), (1, &[1]), (1, &[0, 1]), (2, &[0, 1])];
    let chosen: Vec<(u32, &[u32])> = among
        .iter()
        .zip(kinds)
        .flat_map(|(kind, count)| std::iter::repeat_n(*kind, count as usize))
        .collect();
    let wants: Vec<(u32, u32)> =
        chosen.iter().enumerate().map(|(at, (h, _))| (at as u32 % 3, *h)).collect();
    let mut pool = once(2, 3);
    let unit = |unit: u32| (format!("u{unit}"), BTreeMap::new());
    pool.goods.labels = Some(Arc::new(Labels::new((0..2).map(unit).collect())));
    let mut scope = scope(3, pool, &wants);
    for (plan, (h, units)) in scope.clients.iter_mut().zip(chosen) {
        let among = units.iter().map(|unit| Unit(*unit)).collect();
        plan.claim.wanted.lines = Some([Line::of(Units::new(h, 2).unwrap(), among)].into());
    }
    scope
}

/// How many systems there are, and how many states they have.
fn exhausted(systems: &[[u32; 4]]) -> (usize, usize) {
    let states = |kinds: &[u32; 4]| {
        let report = explore(&system(*kinds), &[Sometimes::Enter]);
        assert!(report.holds(), "{kinds:?}: {report}");
        report.states
    };
    (systems.len(), systems.iter().map(states).sum())
}

#[test]
fn every_set_of_three_clients_of_two_units_is_exhausted() {
    assert_eq!(exhausted(&clients_of_two_units(3)), (13, 134_585));
}

/// The specification's own scope, in pieces by how many need the first unit.
#[cfg(feature = "long-checks")]
mod every_set_of_four_clients_of_two_units_is_exhausted {
    use super::{clients_of_two_units, exhausted};

    fn piece(first: u32) -> (usize, usize) {
        let systems: Vec<_> =
            clients_of_two_units(4).into_iter().filter(|kinds| kinds[0] == first).collect();
        exhausted(&systems)
    }

    #[test]
    fn nobody_needs_the_first() {
        assert_eq!(piece(0), (5, 1_075_601));
    }

    #[test]
    fn one_needs_the_first() {
        assert_eq!(piece(1), (7, 1_592_656));
    }

    #[test]
    fn more_need_the_first() {
        let (systems, states): (Vec<_>, Vec<_>) = (2..=4).map(piece).unzip();
        let found = (systems.iter().sum::<usize>(), states.iter().sum::<usize>());
        assert_eq!(found, (10, 2_263_827));
    }
}

/// The law that is found broken when this rule is.
fn broken(mutant: Mutant, mut scope: Scope<Table>) -> Option<&'static str> {
    scope.pool.mutant = Some(mutant);
    explore(&scope, &[]).broken_law()
}

#[test]
fn every_broken_rule_is_found_by_the_law_it_breaks() {
    let early = |scope| with(scope, |b: &mut Budget| b.early_rings = Some(2));
    for (mutant, scope, law) in [
        (Mutant::TakeOldest, scope(3, once(1, 3), &THREE), "capacity"),
        (Mutant::LockOne, scope(3, once(1, 3), &THREE), "capacity"),
        (Mutant::Unordered, scope(2, once(1, 2), &TWO), "no deadlock"),
        (Mutant::ReuseFence, scope(3, once(1, 3), &TWO), "fence order"),
        (Mutant::StoreUnlocked, early(impatient(scope(3, robust(1, 3), &TWO))), "capacity"),
        (Mutant::SameRound, early(impatient(scope(3, robust(1, 3), &TWO))), "capacity"),
        (Mutant::TellEarly, early(impatient(scope(3, robust(1, 3), &TWO))), "capacity"),
        (
            Mutant::NoGrace,
            crashing(scope(3, robust(1, 3), &TWO), &[1], Restart::Amnesia),
            "capacity",
        ),
        (
            Mutant::ForgetFloor,
            crashing(scope(3, robust(1, 3), &TWO), &[1], Restart::Amnesia),
            "fence order",
        ),
        (Mutant::NeverReclaim, with(scope(3, robust(1, 3), &TWO), |b| b.deaths = 1), "no deadlock"),
        (Mutant::StayAway, doubting(1, scope(3, robust(1, 3), &TWO)), "no deadlock"),
        (Mutant::NeverRetry, with(scope(3, robust(1, 3), &TWO), |b| b.losses = 1), "no deadlock"),
    ] {
        assert_eq!(broken(mutant, scope), Some(law), "{mutant:?}");
    }
}

/// A known limit: without confirmation a message that is lost gives a unit away twice.
#[test]
fn what_is_not_confirmed_does_not_survive_a_loss() {
    let pool = Pool { confirm: false, ..robust(1, 3) };
    let report = explore(&with(scope(3, pool, &TWO), |b| b.losses = 1), &[]);
    assert!(matches!(report.broken_law(), Some("capacity" | "fence order")), "{report}");
}

/// A crash between two effects it did not either, as long as the node that was back gave fences
/// that others had given meanwhile.
#[test]
fn what_is_not_confirmed_survives_a_crash_if_fences_do() {
    let crashed = |mutant| {
        let pool = Pool { confirm: false, mutant, ..robust(1, 3) };
        explore(&crashing(scope(3, pool, &TWO), &[0], Restart::Durable), &[])
    };
    let report = crashed(None);
    assert!(report.holds(), "{report}");
    let report = crashed(Some(Mutant::ForgetFloor));
    assert_eq!(report.broken_law(), Some("fence order"), "{report}");
}
