//! One file per verb: its arguments, and what it does with them.

use crate::Outcome;

/// What quorate can do.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Command {}

/// Does it.
pub(crate) fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {}
}
