//! `quorate queue`: who waits, in what order.

use super::cluster::{self, Cluster, Json, span, table};
use super::status::{lines, or_dash, silent};
use crate::Outcome;

/// List who waits for units of a pool, the next one first.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  quorate queue licences")]
pub(crate) struct Args {
    /// The pool.
    pool: String,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    json: Json,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    cluster::block_on(async {
        let view = args.cluster.views()?.queue(&args.pool).await?;
        cluster::print(args.json.json, &view, || {
            let rows: Vec<Vec<String>> = view
                .waiting
                .iter()
                .map(|waiter| {
                    vec![
                        waiter.position.map_or_else(|| "-".into(), |p| p.to_string()),
                        waiter.id.to_string(),
                        match &waiter.lines[..] {
                            [] => waiter.count.to_string(),
                            asked => lines(asked),
                        },
                        span(waiter.waiting_ms),
                        or_dash(&waiter.node).into(),
                        or_dash(&waiter.client).into(),
                        or_dash(&waiter.reason).into(),
                    ]
                })
                .collect();
            let header = ["place", "claim", "units", "waiting", "node", "who", "what for"];
            let mut text = table(&header, &rows);
            if view.grace_ms.is_some() {
                let wait = span(view.grace_ms);
                let line = format!("the arbiter restarted: nothing is granted for {wait}\n");
                text.push_str(&line);
            }
            silent(&mut text, &view.silent);
            text
        })?;
        Ok(Outcome::Good)
    })
}
