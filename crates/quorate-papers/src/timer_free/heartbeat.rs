//! Detection without timers against an ordinary heartbeat that may send as much.

use super::model::Terms;
use super::timed::{Delays, Plan, run};
use crate::chance::Chance;
use crate::{Found, Grid, Pace, Tally};

crate::registered![heartbeats_of_equal_traffic];

const NODES: usize = 20;
const LATENCY: f64 = 1.0;

/// How long until everybody knows of a crash, where nodes send a heartbeat every `period` to
/// `watchers` others each, who say so to all after three periods without one.
fn heartbeat(chance: &mut Chance, period: f64, watchers: usize) -> f64 {
    let mut first = f64::INFINITY;
    let mut last: f64 = 0.0;
    // The last heartbeat left up to a period before the crash; each takes its time.
    let sent = -chance.between(0.0, period);
    for _ in 0..watchers {
        let heard = sent + LATENCY * chance.between(0.95, 1.05);
        let notices = heard + 3.0 * period;
        first = first.min(notices);
        last = last.max(notices);
    }
    // Whoever watches finds out by itself; the others are told by the first.
    if watchers == NODES - 1 { last } else { first + LATENCY * 1.05 }
}

fn heartbeats_of_equal_traffic(pace: Pace) -> Found {
    let head = [
        "rho",
        "extra messages per second",
        "timer-free, s",
        "all watch all, every s",
        "found, s",
        "one watches each, every s",
        "found, s",
    ];
    let mut grid = Grid::new(&head);
    let (mut slower, mut faster) = (Tally::new(), Tally::new());
    for rho in [1.0, 3.0, 6.0, 12.0] {
        let (mut extra, mut found, mut runs) = (0.0, 0.0, 0.0);
        for seed in 1..pace.pick(6, 31) {
            let plan = Plan {
                terms: Terms::new(4, 3),
                delays: Delays::Sites(4, LATENCY),
                hold: 2.0,
                rho,
                idle: 0,
                rare: (0, 1.0),
                probe: 0.0,
                crash_at: 200.0,
                crashes: 1,
                still: 0.0,
                end: 1000.0,
                seed,
            };
            let ran = run::<NODES>(&plan);
            let raymond = 2.0 * (NODES as f64 - 1.0) * ran.grants as f64;
            extra += (ran.messages as f64 - raymond) / plan.end;
            found += ran.known_after.unwrap_or(plan.end);
            runs += 1.0;
        }
        let (extra, found) = (extra / runs, found / runs);
        let others = NODES as f64 - 1.0;
        let mean = |period: f64, watchers: usize| {
            let mut chance = Chance(1);
            (0..500).map(|_| heartbeat(&mut chance, period, watchers)).sum::<f64>() / 500.0
        };
        let all = NODES as f64 * others / extra.max(0.01);
        let one = NODES as f64 / extra.max(0.01);
        let (by_all, by_one) = (mean(all, NODES - 1), mean(one, 1));
        slower.case(by_all > found, || format!("rho {rho}: {by_all:.0} s, {found:.0} s"));
        // Where hardly anybody waits there is hardly an extra message to give away.
        let light = rho > 10.0;
        faster
            .case((by_one < found) != light, || format!("rho {rho}: {by_one:.0} s, {found:.0} s"));
        let shown = [extra, found, all, by_all, one, by_one].map(|value| format!("{value:.1}"));
        let [extra, found, all, by_all, one, by_one] = &shown;
        grid.row(&[&rho, extra, found, all, by_all, one, by_one]);
    }
    Found::open(
        slower.holds() && faster.holds(),
        format!(
            "20 processes, k = 4, 1 s between sites. What the algorithm sends beyond Raymond's \
             (NOPERM) is given to heartbeats, with a time-out of three periods. If everybody \
             watches everybody, heartbeats are slower: {}. If each is watched by one neighbour \
             that tells the others, they are faster by factors under load, and slower at rho = \
             12, where the algorithm sends hardly anything extra: {}.",
            slower.words("loads"),
            faster.words("loads")
        ),
    )
    .with(grid)
}
