//! `quorate bench`: how fast it is, here.

mod load;
mod local;

use crate::Outcome;

/// What can be measured.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Bench {
    Load(load::Args),
}

pub(crate) fn run(bench: Bench) -> anyhow::Result<Outcome> {
    match bench {
        Bench::Load(args) => load::run(&args),
    }
}
