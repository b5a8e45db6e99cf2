//! `quorate-lab merge`: all parts of a campaign, as the undivided run would have said it.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Parser as _;

use super::Command;
use super::sim::Sim;
use crate::Outcome;
use crate::campaign::{Division, gather};

/// Put the parts of a campaign together: says and writes what one undivided run would have.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate-lab sim seeds --count 1000 --shard 1/2 --out parts
  quorate-lab sim seeds --count 1000 --shard 2/2 --out parts
  quorate-lab merge parts

Parts come from sim seeds, sim sweep, compare and reproduce, with --shard and --out. What the
campaign was asked for is in them. Nothing is run again.

Exit codes: those of the undivided run; 2 if parts are missing, damaged or of several campaigns.")]
pub(crate) struct Args {
    /// The folder with all parts
    folder: PathBuf,
}

/// Does it.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let gathered = gather(&args.folder)?;
    let words = std::iter::once("quorate-lab".to_owned()).chain(gathered.arguments.clone());
    let cli = crate::Cli::try_parse_from(words).context("the arguments that the parts name")?;
    let division = Division::merged(gathered);
    match cli.command {
        Command::Sim(Sim::Seeds(mut seeds)) => {
            seeds.division = division;
            super::sim::seeds::run(&seeds)
        }
        Command::Sim(Sim::Sweep(mut sweep)) => {
            sweep.division = division;
            sweep.out.clone_from(&args.folder);
            super::sim::sweep::run(&sweep)
        }
        Command::Compare(mut compare) => {
            compare.division = division;
            super::compare::run(&compare)
        }
        Command::Reproduce(mut reproduce) => {
            reproduce.division = division;
            super::reproduce::run(&reproduce)
        }
        _ => bail!("the parts are of a command that is not divided"),
    }
}
