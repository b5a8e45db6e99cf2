//! Every history of small worlds in which holders are asked to move: a unit changes hands only
//! after its user has left it, whatever crashes, is lost or comes late.

use std::sync::Arc;

use quorate_check::{Budget, Restart, Scope, Sometimes};
use quorate_core::{Line, NodeId, NodeSet, Unit, Units};

use super::exhaustive::{QUIET, anybody, durable, explore, reordering};
use super::labelled::labels;
use crate::central::pool::Mutant;
use crate::central::{Central, Pool};
use crate::goods::Goods;

/// A client at a node, whether it can be moved, and the units that will do for each of its lines.
type Client<'a> = (u32, bool, &'a [&'a [u32]]);

/// One that may stand on either of two units, and one that needs the first.
const PAIR: &[Client<'_>] = &[(1, true, &[&[0, 1]]), (2, false, &[&[0]])];
/// Two that must both move before the third gets what it needs: the last first.
const CHAIN: &[Client<'_>] = &[(1, true, &[&[0, 1]]), (1, true, &[&[1, 2]]), (2, false, &[&[0]])];
/// A bundle that needs what a holder has and something that is free meanwhile.
const BUNDLE: &[Client<'_>] = &[(1, true, &[&[0, 2]]), (2, false, &[&[0], &[1]])];

fn scope(clients: &[Client<'_>], budget: Budget) -> Scope<Central> {
    let lists = clients.iter().flat_map(|(_, _, lines)| lines.iter());
    let units = 1 + lists.flat_map(|list| list.iter()).max().unwrap();
    let wants: Vec<(NodeId, u32)> =
        clients.iter().map(|(home, _, lines)| (NodeId(*home), lines.len() as u32)).collect();
    let pool = Pool::of(Goods { labels: Some(labels(units)), ..Goods::new(units) });
    let mut scope = Scope::new(3, pool, &wants).unwrap();
    for (plan, (_, movable, lines)) in scope.clients.iter_mut().zip(clients) {
        let list = |list: &&[u32]| -> Arc<[Unit]> { list.iter().map(|unit| Unit(*unit)).collect() };
        plan.claim.wanted.lines =
            Some(lines.iter().map(|l| Line::of(Units::ONE, list(l))).collect());
        plan.claim.wanted.movable = *movable;
    }
    scope.budget = budget;
    scope.crashing = NodeSet::first(1);
    scope.restart = Restart::Amnesia;
    scope
}

/// A changed number is a changed protocol or a changed checker.
#[test]
fn holders_that_move_are_exhausted_in_as_many_states_as_ever() {
    use Sometimes::{CrashSurvived, Full, Move, Reclaim};
    let calm = Budget { early_rings: Some(1), ..QUIET };
    let crash = Budget { crashes: 1, ..calm };
    let leases = Budget { deaths: 1, renewals: 1, ..calm };
    let links = Budget { losses: 1, renewals: 1, ..calm };
    let mut counted = Vec::new();
    let mut pinned = Vec::new();
    for (name, scope, required, counts) in [
        ("pair", scope(PAIR, QUIET), &[Move, Full][..], (32_571, 136_386, 32)),
        ("chain", scope(CHAIN, calm), &[Move, Full], (27_842, 85_153, 30)),
        ("bundle", scope(BUNDLE, QUIET), &[Move, Full], (32_571, 136_386, 32)),
        ("crash", scope(PAIR, crash), &[Move, CrashSurvived], (6_468, 17_901, 25)),
        ("durable", durable(scope(PAIR, crash)), &[Move, CrashSurvived], (18_163, 46_451, 28)),
        ("anybody", anybody(scope(PAIR, crash)), &[Move, CrashSurvived], (17_878, 53_226, 25)),
        ("leases", scope(PAIR, leases), &[Move, Reclaim], (16_722, 51_791, 25)),
        ("links", reordering(scope(PAIR, links)), &[Move], (77_305, 318_552, 29)),
    ] {
        let report = explore(&scope, required);
        assert!(report.holds(), "{name}: {report}");
        counted.push((name, (report.states, report.transitions, report.depth)));
        pinned.push((name, counts));
    }
    assert_eq!(counted, pinned);
}

#[test]
fn handing_over_before_the_answer_is_found_in_the_smallest_world() {
    for clients in [PAIR, CHAIN, BUNDLE] {
        let mut scope = scope(clients, QUIET);
        scope.pool.goods.mutant = Some(Mutant::HandOverEarly);
        let report = explore(&scope, &[]);
        assert_eq!(report.broken_law(), Some("exclusivity"), "{report}");
    }
}
