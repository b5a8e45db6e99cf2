//! `quorate-lab quorum plan`: which family, and why.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use quorate_quorum::Effort;
use quorate_quorum::plan::{Advice, Candidate, Requirements, plan};
use serde_json::{Value, json};

use super::input::{self, Up};
use super::words::{many, probability};
use crate::Outcome;

/// Arguments of `quorate-lab quorum plan`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Exit code: 0 there is a plan, 1 no family can do it (what to do instead is printed),
2 an option is wrong.

Examples:
  quorate-lab quorum plan --nodes 9 --units 2
  quorate-lab quorum plan --nodes 7 --units 5 --claims 1:80,4:20 --survive 1
  quorate-lab quorum plan --nodes 9 --units 8 --survive 2")]
pub(crate) struct Args {
    /// How many nodes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    nodes: u32,
    /// How many units the pool has
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    units: u32,
    /// How many crashes must be survived (one, if that is possible, unless said otherwise)
    #[arg(long, value_name = "F")]
    survive: Option<usize>,
    /// Sizes of claims and how often each occurs, as in 1:80,4:20
    #[arg(long, value_name = "H:WEIGHT,...")]
    claims: Option<String>,
    /// How likely a node is alive: one probability, or one per node separated by commas
    #[arg(long, value_name = "P", default_value = "0.9")]
    up: Up,
    /// A file with a matrix of delays between nodes: the shortest wait is then preferred
    #[arg(long, value_name = "FILE")]
    delays: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Plans.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let (nodes, units) = (args.nodes as usize, args.units as usize);
    let claims = args.claims.as_deref().map_or(Ok(Vec::new()), |text| parse_claims(text, units))?;
    let delays = match &args.delays {
        Some(path) => Some(input::delays(path, nodes)?),
        None => None,
    };
    let up = args.up.for_nodes(nodes)?;
    let wish = Requirements { nodes, units, survive: args.survive, claims, up, delays };
    let mut effort = input::effort(Effort::DEFAULT / 20, "weighing families");
    let plan = plan(&wish, &mut effort);
    drop(effort);
    let mut out = std::io::stdout().lock();
    if args.json {
        serde_json::to_writer(&mut out, &to_json(&wish, &plan))?;
        writeln!(out)?;
    } else {
        write!(out, "{}", in_words(&wish, &plan))?;
    }
    Ok(if plan.candidates.is_empty() { Outcome::Broken } else { Outcome::Good })
}

fn parse_claims(text: &str, units: usize) -> anyhow::Result<Vec<(usize, f64)>> {
    let claim = |part: &str| -> anyhow::Result<(usize, f64)> {
        let (claim, weight) = part.split_once(':').unwrap_or((part, "1"));
        let claim: usize =
            claim.trim().parse().with_context(|| format!("'{part}' is not SIZE:WEIGHT"))?;
        let weight: f64 =
            weight.trim().parse().with_context(|| format!("'{part}' is not SIZE:WEIGHT"))?;
        ensure!((1..=units).contains(&claim), "claims are from 1 to {units} units, not {claim}");
        ensure!(weight > 0.0 && weight.is_finite(), "weights are positive, not {weight}");
        Ok((claim, weight))
    };
    text.split(',').map(claim).collect()
}

fn in_words(wish: &Requirements, plan: &Advice) -> String {
    let mut text = format!(
        "{} and {}: at most {} can be survived by any family\n",
        many(wish.nodes, "node", "nodes"),
        many(wish.units, "unit", "units"),
        many(plan.survives_max, "crash", "crashes"),
    );
    if let Some(best) = plan.candidates.first() {
        let voters = if best.voters < wish.nodes {
            match best.voters {
                1 => ", letting node 0 alone vote".to_owned(),
                voters => format!(", letting nodes 0 to {} vote", voters - 1),
            }
        } else {
            String::new()
        };
        text.push_str(&format!("use {}{voters}: {}\n\n", best.name, best.reason));
        text.push_str(&table(&plan.candidates));
        text.push('\n');
    }
    for line in &plan.advice {
        text.push_str(&format!("- {line}\n"));
    }
    text
}

fn table(candidates: &[Candidate]) -> String {
    let mut text = format!(
        "  {:<18}{:>7}{:>8}{:>10}{:>10}{:>8}  {:<14} {}\n",
        "family", "voters", "quorum", "messages", "survives", "load", "availability", "why"
    );
    for c in candidates {
        let wait = c.latency.map_or(String::new(), |wait| format!("wait {wait:.3}; "));
        text.push_str(&format!(
            "  {:<18}{:>7}{:>8.1}{:>10.1}{:>10}{:>8.3}  {:<14} {wait}{}\n",
            c.name,
            c.voters,
            c.size,
            c.messages,
            c.survives,
            c.load,
            probability(c.availability, c.missing),
            c.reason
        ));
    }
    text
}

fn to_json(wish: &Requirements, plan: &Advice) -> Value {
    let candidate = |c: &Candidate| {
        json!({
            "family": c.name, "voters": c.voters, "size": c.size, "messages": c.messages,
            "survives": c.survives, "availability": c.availability,
            "unavailability": c.missing, "load": c.load,
            "latency": c.latency, "dominated": c.dominated, "reason": c.reason,
        })
    };
    json!({
        "nodes": wish.nodes,
        "units": wish.units,
        "survive": wish.survive,
        "possible": !plan.candidates.is_empty(),
        "survives_max": plan.survives_max,
        "effective_units": plan.effective_units,
        "choice": plan.candidates.first().map(candidate),
        "runners_up": plan.candidates.iter().skip(1).map(candidate).collect::<Vec<_>>(),
        "advice": plan.advice,
    })
}
