//! Why a claim waits.

use std::collections::BTreeMap;

use quorate_core::Unit;

use super::super::labels::{Labels, Selector};
use super::super::{Allocator, Policy, Want};
use super::stories::{pass, ticket, want};

/// Eight h100 and four a100, half of each in either zone.
fn labels() -> Labels {
    let unit = |index: u32| {
        let gpu = if index < 8 { "h100" } else { "a100" };
        let zone = if index.is_multiple_of(2) { "eu" } else { "us" };
        let labels = [("gpu", gpu), ("zone", zone)].map(|(k, v)| (k.to_owned(), v.to_owned()));
        (format!("gpu{index}"), BTreeMap::from(labels))
    };
    Labels::new((0..12).map(unit).collect())
}

fn wanted(labels: &Labels, units: u32, selector: &str) -> Want {
    let selector: Selector = selector.parse().expect("a selector");
    Want { among: Some(labels.select(&selector)), units }
}

#[test]
fn the_cut_names_the_units_that_are_full_and_who_wants_them() {
    let labels = labels();
    let pool = &mut Allocator::new(12, Policy::STRICT);
    for age in 1..=12 {
        pool.enter(ticket(age), &[wanted(&labels, 1, "gpu=h100")], false).expect("possible");
    }
    assert_eq!(pass(pool).len(), 8);
    let cut = pool.explain(ticket(9)).expect("it waits");
    assert_eq!(cut.units, (0..8).map(Unit).collect::<Vec<_>>());
    assert_eq!((cut.held, cut.free, cut.line), (8, 0, 0));
    assert_eq!(cut.waiting, [9, 10, 11, 12].map(ticket));
    assert_eq!(cut.sentence(8, &labels), "12 claims want 8 units with gpu=h100");
    assert_eq!(pool.explain(ticket(1)), None, "it holds its unit");
}

#[test]
fn the_cut_reaches_through_holders_that_could_be_moved() {
    let labels = labels();
    let pool = &mut Allocator::new(12, Policy::STRICT);
    for age in 1..=4 {
        pool.enter(ticket(age), &[wanted(&labels, 2, "gpu=h100")], true).expect("possible");
    }
    assert_eq!(pass(pool).len(), 4);
    pool.enter(ticket(5), &[wanted(&labels, 1, "gpu=h100,zone=eu")], false).expect("possible");
    assert!(pass(pool).is_empty());
    let cut = pool.explain(ticket(5)).expect("it waits");
    assert_eq!(cut.sentence(4, &labels), "5 claims want 8 units with gpu=h100");
}

#[test]
fn free_units_that_are_kept_for_older_claims_are_said() {
    let labels = labels();
    let pool = &mut Allocator::new(12, Policy::STRICT);
    pool.enter(ticket(1), &[wanted(&labels, 3, "gpu=a100")], false).expect("possible");
    assert_eq!(pass(pool).len(), 1);
    pool.enter(ticket(2), &[wanted(&labels, 2, "gpu=a100")], false).expect("possible");
    pool.enter(ticket(3), &[wanted(&labels, 1, "gpu=a100")], false).expect("possible");
    assert!(pass(pool).is_empty());
    let sentence = pool.explain(ticket(3)).expect("it waits").sentence(1, &labels);
    let expected = "3 claims want 4 units with gpu=a100; 1 free, too few or kept for older claims";
    assert_eq!(sentence, expected);
    // Of a pool without labels there is nothing to add.
    let plain = &mut Allocator::new(2, Policy::STRICT);
    for age in 1..=3 {
        plain.enter(ticket(age), &[want(1, &[])], false).expect("possible");
    }
    assert_eq!(pass(plain).len(), 2);
    let sentence = plain.explain(ticket(3)).expect("it waits").sentence(2, &Labels::default());
    assert_eq!(sentence, "3 claims want 2 units");
}

#[test]
fn selectors_are_parsed_and_say_what_is_wrong() {
    assert_eq!(
        "zone=eu, gpu=h100".parse::<Selector>().map(|s| s.to_string()).as_deref(),
        Ok("gpu=h100,zone=eu")
    );
    assert_eq!("".parse::<Selector>(), Ok(Selector::default()));
    for (text, word) in [("gpu", "'gpu'"), ("=x", "'=x'"), ("a=1,a=2", "two values of a")] {
        assert!(text.parse::<Selector>().expect_err(text).contains(word), "{text}");
    }
    let labels = labels();
    assert_eq!(labels.describe(&[Unit(0), Unit(9)]), "(gpu0, gpu9)");
    assert_eq!(*labels.select(&"gpu=a100,zone=us".parse().expect("one")), [Unit(9), Unit(11)]);
}
