//! One behaviour, one test.

use std::sync::Arc;
use std::time::Duration;

use quorate_core::{Claim, Event, Fence, Line, NodeId, Share, Shares, Start, Unit, Units, Wanted};

use super::{Table, id};
use crate::central::pool::Mutant;
use crate::central::{Alarm, Attempt, Message, Pool};
use crate::goods::{Fairness, Goods};

#[test]
fn a_remote_grant_costs_three_messages_and_a_local_one_none() {
    let mut table = Table::new(3, Pool::new(2));
    table.claim(1, 1, 2);
    table.deliver_all();
    assert_eq!(table.wanted(), ["n1 GRANT 7.1 u0,u1 f1"]);
    table.step(1, Event::Release(id(1)));
    table.deliver_all();
    assert_eq!(table.world.sent, 3);

    table.claim(0, 2, 1);
    assert_eq!(table.wanted(), ["n0 GRANT 7.2 u0 f2"]);
    table.step(0, Event::Release(id(2)));
    assert_eq!(table.world.sent, 3);
}

#[test]
fn first_come_is_first_served_and_asking_again_keeps_the_place() {
    let mut table = Table::new(3, Pool::new(1));
    table.claim(0, 1, 1);
    table.claim(1, 2, 1);
    table.deliver_all();
    table.claim(2, 3, 1);
    table.deliver_all();
    for _ in 0..2 {
        table.step(1, Event::Ring(Alarm::Retry));
    }
    table.deliver_all();
    table.wanted();
    table.step(0, Event::Release(id(1)));
    table.deliver_all();
    assert_eq!(table.wanted(), ["n1 GRANT 7.2 u0 f2"]);
}

#[test]
fn a_cancel_that_crosses_its_grant_gives_the_units_back() {
    let mut table = Table::new(2, Pool::new(1));
    table.claim(1, 1, 1);
    let (from, _, request) = table.world.wire.pop_front().unwrap();
    table.step(0, Event::Hear { from, message: request });
    table.step(1, Event::Cancel(id(1)));
    assert_eq!(table.wanted(), ["n1 REFUSE 7.1: cancelled"]);
    table.deliver_all();
    assert!(table.wanted().is_empty(), "no grant after the cancel was acknowledged");
    table.claim(0, 2, 1);
    assert_eq!(table.wanted(), ["n0 GRANT 7.2 u0 f2"]);
}

#[test]
fn a_request_that_comes_after_its_release_is_declined_when_granted() {
    let mut table = Table::new(2, Pool::new(1));
    table.claim(1, 1, 1);
    let request = table.world.wire.pop_front().unwrap();
    table.step(1, Event::Cancel(id(1)));
    table.deliver_all();
    table.world.wire.push_back(request);
    table.deliver_all();
    table.wanted();
    table.claim(0, 2, 1);
    assert_eq!(table.wanted(), ["n0 GRANT 7.2 u0 f2"]);
}

#[test]
fn backfill_lets_small_claims_pass_a_blocked_big_one_so_often_and_no_more() {
    let pool = Pool::of(Goods { fairness: Fairness::Backfill(2), ..Goods::new(3) });
    let mut table = Table::new(1, pool);
    table.claim(0, 1, 1);
    table.claim(0, 2, 3);
    for serial in 3..=5 {
        table.claim(0, serial, 1);
    }
    let passed = ["n0 GRANT 7.1 u0 f1", "n0 GRANT 7.3 u1 f2", "n0 GRANT 7.4 u2 f3"];
    assert_eq!(table.wanted(), passed);
    table.step(0, Event::Release(id(3)));
    assert!(table.wanted().is_empty(), "7.5 would be the third to pass 7.2");
    table.step(0, Event::Release(id(1)));
    table.step(0, Event::Release(id(4)));
    assert_eq!(table.wanted(), ["n0 GRANT 7.2 u0,u1,u2 f4"]);
}

#[test]
fn two_claims_that_pass_in_one_step_count_twice() {
    let pool = Pool::of(Goods { fairness: Fairness::Backfill(1), ..Goods::new(3) });
    let mut table = Table::new(1, pool);
    table.claim(0, 1, 3);
    table.claim(0, 2, 1);
    table.claim(0, 3, 3);
    table.claim(0, 4, 1);
    table.claim(0, 5, 1);
    table.wanted();
    table.step(0, Event::Release(id(1)));
    // 7.2 is oldest; 7.3 is blocked and may be passed once.
    assert_eq!(table.wanted(), ["n0 GRANT 7.2 u0 f2", "n0 GRANT 7.4 u1 f3"]);
}

#[test]
fn units_of_a_holder_that_did_not_renew_come_back_with_a_larger_fence() {
    let mut table = Table::new(3, Pool::new(1));
    table.claim(1, 1, 1);
    table.claim(2, 2, 1);
    table.deliver_all();
    table.wanted();
    table.step(0, Event::Ring(Alarm::LeaseEnd(id(1))));
    table.deliver_all();
    assert_eq!(table.wanted(), ["n0 RECLAIM 7.1 u0 f1", "n1 LOSE 7.1", "n2 GRANT 7.2 u0 f2"]);
}

#[test]
fn a_renewal_moves_the_deadline_and_repeats_nothing_else() {
    let mut table = Table::new(2, Pool::new(1));
    table.claim(1, 1, 1);
    table.deliver_all();
    table.wanted();
    let shares = Shares::new(&[Share { unit: Unit(0), fence: Fence(1) }]);
    table.world.now = table.world.now.after(Duration::from_secs(3));
    table.step(1, Event::Renew { claim: id(1), shares });
    table.deliver_all();
    assert_eq!(table.wanted(), ["n1 extend 7.1"]);
}

#[test]
fn a_grant_that_arrives_after_its_deadline_is_asked_for_anew_before_it_is_used() {
    let mut table = Table::new(2, Pool::new(1));
    table.claim(1, 1, 1);
    let (from, _, request) = table.world.wire.pop_front().unwrap();
    table.step(0, Event::Hear { from, message: request });
    table.world.now = table.world.now.after(Duration::from_secs(11));
    let (from, _, grant) = table.world.wire.pop_front().unwrap();
    table.step(1, Event::Hear { from, message: grant });
    assert!(table.wanted().is_empty());
    table.deliver_all();
    assert_eq!(table.wanted(), ["n1 GRANT 7.1 u0 f1"]);
}

#[test]
fn a_grant_that_ended_before_it_was_heard_of_is_asked_for_again() {
    let mut table = Table::new(2, Pool::new(1));
    table.claim(1, 1, 1);
    let (from, _, request) = table.world.wire.pop_front().unwrap();
    table.step(0, Event::Hear { from, message: request });
    let (_, _, grant) = table.world.wire.pop_front().unwrap();
    table.step(0, Event::Ring(Alarm::LeaseEnd(id(1))));
    table.world.now = table.world.now.after(Duration::from_secs(11));
    table.world.wire.push_front((NodeId(0), NodeId(1), grant));
    table.deliver_all();
    assert_eq!(table.wanted(), ["n0 RECLAIM 7.1 u0 f1", "n1 GRANT 7.1 u0 f2"]);
}

#[test]
fn an_arbiter_that_forgot_grants_nothing_before_one_lease_is_over_but_keeps_who_renews() {
    let mut table = Table::new(3, Pool::new(2));
    table.claim(1, 1, 1);
    table.deliver_all();
    table.wanted();
    table.restart(0, Start::Amnesia);
    table.claim(2, 2, 1);
    table.deliver_all();
    assert!(table.wanted().is_empty(), "in grace");
    let shares = Shares::new(&[Share { unit: Unit(0), fence: Fence(1) }]);
    table.world.now = table.world.now.after(Duration::from_secs(3));
    table.step(1, Event::Renew { claim: id(1), shares });
    table.deliver_all();
    assert_eq!(table.wanted(), ["n1 extend 7.1"]);
    table.step(0, Event::Ring(Alarm::Grace));
    table.deliver_all();
    assert_eq!(table.wanted(), ["n2 GRANT 7.2 u1 f1/1"]);
}

#[test]
fn a_restarted_requester_leaves_alone_what_its_clients_may_still_use() {
    let mut table = Table::new(2, Pool::new(1));
    table.claim(1, 1, 1);
    table.deliver_all();
    // A repeated request of the old boot is still on its way, and is answered to the new one.
    let attempt = Attempt { boot: 0, clock: 1 };
    let poll = Message::Request {
        claim: id(1),
        attempt,
        wanted: Wanted::any(Units::ONE),
        sent: table.world.now,
    };
    table.restart(1, Start::Amnesia);
    table.wanted();
    table.world.wire.push_back((NodeId(1), NodeId(0), poll));
    table.deliver_all();
    table.claim(0, 2, 1);
    assert!(table.wanted().is_empty(), "7.1 may be in use, so 7.2 waits");
    // Its client can still give the units back through the new boot.
    table.step(1, Event::Release(id(1)));
    table.deliver_all();
    assert_eq!(table.wanted(), ["n0 GRANT 7.2 u0 f2"]);
}

#[test]
fn stale_and_repeated_messages_change_nothing() {
    let mut table = Table::new(2, Pool::new(1));
    table.claim(1, 1, 1);
    let mut seen = Vec::new();
    while let Some((from, to, message)) = table.world.wire.pop_front() {
        seen.push((from, to, message.clone()));
        table.step(to.index(), Event::Hear { from, message });
    }
    table.wanted();
    let before = table.world.nodes.clone();
    for (from, to, message) in seen {
        table.step(to.index(), Event::Hear { from, message });
        table.deliver_all();
    }
    assert_eq!(table.world.nodes, before);
    assert!(table.wanted().is_empty());
}

#[test]
fn messages_that_no_correct_peer_sends_are_anomalies_and_change_nothing() {
    let mut table = Table::new(2, Pool::new(1));
    let before = table.world.nodes.clone();
    let attempt = Attempt { boot: 0, clock: 1 };
    let wanted = Wanted::any(Units::new(2, 2).unwrap());
    let greedy = Message::Request { claim: id(1), attempt, wanted, sent: table.world.now };
    table.step(0, Event::Hear { from: NodeId(1), message: greedy });
    table.step(1, Event::Hear { from: NodeId(0), message: Message::Release { claim: id(1) } });
    let lost = Message::Lost { claim: id(1), attempt, fence: Fence(1) };
    table.step(0, Event::Hear { from: NodeId(1), message: lost });
    let wanted = table.wanted();
    assert_eq!(wanted.len(), 3);
    assert!(wanted.iter().all(|line| line.contains("ANOMALY")), "{wanted:?}");
    assert_eq!(table.world.nodes, before);
}

#[test]
fn a_claim_for_particular_units_is_refused_by_a_pool_that_counts() {
    let mut table = Table::new(1, Pool::new(2));
    let line = Line::of(Units::ONE, Arc::from([Unit(1)]));
    let wanted = Wanted { lines: Some(Arc::from([line])), ..Wanted::any(Units::ONE) };
    table.step(0, Event::Claim(Claim::new(id(1), wanted)));
    assert!(table.wanted()[0].starts_with("n0 REFUSE 7.1"));
}

#[test]
fn a_waiting_claim_is_asked_for_again_and_answered_with_the_same_grant() {
    let mut table = Table::new(2, Pool::new(1));
    table.claim(1, 1, 1);
    table.world.wire.clear(); // The request is lost.
    table.step(1, Event::Ring(Alarm::Retry));
    assert!(table.world.wire.is_empty(), "a claim younger than one retry is left alone");
    table.step(1, Event::Ring(Alarm::Retry));
    let (from, _, request) = table.world.wire.pop_front().unwrap();
    table.step(0, Event::Hear { from, message: request });
    table.world.wire.clear(); // The grant is lost.
    table.step(1, Event::Ring(Alarm::Retry));
    table.deliver_all();
    assert_eq!(table.wanted(), ["n1 GRANT 7.1 u0 f1"]);
}

/// The record that is there when the arbiter restarts, and what it grants then at once.
#[test]
fn a_durable_arbiter_brings_back_nothing_that_ended() {
    for released in [true, false] {
        let mut pool = Pool::new(1);
        pool.goods.durable = true;
        let mut table = Table::new(2, pool);
        table.claim(1, 1, 1);
        table.deliver_all();
        table.wanted();
        match released {
            true => table.step(1, Event::Release(id(1))),
            false => table.step(0, Event::Ring(Alarm::LeaseEnd(id(1)))),
        }
        table.deliver_all();
        // Nothing waited for the disk, and a crash here would cost a lease.
        assert!(!table.wanted.iter().any(|line| line.contains("persist")), "{:?}", table.wanted);
        assert_eq!(table.record.as_ref().unwrap().lines().count(), 1);
        table.step(0, Event::Ring(Alarm::WriteDown));
        let record = table.record.clone();
        assert_eq!(record.as_ref().unwrap().lines().count(), 0);
        table.restart(0, Start::Recovered(record));
        table.wanted();
        table.claim(0, 2, 1);
        assert_eq!(table.wanted().last().unwrap(), "n0 GRANT 7.2 u0 f1/1");
    }
}

/// However many end meanwhile, one record has them all; and the next grant's makes it needless.
#[test]
fn what_ended_is_written_once_and_with_the_next_grant_if_that_is_sooner() {
    let mut pool = Pool::new(3);
    pool.goods.durable = true;
    let mut table = Table::new(1, pool);
    (1..=3).for_each(|serial| table.claim(0, serial, 1));
    table.wanted.clear();
    table.step(0, Event::Release(id(1)));
    table.step(0, Event::Release(id(2)));
    let alarms: Vec<&String> = table.wanted.iter().filter(|w| w.contains("write-down")).collect();
    assert_eq!(alarms.len(), 1, "{:?}", table.wanted);
    table.wanted.clear();
    table.claim(0, 4, 1);
    assert!(table.wanted.iter().any(|line| line.contains("disarm write-down")));
    assert_eq!(table.record.as_ref().unwrap().lines().count(), 2);
}

/// One try is granted twice, the first time too late: what is said of that grant afterwards is not
/// about the second. Its client may have gone to another home meanwhile, and not hear that this one
/// takes it for lost (charter spec 6).
#[test]
fn what_ends_a_grant_does_not_end_a_newer_one_of_the_same_try() {
    for mutant in [None, Some(Mutant::EndByTry)] {
        let mut table = Table::new(2, Pool::of(Goods { mutant, ..Goods::new(1) }));
        table.claim(1, 1, 1);
        table.step(1, Event::Ring(Alarm::Retry));
        table.step(1, Event::Ring(Alarm::Retry));
        let mut requests = std::mem::take(&mut table.world.wire).into_iter();
        let mut arrives = |table: &mut Table| {
            let (from, _, message) = requests.next().unwrap();
            table.step(0, Event::Hear { from, message });
        };
        arrives(&mut table);
        table.step(0, Event::Ring(Alarm::LeaseEnd(id(1))));
        let stale = std::mem::take(&mut table.world.wire);
        arrives(&mut table);
        table.deliver_all();
        let told = ["n0 RECLAIM 7.1 u0 f1", "n1 GRANT 7.1 u0 f2"];
        assert_eq!(table.wanted(), told);
        // The loss before the late grant: links reorder.
        table.world.wire = stale.into_iter().rev().collect();
        table.deliver_all();
        table.claim(0, 2, 1);
        let ended = ["n1 LOSE 7.1", "n0 GRANT 7.2 u0 f3"];
        assert_eq!(table.wanted(), &ended[..if mutant.is_some() { 2 } else { 0 }], "{mutant:?}");
    }
}
