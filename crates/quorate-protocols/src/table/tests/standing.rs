//! Holds without a lease: they end by their clients' words alone, whoever crashes, forgets or is
//! suspected (the contract of [`quorate_core::Wanted::standing`]).

use quorate_check::{Budget, Limits, Report, Restart, Scope, Sometimes, check};
use quorate_core::{NodeId, NodeSet};
use quorate_sim::{Needs, Plan, Profile, Verdict, Watch, run};

use crate::central;
use crate::table::pool::Mutant;
use crate::table::{Pool, Table};

/// One unit, which the first client wants for good and the second for a lease.
fn scope(mutant: Option<Mutant>) -> Scope<Table> {
    let mut pool = Pool { patience: None, mutant, ..Pool::new(1, 3) };
    (pool.goods.durable, pool.goods.standing) = (true, true);
    let mut scope = Scope::new(3, pool, &[(NodeId(0), 1), (NodeId(1), 1)]).unwrap();
    for (draw, plan) in scope.clients.iter_mut().enumerate() {
        plan.claim.draw = draw as u64;
    }
    let first = &mut scope.clients[0].claim;
    first.wanted = first.wanted.clone().to_stand("for good");
    scope.budget = Budget { early_rings: Some(0), ..Budget::default() };
    scope
}

fn crashing(mutant: Option<Mutant>, node: u32, restart: Restart) -> Scope<Table> {
    let mut scope = scope(mutant);
    scope.budget.crashes = 1;
    scope.crashing = [node].into_iter().collect::<NodeSet>();
    scope.restart = restart;
    scope
}

fn explore(scope: &Scope<Table>, required: &[Sometimes]) -> Report {
    let limits = Limits { states_max: 5_000_000, required: required.to_vec() };
    check(scope, &limits, &mut |_| {})
}

#[test]
fn what_stands_outlives_renewals_crashes_and_suspicion() {
    let mut renewing = scope(None);
    renewing.budget.renewals = 1;
    let mut doubting = scope(None);
    doubting.budget.suspicions = 1;
    let durable = crashing(None, 0, Restart::Durable);
    for (name, scope, required) in [
        ("renewal", renewing, Sometimes::Enter),
        ("suspicion", doubting, Sometimes::Enter),
        ("its home restarts", durable, Sometimes::CrashSurvived),
    ] {
        let report = explore(&scope, &[required]);
        assert!(report.holds(), "{name}: {report}");
    }
}

/// A member that lost its disk, while both want the unit for good.
fn forgetting(mutant: Option<Mutant>) -> Scope<Table> {
    let mut scope = crashing(mutant, 2, Restart::Amnesia);
    let second = &mut scope.clients[1].claim;
    second.wanted = second.wanted.clone().to_stand("too");
    scope
}

/// A member that lost its disk learns the table from the others before it promises anything.
#[test]
fn what_stands_outlives_a_member_that_forgot_everything() {
    let report = explore(&forgetting(None), &[Sometimes::CrashSurvived]);
    assert!(report.holds(), "{report}");
    let report = explore(&forgetting(Some(Mutant::OpenEmpty)), &[]);
    assert_eq!(report.broken_law(), Some("capacity"), "{report}");
}

/// The same beside somebody with a lease.
#[cfg(feature = "long-checks")]
#[test]
fn what_stands_outlives_a_member_that_forgot_beside_leases() {
    let report = explore(&crashing(None, 2, Restart::Amnesia), &[Sometimes::CrashSurvived]);
    assert!(report.holds(), "{report}");
}

#[test]
fn what_stands_and_has_a_lease_after_all_is_caught() {
    let report = explore(&scope(Some(Mutant::EndStanding)), &[]);
    assert_eq!(report.broken_law(), Some("standing stays"), "{report}");
}

/// Every second claim stands, under every fault that a seed draws.
fn play(seed: u64, profile: Profile, mutant: Option<Mutant>) -> Option<&'static str> {
    let mut plan = Plan::swarm(seed, profile, Needs::default());
    let want = std::mem::replace(&mut plan.workload.want, quorate_sim::Want::always(1));
    plan.workload.want = want.standing(500_000);
    let mut goods = central::tests::seeds::pool(&plan, None).goods;
    (goods.durable, goods.standing) = (true, true);
    let pool = Pool { mutant, ..Pool::drawn(goods, plan.nodes, seed) };
    let report = run::<Table>(&plan, &pool, Watch { strict: true, ..Watch::default() });
    match report.verdict {
        Verdict::Clean | Verdict::Stopped => None,
        Verdict::Broken(breach) if mutant.is_some() => Some(breach.law),
        Verdict::Broken(breach) => panic!("seed {seed}, {profile:?}: {breach}"),
    }
}

#[test]
fn what_stands_stays_under_every_fault_profile() {
    for profile in Profile::ALL {
        (0..6).for_each(|seed| _ = play(seed, profile, None));
    }
}

#[test]
fn a_lease_on_what_stands_is_caught_in_a_simulated_run() {
    let caught = (0..100).find_map(|seed| play(seed, Profile::None, Some(Mutant::EndStanding)));
    assert!(matches!(caught, Some("standing stays" | "capacity" | "exclusivity")), "{caught:?}");
}
