//! Every history of small worlds in which nodes take seats when somebody uses the pool there
//! (charter spec S19, S20).

use quorate_check::{Limits, Report, Scope, Sometimes, check};

use super::exhaustive::{QUIET, STATES_MAX, pair};
use super::on_demand::{Broken, OnDemand, Pool};
use super::shadowed::{CRASH, staying};
use crate::central::moving::{self, Moving};

/// The same world, where seats are taken on demand.
pub(super) fn on_demand(scope: Scope<Moving>, is_made: bool) -> Scope<OnDemand> {
    let first = is_made.then_some(&scope.pool);
    let all = [&scope.pool].into_iter().chain(first).chain(&scope.editions);
    let with = |(edition, pool): (usize, &moving::Pool)| {
        let (pool, edition) = (pool.clone(), edition as u32);
        Pool { pool, is_made, edition, still: true, broken: None }
    };
    let mut editions: Vec<Pool> = all.enumerate().map(with).collect();
    let pool = editions.remove(0);
    let Scope { nodes, clients, network, crashing, restart, budget, trusts_again, .. } = scope;
    let Scope { copies_max, draws, ends, leases, council, renaming, .. } = scope;
    Scope {
        nodes,
        pool,
        editions,
        is_made,
        clients,
        network,
        crashing,
        restart,
        budget,
        trusts_again,
        copies_max,
        draws,
        ends,
        leases,
        council,
        renaming,
    }
}

pub(super) fn unused(scope: Scope<Moving>) -> Scope<OnDemand> {
    on_demand(scope, false)
}

pub(super) fn made(scope: Scope<Moving>) -> Scope<OnDemand> {
    on_demand(scope, true)
}

pub(super) fn explored(scope: &Scope<OnDemand>, required: &[Sometimes]) -> Report {
    let limits = Limits { states_max: STATES_MAX, required: required.to_vec() };
    check(scope, &limits, &mut |_| {})
}

pub(super) fn broken(mut scope: Scope<OnDemand>, rule: Broken) -> Report {
    scope.pool.broken = Some(rule);
    scope.editions.iter_mut().for_each(|pool| pool.broken = Some(rule));
    explored(&scope, &[])
}

/// A changed number is a changed protocol or a changed checker.
#[test]
fn pools_that_come_into_use_are_exhausted_in_as_many_states_as_ever() {
    use Sometimes::{Full, OpenedUnused, SeatMoved};
    let all = [Full, SeatMoved, OpenedUnused];
    let mut counted = Vec::new();
    for (name, scope) in [
        ("unused", unused(pair(QUIET))),
        ("made", made(pair(QUIET))),
        ("unused, restart", unused(staying(CRASH))),
        ("made, restart", made(staying(CRASH))),
    ] {
        let report = explored(&scope, &all);
        assert!(report.holds(), "{name}: {report}");
        counted.push((name, report.states));
    }
    let pinned = [
        ("unused", 48_624),
        ("made", 101_883),
        ("unused, restart", 108_110),
        ("made, restart", 689_515),
    ];
    assert_eq!(counted, pinned);
}

#[test]
fn every_broken_rule_of_pools_that_come_into_use_is_found() {
    let mut missed = Vec::new();
    for (rule, scope) in [
        (Broken::OpenAlways, unused(pair(QUIET))),
        (Broken::OpenAfterLicence, unused(pair(QUIET))),
        (Broken::OpenAfterLease, unused(pair(QUIET))),
        (Broken::OpenWhatWasMade, made(pair(QUIET))),
        (Broken::CountEarlierLicence, made(pair(QUIET))),
    ] {
        let report = broken(scope, rule);
        if report.broken_law() != Some("capacity") {
            missed.push(format!("{rule:?}: {report}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
