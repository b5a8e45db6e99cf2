//! One file per verb: its arguments, and what it does with them.

mod bench;
mod check;
mod quorum;
mod sim;

use crate::Outcome;

/// What quorate can do.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Command {
    Check(check::Args),
    /// Simulate a pool: measure it, break things, look for broken laws.
    #[command(subcommand)]
    Sim(sim::Sim),
    /// The laboratory: which sets of nodes may decide, and what that is worth.
    #[command(subcommand)]
    Quorum(quorum::Command),
    /// Measure how fast this machine answers.
    #[command(subcommand)]
    Bench(bench::Command),
}

/// Does it.
pub(crate) fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Check(args) => check::run(&args),
        Command::Sim(sim) => sim::run(sim),
        Command::Bench(command) => bench::run(command),
        Command::Quorum(command) => quorum::run(command),
    }
}
