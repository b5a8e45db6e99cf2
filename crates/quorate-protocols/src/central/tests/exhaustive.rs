//! Every history of small worlds: pinned where the rules are kept, a counterexample where one is
//! broken.

use quorate_check::{Budget, Limits, Network, Report, Restart, Scope, Sometimes, check};
use quorate_core::{NodeId, NodeSet};

use crate::central::pool::Mutant;
use crate::central::{Central, Pool};
use crate::goods::Fairness;

/// Nothing goes wrong, and alarms ring when they like.
pub(super) const QUIET: Budget = Budget {
    crashes: 0,
    cancels: 0,
    renewals: 0,
    deaths: 0,
    hangups: 0,
    lapses: 0,
    duplicates: 0,
    losses: 0,
    early_rings: None,
    suspicions: 0,
};

/// Node 0 decides; one client is its own, the others are remote.
const HERE_AND_THERE: &[(NodeId, u32)] = &[(NodeId(0), 1), (NodeId(1), 2)];
const REMOTE: &[(NodeId, u32)] = &[(NodeId(1), 1), (NodeId(2), 2)];
const THREE: &[(NodeId, u32)] = &[(NodeId(0), 1), (NodeId(1), 2), (NodeId(2), 1)];

fn scope(wants: &[(NodeId, u32)], budget: Budget) -> Scope<Central> {
    let mut scope = Scope::new(3, Pool::new(2), wants).unwrap();
    scope.budget = budget;
    scope.crashing = NodeSet::first(1);
    scope.restart = Restart::Amnesia;
    scope
}

pub(super) fn durable(mut scope: Scope<Central>) -> Scope<Central> {
    scope.pool.goods.durable = true;
    scope.restart = Restart::Durable;
    scope
}

pub(super) fn reordering(mut scope: Scope<Central>) -> Scope<Central> {
    scope.network = Network::Reordering;
    scope
}

/// Requesters crash, too.
pub(super) fn anybody(mut scope: Scope<Central>) -> Scope<Central> {
    scope.crashing = NodeSet::first(3);
    scope
}

fn backfill(bound: u32, mut scope: Scope<Central>) -> Scope<Central> {
    scope.pool.goods.fairness = Fairness::Backfill(bound);
    scope
}

pub(super) fn explore(scope: &Scope<Central>, required: &[Sometimes]) -> Report {
    let limits = Limits { states_max: 3_000_000, required: required.to_vec() };
    check(scope, &limits, &mut |_| {})
}

/// A changed number is a changed protocol or a changed checker.
#[test]
fn small_worlds_are_exhausted_in_as_many_states_as_ever() {
    use Sometimes::{CancelCrossesGrant, CrashSurvived, Enter, Full, Overtake, Reclaim};
    let crash = Budget { crashes: 1, ..QUIET };
    let rough = Budget { cancels: 1, ..crash };
    let calm = Budget { early_rings: Some(1), ..QUIET };
    let leases = Budget { deaths: 1, renewals: 1, lapses: 1, crashes: 1, ..calm };
    let opinions = Budget { suspicions: 2, cancels: 1, ..calm };
    let links = Budget { cancels: 1, duplicates: 1, losses: 1, ..calm };
    let mut counted = Vec::new();
    let mut pinned = Vec::new();
    for (name, scope, required, counts) in [
        ("quiet", scope(THREE, QUIET), &[Enter, Full][..], (121_325, 577_301, 31)),
        ("opinions", scope(THREE, opinions), &[Enter, Full], (301_915, 1_665_742, 30)),
        (
            "wrong backfill",
            backfill(1, scope(THREE, opinions)),
            &[Overtake],
            (277_364, 1_587_993, 29),
        ),
        ("backfill", backfill(1, scope(THREE, calm)), &[Full, Overtake], (5_283, 14_236, 22)),
        ("crash", scope(HERE_AND_THERE, rough), &[CancelCrossesGrant], (10_610, 34_814, 22)),
        ("durable", durable(scope(HERE_AND_THERE, rough)), &[CrashSurvived], (36_722, 125_724, 28)),
        ("anybody", anybody(scope(REMOTE, crash)), &[CrashSurvived], (119_224, 504_908, 33)),
        ("leases", scope(REMOTE, leases), &[Reclaim, CrashSurvived], (46_627, 123_522, 25)),
        ("durable leases", durable(scope(REMOTE, leases)), &[Reclaim], (76_937, 200_576, 27)),
        ("links", reordering(scope(REMOTE, links)), &[CancelCrossesGrant], (110_129, 388_740, 24)),
    ] {
        let report = explore(&scope, required);
        assert!(report.holds(), "{name}: {report}");
        counted.push((name, (report.states, report.transitions, report.depth)));
        pinned.push((name, counts));
    }
    assert_eq!(counted, pinned);
}

/// Each broken rule, the smallest trouble in which it shows, and the law that finds it.
#[test]
fn every_broken_rule_is_found_by_the_law_it_breaks() {
    let calm = Budget { early_rings: Some(2), ..QUIET };
    let crash = Budget { crashes: 1, ..calm };
    let cancel = Budget { cancels: 1, ..calm };
    let lapse = Budget { lapses: 1, ..QUIET };
    let death = Budget { deaths: 1, ..calm };
    let crash_and_lapse = Budget { crashes: 1, lapses: 1, ..calm };
    for (mutant, scope, law) in [
        (Mutant::TellBeforePersist, durable(scope(REMOTE, crash)), "capacity"),
        (Mutant::GrantWithoutRoom, scope(REMOTE, calm), "capacity"),
        (Mutant::ForgetCancel, scope(REMOTE, cancel), "cancelled is over"),
        (Mutant::NoGrace, scope(REMOTE, crash), "capacity"),
        (Mutant::ReuseFence, scope(REMOTE, calm), "fence order"),
        (Mutant::OvertakeWithoutBound, backfill(0, scope(THREE, calm)), "bounded overtaking"),
        (Mutant::DeclineForeignBoot, anybody(scope(REMOTE, crash)), "capacity"),
        (Mutant::DeclineAnyAttempt, reordering(scope(REMOTE, lapse)), "capacity"),
        (Mutant::NeverReclaim, scope(REMOTE, death), "no deadlock"),
        (Mutant::NeverRetry, scope(REMOTE, crash), "no deadlock"),
        (Mutant::RenewLateGrant, scope(REMOTE, crash_and_lapse), "capacity"),
    ] {
        let mut scope = scope;
        scope.pool.goods.mutant = Some(mutant);
        let report = explore(&scope, &[]);
        assert_eq!(report.broken_law(), Some(law), "{mutant:?}: {report}");
    }
}
