//! `quorate apply`: the pools of a file, however many.

use std::io::IsTerminal;
use std::path::PathBuf;

use anyhow::Context;
use quorate_api::{AmendedView, ApplyRequest, ClaimId};
use quorate_client::{ViewError, Views};

use super::cluster::{self, Cluster, Json};
use super::pool::{Again, print};
use crate::Outcome;

/// Make pools what a file says.
///
/// For clusters with a charter (docs/charter.md). The file has `[[pools]]`, each with a name, and
/// nothing else. Those that are not there are made and those that are others are changed; what the
/// file does not name stays as it is. A change that cannot be made while nodes run is refused, and
/// so is a field that no pool has: then nothing is done.
///
/// Up to 1000 pools are made or changed together, all of them or none. A longer file is done in
/// parts, in its order. All of it is looked at first, and nothing is done if any of it would be
/// refused; but other things may happen between two parts, and then it says how far it came. Say it
/// again: what is as the file says stays as it is.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate apply -f pools.toml --dry-run
  quorate apply -f pools.toml

Exit codes: 0 all are as the file says; 2 nothing changed, or, if that is what is said, some did or
it is not known whether any did.")]
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
    // What no node can read the node that is asked says best.
    let mut parts = quorate_node::parts(&pools).unwrap_or_default();
    if parts.len() <= 1 {
        parts = vec![(pools, 0)];
    }
    cluster::block_on(async {
        let file = File { views: args.again.views(&args.cluster)?, parts, id: args.again.id() };
        let made = match args.dry_run {
            true => file.ask(true).await.map_err(|(_, error)| error)?,
            false => file.apply().await?,
        };
        print(args.json, &made)
    })
}

/// A file, in parts that can each be asked for at once.
struct File {
    views: Views,
    /// Each with how many pools it has.
    parts: Vec<(String, usize)>,
    id: Option<ClaimId>,
}

impl File {
    async fn apply(&self) -> anyhow::Result<AmendedView> {
        if self.parts.len() > 1 {
            self.ask(true).await.map_err(|(_, error)| error)?;
        }
        self.ask(false).await.map_err(|(done, error)| {
            let pools: usize = self.parts[..done].iter().map(|(_, pools)| pools).sum();
            match done {
                0 => error.into(),
                _ => anyhow::anyhow!(
                    "the first {pools} pools of the file are as it says (parts 1 to {done} of {}); \
                     part {}, of which all or nothing is done: {error}. Say it again for the rest",
                    self.parts.len(),
                    done + 1
                ),
            }
        })
    }

    /// Asks for one part after the other. An error comes with how many were answered before.
    async fn ask(&self, dry_run: bool) -> Result<AmendedView, (usize, ViewError)> {
        let mut all = AmendedView { version: 0, changes: Vec::new() };
        for (number, (pools, _)) in self.parts.iter().enumerate() {
            self.progress(number, dry_run);
            let request = ApplyRequest { pools: pools.clone(), dry_run };
            let views = self.views.clone().with_request_id(self.id.map(|id| id_of(id, number)));
            let made = views.apply_pools(&request).await.map_err(|error| (number, error))?;
            all.version = all.version.max(made.version);
            all.changes.extend(made.changes);
        }
        Ok(all)
    }

    /// For whoever looks on.
    fn progress(&self, number: usize, dry_run: bool) {
        let of = self.parts.len();
        if of > 1 && std::io::stderr().is_terminal() {
            let doing = if dry_run { "looking at" } else { "applying" };
            let end = if number + 1 == of { '\n' } else { '\r' };
            eprint!("{doing} part {} of {of}{end}", number + 1);
        }
    }
}

/// The name of the request for a part, if that for all of them has this one.
fn id_of(id: ClaimId, part: usize) -> ClaimId {
    ClaimId::from_halves(id.origin(), id.serial().wrapping_add(part as u64))
}
