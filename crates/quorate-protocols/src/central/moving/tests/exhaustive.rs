//! Every history of small worlds in which the seat moves: pinned where the rules are kept, a
//! counterexample where one is broken. The larger ones are in `long.rs`.

use quorate_check::{
    Budget, Council, Flaw, Limits, Network, Report, Restart, Scope, Sometimes, check,
};
use quorate_core::{NodeId, NodeSet};

use crate::central::moving::{Moving, Pool};
use crate::central::pool::Mutant;

/// What CI has time and memory for, and what `cargo xtask checks` has.
pub(super) const STATES_MAX: usize =
    if cfg!(feature = "long-checks") { 30_000_000 } else { 1_500_000 };

/// Nothing goes wrong, and alarms ring when no message is on its way.
pub(super) const QUIET: Budget = Budget {
    crashes: 0,
    cancels: 0,
    renewals: 0,
    deaths: 0,
    lapses: 0,
    duplicates: 0,
    losses: 0,
    early_rings: Some(0),
    suspicions: 0,
    hangups: 0,
};

/// Each of two nodes has a client. The first node decides, until the charter says otherwise.
const PAIR: &[(NodeId, u32)] = &[(NodeId(0), 1), (NodeId(1), 1)];
/// The first of three nodes decides, and has none.
const APART: &[(NodeId, u32)] = &[(NodeId(1), 1), (NodeId(2), 1)];

pub(super) fn scope(nodes: usize, wants: &[(NodeId, u32)], budget: Budget) -> Scope<Moving> {
    let central = crate::central::Pool::new(1);
    let mut scope = Scope::new(nodes, Pool::new(central, nodes), wants).unwrap();
    scope.budget = budget;
    scope.network = Network::Reordering;
    scope.restart = Restart::Amnesia;
    scope.crashing = NodeSet::first(nodes);
    scope.council = Some(Council { moves: 1, ..Council::of(NodeId(0)) });
    scope
}

pub(super) fn pair(budget: Budget) -> Scope<Moving> {
    scope(2, PAIR, budget)
}

pub(super) fn apart(budget: Budget) -> Scope<Moving> {
    scope(3, APART, budget)
}

/// The same with another control plane.
pub(super) fn under(mut scope: Scope<Moving>, change: impl FnOnce(&mut Council)) -> Scope<Moving> {
    change(scope.council.as_mut().expect("these have one"));
    scope
}

pub(super) fn twice(scope: Scope<Moving>) -> Scope<Moving> {
    under(scope, |council| council.moves = 2)
}

pub(super) fn rehoming(scope: Scope<Moving>) -> Scope<Moving> {
    under(scope, |council| council.rehomes = 1)
}

/// The node that does not decide at first shadows the one that does.
pub(super) fn shadowed(scope: Scope<Moving>) -> Scope<Moving> {
    under(scope, |council| council.shadow = Some(NodeId(1)))
}

/// A shadow is named later.
pub(super) fn naming(times: u8, scope: Scope<Moving>) -> Scope<Moving> {
    under(scope, |council| council.namings = times)
}

pub(super) fn explore(scope: &Scope<Moving>, required: &[Sometimes]) -> Report {
    let limits = Limits { states_max: STATES_MAX, required: required.to_vec() };
    check(scope, &limits, &mut |_| {})
}

/// A changed number is a changed protocol or a changed checker.
#[test]
fn a_seat_that_moves_is_exhausted_in_as_many_states_as_ever() {
    use Sometimes::{Full, OpenedByTime, OpenedByWord, Reclaim, SeatMoved};
    let all = [Full, Reclaim, SeatMoved, OpenedByWord, OpenedByTime];
    let renewals = Budget { renewals: 1, ..QUIET };
    let (mut counted, mut pinned) = (Vec::new(), Vec::new());
    for (name, scope, states) in
        [("quiet", pair(QUIET), 49_172), ("renewals", pair(renewals), 281_842)]
    {
        let report = explore(&scope, &all);
        assert!(report.holds(), "{name}: {report}");
        counted.push((name, report.states));
        pinned.push((name, states));
    }
    assert_eq!(counted, pinned);
}

/// Each broken rule, the smallest trouble in which it shows, and the law that finds it.
#[test]
fn every_broken_rule_is_found_by_the_law_it_breaks() {
    let renewals = Budget { renewals: 1, ..QUIET };
    let crash = Budget { crashes: 1, ..QUIET };
    found(vec![
        (Mutant::DecideUnlicensed, pair(QUIET), "capacity"),
        (Mutant::RenewUnlicensed, pair(renewals), "capacity"),
        (Mutant::NoLull, pair(QUIET), "capacity"),
        (Mutant::RenewInLull, pair(renewals), "capacity"),
        (Mutant::NoGraceAfterMove, pair(QUIET), "capacity"),
        (Mutant::AnswerBeforeApplied, pair(QUIET), "capacity"),
        (Mutant::TakeLowerTerms, apart(QUIET), "capacity"),
        (Mutant::OpenWithoutOne, pair(QUIET), "capacity"),
        (Mutant::CompleteAtOnce, pair(crash), "capacity"),
        (Mutant::BooksReplace, rehoming(pair(QUIET)), "capacity"),
        (Mutant::FenceByCounterAlone, pair(QUIET), "fence order"),
        (Mutant::GoOnAfterMove, apart(QUIET), "capacity"),
        (Mutant::BooksForAnyTerm, twice(pair(QUIET)), "capacity"),
        (Mutant::TellInGrace, rehoming(pair(QUIET)), "capacity"),
        (Mutant::DecideInAnotherLife, pair(crash), "fence order"),
    ]);
}

pub(super) fn found(mutants: Vec<(Mutant, Scope<Moving>, &str)>) {
    let mut missed = Vec::new();
    for (mutant, mut scope, law) in mutants {
        scope.pool.central.goods.mutant = Some(mutant);
        let report = explore(&scope, &[]);
        if report.broken_law() != Some(law) {
            missed.push(format!("{mutant:?} by {law}: {report}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// The same where a shadow takes over.
#[test]
fn every_broken_rule_of_shadows_is_found_by_the_law_it_breaks() {
    let renewals = Budget { renewals: 1, ..QUIET };
    found(vec![
        (Mutant::ClientFirst, shadowed(pair(QUIET)), "capacity"),
        (Mutant::GoOnUnshadowed, shadowed(pair(QUIET)), "capacity"),
        (Mutant::VouchAtOnce, naming(1, pair(QUIET)), "capacity"),
        (Mutant::AnswerTellsAfter, shadowed(pair(QUIET)), "capacity"),
        (Mutant::LeaseFromTakeover, shadowed(pair(renewals)), "capacity"),
        (Mutant::EndWhatStands, shadowed(pair(renewals)), "capacity"),
    ]);
}

/// What a control plane must not do (charter spec S1, S17).
#[test]
fn a_licence_that_nobody_could_confirm_is_found() {
    let crash = Budget { crashes: 1, ..QUIET };
    // A shadow looks itself whether it was shown everything, and that would be enough.
    let mut unshown = shadowed(pair(crash));
    unshown.pool.central.goods.mutant = Some(Mutant::InheritUnshown);
    for (flaw, scope) in [
        (Flaw::AnswersFromApplied, pair(QUIET)),
        (Flaw::AnswersWithoutTerm, twice(pair(QUIET))),
        (Flaw::AnyLifeInherits, unshown),
    ] {
        let report = explore(&under(scope, |council| council.flaw = Some(flaw)), &[]);
        assert_eq!(report.broken_law(), Some("capacity"), "{flaw:?}: {report}");
    }
}
