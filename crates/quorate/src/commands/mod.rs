//! One file per verb: its arguments, and what it does with them.

mod ring;

use crate::Outcome;

/// What quorate can do.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Command {
    /// Look into protocol `ring`.
    Ring(ring::Args),
}

/// Does it.
pub(crate) fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Ring(args) => ring::run(&args),
    }
}
