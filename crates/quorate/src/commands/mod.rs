//! One file per verb: its arguments, and what it does with them.

mod check;

use crate::Outcome;

/// What quorate can do.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Command {
    Check(check::Args),
}

/// Does it.
pub(crate) fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Check(args) => check::run(&args),
    }
}
