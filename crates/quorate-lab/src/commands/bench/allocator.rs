//! `quorate-lab bench allocator`: what a decision costs, and what it does not depend on.

use std::collections::VecDeque;
use std::io::Write as _;
use std::time::Instant;

use anyhow::ensure;
use quorate_core::{ClaimId, Unit};
use quorate_protocols::allocator::{Allocator, Among, Deed, Policy, Ticket, Want};
use quorate_sim::Rng;
use serde_json::json;

use crate::Outcome;

/// Arguments of `quorate-lab bench allocator`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
A pool is full, and many claims wait. Again and again a holder releases, the allocator decides, and
a new claim comes for each one granted. Shown is the time of such a round, and how much longer it
takes than in the smallest pool of the same classes and groups.

Example:
  quorate-lab bench allocator")]
pub(crate) struct Args {
    /// Rounds to measure
    #[arg(long, default_value_t = 5_000)]
    rounds: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Units, kinds, zones, waiting claims. A class is a kind in a zone; groups ask for any unit, a
/// kind, a zone, or a class.
const CASES: [(u32, u32, u32, usize); 8] = [
    (1_000, 5, 4, 100),
    (10_000, 5, 4, 100),
    (100_000, 5, 4, 100),
    (1_000, 5, 4, 1_000),
    (1_000, 5, 4, 10_000),
    (100_000, 5, 4, 10_000),
    (100_000, 1, 1, 10_000),
    (100_000, 10, 8, 10_000),
];

struct Measured {
    units: u32,
    classes: u32,
    groups: usize,
    waiting: usize,
    micros: f64,
    grants: u64,
}

/// Measures.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    ensure!(args.rounds > 0, "--rounds must be at least 1");
    let mut rows = Vec::new();
    for (units, kinds, zones, waiting) in CASES {
        rows.push(measure(units, kinds, zones, waiting, args.rounds));
    }
    let ratio = |row: &Measured| {
        let same = |other: &&Measured| other.classes == row.classes;
        rows.iter().find(same).map_or(1.0, |first| row.micros / first.micros)
    };
    let mut out = std::io::stdout().lock();
    if args.json {
        let rows = rows.iter().map(|row| {
            json!({
                "units": row.units, "classes": row.classes, "groups": row.groups,
                "waiting": row.waiting, "micros": row.micros, "ratio": ratio(row),
                "grants": row.grants,
            })
        });
        writeln!(out, "{:#}", json!({ "rounds": args.rounds, "rows": rows.collect::<Vec<_>>() }))?;
    } else {
        writeln!(
            out,
            "{:>8}{:>9}{:>8}{:>9}{:>12}{:>8}{:>9}",
            "units", "classes", "groups", "waiting", "µs a round", "ratio", "grants"
        )?;
        for row in &rows {
            writeln!(
                out,
                "{:>8}{:>9}{:>8}{:>9}{:>12.2}{:>8.2}{:>9}",
                row.units,
                row.classes,
                row.groups,
                row.waiting,
                row.micros,
                ratio(row),
                row.grants
            )?;
        }
    }
    Ok(Outcome::Good)
}

/// A full pool under load.
struct Pool {
    allocator: Allocator,
    groups: Vec<Among>,
    rng: Rng,
    age: u64,
    holders: VecDeque<(Ticket, Vec<Unit>)>,
}

fn measure(units: u32, kinds: u32, zones: u32, waiting: usize, rounds: u32) -> Measured {
    let groups = groups(units, kinds, zones);
    let policy = Policy { protect: 1, patience: 0 };
    let allocator = Allocator::new(units, policy);
    let rng = Rng::new(8);
    let mut pool = Pool { allocator, groups, rng, age: 0, holders: VecDeque::new() };
    while pool.allocator.waiting() < waiting {
        let missing = waiting - pool.allocator.waiting();
        (0..missing).for_each(|_| pool.enter());
        pool.decide();
    }
    let mut grants = 0;
    let start = Instant::now();
    for _ in 0..rounds {
        let (ticket, held) = pool.holders.pop_front().expect("a full pool has holders");
        pool.allocator.release(ticket, held);
        let granted = pool.decide();
        (0..granted).for_each(|_| pool.enter());
        grants += granted;
    }
    Measured {
        units,
        classes: kinds * zones,
        groups: pool.groups.len(),
        waiting,
        micros: start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds),
        grants,
    }
}

impl Pool {
    fn enter(&mut self) {
        self.age += 1;
        let group = self.rng.below(self.groups.len() as u64) as usize;
        let want = Want { among: self.groups[group].clone(), units: 1 + self.rng.below(4) as u32 };
        let claim = ClaimId { origin: 0, serial: self.age };
        let ticket = Ticket { age: self.age, claim };
        self.allocator.enter(ticket, &[want], false).expect("every group has enough units");
    }

    fn decide(&mut self) -> u64 {
        let mut deeds = Vec::new();
        self.allocator.pass(&mut deeds);
        let before = self.holders.len();
        for deed in deeds {
            if let Deed::Grant { ticket, units } = deed {
                self.holders.push_back((ticket, units));
            }
        }
        (self.holders.len() - before) as u64
    }
}

/// Any unit, each kind, each zone, each kind in each zone.
fn groups(units: u32, kinds: u32, zones: u32) -> Vec<Among> {
    let of = |wanted: &dyn Fn(u32, u32) -> bool| -> Among {
        let chosen = (0..units).filter(|unit| wanted(unit % kinds, unit / kinds % zones));
        Some(chosen.map(Unit).collect())
    };
    let mut groups = vec![None];
    if kinds * zones > 1 {
        groups.extend((0..kinds).map(|kind| of(&|k, _| k == kind)));
        groups.extend((0..zones).map(|zone| of(&|_, z| z == zone)));
        let both = (0..kinds).flat_map(|kind| (0..zones).map(move |zone| (kind, zone)));
        groups.extend(both.map(|(kind, zone)| of(&|k, z| (k, z) == (kind, zone))));
    }
    groups
}
