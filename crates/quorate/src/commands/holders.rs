//! `quorate holders`: who has units, since when and what for.

use super::cluster::{self, Cluster, Json, span, table};
use super::status::{ends, or_dash, silent};
use crate::Outcome;

/// List who holds units of a pool.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  quorate holders licences")]
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
        let view = args.cluster.views()?.holders(&args.pool).await?;
        cluster::print(args.json.json, &view, || {
            let rows: Vec<Vec<String>> = view
                .holders
                .iter()
                .map(|holder| {
                    let unit = |u: &quorate_api::UnitView| {
                        u.name.clone().unwrap_or_else(|| u.unit.to_string())
                    };
                    let units: Vec<String> = holder.units.iter().map(unit).collect();
                    vec![
                        holder.id.to_string(),
                        holder.count.to_string(),
                        or_dash(&units.join(",")).into(),
                        span(holder.held_ms),
                        ends(holder),
                        or_dash(&holder.node).into(),
                        or_dash(&holder.client).into(),
                        or_dash(&holder.reason).into(),
                    ]
                })
                .collect();
            let header = ["claim", "units", "which", "held", "ends in", "node", "who", "what for"];
            let mut text = table(&header, &rows);
            silent(&mut text, &view.silent);
            text
        })?;
        Ok(Outcome::Good)
    })
}
