//! Section 3: the controller, the circulation, and their lines.

use quorate_protocols::reference::ring::{Atlas, Erratum, Track, Wander, from_start, tiny};
use quorate_protocols::ring::{Count, Machine, Message, StationClaim};

use super::{Chance, Core, MOST, SMALL, idle, printed, ring, without};
use crate::{Found, Grid, Pace, Tally};

crate::registered![
    the_count_is_kept,
    only_root_counts,
    traversals_begin_at_root,
    a_new_number_each_time,
    a_stale_controller_at_root,
    counters_stop_too_early,
    what_leaves_root_is_counted,
    an_early_timeout,
    the_controller_goes_on,
    reports_are_passed_on,
    a_claim_of_nothing,
    surplus_is_flushed,
    the_pool_is_bounded,
    collect_is_sent,
    locked_by_real_tokens,
    tokens_in_use_are_counted,
    domains_of_variables,
    hold_and_wait_deadlocks,
    when_tokens_can_block,
    enough_is_collected,
    distribution_serves_somebody,
    whose_turn_it_is,
    a_satisfied_requester,
    swallowing_adds,
    nothing_is_lost,
    reports_come_before_the_controller,
    withdrawals_give_up_the_turn,
    no_deadlock_with_preemption,
    nobody_starves,
    nothing_extra_is_kept,
];

fn surplus(track: &mut Track<Core>) {
    track.links[1].push_back(Message::Token(Count(1)));
}

/// A repair taken out is found, and with it the same search finds nothing.
fn needed(broken: bool, right: bool, text: String) -> Found {
    let mut corrected = Tally::new();
    corrected.case(right, || "the repaired ring".into());
    Found::corrected_if(broken, &corrected, text)
}

fn the_count_is_kept(_: Pace) -> Found {
    let e2 = idle(without(tiny(1, 1, 4), Erratum::E2), 2, surplus).never_converges();
    let e3 = printed(2, &[1, 2, 0], Erratum::E3);
    let e6 = idle(without(tiny(1, 1, 4), Erratum::E6), 2, surplus).never_converges();
    let fixed = idle(tiny(1, 1, 4), 2, surplus);
    let right = !fixed.never_converges() && ring(2, &[1, 2, 0]).all_good();
    needed(
        e2 && !e3.all_good() && e6,
        right,
        format!(
            "As printed it loses and invents tokens: a surplus of free ones is never seen (E2) \
             or survives (E6), and from a right start {} of 2 units are used (E3). Repaired, a \
             surplus is gone for good in all {} states.",
            e3.in_use_max(),
            fixed.len()
        ),
    )
}

fn only_root_counts(_: Pace) -> Found {
    let others = Track::<Core>::started(tiny(5, 2, 4), 4);
    let none = others.stations[1..].iter().all(|station| station.root.is_none());
    let flush = idle(without(tiny(1, 1, 4), Erratum::E6), 2, surplus).never_converges();
    needed(
        flush && none,
        !idle(tiny(1, 1, 4), 2, surplus).never_converges(),
        "Only Root has counters: no other station has any. They are not all: without one bit more, \
         that a flush is under way, a surplus never ends (E6)."
            .into(),
    )
}

fn traversals_begin_at_root(_: Pace) -> Found {
    let mut track = Track::<Core>::started(tiny(2, 2, 64), 5);
    let first = track.stations[0].station().seq;
    for _ in 0..50 {
        track.round(&mut |_| {});
    }
    let begun = track.stations[0].station().seq - first;
    Found::if_so(
        begun >= 9,
        format!("Five stations, 50 rounds: Root began {begun} more traversals."),
    )
}

fn a_new_number_each_time(_: Pace) -> Found {
    let mut track = Track::<Core>::started(tiny(1, 1, 8), 3);
    let before = track.stations[0].station().seq;
    track.links.iter_mut().for_each(|link| link.clear());
    track.step(0, |root, terms, out| root.timeout(terms, out));
    let sent = track.links[0].iter().find_map(|message| match message {
        Message::Controller(seq) => Some(*seq),
        _ => None,
    });
    Found::if_so(
        sent.is_some_and(|seq| seq != before),
        format!(
            "The timeout A_c3 sends the present number {before} again ({sent:?}), as its text \
             says; only A_c1 takes a new one. That does no harm (RING-Ac3)."
        ),
    )
}

fn a_stale_controller_at_root(_: Pace) -> Found {
    let mut track = Track::<Core>::started(tiny(1, 1, 8), 3);
    let stale = (track.stations[0].station().seq + 3) % 8;
    track.links[2].push_front(Message::Controller(stale));
    track.links[2].push_back(Message::Enabled(Count(1)));
    track.deliver(0);
    let next = matches!(track.links[2].front(), Some(Message::Enabled(_)));
    // Literally no action takes it, so that nothing behind it is ever heard.
    let actions = |seq: u64, own: u64| usize::from(seq == own);
    needed(
        actions(stale, track.stations[0].station().seq) == 0,
        next,
        "No printed action receives it, so it would stay at the head of its link for ever. \
         Discarded, the link moves on."
            .into(),
    )
}

fn counters_stop_too_early(_: Pace) -> Found {
    let broken = idle(without(tiny(1, 1, 4), Erratum::E2), 2, surplus);
    let fixed = idle(tiny(1, 1, 4), 2, surplus);
    needed(
        broken.never_converges(),
        !fixed.never_converges(),
        format!(
            "Stopping at l, one free token too many is counted as l for ever ({} states); \
             stopping at l+1 it is seen and ends ({} states). Which of the two counters \
             COUNT-ET adds to makes no difference, as only their sum is used.",
            broken.len(),
            fixed.len()
        ),
    )
}

fn what_leaves_root_is_counted(_: Pace) -> Found {
    let broken = printed(2, &[1, 2, 0], Erratum::E3);
    let fixed = ring(2, &[1, 2, 0]);
    needed(
        !broken.all_good() && broken.in_use_max() > 2,
        fixed.all_good(),
        format!(
            "Counting what arrives, Root makes tokens that are there: {} of 2 units in use \
             from a right start. Counting what leaves it, and what it holds at the next START: \
             always l tokens in {} states.",
            broken.in_use_max(),
            fixed.len()
        ),
    )
}

fn an_early_timeout(pace: Pace) -> Found {
    let mut cases = Tally::new();
    for seed in 0..pace.pick(10, 100) {
        let mut chance = Chance(seed);
        let mut terms = tiny(2, 2, 64);
        terms.seqs = 1 << 20;
        let track = Track::<Core>::started(terms, 4);
        let mut draw = |n| chance.below(n);
        let mut wander = Wander::new(track, &mut draw);
        wander.premature = 20;
        let mut safe = true;
        for _ in 0..4000 {
            wander.step();
            safe &= wander.track.in_use() <= 2;
        }
        cases.case(safe && wander.everyone_is_served(), || format!("seed {seed}"));
    }
    Found::all(
        &cases,
        "runs in which Root loses patience again and again: never more than l in use, all served",
    )
}

fn the_controller_goes_on(_: Pace) -> Found {
    let lost = |track: &mut Track<Core>| {
        track.links[0].clear();
        track.stations[1].station.seq = track.stations[0].station.seq;
    };
    let broken = idle(without(tiny(1, 1, 4), Erratum::E12), 2, lost);
    let fixed = idle(tiny(1, 1, 4), 2, lost);
    needed(
        broken.never_converges(),
        !fixed.never_converges(),
        "If it is sent on only when its number is new, a lost controller token is never \
         replaced; sent on always, it is (both readings of the indentation, every \
         interleaving)."
            .into(),
    )
}

fn reports_are_passed_on(_: Pace) -> Found {
    let mut track = Track::<Core>::new(tiny(3, 3, 4), 3);
    track.links[0].push_back(Message::Enabled(Count(1)));
    track.deliver(1);
    let passed = track.links[1].front() == Some(&Message::Enabled(Count(1)));
    Found::if_so(
        passed,
        "A report that reaches a station is on its next link afterwards, unchanged.",
    )
}

fn a_claim_of_nothing(_: Pace) -> Found {
    // The printed guard needs a token, and a claim of none gets none.
    let guard =
        |held: u32, disabled: u32, need: u32| held + disabled > 0 && held - disabled >= need;
    let never = !guard(0, 0, 0);
    let served = ring(2, &[1, 2]);
    needed(
        never,
        served.starves().is_none(),
        "NEED may be 0 as printed, and such a request is never granted, as it has no token to \
         act on. Claims of 1 to K are (every interleaving)."
            .into(),
    )
}

fn surplus_is_flushed(_: Pace) -> Found {
    let broken = idle(without(tiny(1, 1, 4), Erratum::E6), 2, surplus);
    let fixed = idle(tiny(1, 1, 4), 2, surplus);
    needed(
        broken.never_converges(),
        !fixed.never_converges(),
        format!(
            "Sending Disable alone, free tokens survive it and the surplus never ends; if Root \
             discards what comes until the next START, it does ({} states).",
            fixed.len()
        ),
    )
}

/// The largest value of something over all states of small rings.
fn largest(of: impl Fn(&Track<Core>) -> u32) -> Vec<(u32, &'static [u32], u32)> {
    SMALL
        .iter()
        .map(|(units, needs)| {
            let atlas = ring(*units, needs);
            let most = (0..atlas.len()).map(|state| of(&atlas.track(state))).max().unwrap_or(0);
            (*units, *needs, most)
        })
        .collect()
}

fn pool(track: &Track<Core>) -> u32 {
    track.stations[0].root.as_ref().map_or(0, |root| root.collected.0 + root.left_over.0)
}

fn the_pool_is_bounded(_: Pace) -> Found {
    let mut cases = Tally::new();
    for (units, needs, most) in largest(pool) {
        let k = needs.iter().copied().max().unwrap_or(1);
        cases.case(most <= (2 * k).min(units), || format!("{units} units, {needs:?}: {most}"));
    }
    Found::all(
        &cases,
        "small rings: collected and left over never exceed min(2 MaxV_c, l) from a right start",
    )
}

fn collect_is_sent(_: Pace) -> Found {
    let mut track = Track::<Core>::started(tiny(2, 2, 8), 3);
    let mut seen = 0;
    for _ in 0..30 {
        track.round(&mut |_| {});
        let empty = |m: &&Message<Count>| matches!(m, Message::Collect(count) if count.0 == 0);
        seen += track.links[0].iter().filter(empty).count();
    }
    Found::if_so(
        seen >= 9,
        format!("Three stations, 30 rounds: {seen} collections left Root, all empty."),
    )
}

fn locked_by_real_tokens(_: Pace) -> Found {
    let stuck = |terms| {
        let (start, wants) = (Track::<Core>::started(terms, 2), [vec![2], vec![2]]);
        Atlas::explore(vec![start], &wants, false, MOST).expect("it is small enough").trap()
    };
    let broken = stuck(without(tiny(2, 2, 2), Erratum::E4)).is_some();
    needed(
        broken,
        stuck(tiny(2, 2, 2)).is_none(),
        "Two stations that both ask for 2 of 2: testing T_h, one waits with disabled tokens \
         and is never collected, and nothing can ever be granted; testing T_h - T_d there is \
         no such state."
            .into(),
    )
}

/// Most units in use if a surplus token turns up while all units are used.
fn most_used(fixed: bool) -> u64 {
    let terms = if fixed { tiny(2, 2, 4) } else { without(tiny(2, 2, 4), Erratum::E7) };
    let mut start = Track::<Core>::started(terms, 3);
    start.step(1, |machine, terms, out| machine.request(terms, 2, out));
    (0..3).for_each(|_| start.round(&mut |_| {}));
    start.links[1].push_back(Message::Token(Count(1)));
    let wants = [vec![], vec![], vec![2]];
    Atlas::explore(vec![start], &wants, false, MOST).expect("it is small enough").in_use_max()
}

fn tokens_in_use_are_counted(_: Pace) -> Found {
    let (broken, fixed) = (most_used(false), most_used(true));
    needed(
        broken > 2,
        fixed == 2,
        format!(
            "All 2 units in use and one token too many: Disable revokes tokens in use, Root \
             makes new ones, and {broken} units are in use; if a station reports what it uses, \
             never more than {fixed}."
        ),
    )
}

fn domains_of_variables(_: Pace) -> Found {
    let (mut printed_domain, mut right) = (Tally::new(), Tally::new());
    let nominal = |track: &Track<Core>| {
        track.stations.iter().map(|m| m.station().nominal()).max().unwrap_or(0)
    };
    for (units, needs, most) in largest(nominal) {
        let k = needs.iter().copied().max().unwrap_or(1);
        let name = || format!("{units} units, {needs:?}: T_h up to {most}");
        printed_domain.case(most <= k, name);
        right.case(most <= k, name);
    }
    // The counters must be able to say l+1.
    let early = idle(without(tiny(1, 1, 4), Erratum::E2), 2, surplus).never_converges();
    printed_domain.case(!early, || "C_e and C_f up to l: a surplus is never seen".into());
    let fixed = idle(tiny(1, 1, 4), 2, surplus).never_converges();
    right.case(!fixed, || "C_e and C_f up to l+1".into());
    Found::corrected(
        &printed_domain,
        "variables with their printed domains",
        &right,
        "variables, with C_e and C_f up to l+1",
    )
}

fn hold_and_wait_deadlocks(_: Pace) -> Found {
    // Two requesters of 2 units each, 2 tokens handed out one by one to whoever asks.
    let mut stuck = 0;
    let mut all = 0;
    for first in 0..2 {
        for second in 0..2 {
            let mut held = [0, 0];
            held[first] += 1;
            held[second] += 1;
            all += 1;
            stuck += usize::from(held.iter().all(|held| *held < 2));
        }
    }
    Found::if_so(
        stuck == 2,
        format!(
            "Two stations that keep tokens until they have 2 of 2: {stuck} of {all} ways to \
             hand them out are stuck."
        ),
    )
}

fn when_tokens_can_block(pace: Pace) -> Found {
    fn vectors(l: u32, left: usize, needs: &mut Vec<u32>, cases: &mut Tally) {
        if !needs.is_empty() {
            // A blocking distribution: all l tokens are out, and everybody lacks one at least.
            let most: u32 = needs.iter().map(|need| need - 1).sum();
            let blocked = most >= l;
            let (alpha, beta) = (needs.len() as u32, needs.iter().sum::<u32>());
            cases.case(blocked == (beta >= l + alpha), || format!("l={l} {needs:?}"));
        }
        if left > 0 {
            for need in needs.last().copied().unwrap_or(1)..=l {
                needs.push(need);
                vectors(l, left - 1, needs, cases);
                needs.pop();
            }
        }
    }
    let mut cases = Tally::new();
    for l in 1..=pace.pick(6, 8) {
        vectors(l, pace.pick(4, 5), &mut Vec::new(), &mut cases);
    }
    Found::all(
        &cases,
        "vectors of needs: all tokens can be out with everybody short of one iff beta >= l + alpha",
    )
}

fn enough_is_collected(_: Pace) -> Found {
    let mut cases = Tally::new();
    for (units, needs) in [(2u32, [2u32, 2]), (3, [3, 3]), (3, [2, 3])] {
        let atlas = ring(units, &needs);
        let k = needs.iter().copied().max().unwrap_or(1);
        for state in 0..atlas.len() {
            let track = atlas.track(state);
            let short = |m: &Core| {
                let station = m.station();
                station.is_requesting() && station.held.0 < station.need()
            };
            let held: u32 = track.stations.iter().map(|m| m.station().held.0).sum();
            if held == units && track.stations.iter().all(short) {
                // All tokens lie with those who lack some: one collection takes min(l, MaxV_c).
                cases.case(held.min(track.terms.collect_max) >= k, || format!("{needs:?}"));
            }
        }
    }
    Found::all(
        &cases,
        "deadlocked states of small rings: the collection that comes next takes K or more",
    )
}

fn distribution_serves_somebody(_: Pace) -> Found {
    let mut cases = Tally::new();
    let mut taken = 0u64;
    for (units, needs) in [(2u32, [2u32, 2]), (3, [3, 3])] {
        let atlas = ring(units, &needs);
        for state in 0..atlas.len() {
            let mut track = atlas.track(state);
            let Some(Message::Allocate { tokens, order }) = track.links[0].front().cloned() else {
                continue;
            };
            let before = track.stations[1].station().clone();
            let first = before.turn != order;
            let lacks = before.need().saturating_sub(before.held.0);
            track.deliver(1);
            let after = track.stations[1].station();
            if !before.is_requesting() {
                cases.case(after.held == before.held, || format!("{before:?}"));
            } else if tokens.0 >= lacks {
                // Enough: the privileged one and whoever waits takes it.
                let takes = after.in_use() == before.need();
                cases.case(takes == (first || before.disabled > 0), || format!("{before:?}"));
                taken += u64::from(takes);
            } else {
                // Not enough: only the privileged one takes it.
                cases.case((after.held.0 > before.held.0) == first, || format!("{before:?}"));
            }
        }
    }
    Found::all(&cases, "distributions that reach a station, in every state").and(format!(
        "{taken} serve it: the privileged one takes what there is, whoever waits only what is \
         enough."
    ))
}

fn whose_turn_it_is(_: Pace) -> Found {
    // Footnote 2, on all settings of the order bits of up to four stations (bit 0 is Root's).
    let (mut both, mut code) = (Tally::new(), Tally::new());
    for size in 2..=4u32 {
        for bits in 0..1u32 << size {
            let bit = |i: u32| bits >> i & 1;
            let equal = (1..size).find(|i| bit(*i) == bit(0));
            let all = (1..size).all(|i| bit(i) == bit(0));
            let name = || format!("orders {bits:0width$b}", width = size as usize);
            // Its first sentence and its second must not name two different stations.
            both.case(!(all && equal.is_some()), name);
            let differs = (1..size).find(|i| bit(*i) != bit(0));
            code.case(all == differs.is_none(), name);
        }
    }
    let served = ring(2, &[2, 2]).starves().is_none();
    Found::corrected(
        &both,
        "settings of the order bits, footnote 2 against itself",
        &code,
        "settings, privileged is the first that differs from Root, and Root if none does",
    )
    .only_if(served, "So it is in A_l9, and nobody starves.")
}

fn a_satisfied_requester(_: Pace) -> Found {
    let mut cases = Tally::new();
    for (units, needs) in SMALL {
        let atlas = ring(units, needs);
        for state in 0..atlas.len() {
            for machine in &atlas.track(state).stations {
                let station = machine.station();
                if station.is_requesting() {
                    cases.case(station.held.0 < station.need(), || format!("{station:?}"));
                }
            }
        }
    }
    Found::all(
        &cases,
        "requesters in every state: none has all it needs, so the branch that would lose a \
         token is never taken",
    )
}

fn swallowing_adds(_: Pace) -> Found {
    let broken = from_start::<Core>(without(tiny(3, 3, 2), Erratum::E5), &[3, 3], MOST);
    let fixed = from_start::<Core>(tiny(3, 3, 2), &[3, 3], MOST);
    needed(
        !broken.all_good(),
        fixed.all_good(),
        format!(
            "As printed the tokens already held are lost when a distribution is swallowed: not \
             always l tokens, though safe (at most {} of 3 in use). Added instead: always l in \
             {} states.",
            broken.in_use_max(),
            fixed.len()
        ),
    )
}

fn nothing_is_lost(_: Pace) -> Found {
    let mut cases = Tally::new();
    for (units, needs) in SMALL {
        let atlas = ring(units, needs);
        for state in 0..atlas.len() {
            cases.case(atlas.track(state).tokens() == u64::from(units), || format!("{needs:?}"));
        }
    }
    Found::all(
        &cases,
        "states: held, free, collected, handed out and left-over tokens are l together",
    )
}

fn reports_come_before_the_controller(_: Pace) -> Found {
    let mut cases = Tally::new();
    for (units, needs) in SMALL {
        let atlas = ring(units, needs);
        for state in 0..atlas.len() {
            let track = atlas.track(state);
            // When the controller is next at Root, no report is behind it in any link.
            let at_root = |link: usize| {
                matches!(track.links[link].front(), Some(Message::Controller(seq))
                    if *seq == track.stations[0].station().seq)
            };
            let last = track.size() - 1;
            if at_root(last) {
                let report = |m: &Message<Count>| matches!(m, Message::Enabled(_));
                let late = track.links.iter().flatten().any(report);
                cases.case(!late, || format!("{needs:?}"));
            }
        }
    }
    Found::all(&cases, "states with the controller at Root's door: every report has arrived")
}

fn withdrawals_give_up_the_turn(_: Pace) -> Found {
    let broken = printed(2, &[2, 2, 2], Erratum::E13).starves();
    let fixed = ring(2, &[2, 2, 2]).starves();
    needed(
        broken.is_some(),
        fixed.is_none(),
        "Not if requests may be withdrawn: one that asks and withdraws again and again keeps \
         the turn, and another starves. If withdrawing gives the turn up, nobody does (three \
         stations, every interleaving)."
            .into(),
    )
}

fn no_deadlock_with_preemption(pace: Pace) -> Found {
    locked_by_real_tokens(pace)
}

fn nobody_starves(pace: Pace) -> Found {
    let (lock, turn) = (locked_by_real_tokens(pace), withdrawals_give_up_the_turn(pace));
    let same = lock.verdict == turn.verdict;
    lock.and(&turn.text).only_if(same, "With both repairs nobody starves.")
}

fn nothing_extra_is_kept(_: Pace) -> Found {
    let mut cases = Tally::new();
    for (units, needs) in SMALL {
        let atlas = ring(units, needs);
        for state in 0..atlas.len() {
            for machine in &atlas.track(state).stations {
                let station = machine.station();
                let right = match station.standing {
                    StationClaim::Out => station.nominal() == 0,
                    StationClaim::Using { .. } => station.held.0 == station.need(),
                    StationClaim::Requesting { .. } => continue,
                };
                cases.case(right, || format!("{station:?}"));
            }
        }
    }
    let mut grid = Grid::new(&["where", "tokens kept"]);
    grid.row(&[&"outside", &"none"]);
    grid.row(&[&"inside", &"as many as are used"]);
    Found::all(&cases, "stations inside or outside, in every state: none keeps more than it uses")
        .with(grid)
}
