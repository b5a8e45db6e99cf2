//! What people give us: names of families, files, probabilities. Everything is checked here, once.

use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use quorate_quorum::{Effort, Explicit, Family, FamilyError, build};

/// A family by name, or from a file as `file:PATH`.
pub(super) fn family(spec: &str, nodes: Option<usize>, units: usize) -> anyhow::Result<Family> {
    let Some(path) = spec.strip_prefix("file:") else {
        return build(spec, nodes, units).map_err(|error| match error {
            FamilyError::Unknown(_) => anyhow!("{error}, and file:PATH for quorums written out"),
            _ => error.into(),
        });
    };
    let listed = from_file(Path::new(path))?;
    if let Some(nodes) = nodes {
        let inside = listed.nodes();
        ensure!(nodes == inside, "{path} is about {inside} nodes, not {nodes}");
    }
    Ok(Family { name: spec.to_owned(), rule: Box::new(listed) })
}

/// What a file of quorums looks like: `{"nodes": 3, "quorums": [[0,1],[1,2],[0,2]]}`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    nodes: usize,
    quorums: Vec<Vec<u32>>,
}

/// Reads a family written out.
pub(super) fn from_file(path: &Path) -> anyhow::Result<Explicit> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let listed: Listed = serde_json::from_str(&text)
        .with_context(|| format!(r#"{shown} is not {{"nodes": n, "quorums": [[0, 1], ...]}}"#))?;
    let limit = quorate_quorum::catalog::NODES_MAX;
    ensure!(listed.nodes <= limit, "{shown}: nodes must be at most {limit}");
    Explicit::from_lists(listed.nodes, &listed.quorums).with_context(|| format!("in {shown}"))
}

/// One probability for all nodes, or one for each.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Up(Vec<f64>);

impl FromStr for Up {
    type Err = String;

    fn from_str(text: &str) -> Result<Up, String> {
        let one = |part: &str| -> Result<f64, String> {
            let value: f64 = part.trim().parse().map_err(|_| format!("'{part}' is no number"))?;
            if (0.0..=1.0).contains(&value) {
                Ok(value)
            } else {
                Err(format!("{value} is no probability, which is from 0 to 1"))
            }
        };
        Ok(Up(text.split(',').map(one).collect::<Result<_, _>>()?))
    }
}

impl Up {
    /// One probability per node.
    pub(super) fn for_nodes(&self, nodes: usize) -> anyhow::Result<Vec<f64>> {
        match self.0.as_slice() {
            [one] => Ok(vec![*one; nodes]),
            many if many.len() == nodes => Ok(many.to_vec()),
            many => bail!("--up gives {} probabilities for {nodes} nodes", many.len()),
        }
    }

    /// In words.
    pub(super) fn describe(&self) -> String {
        match self.0.as_slice() {
            [one] => format!("nodes up {} % of the time", (one * 1e10).round() / 1e8),
            _ => "the probabilities given".to_owned(),
        }
    }
}

/// A list of positive numbers, one per node.
pub(super) fn per_node(text: &str, nodes: usize, what: &str) -> anyhow::Result<Vec<f64>> {
    let numbers: Vec<f64> = text
        .split(',')
        .map(|part| part.trim().parse().with_context(|| format!("'{part}' is no number in {what}")))
        .collect::<anyhow::Result<_>>()?;
    ensure!(numbers.iter().all(|n| *n > 0.0 && n.is_finite()), "{what} must be positive");
    ensure!(numbers.len() == nodes, "{what} gives {} numbers for {nodes} nodes", numbers.len());
    Ok(numbers)
}

/// A square matrix of delays: one row per line, numbers separated by spaces or commas; lines that
/// start with # are comments.
pub(super) fn delays(path: &Path, nodes: usize) -> anyhow::Result<Vec<Vec<f64>>> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let mut rows = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line.starts_with('#') {
            continue;
        }
        let parts = line.split(|c: char| c == ',' || c.is_whitespace()).filter(|p| !p.is_empty());
        let row: Vec<f64> = parts
            .map(|part| part.parse().with_context(|| format!("{shown}: '{part}' is no number")))
            .collect::<anyhow::Result<_>>()?;
        ensure!(row.iter().all(|d| *d >= 0.0 && d.is_finite()), "{shown}: delays are not negative");
        ensure!(
            row.len() == nodes,
            "{shown}: row {} has {} delays for {nodes} nodes",
            rows.len(),
            row.len()
        );
        rows.push(row);
    }
    ensure!(rows.len() == nodes, "{shown} has {} rows for {nodes} nodes", rows.len());
    Ok(rows)
}

/// The effort allowed, shown as a spinner on standard error when that is a terminal.
pub(super) fn effort(limit: u64, what: &str) -> Effort<'static> {
    let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::new_spinner().with_style(style).with_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(200));
    // The bar is dropped, and wiped, with the effort.
    let bar = Wiped(bar);
    Effort::watched(limit, move |_| bar.0.tick())
}

struct Wiped(ProgressBar);

impl Drop for Wiped {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
