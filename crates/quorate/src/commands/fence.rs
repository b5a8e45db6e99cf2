//! `quorate fence`: an operator has made sure that a node harms nobody.

use super::cluster::{self, Cluster};
use crate::Outcome;

/// Say that a node which seems to have crashed is cut off from what a pool's units protect.
///
/// For pools of protocol broadcast with `reclaim = "fenced"`: what the node had is given to others
/// at once. So cut it off first (power, credentials, a firewall), and keep it so until it was
/// restarted. Each node decides for its own clients whom it counts: every server that is named is
/// told, and all that run must be named. One that is joining itself then joins without the node,
/// and must be told again when it takes part. If the cluster
/// asks for the administrator's token, give it in $QUORATE_TOKEN.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  quorate status licences
  quorate fence licences n4 --server n0:7420,n1:7420,n2:7420,n3:7420

Exit codes: 0 if all servers took it, 1 if not.")]
pub(crate) struct Args {
    /// The pool.
    pool: String,
    /// The node.
    node: String,
    #[command(flatten)]
    cluster: Cluster,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    cluster::block_on(async {
        let mut outcome = Outcome::Good;
        for server in args.cluster.servers() {
            match args.cluster.views_of(&server)?.fence(&args.pool, &args.node).await {
                Ok(_) => crate::print(format_args!("{server}: goes on without {}", args.node))?,
                Err(error) => {
                    eprintln!("{server}: {error}");
                    outcome = Outcome::Broken;
                }
            }
        }
        Ok(outcome)
    })
}
