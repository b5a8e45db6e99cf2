//! `quorate-lab quorum report`: everything about one family.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::ensure;
use quorate_quorum::catalog::{NAMES, k_majority_is_k_coterie};
use quorate_quorum::{Answers, Domination, Effort, Findings, Rule, latency, requests};
use serde_json::json;

use super::input::{self, Up};
use super::{json, words};
use crate::Outcome;

/// Arguments of `quorate-lab quorum report`.
#[derive(clap::Args, Debug)]
#[command(after_help = families())]
pub(crate) struct Args {
    /// Which family; parameters follow a colon, as in wall:3,4,5
    #[arg(long, value_name = "NAME")]
    pub(super) family: String,
    /// How many nodes (may be left out where the parameters say it)
    #[arg(long, value_name = "N")]
    nodes: Option<usize>,
    /// How many units the pool has
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    units: u32,
    /// How likely a node is alive: one probability, or one per node separated by commas
    #[arg(long, value_name = "P", default_value = "0.9")]
    up: Up,
    /// Requests per second each node can answer, separated by commas: adds the family's capacity
    #[arg(long, value_name = "C0,C1,...")]
    capacities: Option<String>,
    /// A file with a matrix of delays between nodes: adds the mean wait for the nearest quorum
    #[arg(long, value_name = "FILE")]
    delays: Option<PathBuf>,
    /// Steps one question may cost before a bound is given instead
    #[arg(long, value_name = "STEPS", default_value_t = Effort::DEFAULT)]
    effort: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn families() -> String {
    let mut text = String::from("Families (n nodes, k units):\n");
    for (name, params, what) in NAMES {
        text.push_str(&format!("  {:<28}{what}\n", format!("{name}{params}")));
    }
    text.push_str(&format!("  {:<28}quorums from a file, see `check`\n", "file:PATH"));
    text.push_str(
        "\nExamples:\n  \
         quorate-lab quorum report --family uniform --nodes 7 --units 2\n  \
         quorate-lab quorum report --family wall:1,2,3 --units 1 --up 0.99 --json\n  \
         quorate-lab quorum report --family 'expr:choose(2, all(0,1), all(2,3), 4)' --units 1\n",
    );
    text
}

/// Reports on a family. Exit code 0 whatever is found.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let units = args.units as usize;
    let family = input::family(&args.family, args.nodes, units)?;
    let nodes = family.rule.nodes();
    let up = args.up.for_nodes(nodes)?;
    let answers = Answers::new(&family);
    let mut effort = input::effort(args.effort, &format!("examining {}", family.name));
    let found = Findings::from_answers(&answers, units, &up, &mut effort);
    drop(effort);
    let extras = Extras::new(args, &answers, family.rule.as_ref())?;
    let mut out = std::io::stdout().lock();
    if args.json {
        let mut report = json::Report::new(&family.name, &found);
        extras.add_to(&mut report, &family.name, &found);
        report.bound("notes", json!(notes(&family.name, &found)));
        serde_json::to_writer(&mut out, &report)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", words::report(&family.name, &found, &args.up.describe()))?;
        write!(out, "{}", extras.in_words())?;
        for note in notes(&family.name, &found) {
            writeln!(out, "  note: {note}")?;
        }
    }
    Ok(Outcome::Good)
}

/// Families per claim size are examined together up to this many units.
const CLAIMS_MAX: usize = 512;

/// What is reported only when asked for.
struct Extras {
    capacity: Option<(f64, f64)>,
    latency: Option<f64>,
}

impl Extras {
    fn new(args: &Args, answers: &Answers<'_>, rule: &dyn Rule) -> anyhow::Result<Extras> {
        let mut extras = Extras { capacity: None, latency: None };
        if let Some(text) = &args.capacities {
            let capacities = input::per_node(text, rule.nodes(), "--capacities")?;
            let capacity = answers.capacity(&capacities);
            ensure!(capacity.is_some(), "the family is too large for a linear program");
            extras.capacity = capacity.map(|capacity| (capacity.low, capacity.high));
        }
        if let Some(path) = &args.delays {
            let delays = input::delays(path, rule.nodes())?;
            extras.latency = latency::mean_nearest(rule, &delays);
        }
        Ok(extras)
    }

    fn add_to(&self, report: &mut json::Report, name: &str, found: &Findings) {
        if let Some((low, high)) = self.capacity {
            report.bound("capacity", json!({ "low": low, "high": high }));
        }
        if let Some(latency) = self.latency {
            report.bound("latency", json!(latency));
        }
        if name.starts_with("threshold") && found.units <= CLAIMS_MAX {
            let sizes = requests::quorum_sizes(found.nodes, found.units);
            let safe = requests::unsafe_conflict(found.nodes, &sizes).is_none();
            report.bound("sizes_by_claim", json!(sizes));
            report.bound("safe_together", json!(safe));
        }
    }

    fn in_words(&self) -> String {
        let mut text = String::new();
        if let Some((low, high)) = self.capacity {
            let range = if high - low <= 1e-9 * high {
                format!("{low:.6}")
            } else {
                format!("{low:.6} to {high:.6}")
            };
            text.push_str(&format!("  capacity      {range} requests per second\n"));
        }
        if let Some(latency) = self.latency {
            let mean = "on average over nodes, each asking its nearest quorum";
            text.push_str(&format!("  latency       {latency:.6} {mean}\n"));
        }
        text
    }
}

/// What a careful colleague would add.
fn notes(name: &str, found: &Findings) -> Vec<String> {
    let mut notes = Vec::new();
    let (nodes, units) = (found.nodes, found.units);
    if found.survives.known() == Some(0) && nodes > 1 {
        notes.push("one crash of the right node stops everything".to_owned());
    }
    let dominated = matches!(found.domination, Some(Some(Domination::Dominated(_))));
    if name == "uniform" && dominated {
        let voters = (nodes - 1) / (units + 1) * (units + 1) + 1;
        notes.push(format!("let only {voters} of the {nodes} nodes vote: better in every way"));
    }
    if matches!(name, "k-majority" | "k-singleton" | "cohorts") && units > 1 {
        let valid = name != "k-majority" || k_majority_is_k_coterie(nodes, units);
        let what =
            if valid { "a k-coterie: " } else { "not even a k-coterie here; k-coteries are " };
        notes.push(format!("{what}for {units} holders of one unit each, not for larger claims"));
    }
    if name.starts_with("threshold") && units <= CLAIMS_MAX {
        let sizes = requests::quorum_sizes(nodes, units);
        let shown: Vec<String> = sizes.iter().take(16).map(ToString::to_string).collect();
        let more = if units > 16 { ", ..." } else { "" };
        notes.push(format!("quorums for claims of 1, 2, ... units: {}{more}", shown.join(", ")));
        notes.push(match requests::unsafe_conflict(nodes, &sizes) {
            None => "safe together: any claims for more than all units share a node".to_owned(),
            Some(claims) => format!("NOT safe together: {claims:?} may share no node"),
        });
    }
    if name.starts_with("cube") {
        notes.push("cubes are from the paper and seldom a good choice: see `plan`".to_owned());
    }
    notes
}
