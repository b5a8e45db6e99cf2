//! `quorate release`: gives a grant back, or cancels a claim, by its id.

use quorate_api::ClaimId;

use super::cluster::{self, Cluster, Json};
use super::status;
use crate::Outcome;

/// Give units back, or cancel a claim that waits.
///
/// Any node will do, and repeating it is harmless: the claim is over at all nodes that have heard
/// of it, and those that have not are named.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  quorate release licences 4f1d0c...

Exit codes: 0 it is over, now or since before; 121 no node that answers knows such a claim in that
pool; 2 anything else.")]
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

/// No node that answers knows the claim.
const UNKNOWN: u8 = 121;

pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    cluster::block_on(async {
        let status = args.cluster.views()?.release(&args.pool, args.id).await?;
        if status.unknown && !args.json.json {
            let (pool, id) = (&args.pool, args.id);
            eprintln!(
                "quorate: no node that answers knows a claim {id} in pool {pool}; nothing was \
                 released. `quorate holders {pool}` and `quorate queue {pool}` list what there is"
            );
        } else {
            cluster::print(args.json.json, &status, || status::one_line(&status))?;
        }
        if !status.unheard.is_empty() {
            let nodes = status.unheard.join(", ");
            eprintln!("quorate: not heard yet by {nodes}; they hear it when they are back");
        }
        Ok(if status.unknown { Outcome::Code(UNKNOWN) } else { Outcome::Good })
    })
}
