//! The scenarios of arbiter spec 9, message by message. Each is a story that ends
//! well, and the same story with one rule broken, which must not. Named after their ids.
//!
//! Where not said otherwise, arbiters are nodes 0, 1, 2 with the majorities {0,1}, {1,2}, {0,2}
//! (draws 0, 1, 2), and clients sit at nodes 3 and above. All claims are made before anybody has
//! heard of another, so the one at the smaller node is older.

use quorate_core::{Event, NodeId, NodeSet, Start};

use super::cluster::{Cluster, cluster};
use super::walk::forever;
use crate::arbiter::pool::Mutant;
use crate::arbiter::{Alarm, Mode, Pool};
use crate::quorums::Quorums;

/// Nodes without a vote beside three arbiters.
const NODES: usize = 7;

fn majorities(units: u32, mutant: Option<Mutant>) -> Cluster {
    let pair = |a: u32, b: u32| [a, b].into_iter().collect::<NodeSet>();
    let quorums = Quorums::Explicit([pair(0, 1), pair(1, 2), pair(0, 2)].into());
    cluster(NODES, forever(Pool { quorums, mutant, ..Pool::new(units, 3) }))
}

/// Arbiters 0 and 1, both needed.
fn both(units: u32, mutant: Option<Mutant>) -> Cluster {
    let quorums = Quorums::Threshold { members: 2, size: 2 };
    cluster(NODES, forever(Pool { quorums, mutant, ..Pool::new(units, 2) }))
}

/// Whoever uses units releases them, until nobody does and nothing is on its way.
fn let_all_finish(world: &mut Cluster, homes: &[(u64, u32)]) {
    for _ in 0..20 {
        world.settle();
        for &(serial, home) in homes {
            if world.is_using(serial) {
                world.release(home, serial);
            }
        }
    }
}

/// Requests that cross: each of two clients is first at one of the two arbiters it needs.
fn crossed(mutant: Option<Mutant>) -> Cluster {
    let mut world = both(1, mutant);
    world.claim(3, 1, 1, 0);
    world.claim(4, 2, 1, 0);
    world.deliver(3, 0, "request");
    world.deliver(4, 1, "request");
    let_all_finish(&mut world, &[(1, 3), (2, 4)]);
    world
}

/// A claim for both units crosses two for one each.
fn crossed_by_two(mutant: Option<Mutant>) -> Cluster {
    let mut world = both(2, mutant);
    world.claim(3, 1, 2, 0);
    world.claim(4, 2, 1, 0);
    world.claim(5, 3, 1, 0);
    world.deliver(3, 0, "request");
    world.deliver(4, 1, "request");
    world.deliver(5, 1, "request");
    let_all_finish(&mut world, &[(1, 3), (2, 4), (3, 5)]);
    world
}

#[test]
fn m1_crossed_requests_are_all_served() {
    for world in [crossed(None), crossed_by_two(None)] {
        world.must_be_lawful();
        assert!(world.waiting.is_empty(), "{}", world.trace);
        assert!(world.kinds["inquire"] > 0, "somebody was asked to give way");
    }
}

/// The paper's section 3.1 as printed: nothing is on its way, nobody holds anything, all wait.
#[test]
fn m1_the_plain_algorithm_of_the_paper_deadlocks() {
    for (world, waiting) in
        [(crossed(Some(Mutant::M1NoInquire)), 2), (crossed_by_two(Some(Mutant::M1NoInquire)), 3)]
    {
        assert_eq!(world.waiting.len(), waiting);
        assert!(world.using.is_empty());
    }
    let transcript = crossed(Some(Mutant::M1NoInquire)).trace;
    let expected = "\
n3 claim 1.1 h1
   > n0 request 1.1 h1 @1n3 e1
   > n1 request 1.1 h1 @1n3 e1
   arm retry
n4 claim 1.2 h1
   > n0 request 1.2 h1 @1n4 e1
   > n1 request 1.2 h1 @1n4 e1
   arm retry
n0 < n3 request 1.1 h1 @1n3 e1
   persist
   > n3 grant 1.1 e1 g1
n1 < n4 request 1.2 h1 @1n4 e1
   persist
   > n4 grant 1.2 e1 g1
n1 < n3 request 1.1 h1 @1n3 e1
n0 < n4 request 1.2 h1 @1n4 e1
n3 < n0 grant 1.1 e1 g1
n4 < n1 grant 1.2 e1 g1
";
    assert_eq!(transcript, expected);
}

/// An inquiry overtakes the permission it is about.
fn inquiry_first(mutant: Option<Mutant>) -> Cluster {
    let mut world = majorities(1, mutant);
    world.claim(3, 1, 1, 2); // Older: {0,2}.
    world.claim(4, 2, 1, 0); // Younger: {0,1}.
    world.deliver(4, 0, "request");
    world.deliver(3, 0, "request");
    world.deliver(0, 4, "inquire");
    world.deliver(4, 0, "yield");
    world.deliver(0, 4, "grant"); // The permission that was given back before it came.
    let_all_finish(&mut world, &[]);
    world
}

#[test]
fn m2_a_permission_given_back_before_it_came_is_not_used() {
    let mut world = inquiry_first(None);
    world.must_be_lawful();
    assert!(world.is_using(1));
    let_all_finish(&mut world, &[(1, 3), (2, 4)]);
    assert!(world.waiting.is_empty());
    inquiry_first(Some(Mutant::M2NoGrantNumbers)).must_break("capacity");
}

/// One node has two clients, another one more.
fn two_clients_of_one_node(mutant: Option<Mutant>) -> Cluster {
    let quorums = Quorums::Threshold { members: 1, size: 1 };
    let mut world = cluster(4, forever(Pool { quorums, mutant, ..Pool::new(2, 1) }));
    for (node, serial) in [(2, 1), (2, 2), (3, 3)] {
        world.claim(node, serial, 1, 0);
    }
    world.settle();
    world
}

#[test]
fn m3_two_claims_of_one_node_are_counted_as_two() {
    let world = two_clients_of_one_node(None);
    world.must_be_lawful();
    assert_eq!(world.units_in_use(), 2);
    two_clients_of_one_node(Some(Mutant::M3CounterPerNode)).must_break("capacity");
}

/// A holder is asked by somebody older.
fn holder_is_asked(mutant: Option<Mutant>) -> Cluster {
    let mut world = both(1, mutant);
    world.claim(3, 1, 1, 0);
    world.claim(4, 2, 1, 0);
    for arbiter in [0, 1] {
        world.deliver(4, arbiter, "request");
        world.deliver(arbiter, 4, "grant");
    }
    assert!(world.is_using(2));
    world.settle();
    world
}

#[test]
fn m4_a_holder_does_not_yield() {
    let mut world = holder_is_asked(None);
    world.must_be_lawful();
    assert!(world.is_using(2) && !world.is_using(1));
    world.release(4, 2);
    world.settle();
    assert!(world.is_using(1));
    holder_is_asked(Some(Mutant::M4HolderYields)).must_break("capacity");
}

/// The oldest that waits can go once an elder has left, if a younger one gives way.
fn elder_leaves(mutant: Option<Mutant>) -> Cluster {
    let mut world = both(2, mutant);
    world.claim(3, 1, 1, 0); // The elder.
    world.claim(4, 2, 2, 0); // Wants both units.
    world.claim(5, 3, 1, 0); // The youngest.
    for (node, arbiter) in [(3, 0), (5, 0), (4, 0), (3, 1), (4, 1), (5, 1)] {
        world.deliver(node, arbiter, "request");
    }
    let_all_finish(&mut world, &[(1, 3), (2, 4), (3, 5)]);
    world
}

#[test]
fn m5_permissions_are_asked_back_after_every_change() {
    let world = elder_leaves(None);
    world.must_be_lawful();
    assert!(world.waiting.is_empty(), "{}", world.trace);
    let world = elder_leaves(Some(Mutant::M5InquireOnArrival));
    assert_eq!(world.waiting.len(), 2, "a deadlock of the two younger ones\n{}", world.trace);
}

#[test]
fn m6_who_yields_waits_again_at_its_age() {
    assert!(crossed(None).waiting.is_empty());
    let mut world = crossed(Some(Mutant::M6ForgetYielded));
    assert!(!world.waiting.is_empty(), "a deadlock, as long as nobody asks again");
    assert!(world.using.is_empty());
    // A requester that repeats itself heals even this.
    world.ring(4, Alarm::Retry);
    world.ring(4, Alarm::Retry);
    let_all_finish(&mut world, &[(1, 3), (2, 4)]);
    assert!(world.waiting.is_empty());
}

/// One arbiter's permission comes twice.
fn grant_comes_twice(mutant: Option<Mutant>) -> Cluster {
    let mut world = majorities(1, mutant);
    world.claim(3, 1, 1, 0);
    world.deliver(3, 0, "request");
    world.deliver_and_keep(0, 3, "grant");
    world.deliver(0, 3, "grant");
    world.claim(4, 2, 1, 1);
    for arbiter in [1, 2] {
        world.deliver(4, arbiter, "request");
        world.deliver(arbiter, 4, "grant");
    }
    world
}

#[test]
fn m7_a_permission_that_comes_twice_counts_once() {
    let world = grant_comes_twice(None);
    world.must_be_lawful();
    assert!(world.is_using(2) && !world.is_using(1));
    grant_comes_twice(Some(Mutant::M7CountGrants)).must_break("capacity");
}

/// A release overtakes the request that it ends.
fn release_overtakes_request(mutant: Option<Mutant>) -> Cluster {
    let mut world = both(1, mutant);
    world.claim(3, 1, 1, 0);
    world.cancel(3, 1);
    for arbiter in [0, 1] {
        world.deliver(3, arbiter, "release");
        world.deliver(3, arbiter, "request");
    }
    world.claim(4, 2, 1, 0);
    world.settle();
    world
}

#[test]
fn m8_a_permission_that_nobody_waits_for_is_given_back() {
    let world = release_overtakes_request(None);
    world.must_be_lawful();
    assert!(world.is_using(2));
    let world = release_overtakes_request(Some(Mutant::M8NoHeal));
    assert!(!world.is_using(2), "a permission without an owner blocks everybody");
}

#[test]
fn m9_a_queue_in_order_of_arrival_deadlocks() {
    let world = crossed(Some(Mutant::M9ArrivalOrder));
    assert_eq!(world.waiting.len(), 2, "each is oldest where it came first");
}

#[test]
fn m10_asking_elders_to_yield_never_ends() {
    let world = crossed(Some(Mutant::M10VictimsMayBeOlder));
    assert!(world.storm, "{}", world.trace);
}

#[test]
fn m11_asking_one_at_a_time_is_right_but_slower() {
    let world = crossed_by_two(Some(Mutant::M11OneInquireAtATime));
    world.must_be_lawful();
    assert!(world.waiting.is_empty());
}

/// A claim for both units comes to an arbiter whose units two younger ones have, all three being
/// blocked at the other arbiter; and the pool allows younger claims to pass.
fn passing(mutant: Option<Mutant>) -> Cluster {
    let mut world = both(2, mutant);
    world.pool.mode = Mode::Count { holders_max: 2, backfill: 8 };
    world.claim(3, 1, 2, 0);
    world.claim(4, 2, 1, 0);
    world.claim(5, 3, 1, 0);
    for (node, arbiter) in [(4, 0), (5, 0), (3, 0), (3, 1)] {
        world.deliver(node, arbiter, "request");
    }
    world.settle();
    world
}

#[test]
fn m12_without_the_elder_rule_a_bounded_storm_comes_from_passing() {
    let world = passing(None);
    world.must_be_lawful();
    assert!(world.is_using(1));
    assert_eq!(world.kinds["yield"], 2);
    let world = passing(Some(Mutant::M12BackfillWithoutElders));
    assert!(world.kinds["yield"] > 8, "{:?}", world.kinds);
}

#[test]
fn m13_passing_without_a_bound_never_ends() {
    assert!(passing(Some(Mutant::M13BackfillWithoutBound)).storm);
}

/// One arbiter is dropped and asked again, on ordered links, while its first answer is on its way.
fn there_and_back(mutant: Option<Mutant>) -> Cluster {
    let mut world = majorities(1, mutant);
    let home = NodeId(3);
    world.claim(3, 1, 1, 0);
    world.deliver(3, 0, "request"); // Its answer takes long.
    world.step(home, Event::Suspect(NodeId(0)));
    world.step(home, Event::Trust(NodeId(0)));
    world.step(home, Event::Suspect(NodeId(2)));
    world.claim(4, 2, 1, 2);
    world.deliver(4, 0, "request");
    world.deliver(3, 0, "release");
    world.deliver(0, 3, "grant"); // The answer to the first try, in the second.
    world.deliver(3, 1, "request");
    world.deliver(1, 3, "grant");
    world.deliver(0, 4, "grant");
    world.deliver(4, 2, "request");
    world.deliver(2, 4, "grant");
    world
}

#[test]
fn m14_an_answer_to_an_earlier_try_is_not_taken() {
    let mut world = there_and_back(None);
    world.must_be_lawful();
    assert!(world.is_using(2) && !world.is_using(1));
    let_all_finish(&mut world, &[(1, 3), (2, 4)]);
    assert!(world.waiting.is_empty(), "{}", world.trace);
    there_and_back(Some(Mutant::M14NoAttempts)).must_break("capacity");
}

/// Three holders one after the other, through different quorums. None has heard of another's fence.
fn three_holders(mutant: Option<Mutant>) -> Cluster {
    let mut world = majorities(1, mutant);
    for (serial, home, draw) in [(1, 5, 0), (2, 4, 1), (3, 3, 2)] {
        world.claim(home, serial, 1, draw);
        world.settle();
        world.release(home, serial);
        world.settle();
    }
    world
}

#[test]
fn f_1_floors_rise_with_every_release() {
    three_holders(None).must_be_lawful();
    assert!(three_holders(None).kinds["retoken"] > 0);
    three_holders(Some(Mutant::F1FloorOnExpiryOnly)).must_break("fence order");
}

#[test]
fn f_2_arbiters_know_the_fences_of_their_holders() {
    three_holders(Some(Mutant::F2SecretToken)).must_break("fence order");
}

/// A client that got its units and a release that is overtaken by the decline of a copy of its
/// grant.
#[test]
fn f_3_a_declined_copy_does_not_hide_that_units_were_used() {
    let mut world = majorities(1, None);
    world.claim(3, 1, 1, 0);
    for arbiter in [0, 1] {
        world.deliver(3, arbiter, "request");
        world.deliver_and_keep(arbiter, 3, "grant");
    }
    world.release(3, 1);
    for arbiter in [0, 1] {
        world.deliver(arbiter, 3, "grant");
        world.take(world.wire.iter().position(|(_, to, _)| *to == NodeId(arbiter)).unwrap());
        world.deliver(3, arbiter, "release"); // The second one, which declines.
    }
    world.claim(4, 2, 1, 1);
    world.settle();
    world.must_be_lawful();
    assert!(world.is_using(2));
}

#[test]
fn a_quiet_grant_costs_three_messages_per_other_member_of_its_quorum() {
    let pools = [
        Pool::new(1, 3),
        Pool::new(2, 7),
        Pool::new(3, 9),
        Pool::named(4, 5),
        Pool { quorums: Quorums::by_size(7, 3), ..Pool::new(3, 7) },
    ];
    for pool in pools {
        for h in 1..=pool.units {
            let members = pool.quorums.members().len();
            for home in 0..members as u32 + 1 {
                let mut world = cluster(members + 1, forever(pool.clone()));
                world.claim(home, 1, h, u64::from(home) + 5);
                world.settle();
                world.release(home, 1);
                world.settle();
                world.must_be_lawful();
                let units = quorate_core::Units::new(h, pool.units).unwrap();
                let nobody = NodeSet::new();
                let quorum = pool.quorums.draw(units, NodeId(home), 0, &nobody).unwrap().len();
                let others = quorum - usize::from((home as usize) < members);
                assert_eq!(world.kinds.values().sum::<usize>(), 3 * others, "{}", world.trace);
            }
        }
    }
}

/// The home of a holder restarts, and a copy of the holder's grant comes once more.
fn home_restarts(mutant: Option<Mutant>) -> Cluster {
    let mut world = both(1, mutant);
    world.claim(3, 1, 1, 0);
    for arbiter in [0, 1] {
        world.deliver(3, arbiter, "request");
        world.deliver_and_keep(arbiter, 3, "grant");
    }
    let copies = std::mem::take(&mut world.wire);
    world.restart(3, Start::Amnesia);
    world.wire = copies;
    world.settle();
    world.claim(4, 2, 1, 0);
    world.settle();
    world
}

#[test]
fn a_restarted_home_does_not_decline_what_its_earlier_boot_asked_for() {
    let world = home_restarts(None);
    world.must_be_lawful();
    assert!(world.is_using(1) && !world.is_using(2));
    home_restarts(Some(Mutant::DeclineForeignBoot)).must_break("capacity");
}

/// An arbiter that forgot everything, while somebody holds units with its permission.
fn arbiter_forgets(mutant: Option<Mutant>) -> Cluster {
    let mut world = both(1, mutant);
    world.pool.lease = Pool::new(1, 2).lease;
    world.claim(3, 1, 1, 0);
    world.settle();
    world.restart(0, Start::Amnesia);
    world.restart(1, Start::Amnesia);
    world.claim(4, 2, 1, 0);
    world.settle();
    world
}

/// Both arbiters of a holder forget everything, and the next client comes after it has gone. Its
/// fence is larger nevertheless.
#[test]
fn f_4_fences_grow_although_every_arbiter_forgot() {
    let mut world = both(1, None);
    world.pool.lease = Pool::new(1, 2).lease;
    for _ in 0..3 {
        world.restart(1, Start::Amnesia); // Its numbers are far ahead of arbiter 0's.
    }
    world.ring(1, Alarm::Grace);
    world.settle();
    world.claim(3, 1, 1, 0);
    world.settle();
    world.release(3, 1);
    world.settle();
    for arbiter in [0, 1] {
        world.restart(arbiter, Start::Amnesia);
    }
    for arbiter in [0, 1] {
        world.ring(arbiter, Alarm::Grace);
    }
    world.settle();
    world.claim(4, 2, 1, 0);
    world.settle();
    world.must_be_lawful();
    assert!(world.is_using(2), "{}", world.trace);
}

#[test]
fn l_2_an_arbiter_that_forgot_waits_out_one_lease() {
    let mut world = arbiter_forgets(None);
    world.must_be_lawful();
    world.renew(3, 1);
    world.settle();
    for arbiter in [0, 1] {
        world.ring(arbiter, Alarm::Grace);
    }
    world.settle();
    assert!(world.is_using(1) && !world.is_using(2), "what was shown is known again");
    world.release(3, 1);
    world.settle();
    world.must_be_lawful();
    assert!(world.is_using(2), "{}", world.trace);
    arbiter_forgets(Some(Mutant::L2NoGrace)).must_break("capacity");
}

/// An arbiter that only counts has no fences to learn of others, however often it was restarted
/// since it forgot.
#[test]
fn an_arbiter_without_fences_opens_after_grace_alone() {
    let mut world = cluster(4, Pool { durable: true, ..Pool::new(2, 4) });
    world.restart(0, Start::Amnesia);
    let record = world.disks[0].clone();
    world.restart(0, Start::Recovered(record));
    world.ring(0, Alarm::Grace);
    assert!(world.wire.is_empty(), "it asks nobody\n{}", world.trace);
    world.claim(1, 1, 1, 0);
    world.settle();
    assert!(world.is_using(1), "{}", world.trace);
}
