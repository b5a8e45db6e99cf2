//! Which units a claim has: picked where permissions only count (arbiter spec C7), chosen again
//! where units are locks. And what is in the books for nobody (arbiter spec C10). Each rule is also
//! broken.

use quorate_core::{Event, NodeId, NodeSet, Start};

use super::cluster::{Cluster, cluster, id};
use super::walk::{Weather, forever, walk};
use crate::arbiter::pool::Mutant;
use crate::arbiter::{Alarm, Pool};
use crate::quorums::Quorums;

/// Two units that are counted and named; arbiters 0, 1, 2 with the majorities {0,1}, {1,2}, {0,2}
/// (draws 0, 2, 4, which all point at unit 0 first). That is no 2-arbiter, but two claims for one
/// unit each cannot exceed the pool.
fn world(mutant: Option<Mutant>) -> Cluster {
    let pair = |a: u32, b: u32| [a, b].into_iter().collect::<NodeSet>();
    let quorums = Quorums::Explicit([pair(0, 1), pair(0, 2), pair(1, 2)].into());
    let pool = Pool { quorums, mutant, naming: true, patience: None, ..Pool::new(2, 3) };
    cluster(6, pool)
}

/// A quiet grant costs one round more: `name` and `named` for each arbiter.
#[test]
fn c7_a_grant_names_its_unit_for_two_more_messages_per_arbiter() {
    let mut world = cluster(7, forever(Pool { naming: true, ..Pool::new(2, 7) }));
    let quorum = 5;
    world.claim(0, 1, 1, 3);
    world.settle();
    world.must_be_lawful();
    assert_eq!(
        world.using.values().next().unwrap().shares.as_slice()[0].unit.0,
        1,
        "draw 3 of two units"
    );
    world.release(0, 1);
    world.settle();
    assert_eq!(world.kinds.values().sum::<usize>(), 5 * (quorum - 1), "{:?}", world.kinds);
}

/// n3 uses unit 0 by the word of 0 and 1. n4 has the permissions of 0 and 2; then 0 forgets, takes
/// up n4's permission, and n4 picks unit 0 as well.
fn pick_in_grace(mutant: Option<Mutant>) -> Cluster {
    let mut world = world(mutant);
    world.claim(3, 1, 1, 0);
    world.claim(4, 2, 1, 4);
    for (node, arbiter) in [(3, 0), (3, 1), (4, 0), (4, 2)] {
        world.deliver(node, arbiter, "request");
    }
    world.deliver(0, 4, "grant");
    for arbiter in [0, 1] {
        world.deliver(arbiter, 3, "grant");
    }
    for arbiter in [0, 1] {
        world.deliver(3, arbiter, "name");
        world.deliver(arbiter, 3, "named");
    }
    assert!(world.is_using(1), "{}", world.trace);
    world.restart(0, Start::Amnesia);
    world.ring(4, Alarm::Retry);
    world.ring(4, Alarm::Retry);
    world.deliver(4, 0, "renew");
    world.deliver(2, 4, "grant");
    world.settle();
    world
}

#[test]
fn c7_an_arbiter_that_forgot_locks_nothing_that_may_be_in_use() {
    let mut world = pick_in_grace(None);
    world.must_be_lawful();
    assert!(!world.is_using(2), "{}", world.trace);
    world.renew(3, 1);
    world.settle();
    world.ring(0, Alarm::Grace);
    world.settle();
    for arbiter in [1, 2] {
        if world.alarms[0].contains(&Alarm::Survey) {
            world.deliver(0, arbiter, "survey");
        }
    }
    world.settle();
    world.must_be_lawful();
    assert!(world.is_using(1) && world.is_using(2), "each has its own unit\n{}", world.trace);
    pick_in_grace(Some(Mutant::C7PickInGrace)).must_break("exclusivity");
}

/// n3 moves from 0 and 1 to 1 and 2; then n4 comes to 0 and 2.
fn move_on(mutant: Option<Mutant>) -> Cluster {
    let mut world = world(mutant);
    world.claim(3, 1, 1, 0);
    world.settle();
    world.step(NodeId(3), Event::Suspect(NodeId(0)));
    world.settle();
    world.now = world.now.after(std::time::Duration::from_secs(1));
    world.renew(3, 1);
    world.wire.retain(|(_, to, _)| *to != NodeId(0));
    world.settle();
    assert!(world.trace.contains("> n0 release"), "{}", world.trace);
    world.claim(4, 2, 1, 4);
    world.settle();
    world
}

#[test]
fn c7_what_moves_to_other_arbiters_takes_its_units_along() {
    let world = move_on(None);
    world.must_be_lawful();
    assert!(world.is_using(1) && world.is_using(2), "{}", world.trace);
    move_on(Some(Mutant::C7MoveWithoutNames)).must_break("exclusivity");
}

/// The home of a holder restarts, and its client goes on with the units that it has.
#[test]
fn c7_a_client_that_outlives_its_home_keeps_its_units() {
    let mut world = world(None);
    world.claim(3, 1, 1, 0);
    world.settle();
    world.restart(3, Start::Amnesia);
    world.renew(3, 1);
    world.settle();
    assert!(world.trace.contains("   extend 1.1"), "{}", world.trace);
    world.claim(4, 2, 1, 4);
    world.settle();
    world.must_be_lawful();
    assert!(world.is_using(1) && world.is_using(2), "{}", world.trace);
}

/// n4 uses unit 0 by the word of 0 and 1, and n3, which is older, wants it of 0. Before n4 hears of
/// that, its client renews through n5 and through n4 again, and n4 names to 0 what it has.
fn there_and_back(mutant: Option<Mutant>) -> Cluster {
    let mut world = world(mutant);
    world.claim(3, 1, 1, 4);
    world.claim(4, 2, 1, 0);
    world.deliver(3, 0, "request");
    world.deliver(0, 3, "grant");
    for (kind, answer) in [("request", "grant"), ("name", "named")] {
        for arbiter in [0, 1] {
            world.deliver(4, arbiter, kind);
        }
        for arbiter in [0, 1] {
            world.deliver(arbiter, 4, answer);
        }
    }
    assert!(world.is_using(2), "{}", world.trace);
    world.deliver(3, 2, "request");
    world.deliver(2, 3, "grant");
    world.deliver(3, 2, "name");
    world.deliver(2, 3, "named");
    world.deliver(3, 0, "name");
    let shares = world.using[&id(2)].shares.clone();
    world.step(NodeId(5), Event::Renew { claim: id(2), shares });
    world.deliver(5, 0, "renew");
    world.renew(4, 2);
    world.deliver(4, 0, "renew");
    world.deliver(0, 4, "renewed");
    world.deliver(4, 0, "name");
    world.settle();
    world
}

#[test]
fn c7_what_is_used_stays_locked_while_its_client_goes_from_home_to_home() {
    let world = there_and_back(None);
    world.must_be_lawful();
    assert!(world.is_using(1) && world.is_using(2), "each has its own unit\n{}", world.trace);
    there_and_back(Some(Mutant::C7LockAnew)).must_break("exclusivity");
}

#[test]
fn c7_random_histories_keep_every_unit_with_one_holder() {
    let weathers = [
        Weather::default(),
        Weather { duplicates: true, ..Weather::default() },
        Weather { repeats: true, ..Weather::default() },
    ];
    for weather in weathers {
        for seed in 0..150 {
            let pool = forever(Pool { naming: true, ..Pool::new(3, 5) });
            let world = walk(seed, 6, pool, 8, weather);
            let fine = world.breach.is_none() && world.waiting.is_empty();
            assert!(
                fine,
                "seed {seed}: {:?} {:?} wait\n{}",
                world.breach, world.waiting, world.trace
            );
        }
    }
}

/// Two claims that would like the same unit first, then one for both units, and one more.
#[test]
fn a_claim_does_not_wait_for_one_unit_while_another_is_free() {
    let mut world = cluster(7, forever(Pool::named(2, 3)));
    world.claim(3, 1, 1, 0);
    world.settle();
    world.claim(4, 2, 1, 0);
    world.settle();
    assert!(world.is_using(1) && world.is_using(2), "{}", world.trace);
    world.claim(5, 3, 1, 0);
    world.settle();
    assert!(!world.is_using(3), "nothing is free");
    world.release(4, 2); // Not the unit that the third one waits for.
    world.settle();
    assert!(world.is_using(3), "{}", world.trace);
    world.claim(6, 4, 2, 0);
    world.settle();
    world.release(3, 1);
    world.settle();
    assert!(!world.is_using(4), "one of its two units is in use");
    world.release(5, 3);
    world.settle();
    world.must_be_lawful();
    assert!(world.is_using(4), "{}", world.trace);
}

/// A release is lost on its way to both arbiters, and nothing ends by itself.
#[test]
fn c10_a_permission_whose_release_was_lost_ends_when_somebody_needs_it() {
    let mut world = cluster(6, forever(Pool::new(1, 3)));
    world.claim(3, 1, 1, 0);
    world.settle();
    world.release(3, 1);
    world.wire.clear();
    world.claim(4, 2, 1, 0);
    world.settle();
    assert!(!world.is_using(2), "{}", world.trace);
    world.ring(4, Alarm::Retry);
    world.ring(4, Alarm::Retry);
    world.settle();
    world.must_be_lawful();
    assert!(world.is_using(2), "{}", world.trace);
}

/// n3 lists its claims, releases the only one and makes another, which overtakes the list.
fn list_comes_late(mutant: Option<Mutant>) -> Cluster {
    let quorums = Quorums::Threshold { members: 1, size: 1 };
    let mut world = cluster(6, forever(Pool { quorums, mutant, ..Pool::new(2, 1) }));
    world.claim(3, 1, 2, 0);
    world.settle();
    world.claim(4, 2, 1, 0);
    world.settle();
    world.ring(4, Alarm::Retry);
    world.ring(4, Alarm::Retry);
    world.deliver(4, 0, "request");
    world.deliver(0, 3, "roll");
    let place = world.wire.iter().position(|(from, ..)| *from == NodeId(3)).unwrap();
    let list = world.take(place);
    world.release(3, 1);
    world.settle();
    world.claim(3, 3, 1, 0);
    world.settle();
    world.wire.push_back(list);
    world.settle();
    world.claim(5, 4, 1, 0);
    world.settle();
    world
}

#[test]
fn c10_a_list_says_nothing_about_claims_made_after_it() {
    let world = list_comes_late(None);
    world.must_be_lawful();
    assert!(world.is_using(3) && !world.is_using(4), "{}", world.trace);
    list_comes_late(Some(Mutant::C10DropUnlisted)).must_break("capacity");
}

/// A home with a claim that waits restarts, and is heard of again: nobody waits for that claim.
#[test]
fn c10_what_a_restarted_home_had_in_the_queue_is_over_at_once() {
    let quorums = Quorums::Threshold { members: 1, size: 1 };
    let mut world = cluster(6, forever(Pool { quorums, ..Pool::new(3, 1) }));
    world.claim(5, 1, 1, 0);
    world.settle();
    world.claim(3, 2, 3, 0);
    world.settle();
    world.restart(3, Start::Amnesia);
    world.waiting.remove(&super::cluster::id(2));
    world.claim(4, 3, 1, 0);
    world.settle();
    assert!(!world.is_using(3), "an older claim is before it\n{}", world.trace);
    world.claim(3, 4, 1, 0);
    world.settle();
    world.must_be_lawful();
    assert!(world.is_using(3), "{}", world.trace);
}
