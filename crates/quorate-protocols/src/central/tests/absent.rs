//! Claims whose node seems dead: out of their turn, and back with their place.

use std::time::Duration;

use quorate_core::{Event, NodeId, Protocol};
use quorate_sim::{Arrival, Arrivals, Plan, Session, Span, Watch};

use super::{Table, id, seeds};
use crate::central::pool::Mutant;
use crate::central::{Alarm, Central, Pool};

/// One unit: held by n0's client, and wanted by n1's, then by n2's.
fn queue_of_two() -> Table {
    let mut table = Table::new(3, Pool::new(1));
    for node in 0..3 {
        table.claim(node, node as u64 + 1, 1);
        table.deliver_all();
    }
    table.wanted();
    table
}

fn ask_again(table: &mut Table, node: usize) {
    for _ in 0..2 {
        table.step(node, Event::Ring(Alarm::Retry));
    }
    table.deliver_all();
}

#[test]
fn a_claim_whose_node_seems_dead_is_passed_and_has_its_place_when_it_is_asked_for_again() {
    let mut table = queue_of_two();
    table.step(0, Event::Suspect(NodeId(1)));
    table.step(0, Event::Trust(NodeId(1)));
    table.step(0, Event::Release(id(1)));
    table.deliver_all();
    assert_eq!(table.wanted(), ["n2 GRANT 7.3 u0 f2"]);
    table.claim(2, 4, 1);
    table.deliver_all();
    ask_again(&mut table, 1);
    assert!(table.wanted().is_empty(), "asking again is no grant");
    table.step(2, Event::Release(id(3)));
    table.deliver_all();
    assert_eq!(table.wanted(), ["n1 GRANT 7.2 u0 f3"], "older than the claim of n2");
}

#[test]
fn a_claim_that_is_asked_for_at_another_node_is_back_too() {
    let mut table = queue_of_two();
    table.step(0, Event::Suspect(NodeId(1)));
    table.claim(0, 2, 1);
    table.step(0, Event::Release(id(1)));
    table.deliver_all();
    assert_eq!(table.wanted(), ["n0 GRANT 7.2 u0 f2"]);
}

#[test]
fn a_claim_that_is_not_asked_for_any_more_is_forgotten() {
    let mut table = queue_of_two();
    table.step(0, Event::Suspect(NodeId(1)));
    table.step(0, Event::Ring(Alarm::Absent(NodeId(1))));
    ask_again(&mut table, 1);
    for released in [1, 3] {
        table.step(if released == 1 { 0 } else { 2 }, Event::Release(id(released)));
        table.deliver_all();
    }
    assert_eq!(table.wanted(), ["n2 GRANT 7.3 u0 f2", "n1 GRANT 7.2 u0 f3"], "it was new");
}

/// The claim of n1's client is asked for at n2 too, where its client is now; n1 repeats it, and
/// then gives it up. Says who is granted next: it, or the younger claim of n2's.
fn moved_client(mutant: Option<Mutant>) -> Vec<String> {
    let mut table = queue_of_two();
    table.world.pool.goods.mutant = mutant;
    table.claim(2, 2, 1);
    table.deliver_all();
    ask_again(&mut table, 1);
    table.step(1, Event::Withdraw(id(2)));
    table.deliver_all();
    ask_again(&mut table, 2);
    table.step(0, Event::Release(id(1)));
    table.deliver_all();
    table.wanted()
}

#[test]
fn a_client_that_moved_to_another_node_keeps_its_place() {
    assert_eq!(moved_client(None), ["n2 GRANT 7.2 u0 f2"]);
    assert_eq!(moved_client(Some(Mutant::GiveUpForAll)), ["n2 GRANT 7.3 u0 f2"]);
}

#[test]
fn a_client_that_came_back_keeps_its_place() {
    let mut table = queue_of_two();
    table.claim(2, 2, 1);
    table.deliver_all();
    table.step(2, Event::Withdraw(id(2)));
    table.deliver_all();
    table.step(0, Event::Release(id(1)));
    table.deliver_all();
    assert_eq!(table.wanted(), ["n1 GRANT 7.2 u0 f2"]);
    // Nobody else asked for it meanwhile that could have been told of it.
    table.step(1, Event::Withdraw(id(2)));
    table.deliver_all();
    assert_eq!(table.wanted(), ["n2 GRANT 7.3 u0 f3"]);
}

#[test]
fn requests_are_repeated_as_soon_as_the_arbiter_is_heard_again() {
    let mut table = queue_of_two();
    let before = table.world.sent;
    table.step(1, Event::Trust(NodeId(0)));
    assert_eq!(table.world.sent, before + 1);
    table.step(1, Event::Trust(NodeId(2)));
    assert_eq!(table.world.sent, before + 1, "nobody else is asked");
}

const MS: u64 = 1_000_000;

/// A unit in use; ten claims at a node that dies with its clients, and is suspected after a second;
/// one more claim at a node that lives.
pub(crate) fn dead_waiters(seed: u64) -> Plan {
    let mut plan = Plan::quiet(seed, 3, 1);
    plan.duration = 120_000 * MS;
    plan.pool.lease = Some(Duration::from_secs(3));
    plan.faults.detection = Some(Span::Constant(1_000 * MS));
    let claim = |at: u64, node, hold: u64| Arrival { at: at * MS, node, units: 1, hold: hold * MS };
    let mut script = vec![claim(0, 2, 5_000)];
    script.extend((0..10).map(|which| claim(1_000 + which, 1, 100)));
    script.push(claim(2_000, 2, 100));
    plan.workload.arrivals = Arrivals::Script(script);
    plan
}

/// How many milliseconds after the unit is free the claim that lives has it.
pub(crate) fn served_after<P: Protocol>(plan: &Plan, pool: &P::Pool) -> u64 {
    let mut session = Session::<P>::new(plan, pool, Watch::default()).unwrap();
    session.advance(3_000 * MS).unwrap();
    session.kill(NodeId(1)).unwrap();
    while session.measures().grants < 2 {
        let next = session.now() + 5 * MS;
        assert!(next < plan.duration, "never");
        session.advance(next).unwrap();
    }
    (session.now() / MS).saturating_sub(5_000)
}

#[test]
fn a_node_that_dies_with_ten_waiting_claims_delays_nobody() {
    let plan = dead_waiters(1);
    assert!(served_after::<Central>(&plan, &seeds::pool(&plan, None)) < 100);
    let without = served_after::<Central>(&plan, &seeds::pool(&plan, Some(Mutant::ServeTheDead)));
    assert!(without > 10 * 3_000 - 100, "a lease each: {without} ms");
}
