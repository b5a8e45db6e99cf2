//! `quorate pools`: what there is.

use std::collections::BTreeMap;

use quorate_api::{PoolView, format_span};
use quorate_client::{Screen, Views};

use super::cluster::{self, Cluster, Json, table};
use super::status;
use crate::Outcome;

/// List the pools, or show one of them. A list has a thousand.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate pools
  quorate pools --after licences
  quorate pools licences --json")]
pub(crate) struct Args {
    /// One pool, with what is held of it now.
    pool: Option<String>,
    /// List those whose names come after this one.
    #[arg(long, value_name = "NAME", conflicts_with = "pool")]
    after: Option<String>,
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
        let mut pools = views.pools_after(args.after.as_deref().unwrap_or_default()).await?;
        let (counted, is_all) = counts(&views).await?;
        for pool in &mut pools.pools {
            let nothing = is_all.then_some((0, 0));
            if let Some((held, waiting)) = counted.get(&pool.name).copied().or(nothing) {
                (pool.held, pool.waiting) = (Some(held), Some(waiting));
            }
        }
        cluster::print(args.json.json, &pools, || {
            let mut text = rows(&pools.pools);
            for pattern in &pools.patterns {
                text.push_str(&format!("on demand: {pattern}\n"));
            }
            if pools.left_out > 0 {
                let last = pools.pools.last().map_or("", |pool| &pool.name);
                let more = format!("and {} more: --after {last} lists them\n", pools.left_out);
                text.push_str(&more);
            }
            text
        })?;
        Ok(Outcome::Good)
    })
}

/// How many units are held and how many claims wait, over all nodes, of the pools of which that is
/// not nothing; and whether those are all.
async fn counts(views: &Views) -> anyhow::Result<(BTreeMap<String, (u32, u32)>, bool)> {
    let (mut counts, mut is_all) = (BTreeMap::new(), true);
    for only in ["held", "waiting"] {
        let mut seen = 0;
        for page in 0..=PAGES {
            let screen = Screen { page, rows: ROWS, only: Some(only), ..Screen::default() };
            let overview = views.overview(&screen).await?;
            let short = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
            seen += overview.pools.len() as u64;
            // Pools may come and go between two pages.
            let is_last = overview.pools.is_empty() || seen >= overview.pools_found;
            let rows = overview.pools.into_iter();
            counts.extend(rows.map(|row| (row.name, (short(row.held), short(row.waiting)))));
            if is_last {
                break;
            }
            is_all &= page < PAGES;
        }
    }
    Ok((counts, is_all))
}

/// As many as a node shows at once, and how often it is asked for more.
const ROWS: usize = 200;
const PAGES: usize = 25;

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
                match (&pool.grants, pool.grace_ms) {
                    (Some(grants), _) if !grants.grants() => "UNAVAILABLE".into(),
                    (_, Some(_)) => format!("grace {}", cluster::span(pool.grace_ms)),
                    (_, None) => String::new(),
                },
            ]
        })
        .collect();
    let header = ["pool", "units", "held", "waiting", "protocol", "lease", "durable", ""];
    table(&header, &rows)
}
