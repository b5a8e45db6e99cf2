//! What the world promises a participant, promise by promise.

use quorate_core::{Event, Moment, NodeId};

use crate::misfortune::Trouble;
use crate::network::Cut;
use crate::plan::Plan;
use crate::testing::{Deed, Probe, Todo};
use crate::trace::Trace;
use crate::world::{Happening, World};
use crate::{Arrival, Arrivals, Delay, Span};

const MS: u64 = 1_000_000;

/// Three nodes, links of 1 ms, and claims at given times (in ms) that make nodes do their deeds.
fn plan(claims: &[(u64, u32, u32)]) -> Plan {
    let mut plan = Plan::quiet(1, 3, 8);
    let script =
        claims.iter().map(|&(at, node, units)| Arrival { at: at * MS, node, units, hold: 5 * MS });
    plan.workload.arrivals = Arrivals::Script(script.collect());
    plan
}

fn world<'a>(plan: &'a Plan, todo: &'a Todo) -> World<'a, Probe> {
    World::new(plan, todo, true, Trace::default()).unwrap()
}

fn words(world: &World<'_, Probe>, node: usize) -> Vec<String> {
    let seat = world.nodes[node].seat.as_ref().expect("running");
    seat.words().iter().map(ToString::to_string).collect()
}

#[test]
fn effects_wait_behind_a_record_that_is_not_on_disk_also_those_of_later_steps() {
    let mut plan = plan(&[(1, 0, 1), (3, 0, 2)]);
    plan.sync = Span::Constant(10 * MS);
    let todo = vec![
        vec![],
        vec![Deed::Tell(1, 10), Deed::Persist(1), Deed::Tell(1, 11)],
        vec![Deed::Tell(1, 12), Deed::Persist(2), Deed::Tell(1, 13)],
    ];
    let mut world = world(&plan, &todo);
    world.run_until(11 * MS).unwrap();
    assert_eq!(words(&world, 1), ["< n0 10"]);
    assert!(world.nodes[0].disk.as_ref().unwrap().image() == Some(&1));
    // The second record starts its sync when the first is done, and only then tells.
    world.run_until(13 * MS).unwrap();
    assert_eq!(words(&world, 1), ["< n0 10", "< n0 11", "< n0 12"]);
    world.run_until(30 * MS).unwrap();
    assert_eq!(words(&world, 1), ["< n0 10", "< n0 11", "< n0 12", "< n0 13"]);
}

#[test]
fn a_crash_loses_the_unsynced_tail_or_tears_it() {
    for (torn_tail_ppm, images) in [(0, vec![None]), (1_000_000, vec![None, Some(1), Some(2)])] {
        let mut found = Vec::new();
        for seed in 0..40 {
            let mut plan = plan(&[(1, 0, 1)]);
            plan.seed = seed;
            plan.sync = Span::Constant(10 * MS);
            plan.faults.torn_tail_ppm = torn_tail_ppm;
            let todo = vec![vec![], vec![Deed::Persist(1), Deed::Persist(2), Deed::Tell(1, 10)]];
            let mut world = world(&plan, &todo);
            world.run_until(5 * MS).unwrap();
            world.crash(NodeId(0));
            world.run_until(50 * MS).unwrap();
            assert!(words(&world, 1).is_empty(), "what waited is never seen");
            world.restart(NodeId(0), 0).unwrap();
            found.push(world.nodes[0].seat.as_ref().unwrap().record);
        }
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, images);
    }
}

#[test]
fn alarms_ring_on_the_nodes_own_clock_and_never_after_being_disarmed_or_replaced() {
    let plan = plan(&[(10, 0, 1)]);
    let arm = |alarm, ms| Deed::Arm(alarm, ms * MS);
    let todo = vec![
        vec![arm(1, 5), arm(2, 20), arm(3, 20), arm(4, 20)],
        vec![Deed::Disarm(2), arm(3, 30), arm(4, 3)],
    ];
    let mut world = world(&plan, &todo);
    world.nodes[0].clock.set_rate(0, 250_000);
    world.run_until(100 * MS).unwrap();
    let start = world.nodes[0].clock.read(0);
    let seat = world.nodes[0].seat.as_ref().unwrap();
    let rings: Vec<(u64, &str)> = seat
        .seen
        .iter()
        .filter(|(_, what)| what.starts_with("ring"))
        .map(|(at, what)| ((at.0 - start.0) / MS, what.as_str()))
        .collect();
    // The claim comes at 10 ms of true time, which this clock calls 12.5. An alarm never rings
    // early on the clock it was set on; set at the old rate, the first one is late.
    assert_eq!(rings, [(6, "ring 1"), (15, "ring 4"), (42, "ring 3")]);
}

#[test]
fn what_was_on_its_way_to_a_node_that_crashed_is_gone() {
    let plan = plan(&[(1, 0, 1), (10, 0, 1)]);
    let todo = vec![vec![], vec![Deed::Tell(1, 10)]];
    let mut world = world(&plan, &todo);
    world.run_until(MS + MS / 2).unwrap();
    world.crash(NodeId(1));
    world.restart(NodeId(1), 0).unwrap();
    world.run_until(5 * MS).unwrap();
    assert!(words(&world, 1).is_empty());
    world.run_until(20 * MS).unwrap();
    assert_eq!(words(&world, 1), ["< n0 10"]);
    assert_eq!(world.nodes[1].boot, 1);
}

#[test]
fn whoever_heard_a_newer_incarnation_hears_nothing_more_from_an_older_one() {
    let plan = plan(&[]);
    let todo = vec![vec![]];
    let mut world = world(&plan, &todo);
    let hear = |from_boot, word| Happening::Hear {
        purpose: quorate_core::Purpose::Protocol,
        from: NodeId(0),
        from_boot,
        to: NodeId(1),
        to_boot: 0,
        message: crate::testing::Word(word),
    };
    world.crash(NodeId(0));
    world.restart(NodeId(0), 0).unwrap();
    for (at, from_boot, word) in [(2, 0, 1), (3, 1, 2), (4, 0, 3), (5, 1, 4)] {
        world.queue.push(at * MS, hear(from_boot, word));
    }
    world.run_until(9 * MS).unwrap();
    assert_eq!(words(&world, 1), ["< n0 1", "< n0 2", "< n0 4"]);
}

#[test]
fn a_paused_node_hears_everything_later_and_in_order() {
    let mut plan = plan(&[(1, 0, 1), (2, 0, 2)]);
    plan.faults.pauses = None;
    let todo = vec![vec![], vec![Deed::Tell(1, 10)], vec![Deed::Tell(1, 11)]];
    let mut world = world(&plan, &todo);
    world.nodes[1].paused = true;
    world.queue.push(9 * MS, Happening::Trouble(Trouble::Resume { node: NodeId(1), boot: 0 }));
    world.run_until(8 * MS).unwrap();
    assert!(words(&world, 1).is_empty());
    world.run_until(9 * MS).unwrap();
    assert_eq!(words(&world, 1), ["< n0 10", "< n0 11"]);
}

#[test]
fn a_cut_link_drops_or_holds_and_what_was_held_arrives_in_order() {
    for (cuts_hold, heard) in
        [(false, vec!["< n0 12"]), (true, vec!["< n0 10", "< n0 11", "< n0 12"])]
    {
        let mut plan = plan(&[(1, 0, 1), (3, 0, 2), (8, 0, 3)]);
        plan.links.cuts_hold = cuts_hold;
        plan.links.delay = Delay::Everywhere(Span::Uniform { low: MS, high: 2 * MS });
        let todo =
            vec![vec![], vec![Deed::Tell(1, 10)], vec![Deed::Tell(1, 11)], vec![Deed::Tell(1, 12)]];
        let mut world = world(&plan, &todo);
        world.network.cut(7, Cut::OneWay([0].into_iter().collect()));
        world.queue.push(7 * MS, Happening::Trouble(Trouble::Heal { name: 7 }));
        world.run_until(6 * MS).unwrap();
        assert!(words(&world, 1).is_empty());
        world.run_until(20 * MS).unwrap();
        assert_eq!(words(&world, 1), heard);
    }
}

#[test]
fn a_client_keeps_its_units_while_its_home_is_down_and_stops_by_its_own_clock() {
    let mut plan = plan(&[(1, 0, 1)]);
    let Arrivals::Script(script) = &mut plan.workload.arrivals else { unreachable!() };
    script[0].hold = 5_000 * MS;
    let todo = vec![vec![], vec![Deed::Grant]];
    let mut world = world(&plan, &todo);
    world.run_until(2 * MS).unwrap();
    world.crash(NodeId(0));
    world.run_until(900 * MS).unwrap();
    assert_eq!(world.laws.in_use(), 1);
    world.run_until(1_001 * MS).unwrap();
    assert_eq!(world.laws.in_use(), 0);
    assert_eq!(world.measures.cut_short, 1);
}

#[test]
fn a_client_renews_at_about_a_third_of_what_is_left_and_asks_again_after_a_restart() {
    let mut plan = plan(&[(1, 0, 1), (1, 1, 2)]);
    let Arrivals::Script(script) = &mut plan.workload.arrivals else { unreachable!() };
    script[0].hold = 600 * MS;
    let todo = vec![vec![], vec![Deed::Grant], vec![]];
    let mut world = world(&plan, &todo);
    world.run_until(500 * MS).unwrap();
    let seat = world.nodes[0].seat.as_ref().unwrap();
    assert_eq!(seat.words()[..2], ["claim 0.1 h1", "renew 0.1"]);
    let asked = seat.seen[1].0.since(seat.seen[0].0).as_millis();
    assert!((332..=334).contains(&asked), "{asked}");
    // The other client waits; its home restarts, and it says its claim again.
    world.crash(NodeId(1));
    world.restart(NodeId(1), 0).unwrap();
    assert_eq!(words(&world, 1), ["claim 1.1 h2"]);
    // A release while the home is down is said once it is up.
    world.crash(NodeId(0));
    world.run_until(700 * MS).unwrap();
    assert_eq!(world.laws.in_use(), 0);
    world.restart(NodeId(0), 0).unwrap();
    assert_eq!(words(&world, 0), ["release 0.1"]);
}

#[test]
fn opinions_follow_the_truth_with_a_delay() {
    let mut plan = plan(&[]);
    plan.faults.detection = Some(Span::Constant(3 * MS));
    let todo = vec![vec![]];
    let mut world = world(&plan, &todo);
    world.crash(NodeId(2));
    world.run_until(2 * MS).unwrap();
    assert!(words(&world, 0).is_empty());
    world.run_until(4 * MS).unwrap();
    assert_eq!(words(&world, 0), ["suspect n2"]);
    world.restart(NodeId(2), 0).unwrap();
    world.run_until(9 * MS).unwrap();
    assert_eq!(words(&world, 0), ["suspect n2", "trust n2"]);
    // A crash that is over before it is noticed is nobody's opinion.
    world.crash(NodeId(2));
    world.restart(NodeId(2), 1).unwrap();
    world.run_until(20 * MS).unwrap();
    assert_eq!(words(&world, 0).len(), 2);
}

#[test]
fn readings_of_different_nodes_have_nothing_in_common() {
    let plan = plan(&[]);
    let todo = vec![vec![]];
    let mut world = world(&plan, &todo);
    let readings: Vec<Moment> = world.nodes.iter().map(|node| node.clock.read(0)).collect();
    assert!(readings[0] != readings[1] && readings[1] != readings[2]);
    world.step(NodeId(0), Event::Trust(NodeId(1))).unwrap();
    assert_eq!(world.nodes[0].seat.as_ref().unwrap().seen[0].0, readings[0]);
}

#[test]
fn whoever_lost_its_disk_has_forgotten_everything_until_it_persists_again() {
    let mut plan = plan(&[(20, 0, 1)]);
    plan.sync = Span::Constant(5 * MS);
    plan.faults.amnesia_ppm = 1_000_000;
    let todo = vec![vec![Deed::Persist(1)], vec![Deed::Persist(2)]];
    let mut forgetful = world(&plan, &todo);
    forgetful.run_until(10 * MS).unwrap();
    forgetful.crash(NodeId(0));
    forgetful.restart(NodeId(0), 0).unwrap();
    let disk = |world: &World<'_, Probe>| {
        let disk = world.nodes[0].disk.as_ref().expect("a disk");
        (disk.is_lost(), disk.image().copied())
    };
    assert_eq!(disk(&forgetful), (true, None));
    forgetful.run_until(22 * MS).unwrap();
    forgetful.crash(NodeId(0));
    assert_eq!(disk(&forgetful), (true, None), "the record was not synced");
    forgetful.restart(NodeId(0), 1).unwrap();
    forgetful.run_until(40 * MS).unwrap();
    assert_eq!(disk(&forgetful), (false, Some(2)));
}
