//! What a node tells its operator: alarms say how things stand, and counters what has been.

use std::time::Duration;

use quorate_core::{Event, Fact, Moment, NodeId, NodeSet, Protocol, Seat};

use super::script::{World, seat};
use crate::broadcast::{Alarm, Knowledge, Known, Message, Pool, Weighted};

const ME: NodeId = NodeId(0);
const PACE: Duration = Duration::from_secs(5);

/// Five nodes, of which two may crash; each may use two units of six.
fn world() -> World<Weighted> {
    World::new(Pool { probe: Some(PACE), ..Pool::weighted(5, 6, 2, 2) })
}

/// What n0 tells at some moment, of itself or about a peer.
fn told(world: &World<Weighted>, now: Moment, name: &str, about: Option<u32>) -> u64 {
    let seat = Seat { now, ..seat(&world.pool, ME) };
    let mut found = Vec::new();
    let node = world.nodes[ME.index()].as_ref().unwrap();
    node.facts(&seat, &mut |fact: Fact| {
        if fact.name == name && fact.about == about.map(NodeId) {
            found.push(fact.value);
        }
    });
    assert_eq!(found.len(), 1, "{name} is told once");
    found[0]
}

/// n0 asks everybody, and these answer that they did not hear some.
fn query(world: &mut World<Weighted>, answering: &[u32], unheard: &[u32]) {
    world.step(ME, Event::Ring(Alarm::Probe));
    let query = world.nodes[ME.index()].as_ref().unwrap().detector.query;
    let unheard: NodeSet = unheard.iter().copied().collect();
    for &from in answering {
        let known = Knowledge::from(Known { unheard: unheard.clone(), ..Known::default() });
        let message = Message::Reply { request: None, used: 0, query, known };
        world.step(ME, Event::Hear { from: NodeId(from), message });
    }
    assert_eq!(world.anomalies, [""; 0]);
}

fn accuse(world: &mut World<Weighted>, suspect: u32) {
    let crashed = [(NodeId(suspect), 0)].into_iter().collect();
    let known = Knowledge::from(Known { crashed, ..Known::default() });
    world.step(ME, Event::Hear { from: NodeId(1), message: Message::Notice { known } });
}

#[test]
fn a_false_suspicion_is_over_when_one_is_heard_again() {
    let (mut world, now) = (world(), Moment::ZERO);
    let alarm = |world: &World<Weighted>| told(world, now, "falsely_suspected", None);
    let times = |world: &World<Weighted>| told(world, now, "false_suspicions", None);
    accuse(&mut world, 0);
    query(&mut world, &[1, 2, 3, 4], &[0]);
    assert_eq!((alarm(&world), times(&world)), (1, 1), "nobody hears n0");
    query(&mut world, &[1, 2, 3, 4], &[]);
    assert_eq!((alarm(&world), times(&world)), (0, 1), "it is heard, and it is not forgotten");
}

/// Nobody is suspected for it, since no query ends: but nobody can use what they may have.
#[test]
fn more_crashes_than_allowed_for_are_an_alarm_until_they_answer() {
    let mut world = world();
    let (soon, late) = (Moment::ZERO.after(PACE), Moment::ZERO.after(PACE * 3));
    query(&mut world, &[1], &[]);
    let alarm = |world: &World<Weighted>, now| told(world, now, "too_many_crashed", None);
    let lost = |world: &World<Weighted>, now| told(world, now, "units_lost", None);
    assert_eq!((alarm(&world, soon), lost(&world, soon)), (0, 0), "answers take their time");
    assert_eq!((alarm(&world, late), lost(&world, late)), (1, 6));
    let silent: Vec<u64> = (1..5).map(|peer| told(&world, late, "silent", Some(peer))).collect();
    assert_eq!(silent, [0, 1, 1, 1]);
    query(&mut world, &[2], &[]);
    assert_eq!((alarm(&world, late), lost(&world, late)), (0, 0), "as many answer as must");
}

/// Where nobody is counted out, suspects that answer are no reason for an alarm, however many.
#[test]
fn suspects_that_answer_cost_nothing() {
    let (mut world, now) = (world(), Moment::ZERO);
    for suspect in [2, 3, 4] {
        accuse(&mut world, suspect);
    }
    query(&mut world, &[1, 2], &[]);
    query(&mut world, &[1, 2], &[]);
    assert_eq!(told(&world, now, "units_lost", None), 4, "n3 and n4 do not answer");
    assert_eq!(told(&world, now, "too_many_crashed", None), 0);
    query(&mut world, &[1, 2, 3, 4], &[]);
    assert_eq!(told(&world, now, "units_lost", None), 0);
    assert_eq!(told(&world, now, "crashed", Some(4)), 1);
}
