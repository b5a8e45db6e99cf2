//! `quorate relabel`: give a unit other labels while its pool runs.

use std::collections::BTreeMap;

use super::cluster::{self, Cluster, Json};
use super::status;
use crate::Outcome;

/// Give a unit other labels while its pool runs.
///
/// The labels named here replace all that the unit had; --undo gives it those of the configuration
/// again. Whoever holds the unit keeps it until it is done. Claims that wait are looked at again
/// and keep their place: some may be granted, and those that can never be granted now are refused.
/// In a pool of the nodes' files the configuration stays the state in which the pool starts: after
/// a restart of the node that decides its labels are back, unless the pool is durable, and who may
/// use a unit (reserved) does not change. In a pool of the charter they are what the charter says
/// from then on, and --undo knows no others. If the cluster has an administrator's token, it must
/// be in $QUORATE_TOKEN.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate relabel gpus gpu3 gpu=h100 zone=eu
  quorate relabel gpus gpu3 --undo")]
pub(crate) struct Args {
    /// The pool.
    pool: String,
    /// The unit, by name or number.
    unit: String,
    /// All its labels from now on.
    #[arg(value_name = "KEY=VALUE", value_parser = label, required_unless_present = "undo")]
    labels: Vec<(String, String)>,
    /// Give it the labels of the configuration again.
    #[arg(long, conflicts_with = "labels")]
    undo: bool,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    json: Json,
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => {
            Ok((key.to_owned(), value.to_owned()))
        }
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    let mut labels = BTreeMap::new();
    for (key, value) in args.labels {
        if labels.insert(key.clone(), value).is_some() {
            anyhow::bail!("{key} is named twice: a unit has one value of each label");
        }
    }
    cluster::block_on(async {
        let views = args.cluster.views()?;
        let labels = (!args.undo).then_some(labels);
        let pool = views.relabel(&args.pool, &args.unit, labels).await?;
        cluster::print(args.json.json, &pool, || status::pool_text(&pool))?;
        Ok(Outcome::Good)
    })
}
