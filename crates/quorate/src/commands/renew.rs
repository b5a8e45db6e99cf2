//! `quorate renew`: more time for a grant, once.

use anyhow::bail;
use quorate_api::{ClaimId, ClaimState, RenewRequest};

use super::cluster::{self, Cluster, Json};
use super::status;
use crate::Outcome;

/// Extend a grant by one lease from now.
///
/// Ask the node at which the claim was made: others do not know which units it has.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  quorate renew licences 4f1d0c...

Exit codes: 0 renewed, 2 if not; stop using the units then.")]
pub(crate) struct Args {
    /// The pool.
    pool: String,
    /// The claim, as `quorate acquire` printed it.
    #[arg(value_parser = cluster::claim_id)]
    id: ClaimId,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    json: Json,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    cluster::block_on(async {
        let request = RenewRequest::default();
        let status = args.cluster.views()?.renew(&args.pool, args.id, &request).await?;
        cluster::print(args.json.json, &status, || status::one_line(&status))?;
        if status.state != ClaimState::Granted {
            bail!("claim {} was not renewed: it is {}", args.id, status.state.as_str());
        }
        Ok(Outcome::Good)
    })
}
