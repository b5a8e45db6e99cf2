//! Pools of the charter that nobody uses have no seats, what one needs that comes into use, and by
//! which licence it decides.

use std::time::Duration;

use quorate_charter::{Change, Group};
use quorate_core::Moment;

use super::shadow_tests::Stage;
use crate::clock;

/// The term in which the first member decides once more.
const THIRD: u32 = 65_536 + 3;

fn pool(name: &str, definition: &str) -> Change {
    let definition = Some(definition.to_owned());
    Change::Pool { name: name.into(), definition, if_generation: None }
}

#[test]
fn a_pool_of_the_charter_has_a_seat_when_somebody_uses_it() {
    let mut stage = Stage::new("");
    stage.moves_away_and_back();
    let made = (0..1000).map(|number| pool(&format!("p{number}"), "units = 1")).collect();
    stage.applies(made);
    assert_eq!(stage.engine.pools.len(), 0);
    // It was made while this node decided: nobody can have any of it, and no member is asked.
    let mut granted = stage.claims("p7", 1);
    stage.licensed_in("p7", THIRD);
    assert!(granted.try_recv().is_ok());
    assert_eq!(stage.engine.pools.len(), 1);
    assert!(stage.engine.seat("nobody").is_err());
}

#[test]
fn a_pool_is_what_it_was_changed_to_before_anybody_used_it() {
    let mut stage = Stage::new("");
    stage.moves_away_and_back();
    stage.applies(vec![pool("p", "units = 1"), pool("q", "units = 1")]);
    stage.engine.seat("p").unwrap();
    let changed = "units = 5\nformerly = { changes = 1, units = 1 }\n";
    stage.applies(vec![pool("p", changed), pool("q", changed)]);
    for name in ["p", "q"] {
        let seat = stage.engine.seat(name).unwrap();
        assert_eq!(stage.engine.pools[seat].def.units, 5, "{name}");
    }
    let opens = |stage: &Stage, name: &str| {
        let seat = stage.engine.by_name[name];
        !stage.engine.pools[seat].seat.health(clock::now()).in_grace
    };
    assert!(opens(&stage, "p"));
    assert!(!opens(&stage, "q"), "it may have been made before this node decided");
}

/// What is not known to be nobody's is asked for, until so much time has passed that all promises
/// of earlier seats are over.
#[test]
fn a_pool_that_is_older_than_the_seat_opens_when_nothing_of_before_can_be_in_force() {
    let mut stage = Stage::new("");
    stage.applies(vec![pool("p", "units = 1"), pool("q", "units = 1")]);
    stage.moves_away_and_back();
    let opens = |stage: &mut Stage, name: &str| {
        let seat = stage.engine.seat(name).unwrap();
        !stage.engine.pools[seat].seat.health(clock::now()).in_grace
    };
    assert!(!opens(&mut stage, "p"), "whoever decided meanwhile may have granted it");
    let later = clock::now().after(Duration::from_secs(120));
    stage.engine.taken_up = Some(later);
    assert!(opens(&mut stage, "q"), "what that one granted is over");
    assert!(!opens(&mut stage, "p"), "that seat waits for its own time, or for answers");
    assert_ne!(Group::of("p"), Group::of("q"));
    assert!(later > Moment::ZERO);
}

#[test]
fn one_licence_does_for_all_pools_and_nobody_asks_for_each() {
    let mut stage = Stage::new("");
    stage.moves_away_and_back();
    let name = |number| format!("p{number}");
    stage.applies((0..1000).map(|number| pool(&name(number), "units = 1")).collect());
    // However long the test takes.
    stage.engine.taken_up = Some(clock::now());
    let first = stage.claims(&name(0), 1);
    let asked = stage.asked.try_recv().expect("it cannot decide without");
    assert!(asked <= clock::now());
    for number in 0..1000 {
        stage.licensed_in(&name(number), THIRD);
    }
    drop(first);
    for number in 1..1000 {
        let mut granted = stage.claims(&name(number), 1);
        assert!(granted.try_recv().is_ok(), "{number}");
        stage.ends(&name(number), 1);
    }
    assert!(stage.asked.try_recv().is_err(), "there is one");
    // A home looks once more whether it has to repeat itself. Then nothing of the pools is due
    // while nothing happens in them.
    let later = clock::now().after(Duration::from_secs(5));
    stage.engine.taken_up = Some(later);
    for seat in 0..1000 {
        stage.engine.ring_pool(seat, later);
    }
    let rings = |pool: &super::Pool| pool.seat.due().is_some();
    let due = stage.engine.pools.iter().filter(|pool| rings(pool)).count();
    assert_eq!(due, 1, "only the one that is held: a lease may end");
}

#[test]
fn no_licence_counts_that_was_asked_for_before_the_pool_was_what_it_is() {
    let mut stage = Stage::new("");
    stage.moves_away_and_back();
    stage.applies(vec![pool("p", "units = 1")]);
    let before = clock::now();
    let mut first = stage.claims("p", 1);
    stage.licensed_since("p", THIRD, before);
    assert!(first.try_recv().is_ok());
    let mut second = stage.claims("p", 2);
    let changed = "units = 2\nformerly = { changes = 1, units = 1 }\n";
    stage.applies(vec![pool("p", changed)]);
    stage.licensed_since("p", THIRD, before);
    assert!(second.try_recv().is_err(), "a later seat may not know of the unit");
    let after = clock::now();
    stage.licensed_since("p", THIRD, after);
    assert!(second.try_recv().is_ok());
    // A seat that is made later knows what its pool is, and not since when.
    let other = (0..).map(|number| format!("q{number}"));
    let other = other.into_iter().find(|it| Group::of(it) == Group::of("p")).expect("endless");
    stage.applies(vec![pool(&other, "units = 1")]);
    let mut third = stage.claims(&other, 3);
    stage.licensed_since("p", THIRD, after);
    assert!(third.try_recv().is_err(), "it was asked for before the pool was there");
    stage.licensed_in("p", THIRD);
    assert!(third.try_recv().is_ok());
}

/// Pools of the charter are counted each by itself up to a bound, and a reading of all of them
/// leaves room for others.
#[test]
fn very_many_pools_are_counted_together_and_a_slice_at_a_time() {
    let mut stage = Stage::new("");
    let name = |number| format!("p{number:04}");
    for thousand in 0..3 {
        let names = (thousand * 1000..(thousand + 1) * 1000).map(name);
        stage.applies(names.map(|name| pool(&name, "units = 2")).collect());
    }
    for number in 0..3000 {
        stage.engine.seat(&name(number)).unwrap();
    }
    let (reply, mut done) = tokio::sync::oneshot::channel();
    stage.engine.measure(reply);
    assert!(done.try_recv().is_err(), "others have their turn");
    stage.engine.measure_on();
    assert!(done.try_recv().is_ok());
    let text = stage.engine.metrics.open_text();
    let capacity = |label: &str| {
        let line = format!("quorate_pool_capacity_units{{pool=\"{label}\"}} ");
        text.lines().find_map(|found| found.strip_prefix(&line)).map(str::to_owned)
    };
    assert_eq!(capacity(&name(999)).as_deref(), Some("2"));
    assert_eq!(capacity(&name(1000)), None);
    assert_eq!(capacity("(other pools)").as_deref(), Some("4000"));
}
