//! Sections 1 and 2.2: the problem, and what is said about algorithms in general.

use crate::brute::{availability, crashes_survived, listed, masks, symmetric};
use crate::found::grouped;
use crate::handlers::{Claim, Ledger, Queue, Scheme};
use crate::k_arbiter::scheme::piecemeal;
use crate::{Found, Grid, Pace, Tally};

crate::registered![
    mixed_sizes,
    quorums_that_form_an_arbiter_are_safe,
    crashes_are_not_detected,
    kinds_of_algorithms,
    quorum_algorithms_go_on,
    permission_of_every_member,
    liveness_is_left_outside,
    symmetric_families_share_the_work,
    any_delay,
    channels_in_order,
    no_clock,
    all_at_once,
    the_sum_stays_below_k,
    everybody_is_served_in_the_end,
    conflicts_are_seen,
    special_cases,
    asking_for_all_at_once,
];

/// One arbiter, claims at different processes.
pub(super) fn central(units: u32, sizes: &[u32]) -> Scheme {
    let claims = sizes.iter().enumerate().map(|(i, h)| Claim::new(i as u8, *h, 1)).collect();
    Scheme::new(units, 1, claims)
}

/// Claims at different processes with quorums of a family, one after the other.
pub(super) fn through(family: &[u32], arbiters: u8, units: u32, sizes: &[u32]) -> Scheme {
    let quorum = |i: usize| family[i % family.len()];
    let claim = |(i, h): (usize, &u32)| Claim::new(i as u8, *h, quorum(i));
    Scheme::new(units, arbiters, sizes.iter().enumerate().map(claim).collect())
}

fn mixed_sizes(_: Pace) -> Found {
    let (k, sizes) = (3, [2, 1]);
    let together = central(k, &sizes).explore();
    // A lock: every claim takes the whole pool.
    let locked = central(k, &[k, k]).explore();
    let (pieces, stuck) = piecemeal(3, 3, 2);
    let so = together.most == 3 && together.broken.is_none() && locked.most == 3 && stuck > 0;
    Found::if_so(
        so,
        format!(
            "Three units, claims of 2 and 1: as requests of their size both are inside at once in \
             some of {} states; behind one lock each would have to take all 3, so never; as single \
             permits, claims of 3 and 2 get stuck in {stuck} of {pieces} splits.",
            together.states
        ),
    )
}

fn quorums_that_form_an_arbiter_are_safe(pace: Pace) -> Found {
    let mut safe = Tally::new();
    let mut states = 0;
    let worlds: &[(&str, usize, usize, &[u32])] = &[
        ("uniform", 3, 1, &[1, 1, 1]),
        ("uniform", 3, 2, &[2, 1, 1]),
        ("uniform", 4, 2, &[2, 2]),
        ("singleton", 2, 3, &[3, 2, 1]),
        ("grid", 4, 1, &[1, 1]),
    ];
    for (spec, nodes, units, sizes) in &worlds[..pace.pick(4, 5)] {
        let family = masks(&listed(spec, *nodes, *units));
        let found = through(&family, *nodes as u8, *units as u32, sizes).explore();
        states += found.states;
        safe.case(found.broken.is_none(), || format!("{spec} n={nodes} k={units}"));
    }
    // Each correction taken out again.
    let apart = through(&[0b01, 0b10], 2, 2, &[2, 2]).explore();
    let twice = scheme_with_two_requests(Ledger::PerProcess).explore();
    let refuted = apart.broken.is_some() && twice.broken.is_some();
    Found::corrected_if(
        refuted,
        &safe,
        format!(
            "With one entry per request and quorums any k+1 of which (repeated or not) meet: {} \
             over {} states. Without the repetition, {{1}} {{2}} passes for k=2 and {} units are \
             in use; with one number per process, {} of 2.",
            safe.words("worlds explored"),
            grouped(states),
            apart.most,
            twice.most
        ),
    )
}

/// A process with two requests under way, beside another process: k = 2.
pub(super) fn scheme_with_two_requests(ledger: Ledger) -> Scheme {
    let claims = vec![Claim::new(0, 1, 1), Claim::new(0, 1, 1), Claim::new(1, 2, 1)];
    Scheme { ledger, ..Scheme::new(2, 1, claims) }
}

fn kinds_of_algorithms(_: Pace) -> Found {
    Found::not_computable(
        "A classification of the literature. Both kinds are here: protocol ring passes tokens, the \
         others give permissions.",
    )
}

fn crashes_are_not_detected(_: Pace) -> Found {
    Found::not_computable(
        "An assumption about the world. Here nobody is told of a crash: leases, and asking other \
         quorums, take the place of detection; the tests of `arbiter` explore that.",
    )
}

fn quorum_algorithms_go_on(_: Pace) -> Found {
    let mut grid = Grid::new(&["family", "n", "k", "crashes survived", "available at 0.9"]);
    let (mut some, mut none) = (0, 0);
    let mut halves = Tally::new();
    for (spec, nodes, units) in [
        ("singleton", 5, 1),
        ("universe", 5, 1),
        ("majority", 5, 1),
        ("plane", 7, 1),
        ("grid", 9, 1),
        ("uniform", 7, 2),
        ("cube", 8, 2),
        ("tree", 7, 1),
    ] {
        let family = masks(&listed(spec, nodes, units));
        let survived = crashes_survived(nodes, &family);
        if survived > 0 {
            some += 1
        } else {
            none += 1
        }
        let all = (1u32 << nodes) - 1;
        for side in 0..=all {
            let alive = |part| crate::brute::survives(&family, part);
            halves.case(!(alive(side) && alive(all & !side)), || format!("{spec} {side:b}"));
        }
        let up = format!("{:.4}", availability(nodes, &family, 0.9));
        grid.row(&[&spec, &nodes, &units, &survived, &up]);
    }
    Found::corrected_if(
        none > 0,
        &halves,
        format!(
            "It depends on the family: {some} of {} survive a crash wherever it is, {none} do not \
             (one node is in every quorum). Of a partition in two at most one side goes on: {}.",
            some + none,
            halves.words("ways to cut eight families in two")
        ),
    )
    .with(grid)
    .by("quorate-lab quorum report --family uniform --nodes 7 --units 2")
}

fn permission_of_every_member(_: Pace) -> Found {
    let family = masks(&listed("majority", 3, 1));
    let world = through(&family, 3, 1, &[1]);
    let found = world.explore();
    // Every way to the inside leads over both members' permissions; every way out frees both.
    let then = central(1, &[1, 1]);
    let then = Scheme { queue: Queue::Strict, ..then }.explore();
    let so = found.most == 1 && then.deadlock.is_none() && then.most == 1;
    Found::if_so(
        so,
        format!(
            "All {} histories' states of one claim on a majority of three: it enters after the \
             permissions of both members and not before, and leaves with a release to each; a \
             second claim enters only after it ({} states).",
            found.states, then.states
        ),
    )
}

fn liveness_is_left_outside(_: Pace) -> Found {
    let crossed = crossed_requests().explore();
    let story = crossed.deadlock.unwrap_or_default();
    Found::if_so(
        !story.is_empty() && crossed.broken.is_none(),
        format!(
            "The printed handlers are safe and deadlock: {}. Quorate adds preemption.",
            story.join(", ")
        ),
    )
    .by("quorate-lab check --protocol arbiter --nodes 3 --units 1 --claims 2")
}

/// Two claims for one unit, both of both arbiters.
pub(super) fn crossed_requests() -> Scheme {
    Scheme::new(1, 2, vec![Claim::new(0, 1, 0b11), Claim::new(1, 1, 0b11)])
}

fn symmetric_families_share_the_work(_: Pace) -> Found {
    let mut cases = Tally::new();
    for (spec, nodes, units) in
        [("majority", 5, 1), ("plane", 7, 1), ("grid", 9, 1), ("uniform", 7, 2), ("cube", 8, 2)]
    {
        let family = masks(&listed(spec, nodes, units));
        let Some((beta, gamma)) = symmetric(nodes, &family) else {
            cases.case(false, || format!("{spec} is not symmetric"));
            continue;
        };
        for node in 0..nodes {
            let asked = family.iter().filter(|q| **q >> node & 1 == 1).count();
            cases.case(asked == beta, || format!("{spec}: node {node}"));
        }
        for quorum in &family {
            let messages = quorate_quorum::bounds::messages(quorum.count_ones() as usize);
            let even = messages == quorate_quorum::bounds::messages(gamma);
            cases.case(even, || format!("{spec}: {quorum:b}"));
        }
    }
    Found::all(
        &cases,
        "nodes and quorums of five symmetric families: each node is asked by the same share of \
         quorums, each request costs the same number of messages",
    )
}

fn any_delay(_: Pace) -> Found {
    let found = through(&masks(&listed("majority", 3, 1)), 3, 1, &[1, 1]).explore();
    Found::if_so(
        found.states > 100 && found.broken.is_none(),
        format!(
            "The model of section 3.1 delivers what is under way in any order that links allow: \
             two claims on a majority of three have {} states, all safe.",
            found.states
        ),
    )
    .by("quorate-lab check --protocol arbiter --nodes 3 --units 1 --claims 2")
}

fn channels_in_order(_: Pace) -> Found {
    let one = |ledger, fifo| {
        // One process asks twice, one request after the other; another beside it.
        let claims = vec![Claim::new(0, 1, 1), Claim::new(0, 1, 1).after(0), Claim::new(1, 2, 1)];
        Scheme { ledger, fifo, ..Scheme::new(2, 1, claims) }.explore()
    };
    let printed = one(Ledger::PerProcess, true);
    let reordered = one(Ledger::PerProcess, false);
    let repaired = one(Ledger::PerRequest, false);
    let mut corrected = Tally::new();
    corrected.case(repaired.broken.is_none() && repaired.deadlock.is_none(), || "it".into());
    let story = reordered.broken.clone().unwrap_or_default();
    Found::corrected_if(
        reordered.broken.is_some() && printed.broken.is_none(),
        &corrected,
        format!(
            "Order is needed by the printed counters only: in order at most {} of 2 units are in \
             use; if a release may be overtaken, {} ({}). With one entry per request at most {} in \
             any order ({} states).",
            printed.most,
            reordered.most,
            story.join(", "),
            repaired.most,
            repaired.states
        ),
    )
    .by("quorate-lab check --protocol arbiter --nodes 2 --units 1 --claims 2 --network reordering")
}

fn no_clock(_: Pace) -> Found {
    let found = central(2, &[2, 1, 1]).explore();
    Found::if_so(
        found.broken.is_none(),
        format!(
            "No step of the model reads a clock, and none is ever slower than another may be: all \
             {} states of three claims are safe. Leases, which Quorate adds, assume a bound on \
             drift.",
            found.states
        ),
    )
}

fn all_at_once(_: Pace) -> Found {
    let found = central(3, &[2, 3, 1]).explore();
    Found::if_so(
        found.broken.is_none() && found.deadlock.is_none() && found.most == 3,
        format!(
            "Claims of 2, 3 and 1 units of 3 at one arbiter: in {} states everybody waits for all \
             it asked for, uses it and gives all of it back; at most {} units are in use.",
            found.states, found.most
        ),
    )
}

fn the_sum_stays_below_k(pace: Pace) -> Found {
    let mut cases = Tally::new();
    let mut states = 0;
    for k in 1..=pace.pick(3, 4) {
        for a in 1..=k {
            for b in 1..=k {
                for c in 1..=b {
                    let found = central(k, &[a, b, c]).explore();
                    states += found.states;
                    cases.case(found.most <= k, || format!("k={k}: {a},{b},{c}"));
                }
            }
        }
    }
    Found::all(&cases, "worlds of three claims at one arbiter")
        .and(format!("{} states. The sum does not say which unit is whose.", grouped(states)))
}

fn everybody_is_served_in_the_end(_: Pace) -> Found {
    let strict = Scheme { queue: Queue::Strict, again: true, ..central(2, &[2, 1, 1]) }.explore();
    let crossed = crossed_requests().explore();
    Found::if_so(
        strict.starved.is_none() && strict.deadlock.is_none() && crossed.deadlock.is_some(),
        format!(
            "Both ways to miss it are told apart by search: one arbiter that serves the oldest \
             first has neither a dead end nor a cycle that passes somebody over ({} states); two \
             arbiters with the printed handlers have a dead end.",
            strict.states
        ),
    )
}

fn conflicts_are_seen(_: Pace) -> Found {
    let (mut conflicts, mut all) = (0u64, Tally::new());
    for k in 1..=4u32 {
        for used in 0..=k {
            for a in 1..=k {
                for b in 1..=k {
                    let conflict = a + b > k - used;
                    conflicts += u64::from(conflict);
                    // Who fits now is served; if both are, they did not ask for more than is free.
                    let served = if used + a <= k { a } else { 0 };
                    let both = served == a && used + a + b <= k;
                    all.case(conflict != both, || format!("k={k} used={used}: {a},{b}"));
                }
            }
        }
    }
    Found::all(&all, "moments of an arbiter with two requests").and(format!(
        "{conflicts} of them are conflicts: exactly those in which it must let somebody wait."
    ))
}

fn special_cases(_: Pace) -> Found {
    let mut cases = Tally::new();
    for k in 1..=3u32 {
        // h = 1: at most k processes inside; k = 1: at most one.
        let found = central(k, &[1, 1, 1, 1]).explore();
        cases.case(found.most == k.min(4) && found.deadlock.is_none(), || format!("k={k}"));
    }
    Found::all(&cases, "pools of 1, 2 and 3 units with four claims of one unit: exactly k inside")
}

fn asking_for_all_at_once(_: Pace) -> Found {
    let (splits, stuck) = piecemeal(2, 2, 2);
    let one = central(2, &[2, 2]).explore();
    let two = Scheme::new(2, 2, vec![Claim::new(0, 2, 0b11), Claim::new(1, 2, 0b11)]).explore();
    let mut corrected = Tally::new();
    corrected.case(one.deadlock.is_none(), || "one arbiter".into());
    let story = two.deadlock.clone().unwrap_or_default();
    Found::corrected_if(
        two.deadlock.is_some() && stuck > 0,
        &corrected,
        format!(
            "Two claims of 2 on 2 units: one by one, {stuck} of {splits} splits are stuck; all at \
             once at one arbiter none of {} states is. It is not enough with two arbiters: {}.",
            one.states,
            story.join(", ")
        ),
    )
}
