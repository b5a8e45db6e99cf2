//! `quorate why`: what a claim waits for.

use anyhow::bail;
use quorate_api::ClaimId;

use super::cluster::{self, Cluster, Json};
use super::status;
use crate::Outcome;

/// Say why a claim waits: its place, what is missing, who is in the way, and for how long yet.
///
/// The estimate plays the future many times with holds as long as those of the recent past. What is
/// listed under `would start now if` is what an operator could do; nothing of it happens by itself.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate why 4f1d0c...
  quorate why 4f1d0c... --pool licences --json

Exit codes: 0 answered, 2 if nobody could say.")]
pub(crate) struct Args {
    /// The claim, as `quorate queue` lists it.
    #[arg(value_parser = cluster::claim_id)]
    id: ClaimId,
    /// Its pool, if more than one knows a claim of this name.
    #[arg(long, value_name = "POOL")]
    pool: Option<String>,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    json: Json,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    cluster::block_on(async {
        let views = args.cluster.views()?;
        let pool = match args.pool {
            Some(pool) => pool,
            None => {
                let found = views.find(args.id).await?;
                match &found.pools[..] {
                    [pool] => pool.clone(),
                    [] if found.silent.is_empty() => bail!("no node knows claim {}", args.id),
                    [] => bail!(
                        "no node that answered knows claim {}; silent: {}",
                        args.id,
                        found.silent.join(", ")
                    ),
                    several => bail!(
                        "claim {} is known to several pools: name one with --pool ({})",
                        args.id,
                        several.join(", ")
                    ),
                }
            }
        };
        let status = views.claim(&pool, args.id).await?;
        cluster::print(args.json.json, &status, || status::claim_text(&status))?;
        Ok(Outcome::Good)
    })
}
