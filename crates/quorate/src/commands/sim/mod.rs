//! `quorate sim`: the simulator at the command line.

mod report;
mod run;
mod seeds;

use crate::Outcome;

/// What the simulator can do.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Sim {
    /// Run one pool and measure it, or replay a seed.
    Run(Box<run::Args>),
    /// Run many seeds, each of which draws everything, and look for broken laws.
    Seeds(seeds::Args),
}

/// Does it.
pub(crate) fn run(sim: Sim) -> anyhow::Result<Outcome> {
    match sim {
        Sim::Run(args) => run::run(&args),
        Sim::Seeds(args) => seeds::run(&args),
    }
}

/// `0x5eed` or `24301`.
fn parse_seed(text: &str) -> Result<u64, String> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    }
    .map_err(|_| format!("'{text}' is no seed: write a number, or 0x and hexadecimal digits"))
}
