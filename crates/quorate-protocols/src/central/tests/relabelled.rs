//! Units that get other labels while a pool runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quorate_core::{Claim, Event, Line, Obeys, Order, Protocol, Seat, Start, Unit, Units, Wanted};

use super::labelled::pool;
use super::moving::{obey, shares};
use super::{Table, id};
use crate::central::{Alarm, Pool};
use crate::goods::Goods;

fn labels(text: &str) -> BTreeMap<String, String> {
    let pair = |pair: &str| pair.split_once('=').map(|(key, value)| (key.into(), value.into()));
    text.split(',').filter_map(pair).collect()
}

fn relabel(unit: u32, text: &str) -> Order {
    Order::Relabel { unit: Unit(unit), labels: Some(labels(text)) }
}

/// A claim that chooses by labels, which the arbiter is to know.
fn claim(table: &mut Table, node: usize, serial: u64, lines: &[(u32, &str)], movable: bool) {
    table.world.now = table.world.now.after(Duration::from_millis(10));
    let sum = lines.iter().map(|(count, _)| count).sum();
    let line = |(count, wanted): &(u32, &str)| {
        let all = table.world.pool.goods.labels.as_ref().unwrap().all();
        let units = Units::new(*count, table.world.pool.goods.units).unwrap();
        Line { labels: Some(Arc::new(labels(wanted))), ..Line::of(units, Arc::clone(all)) }
    };
    let units = Units::new(sum, table.world.pool.goods.units).unwrap();
    let lines = Some(lines.iter().map(line).collect());
    let claim = Claim::new(id(serial), Wanted { lines, movable, ..Wanted::any(units) });
    table.step(node, Event::Claim(claim));
    table.deliver_all();
}

fn wanted(table: &mut Table) -> Vec<String> {
    let mut wanted = table.wanted();
    wanted.retain(|line| !line.ends_with(" persist"));
    wanted
}

/// Of six units 0 and 3 are h100s; 7.1 has both.
fn both_taken(pool: Pool) -> Table {
    let mut table = Table::new(2, pool);
    claim(&mut table, 1, 1, &[(2, "gpu=h100")], false);
    assert_eq!(wanted(&mut table), ["n1 GRANT 7.1 u0,u3 f1"]);
    table
}

#[test]
fn a_claim_that_waits_gets_a_unit_that_has_come_to_fit() {
    let mut table = both_taken(pool(6));
    claim(&mut table, 1, 2, &[(1, "gpu=h100,zone=us")], false);
    claim(&mut table, 0, 3, &[(1, "gpu=h100")], false);
    assert_eq!(wanted(&mut table), [""; 0]);
    assert!(!obey(&mut table, 1, relabel(1, "gpu=h100,zone=eu")), "only the arbiter decides");
    assert!(!obey(&mut table, 0, relabel(6, "gpu=h100")), "there is no unit 6");
    // The younger one, since it does not fit the older.
    assert!(obey(&mut table, 0, relabel(1, "gpu=h100,zone=eu")));
    assert_eq!(wanted(&mut table), ["n0 GRANT 7.3 u1 f2"]);
    assert!(obey(&mut table, 0, relabel(2, "gpu=h100,zone=us")));
    assert_eq!(wanted(&mut table), ["n1 GRANT 7.2 u2 f3"]);
}

#[test]
fn a_holder_keeps_what_it_has_and_whoever_can_never_be_granted_is_told() {
    let mut table = both_taken(pool(6));
    claim(&mut table, 1, 2, &[(2, "gpu=h100")], false);
    claim(&mut table, 1, 3, &[(1, "gpu=h100")], false);
    claim(&mut table, 1, 4, &[(1, "gpu=h100"), (4, "gpu=a100")], false);
    assert_eq!(wanted(&mut table), [""; 0]);
    assert!(obey(&mut table, 0, relabel(0, "gpu=b200")));
    let never = "n1 REFUSE 7.2: the pool does not have so many units that will do";
    assert_eq!(wanted(&mut table), [never]);
    // What comes later is told the same.
    claim(&mut table, 0, 5, &[(2, "gpu=h100")], false);
    assert!(wanted(&mut table)[0].starts_with("n0 REFUSE 7.5"));
    // 7.1 still has unit 0, and renews it; when it is done, it is nobody's h100.
    table.step(1, Event::Renew { claim: id(1), shares: shares(&[(0, 1), (3, 1)]) });
    table.deliver_all();
    assert_eq!(wanted(&mut table), ["n1 extend 7.1"]);
    table.step(1, Event::Release(id(1)));
    table.deliver_all();
    assert_eq!(wanted(&mut table), ["n1 GRANT 7.3 u3 f2"]);
    claim(&mut table, 0, 6, &[(1, "gpu=b200")], false);
    assert_eq!(wanted(&mut table), ["n0 GRANT 7.6 u0 f3"]);
}

#[test]
fn a_unit_can_have_the_labels_it_began_with_again() {
    let mut table = both_taken(pool(6));
    assert!(obey(&mut table, 0, relabel(1, "kind=nic")));
    assert_eq!(table.world.nodes[0].relabelled().unwrap().len(), 1);
    claim(&mut table, 1, 2, &[(1, "kind=nic")], false);
    assert_eq!(wanted(&mut table), ["n1 GRANT 7.2 u1 f2"]);
    claim(&mut table, 1, 3, &[(1, "kind=nic")], false);
    assert!(obey(&mut table, 0, Order::Relabel { unit: Unit(1), labels: None }));
    assert!(wanted(&mut table)[0].starts_with("n1 REFUSE 7.3"));
    assert!(table.world.nodes[0].relabelled().unwrap().is_empty());
    // Saying in full what it began with is the same.
    assert!(obey(&mut table, 0, relabel(2, "gpu=a100,zone=eu")));
    assert!(table.world.nodes[0].relabelled().unwrap().is_empty());
    assert!(table.world.nodes[1].relabelled().is_none(), "it decides nothing");
}

#[test]
fn a_durable_arbiter_remembers_labels_and_another_begins_anew() {
    for durable in [true, false] {
        let mut table = Table::new(2, Pool::of(Goods { durable, ..pool(6).goods }));
        assert!(obey(&mut table, 0, relabel(1, "gpu=h100,zone=us")));
        let record = table.record.clone();
        table.restart(0, Start::Recovered(record));
        if !durable {
            table.step(0, Event::Ring(Alarm::Grace));
        }
        wanted(&mut table);
        claim(&mut table, 1, 1, &[(3, "gpu=h100")], false);
        let wanted = wanted(&mut table);
        let granted = wanted[0].starts_with("n1 GRANT 7.1 u0,u1,u3");
        let refused = wanted[0].starts_with("n1 REFUSE 7.1");
        assert_eq!((granted, refused), (durable, !durable), "{wanted:?}");
    }
}

/// 7.1 may stand on any h100 and is asked to go from 0 to 3, since 7.2 needs just 0.
fn moving() -> Table {
    let mut table = Table::new(2, pool(6));
    claim(&mut table, 1, 1, &[(1, "gpu=h100")], true);
    claim(&mut table, 0, 2, &[(1, "gpu=h100,zone=eu")], false);
    assert_eq!(wanted(&mut table), ["n1 GRANT 7.1 u0 f1", "n1 MOVE 7.1 u0 to u3 f2"]);
    table
}

#[test]
fn what_was_decided_and_not_told_is_decided_anew() {
    let mut table = moving();
    // 7.2 was to get unit 0, and that will not do any more: another does.
    assert!(obey(&mut table, 0, relabel(0, "gpu=h100,zone=us")));
    assert!(wanted(&mut table)[0].starts_with("n0 REFUSE 7.2"), "no h100 is in the eu");
    let mut table = moving();
    assert!(obey(&mut table, 0, relabel(2, "gpu=h100,zone=eu")));
    assert_eq!(wanted(&mut table), [""; 0], "a holder was told to move, and has not answered");
    table.world.now = table.world.now.after(Duration::from_millis(10));
    table.step(1, Event::Renew { claim: id(1), shares: shares(&[(3, 2)]) });
    table.deliver_all();
    assert_eq!(wanted(&mut table), ["n0 GRANT 7.2 u2 f3", "n1 extend 7.1"]);
    claim(&mut table, 0, 3, &[(1, "gpu=h100,zone=us")], false);
    assert_eq!(wanted(&mut table), ["n1 MOVE 7.1 u3 to u0 f4"]);
}

#[test]
fn a_movable_holder_is_not_moved_from_a_unit_that_no_longer_fits_it() {
    let mut table = Table::new(2, pool(6));
    claim(&mut table, 1, 1, &[(1, "gpu=h100")], true);
    assert_eq!(wanted(&mut table), ["n1 GRANT 7.1 u0 f1"]);
    for unit in [0, 3] {
        assert!(obey(&mut table, 0, relabel(unit, "gpu=b200")));
    }
    assert_eq!(wanted(&mut table), [""; 0], "a holder is never refused");
    claim(&mut table, 0, 2, &[(2, "gpu=b200")], false);
    assert_eq!(wanted(&mut table), [""; 0], "unit 0 stays where it is");
    table.step(1, Event::Release(id(1)));
    table.deliver_all();
    assert_eq!(wanted(&mut table), ["n0 GRANT 7.2 u0,u3 f2"]);
    let seat = Seat { me: 0.into(), boot: 0, now: table.world.now, pool: &table.world.pool };
    table.world.nodes[0].audit(&seat);
}
