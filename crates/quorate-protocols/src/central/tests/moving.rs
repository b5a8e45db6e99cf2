//! Holders that can be moved, units that are drained, and why claims wait.

use std::time::Duration;

use quorate_core::{
    Claim, Event, Fence, NodeId, Obeys, Order, Protocol, Seat, Share, Shares, Start, Unit, Units,
    Wanted,
};
use quorate_sim::{Profile, Verdict};

use super::labelled::{bundle, play, pool};
use super::{Table, id};
use crate::central::pool::Mutant;
use crate::central::{Alarm, Pool};
use crate::goods::Goods;

fn claim(table: &mut Table, node: usize, serial: u64, lines: &[(u32, &str)], movable: bool) {
    table.world.now = table.world.now.after(Duration::from_millis(10));
    let sum = lines.iter().map(|(count, _)| count).sum();
    let units = Units::new(sum, table.world.pool.goods.units).unwrap();
    let lines = Some(bundle(&table.world.pool, lines));
    let claim = Claim::new(id(serial), Wanted { lines, movable, ..Wanted::any(units) });
    table.step(node, Event::Claim(claim));
    table.deliver_all();
}

pub(super) fn shares(all: &[(u32, u64)]) -> Shares {
    let share = |(unit, fence): &(u32, u64)| Share { unit: Unit(*unit), fence: Fence(*fence) };
    Shares::new(&all.iter().map(share).collect::<Vec<_>>())
}

fn renew(table: &mut Table, node: usize, serial: u64, has: &[(u32, u64)]) -> Vec<String> {
    table.world.now = table.world.now.after(Duration::from_millis(10));
    table.step(node, Event::Renew { claim: id(serial), shares: shares(has) });
    table.deliver_all();
    let mut wanted = table.wanted();
    wanted.retain(|line| !line.ends_with(" persist"));
    wanted
}

pub(super) fn obey(table: &mut Table, node: usize, order: Order) -> bool {
    let (obeyed, effects) =
        table.world.act(node.into(), |central, seat, out| central.obey(seat, order, out));
    table.perform(node.into(), effects);
    table.deliver_all();
    obeyed
}

/// 7.1 has one of two h100s, and 7.2 needs just that one: the first in the eu.
fn asked_to_move(pool: Pool) -> Table {
    let mut table = Table::new(2, pool);
    claim(&mut table, 1, 1, &[(1, "gpu=h100")], true);
    assert_eq!(table.wanted().last().unwrap(), "n1 GRANT 7.1 u0 f1");
    claim(&mut table, 1, 2, &[(1, "gpu=h100,zone=eu")], false);
    assert_eq!(table.wanted().last().unwrap(), "n1 MOVE 7.1 u0 to u3 f2");
    table
}

#[test]
fn a_unit_changes_hands_only_after_its_user_has_answered() {
    let mut table = asked_to_move(pool(6));
    // It has not heard of it, or has and uses both: nothing is handed over.
    assert_eq!(renew(&mut table, 1, 1, &[(0, 1)]), ["n1 extend 7.1"]);
    assert_eq!(renew(&mut table, 1, 1, &[(0, 1), (3, 2)]), ["n1 extend 7.1"]);
    assert_eq!(renew(&mut table, 1, 1, &[(3, 2)]), ["n1 extend 7.1", "n1 GRANT 7.2 u0 f3"]);
    // And is not taken back by what was said before.
    table.step(1, Event::Release(id(1)));
    table.deliver_all();
    claim(&mut table, 0, 3, &[(1, "gpu=h100,zone=us")], false);
    assert_eq!(table.wanted(), ["n0 GRANT 7.3 u3 f4"]);
}

#[test]
fn a_release_answers_a_move_too() {
    let mut table = asked_to_move(pool(6));
    table.step(1, Event::Release(id(1)));
    table.deliver_all();
    assert_eq!(table.wanted(), ["n1 GRANT 7.2 u0 f3"]);
}

#[test]
fn a_holder_that_never_answers_keeps_both_units_until_its_lease_ends() {
    let mut table = asked_to_move(pool(6));
    claim(&mut table, 0, 3, &[(1, "gpu=h100")], false);
    assert_eq!(table.wanted(), [""; 0]);
    table.step(0, Event::Ring(Alarm::LeaseEnd(id(1))));
    table.deliver_all();
    let wanted = table.wanted();
    assert_eq!(wanted[0], "n0 RECLAIM 7.1 u0 f1,u3 f2");
    assert!(wanted.contains(&"n1 GRANT 7.2 u0 f3".to_owned()), "{wanted:?}");
    assert!(wanted.iter().any(|line| line.starts_with("n0 GRANT 7.3 u3")), "{wanted:?}");
}

#[test]
fn a_restarted_requester_hears_of_a_move_again() {
    let mut table = asked_to_move(pool(6));
    table.restart(1, Start::Recovered(None));
    let again = ["n1 extend 7.1", "n1 MOVE 7.1 u0 to u3 f2"];
    assert_eq!(renew(&mut table, 1, 1, &[(0, 1)]), again);
    table.restart(1, Start::Recovered(None));
    // Its client has heard of it, and is asked once more.
    assert_eq!(renew(&mut table, 1, 1, &[(0, 1), (3, 2)]), again);
    assert_eq!(renew(&mut table, 1, 1, &[(3, 2)])[0], "n1 extend 7.1");
}

#[test]
fn a_durable_arbiter_remembers_moves_and_drained_units() {
    let mut table = asked_to_move(Pool::of(Goods { durable: true, ..pool(6).goods }));
    assert!(obey(&mut table, 0, Order::Drain(Unit(5))));
    let record = table.record.clone();
    table.restart(0, Start::Recovered(record));
    claim(&mut table, 0, 3, &[(1, "zone=us")], false);
    assert!(table.wanted().last().unwrap().starts_with("n0 GRANT 7.3 u1"), "not u5, nor u3");
    let extended = renew(&mut table, 1, 1, &[(3, 2)]);
    assert_eq!(extended.last().unwrap(), "n1 extend 7.1");
    // The queue is not in the record: 7.2 is asked for again.
    table.step(1, Event::Ring(Alarm::Retry));
    table.step(1, Event::Ring(Alarm::Retry));
    table.deliver_all();
    assert!(table.wanted().last().unwrap().starts_with("n1 GRANT 7.2 u0"));
}

/// An arbiter that forgot knows only what holders show. What was renewed before a move must not
/// keep the unit that came with it.
#[test]
fn a_renewal_from_before_a_move_does_not_count_after_it() {
    for (mutant, extended) in [(None, false), (Some(Mutant::ExtendAfterMove), true)] {
        let mut table = Table::new(2, Pool::of(Goods { mutant, ..pool(6).goods }));
        claim(&mut table, 1, 1, &[(1, "gpu=h100")], true);
        claim(&mut table, 1, 2, &[(1, "gpu=a100")], false);
        table.wanted();
        // A renewal is on its way when the arbiter tells of the move, and is answered after that.
        table.world.now = table.world.now.after(Duration::from_millis(10));
        table.step(1, Event::Renew { claim: id(1), shares: shares(&[(0, 1)]) });
        let renewal = table.world.wire.pop_front().unwrap();
        claim(&mut table, 0, 3, &[(1, "gpu=h100,zone=eu")], false);
        assert_eq!(table.wanted(), ["n1 MOVE 7.1 u0 to u3 f3"]);
        table.world.wire.push_back(renewal);
        table.deliver_all();
        assert_eq!(table.wanted() == ["n1 extend 7.1"], extended, "{mutant:?}");
    }
}

#[test]
fn an_answer_to_a_forgotten_move_is_taken_from_whoever_showed_both_units() {
    let mut table = asked_to_move(pool(6));
    table.restart(0, Start::Amnesia);
    assert_eq!(renew(&mut table, 1, 1, &[(0, 1), (3, 2)]), ["n1 extend 7.1"]);
    assert_eq!(renew(&mut table, 1, 1, &[(3, 2)]), ["n1 extend 7.1"]);
    table.step(0, Event::Ring(Alarm::Grace));
    claim(&mut table, 0, 4, &[(1, "gpu=h100,zone=eu")], false);
    let wanted = table.wanted();
    assert!(wanted.iter().any(|line| line.contains("GRANT 7.4 u0")), "{wanted:?}");
}

/// After a restart, what is shown may answer a move that nobody knows of any more. Moves that are
/// known are answered one way or the other.
#[test]
fn a_client_that_shows_neither_side_of_a_move_changes_nothing() {
    let mut table = Table::new(2, Pool::of(Goods { durable: true, ..pool(6).goods }));
    claim(&mut table, 1, 1, &[(1, "gpu=h100"), (1, "gpu=a100")], true);
    assert_eq!(table.wanted().last().unwrap(), "n1 GRANT 7.1 u0,u1 f1");
    claim(&mut table, 1, 2, &[(1, "gpu=h100,zone=eu")], false);
    assert_eq!(table.wanted().last().unwrap(), "n1 MOVE 7.1 u0 to u3 f2");
    let record = table.record.clone();
    table.restart(0, Start::Recovered(record.clone()));
    table.restart(1, Start::Recovered(None));
    let before = table.world.nodes[0].clone();
    assert_eq!(renew(&mut table, 1, 1, &[(1, 1)]), ["n1 LOSE 7.1"]);
    assert_eq!((&table.world.nodes[0], &table.record), (&before, &record));
}

#[test]
fn a_drained_unit_is_granted_no_more_and_who_needs_it_is_refused() {
    let mut table = Table::new(2, pool(6));
    claim(&mut table, 1, 1, &[(2, "gpu=h100")], false);
    claim(&mut table, 1, 2, &[(2, "gpu=h100")], false);
    claim(&mut table, 1, 3, &[(1, "gpu=h100")], false);
    table.wanted();
    assert!(!obey(&mut table, 1, Order::Drain(Unit(0))), "only the arbiter decides over that");
    assert!(!obey(&mut table, 0, Order::Drain(Unit(6))));
    assert!(obey(&mut table, 0, Order::Drain(Unit(0))));
    let never = "REFUSE 7.2: the pool does not have so many units that will do";
    assert_eq!(table.wanted(), [format!("n1 {never}")]);
    claim(&mut table, 0, 4, &[(2, "gpu=h100")], false);
    assert!(table.wanted()[0].starts_with("n0 REFUSE 7.4"));
    table.step(1, Event::Release(id(1)));
    table.deliver_all();
    assert_eq!(table.wanted(), ["n1 GRANT 7.3 u3 f2"]);
    claim(&mut table, 0, 5, &[(1, "gpu=h100")], false);
    assert_eq!(table.wanted(), [""; 0]);
    assert!(obey(&mut table, 0, Order::Restore(Unit(0))));
    assert_eq!(table.wanted(), ["n0 GRANT 7.5 u0 f3"]);
}

#[test]
fn a_unit_that_is_kept_for_a_bundle_is_not_free_when_it_comes_back() {
    let mut table = Table::new(2, pool(6));
    claim(&mut table, 1, 1, &[(1, "gpu=h100")], true);
    claim(&mut table, 1, 2, &[(1, "gpu=h100,zone=eu"), (2, "gpu=a100,zone=us")], false);
    assert_eq!(table.wanted().last().unwrap(), "n1 MOVE 7.1 u0 to u3 f2");
    for order in [Order::Drain(Unit(1)), Order::Restore(Unit(1))] {
        assert!(obey(&mut table, 0, order));
    }
    claim(&mut table, 0, 3, &[(1, "gpu=a100,zone=us")], false);
    assert_eq!(table.wanted(), [""; 0]);
    let moved = renew(&mut table, 1, 1, &[(3, 2)]);
    assert_eq!(moved.last().unwrap(), "n1 GRANT 7.2 u0,u1,u5 f3");
}

#[test]
fn why_a_claim_waits_is_which_units_are_full_and_who_competes() {
    let mut table = Table::new(2, pool(6));
    for serial in 1..=2 {
        claim(&mut table, 1, serial, &[(1, "gpu=h100")], false);
    }
    for serial in 3..=4 {
        claim(&mut table, 1, serial, &[(1, "gpu=h100")], false);
    }
    claim(&mut table, 1, 5, &[(1, "gpu=a100")], false);
    let seat = Seat { me: NodeId(0), boot: 0, now: table.world.now, pool: &table.world.pool };
    let why = table.world.nodes[0].explain(&seat, id(4)).unwrap();
    assert_eq!((why.units, why.free), (vec![Unit(0), Unit(3)], 0));
    let ids = |serials: [u64; 2]| serials.map(id).to_vec();
    assert_eq!((why.holders, why.waiting), (ids([1, 2]), ids([3, 4])));
    assert_eq!(table.world.nodes[0].explain(&seat, id(5)), None, "it does not wait");
}

#[test]
fn every_fault_profile_is_survived_by_holders_that_move() {
    let mut moves = 0;
    for profile in Profile::ALL {
        for seed in 0..12 {
            let (verdict, told) = play(seed, profile, 500_000, None);
            assert_eq!(verdict, Verdict::Clean, "seed {seed} of {profile:?}");
            moves += told;
        }
    }
    assert!(moves > 100, "somebody is moved: {moves}");
}

#[test]
fn handing_a_unit_over_before_its_user_left_is_caught() {
    let law = (0..200).find_map(|seed| {
        match play(seed, Profile::ALL[0], 500_000, Some(Mutant::HandOverEarly)) {
            (Verdict::Broken(breach), _) => Some(breach.law),
            _ => None,
        }
    });
    assert_eq!(law, Some("exclusivity"));
}
