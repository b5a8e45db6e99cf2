//! `quorate acquire`: a grant that outlives the command, for scripts that release it themselves.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_api::{ClaimId, ClaimState};
use quorate_client::Want;
use serde::Serialize;

use super::cluster::{self, Cluster, Json};
use super::signals::{ENDING, Signals};
use super::status;
use super::waiting::{self, Claimed, Patience, Wish};
use super::wanted::Wanted;
use crate::Outcome;

/// Claim units, wait for them, and print what was granted.
///
/// The grant is not renewed: release it, or renew it with `quorate renew`, before its lease ends.
/// `quorate run` does all of that for a command. Interrupting the wait cancels the claim. While it
/// waits, a terminal shows its place, how long it may take and which node answers.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate acquire licences -n 2
  quorate acquire gpus -n 2 --where gpu=h100,zone=eu --and 1:kind=nic
  quorate acquire licences --try || echo 'none is free'
  claim=$(quorate acquire licences --json | jq -r .id)
  quorate release licences \"$claim\"
  quorate acquire licences --detach 1h --id 17
  quorate acquire reboots --standing --reason 'kernel of node 7'

Exit codes: 0 granted, or with --detach queued; 122 not free (--try); 124 not granted in time (the
claim is cancelled); 128 + the signal that interrupted it (likewise); 2 anything else.")]
pub(crate) struct Args {
    /// The pool.
    pool: String,
    #[command(flatten)]
    wanted: Wanted,
    #[command(flatten)]
    patience: Patience,
    /// Do not wait: leave the claim in the queue, and print how it stands. Without anybody who asks
    /// for it, it is kept for this long. Ask for it at the same node (--id, --server): granted, it
    /// lasts one lease, whether or not anybody came for it.
    #[arg(long, value_name = "SPAN", value_parser = cluster::duration)]
    #[arg(conflicts_with_all = ["timeout", "now"])]
    detach: Option<Duration>,
    /// Have the units without a lease: until `quorate release` or `quorate revoke`, whoever
    /// restarts. Only in pools with standing = true.
    #[arg(long, conflicts_with = "detach")]
    standing: bool,
    /// What for, in words that whoever waits will read.
    #[arg(long, default_value = "", value_name = "TEXT")]
    reason: String,
    /// The claim's name; repeating a claim under its name is harmless. Without it, a new one.
    #[arg(long, value_name = "ID", value_parser = cluster::claim_id)]
    id: Option<ClaimId>,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    json: Json,
}

/// What was granted.
#[derive(Serialize)]
struct Granted {
    id: ClaimId,
    pool: String,
    state: ClaimState,
    count: usize,
    /// Which, with their fences; none if the pool only counts.
    units: Vec<u32>,
    names: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<BTreeMap<String, String>>,
    fences: Vec<u64>,
    /// From now.
    expires_in_ms: u64,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    if let Some(keep) = args.detach {
        return leave(&args, keep);
    }
    if args.standing {
        return stand(&args);
    }
    cluster::block_on(async {
        let client = args.cluster.connect().await?;
        let mut signals = Signals::hear(&ENDING)?;
        let wish = Wish {
            client: &client,
            cluster: &args.cluster,
            pool: &args.pool,
            reason: args.reason.clone(),
            id: args.id.unwrap_or_else(|| client.new_id()),
            want: args.wanted.want(),
            patience: &args.patience,
        };
        match waiting::claim(wish, signals.any()).await {
            Claimed::Granted(grant) => print(&args, grant),
            Claimed::Over(code) => Ok(Outcome::Code(code)),
            Claimed::Failed(error) => Err(error.into()),
        }
    })
}

/// How long a claim for a hold without a lease is kept while this command cannot reach anybody.
const KEPT: Duration = Duration::from_secs(60);
/// How long one request waits.
const TURN: Duration = Duration::from_secs(4);

/// Claims units without a lease, and waits for them. Nothing is renewed, so no link is needed.
fn stand(args: &Args) -> anyhow::Result<Outcome> {
    cluster::block_on(async {
        let reason = args.reason.clone();
        let want = Want { reason, standing: true, ..args.wanted.want() };
        let views = args.cluster.views()?;
        let id = args.id.unwrap_or_else(quorate_client::Views::new_id);
        let mut signals = Signals::hear(&ENDING)?;
        let began = tokio::time::Instant::now();
        loop {
            let left = args.patience.left(began.elapsed());
            let asked = views.make_claim(&args.pool, id, &want, (left.min(TURN), KEPT));
            let status = tokio::select! {
                status = asked => status?,
                signal = signals.any() => {
                    views.release(&args.pool, id).await?;
                    eprintln!("quorate: interrupted; claim {id} is cancelled");
                    return Ok(Outcome::Code(128 + signal.as_raw() as u8));
                }
            };
            if status.state == ClaimState::Granted {
                cluster::print(args.json.json, &status, || status::one_line(&status))?;
                return Ok(Outcome::Good);
            }
            if args.patience.left(began.elapsed()).is_zero() {
                // What was granted meanwhile is given back: nobody would know of it.
                views.release(&args.pool, id).await?;
                eprintln!("quorate: not granted in time; claim {id} is cancelled");
                return Ok(Outcome::Code(args.patience.too_late()));
            }
        }
    })
}

/// Makes the claim, and does not wait for it.
fn leave(args: &Args, keep: Duration) -> anyhow::Result<Outcome> {
    cluster::block_on(async {
        let want = Want { reason: args.reason.clone(), ..args.wanted.want() };
        let views = args.cluster.views()?;
        let status = views.leave_claim(&args.pool, args.id, &want, keep).await?;
        cluster::print(args.json.json, &status, || {
            format!("{} at {}", status::one_line(&status), status.node)
        })?;
        Ok(Outcome::Good)
    })
}

fn print(args: &Args, grant: quorate_client::Grant) -> anyhow::Result<Outcome> {
    let left = grant.remaining();
    let granted = Granted {
        id: grant.id(),
        pool: args.pool.clone(),
        state: ClaimState::Granted,
        count: grant.count(),
        units: grant.units(),
        names: grant.names(),
        labels: match grant.labels() {
            labels if labels.iter().all(BTreeMap::is_empty) => Vec::new(),
            labels => labels,
        },
        fences: grant.fences(),
        expires_in_ms: left.as_millis() as u64,
    };
    cluster::print(args.json.json, &granted, || {
        let left = cluster::span(Some(granted.expires_in_ms));
        format!("{} {} for {left}", grant.id(), shares(&grant))
    })?;
    grant.forget();
    Ok(Outcome::Good)
}

/// Units with their fences, as `unit 0 fence 7, unit 3 fence 7`, or by name; how many, if the pool
/// only counts.
fn shares(grant: &quorate_client::Grant) -> String {
    if grant.shares().is_empty() {
        let count = grant.count();
        return format!("{count} unit{}", if count == 1 { "" } else { "s" });
    }
    let share = |(share, name): (&quorate_client::Share, String)| match share.unit.to_string() {
        number if number == name => format!("unit {name} fence {}", share.fence),
        _ => format!("{name} fence {}", share.fence),
    };
    grant.shares().iter().zip(grant.names()).map(share).collect::<Vec<_>>().join(", ")
}
