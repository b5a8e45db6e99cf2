//! Sections 1 and 2: the model, the definitions, composition.

use quorate_protocols::reference::ring::{Track, Wander, Wandered};
use quorate_protocols::ring::{Count, Machine, Message, Role, Stabilizing, Terms};

use super::{Chance, Core, SMALL, idle, occupied, ring};
use crate::found::grouped;
use crate::{Found, Pace, Tally};
use quorate_protocols::reference::ring::tiny;

crate::registered![
    a_matter_of_the_literature,
    a_unit_has_one_user,
    heals_from_anywhere,
    one_unit_each,
    enters_with_its_tokens,
    messages_go_right,
    all_but_root_alike,
    any_interleaving,
    a_lost_message,
    numbers_and_controllers,
    printed_priority,
    kinds_of_messages,
    order_on_a_link,
    legitimate_stays_legitimate,
    everybody_is_served,
    liveness_as_printed,
    fair_or_live,
    exclusion_is_not_live,
    live_is_not_fair,
    sections_must_end,
    two_protocols_in_one,
    composition_theorem,
];

fn a_matter_of_the_literature(_: Pace) -> Found {
    Found::not_computable("Priority, motivation, notation or a survey: nothing to compute.")
}

fn a_unit_has_one_user(_: Pace) -> Found {
    let mut cases = Tally::new();
    let mut states = 0;
    for (units, needs) in SMALL {
        let atlas = ring(units, needs);
        states += atlas.len() as u64;
        cases.case(atlas.in_use_max() <= u64::from(units), || format!("{units} units, {needs:?}"));
    }
    Found::all(&cases, "small rings in every interleaving, never more units in use than there are")
        .and(format!(
            "{} states. Tokens are anonymous: it is their number that is kept.",
            grouped(states)
        ))
        .by("quorate-lab check --protocol ring --nodes 3 --units 2 --want 2,1 --cancels 1")
}

/// So many starts in any state, by chance.
fn scrambled(units: u32, size: usize, seeds: u64) -> Vec<(u64, Wandered)> {
    let mut terms = Terms::new(units, units.min(3));
    terms.seqs = 8 * size as u64 + 16;
    let run = |seed| {
        let mut chance = Chance(seed);
        let track = Track::<Core>::scrambled(terms, size, 4, &mut |n| chance.below(n));
        (seed, Wander::new(track, &mut |n| chance.below(n)).to_the_end())
    };
    (0..seeds).map(run).collect()
}

fn heals_from_anywhere(pace: Pace) -> Found {
    let mut cases = Tally::new();
    for (units, size) in [(1, 2), (2, 3), (4, 5)] {
        for (seed, end) in scrambled(units, size, pace.pick(20, 300)) {
            cases.case(matches!(end, Wandered::Right { .. }), || {
                format!("n={size} seed {seed}: {end:?}")
            });
        }
    }
    Found::all(
        &cases,
        "starts in any state, without rounds: legitimate in the end, for good, and all served",
    )
    .by("quorate-lab sim ring-stabilization --asynchronous --nodes 6,12")
}

fn one_unit_each(_: Pace) -> Found {
    let atlas = ring(2, &[1, 1, 1]);
    Found::if_so(
        atlas.all_good() && atlas.in_use_max() == 2 && atlas.starves().is_none(),
        format!(
            "Three stations that ask for one of two units each: up to {} inside, in {} states.",
            atlas.in_use_max(),
            atlas.len()
        ),
    )
}

fn enters_with_its_tokens(_: Pace) -> Found {
    let mut cases = Tally::new();
    for (units, needs) in &SMALL[..3] {
        let atlas = ring(*units, needs);
        for state in 0..atlas.len() {
            for machine in &atlas.track(state).stations {
                let station = machine.station();
                if station.in_use() > 0 {
                    let exact = station.held.0 == station.in_use();
                    cases.case(exact, || format!("{station:?}"));
                }
            }
        }
    }
    Found::all(
        &cases,
        "stations inside, in every state: each has exactly as many enabled tokens as it uses",
    )
}

fn messages_go_right(_: Pace) -> Found {
    let mut cases = Tally::new();
    for size in 1..=5 {
        for at in 0..size {
            let mut track = Track::<Core>::new(tiny(1, 1, 4), size);
            track.links[at].push_back(Message::Enabled(Count(1)));
            let right = (at + 1) % size;
            let only = (0..size).all(|to| track.can_deliver(to) == (to == right));
            cases.case(only, || format!("n={size}, from {at}"));
        }
    }
    Found::all(&cases, "links: what a station sends reaches its right neighbour and nobody else")
}

fn all_but_root_alike(_: Pace) -> Found {
    let terms = tiny(2, 2, 4);
    let other = Core::new(Role::Other, &terms);
    let track = Track::<Core>::new(terms, 6);
    let alike = track.stations[1..].iter().all(|station| *station == other);
    Found::if_so(
        alike && track.stations[0] != other && track.stations[0].is_root(),
        "Six stations: five are the same value with the same rules and no number of their own, \
         one is Root.",
    )
}

fn any_interleaving(_: Pace) -> Found {
    let atlas = ring(2, &[2, 2]);
    Found::if_so(
        atlas.all_good() && atlas.starves().is_none(),
        format!(
            "Every handler is one step, any message may be the next to arrive, and what is \
             under way counts until it was heard: {} states of two stations, all right under \
             weak fairness.",
            atlas.len()
        ),
    )
}

fn a_lost_message(_: Pace) -> Found {
    // A token vanishes: wrong for a while, which is a transient fault like any other.
    let lost = |track: &mut Track<Core>| {
        let token = |message: &Message<Count>| matches!(message, Message::Token(_));
        for link in &mut track.links {
            if let Some(at) = link.iter().position(token) {
                link.remove(at);
                return;
            }
        }
    };
    let atlas = idle(tiny(1, 1, 4), 2, lost);
    let mut corrected = Tally::new();
    corrected.case(!atlas.never_converges(), || "a lost token".into());
    Found::corrected_if(
        !atlas.all_good(),
        &corrected,
        format!(
            "Needed for the count, not for healing: if a token is lost on a link, the number \
             is wrong until Root has counted, and right for ever after in all {} states.",
            atlas.len()
        ),
    )
}

/// Whether one controller token is left in the end of so many, with so many numbers.
fn one_is_left(seqs: u64, tokens: u64, size: usize) -> bool {
    let mut track = Track::<Core>::new(tiny(1, 1, seqs), size);
    for i in 0..tokens {
        let link = size - 1 - i as usize % size;
        track.links[link].push_back(Message::Controller(i % seqs));
    }
    for _ in 0..400 {
        track.round(&mut |_| {});
    }
    let under_way = track.links.iter().flatten();
    under_way.filter(|m| matches!(m, Message::Controller(_))).count() == 1
}

fn numbers_and_controllers(pace: Pace) -> Found {
    let most = pace.pick(4, 6);
    let mut enough = Tally::new();
    let mut fewer = Tally::new();
    for seqs in 2..=most {
        for tokens in 2..=most.min(5) {
            let left = one_is_left(seqs, tokens, 5);
            let name = || format!("{seqs} numbers, {tokens} controller tokens");
            if seqs >= tokens {
                enough.case(left, name);
            } else {
                fewer.case(left, name);
            }
        }
    }
    Found::corrected_if(
        !fewer.holds(),
        &enough,
        format!(
            "The bound on links is what tells how many numbers are needed: with as many numbers as \
             controller tokens one is left ({}); with fewer it may stay several ({}).",
            enough.words("combinations"),
            fewer.words("combinations")
        ),
    )
}

fn printed_priority(_: Pace) -> Found {
    // The first action that is enabled is taken: with a token too few, A_l1/A_l7 is enabled by
    // T_h + T_d > 0 and does nothing.
    let run = |guard_tests_need: bool| {
        let (mut held, need, mut arriving) = (1u32, 2u32, 1u32);
        for _ in 0..100 {
            let first = if guard_tests_need { held >= need } else { held > 0 };
            if first {
                if held >= need {
                    return true;
                }
            } else if arriving > 0 {
                arriving -= 1;
                held += 1;
            }
        }
        false
    };
    let mut corrected = Tally::new();
    corrected.case(run(true), || "guard with the need".into());
    Found::corrected_if(
        !run(false),
        &corrected,
        "A requester with one of two tokens and the other at its door: by the printed order \
         its first action is enabled and empty for ever, and the token is never heard; with \
         the need in the guard it enters at once.",
    )
}

fn kinds_of_messages(_: Pace) -> Found {
    let mut kinds = std::collections::BTreeSet::new();
    let atlas = ring(2, &[2, 2]);
    for state in 0..atlas.len() {
        for message in atlas.track(state).links.iter().flatten() {
            kinds.insert(match message {
                Message::Token(_) => "Token",
                Message::Controller(_) => "CToken with a number",
                Message::Enabled(_) => "Enabled",
                Message::Collect(_) => "Collect with a count",
                Message::Allocate { .. } => "Allocate with a count and an order",
                Message::Disable => "Disable",
                Message::Frame(_) | Message::Wake => "no message of the paper",
            });
        }
    }
    let shown: Vec<&str> = kinds.iter().copied().collect();
    Found::if_so(
        !kinds.contains("no message of the paper") && kinds.len() >= 4,
        format!("Seen under way in {} states: {}.", atlas.len(), shown.join(", ")),
    )
}

fn order_on_a_link(_: Pace) -> Found {
    let after = |messages: [Message<Count>; 2], rounds: usize| {
        let mut track = Track::<Core>::started(tiny(2, 2, 4), 2);
        track.links.iter_mut().for_each(|link| link.clear());
        track.links[0].extend(messages);
        for _ in 0..rounds {
            track.round(&mut |_| {});
        }
        track
    };
    let now = Track::<Core>::started(tiny(2, 2, 4), 2).stations[0].station().seq;
    let (token, controller) = (Message::Token(Count(1)), Message::Controller(now));
    let mut corrected = Tally::new();
    let differ = (1..=6).any(|rounds| {
        let first = after([token.clone(), controller.clone()], rounds);
        first != after([controller.clone(), token.clone()], rounds)
    });
    corrected.case(differ, || "both orders lead to the same".into());
    Found::corrected_if(
        differ,
        &corrected,
        "Two configurations with the same two messages on one link, in one order and in the \
         other, lead to different ones within six rounds: links are queues.",
    )
}

fn legitimate_stays_legitimate(_: Pace) -> Found {
    let mut cases = Tally::new();
    for (units, needs) in &SMALL[..2] {
        let atlas = ring(*units, needs);
        for state in 0..atlas.len() {
            cases.case(Core::is_legitimate(&atlas.track(state)), || format!("{needs:?}"));
        }
    }
    Found::all(
        &cases,
        "states that follow from a legitimate one: each is legitimate, has l tokens, and is safe",
    )
}

fn everybody_is_served(_: Pace) -> Found {
    let mut cases = Tally::new();
    for (units, needs) in SMALL {
        let atlas = ring(units, needs);
        cases.case(atlas.trap().is_none() && atlas.starves().is_none(), || format!("{needs:?}"));
    }
    Found::all(
        &cases,
        "small rings: no state without a way to serve a waiter, no fair cycle that passes one over",
    )
}

fn liveness_as_printed(_: Pace) -> Found {
    let mut fits = Tally::new();
    for needs in [[2, 2], [1, 2]] {
        let atlas = occupied(3, needs);
        fits.case(atlas.starves().is_none(), || format!("{needs:?}"));
    }
    let blocked = occupied(3, [3, 2]).starves();
    Found::corrected_if(
        blocked.is_some(),
        &fits,
        format!(
            "One of three units is used for ever, two are free. If all who wait fit into what \
             is free, all are served ({}). If one wants 3, whoever wants 2 may wait for ever \
             behind it: as printed the property contradicts fairness.",
            fits.words("rings explored")
        ),
    )
}

fn fair_or_live(_: Pace) -> Found {
    let (fair, live) = (exclusion_is_not_live(Pace::Quick), live_is_not_fair(Pace::Quick));
    let holds = crate::Verdict::Holds;
    Found::if_so(
        fair.verdict == holds && live.verdict == holds,
        format!("Each can be had alone. {} {}", fair.text, live.text),
    )
}

/// Who of three claims on 3 units is served within so many steps: at most one at a time, in turn.
/// The first one stays for ever, or for a step.
fn in_turn(stays: bool) -> Vec<usize> {
    let mut queue = std::collections::VecDeque::from([0, 1, 2]);
    let (mut inside, mut served) = (None, Vec::new());
    for _ in 0..100 {
        match inside {
            Some(0) if stays => {}
            Some(_) => inside = None,
            None => {
                inside = queue.pop_front();
                served.extend(inside);
            }
        }
    }
    served
}

fn exclusion_is_not_live(_: Pace) -> Found {
    Found::if_so(
        in_turn(true) == [0] && in_turn(false) == [0, 1, 2],
        "Mutual exclusion in turn, three claims of one of 3 units: if holders leave, all are \
         served; if the first stays for ever, nobody else is within 100 steps, although two units \
         are free.",
    )
}

fn live_is_not_fair(_: Pace) -> Found {
    // Whoever fits into 3 units is let in; two claims of 1 end their use in turns, but never both.
    let needs = [1u32, 1, 3];
    let mut inside = [false; 3];
    let mut served = [0u32; 3];
    for step in 0..1000 {
        for claim in 0..3 {
            let used: u32 = (0..3).filter(|other| inside[*other]).map(|other| needs[other]).sum();
            if !inside[claim] && used + needs[claim] <= 3 {
                inside[claim] = true;
                served[claim] += 1;
            }
        }
        inside[step % 2] = false;
    }
    Found::if_so(
        served[0] >= 400 && served[1] >= 400 && served[2] == 0,
        format!(
            "Whoever fits is let in at once: two claims of 1 of 3 units are served {} and {} times \
             in 1,000 steps, each for a step or two, and a claim of 3 never.",
            served[0], served[1]
        ),
    )
}

fn sections_must_end(_: Pace) -> Found {
    let atlas = occupied(3, [3, 0]);
    let ends = ring(3, &[1, 3, 0]);
    Found::if_so(
        atlas.starves().is_some() && ends.starves().is_none(),
        format!(
            "If one station never leaves, a claim of all units waits for ever ({} states); if \
             all leave, it is served.",
            atlas.len()
        ),
    )
}

fn two_protocols_in_one(_: Pace) -> Found {
    let mut cases = Tally::new();
    // Whatever a station's tokens are, it passes the controller token on.
    let mut chance = Chance(7);
    for seed in 0..500u64 {
        let mut track = Track::<Core>::scrambled(tiny(3, 3, 8), 3, 0, &mut |n| chance.below(n));
        track.links.iter_mut().for_each(|link| link.clear());
        track.links[0].push_back(Message::Controller(seed % 8));
        track.deliver(1);
        let passed =
            track.links[1].iter().any(|m| matches!(m, Message::Controller(s) if *s == seed % 8));
        cases.case(passed, || format!("{:?}", track.stations[1]));
    }
    Found::all(
        &cases,
        "stations in any state: the controller token goes on, whatever their tokens are",
    )
}

/// All pairs of protocols on one bit each that read both bits: is the theorem true of them?
fn composition_theorem(_: Pace) -> Found {
    // A configuration is x + 2y. A protocol is a table of its next bit.
    let next1 = |f: u32, s: usize| (s & 2) | (f >> s & 1) as usize;
    let next2 = |g: u32, s: usize| (s & 1) | ((g >> s & 1) as usize) << 1;
    // Whether every fair run from anywhere in `from` ends in `inside` for good.
    let stabilizes = |f: u32, g: u32, from: u32, inside: u32| {
        let edges = |s: usize| {
            [(0, next1(f, s)), (1, next2(g, s))].into_iter().filter(move |(_, to)| *to != s)
        };
        (1u32..16).all(|set| {
            // A set of configurations that a run can stay in, going round all of it.
            let members = || (0..4usize).filter(move |s| set >> s & 1 == 1);
            if members().any(|s| from >> s & 1 == 0) {
                return true;
            }
            let reach = |start: usize| {
                let mut seen = 1u32 << start;
                for _ in 0..4 {
                    for s in members().filter(|s| seen >> s & 1 == 1).collect::<Vec<_>>() {
                        for (_, to) in edges(s) {
                            seen |= (set & 1 << to).min(1 << to);
                        }
                    }
                }
                seen & set
            };
            let connected = members().all(|s| reach(s) == set);
            let stays = |who: usize| {
                members().any(|s| edges(s).any(|(by, to)| by == who && set >> to & 1 == 1))
            };
            let enabled = |who: usize| members().any(|s| edges(s).any(|(by, _)| by == who));
            let fair = (0..2).all(|who| stays(who) || !enabled(who));
            let bad = set & !inside != 0;
            !(connected && fair && bad)
        })
    };
    let mut cases = Tally::new();
    let mut premises = 0u64;
    for f in 0..16 {
        for g in 0..16 {
            for l1 in [0b01u32, 0b10] {
                for l2 in [0b01u32, 0b10] {
                    let first: u32 =
                        (0..4).filter(|s| l1 >> (s & 1) & 1 == 1).map(|s| 1 << s).sum();
                    let second: u32 =
                        (0..4).filter(|s| l2 >> (s >> 1) & 1 == 1).map(|s| 1 << s).sum();
                    // The first is right for good whatever the second does, which then is, too.
                    let any = (0..16).all(|other| stabilizes(f, other, 15, first));
                    let closed = (0..4)
                        .filter(|s| first >> s & 1 == 1)
                        .all(|s| first >> next1(f, s) & 1 == 1);
                    if any && closed && stabilizes(f, g, first, second) {
                        premises += 1;
                        cases.case(stabilizes(f, g, 15, first & second), || {
                            format!("{f:04b} {g:04b}")
                        });
                    }
                }
            }
        }
    }
    Found::all(&cases, "pairs of protocols on one bit each that satisfy the premises")
        .only_if(premises > 0, "Fair means: each takes steps for ever, or has none to take.")
}
