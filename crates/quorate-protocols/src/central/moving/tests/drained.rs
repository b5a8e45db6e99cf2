//! Units that are drained and get other labels by the charter, while the seat moves.

use std::collections::BTreeMap;
use std::sync::Arc;

use quorate_check::{Budget, Scope, Sometimes};
use quorate_core::{Claim, Event, Line, Unit, Units, Wanted};

use super::amended::{BOTH, Pair, broken, id, pool};
use super::exhaustive::{QUIET, explore, scope, under};
use crate::allocator::labels::Labels;
use crate::central::moving::{Moving, Pool};
use crate::central::pool::Mutant;

/// Two units, of which these are drained.
fn drained(units: &[u32]) -> Pool {
    let mut pool = pool(2, 2);
    pool.central.goods.drained = units.iter().copied().map(Unit).collect();
    pool
}

/// Units with these labels, `k`.
fn labelled(values: &[&str]) -> Pool {
    let mut pool = pool(values.len() as u32, values.len() as u32);
    let unit = |(number, value): (usize, &&str)| (format!("r{number}"), label(value));
    pool.central.goods.labels =
        Some(Arc::new(Labels::new(values.iter().enumerate().map(unit).collect())));
    pool
}

/// The same units, of which clients of the second node may use the first one.
fn reserved() -> Pool {
    let mut pool = labelled(&["b", "a"]);
    let each = [[Unit(0), Unit(1)].into(), [Unit(0)].into()];
    pool.central.goods.eligible = Some(each.into());
    pool
}

fn label(value: &str) -> BTreeMap<String, String> {
    [("k".to_owned(), value.to_owned())].into()
}

/// One unit of two that has this label.
fn wants(value: &str) -> Wanted {
    let all = [Unit(0), Unit(1)].into();
    let line = Line { labels: Some(Arc::new(label(value))), ..Line::of(Units::ONE, all) };
    Wanted { lines: Some([line].into()), ..Wanted::any(Units::ONE) }
}

fn with(mut pool: Pool, mutant: Option<Mutant>) -> Pool {
    pool.central.goods.mutant = mutant;
    pool
}

#[test]
fn whoever_holds_a_drained_unit_keeps_it_and_nobody_is_granted_it_wherever_the_seat_goes() {
    let mut pair = Pair::new(&drained(&[]));
    pair.claims(0, 1, 1);
    pair.claims(1, 2, 1);
    for node in 0..2 {
        pair.learns(node, &drained(&[1]));
    }
    pair.licensed(0, 1);
    pair.claims(0, 3, 1);
    pair.decides(1, 2);
    assert_eq!(pair.told(), ["n0 GRANT 7.1 u0 f1/1", "n1 GRANT 7.2 u1 f1/2"]);
    pair.releases(1, 2);
    assert_eq!(pair.told(), [""; 0], "it came back, and is drained");
    // What is impossible now is refused by homes that know, and waits at those that do not.
    pair.claims(0, 4, 2);
    let why = "the pool does not have so many units that will do";
    assert_eq!(pair.told(), [format!("n0 REFUSE 7.4: {why}")]);
    pair.releases(0, 1);
    assert_eq!(pair.told(), ["n0 GRANT 7.3 u0 f2/1"]);
    pair.claims(1, 5, 1);
    for node in 0..2 {
        pair.learns(node, &drained(&[]));
    }
    pair.licensed(1, 2);
    assert_eq!(pair.told(), ["n1 GRANT 7.5 u1 f2/2"]);
}

#[test]
fn claims_that_wait_choose_by_the_labels_of_now() {
    for (mutant, granted) in [(None, 1), (Some(Mutant::ChooseByOldLabels), 0)] {
        let mut pair = Pair::new(&with(labelled(&["b", "a"]), mutant));
        for serial in [1, 2] {
            let claim = Claim { wanted: wants("b"), ..Claim::any(id(serial), Units::ONE) };
            pair.step(1, Event::Claim(claim));
            pair.deliver_all();
        }
        assert_eq!(pair.told(), ["n1 GRANT 7.1 u0 f1/1"]);
        for node in [1, 0] {
            pair.learns(node, &with(labelled(&["a", "b"]), mutant));
        }
        pair.licensed(0, 1);
        pair.deliver_all();
        let told = pair.told();
        assert_eq!(told.iter().filter(|it| *it == "n1 GRANT 7.2 u1 f1/2").count(), granted);
    }
}

#[test]
fn a_claim_that_waits_is_granted_what_its_node_may_use_by_now() {
    for (mutant, waits) in [(None, true), (Some(Mutant::ChooseByOldLabels), false)] {
        let mut pair = Pair::new(&with(labelled(&["b", "a"]), mutant));
        for (node, serial) in [(0, 1), (0, 2), (1, 3)] {
            pair.claims(node, serial, 1);
        }
        for node in 0..2 {
            pair.learns(node, &with(reserved(), mutant));
        }
        pair.licensed(0, 1);
        pair.told();
        pair.releases(0, 2);
        assert_eq!(pair.told().is_empty(), waits, "{mutant:?}");
        pair.claims(0, 4, 1);
        if waits {
            assert_eq!(pair.told(), ["n0 GRANT 7.4 u1 f1/3"], "younger, and not in its way");
            pair.releases(0, 1);
            assert_eq!(pair.told(), ["n1 GRANT 7.3 u0 f1/4"]);
        }
        // More than it may use is refused by its home, and left alone by a seat that knows better.
        pair.claims(1, 5, 2);
        let why = "no single node of this pool may have so many units";
        assert_eq!(pair.told(), [format!("n1 REFUSE 7.5: {why}")]);
    }
}

#[test]
fn claims_for_labels_that_no_unit_has_any_more_are_refused() {
    let mut pair = Pair::new(&labelled(&["b", "a"]));
    for serial in [1, 2] {
        let claim = Claim { wanted: wants("b"), ..Claim::any(id(serial), Units::ONE) };
        pair.step(1, Event::Claim(claim));
        pair.deliver_all();
    }
    pair.learns(0, &labelled(&["a", "a"]));
    pair.deliver_all();
    pair.learns(1, &labelled(&["a", "a"]));
    pair.licensed(0, 1);
    let why = "the pool does not have so many units that will do";
    assert_eq!(pair.told(), ["n1 GRANT 7.1 u0 f1/1".to_owned(), format!("n1 REFUSE 7.2: {why}")]);
}

/// Each of two nodes has a client; the pool is these, one after the other.
fn changing(pools: &[Pool], moves: u8, budget: Budget) -> Scope<Moving> {
    let mut world = under(scope(2, BOTH, budget), |council| council.moves = moves);
    (world.pool, world.editions) = (pools[0].clone(), pools[1..].to_vec());
    world
}

/// One unit of two is drained, all get other labels, or one is reserved; the seat moves so often.
pub(super) fn changed(moves: u8) -> [(&'static str, Scope<Moving>); 3] {
    let mut relabelled = changing(&[labelled(&["b", "a"]), labelled(&["a", "b"])], moves, QUIET);
    for plan in &mut relabelled.clients {
        plan.claim.wanted = wants("b");
    }
    [
        ("drained", changing(&[drained(&[]), drained(&[1])], moves, QUIET)),
        ("relabelled", relabelled),
        ("reserved", changing(&[labelled(&["b", "a"]), reserved()], moves, QUIET)),
    ]
}

/// A changed number is a changed protocol or a changed checker. Where the seat moves too:
/// `long.rs`.
#[test]
fn units_that_are_drained_and_relabelled_are_exhausted_in_as_many_states_as_ever() {
    let renewals = Budget { renewals: 1, ..QUIET };
    let mut scopes = changed(0).to_vec();
    scopes.extend([
        ("and back", changing(&[drained(&[]), drained(&[1]), drained(&[])], 0, QUIET)),
        ("renewals", changing(&[drained(&[]), drained(&[0])], 0, renewals)),
    ]);
    let mut counted = Vec::new();
    for (name, scope) in scopes {
        let report = explore(&scope, &[Sometimes::Full]);
        assert!(report.holds(), "{name}: {report}");
        counted.push((name, report.states));
    }
    let pinned = [
        ("drained", 6_305),
        ("relabelled", 6_928),
        ("reserved", 9_508),
        ("and back", 19_150),
        ("renewals", 61_368),
    ];
    assert_eq!(counted, pinned);
}

#[test]
fn drained_units_that_are_granted_are_found() {
    for moves in [0, 1] {
        let scope = changing(&[drained(&[]), drained(&[1])], moves, QUIET);
        let report = broken(scope, Mutant::GrantDrained);
        assert_eq!(report.broken_law(), Some("units in force"), "{report}");
    }
}
