//! Short stories, each about one rule.

use quorate_core::{ClaimId, Unit};

use super::super::{Allocator, Among, Deed, Policy, Ticket, Want};

pub(super) fn ticket(age: u64) -> Ticket {
    Ticket { age, claim: ClaimId { origin: age, serial: 0 } }
}

pub(super) fn want(units: u32, among: &[u32]) -> Want {
    let among: Among = match among {
        [] => None,
        some => Some(some.iter().map(|unit| Unit(*unit)).collect()),
    };
    Want { among, units }
}

pub(super) fn pass(allocator: &mut Allocator) -> Vec<Deed> {
    let mut deeds = Vec::new();
    allocator.pass(&mut deeds);
    deeds
}

fn grants(allocator: &mut Allocator) -> Vec<(u64, Vec<u32>)> {
    let deeds = pass(allocator).into_iter();
    deeds
        .map(|deed| match deed {
            Deed::Grant { ticket, units } => (ticket.age, units.iter().map(|u| u.0).collect()),
            Deed::Move { .. } => panic!("nobody can be moved here: {deed:?}"),
        })
        .collect()
}

fn enter(allocator: &mut Allocator, age: u64, wants: &[Want]) {
    allocator.enter(ticket(age), wants, false).expect("possible");
}

#[test]
fn units_that_are_all_alike_go_lowest_first_to_the_oldest() {
    let pool = &mut Allocator::new(4, Policy::STRICT);
    enter(pool, 1, &[want(1, &[])]);
    enter(pool, 2, &[want(2, &[])]);
    enter(pool, 3, &[want(3, &[])]);
    enter(pool, 4, &[want(1, &[])]);
    assert_eq!(grants(pool), [(1, vec![0]), (2, vec![1, 2])]);
    pool.release(ticket(1), [Unit(0)]);
    assert_eq!(grants(pool), [], "the one for three keeps its place, and what is free");
    pool.release(ticket(2), [Unit(1), Unit(2)]);
    assert_eq!(grants(pool), [(3, vec![0, 1, 2]), (4, vec![3])]);
}

#[test]
fn the_oldest_is_passed_as_often_as_its_patience_and_no_more() {
    let pool = &mut Allocator::new(3, Policy { protect: 1, patience: 2 });
    enter(pool, 1, &[want(1, &[])]);
    assert_eq!(grants(pool).len(), 1);
    enter(pool, 2, &[want(3, &[])]);
    for age in 3..=5 {
        enter(pool, age, &[want(1, &[])]);
    }
    assert_eq!(grants(pool), [(3, vec![1]), (4, vec![2])]);
    pool.release(ticket(3), [Unit(1)]);
    assert_eq!(grants(pool), [], "twice is enough");
    pool.release(ticket(1), [Unit(0)]);
    pool.release(ticket(4), [Unit(2)]);
    assert_eq!(grants(pool), [(2, vec![0, 1, 2])]);
}

/// What the oldest had to suffer does not count for the next one.
#[test]
fn patience_is_that_of_whoever_is_the_oldest_now() {
    let pool = &mut Allocator::new(3, Policy { protect: 1, patience: 1 });
    enter(pool, 1, &[want(2, &[])]);
    assert_eq!(grants(pool), [(1, vec![0, 1])]);
    enter(pool, 2, &[want(2, &[])]);
    enter(pool, 3, &[want(1, &[])]);
    assert_eq!(grants(pool), [(3, vec![2])], "2 is passed once");
    enter(pool, 4, &[want(2, &[])]);
    enter(pool, 5, &[want(1, &[])]);
    assert_eq!(grants(pool), []);
    pool.release(ticket(1), [Unit(0), Unit(1)]);
    pool.release(ticket(3), [Unit(2)]);
    assert_eq!(grants(pool), [(2, vec![0, 1]), (5, vec![2])], "4 may still be passed once");
}

#[test]
fn what_few_can_use_is_used_first() {
    let pool = &mut Allocator::new(3, Policy::STRICT);
    // Somebody wants unit 0 only, so whoever can use something else gets that.
    enter(pool, 1, &[want(1, &[0])]);
    assert_eq!(grants(pool), [(1, vec![0])]);
    pool.release(ticket(1), [Unit(0)]);
    enter(pool, 2, &[want(1, &[])]);
    assert_eq!(grants(pool), [(2, vec![1])]);
}

#[test]
fn a_bundle_gets_all_its_lines_or_nothing_line_by_line() {
    let pool = &mut Allocator::new(4, Policy::STRICT);
    enter(pool, 1, &[want(1, &[3])]);
    assert_eq!(grants(pool), [(1, vec![3])]);
    enter(pool, 2, &[want(1, &[2, 3]), want(2, &[0, 1, 2])]);
    assert_eq!(grants(pool), [(2, vec![2, 0, 1])]);
    enter(pool, 3, &[want(2, &[0, 1]), want(2, &[2, 3])]);
    pool.release(ticket(2), [Unit(2), Unit(0), Unit(1)]);
    assert_eq!(grants(pool), [], "three are free, and it wants four");
    pool.release(ticket(1), [Unit(3)]);
    assert_eq!(grants(pool), [(3, vec![0, 1, 2, 3])]);
}

#[test]
fn a_claim_that_can_never_be_granted_is_refused_at_once_and_says_which_lines() {
    let pool = &mut Allocator::new(4, Policy::STRICT);
    let refused = pool.enter(ticket(1), &[want(5, &[])], false).expect_err("too many");
    assert_eq!((refused.wanted, refused.there_are), (5, 4));
    let lines = [want(1, &[2, 3]), want(1, &[0]), want(2, &[0, 1])];
    let refused = pool.enter(ticket(2), &lines, false).expect_err("too many");
    assert_eq!(refused.lines, [1, 2]);
    assert_eq!(refused.to_string(), "3 units wanted, and the pool has 2 that will do");
    assert!(pool.drain(Unit(3)).is_empty());
    assert!(pool.enter(ticket(3), &[want(4, &[])], false).is_err());
    assert_eq!((pool.waiting(), pool.free_count()), (0, 3));
}

#[test]
fn a_holder_moves_before_its_unit_changes_hands() {
    let pool = &mut Allocator::new(2, Policy::STRICT);
    pool.enter(ticket(1), &[want(1, &[0, 1])], true).expect("possible");
    assert_eq!(pass(pool), [Deed::Grant { ticket: ticket(1), units: vec![Unit(0)] }]);
    enter(pool, 2, &[want(1, &[0])]);
    let (add, drop) = (Unit(1), Unit(0));
    assert_eq!(pass(pool), [Deed::Move { ticket: ticket(1), add, drop }]);
    assert_eq!(pass(pool), [], "it has not answered yet");
    assert!(pool.is_moving() && pool.waits(ticket(2)));
    pool.moved(ticket(1), drop);
    assert_eq!(pass(pool), [Deed::Grant { ticket: ticket(2), units: vec![Unit(0)] }]);
    pool.release(ticket(1), [add]);
    assert_eq!(pool.free_count(), 1);
}

#[test]
fn a_release_that_crosses_a_move_gives_back_both_units() {
    let pool = &mut Allocator::new(2, Policy::STRICT);
    pool.enter(ticket(1), &[want(1, &[0, 1])], true).expect("possible");
    pass(pool);
    enter(pool, 2, &[want(1, &[0])]);
    assert!(matches!(pass(pool)[..], [Deed::Move { .. }]));
    pool.release(ticket(1), [Unit(0)]);
    assert_eq!(pass(pool), [Deed::Grant { ticket: ticket(2), units: vec![Unit(0)] }]);
    pool.moved(ticket(1), Unit(0));
    assert_eq!(pass(pool), []);
    assert!(pool.is_free(Unit(1)) && !pool.is_free(Unit(0)));
}

#[test]
fn a_drained_unit_stays_with_its_holder_and_then_leaves_the_pool() {
    let pool = &mut Allocator::new(3, Policy::STRICT);
    enter(pool, 1, &[want(2, &[])]);
    assert_eq!(grants(pool), [(1, vec![0, 1])]);
    enter(pool, 2, &[want(3, &[])]);
    enter(pool, 3, &[want(2, &[])]);
    assert_eq!(grants(pool), []);
    assert_eq!(pool.drain(Unit(1)), [ticket(2)], "three will never be there again");
    assert_eq!(grants(pool), []);
    pool.release(ticket(1), [Unit(0), Unit(1)]);
    assert_eq!(grants(pool), [(3, vec![0, 2])]);
    assert!(!pool.is_free(Unit(1)));
    pool.restore(Unit(1), false);
    enter(pool, 4, &[want(1, &[1])]);
    assert_eq!(grants(pool), [(4, vec![1])]);
}

#[test]
fn a_claim_keeps_its_age_when_labels_change() {
    let pool = &mut Allocator::new(2, Policy::STRICT);
    enter(pool, 1, &[want(1, &[0])]);
    assert_eq!(grants(pool), [(1, vec![0])]);
    enter(pool, 2, &[want(1, &[0])]);
    enter(pool, 3, &[want(1, &[0])]);
    assert_eq!(grants(pool), []);
    pool.reselect(ticket(2), &[want(1, &[0, 1])]).expect("possible");
    assert_eq!(grants(pool), [(2, vec![1])]);
    pool.release(ticket(1), [Unit(0)]);
    assert_eq!(grants(pool), [(3, vec![0])]);
}

/// Relabelling pins a movable holder to a unit that it may no longer use.
#[test]
fn nobody_is_moved_from_a_unit_that_is_not_theirs_any_more() {
    let pool = &mut Allocator::new(3, Policy::STRICT);
    pool.enter(ticket(1), &[want(1, &[0, 1])], true).expect("possible");
    assert_eq!(pass(pool).len(), 1);
    pool.reselect(ticket(1), &[want(1, &[1])]).expect("possible");
    enter(pool, 2, &[want(1, &[0])]);
    assert_eq!(pass(pool), [], "unit 0 stays with its holder");
    pool.release(ticket(1), [Unit(0)]);
    assert_eq!(grants(pool), [(2, vec![0])]);
}

#[test]
fn groups_that_nobody_uses_are_forgotten_and_with_them_their_classes() {
    let pool = &mut Allocator::new(64, Policy::STRICT);
    for age in 1..500 {
        let first = (age as u32 * 7) % 60;
        enter(pool, age, &[want(2, &[first, first + 3])]);
        assert_eq!(grants(pool), [(age, vec![first, first + 3])]);
        pool.release(ticket(age), [Unit(first), Unit(first + 3)]);
    }
    assert!(pool.groups.len() < 80, "{} groups", pool.groups.len());
    assert_eq!(pool.free_count(), 64);
}
