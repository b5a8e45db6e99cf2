//! `quorate-lab sim labels`: recorded runs of the allocator for units that differ, replayed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Context;
use quorate_core::{ClaimId, Unit};
use quorate_protocols::allocator::{Allocator, Deed, Policy, Ticket, Want};
use quorate_quorum::Effort;
use serde::Deserialize;

use crate::Outcome;
use crate::commands::quorum::sharing;
use crate::commands::vectors::{self, Compared};

/// Arguments of `quorate-lab sim labels`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Prints `ok NAME` or `DIFFERENT NAME: ` and the first difference, for every quorum assignment, trace
and pinned scenario of the file. Exit code 1 if there is any, 2 if the file cannot be read.

Example:
  quorate-lab sim labels --vectors labels.json")]
pub(crate) struct Args {
    /// The recorded runs
    #[arg(long, value_name = "FILE")]
    vectors: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    traces: Vec<Run>,
    #[serde(default)]
    pinned_scenarios: Vec<Run>,
}

/// A recorded run: who asks for what, what happens, and who is granted by it.
#[derive(Deserialize)]
struct Run {
    id: String,
    mode: Mode,
    protect: Protect,
    units: Vec<String>,
    clients: BTreeMap<String, Client>,
    steps: Vec<Step>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Movable,
    Pinned,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Protect {
    First(u32),
    Word(String),
}

#[derive(Deserialize)]
struct Client {
    alpha: Vec<String>,
    h: u32,
}

/// One event, or several before the allocator decides.
#[derive(Deserialize)]
struct Step {
    event: Option<(String, String)>,
    #[serde(default)]
    events: Vec<(String, String)>,
    granted: BTreeSet<String>,
    waiting: BTreeSet<String>,
}

/// Replays.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    vectors::print(&compare(&args.vectors)?, args.json)
}

fn compare(path: &Path) -> anyhow::Result<Vec<Compared>> {
    let assignments = sharing::vectors::read(path)?;
    let mut compared = sharing::vectors::compare_assignments(&assignments, Effort::DEFAULT / 10);
    let text = std::fs::read_to_string(path)?;
    let file: File = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    let traces = file.traces.iter().map(|run| Compared::new("traces", &run.id, replay(run)));
    compared.extend(traces);
    let scenarios = file.pinned_scenarios.iter();
    compared.extend(scenarios.map(|run| Compared::new("pinned_scenarios", &run.id, replay(run))));
    Ok(compared)
}

fn replay(run: &Run) -> Result<(), String> {
    let protect = match &run.protect {
        Protect::First(count) => *count,
        Protect::Word(word) if word == "inf" => u32::MAX,
        Protect::Word(word) => return Err(format!("protect {word}: a number or inf")),
    };
    let units = u32::try_from(run.units.len()).map_err(|_| "too many units")?;
    let allocator = Allocator::new(units, Policy { protect, patience: 0 });
    let mut stage = Stage { run, allocator, age: 0, live: BTreeMap::new() };
    for (index, step) in run.steps.iter().enumerate() {
        let at = |what: String| format!("step {}: {what}", index + 1);
        for (verb, client) in step.event.iter().chain(&step.events) {
            stage.happen(verb, client).map_err(at)?;
        }
        let granted = stage.settle().map_err(at)?;
        if granted != step.granted {
            return Err(at(format!("granted {granted:?} instead of {:?}", step.granted)));
        }
        let waiting = stage.waiting();
        if waiting != step.waiting {
            return Err(at(format!("{waiting:?} wait instead of {:?}", step.waiting)));
        }
    }
    Ok(())
}

/// The allocator, and the claims that are not over.
struct Stage<'a> {
    run: &'a Run,
    allocator: Allocator,
    age: u64,
    /// Each with its units, if it has some.
    live: BTreeMap<&'a str, (Ticket, Option<Vec<Unit>>)>,
}

impl<'a> Stage<'a> {
    fn happen(&mut self, verb: &str, client: &'a str) -> Result<(), String> {
        match (verb, self.live.remove(client)) {
            ("req", None) => self.request(client),
            ("rel" | "cancel", Some((ticket, None))) => {
                self.allocator.cancel(ticket);
                Ok(())
            }
            ("rel", Some((ticket, Some(units)))) => {
                self.allocator.release(ticket, units);
                Ok(())
            }
            ("req" | "rel" | "cancel", _) => Err(format!("{client} cannot {verb} now")),
            _ => Err(format!("no event is called {verb}")),
        }
    }

    fn request(&mut self, client: &'a str) -> Result<(), String> {
        let wants = self.run.clients.get(client).ok_or(format!("no client {client}"))?;
        let mut among = Vec::new();
        for name in &wants.alpha {
            let known = self.run.units.iter().position(|unit| unit == name);
            among.push(Unit(known.ok_or(format!("no unit {name}"))? as u32));
        }
        among.sort_unstable();
        among.dedup();
        self.age += 1;
        let claim = ClaimId { origin: 0, serial: self.age };
        let ticket = Ticket { age: self.age, claim };
        let want = Want { among: Some(among.into()), units: wants.h };
        let movable = self.run.mode == Mode::Movable;
        self.allocator.enter(ticket, &[want], movable).map_err(|e| format!("{client}: {e}"))?;
        self.live.insert(client, (ticket, None));
        Ok(())
    }

    /// Passes until nothing moves any more; whoever is asked to move does so at once. No unit may
    /// have two users meanwhile.
    fn settle(&mut self) -> Result<BTreeSet<String>, String> {
        let mut granted = BTreeSet::new();
        loop {
            let mut deeds = Vec::new();
            self.allocator.pass(&mut deeds);
            if deeds.is_empty() {
                return Ok(granted);
            }
            for deed in deeds {
                let (Deed::Grant { ticket, .. } | Deed::Move { ticket, .. }) = deed;
                let claim = self.live.iter_mut().find(|(_, (known, _))| *known == ticket);
                let (name, (_, held)) = claim.ok_or("a deed for nobody")?;
                match deed {
                    Deed::Grant { units, .. } => {
                        granted.insert((*name).to_owned());
                        *held = Some(units);
                    }
                    Deed::Move { add, drop, .. } => {
                        let held = held.iter_mut().flatten().find(|unit| **unit == drop);
                        *held.ok_or(format!("{name} has no {drop} to leave"))? = add;
                        self.allocator.moved(ticket, drop);
                    }
                }
            }
            let mut users = BTreeSet::new();
            for unit in self.live.values().filter_map(|(_, units)| units.as_ref()).flatten() {
                if !users.insert(*unit) {
                    return Err(format!("{unit} has two users"));
                }
            }
        }
    }

    fn waiting(&self) -> BTreeSet<String> {
        let waiting = self.live.iter().filter(|(_, (_, units))| units.is_none());
        waiting.map(|(name, _)| (*name).to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDED: &str =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../quorate-quorum/testdata/labels.json");

    #[test]
    fn every_recorded_run_is_granted_as_it_was() {
        let compared = compare(Path::new(RECORDED)).expect("the vectors can be read");
        assert_eq!(compared.len(), 21);
        for Compared { name, difference } in compared {
            assert_eq!(difference, None, "{name}");
        }
    }

    /// A replay that compared nothing would pass the test above.
    #[test]
    fn a_changed_grant_or_wait_is_a_difference() {
        let text = std::fs::read_to_string(RECORDED).expect("the vectors can be read");
        let mut file: File = serde_json::from_str(&text).expect("the format");
        for run in file.traces.iter_mut().chain(&mut file.pinned_scenarios) {
            assert_eq!(replay(run), Ok(()));
            let last = run.steps.len() - 1;
            run.steps[last].waiting.insert("nobody".to_owned());
            assert!(replay(run).is_err_and(|at| at.starts_with(&format!("step {}:", last + 1))));
            run.steps[0].granted.clear();
            assert!(replay(run).is_err_and(|at| at.starts_with("step 1:")));
        }
    }
}
