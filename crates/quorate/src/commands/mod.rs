//! One file per verb: its arguments, and what it does with them.

mod bench;
mod quorum;

use crate::Outcome;

/// What quorate can do.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Command {
    /// Measure how fast this machine answers
    #[command(subcommand)]
    Bench(bench::Command),
    /// The laboratory: which sets of nodes may decide, and what that is worth
    #[command(subcommand)]
    Quorum(quorum::Command),
}

/// Does it.
pub(crate) fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Bench(command) => bench::run(command),
        Command::Quorum(command) => quorum::run(command),
    }
}
