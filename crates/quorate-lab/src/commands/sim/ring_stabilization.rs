//! `quorate-lab sim ring-stabilization`: how long a ring takes to become right from any state.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use quorate_core::UNITS_MAX;
use quorate_protocols::reference::ring::{
    Core, Load, Measured, RingTrial, Track, Wander, Wandered, stabilize,
};
use quorate_protocols::ring::{Count, Stabilizing, Terms, train};
use quorate_sim::Rng;
use serde_json::{Value, json};

use super::parse_seed;
use crate::{Outcome, plots};

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate-lab sim ring-stabilization --nodes 2,5,10,50,200 --starts 1000 --svg stabilization.svg
  quorate-lab sim ring-stabilization --nodes 10 --uses 40 --starts 300
  quorate-lab sim ring-stabilization --nodes 6,12 --asynchronous --variant train

Every variable of every node is anything in its domain, with up to 4 garbage messages on each link.
Times are in rounds (one hop of everything under way) divided by the number of nodes, and include
a timeout of two traversals where no traversal was under way.")]
pub(crate) struct Args {
    /// Sizes of rings
    #[arg(long, value_delimiter = ',', default_value = "2,5,10,20,50")]
    nodes: Vec<u32>,
    /// Units; each number is tried with every size
    #[arg(long, value_delimiter = ',', default_value = "1,4,8,16")]
    units: Vec<u32>,
    /// Most units of one claim
    #[arg(long, default_value_t = 3)]
    claim_max: u32,
    /// Corrupted starts for each size and number of units
    #[arg(long, default_value_t = 100)]
    starts: u64,
    /// Rounds for which claims are used under load, on average
    #[arg(long, default_value_t = 0)]
    uses: u32,
    /// The first seed; others follow
    #[arg(long, value_parser = parse_seed, default_value = "1")]
    first: u64,
    /// With the paper's messages, or all of them in one frame
    #[arg(long, value_enum, default_value = "core")]
    variant: Variant,
    /// Let chance choose what happens next, instead of rounds
    #[arg(long)]
    asynchronous: bool,
    /// Draw the table
    #[arg(long, value_name = "FILE", conflicts_with = "asynchronous")]
    svg: Option<PathBuf>,
    /// Print numbers as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Variant {
    /// The paper's messages.
    Core,
    /// All of them in one frame.
    Train,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    for &nodes in &args.nodes {
        ensure!((1..=100_000).contains(&nodes), "--nodes {nodes}: choose 1 to 100000");
    }
    for &units in &args.units {
        ensure!((1..=UNITS_MAX).contains(&units), "--units {units}: choose 1 to {UNITS_MAX}");
    }
    ensure!(args.starts > 0, "--starts must be at least 1");
    ensure!(args.claim_max > 0, "--claim-max must be at least 1");
    ensure!(args.uses <= 1_000_000, "--uses {}: choose at most 1000000", args.uses);
    match args.variant {
        Variant::Core => measure::<Core<Count>>(args),
        Variant::Train => measure::<train::Train<Count>>(args),
    }
}

/// One size of ring, all starts together.
#[derive(Clone, Default)]
struct Row {
    nodes: u32,
    starts: u64,
    failures: u64,
    /// The first seed that failed, and of how many units.
    failed: Option<(u64, u32)>,
    idle: Sum,
    loaded: Sum,
    /// Asynchronous: steps until legitimate.
    steps: u64,
    steps_max: u64,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    runs: u64,
    controlled_max: u32,
    exact: u64,
    exact_max: u32,
    safe_max: u32,
    rounds: u64,
    messages: u64,
    grants: u64,
    waited: u64,
    waited_max: u32,
}

impl Sum {
    fn add(&mut self, measured: &Measured) {
        self.runs += 1;
        self.controlled_max = self.controlled_max.max(measured.controlled);
        self.exact += u64::from(measured.exact);
        self.exact_max = self.exact_max.max(measured.exact);
        self.safe_max = self.safe_max.max(measured.safe);
        self.rounds += u64::from(measured.calm);
        self.messages += measured.messages;
        self.grants += measured.grants;
        self.waited += measured.waited;
        self.waited_max = self.waited_max.max(measured.waited_max);
    }
}

impl Row {
    fn per_node(&self, rounds: u32) -> f64 {
        f64::from(rounds) / f64::from(self.nodes)
    }

    fn exact_mean(&self, sum: &Sum) -> f64 {
        ratio(sum.exact, sum.runs) / f64::from(self.nodes)
    }

    fn fail(&mut self, seed: u64, units: u32) {
        self.failures += 1;
        self.failed = Some(self.failed.map_or((seed, units), |first| first.min((seed, units))));
    }
}

fn ratio(over: u64, under: u64) -> f64 {
    over as f64 / under.max(1) as f64
}

fn measure<M: Stabilizing>(args: &Args) -> anyhow::Result<Outcome> {
    let per_row = args.starts * args.units.len() as u64;
    let bar = ProgressBar::new(per_row * args.nodes.len() as u64);
    bar.set_style(ProgressStyle::with_template(
        "{elapsed_precise} {bar:40} {pos}/{len} starts, {per_sec} {msg}",
    )?);
    let mut rows = Vec::new();
    for &nodes in &args.nodes {
        bar.set_message(format!("{nodes} nodes"));
        let row = Mutex::new(Row { nodes, ..Row::default() });
        let next = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= per_row {
                            return;
                        }
                        let units = args.units[(number % args.units.len() as u64) as usize];
                        let seed = args.first + number / args.units.len() as u64;
                        start::<M>(args, nodes, units, seed, &row);
                        bar.inc(1);
                    }
                });
            }
        });
        rows.push(row.into_inner().expect("no worker panics with it"));
    }
    bar.finish_and_clear();
    report(args, &rows)
}

/// One corrupted start: idle and under load, or without rounds. Sums and maxima do not depend on
/// the order in which starts are done.
fn start<M: Stabilizing>(args: &Args, nodes: u32, units: u32, seed: u64, row: &Mutex<Row>) {
    let mut terms = Terms::new(units, args.claim_max.min(units));
    terms.seqs = 8 * u64::from(nodes) + 16; // Few enough that garbage often matches.
    let size = nodes as usize;
    let scrambled = |rng: &mut Rng| Track::<M>::scrambled(terms, size, 4, &mut |n| rng.below(n));
    if args.asynchronous {
        let mut rng = Rng::new(seed);
        let track = scrambled(&mut rng);
        let end = Wander::new(track, &mut |n| rng.below(n)).to_the_end();
        let mut row = row.lock().expect("no worker panics with it");
        row.starts += 1;
        match end {
            Wandered::Right { after } => {
                row.steps += after;
                row.steps_max = row.steps_max.max(after);
            }
            _ => row.fail(seed, units),
        }
        return;
    }
    let rounds = |load| {
        let mut rng = Rng::new(seed);
        let track = scrambled(&mut rng);
        stabilize(track, RingTrial::new(size, load), &mut |n| rng.below(n))
    };
    let (idle, loaded) = (rounds(Load::Idle), rounds(Load::Heavy { uses: args.uses }));
    let mut row = row.lock().expect("no worker panics with it");
    row.starts += 1;
    row.idle.add(&idle);
    row.loaded.add(&loaded);
    if idle.has_failed() || loaded.has_failed() {
        row.fail(seed, units);
    }
}

fn report(args: &Args, rows: &[Row]) -> anyhow::Result<Outcome> {
    let text = match (args.json, args.asynchronous) {
        (true, _) => {
            format!("{:#}\n", json!(rows.iter().map(|r| numbers(args, r)).collect::<Vec<_>>()))
        }
        (false, true) => steps_table(rows),
        (false, false) => rounds_table(args, rows),
    };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    if let Some(path) = &args.svg {
        let svg = plots::lines(
            "Rounds until a scrambled ring is right for good, divided by its size",
            "nodes",
            "rounds / nodes",
            &figure(rows),
        );
        std::fs::write(path, svg.context("drawing")?)
            .with_context(|| format!("writing {}", path.display()))?;
    }
    let Some((row, (seed, units))) = rows.iter().find_map(|row| Some((row, row.failed?))) else {
        return Ok(Outcome::Good);
    };
    let variant = format!("{:?}", args.variant).to_lowercase();
    let mode = if args.asynchronous { " --asynchronous" } else { "" };
    eprintln!("BROKEN convergence: a start was not right in time. To see it again:");
    eprintln!(
        "  quorate-lab sim ring-stabilization --variant {variant}{mode} --nodes {} --units {units} \
         --claim-max {} --uses {} --first {seed} --starts 1",
        row.nodes, args.claim_max, args.uses
    );
    Ok(Outcome::Broken)
}

fn rounds_table(args: &Args, rows: &[Row]) -> String {
    let mut text = format!(
        "Rounds until right for good, divided by the number of nodes n ({:?}, units {:?}, \
         claims up to {}, used for {} rounds)\n",
        args.variant, args.units, args.claim_max, args.uses
    );
    text.push_str(
        "            failed     one      exactly l tokens, mean/max      in use  messages  \
         messages  waiting/n\n\
         nodes starts       traversal      idle           loaded        safe max /round  \
         /grant    mean/max\n",
    );
    for row in rows {
        let (idle, loaded) = (&row.idle, &row.loaded);
        let controlled = idle.controlled_max.max(loaded.controlled_max);
        let n = f64::from(row.nodes);
        _ = writeln!(
            text,
            "{:>5} {:>6} {:>5} {:>8.2} {:>9.2} / {:<6.2} {:>7.2} / {:<6.2} {:>9.2} {:>8.1} \
             {:>9.1} {:>6.2} / {:.1}",
            row.nodes,
            row.starts,
            row.failures,
            row.per_node(controlled),
            row.exact_mean(idle),
            row.per_node(idle.exact_max),
            row.exact_mean(loaded),
            row.per_node(loaded.exact_max),
            row.per_node(idle.safe_max.max(loaded.safe_max)),
            ratio(loaded.messages, loaded.rounds),
            ratio(loaded.messages, loaded.grants),
            ratio(loaded.waited, loaded.grants) / n,
            f64::from(loaded.waited_max) / n,
        );
    }
    text
}

fn steps_table(rows: &[Row]) -> String {
    let mut text = String::from("nodes starts failed  steps until legitimate / n, mean / max\n");
    for row in rows {
        let n = f64::from(row.nodes);
        _ = writeln!(
            text,
            "{:>5} {:>6} {:>6}  {:>10.1} / {:.1}",
            row.nodes,
            row.starts,
            row.failures,
            ratio(row.steps, row.starts - row.failures) / n,
            row.steps_max as f64 / n,
        );
    }
    text
}

fn numbers(args: &Args, row: &Row) -> Value {
    let mut value = json!({
        "nodes": row.nodes,
        "starts": row.starts,
        "failures": row.failures,
    });
    if args.asynchronous {
        value["steps_mean"] = json!(ratio(row.steps, row.starts - row.failures));
        value["steps_max"] = json!(row.steps_max);
        return value;
    }
    for (name, sum) in [("idle", &row.idle), ("loaded", &row.loaded)] {
        value[name] = json!({
            "controlled_max": row.per_node(sum.controlled_max),
            "exact_mean": row.exact_mean(sum),
            "exact_max": row.per_node(sum.exact_max),
            "safe_max": row.per_node(sum.safe_max),
            "messages_per_round": ratio(sum.messages, sum.rounds),
            "messages_per_grant": ratio(sum.messages, sum.grants),
            "waiting_mean": ratio(sum.waited, sum.grants) / f64::from(row.nodes),
            "waiting_max": row.per_node(sum.waited_max),
        });
    }
    value
}

fn figure(rows: &[Row]) -> Vec<plots::Line> {
    type Pick = fn(&Row) -> f64;
    let picks: [(&str, Pick); 5] = [
        ("exactly l tokens, idle, max", |row| row.per_node(row.idle.exact_max)),
        ("exactly l tokens, loaded, max", |row| row.per_node(row.loaded.exact_max)),
        ("exactly l tokens, loaded, mean", |row| row.exact_mean(&row.loaded)),
        ("no more than l in use, loaded, max", |row| row.per_node(row.loaded.safe_max)),
        ("one traversal, loaded, max", |row| row.per_node(row.loaded.controlled_max)),
    ];
    let line = |(name, pick): (&str, Pick)| plots::Line {
        name: name.to_string(),
        points: rows.iter().map(|row| (f64::from(row.nodes), pick(row))).collect(),
    };
    picks.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(clap::Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn args(words: &str) -> Args {
        Cli::try_parse_from(words.split_whitespace()).expect("sound words").args
    }

    fn row(words: &str) -> Row {
        let args = args(words);
        let row = Mutex::new(Row { nodes: 5, ..Row::default() });
        for seed in 0..20 {
            start::<Core<Count>>(&args, 5, 4, seed, &row);
        }
        row.into_inner().expect("nobody panicked")
    }

    #[test]
    fn scrambled_rings_become_right_and_the_figure_shows_when() {
        let row = row("x --uses 3");
        assert_eq!((row.starts, row.failures), (20, 0));
        assert!(row.idle.exact > 0 && row.loaded.grants > 0);
        let svg = plots::lines("title", "x", "y", &figure(&[row])).expect("it can be drawn");
        assert!(svg.contains("exactly l tokens, idle, max"));
    }

    #[test]
    fn without_rounds_scrambled_rings_become_right_too() {
        let row = row("x --asynchronous");
        assert_eq!((row.starts, row.failures), (20, 0));
        assert!(row.steps > 0);
    }

    #[test]
    fn sizes_that_make_no_sense_are_refused() {
        for words in ["x --nodes 0", "x --units 0", "x --claim-max 0"] {
            assert!(run(&args(words)).is_err(), "{words}");
        }
    }
}
