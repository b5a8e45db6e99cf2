//! The checker against a toy that is small enough to see what the answer must be.

mod toy;

use quorate_check::{
    Budget, Limits, Network, Report, Restart, Scope, Sometimes, Verdict, check, client_views,
};
use quorate_core::{NodeId, NodeSet};
use toy::{Flaw, Pool, Toy};

const TWO: &[(NodeId, u32)] = &[(NodeId(1), 1), (NodeId(0), 2)];
const REMOTE: &[(NodeId, u32)] = &[(NodeId(1), 1), (NodeId(2), 2)];
const THREE: &[(NodeId, u32)] = &[(NodeId(1), 1), (NodeId(2), 2), (NodeId(0), 1)];
const QUIET: Budget = Budget {
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
const ROUGH: Budget = Budget { crashes: 1, cancels: 1, deaths: 1, lapses: 1, ..QUIET };

fn scope(flaw: Option<Flaw>, wants: &[(NodeId, u32)], budget: Budget) -> Scope<Toy> {
    let pool = Pool { units: 2, leases: true, flaw };
    let mut scope = Scope::new(3, pool, wants).unwrap();
    scope.crashing = NodeSet::first(1);
    scope.budget = budget;
    scope
}

fn run(scope: &Scope<Toy>) -> Report {
    check(scope, &Limits { states_max: 1_000_000, ..Limits::default() }, &mut |_| {})
}

fn transcript(report: &Report) -> &[String] {
    match &report.verdict {
        Verdict::Broken(counterexample) => &counterexample.transcript,
        other => panic!("{other:?}"),
    }
}

/// A changed number is a changed toy or a changed checker.
#[test]
fn a_correct_toy_is_exhausted_in_as_many_states_as_ever() {
    for (name, wants, budget, restart, counts) in [
        ("quiet", THREE, QUIET, Restart::Durable, (9799, 47233, 24)),
        ("crash", TWO, Budget { crashes: 1, ..QUIET }, Restart::Durable, (1164, 3686, 17)),
        ("oblivion", TWO, Budget { crashes: 1, ..QUIET }, Restart::Amnesia, (1021, 3394, 17)),
        (
            "early",
            THREE,
            Budget { early_rings: Some(1), ..QUIET },
            Restart::Durable,
            (2005, 5440, 18),
        ),
        ("rough", TWO, ROUGH, Restart::Durable, (10931, 40274, 19)),
        ("rough oblivion", TWO, ROUGH, Restart::Amnesia, (9921, 37238, 22)),
    ] {
        let mut scope = scope(None, wants, budget);
        scope.restart = restart;
        let report = run(&scope);
        assert!(report.holds(), "{name}: {report}");
        assert_eq!((report.states, report.transitions, report.depth), counts, "{name}");
    }
}

#[test]
fn every_flaw_is_caught_by_the_law_it_breaks() {
    for (flaw, restart, law) in [
        (Flaw::TellBeforePersist, Restart::Durable, "exclusivity"),
        (Flaw::NeverAskAgain, Restart::Durable, "no deadlock"),
        (Flaw::HastyLease, Restart::Durable, "exclusivity"),
        (Flaw::UseLateGrant, Restart::Durable, "exclusivity"),
        (Flaw::TrustOblivion, Restart::Amnesia, "exclusivity"),
        (Flaw::GrantWithoutRoom, Restart::Durable, "exclusivity"),
        (Flaw::FearOfQueues, Restart::Durable, "no panic"),
    ] {
        let mut scope = scope(Some(flaw), THREE, ROUGH);
        scope.restart = restart;
        let report = run(&scope);
        assert_eq!(report.broken_law(), Some(law), "{flaw:?}: {report}");
    }
}

/// A checker that performs a step's effects at once cannot see this one.
#[test]
fn telling_before_persisting_is_caught_by_a_crash_between_the_two() {
    let flawed = scope(Some(Flaw::TellBeforePersist), TWO, Budget { crashes: 1, ..QUIET });
    let report = run(&flawed);
    assert!(transcript(&report).iter().any(|line| line.contains("CRASH before: persist")));

    let harmless = scope(Some(Flaw::TellBeforePersist), TWO, QUIET);
    assert!(run(&harmless).holds());
}

#[test]
fn units_of_a_cancelled_claim_are_lost_if_the_arbiter_never_hears_of_it() {
    let mut scope = scope(Some(Flaw::CancelInSilence), TWO, Budget { cancels: 1, ..QUIET });
    assert!(run(&scope).holds(), "leases bring them back");
    scope.pool.leases = false;
    let report = run(&scope);
    assert_eq!(report.broken_law(), Some("no deadlock"), "{report}");
    scope.clients.pop();
    let report = run(&scope);
    assert_eq!(report.broken_law(), Some("no lost units"), "{report}");
}

/// An alarm that ends a lease waits until its holder has stopped; without that order the correct
/// toy would be the hasty one.
#[test]
fn the_order_of_leases_is_taken_as_given_and_nothing_more() {
    let lease = scope(None, TWO, Budget { deaths: 1, ..QUIET });
    let report = run(&lease);
    assert!(report.holds(), "{report}");
    assert!(report.sightings.contains(Sometimes::Reclaim));

    let late = scope(Some(Flaw::UseLateGrant), TWO, Budget { lapses: 1, ..QUIET });
    let report = run(&late);
    assert!(transcript(&report).iter().any(|line| line.contains("after its deadline")));
}

#[test]
fn a_model_in_which_the_required_never_happens_is_vacuous() {
    let limits = Limits {
        states_max: 1_000_000,
        required: vec![Sometimes::Enter, Sometimes::Overtake, Sometimes::CrashSurvived],
    };
    let report = check(&scope(None, TWO, QUIET), &limits, &mut |_| {});
    let missing = vec![Sometimes::Overtake, Sometimes::CrashSurvived];
    assert_eq!(report.verdict, Verdict::Vacuous(missing), "the toy grants oldest first");
}

#[test]
fn a_search_that_had_to_stop_says_so() {
    let limits = Limits { states_max: 100, ..Limits::default() };
    let report = check(&scope(None, THREE, ROUGH), &limits, &mut |_| {});
    assert_eq!(report.verdict, Verdict::Incomplete);
    assert!(report.to_string().contains("INCOMPLETE, stopped after"), "{report}");
}

#[test]
fn the_same_scope_gives_the_same_report_and_the_same_transcript() {
    for flaw in [None, Some(Flaw::TellBeforePersist), Some(Flaw::NeverAskAgain)] {
        let scope = scope(flaw, TWO, ROUGH);
        assert_eq!(run(&scope), run(&scope));
    }
}

/// Whoever makes worlds may be ahead of whoever keeps them when that has enough.
#[test]
fn a_search_that_had_to_stop_stops_at_the_same_place() {
    let scope = scope(None, THREE, ROUGH);
    for states_max in [1, 20, 100, 700, 5_000] {
        let limits = Limits { states_max, ..Limits::default() };
        let stopped = || check(&scope, &limits, &mut |_| {});
        let report = stopped();
        assert_eq!(report.verdict, Verdict::Incomplete);
        (0..10).for_each(|_| assert_eq!(stopped(), report));
    }
}

/// Without leases the toy counts no further than its clients make it, so it has finitely many
/// states under its own numbers too.
#[test]
fn renaming_clocks_and_fences_changes_nothing_that_clients_see() {
    let limits = Limits { states_max: 1_000_000, ..Limits::default() };
    for (wants, budget, restart) in [
        (THREE, QUIET, Restart::Durable),
        (REMOTE, Budget { crashes: 2, cancels: 1, ..QUIET }, Restart::Durable),
        (TWO, Budget { crashes: 2, ..QUIET }, Restart::Amnesia),
    ] {
        let mut scope = scope(None, wants, budget);
        scope.restart = restart;
        scope.pool.leases = false;
        let (renamed, renamed_views) = (run(&scope), client_views(&scope, &limits));
        scope.renaming = false;
        let (plain, plain_views) = (run(&scope), client_views(&scope, &limits));
        assert!(renamed.holds(), "{renamed}");
        assert_eq!(renamed.verdict, plain.verdict);
        assert_eq!(renamed.sightings, plain.sightings);
        assert!(renamed_views.is_some());
        assert_eq!(renamed_views, plain_views);
        assert!(renamed.states <= plain.states, "{} {}", renamed.states, plain.states);
    }
}

/// The toy needs ordered links, and says so: without them a request that was overtaken by the
/// release of its units comes back to life.
#[test]
fn links_that_reorder_break_what_needs_order() {
    let mut scope = scope(None, TWO, QUIET);
    scope.network = Network::Reordering;
    scope.pool.leases = false;
    let report = run(&scope);
    assert!(report.broken_law().is_some(), "{report}");
}

#[test]
fn a_scope_that_makes_no_sense_is_refused_in_one_line() {
    let pool = Pool { units: 2, leases: true, flaw: None };
    let error = |nodes, wants: &[(NodeId, u32)]| {
        Scope::<Toy>::new(nodes, pool.clone(), wants).unwrap_err().to_string()
    };
    assert_eq!(error(0, TWO), "0 nodes: choose 1 to 64");
    assert_eq!(error(3, &[]), "0 claims: choose 1 to 8");
    assert_eq!(error(1, TWO), "a claim at n1, but there are 1 nodes");
    assert_eq!(error(3, &[(NodeId(0), 3)]), "3 units asked of a pool of 2: ask for at most 2");
}
