//! One file per verb: its arguments, and what it does with them.

mod sim;

use crate::Outcome;

/// What quorate can do.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Command {
    /// Simulate a pool: measure it, break things, look for broken laws.
    #[command(subcommand)]
    Sim(sim::Sim),
}

/// Does it.
pub(crate) fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Sim(sim) => sim::run(sim),
    }
}
