//! One file per verb: its arguments, and what it does with them.

mod check;
mod sim;

use crate::Outcome;

/// What quorate can do.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Command {
    Check(check::Args),
    /// Simulate a pool: measure it, break things, look for broken laws.
    #[command(subcommand)]
    Sim(sim::Sim),
}

/// Does it.
pub(crate) fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Check(args) => check::run(&args),
        Command::Sim(sim) => sim::run(sim),
    }
}
