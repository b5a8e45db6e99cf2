//! `quorate sim sweep`: an experiment from a file.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};

use crate::Outcome;
use crate::experiment::{Sweep, write_all};

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate sim sweep experiment.toml --out results

A file may say, for example:
  title = \"Latency\"
  protocols = [\"central\", \"raymond\", \"timer-free\"]
  nodes = 20
  units = 4
  crashes_max = 3
  rho = [1, 2, 4, 8]
  latency = [0.05, 0.2]
  repetitions = 5

Every combination is run. Protocols: central, arbiter-uniform, arbiter-cube, ticket, table, ring,
raymond, raynal, timer-free, weighted. The folder gets results.csv, results.json, a figure for each
metric, and index.html, which needs nothing else.")]
pub(crate) struct Args {
    /// The experiment
    file: PathBuf,
    /// The folder for its results
    #[arg(long, value_name = "DIR", default_value = "sweep")]
    out: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let text = fs::read_to_string(&args.file)
        .with_context(|| format!("cannot read {}", args.file.display()))?;
    let sweep = Sweep::parse(&text)?;
    let bar = progress_bar();
    let cells = sweep.run(&|done, all| advance(&bar, done, all))?;
    bar.finish_and_clear();
    write_all(&sweep, &cells, &args.out)?;
    crate::print(format_args!("{} settings, {} runs each", cells.len(), sweep.repetitions))?;
    crate::print(args.out.join("index.html").display())?;
    Ok(Outcome::Good)
}

/// Hidden where standard error is no terminal.
pub(super) fn progress_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar} {pos} of {len} runs, {eta} left");
    ProgressBar::new(0).with_style(style.expect("the template is sound"))
}

pub(super) fn advance(bar: &ProgressBar, done: usize, all: usize) {
    bar.set_length(all as u64);
    bar.set_position(done as u64);
}
