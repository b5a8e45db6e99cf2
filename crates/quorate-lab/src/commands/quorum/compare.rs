//! `quorate-lab quorum compare`: several families side by side, as a table and as a picture.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context, bail};
use quorate_quorum::{Answers, Domination, Effort, Family, Findings};
use serde_json::{Value, json};

use super::input::{self, Up};
use super::words::{many, probability, short};
use super::{json, plot};
use crate::Outcome;

/// Arguments of `quorate-lab quorum compare`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Without --families every family that fits the nodes and units is compared. Families with
parameters are separated by spaces or semicolons: --families 'uniform;wall:1,3,5'.

Examples:
  quorate-lab quorum compare --nodes 9 --units 1
  quorate-lab quorum compare --nodes 16 --units 2 --families 'uniform hierarchy:4,4' --svg 2.svg")]
pub(crate) struct Args {
    /// How many nodes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    nodes: u32,
    /// How many units the pool has
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    units: u32,
    /// Which families, separated by spaces or semicolons
    #[arg(long, value_name = "NAMES")]
    families: Option<String>,
    /// How likely a node is alive: one probability, or one per node separated by commas
    #[arg(long, value_name = "P", default_value = "0.9")]
    up: Up,
    /// Draw size, load, crashes survived, and availability over the probability of being up
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    /// Print one JSON array of reports
    #[arg(long)]
    json: bool,
}

/// Arbiters first, then families that are good for one unit or k-coteries only.
const EVERYTHING: &[&str] = &[
    "singleton",
    "uniform",
    "hierarchy",
    "tree",
    "wall",
    "plane",
    "space",
    "grid",
    "cube",
    "universe",
    "majority",
    "k-majority",
    "cohorts",
];

/// One family with its curve.
pub(super) struct Compared {
    pub(super) name: String,
    pub(super) found: Findings,
    pub(super) curve: Vec<f64>,
}

/// Compares.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let (nodes, units) = (args.nodes as usize, args.units as usize);
    let up = args.up.for_nodes(nodes)?;
    let ups = plot::probabilities();
    let mut effort = input::effort(Effort::DEFAULT / 4, "comparing families");
    let mut compared = Vec::new();
    for family in families(args, nodes, units)? {
        let answers = Answers::new(&family);
        let found = Findings::from_answers(&answers, units, &up, &mut effort);
        let drawn = args.svg.is_some();
        let curve = if drawn { answers.availability_curve(&ups, &mut effort) } else { Vec::new() };
        compared.push(Compared { name: family.name.clone(), found, curve });
    }
    drop(effort);
    if compared.is_empty() {
        bail!("no family fits {nodes} nodes and {units} units");
    }
    if let Some(path) = &args.svg {
        let other = compared.iter().any(|c| c.found.arbiter() != Some(true));
        let note = if other { format!(" (*: not a {units}-arbiter)") } else { String::new() };
        let (nodes, pool) = (many(nodes, "node", "nodes"), many(units, "unit", "units"));
        let title = format!("{nodes}, {pool}{note}");
        let picture = plot::comparison(&title, &compared)?;
        std::fs::write(path, picture)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        let reports: Vec<json::Report> =
            compared.iter().map(|c| json::Report::new(&c.name, &c.found)).collect();
        let curve = |c: &Compared| json!({ "family": c.name, "up": ups, "availability": c.curve });
        let curves: Vec<Value> =
            compared.iter().filter(|c| !c.curve.is_empty()).map(curve).collect();
        serde_json::to_writer(&mut out, &json!({ "families": reports, "curves": curves }))?;
        writeln!(out)?;
    } else {
        write!(out, "{}", table(&compared, units, &args.up.describe()))?;
    }
    Ok(Outcome::Good)
}

fn families(args: &Args, nodes: usize, units: usize) -> anyhow::Result<Vec<Family>> {
    if let Some(names) = &args.families {
        let names = names.split([' ', ';']).filter(|name| !name.is_empty());
        return names.map(|name| input::family(name, Some(nodes), units)).collect();
    }
    let fits = |name: &str| match name {
        "majority" | "k-majority" | "cohorts" | "space" => units > 1,
        "grid" | "plane" => units == 1,
        _ => true,
    };
    let chosen = EVERYTHING.iter().filter(|name| fits(name));
    let built = chosen.map(|name| input::family(name, Some(nodes), units));
    // What does not fit this number of nodes is simply not shown.
    Ok(built.filter_map(Result::ok).collect())
}

fn table(compared: &[Compared], units: usize, up: &str) -> String {
    let wide = compared.iter().map(|c| c.name.len()).max().unwrap_or(0).max(8) + 2;
    let mut text = format!("availability: {up}\n");
    text.push_str(&format!(
        "{:<wide$}{:>12}{:>10}{:>10}{:>10}{:>9}{:>16}  {}\n",
        "family",
        "quorums",
        "sizes",
        "load",
        "survives",
        "domin.",
        "availability",
        format_args!("{units}-arbiter")
    ));
    for Compared { name, found, .. } in compared {
        let sizes = found.size_range().map_or("?".to_owned(), |(least, most)| {
            if least == most { least.to_string() } else { format!("{least}-{most}") }
        });
        let load = found
            .exact_load()
            .map_or_else(|| format!("<={:.4}", found.load.high), |load| format!("{load:.4}"));
        let survives =
            found.survives.known().map_or(format!(">={}", found.survives.low), |s| s.to_string());
        let dominated = match &found.domination {
            Some(Some(Domination::Nondominated)) => "no",
            Some(Some(Domination::Dominated(_))) => "yes",
            Some(None) => "-",
            None => "?",
        };
        let arbiter = match found.arbiter() {
            Some(true) => "yes",
            Some(false) => "no",
            None => "?",
        };
        let count = found.quorums.as_ref().map_or("?".to_owned(), short);
        let available = probability(found.availability.value, found.availability.missing);
        text.push_str(&format!("{name:<wide$}{count:>12}{sizes:>10}{load:>10}{survives:>10}"));
        text.push_str(&format!("{dominated:>9}{available:>16}  {arbiter}\n"));
    }
    text
}
