//! `quorate-lab sim figures`: the evaluation of a paper, run again, and protocols compared.

use std::path::PathBuf;

use super::super::cluster::table;
use super::sweep::{advance, folder, or_broken, progress_bar};
use crate::Outcome;
use crate::experiment::{Effort, compare, figures};

/// Which figures.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Figures {
    TimerFree(Args),
    Compare(CompareArgs),
}

/// Every protocol on the same workload: messages, waiting, synchronization delay, after crashes
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate-lab sim figures compare --out compare
  quorate-lab sim figures compare --quick

20 nodes share 4 units: central, arbiter with two families of quorums, table, ring, and the variants
of broadcast; under load, and after up to three nodes died. The same as two sweeps:
docs/experiments/compare.toml and compare-crashes.toml. The folder gets a table and a figure for
each number, as CSV, JSON and SVG, and index.html, which needs nothing else.")]
pub(crate) struct CompareArgs {
    /// The folder for the results
    #[arg(long, value_name = "DIR", default_value = "compare")]
    out: PathBuf,
    /// A few settings and repetitions only, to see that it works
    #[arg(long)]
    quick: bool,
}

/// Bouillaguet, Arantes, Sens 2009: a timer-free fault tolerant k-mutual exclusion algorithm
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate-lab sim figures timer-free --out figures
  quorate-lab sim figures timer-free --latency 0.1 --out figures-fast
  quorate-lab sim figures timer-free --quick

The folder gets a figure and a table for each of the paper's figures, results.json, and index.html,
which needs nothing else and says of each claim whether it holds.

Exit codes: 0 all is as theory expects; 1 something came out otherwise, or a law was broken: it is
named on standard error; 2 the folder cannot be written to, or holds somebody's own page.")]
pub(crate) struct Args {
    /// The folder for the results
    #[arg(long, value_name = "DIR", default_value = "figures")]
    out: PathBuf,
    /// One way between two clusters, in seconds, 0.001 to 5; the paper's two numbers need different
    /// ones
    #[arg(long, value_name = "SECONDS", default_value = "1.0", value_parser = parse_latency)]
    latency: f64,
    /// A few settings and repetitions only, to see that it works
    #[arg(long)]
    quick: bool,
}

fn parse_latency(text: &str) -> Result<f64, String> {
    let latency = text.parse().ok().filter(|latency| (0.001..=5.0).contains(latency));
    latency.ok_or_else(|| "choose 0.001 to 5 seconds, for example 1.0 or 0.1".into())
}

pub(crate) fn run(figures: &Figures) -> anyhow::Result<Outcome> {
    match figures {
        Figures::TimerFree(args) => timer_free(args),
        Figures::Compare(args) => run_compare(args),
    }
}

fn timer_free(args: &Args) -> anyhow::Result<Outcome> {
    let folder = folder(&args.out)?;
    let bar = progress_bar();
    let effort = Effort { latency: args.latency, quick: args.quick };
    let outcome = figures(effort, &folder, &|done, all| advance(&bar, done, all));
    bar.finish_and_clear();
    let Some(outcome) = or_broken(outcome, &folder)? else { return Ok(Outcome::Broken) };
    for line in &outcome.summary {
        crate::print(line)?;
    }
    crate::print(args.out.join("index.html").display())?;
    if outcome.unexpected.is_empty() {
        return Ok(Outcome::Good);
    }
    eprintln!("otherwise than theory expects:");
    for claim in &outcome.unexpected {
        eprintln!("  {claim}");
    }
    Ok(Outcome::Broken)
}

fn run_compare(args: &CompareArgs) -> anyhow::Result<Outcome> {
    let folder = folder(&args.out)?;
    let bar = progress_bar();
    let tables = compare(args.quick, &folder, &|done, all| advance(&bar, done, all));
    bar.finish_and_clear();
    let Some(tables) = or_broken(tables, &folder)? else { return Ok(Outcome::Broken) };
    for (header, rows) in &tables {
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        crate::print(table(&header, rows))?;
    }
    crate::print(args.out.join("index.html").display())?;
    Ok(Outcome::Good)
}
