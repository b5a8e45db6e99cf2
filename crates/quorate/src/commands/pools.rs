//! `quorate pools`: what there is.

use std::collections::BTreeMap;

use quorate_api::{PoolView, format_span};
use quorate_client::{Screen, Views};

use super::cluster::{self, Cluster, Json, table};
use super::status;
use crate::Outcome;

/// List the pools, or show one of them.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate pools
  quorate pools licences --json")]
pub(crate) struct Args {
    /// One pool, with what is held of it now.
    pool: Option<String>,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    json: Json,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    cluster::block_on(async {
        let views = args.cluster.views()?;
        if let Some(name) = &args.pool {
            let pool = views.pool(name).await?;
            cluster::print(args.json.json, &pool, || {
                let mut text = rows(std::slice::from_ref(&pool));
                text.push_str(&status::facts(&pool.facts));
                status::silent(&mut text, &pool.silent);
                text
            })?;
            return Ok(Outcome::Good);
        }
        let mut pools = views.pools().await?;
        let counted = counts(&views).await?;
        for pool in &mut pools.pools {
            if let Some((held, waiting)) = counted.get(&pool.name) {
                (pool.held, pool.waiting) = (Some(*held), Some(*waiting));
            }
        }
        cluster::print(args.json.json, &pools, || {
            let mut text = rows(&pools.pools);
            for pattern in &pools.patterns {
                text.push_str(&format!("on demand: {pattern}\n"));
            }
            if pools.left_out > 0 {
                text.push_str(&format!("and {} more\n", pools.left_out));
            }
            text
        })?;
        Ok(Outcome::Good)
    })
}

/// How many units of each pool are held, and how many claims wait, over all nodes.
async fn counts(views: &Views) -> anyhow::Result<BTreeMap<String, (u32, u32)>> {
    let mut counts = BTreeMap::new();
    for page in 0.. {
        let screen = Screen { page, rows: ROWS, ..Screen::default() };
        let overview = views.overview(&screen).await?;
        let short = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let rows = overview.pools.into_iter();
        let before = counts.len();
        counts.extend(rows.map(|row| (row.name, (short(row.held), short(row.waiting)))));
        // Pools may come and go between two pages.
        if counts.len() == before || counts.len() as u64 >= overview.pools_found {
            break;
        }
    }
    Ok(counts)
}

/// As many as a node shows at once.
const ROWS: usize = 200;

fn rows(pools: &[PoolView]) -> String {
    let known = |number: Option<u32>| number.map_or_else(|| "-".into(), |n| n.to_string());
    let rows: Vec<Vec<String>> = pools
        .iter()
        .map(|pool| {
            vec![
                pool.name.clone(),
                pool.units.to_string(),
                known(pool.held),
                known(pool.waiting),
                pool.protocol.clone(),
                format_span(std::time::Duration::from_millis(pool.lease_ms)),
                if pool.durable { "yes" } else { "no" }.into(),
                pool.grace_ms.map_or_else(String::new, |_| {
                    format!("grace {}", cluster::span(pool.grace_ms))
                }),
            ]
        })
        .collect();
    let header = ["pool", "units", "held", "waiting", "protocol", "lease", "durable", ""];
    table(&header, &rows)
}
