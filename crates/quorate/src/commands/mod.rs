//! One file per verb: its arguments, and what it does with them.

mod bench;
mod check;
mod daemon;
mod dev;
mod quorum;
mod serve;
mod sim;

use crate::Outcome;

/// What quorate can do.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Command {
    Dev(dev::Args),
    Serve(serve::Args),
    /// The laboratory: which sets of nodes may decide, and what that is worth.
    #[command(subcommand)]
    Quorum(quorum::Command),
    /// Simulate a pool: measure it, break things, look for broken laws.
    #[command(subcommand)]
    Sim(sim::Sim),
    Check(check::Args),
    /// Measure how fast this machine answers.
    #[command(subcommand)]
    Bench(bench::Command),
}

/// Does it.
pub(crate) fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Dev(args) => dev::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Quorum(command) => quorum::run(command),
        Command::Sim(sim) => sim::run(sim),
        Command::Check(args) => check::run(&args),
        Command::Bench(command) => bench::run(command),
    }
}
