//! `quorate-lab quorum show`: draws a family as SVG.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use quorate_core::NodeSet;
use quorate_quorum::sampling::Draws;

use super::words::many;
use super::{draw, input};
use crate::Outcome;

/// Arguments of `quorate-lab quorum show`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Boxes and cubes are drawn plane by plane, walls, cohorts and hierarchies by rows, trees as trees,
thresholds as a ring; planes, spaces and everything else as an incidence picture (a row per
quorum, a column per node). One quorum is coloured; --pick chooses another one.

Examples:
  quorate-lab quorum show --family grid --nodes 16 --units 1 --out grid.svg
  quorate-lab quorum show --family cube --nodes 27 --units 2 > cube.svg
  quorate-lab quorum show --family plane --nodes 13 --units 1 --incidence > plane.svg")]
pub(crate) struct Args {
    /// Which family; parameters follow a colon (see `report --help`)
    #[arg(long, value_name = "NAME")]
    family: String,
    /// How many nodes (may be left out where the parameters say it)
    #[arg(long, value_name = "N")]
    nodes: Option<usize>,
    /// How many units the pool has
    #[arg(long, value_name = "K", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    units: u32,
    /// Which quorum is coloured: any number gives one, the same each time
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pick: u64,
    /// Always draw the incidence picture
    #[arg(long)]
    incidence: bool,
    /// Where to write the picture (standard output otherwise)
    #[arg(long, value_name = "FILE.svg")]
    out: Option<PathBuf>,
}

/// More nodes than this cannot be told apart in a picture.
const NODES_MAX: usize = 1000;
/// More quorums than this are not drawn as rows.
const ROWS_MAX: usize = 400;

/// Draws.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let units = args.units as usize;
    let family = input::family(&args.family, args.nodes, units)?;
    let nodes = family.rule.nodes();
    ensure!(nodes <= NODES_MAX, "{nodes} nodes are too many for a picture (at most {NODES_MAX})");
    let everyone = NodeSet::first(nodes);
    let quorum = family
        .rule
        .pick(&everyone, &mut Draws::new(args.pick))
        .context("the family has no quorum")?;
    let (shown, pool) = (many(nodes, "node", "nodes"), many(units, "unit", "units"));
    let title = format!("{} on {shown}, {pool}", family.name);
    let name = family.name.split(':').next().unwrap_or_default();
    let params: Vec<usize> = family.name.split_once(':').map_or(vec![], |(_, text)| {
        text.split(',').filter_map(|p| p.trim().parse().ok()).collect()
    });
    let layout = if args.incidence { None } else { draw::layout(name, &params, nodes, units) };
    let picture = match layout {
        Some(layout) => draw::nodes(&title, &layout, &quorum),
        None => {
            let quorums = family.rule.enumerate(ROWS_MAX);
            let quorums = quorums.with_context(|| {
                format!("more than {ROWS_MAX} quorums are too many for an incidence picture")
            })?;
            draw::incidence(&title, nodes, &quorums, &quorum)
        }
    };
    match &args.out {
        Some(path) => {
            std::fs::write(path, picture)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        None => std::io::stdout().lock().write_all(picture.as_bytes())?,
    }
    Ok(Outcome::Good)
}
