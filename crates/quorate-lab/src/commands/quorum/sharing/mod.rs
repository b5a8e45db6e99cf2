//! `quorate-lab quorum sharing`: units that differ, and processes that may not use them all.

mod compare;
pub(crate) mod input;
mod report;
pub(crate) mod vectors;

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context, bail};
use quorate_quorum::Effort;
use quorate_quorum::sharing::Construction;

use crate::Outcome;

/// Arguments of `quorate-lab quorum sharing`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The file holds {\"units\": [\"r1\", \"r2\"], \"alpha\": {\"u1\": [\"r1\", \"r2\"], ...}}:
the units, and which of them each process may use. Processes with the same units form a group.

Exit code: 0 (with --vectors: every reference value agrees), 1 a reference value differs, 2 the
file or an option is wrong.

Examples:
  quorate-lab quorum sharing structure.json
  quorate-lab quorum sharing structure.json --construction named --json
  quorate-lab quorum sharing structure.json --among u1,u3
  quorate-lab quorum sharing --vectors labels.json")]
pub(crate) struct Args {
    /// The structure
    #[arg(value_name = "FILE", required_unless_present = "vectors")]
    file: Option<PathBuf>,
    /// Show one construction in full, with its quorums if they are few
    #[arg(long, value_name = "NAME", value_enum)]
    construction: Option<Name>,
    /// How many of these processes can hold a unit at once (all of them otherwise)
    #[arg(long, value_name = "PROCESS,...", value_delimiter = ',')]
    among: Vec<String>,
    /// Compare with a file of reference values instead, entry by entry
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "construction", "among"])]
    vectors: Option<PathBuf>,
    /// Steps one question may cost before the proved answer is given without a search
    #[arg(long, value_name = "STEPS", default_value_t = Effort::DEFAULT / 10)]
    effort: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    /// The paper's: a block of arbiters for every set of groups
    Product,
    /// One arbiter per unit
    Named,
    /// A block for every union of a circuit, the fewest
    Reduced,
}

impl From<Name> for Construction {
    fn from(name: Name) -> Self {
        match name {
            Name::Product => Construction::Product,
            Name::Named => Construction::Named,
            Name::Reduced => Construction::Reduced,
        }
    }
}

/// Examines a structure, or replays reference values.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    if let Some(path) = &args.vectors {
        let file = vectors::read(path)?;
        return crate::commands::vectors::print(&vectors::compare(&file, args.effort), args.json);
    }
    let Some(path) = &args.file else { bail!("name a file") };
    let structure = input::structure_from_file(path)?;
    let among = args
        .among
        .iter()
        .map(|name| {
            let known = structure.processes().iter().position(|process| process == name);
            known.with_context(|| format!("--among {name}: no such process"))
        })
        .collect::<anyhow::Result<Vec<usize>>>()?;
    let effort = &mut Effort::new(args.effort);
    let construction = args.construction.map(Construction::from);
    let found = report::Found::new(&structure, construction, among, effort)
        .context("its circuits are too many to list; --effort allows more steps")?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{:#}", found.json())?;
    } else {
        write!(out, "{}", found.text())?;
    }
    Ok(Outcome::Good)
}
