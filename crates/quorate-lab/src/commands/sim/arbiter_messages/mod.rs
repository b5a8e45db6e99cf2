//! `quorate-lab sim arbiter-messages`: what a grant costs where quorums decide.
//!
//! Three questions, each with what theory says (RR-2523, section 3.2; arbiter spec 7.9):
//! a quiet grant, one in a saturated pool, and the most that one arbiter can be made to send. Then
//! messages per grant over the load, for several families and for protocols without quorums.

pub(crate) mod worst;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use quorate_core::{Lease, Protocol};
use quorate_protocols::arbiter::{self, Arbiter};
use quorate_protocols::broadcast;
use quorate_protocols::central::{self, Central};
use quorate_protocols::quorums::family::Need;
use quorate_protocols::reference::Raymond;
use quorate_protocols::ticket::{self, Ticket};
use quorate_sim::{Arrivals, Plan, Span, Verdict, Want, Watch};
use serde_json::json;

use super::parse_seed;
use crate::{Outcome, plots};

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate-lab sim arbiter-messages
  quorate-lab sim arbiter-messages --grants 20000 --svg messages.svg
  quorate-lab sim arbiter-messages --json")]
pub(crate) struct Args {
    /// Grants in each run
    #[arg(long, default_value_t = 2_000)]
    grants: u64,
    /// Where all chance comes from
    #[arg(long, value_parser = parse_seed, default_value = "0x5eed")]
    seed: u64,
    /// Print numbers as JSON
    #[arg(long)]
    json: bool,
    /// Draw messages per grant over the load
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

const NODES: u32 = 16;
const UNITS: u32 = 2;
/// How long clients think, in multiples of how long they use their units: from quiet to saturated.
const THINK: [u64; 7] = [2_000, 200, 50, 20, 10, 4, 0];
/// A client uses its units for ten messages' time.
const HOLD: u64 = 10_000_000;

/// Families of 16 nodes and 2 units, and how many units a claim is for. A cube of these sides
/// survives next to nothing and must be asked for. By size, claims of 1 are as in uniform.
const FAMILIES: [(&str, &str, u32); 5] = [
    ("uniform", "uniform", 1),
    ("hierarchical", "hierarchy:4,4", 1),
    ("plane (PG(3,2))", "space:3,2", 1),
    ("cube", "cube:2,2,4", 1),
    ("by size, claims of 2", "threshold", 2),
];

/// One protocol's messages per grant, from quiet to saturated.
struct Row {
    name: String,
    /// Members of a quorum, where there are quorums.
    quorum: Option<usize>,
    /// What a quiet grant costs, by theory, when nobody is in its own quorum.
    quiet: Option<usize>,
    points: Vec<Point>,
}

struct Point {
    /// Units in use on average, as a share of all.
    load: f64,
    messages: f64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    ensure!(args.grants > 0, "--grants must be at least 1");
    let rows = rows(args)?;
    let worst: Vec<worst::Worst> = [(1, 1), (2, 1), (2, 2), (2, 3), (3, 2), (4, 4)]
        .into_iter()
        .map(|(units, whole)| worst::play(units, whole))
        .collect();
    if args.json {
        crate::print(format_args!("{:#}", json(&rows, &worst)))?;
    } else {
        crate::print(table(&rows, &worst)?.trim_end())?;
    }
    if let Some(path) = &args.svg {
        let line = |row: &Row| plots::Line {
            name: row.name.clone(),
            points: row.points.iter().map(|point| (100.0 * point.load, point.messages)).collect(),
        };
        let title = format!("Messages per grant: {NODES} nodes share {UNITS} units");
        let lines: Vec<plots::Line> = rows.iter().map(line).collect();
        let svg = plots::lines(&title, "units in use, %", "messages per grant", &lines)?;
        std::fs::write(path, svg).with_context(|| format!("writing {}", path.display()))?;
    }
    let reached = worst.iter().all(|worst| worst.messages == worst.bound());
    Ok(if reached { Outcome::Good } else { Outcome::Broken })
}

fn rows(args: &Args) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, spec, want) in FAMILIES {
        let units = UNITS as usize;
        let need = Need { survive: 0, ..Need::counting(NODES as usize, units, units) };
        let chosen = need.family(spec)?;
        let mut pool = arbiter::Pool::new(UNITS, NODES);
        pool.quorums = chosen.quorums;
        pool.lease = forever();
        let (small, large) = chosen.summary.quorum;
        let quorum = if want == 1 { large } else { small };
        rows.push(row::<Arbiter>(args, name, &pool, want, Some((quorum, 3 * quorum)))?);
    }
    let mut pool = ticket::Pool::new(UNITS, NODES);
    pool.lease = forever();
    let quorum = NODES as usize / 2 + 1;
    rows.push(row::<Ticket>(args, "tickets", &pool, 1, Some((quorum, 5 * quorum)))?);
    let mut pool = central::Pool::new(UNITS);
    pool.goods.lease = forever();
    rows.push(row::<Central>(args, "central", &pool, 1, None)?);
    let pool = broadcast::Pool::raymond(NODES, UNITS);
    rows.push(row::<Raymond>(args, "broadcast (Raymond)", &pool, 1, None)?);
    Ok(rows)
}

/// Leases play no part in what is compared, nor do repetitions.
fn forever() -> Lease {
    Lease::new(Duration::from_secs(1_000_000), 0)
}

fn row<P: Protocol>(
    args: &Args,
    name: &str,
    pool: &P::Pool,
    want: u32,
    quorum: Option<(usize, usize)>,
) -> anyhow::Result<Row> {
    let mut points = Vec::new();
    for think in THINK {
        let mut plan = Plan::quiet(args.seed, NODES, UNITS);
        plan.duration = u64::MAX / 4;
        plan.grants_max = args.grants;
        plan.workload.hold = Span::Exponential(HOLD);
        plan.workload.want = Want::always(want);
        let think = if think == 0 { Span::ZERO } else { Span::Exponential(think * HOLD) };
        plan.workload.arrivals = Arrivals::Closed { clients_per_node: 1, think };
        let report = quorate_sim::run::<P>(&plan, pool, Watch::default());
        if let Verdict::Broken(breach) = &report.verdict {
            return Err(anyhow!("{name}: {breach}"));
        }
        let measures = &report.measures;
        let load = measures.utilization().max(1e-4);
        points.push(Point { load, messages: measures.messages_per_grant() });
    }
    let (quorum, quiet) = quorum.unzip();
    Ok(Row { name: name.to_owned(), quorum, quiet, points })
}

fn table(rows: &[Row], worst: &[worst::Worst]) -> anyhow::Result<String> {
    let mut text = String::new();
    writeln!(text, "messages per grant, {NODES} nodes share {UNITS} units")?;
    write!(text, "{:<22}{:>4}{:>7}", "", "|Q|", "3|Q|")?;
    writeln!(text, "{:>9}{:>52}", "quiet", "saturated")?;
    for row in rows {
        let number = |number: Option<usize>| number.map_or("-".to_owned(), |n| n.to_string());
        write!(text, "{:<22}{:>4}{:>7}", row.name, number(row.quorum), number(row.quiet))?;
        for point in &row.points {
            write!(text, "{:>9.2}", point.messages)?;
        }
        writeln!(text)?;
    }
    writeln!(text, "3|Q| counts a node's messages to itself (5|Q| for tickets); the runs do not.")?;
    writeln!(text)?;
    writeln!(text, "the worst for one arbiter: k claims for one unit, b older ones for all k")?;
    writeln!(text, "{:>3}{:>4}{:>14}{:>10}{:>10}", "k", "b", "3(k+b)+3kb", "fences", "played")?;
    for worst in worst {
        let (k, b, fences) = (worst.units, worst.whole, worst.fences());
        let bound = worst.bound() - fences;
        writeln!(text, "{k:>3}{b:>4}{bound:>14}{fences:>10}{:>10}", worst.messages)?;
    }
    writeln!(
        text,
        "A single unit has a fence, which everybody but the first must raise: 2b more."
    )?;
    Ok(text)
}

fn json(rows: &[Row], worst: &[worst::Worst]) -> serde_json::Value {
    let point =
        |point: &Point| json!({ "utilization": point.load, "messages_per_grant": point.messages });
    let row = |row: &Row| {
        json!({
            "name": row.name,
            "quorum": row.quorum,
            "quiet_bound": row.quiet,
            "points": row.points.iter().map(point).collect::<Vec<_>>(),
        })
    };
    let played = |worst: &worst::Worst| {
        json!({
            "units": worst.units,
            "whole_pool_claims": worst.whole,
            "bound": worst.bound(),
            "of_which_fences": worst.fences(),
            "messages": worst.messages,
        })
    };
    json!({
        "nodes": NODES,
        "units": UNITS,
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
        "worst": worst.iter().map(played).collect::<Vec<_>>(),
    })
}
