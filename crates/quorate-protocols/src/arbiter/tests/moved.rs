//! A claim is repeated at another node than the first, or after a restart of its own: its client
//! moved, or somebody replays what it said. Whoever uses units keeps them.

use std::time::Duration;

use quorate_core::{Event, Fence, NodeId, Share, Shares, Start, Unit};

use super::cluster::{Cluster, cluster, id};
use super::walk::{Weather, forever, walk};
use crate::arbiter::pool::Mutant;
use crate::arbiter::{Alarm, Pool};
use crate::quorums::Quorums;

/// One unit, majorities of nodes 0 to 2, clients at the others.
fn world(mutant: Option<Mutant>) -> Cluster {
    cluster(6, Pool { mutant, ..Pool::new(1, 3) })
}

/// Claim 1 is held through n3 and asked for through n4; claim 2 waits. One arbiter.
fn repeated(mutant: Option<Mutant>) -> Cluster {
    let quorums = Quorums::Threshold { members: 1, size: 1 };
    let mut world = cluster(6, Pool { quorums, mutant, ..Pool::new(1, 1) });
    world.claim(3, 1, 1, 0);
    world.settle();
    world.claim(2, 2, 1, 1); // Older than what n4 will ask for.
    world.settle();
    assert!(world.is_using(1) && !world.is_using(2));
    world.claim(4, 1, 1, 2);
    world.settle();
    world
}

#[test]
fn a_claim_repeated_at_another_node_takes_nothing_from_its_holder() {
    let mut world = repeated(None);
    world.must_be_lawful();
    assert!(world.is_using(1) && !world.is_using(2), "{}", world.trace);
    world.release(3, 1);
    world.settle();
    world.must_be_lawful();
    assert_eq!(world.units_in_use(), 1, "somebody else is next\n{}", world.trace);
    repeated(Some(Mutant::OneEntryPerClaim)).must_break("capacity");
}

/// The home of a holder restarts, and hears an old copy of the claim.
fn repeated_after_a_restart(mutant: Option<Mutant>) -> Cluster {
    let mut world = world(mutant);
    world.claim(3, 1, 1, 0);
    world.settle();
    world.restart(3, Start::Amnesia);
    world.claim(2, 2, 1, 1);
    world.settle();
    let units = quorate_core::Units::ONE;
    world.step(NodeId(3), Event::Claim(quorate_core::Claim::any(id(1), units)));
    world.settle();
    world
}

#[test]
fn a_claim_repeated_after_a_restart_takes_nothing_from_its_holder() {
    let world = repeated_after_a_restart(None);
    world.must_be_lawful();
    assert!(world.is_using(1) && !world.is_using(2), "{}", world.trace);
    repeated_after_a_restart(Some(Mutant::OneEntryPerClaim)).must_break("capacity");
}

#[test]
fn random_histories_find_an_arbiter_with_one_entry_per_claim() {
    let pool = Pool { mutant: Some(Mutant::OneEntryPerClaim), ..Pool::new(2, 4) };
    let weather = Weather { repeats: true, ..Weather::default() };
    let caught = (0..150).find_map(|seed| {
        walk(seed, 4, forever(pool.clone()), 8, weather).breach.map(|breach| breach.law)
    });
    assert_eq!(caught, Some("capacity"));
}

/// n3 waits for claim 1 with a permission of n1, while an old story of the same claim is told
/// through n4 and ends there. Says whether claim 2 was then let in beside it.
fn an_old_story(mutant: Option<Mutant>) -> Cluster {
    let quorums = Quorums::Explicit(
        [[0u32, 1], [1, 2]].map(|pair| pair.into_iter().collect()).into_iter().collect(),
    );
    let mut world = cluster(6, Pool { mutant, quorums, ..Pool::new(1, 3) });
    world.claim(3, 1, 1, 0);
    world.deliver(3, 1, "request");
    world.deliver(1, 3, "grant");
    let shares = Shares::new(&[Share { unit: Unit(0), fence: Fence(1) }]);
    world.step(NodeId(4), Event::Renew { claim: id(1), shares });
    world.deliver(4, 1, "renew");
    world.step(NodeId(4), Event::Release(id(1)));
    world.deliver(4, 1, "release");
    world.claim(5, 2, 1, 1);
    world.deliver(5, 1, "request");
    world.deliver(5, 2, "request");
    world.settle();
    world
}

#[test]
fn what_is_shown_through_another_node_is_not_given_back_by_it() {
    let world = an_old_story(None);
    world.must_be_lawful();
    assert!(world.is_using(1) && !world.is_using(2), "{}", world.trace);
    an_old_story(Some(Mutant::HandOverWhole)).must_break("capacity");
}

#[test]
fn a_fence_that_a_client_made_up_counts_for_nothing() {
    let mut world = cluster(6, Pool::named(1, 3));
    world.claim(3, 1, 1, 0);
    world.settle();
    let made_up = Fence(1 << 40);
    // Of a claim that is granted, and of one that there never was.
    for serial in [1, 9] {
        let shares = Shares::new(&[Share { unit: Unit(0), fence: made_up }]);
        world.step(NodeId(4), Event::Renew { claim: id(serial), shares });
        world.settle();
    }
    assert!(world.is_using(1) && !world.trace.contains("   extend"), "{}", world.trace);
    world.release(3, 1);
    world.claim(4, 2, 1, 1);
    world.settle();
    let shares = &world.using[&id(2)].shares;
    assert!(shares.iter().all(|share| share.fence < made_up), "{}", world.trace);
}

/// A holder's home is gone; it goes on through another, and its lease there is renewed.
#[test]
fn a_holder_moves_to_another_node_and_keeps_its_units() {
    let mut world = world(None);
    world.claim(3, 1, 1, 0);
    world.settle();
    let shares = world.using[&id(1)].shares.clone();
    world.step(NodeId(4), Event::Renew { claim: id(1), shares: shares.clone() });
    world.settle();
    assert!(world.trace.contains("   extend 1.1"), "{}", world.trace);
    // Its old home gives up; that is not the client's word.
    world.now = world.now.after(Duration::from_secs(60));
    world.step(NodeId(4), Event::Renew { claim: id(1), shares });
    world.claim(5, 2, 1, 1);
    world.settle();
    for arbiter in 0..3 {
        let lease = world.alarms[arbiter]
            .iter()
            .copied()
            .find(|alarm| matches!(alarm, Alarm::LeaseEnd(bid) if bid.claim == id(1)));
        if let Some(lease) = lease {
            world.ring(arbiter as u32, lease);
        }
    }
    world.end(id(1), quorate_laws::End::Deadline);
    world.settle();
    world.must_be_lawful();
    assert!(world.is_using(2), "its leases ended\n{}", world.trace);
}

/// The home of a holder is an arbiter of it too, and forgets both. The client shows what it has,
/// and too few know it; claim 2 wants it too. Does not say whether the client hears anything.
fn forgotten(mutant: Option<Mutant>) -> Cluster {
    let quorums = Quorums::Explicit(
        [[0u32, 1], [1, 2]].map(|pair| pair.into_iter().collect()).into_iter().collect(),
    );
    let mut world = cluster(6, Pool { mutant, quorums, ..Pool::new(1, 3) });
    world.deaf = true;
    world.claim(0, 1, 1, 0);
    world.settle();
    assert!(world.is_using(1));
    world.restart(0, Start::Amnesia);
    world.renew(0, 1);
    world.settle();
    world.claim(5, 2, 1, 1);
    world.settle();
    world
}

#[test]
fn who_outlives_its_home_gets_the_permission_that_it_forgot_from_another() {
    let mut world = forgotten(None);
    world.must_be_lawful();
    let trace = &world.trace;
    assert!(trace.contains("> n2 request 1.1 h1 @0n0"), "it goes before all who wait\n{trace}");
    assert!(trace.contains("   extend 1.1") && !trace.contains("LOSE"), "{trace}");
    assert!(!world.is_using(2), "{trace}");
    let deadline = world.using[&id(1)].until;
    assert!(deadline > world.now.after(Duration::from_secs(9)), "it has a whole lease");
    world.release(0, 1);
    world.settle();
    world.must_be_lawful();
    assert!(world.is_using(2), "{}", world.trace);
    forgotten(Some(Mutant::LoseWhatIsForgotten)).must_be_lawful();
    let lost = forgotten(Some(Mutant::LoseWhatIsForgotten)).trace;
    assert!(lost.contains("LOSE 1.1"), "{lost}");
    forgotten(Some(Mutant::GiveBackWhatIsLost)).must_break("capacity");
}

/// A client moved to a node that believes one of its arbiters dead, and a third one never answers.
/// When the first lease ends, what that one may know is not counted on any more.
#[test]
fn a_client_that_moved_has_lost_when_too_few_are_left_that_said_so() {
    let mut world = world(None);
    world.claim(3, 1, 1, 0);
    world.settle();
    world.step(NodeId(4), Event::Suspect(NodeId(0)));
    let shares = world.using[&id(1)].shares.clone();
    world.step(NodeId(4), Event::Renew { claim: id(1), shares });
    for arbiter in [0, 1] {
        world.deliver(4, arbiter, "renew");
        world.deliver(arbiter, 4, "renewed");
    }
    assert!(world.trace.contains("   extend 1.1"), "{}", world.trace);
    world.now = world.now.after(Duration::from_secs(60));
    world.end(id(1), quorate_laws::End::Deadline);
    let is_it = |alarm: &&Alarm| matches!(alarm, Alarm::LeaseEnd(bid) if bid.claim == id(1));
    let lease = *world.alarms[0].iter().find(is_it).unwrap();
    world.ring(0, lease);
    world.deliver(0, 4, "lost");
    world.must_be_lawful();
    assert!(world.trace.contains("> n1 release 1.1"), "{}", world.trace);
}
