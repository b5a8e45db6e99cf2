//! `quorate-lab sim`: the simulator at the command line.

mod arbiter_messages;
mod figures;
pub(crate) mod film;
mod labels;
mod report;
mod ring_stabilization;
pub(crate) mod run;
pub(crate) mod seeds;
pub(crate) mod sweep;

pub(crate) use arbiter_messages::worst;

use crate::Outcome;

/// What the simulator can do.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Sim {
    /// Run one pool and measure it, or replay a seed.
    Run(Box<run::Args>),
    /// Run many seeds, each of which draws everything, and look for broken laws.
    Seeds(Box<seeds::Args>),
    /// Measure how long a ring takes to become right from any state.
    RingStabilization(ring_stabilization::Args),
    /// Count what a grant costs where quorums decide, quiet, saturated and at worst.
    ArbiterMessages(arbiter_messages::Args),
    /// Compare protocols and settings: run every combination, draw and tabulate it.
    Sweep(sweep::Args),
    /// Replay recorded runs of the allocator for units that differ.
    Labels(labels::Args),
    /// Run a paper's evaluation again, and say which of its claims hold.
    #[command(subcommand)]
    Figures(figures::Figures),
}

/// Does it.
pub(crate) fn run(sim: Sim) -> anyhow::Result<Outcome> {
    match sim {
        Sim::Run(args) => run::run(&args),
        Sim::Seeds(args) => seeds::run(&args),
        Sim::RingStabilization(args) => ring_stabilization::run(&args),
        Sim::ArbiterMessages(args) => arbiter_messages::run(&args),
        Sim::Sweep(args) => sweep::run(&args),
        Sim::Labels(args) => labels::run(&args),
        Sim::Figures(figures) => figures::run(&figures),
    }
}

/// `0x5eed` or `24301`.
pub(crate) fn parse_seed(text: &str) -> Result<u64, String> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    }
    .map_err(|_| format!("'{text}' is no seed: write a number, or 0x and hexadecimal digits"))
}
