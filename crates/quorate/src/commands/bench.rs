//! `quorate bench`: how fast this machine answers. One subcommand per subject; each lives with it.

use crate::Outcome;
use crate::commands::quorum;

/// Subcommands of `quorate bench`.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Command {
    /// Questions of the quorum laboratory
    Quorum(quorum::bench::Args),
}

/// Does it.
pub(crate) fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Quorum(args) => quorum::bench::run(&args),
    }
}
