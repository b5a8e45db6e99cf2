//! `quorate apply`: the pools of a file, all of them or none.

use std::path::PathBuf;

use anyhow::Context;
use quorate_api::ApplyRequest;

use super::cluster::{self, Cluster, Json};
use super::pool::{Again, print};
use crate::Outcome;

/// Make pools what a file says, all of them or none.
///
/// For clusters with a charter (docs/charter.md). The file has `[[pools]]`, each with a name, and
/// nothing else. Those that are not there are made and those that are others are changed, up to
/// 1000 at once; what the file does not name stays as it is. A change that cannot be made while
/// nodes run is refused, and so is a field that no pool has: then nothing is done.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate apply -f pools.toml --dry-run
  quorate apply -f pools.toml

Exit codes: 0 all are as the file says; 2 nothing changed, or, if that is what is said, it is not
known whether it did.")]
pub(crate) struct Args {
    /// The file.
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// Only say what would be done.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    again: Again,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    json: Json,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let pools = std::fs::read_to_string(&args.file)
        .with_context(|| format!("{}: it cannot be read", args.file.display()))?;
    cluster::block_on(async {
        let views = args.again.views(&args.cluster)?;
        let made = views.apply_pools(&ApplyRequest { pools, dry_run: args.dry_run }).await?;
        print(args.json, &made)
    })
}
