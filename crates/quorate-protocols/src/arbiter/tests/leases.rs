//! Deadlines: whatever a client is told ends before the lease of any arbiter it rests on (arbiter
//! spec C1). The simulator finds most of these mistakes too; here each is one short story.

use std::time::Duration;

use quorate_core::{Lease, Moment, NodeId, Start};
use quorate_laws::End;

use super::cluster::{Cluster, cluster, id};
use super::walk::{Weather, walk};
use crate::arbiter::pool::Mutant;
use crate::arbiter::{Alarm, Pool};
use crate::quorums::Quorums;

const SECOND: u64 = 1_000_000_000;

/// One arbiter, node 0; a lease of ten seconds among clocks that are wrong by a tenth.
fn world(mutant: Option<Mutant>) -> Cluster {
    let quorums = Quorums::Threshold { members: 1, size: 1 };
    let lease = Lease::new(Duration::from_secs(10), 100_000);
    let mut world = cluster(3, Pool { quorums, lease, mutant, ..Pool::new(1, 1) });
    world.now = Moment(SECOND);
    world
}

/// When the client at node 1 is told to stop, in seconds.
fn told(world: &Cluster) -> f64 {
    world.using[&id(1)].until.0 as f64 / SECOND as f64
}

/// Asked at 1 s, granted by the arbiter at 2 s, heard of at 6 s.
fn slow_answer(mutant: Option<Mutant>) -> f64 {
    let mut world = world(mutant);
    world.claim(1, 1, 1, 0);
    world.now = Moment(2 * SECOND);
    world.deliver(1, 0, "request");
    world.now = Moment(6 * SECOND);
    world.deliver(0, 1, "grant");
    told(&world)
}

#[test]
fn l_1_a_lease_is_counted_from_before_the_request_was_sent() {
    // In a tenth too fast a clock, ten seconds from 2 s are over at 11.09 s.
    let safe = 2.0 + 10.0 / 1.1;
    assert!(slow_answer(None) <= safe);
    assert!(slow_answer(Some(Mutant::L1CountFromReceipt)) > safe);
}

#[test]
fn l_3_a_deadline_allows_for_drift() {
    // Our own clock may be a tenth too slow: what it calls 9.18 s from 1 s is 10.2 s.
    let latest = |until: f64| 1.0 + (until - 1.0) / 0.9;
    let earliest_end = 1.0 + 10.0 / 1.1;
    assert!(latest(slow_answer(None)) <= earliest_end);
    assert!(latest(slow_answer(Some(Mutant::L3IgnoreDrift))) > earliest_end);
}

/// Asked at 1 s and again at 5 s, granted at 7 s.
fn long_wait(mutant: Option<Mutant>) -> f64 {
    let mut world = world(mutant);
    world.claim(2, 2, 1, 0);
    world.settle();
    world.claim(1, 1, 1, 0);
    world.settle();
    world.ring(1, Alarm::Retry);
    world.now = Moment(5 * SECOND);
    world.ring(1, Alarm::Retry);
    world.settle();
    world.now = Moment(7 * SECOND);
    world.release(2, 2);
    world.settle();
    told(&world)
}

#[test]
fn l_4_a_wait_belongs_to_the_reading_that_it_is_added_to() {
    let safe = 7.0 + 10.0 / 1.1;
    assert!(long_wait(None) <= safe);
    assert!(long_wait(Some(Mutant::L4WaitedOnResetStamp)) > safe);
}

/// A renewal is sent in time, and its answer comes after the deadline.
fn late_answer(mutant: Option<Mutant>) -> Cluster {
    let mut world = world(mutant);
    world.claim(1, 1, 1, 0);
    world.settle();
    world.now = Moment(8 * SECOND);
    world.renew(1, 1);
    world.deliver(1, 0, "renew");
    world.now = Moment(10 * SECOND); // The client was told 9.2 s and has stopped.
    world.deliver(0, 1, "renewed");
    world
}

#[test]
fn l_6_what_is_over_stays_over() {
    late_answer(None).must_be_lawful();
    late_answer(Some(Mutant::L6ReviveDead)).must_break("dead is for good");
}

/// The same in random histories. Seeds and the checker cannot see this mistake: their clients stop
/// at their deadlines whatever they hear later, as the contract asks ([`quorate_core::Effect`]), so
/// that breaking the rule on one side does no harm there.
#[test]
fn l_6_going_on_after_the_deadline_is_found_in_random_histories() {
    let breach = |seed, mutant| {
        let pool = Pool { mutant, patience: None, ..Pool::new(1, 3) };
        let time = Weather { time: true, ..Weather::default() };
        walk(seed, 4, pool, 8, time).breach.map(|breach| breach.law)
    };
    assert!((0..150).all(|seed| breach(seed, None).is_none()));
    let found = (0..150).find_map(|seed| breach(seed, Some(Mutant::L6ReviveDead)));
    assert_eq!(found, Some("dead is for good"));
}

/// A holder's arbiter is believed dead: it asks another, and is independent before the lease ends.
#[test]
fn a_grant_moves_to_other_arbiters_while_its_leases_run() {
    let mut world = cluster(5, Pool::new(1, 3));
    world.now = Moment(SECOND);
    world.claim(4, 1, 1, 0);
    world.settle();
    let before = world.using[&id(1)].until;
    world.now = Moment(4 * SECOND);
    world.step(NodeId(4), quorate_core::Event::Suspect(NodeId(0)));
    world.wire.retain(|(_, to, _)| *to != NodeId(0));
    world.settle();
    world.renew(4, 1);
    world.wire.retain(|(_, to, _)| *to != NodeId(0));
    world.settle();
    world.must_be_lawful();
    assert!(world.using[&id(1)].until > before, "{}", world.trace);
    assert!(world.trace.contains("> n0 release"), "the dead one is not needed any more");
    // The old lease ends, somebody else comes, and nothing is granted twice.
    world.claim(3, 2, 1, 1);
    world.settle();
    world.must_be_lawful();
    assert!(world.is_using(1) && !world.is_using(2));
}

/// The arbiter it asks has given its permission to a claim that waits, and is older.
#[test]
fn a_grant_that_moves_goes_before_all_who_wait() {
    let mut world = cluster(5, Pool::new(1, 3));
    world.now = Moment(SECOND);
    world.claim(4, 1, 1, 0);
    world.settle();
    world.claim(3, 2, 1, 2);
    world.settle();
    let before = world.using[&id(1)].until;
    world.now = Moment(4 * SECOND);
    world.step(NodeId(4), quorate_core::Event::Suspect(NodeId(0)));
    world.wire.retain(|(_, to, _)| *to != NodeId(0));
    world.settle();
    assert!(world.trace.contains("> n2 yield 1.2"), "{}", world.trace);
    world.renew(4, 1);
    world.settle();
    world.must_be_lawful();
    assert!(world.using[&id(1)].until > before && !world.is_using(2), "{}", world.trace);
    world.release(4, 1);
    world.settle();
    assert!(world.is_using(2), "{}", world.trace);
}

/// A grant moves to another arbiter, which does not hear of it, and its client dies. Long after the
/// deadline somebody else asks. Says whether it is served.
fn dead_while_it_moves(mutant: Option<Mutant>) -> bool {
    let mut world = cluster(5, Pool { mutant, ..Pool::new(1, 3) });
    world.now = Moment(SECOND);
    world.claim(4, 1, 1, 0);
    world.settle();
    world.step(NodeId(4), quorate_core::Event::Suspect(NodeId(0)));
    world.wire.clear();
    world.now = Moment(3600 * SECOND);
    world.end(id(1), End::Deadline);
    world.ring(4, Alarm::Retry);
    world.settle();
    world.claim(3, 2, 1, 1);
    world.settle();
    world.must_be_lawful();
    world.is_using(2)
}

/// Its home repeats what it asks, and must not keep the grant alive for nobody by it.
#[test]
fn a_home_renews_nothing_for_a_client_that_stopped() {
    assert!(dead_while_it_moves(None));
    assert!(!dead_while_it_moves(Some(Mutant::RenewForTheDead)));
}

/// A durable arbiter restarts after a grant was given back: the unit is free at once, counted and
/// by name.
#[test]
fn a_durable_arbiter_brings_back_nothing_that_ended() {
    for pool in [Pool::new(1, 1), Pool::named(1, 1)] {
        let mut world = cluster(2, Pool { durable: true, ..pool });
        world.claim(1, 1, 1, 0);
        world.settle();
        assert!(world.is_using(1), "{}", world.trace);
        let before = world.disks[0].clone();
        world.release(1, 1);
        world.settle();
        assert_eq!(world.disks[0], before, "nothing waited for the disk");
        world.ring(0, Alarm::WriteDown);
        let record = world.disks[0].clone();
        assert_ne!(record, before);
        world.restart(0, Start::Recovered(record));
        world.claim(1, 2, 1, 0);
        world.settle();
        assert!(world.is_using(2), "{}", world.trace);
        world.must_be_lawful();
    }
}
