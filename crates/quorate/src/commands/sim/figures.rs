//! `quorate sim figures`: the evaluation of a paper, run again.

use std::path::PathBuf;

use super::sweep::{advance, progress_bar};
use crate::Outcome;
use crate::experiment::{Effort, figures};

/// Which paper.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Figures {
    TimerFree(Args),
}

/// Bouillaguet, Arantes, Sens 2009: a timer-free fault tolerant k-mutual exclusion algorithm
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate sim figures timer-free --out figures
  quorate sim figures timer-free --latency 0.1 --out figures-fast
  quorate sim figures timer-free --quick

The folder gets a figure and a table for each of the paper's figures, results.json, and index.html,
which needs nothing else and says of each claim whether it holds.

Exit code 1 if something came out otherwise than theory expects.")]
pub(crate) struct Args {
    /// The folder for the results
    #[arg(long, value_name = "DIR", default_value = "figures")]
    out: PathBuf,
    /// One way between two clusters, in seconds; the paper's two numbers need different ones
    #[arg(long, value_name = "SECONDS", default_value = "1.0", value_parser = parse_latency)]
    latency: f64,
    /// A few settings and repetitions only, to see that it works
    #[arg(long)]
    quick: bool,
}

fn parse_latency(text: &str) -> Result<f64, String> {
    let latency = text.parse().ok().filter(|latency| (1e-6..=100.0).contains(latency));
    latency.ok_or_else(|| format!("'{text}' is no latency: write 1.0 or 0.1"))
}

pub(crate) fn run(figures_of: &Figures) -> anyhow::Result<Outcome> {
    let Figures::TimerFree(args) = figures_of;
    let bar = progress_bar();
    let effort = Effort { latency: args.latency, quick: args.quick };
    let outcome = figures(effort, &args.out, &|done, all| advance(&bar, done, all))?;
    bar.finish_and_clear();
    for line in &outcome.summary {
        println!("{line}");
    }
    println!("{}", args.out.join("index.html").display());
    Ok(if outcome.all_as_expected { Outcome::Good } else { Outcome::Broken })
}
