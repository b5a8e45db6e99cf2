//! `quorate-lab quorum check`: a family given by its quorums, with a counterexample for every "no".

use std::io::Write as _;
use std::path::PathBuf;

use quorate_core::NodeSet;
use quorate_quorum::{Answers, Effort, Explicit, Findings, KCoterie, fewest_apart, k_coterie};
use serde_json::{Map, Value, json};

use super::input::{self, Up};
use super::json::{self, members};
use super::words;
use crate::Outcome;

/// Arguments of `quorate-lab quorum check`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The file holds {\"nodes\": n, \"quorums\": [[0,1],[1,2],...]}, nodes numbered from 0.

Exit code: 0 the family is what --as asks for (a k-arbiter unless said otherwise),
1 it is not (or that is too large to decide), 2 the file or an option is wrong.

Examples:
  quorate-lab quorum check quorums.json --units 2
  quorate-lab quorum check quorums.json --units 3 --as k-coterie --json")]
pub(crate) struct Args {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How many units the pool has
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    units: u32,
    /// What the family should be, for the exit code
    #[arg(long = "as", value_name = "KIND", value_enum, default_value_t = Kind::Arbiter)]
    kind: Kind,
    /// How likely a node is alive: one probability, or one per node separated by commas
    #[arg(long, value_name = "P", default_value = "0.9")]
    up: Up,
    /// Steps one question may cost before a bound is given instead
    #[arg(long, value_name = "STEPS", default_value_t = Effort::DEFAULT)]
    effort: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Any k+1 quorums meet, none contains another
    Arbiter,
    /// Any two quorums meet, none contains another
    Coterie,
    /// Among any k+1 quorums two meet, fewer than k disjoint ones leave room, none contains another
    KCoterie,
}

/// Examines a file.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let family = input::from_file(&args.file)?;
    let up = args.up.for_nodes(family.nodes())?;
    let mut effort = input::effort(args.effort, "examining the file");
    let found = Examined::new(&family, args.units as usize, &up, &mut effort);
    drop(effort);
    let mut out = std::io::stdout().lock();
    let name = format!("file:{}", args.file.display());
    if args.json {
        serde_json::to_writer(&mut out, &found.to_json(&name))?;
        writeln!(out)?;
    } else {
        write!(out, "{}", words::report(&name, &found.findings, &args.up.describe()))?;
        write!(out, "{}", found.in_words())?;
    }
    let good = match args.kind {
        Kind::Arbiter => found.arbiter(),
        Kind::Coterie => found.coterie,
        Kind::KCoterie => found.k_coterie.as_ref().map(KCoterie::holds),
    };
    Ok(if good == Some(true) { Outcome::Good } else { Outcome::Broken })
}

/// What `check --json` prints.
#[derive(serde::Serialize)]
struct Checked {
    #[serde(flatten)]
    report: json::Report,
    coterie: Option<bool>,
    k_coterie: Option<bool>,
    counterexamples: Map<String, Value>,
}

/// Findings with the counterexamples that only a list of quorums can have.
struct Examined {
    findings: Findings,
    coterie: Option<bool>,
    k_coterie: Option<KCoterie>,
    /// k+1 quorums or fewer with nothing in common.
    apart: Option<Vec<NodeSet>>,
    /// Two quorums with nothing in common.
    disjoint: Option<Vec<NodeSet>>,
    inclusion: Option<(NodeSet, NodeSet)>,
    empty: bool,
    better: Option<Explicit>,
}

impl Examined {
    fn new(family: &Explicit, units: usize, up: &[f64], effort: &mut Effort<'_>) -> Examined {
        let answers = Answers::of(family);
        let findings = Findings::from_answers(&answers, units, up, effort);
        let minimal = family.minimalised();
        let empty = family.quorums().iter().any(NodeSet::is_empty);
        effort.renew();
        let apart = fewest_apart(&minimal, units + 1, effort).ok().flatten();
        effort.renew();
        let disjoint = fewest_apart(&minimal, 2, effort);
        let inclusion = family.inclusion();
        let coterie = disjoint.as_ref().ok().map(|d| d.is_none() && inclusion.is_none() && !empty);
        effort.renew();
        let k_coterie = k_coterie(family, units, effort).ok();
        let witness = findings.domination.clone().flatten();
        let better = witness
            .as_ref()
            .and_then(quorate_quorum::Domination::witness)
            .map(|w| minimal.dominated_by(w));
        let disjoint = disjoint.ok().flatten();
        Examined { findings, coterie, k_coterie, apart, disjoint, inclusion, empty, better }
    }

    fn arbiter(&self) -> Option<bool> {
        if self.empty { Some(false) } else { self.findings.arbiter() }
    }

    fn to_json(&self, name: &str) -> Checked {
        let mut report = json::Report::new(name, &self.findings);
        report.arbiter = self.arbiter();
        Checked {
            report,
            coterie: self.coterie,
            k_coterie: self.k_coterie.as_ref().map(KCoterie::holds),
            counterexamples: self.counterexamples(),
        }
    }

    /// For each question answered "no", what shows it.
    fn counterexamples(&self) -> Map<String, Value> {
        let mut shown = Map::new();
        let sets = |sets: &[NodeSet]| json!(sets.iter().map(members).collect::<Vec<_>>());
        let inclusion = self.inclusion.as_ref().map(|(a, b)| json!([members(a), members(b)]));
        if let Some(apart) = &self.apart {
            shown.insert("intersecting".into(), sets(apart));
        }
        if let Some(inclusion) = &inclusion {
            shown.insert("minimal".into(), inclusion.clone());
        }
        let none = self.empty.then(|| json!([[]]));
        let apart = self.apart.as_deref().map(sets);
        if self.arbiter() == Some(false)
            && let Some(why) = apart.or(inclusion.clone()).or(none.clone())
        {
            shown.insert("arbiter".into(), why);
        }
        let disjoint = self.disjoint.as_deref().map(sets);
        if self.coterie == Some(false)
            && let Some(why) = disjoint.or(inclusion.clone()).or(none)
        {
            shown.insert("coterie".into(), why);
        }
        if let Some(found) = self.k_coterie.as_ref().filter(|found| !found.holds()) {
            let (condition, why) = if let Some(stuck) = &found.stuck {
                ("non-intersection", sets(stuck))
            } else if let Some(too_many) = &found.too_many {
                ("intersection", sets(too_many))
            } else if let Some(inclusion) = inclusion {
                ("minimality", inclusion)
            } else {
                ("non-emptiness", json!([[]]))
            };
            shown.insert("k_coterie".into(), json!({ "condition": condition, "quorums": why }));
        }
        if let Some(better) = &self.better {
            let quorums: Vec<_> = better.quorums().iter().take(1000).map(members).collect();
            let all = better.quorums().len() <= 1000;
            let shown_by = json!({ "dominating": quorums, "complete": all });
            shown.insert("nondominated".into(), shown_by);
        }
        shown
    }

    fn in_words(&self) -> String {
        let list =
            |sets: &[NodeSet]| sets.iter().map(NodeSet::to_string).collect::<Vec<_>>().join(" ");
        let mut text = String::new();
        let mut line = |label: &str, value: String| {
            text.push_str(&format!("  {label:<14}{value}\n"));
        };
        let word = |answer| match answer {
            Some(true) => "yes",
            Some(false) => "no",
            None => "too large to decide",
        };
        line("coterie", word(self.coterie).to_owned());
        let k_coterie = self.k_coterie.as_ref().map(KCoterie::holds);
        line(&format!("{}-coterie", self.findings.units), word(k_coterie).to_owned());
        if let Some(apart) = &self.apart {
            line("apart", format!("{} have nothing in common", list(apart)));
        }
        if let Some((small, large)) = &self.inclusion {
            line("inclusion", format!("{small} is inside {large}"));
        }
        if self.empty {
            line("empty", "a quorum is empty".to_owned());
        }
        let stuck = self.k_coterie.as_ref().and_then(|found| found.stuck.as_ref());
        if let Some(stuck) = stuck.filter(|stuck| !stuck.is_empty()) {
            line("stuck", format!("nothing is disjoint from {}", list(stuck)));
        }
        if let Some(too_many) = self.k_coterie.as_ref().and_then(|found| found.too_many.as_ref()) {
            line("too many", format!("{} are pairwise disjoint", list(too_many)));
        }
        text
    }
}
