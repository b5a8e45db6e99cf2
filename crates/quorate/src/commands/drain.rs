//! `quorate drain`: take a unit out of service, and bring it back.

use super::cluster::{self, Cluster, Json};
use super::status;
use crate::Outcome;

/// Take a unit out of service: nobody is granted it any more.
///
/// Whoever holds it keeps it until it is done. Claims that can never be granted without it are
/// refused. The unit stays out until `--undo`; in a pool of the nodes' files that is not durable,
/// until the node that decides over it restarts. If the cluster has an administrator's token, it
/// must be in $QUORATE_TOKEN.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate drain gpus gpu3
  quorate drain gpus gpu3 --undo")]
pub(crate) struct Args {
    /// The pool.
    pool: String,
    /// The unit, by name or number.
    unit: String,
    /// Bring it back.
    #[arg(long)]
    undo: bool,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    json: Json,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    cluster::block_on(async {
        let views = args.cluster.views()?;
        let pool = views.drain(&args.pool, &args.unit, args.undo).await?;
        cluster::print(args.json.json, &pool, || status::pool_text(&pool))?;
        Ok(Outcome::Good)
    })
}
