//! Leases, lives and fences in every history of a small world: who is suspected, crashes or is cut
//! off, and comes back. See `lives.rs` for what is taken as given.

use std::time::Duration;

use quorate_core::{Lease, NodeId};

use super::lives::{Found, LENGTH, NODES, Scope, explored};
use crate::broadcast::pool::Mutant;
use crate::broadcast::{Pool, Reclaim};

/// Three nodes and one unit; n0 and n2 want it.
fn scope(mutant: Option<Mutant>) -> Scope {
    let lease = Lease::new(Duration::from_nanos(LENGTH), 0);
    let pool = Pool {
        reclaim: Reclaim::Lease(lease),
        lease: Some(lease),
        retry: None,
        mutant,
        ..Pool::weighted(3, 1, 1, 1)
    };
    let (claims, probes) = ([1, 0, 1], [0; NODES]);
    let (suspicion, crashing) = (None, None);
    let (suspicions, cuts, crashes) = (0, 0, 0);
    Scope { pool, claims, probes, suspicions, suspicion, cuts, crashes, crashing, ordered: true }
}

/// What n0 thinks of n2 is wrong or right.
const SUSPICION: Option<(NodeId, NodeId)> = Some((NodeId(0), NodeId(2)));

/// States, grants because somebody was counted out, and joins.
type Counts = (usize, u64, u64);

/// Explores a scope in which nothing may be wrong.
fn holds(scope: &Scope) -> Counts {
    let Found { states, reclaimed, joined, violation } = explored(scope);
    assert!(violation.is_none(), "{}", violation.unwrap_or_default().join("\n"));
    (states, reclaimed, joined)
}

/// The same while one node, each in turn, restarts and forgets.
#[cfg(feature = "long-checks")]
fn holds_whoever_restarts(scope: &Scope) -> [Counts; NODES] {
    let crash = |node| Scope { crashes: 1, crashing: Some(NodeId(node)), ..scope.clone() };
    [0, 1, 2].map(|node| holds(&crash(node)))
}

/// n2 is wrongly or rightly suspected by n0.
fn suspected(mutant: Option<Mutant>) -> Scope {
    Scope { suspicions: 1, suspicion: SUSPICION, ..scope(mutant) }
}

/// Who is counted out has stopped; when it hears of it, it comes back.
#[test]
fn a_suspect_is_counted_out_and_comes_back() {
    assert_eq!(holds(&suspected(None)), (31_872, 390, 3_027));
}

#[test]
fn a_node_that_restarts_comes_back() {
    assert_eq!(holds(&Scope { crashes: 1, ..scope(None) }), (149_766, 0, 32_752));
}

/// Anybody is suspected by anybody; and one is suspected while it, its accuser or the third node
/// restarts and forgets.
#[test]
#[cfg(feature = "long-checks")]
fn whoever_is_suspected_and_whoever_forgets_it_one_unit_is_used_once() {
    assert_eq!(holds(&Scope { suspicions: 1, ..scope(None) }), (536_958, 7_679, 64_420));
    assert_eq!(
        holds_whoever_restarts(&suspected(None)),
        [(607_971, 1_525, 102_139), (2_816_303, 4_942, 861_520), (496_151, 9_162, 20_077)]
    );
}

/// Who is cut off from what the units protect is counted out at once, and comes back.
#[test]
fn a_suspect_that_is_cut_off_is_counted_out_and_comes_back() {
    assert_eq!(holds(&fenced()), (41_120, 1_270, 3_204));
}

/// Who restarts joins without a node that is cut off.
#[test]
fn a_node_that_restarts_comes_back_without_one_that_is_cut_off() {
    let restarts = Scope { suspicions: 0, cuts: 1, crashes: 1, ..fenced() };
    let found =
        [0, 1, 2].map(|node| holds(&Scope { crashing: Some(NodeId(node)), ..restarts.clone() }));
    assert_eq!(found, [(27_069, 0, 7_477), (188_458, 0, 85_906), (26_063, 0, 7_150)]);
}

#[test]
#[cfg(feature = "long-checks")]
fn whoever_is_cut_off_and_whoever_forgets_it_one_unit_is_used_once() {
    assert_eq!(holds(&Scope { cuts: 1, ..fenced() }), (175_601, 3_756, 26_136));
    for (_, _, joined) in holds_whoever_restarts(&fenced()) {
        assert!(joined > 0);
    }
}

fn fenced() -> Scope {
    let scope = suspected(None);
    Scope { pool: Pool { reclaim: Reclaim::Fenced, ..scope.pool }, ..scope }
}

/// Three nodes whose suspects are never counted out: n1 is wrong about n2 while n0 restarts.
fn never(mutant: Option<Mutant>) -> Scope {
    let scope = scope(mutant);
    let pool = Pool { reclaim: Reclaim::Never, ..scope.pool };
    let suspicion = Some((NodeId(1), NodeId(2)));
    Scope { pool, suspicions: 1, suspicion, crashes: 1, crashing: Some(NodeId(0)), ..scope }
}

/// A known limit of `never`: who comes back waits for everybody, suspects included. To
/// exempt them is as safe as the suspicion is right, and here it is wrong (broadcast spec 7.3).
#[test]
fn who_joins_without_a_suspect_relies_on_a_suspicion() {
    let (_, reclaimed, joined) = holds(&never(None));
    assert!(reclaimed == 0 && joined > 0, "{reclaimed} {joined}");
    let violation = explored(&never(Some(Mutant::JoinWithoutSuspects))).violation;
    let transcript = violation.expect("a second holder").join("\n");
    let expected = include_str!("../../../testdata/broadcast/join_without_suspects.txt");
    assert_eq!(transcript, expected.trim_end());
}

/// Without a rule of the join a second holder is found.
#[test]
fn a_join_without_its_rules_is_found_out() {
    let crash = |mutant, node| Scope {
        crashes: 1,
        crashing: Some(NodeId(node)),
        ..suspected(Some(mutant))
    };
    for scope in
        [crash(Mutant::NoGrace, 0), crash(Mutant::JoinAlone, 0), crash(Mutant::LoseAtOnce, 2)]
    {
        let found = explored(&scope);
        let violation = found.violation.expect("something is wrong here");
        // Who joins alone is answered what it never asked, before anybody uses too much.
        let what = match scope.pool.mutant {
            Some(Mutant::JoinAlone) => "an answer to what was never asked",
            _ => "2 in use",
        };
        assert_eq!(violation.last().map(String::as_str), Some(what), "{violation:?}");
    }
}
