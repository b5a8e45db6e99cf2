//! Broadcast spec D1 to D8 and P1 to P4: the corrected protocols behave as it says, and
//! each printed error, put back, shows.

use std::time::Duration;

use quorate_core::{Event, Fact, Lease, NodeId, NodeSet, Protocol};
use serde_json::Value;

use super::script::{Scripted, World, seat};
use crate::broadcast::pool::Mutant;
use crate::broadcast::{Alarm, Knowledge, Known, Message, Pool, Reclaim, Weighted};
use crate::reference::{Counted, Difference, Raymond, Raynal, Rule};

const SCENARIOS: &str = include_str!("../../../testdata/broadcast-scenarios.json");

/// What a replay showed.
#[derive(Default, Debug)]
struct Seen {
    in_use_max: u32,
    holders: Vec<NodeId>,
    crashed: Vec<NodeSet>,
    waiting: Vec<NodeId>,
    /// Whether, all being quiet, nobody owes anything (Raymond, Raynal).
    settled: bool,
}

fn scenario(id: &str) -> Value {
    let all: Value = serde_json::from_str(SCENARIOS).unwrap();
    let scenarios = all["scenarios"].as_array().unwrap();
    scenarios.iter().find(|s| s["id"] == id).unwrap_or_else(|| panic!("no scenario {id}")).clone()
}

fn number(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap()).unwrap()
}

fn nodes(value: &Value) -> Vec<NodeId> {
    value.as_array().unwrap().iter().map(|node| NodeId(number(node))).collect()
}

fn pool(scenario: &Value, mutant: Option<Mutant>) -> Pool {
    let (n, k, f) = (number(&scenario["n"]), number(&scenario["units"]), number(&scenario["f"]));
    let pool = match scenario["protocol"].as_str().unwrap() {
        "Raymond" => Pool::raymond(n, k),
        "Raynal" => Pool::raynal(n, k),
        "Paper" => Pool::timer_free(n, k, f),
        "Weighted" => {
            let most = scenario["weights"].as_array().unwrap().iter().map(number).max().unwrap();
            Pool { node_units_max: most, ..Pool::timer_free(n, k, f) }
        }
        other => panic!("unknown protocol {other}"),
    };
    Pool { mutant, ..pool }
}

fn play<P: Scripted>(scenario: &Value, mutant: Option<Mutant>) -> (World<P>, Vec<NodeId>) {
    let mut world = World::new(pool(scenario, mutant));
    follow(&mut world, scenario);
    let holders = world.holders();
    (world, holders)
}

fn follow<P: Scripted>(world: &mut World<P>, scenario: &Value) {
    for step in scenario["steps"].as_array().unwrap() {
        let node = |key: &str| NodeId(number(&step[key]));
        match step["op"].as_str().unwrap() {
            "request" => {
                let node = node("p");
                world.request(node, number(&scenario["weights"][node.index()]));
            }
            "release" => world.release(node("p")),
            "release_end" => world.finish_release(node("p")),
            "crash" => world.crash(node("p")),
            "deliver" => {
                let kind = step["kind"].as_str().unwrap();
                world.deliver(node("from"), node("to"), kind, step["ts"].as_u64());
            }
            other => panic!("unknown step {other}"),
        }
    }
}

fn replay(id: &str, mutant: Option<Mutant>) -> Seen {
    let scenario = scenario(id);
    match scenario["protocol"].as_str().unwrap() {
        "Raymond" => settle(finish(play::<Raymond>(&scenario, mutant))),
        "Raynal" => settle(finish(play::<Raynal>(&scenario, mutant))),
        _ => {
            let (world, holders) = play::<Weighted>(&scenario, mutant);
            let crashed = |node: &Option<Weighted>| {
                node.as_ref().map(|node| node.crashed().clone()).unwrap_or_default()
            };
            let crashed = world.nodes.iter().map(crashed).collect();
            Seen { crashed, settled: true, ..finish((world, holders)).0 }
        }
    }
}

fn settle<R: Rule>((seen, world): (Seen, World<Counted<R>>)) -> Seen {
    Seen { settled: world.nodes.iter().flatten().all(Counted::is_settled), ..seen }
}

fn finish<P: Scripted>((mut world, holders): (World<P>, Vec<NodeId>)) -> (Seen, World<P>) {
    world.drain();
    assert!(world.anomalies.is_empty(), "{:?}", world.anomalies);
    let (in_use_max, waiting) = (world.in_use_max, world.waiting());
    (Seen { in_use_max, holders, waiting, ..Seen::default() }, world)
}

#[test]
fn the_corrected_protocols_behave_as_the_specification_says() {
    for id in ["D1", "D2", "D3", "D3b", "D4", "D5", "D6", "D8", "P1", "P2", "P3", "P4"] {
        let seen = replay(id, None);
        assert!(seen.settled, "{id}");
        let expected = &scenario(id)["expect_corrected"];
        for (key, value) in expected.as_object().unwrap() {
            match key.as_str() {
                "max_in_use" => assert_eq!(seen.in_use_max, number(value), "{id}"),
                "waiting_after_drain" => assert_eq!(seen.waiting, nodes(value), "{id}"),
                "in_cs_after_steps" => assert_eq!(seen.holders, nodes(value), "{id}"),
                "crashed_after_steps" => {
                    let sets = value.as_array().unwrap().iter();
                    let sets: Vec<NodeSet> = sets.map(|s| nodes(s).into_iter().collect()).collect();
                    assert_eq!(seen.crashed, sets, "{id}");
                }
                "max_reply_count" => {
                    let (world, _) = play::<Raymond>(&scenario(id), None);
                    let most = world.delivered.iter().map(|message| match message {
                        Difference::Permit { amount } => *amount,
                        Difference::Request { .. } => 0,
                    });
                    assert_eq!(most.max(), value.as_u64(), "{id}");
                }
                other => panic!("{id}: nobody looks at {other}"),
            }
        }
    }
}

#[test]
fn each_printed_error_shows_in_its_scenario() {
    assert_eq!(replay("D1", Some(Mutant::TieBreakByIdentity)).in_use_max, 3);
    assert_eq!(replay("D2", Some(Mutant::UnmatchedReplies)).in_use_max, 3);
    assert_eq!(replay("D3", Some(Mutant::ClockNotAdvanced)).in_use_max, 3);
    let seen = replay("D3b", Some(Mutant::ClockNotAdvanced));
    assert_eq!(seen.crashed[1], NodeSet::from_iter([2]), "the first false suspicion");
    assert_eq!(replay("D5", Some(Mutant::ReleaseInTwoSteps)).waiting, [NodeId(2)]);
    assert_eq!(replay("D6", Some(Mutant::AssignUsed)).in_use_max, 4);
    assert_eq!(replay("P1", Some(Mutant::NoDetection)).crashed[0], NodeSet::new());
    assert_eq!(replay("P2", Some(Mutant::NoDetection)).in_use_max, 1);
    assert_eq!(replay("P3", Some(Mutant::KeepPermissionsOfTheDead)).in_use_max, 3);
    assert!(!replay("P4", Some(Mutant::LoseCount)).settled, "an answer is owed for ever");
    for id in ["D1", "D2", "P4"] {
        let seen = replay(id, Some(Mutant::DropDeferred));
        assert!(!seen.waiting.is_empty() || !seen.settled, "{id}");
    }
}

/// Broadcast spec D7: p1 asks twice while p0 holds, and p0 owes it an answer to each.
#[test]
fn who_made_two_requests_wait_gives_back_the_units_of_both() {
    for (mutant, settled) in [(None, true), (Some(Mutant::DeferOnce), false)] {
        let mut world = World::<Raynal>::new(Pool { mutant, ..Pool::raynal(3, 3) });
        world.request(NodeId(0), 1);
        world.deliver_all();
        for _ in 0..2 {
            world.request(NodeId(1), 1);
            world.deliver_all();
            world.release(NodeId(1));
        }
        world.drain();
        assert_eq!(world.nodes.iter().flatten().all(Counted::is_settled), settled);
        world.request(NodeId(1), 3);
        world.drain();
        assert_eq!(world.waiting().is_empty(), settled, "a leak blocks a later, larger claim");
    }
}

/// Broadcast spec D8, resolved: blocked while nobody asks anything, until queries
/// that ask for no units find the crash.
#[test]
fn probes_free_a_queue_that_an_undetected_crash_blocks() {
    let (mut world, _) = play::<Weighted>(&scenario("D8"), None);
    world.drain();
    assert_eq!(world.waiting(), [NodeId(0), NodeId(1)]);
    world.pool.probe = Some(Duration::from_secs(5));
    for _ in 0..3 {
        for node in [NodeId(0), NodeId(1)] {
            world.step(node, Event::Ring(Alarm::Probe));
            world.deliver_all();
        }
    }
    world.drain();
    assert_eq!(world.waiting(), []);
    assert_eq!(world.in_use_max, 2);
}

/// Broadcast spec D4 under every answer to false suspicion: only `trust-rp` hands out a unit too
/// many.
#[test]
fn a_false_suspicion_costs_a_unit_only_where_it_is_trusted() {
    for (reclaim, most) in [(Reclaim::TrustRp, 3), (Reclaim::Never, 2), (Reclaim::Fenced, 2)] {
        let mut world = play_d4(reclaim);
        let suspected = world.nodes[0].as_ref().unwrap().crashed().contains(NodeId(1));
        assert!(suspected, "{reclaim:?}: p0 was led to believe that p1 crashed");
        assert_eq!(world.in_use_max, most, "{reclaim:?}");
        world.drain();
        if reclaim == Reclaim::Never {
            assert_eq!(world.waiting(), [], "a false suspicion does no harm at all");
        }
        // p1 hears of it with its next request, and steps down where it might be counted out.
        world.request(NodeId(1), 1);
        world.drain();
        let p1 = world.nodes[1].as_ref().unwrap();
        assert!(p1.false_suspicions(&seat(&world.pool, NodeId(1))) > 0, "{reclaim:?}");
    }
    // With leases p0 does not even get in the first time: p1 has not answered its query.
    let leased = play_d4(Reclaim::Lease(Lease::new(Duration::from_secs(10), 200)));
    assert_eq!(leased.in_use_max, 0);
}

/// Who restarts waits for a node that stays down, until an operator says that it is cut off.
#[test]
fn a_node_joins_without_one_that_is_cut_off() {
    let lease = Some(Lease::new(Duration::from_secs(10), 200));
    for (reclaim, joins) in [(Reclaim::Fenced, true), (Reclaim::Never, false)] {
        let base = Pool::weighted(3, 2, 1, 1);
        let pool = Pool { reclaim, lease, probe: None, retry: None, ..base };
        let mut world = World::<Weighted>::new(pool);
        world.crash(NodeId(1));
        world.restart(NodeId(0), 1);
        world.step(NodeId(0), Event::Ring(Alarm::Grace));
        world.deliver_all();
        world.request(NodeId(0), 1);
        assert_eq!(world.waiting(), [NodeId(0)], "{reclaim:?}: n1 has not answered");
        world.step(NodeId(0), Event::Suspect(NodeId(1)));
        world.deliver_all();
        assert_eq!(world.holders() == [NodeId(0)], joins, "{reclaim:?}");
    }
}

/// Broadcast spec E9b: more suspects than can have crashed are an alarm, and while there are so
/// many nobody's lease is waited out in vain: who would be counted out stays.
#[test]
fn too_many_suspects_raise_an_alarm_and_count_nobody_out() {
    let lease = Lease::new(Duration::from_secs(10), 200);
    let reclaim = Reclaim::Lease(lease);
    let mut world = World::<Weighted>::new(Pool { reclaim, ..Pool::weighted(5, 5, 1, 1) });
    let me = NodeId(0);
    let hear = |world: &mut World<Weighted>, from, suspect| {
        let crashed = [(NodeId(suspect), 0)].into_iter().collect();
        let known = Knowledge::from(Known { crashed, ..Known::default() });
        world.step(me, Event::Hear { from, message: Message::Notice { known } });
        let seat = seat(&world.pool, me);
        let node = world.nodes[me.index()].as_ref().unwrap();
        let mut told = None;
        let mut see = |fact: Fact| {
            if fact.name == "too_many_crashed" {
                told = Some(fact.value > 0);
            }
        };
        node.facts(&seat, &mut see);
        let warns = node.warnings(&seat).too_many_crashed;
        assert_eq!(told, Some(warns), "what an operator sees");
        warns
    };
    assert!(!hear(&mut world, NodeId(1), 3), "one of five may crash");
    assert!(hear(&mut world, NodeId(2), 4), "two may not");
    world.step(me, Event::Ring(Alarm::LeaseEnd(NodeId(3))));
    let node = world.nodes[me.index()].as_ref().unwrap();
    assert!(node.counted_out().is_empty() && node.crashed().len() == 2);
}

fn play_d4(reclaim: Reclaim) -> World<Weighted> {
    let scenario = scenario("D4");
    let probe = Some(Duration::from_secs(5));
    let mut world = World::new(Pool { reclaim, probe, ..pool(&scenario, None) });
    follow(&mut world, &scenario);
    world
}

/// A client that is told to let go needs a moment for it: until it has, nobody gets what it had.
#[test]
fn what_a_client_must_let_go_is_in_use_until_it_has() {
    for (mutant, in_use_max) in [(None, 1), (Some(Mutant::LoseAtOnce), 2)] {
        let mut world = World::<Weighted>::new(Pool { mutant, ..Pool::timer_free(2, 1, 0) });
        world.request(NodeId(0), 1);
        world.deliver_all();
        world.request(NodeId(1), 1);
        world.deliver_all();
        let message = Message::Expelled { life: 0 };
        world.step(NodeId(0), Event::Hear { from: NodeId(1), message });
        world.deliver_all();
        assert_eq!((world.losses.len(), world.in_use_max), (1, in_use_max), "{mutant:?}");
        world.release(NodeId(0));
        world.deliver_all();
        assert_eq!(world.holders(), [NodeId(1)], "{mutant:?}: what was let go is given on");
    }
}

/// Numbers from the edges, in every field, at a node that waits, holds, or does neither.
#[test]
fn nothing_a_peer_sends_can_stop_a_node() {
    let numbers = [0, 1, 2, 3, u64::from(u32::MAX), u64::MAX / 2, u64::MAX];
    let sets = [NodeSet::new(), [0, 1].into_iter().collect(), [70].into_iter().collect()];
    let mut weighted = World::<Weighted>::new(Pool::timer_free(3, 2, 1));
    let mut raynal = World::<Raynal>::new(Pool::raynal(3, 2));
    for round in 0..3 {
        for &number in &numbers {
            for &other in &numbers {
                for unheard in &sets {
                    let known = Knowledge::from(Known {
                        life: other,
                        unheard: unheard.clone(),
                        crashed: sets[round % 2].iter().map(|node| (node, other)).collect(),
                    });
                    let (query, used) = (Some(other), number as u32);
                    for message in [
                        Message::Request {
                            clock: number,
                            oldest: other,
                            query,
                            known: known.clone(),
                        },
                        Message::Reply { request: Some(number), used, query, known: known.clone() },
                        Message::Reply { request: None, used, query, known: known.clone() },
                        Message::Query { query: number, known: known.clone() },
                        Message::Joined { life: other, clock: number, known: known.clone() },
                        Message::Join { life: number },
                        Message::Expelled { life: number },
                        Message::Notice { known },
                    ] {
                        weighted
                            .step(NodeId(2), Event::Hear { from: NodeId(other as u32), message });
                    }
                }
            }
            for message in
                [Difference::Permit { amount: number }, Difference::Request { clock: number }]
            {
                raynal.step(NodeId(2), Event::Hear { from: NodeId(round as u32), message });
            }
        }
        weighted.request(NodeId(2), 1);
        raynal.request(NodeId(2), 1);
        weighted.release(NodeId(2));
        raynal.release(NodeId(2));
    }
    assert!(!weighted.anomalies.is_empty() && !raynal.anomalies.is_empty());
}
