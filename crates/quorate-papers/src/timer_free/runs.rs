//! The algorithm in time: what is found, by whom, how soon, and what is not.

use std::sync::OnceLock;

use super::model::{Printed, Terms};
use super::timed::{Delays, Plan, Ran, run};
use crate::{Found, Grid, Pace, Tally, Verdict};

crate::registered![
    no_timers_but_an_assumption,
    idle_processes_hide_crashes,
    a_perfect_detector,
    every_crash_is_found,
    requests_end_but_queries_do_not,
    queries_are_given_up,
    names_in_requests,
    only_if_responsive,
];

/// 20 processes at four sites; at most three crash.
fn plan(seed: u64) -> Plan {
    Plan {
        terms: Terms::new(4, 3).with(Printed::RepliesMute),
        delays: Delays::Sites(4, 1.0),
        hold: 2.0,
        rho: 2.0,
        idle: 0,
        rare: (0, 1.0),
        probe: 0.0,
        crash_at: 100.0,
        crashes: 1,
        still: 0.0,
        end: 1000.0,
        seed,
    }
}

fn go(plan: &Plan) -> Ran {
    run::<20>(plan)
}

fn seeds(pace: Pace) -> std::ops::Range<u64> {
    1..pace.pick(6, 31)
}

/// How often a crash was learnt from one's own replies, from a request, and of whom one had a
/// permission.
pub(super) fn learnt(pace: Pace) -> (u64, u64, u64) {
    let runs = seeds(pace).map(|seed| go(&plan(seed)));
    runs.fold((0, 0, 0), |sum, ran| (sum.0 + ran.own, sum.1 + ran.told, sum.2 + ran.withdrawn))
}

/// So many runs of each: in how many all crashes were found, somebody alive was suspected, too
/// many were inside; and entries in their later halves.
struct Share {
    runs: u64,
    found: u64,
    suspected: u64,
    too_many: u64,
    later: u64,
}

fn share(pace: Pace, of: impl Fn(u64) -> Plan) -> Share {
    let mut share = Share { runs: 0, found: 0, suspected: 0, too_many: 0, later: 0 };
    for seed in seeds(pace) {
        let plan = of(seed);
        let ran = go(&plan);
        share.runs += 1;
        share.found += u64::from(ran.known_after.is_some());
        share.suspected += u64::from(ran.suspected);
        share.too_many += u64::from(ran.most > plan.terms.units);
        share.later += ran.later;
    }
    share
}

fn no_timers_but_an_assumption(pace: Pace) -> Found {
    let mut grid = Grid::new(&["stands still, s", "runs", "suspected in", "more than k inside in"]);
    let (mut short, mut long) = (Tally::new(), Tally::new());
    for still in [2.0, 5.0, 40.0, 100.0] {
        let found = share(pace, |seed| Plan { still, crashes: 0, ..plan(seed) });
        let Share { runs, suspected, too_many, .. } = found;
        grid.row(&[&still, &runs, &suspected, &too_many]);
        let name = || format!("still for {still} s: {suspected} of {runs}");
        if still <= 5.0 {
            short.case(suspected == 0 && too_many == 0, name);
        } else {
            long.case(suspected == 0, name);
        }
    }
    let crashes = share(pace, plan);
    short.case(crashes.found == crashes.runs && crashes.suspected == 0, || {
        format!("{} of {} crashes found", crashes.found, crashes.runs)
    });
    Found::corrected(
        &long,
        "pauses longer than a cycle of requests in which nobody alive is taken for crashed (20 \
         processes, k = 4)",
        &short,
        "settings with crashes, or pauses shorter than a cycle: there are no timers, but an \
         assumption about time, the responsiveness property, stands in for them",
    )
    .with(grid)
}

/// The share of runs in which a crash is found, over processes that never ask.
fn over_idle(pace: Pace) -> (Tally, Tally, Grid) {
    static KNOWN: [OnceLock<(Tally, Tally, Grid)>; 2] = [OnceLock::new(), OnceLock::new()];
    KNOWN[pace.pick(0, 1)].get_or_init(|| ask_over_idle(pace)).clone()
}

fn ask_over_idle(pace: Pace) -> (Tally, Tally, Grid) {
    let (mut printed, mut right) = (Tally::new(), Tally::new());
    let mut grid =
        Grid::new(&["processes that never ask", "queries of their own", "found in", "of runs"]);
    for (idle, probe) in [(0u32, 0.0), (1, 0.0), (5, 0.0), (8, 0.0), (5, 20.0), (8, 20.0)] {
        let found = share(pace, |seed| Plan { idle: (1 << idle) - 1, probe, ..plan(seed) });
        let all = found.found == found.runs;
        let name = || format!("{idle} idle: {} of {} runs", found.found, found.runs);
        if probe == 0.0 {
            printed.case(all, name);
        }
        if idle == 0 || probe > 0.0 {
            right.case(all && found.suspected == 0, name);
        }
        let queries = if probe > 0.0 { "every 20 s" } else { "none" };
        grid.row(&[&idle, &queries, &found.found, &found.runs]);
    }
    (printed, right, grid)
}

fn idle_processes_hide_crashes(pace: Pace) -> Found {
    let (printed, right, grid) = over_idle(pace);
    Found::corrected(
        &printed,
        "numbers of processes (of 20) that answer and never ask, the crash found in 900 s",
        &right,
        "settings in which everybody asks, or makes queries of its own",
    )
    .with(grid)
}

fn a_perfect_detector(pace: Pace) -> Found {
    let (printed, right, grid) = over_idle(pace);
    let accurate = super::everywhere(pace, |found| found.suspected.is_none());
    Found::corrected(
        &printed,
        "settings in which every crash is found by everybody",
        &right,
        "settings in which everybody goes on querying",
    )
    .only_if(accurate.holds(), format!("Accuracy: {}.", accurate.words("worlds explored")))
    .with(grid)
}

/// Near answers are enough to enter, and far ones take longer than a use and a pause together.
fn hasty(seed: u64, given_up: bool) -> Plan {
    let terms = Terms::new(16, 3).with(Printed::RepliesMute);
    let terms = if given_up { terms.with(Printed::Abandon) } else { terms };
    Plan { terms, hold: 0.05, rho: 1.0, crash_at: 10.0, end: 60.0, ..plan(seed) }
}

/// As printed, and with queries that outlast their request.
fn hastily() -> &'static (Share, Share) {
    static KNOWN: OnceLock<(Share, Share)> = OnceLock::new();
    let share = |given_up| share(Pace::Quick, |seed| hasty(seed, given_up));
    KNOWN.get_or_init(|| (share(true), share(false)))
}

fn requests_end_but_queries_do_not(_: Pace) -> Found {
    let (printed, _) = hastily();
    Found::if_so(
        printed.found > 0 || printed.later == 0,
        format!(
            "No: entering needs n-k permissions, not n-f replies. With k = 16 of 20, and uses \
             shorter than far answers, there were {} entries in the later half of {} runs, and \
             the crash was found in {} of them: each new request gave up the query of the one \
             before.",
            printed.later, printed.runs, printed.found
        ),
    )
}

fn queries_are_given_up(_: Pace) -> Found {
    let (printed, right) = hastily();
    let mut cases = Tally::new();
    cases.case(right.found == right.runs && right.suspected == 0, || {
        format!("found in {} of {} runs", right.found, right.runs)
    });
    Found::corrected_if(
        printed.found < printed.runs,
        &cases,
        format!(
            "Line 15 does not wait for n-f replies, and line 8 begins anew. As printed the crash \
             is found in {} of {} runs; with queries that outlast their request in {} of {}.",
            printed.found, printed.runs, right.found, right.runs
        ),
    )
}

fn every_crash_is_found(pace: Pace) -> Found {
    let (idle, asking, grid) = over_idle(pace);
    let (given_up, kept) = hastily();
    let mut cases = asking;
    cases.case(kept.found == kept.runs, || format!("{} of {}", kept.found, kept.runs));
    Found::corrected_if(
        !idle.holds() && given_up.found < given_up.runs,
        &cases,
        format!(
            "Not as stated: {}; and queries may be given up for ever (found in {} of {} runs). If \
             everybody starts and ends queries for ever: {}.",
            idle.words("numbers of processes that never ask"),
            given_up.found,
            given_up.runs,
            cases.words("settings")
        ),
    )
    .with(grid)
}

fn names_in_requests(pace: Pace) -> Found {
    let mut grid = Grid::new(&["requests name crashes", "the one that asks rarely knows after, s"]);
    let rarely = |mute: bool| {
        let times: Vec<f64> = seeds(pace)
            .map(|seed| {
                let plan = Plan { rare: (1, 100.0), ..plan(seed) };
                let terms = if mute { plan.terms.with(Printed::Mute) } else { plan.terms };
                let ran = go(&Plan { terms, end: 2000.0, ..plan });
                ran.rare_after.unwrap_or(1900.0)
            })
            .collect();
        times.iter().sum::<f64>() / times.len() as f64
    };
    let (told, mute) = (rarely(false), rarely(true));
    grid.row(&[&"yes", &format!("{told:.0}")]);
    grid.row(&[&"no", &format!("{mute:.0}")]);
    Found::if_so(
        told < 0.5 * mute,
        format!(
            "One of 20 asks 100 times more rarely. It knows of a crash after {told:.0} s on \
             average, and after {mute:.0} s or later if requests do not say."
        ),
    )
    .with(grid)
}

fn only_if_responsive(pace: Pace) -> Found {
    let mut grid = Grid::new(&["n", "k", "f", "runs", "property broken", "suspected", "too many"]);
    let mut flat = (0u64, 0u64, 0u64);
    let mut tiny = (0u64, 0u64);
    let mut runs = 0;
    for seed in seeds(pace) {
        let terms = Terms::new(4, 3);
        let delays = Delays::Flat(0.0, 5.0);
        let ran = go(&Plan { terms, delays, ..plan(seed) });
        runs += 1;
        flat.0 += u64::from(!ran.responsive);
        flat.1 += u64::from(ran.suspected);
        flat.2 += u64::from(ran.known_after.is_some());
        let few = Plan { terms: Terms::new(2, 1), delays: Delays::Flat(0.01, 1.0), ..plan(seed) };
        let ran = run::<3>(&Plan { hold: 0.1, crashes: 0, ..few });
        tiny.0 += u64::from(ran.suspected);
        tiny.1 += u64::from(ran.most > 2);
    }
    grid.row(&[&20, &4, &3, &runs, &flat.0, &flat.1, &0]);
    grid.row(&[&3, &2, &1, &runs, &runs, &tiny.0, &tiny.1]);
    let refuted = flat.0 == runs && flat.1 == 0 && flat.2 == runs;
    Found::new(
        if refuted { Verdict::Fails } else { Verdict::Holds },
        format!(
            "The property is enough and not needed. 20 processes, delays between 0 and 5 s \
             whoever asks whom: the property was broken in {} of {runs} runs, and yet the crash \
             was found in {}, with a live process suspected in {}: delays that have nothing to do \
             with each other do not line up over n-f sets. In tiny pools they do: of three, one \
             was suspected wrongly in {} of {runs} runs, and more than k were inside in {}.",
            flat.0, flat.2, flat.1, tiny.0, tiny.1
        ),
    )
    .with(grid)
}
