//! `quorate revoke`: an operator takes units back.

use quorate_api::ClaimId;

use super::cluster::{self, Cluster, Json};
use super::status;
use crate::Outcome;

/// Take a grant back from its holder.
///
/// The holder is told and stops; the units return when it has, or at the end of its lease. If the
/// cluster asks for the administrator's token, give it in $QUORATE_TOKEN.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  quorate holders licences
  quorate revoke licences 4f1d0c... --reason 'the machine is gone'")]
pub(crate) struct Args {
    /// The pool.
    pool: String,
    /// The claim, as `quorate holders` lists it.
    #[arg(value_parser = cluster::claim_id)]
    id: ClaimId,
    /// Why, in words that its holder will read.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    json: Json,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    cluster::block_on(async {
        let status = args.cluster.views()?.revoke(&args.pool, args.id, &args.reason).await?;
        cluster::print(args.json.json, &status, || status::one_line(&status))?;
        Ok(Outcome::Good)
    })
}
