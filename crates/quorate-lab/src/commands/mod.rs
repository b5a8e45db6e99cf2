//! One file or folder per verb: its arguments, and what it does with them.

mod bench;
pub(crate) mod check;
mod compare;
mod fuzz;
mod merge;
mod plan;
pub(crate) mod play;
pub(crate) mod quorum;
mod reproduce;
mod ring;
pub(crate) mod sim;
mod vectors;

use quorate_cli::cluster;

use crate::Outcome;

/// What the laboratory can do.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Command {
    /// Which sets of nodes may decide, and what that is worth.
    #[command(subcommand)]
    Quorum(quorum::Command),
    /// Simulate a pool: measure it, break things, look for broken laws.
    #[command(subcommand)]
    Sim(sim::Sim),
    Check(Box<check::Args>),
    Compare(compare::Args),
    /// Measure how fast this machine answers.
    #[command(subcommand)]
    Bench(bench::Command),
    Fuzz(fuzz::Args),
    Merge(merge::Args),
    Plan(Box<plan::Args>),
    Play(play::Args),
    Reproduce(reproduce::Args),
    /// Look into protocol `ring`.
    Ring(ring::Args),
}

/// Does it.
pub(crate) fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Quorum(command) => quorum::run(command),
        Command::Sim(sim) => sim::run(sim),
        Command::Check(args) => check::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Bench(command) => bench::run(command),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Play(args) => play::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Ring(args) => ring::run(&args),
    }
}
