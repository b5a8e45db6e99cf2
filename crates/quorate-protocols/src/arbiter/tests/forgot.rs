//! Arbiters that crash and forget: what they may take up again, who may count on that, and what
//! their late messages must not end. Majorities of nodes 0 to 2, and claims on all of two units: so
//! any two exclude each other, and no fences are compared. A lease is ten seconds.

use std::time::Duration;

use quorate_core::{Event, Fence, Moment, NodeId, Share, Shares, Start, Unit};
use quorate_laws::End;

use super::cluster::{Cluster, cluster, id};
use crate::arbiter::pool::Mutant;
use crate::arbiter::{Alarm, Message, Pool};
use crate::by_hand::Parcel;
use crate::quorums::Quorums;

fn world(mutant: Option<Mutant>) -> Cluster {
    let quorums = Quorums::majority(3);
    cluster(6, Pool { mutant, quorums, ..Pool::new(2, 3) })
}

impl Cluster {
    /// So long after the beginning.
    fn at(&mut self, millis: u64) {
        self.now = Moment(1).after(Duration::from_millis(millis));
    }

    /// Takes a message off its road, to arrive later or never.
    fn hold_back(&mut self, from: u32, to: u32, kind: &str) -> Parcel<Message> {
        let place = self.find(from, to, kind);
        self.take(place)
    }

    /// All that is on its way arrives, except what this node says.
    fn settle_but(&mut self, node: u32) {
        self.settle_those(|(from, ..)| from.0 != node);
    }

    /// All that is on its way arrives, except at this node.
    fn settle_but_to(&mut self, node: u32) {
        self.settle_those(|(_, to, _)| to.0 != node);
    }

    fn settle_those(&mut self, may: impl Fn(&Parcel<Message>) -> bool) {
        while let Some(place) = self.wire.iter().position(&may) {
            let parcel = self.take(place);
            self.arrive(parcel);
        }
    }

    /// The lease that an arbiter gave this claim of n3 ends; what it says of that is lost.
    fn end_lease(&mut self, arbiter: u32, serial: u64) {
        let is_it =
            |alarm: &&Alarm| matches!(alarm, Alarm::LeaseEnd(bid) if bid.claim == id(serial));
        let lease = *self.alarms[arbiter as usize].iter().find(is_it).expect("it has a lease");
        self.ring(arbiter, lease);
        self.hold_back(arbiter, 3, "lost");
    }
}

/// Claim 1 waits at n3 with the permission of n2, for n1. That permission ends, claim 2 of n4 gets
/// it and goes in, and n2 forgets both. Then n3 says what it has, or said so before it ended and is
/// heard now.
fn ended_before_it_was_forgotten(said_before: bool, mutant: Option<Mutant>) -> Cluster {
    let mut world = world(mutant);
    world.claim(3, 1, 2, 1);
    world.deliver(3, 2, "request");
    world.deliver(2, 3, "grant");
    world.wire.clear();
    world.at(9_000);
    world.claim(4, 2, 2, 2);
    world.settle();
    world.ring(3, Alarm::Retry);
    let late = said_before.then(|| {
        world.ring(3, Alarm::Retry);
        world.hold_back(3, 2, "renew")
    });
    world.wire.clear();
    world.at(11_000);
    world.end_lease(2, 1);
    world.settle();
    assert!(world.is_using(2) && !world.is_using(1), "{}", world.trace);
    world.restart(2, Start::Amnesia);
    world.wire.extend(late);
    for _ in 0..3 {
        if world.breach.is_none() {
            world.ring(3, Alarm::Retry);
            world.settle();
        }
    }
    world
}

#[test]
fn what_ended_before_it_was_forgotten_is_not_taken_up_and_counted() {
    for said_before in [false, true] {
        ended_before_it_was_forgotten(said_before, None).must_be_lawful();
        let mutant = Some(Mutant::ReviveWhatEnded);
        ended_before_it_was_forgotten(said_before, mutant).must_break("capacity");
    }
}

/// The client of claim 1 renews then through n3, which does not reach n0. A while later its lease
/// is over there, and claim 2 is served.
fn until_claim_2_is_served(mut world: Cluster, renewed: u64) -> Cluster {
    world.at(renewed);
    world.renew(3, 1);
    world.hold_back(3, 0, "renew");
    world.settle();
    world.at(renewed + 1_500);
    if world.using[&id(1)].until <= world.now {
        world.end(id(1), End::Deadline);
    }
    world.end_lease(0, 1);
    world.settle();
    assert!(world.is_using(2) || world.breach.is_some(), "{}", world.trace);
    world
}

/// Claim 1 is held through n3 by the word of all three, and a renewal of n2's is under way for
/// long. What n2 gave ends, claim 2 of n4 gets it, n2 forgets both, and takes up what the renewal
/// shows. Then n0 no longer hears of claim 1, and gives its permission to claim 2.
fn taken_up_late(mutant: Option<Mutant>) -> Cluster {
    let mut world = world(mutant);
    world.claim(3, 1, 2, 0);
    world.settle();
    world.at(3_000);
    world.renew(3, 1);
    world.settle();
    world.at(6_000);
    world.renew(3, 1);
    let late = world.hold_back(3, 2, "renew");
    world.settle();
    world.claim(4, 2, 2, 2);
    world.settle();
    world.at(13_500);
    world.end_lease(2, 1);
    world.settle();
    world.restart(2, Start::Amnesia);
    world.at(14_000);
    world.arrive(late);
    world.settle();
    until_claim_2_is_served(world, 15_000)
}

#[test]
fn what_an_arbiter_took_up_late_is_not_promised_again_in_grace() {
    taken_up_late(None).must_be_lawful();
    taken_up_late(Some(Mutant::GiveAgainInGrace)).must_break("capacity");
}

/// Claim 1 is held through n3 by the word of n0 and n1; claim 2 of n4 has the permission of n2.
/// Then n2 forgets, and so does n3, to which the client shows what it has. It does not reach n0.
fn shown_to_a_stranger(mutant: Option<Mutant>) -> Cluster {
    let mut world = world(mutant);
    world.claim(3, 1, 2, 0);
    world.settle();
    world.at(5_000);
    world.claim(4, 2, 2, 2);
    world.settle();
    world.restart(2, Start::Amnesia);
    world.restart(3, Start::Amnesia);
    until_claim_2_is_served(world, 9_000)
}

#[test]
fn who_forgot_takes_up_nothing_without_its_number() {
    shown_to_a_stranger(None).must_be_lawful();
    shown_to_a_stranger(Some(Mutant::AdoptUnnumbered)).must_break("capacity");
}

/// The first permission of n0 for claim 1 ended before n3 heard of it, and what n0 says of that is
/// under way for long. Meanwhile n0 gave another, and the client went in; claim 2 of n4 has the
/// permission of n2. Then n3 hears that it is lost, and a copy of the grant.
fn a_late_word_of_loss(mutant: Option<Mutant>) -> Cluster {
    let mut world = world(mutant);
    world.claim(3, 1, 2, 0);
    world.deliver(3, 0, "request");
    world.hold_back(0, 3, "grant");
    let is_it = |alarm: &&Alarm| matches!(alarm, Alarm::LeaseEnd(_));
    let lease = *world.alarms[0].iter().find(is_it).expect("it has a lease");
    world.at(11_000);
    world.ring(0, lease);
    let lost = world.hold_back(0, 3, "lost");
    world.ring(3, Alarm::Retry);
    world.ring(3, Alarm::Retry);
    world.deliver(3, 0, "request");
    let copy = world.hold_back(0, 3, "grant");
    world.arrive(copy.clone());
    world.settle();
    assert!(world.is_using(1), "{}", world.trace);
    world.claim(4, 2, 2, 2);
    world.settle();
    world.arrive(lost);
    let asked = [0, 2].map(|arbiter| world.hold_back(3, arbiter, "request"));
    world.arrive(copy);
    world.settle();
    world.wire.extend(asked);
    world.settle();
    world
}

#[test]
fn what_a_client_uses_outlives_a_late_word_of_loss() {
    let mut world = a_late_word_of_loss(None);
    world.must_be_lawful();
    assert!(world.is_using(1) && !world.is_using(2), "{}", world.trace);
    world.release(3, 1);
    world.settle();
    world.must_be_lawful();
    assert!(world.is_using(2), "{}", world.trace);
    a_late_word_of_loss(Some(Mutant::DeclineWhatIsUsed)).must_break("capacity");
}

/// Claim 1 is held through n3 by the word of n1 and n2; through n4 it waits with the permission of
/// n0. Its holder asks n0 too, and leaves n2, which it believes dead.
fn two_homes_of_one_claim(mutant: Option<Mutant>) -> Cluster {
    let mut world = world(mutant);
    world.claim(4, 1, 2, 2);
    world.deliver(4, 0, "request");
    world.settle_but(4);
    world.claim(3, 1, 2, 1);
    world.settle_but(4);
    world.renew(3, 1);
    world.settle_but(4);
    world.step(NodeId(3), Event::Suspect(NodeId(2)));
    world.at(1_000);
    world.renew(3, 1);
    world.settle();
    world
}

#[test]
fn a_holder_takes_nothing_from_another_home_of_its_claim() {
    two_homes_of_one_claim(None).must_be_lawful();
    two_homes_of_one_claim(Some(Mutant::TakeFromAnother)).must_break("capacity");
}

/// A client shows what it was never given: it hears so as soon as all have said that they do not
/// know it.
#[test]
fn what_no_arbiter_knows_is_lost_at_once() {
    let mut world = world(None);
    let shares = Shares::new(&[Share { unit: Unit(0), fence: Fence(7) }]);
    world.step(NodeId(3), Event::Renew { claim: id(9), shares });
    world.settle();
    world.must_be_lawful();
    assert!(world.trace.contains("LOSE 1.9"), "{}", world.trace);
}

/// The same with an arbiter that is dead. It is not waited for, whether it is suspected before or
/// after the others have answered: alone it could not have let anybody in.
fn lost_without_the_dead(suspected_first: bool, mutant: Option<Mutant>) -> bool {
    let mut world = world(mutant);
    let shares = Shares::new(&[Share { unit: Unit(0), fence: Fence(7) }]);
    if suspected_first {
        world.step(NodeId(3), Event::Suspect(NodeId(2)));
    }
    world.step(NodeId(3), Event::Renew { claim: id(9), shares });
    world.settle_but_to(2);
    if !suspected_first {
        assert!(!world.trace.contains("LOSE"), "it may know it\n{}", world.trace);
        world.step(NodeId(3), Event::Suspect(NodeId(2)));
    }
    world.must_be_lawful();
    world.trace.contains("LOSE 1.9")
}

#[test]
fn what_no_living_arbiter_knows_is_lost_at_once() {
    for suspected_first in [false, true] {
        assert!(lost_without_the_dead(suspected_first, None));
        assert!(!lost_without_the_dead(suspected_first, Some(Mutant::WaitForTheDead)));
    }
}
