//! What `quorate-lab check` prints.

use std::io::Write;
use std::time::Duration;

use quorate_check::{ClientPlan, Report, Scope, Sightings, Sometimes, Verdict};
use quorate_core::NodeId;
use quorate_protocols::Fairness;
use serde_json::json;

use super::family::Want;
use super::{Args, choosy};
use crate::protocols::Checked;

/// Worlds and what became of them. The worlds behind the first broken one were not explored.
pub(super) struct Output<'a, P: Checked> {
    pub(super) args: &'a Args,
    pub(super) scopes: &'a [Scope<P>],
    pub(super) reports: &'a [Report],
    pub(super) took: Duration,
}

impl<P: Checked> Output<'_, P> {
    /// Whether a law is broken, or something that must be reachable is not.
    pub(super) fn is_broken(&self) -> bool {
        self.broken().is_some() || !self.missing().is_empty()
    }

    fn broken(&self) -> Option<&Report> {
        self.reports.last().filter(|report| matches!(report.verdict, Verdict::Broken(_)))
    }

    fn is_complete(&self) -> bool {
        self.reports.len() == self.scopes.len()
            && self.reports.iter().all(|report| report.verdict != Verdict::Incomplete)
    }

    fn sightings(&self) -> Sightings {
        let mut sightings = Sightings::default();
        self.reports.iter().for_each(|report| sightings.extend(report.sightings));
        sightings
    }

    /// What must be reachable in one of these worlds and is in none. Unknown until all are
    /// exhausted.
    fn missing(&self) -> Vec<Sometimes> {
        if !self.is_complete() {
            return Vec::new();
        }
        let sightings = self.sightings();
        self.required().into_iter().filter(|what| !sightings.contains(*what)).collect()
    }

    fn required(&self) -> Vec<Sometimes> {
        let any = |is_so: fn(&[Want], u32) -> bool| {
            self.scopes.iter().any(|scope| {
                let wants: Vec<Want> =
                    scope.clients.iter().map(|c| (c.home, c.claim.wanted.units.get())).collect();
                is_so(&wants, self.args.units)
            })
        };
        let args = self.args;
        let backfills = !matches!(args.fairness, Fairness::Fifo | Fairness::Backfill(0));
        let conditions = [
            (Sometimes::Enter, true),
            (Sometimes::Full, !args.choosy.any() && any(can_fill)),
            (Sometimes::Overtake, backfills && !args.choosy.any() && any(can_overtake)),
            (Sometimes::Move, args.choosy.moves()),
            (
                Sometimes::CancelCrossesGrant,
                P::HAS_BOOKS
                    && args.cancels > 0
                    && any(|wants, _| wants.iter().any(|(home, _)| *home != NodeId(0))),
            ),
            (Sometimes::CrashSurvived, args.crashes > 0 && !args.crashing.is_empty()),
            (Sometimes::Reclaim, args.deaths > 0),
        ];
        conditions.into_iter().filter(|(_, required)| *required).map(|(what, _)| what).collect()
    }

    fn states(&self) -> usize {
        self.reports.iter().map(|report| report.states).sum()
    }

    fn states_per_second(&self) -> f64 {
        self.states() as f64 / self.took.as_secs_f64()
    }

    /// Of all worlds together: those of one are forgotten before the next begins.
    fn bytes_per_state(&self) -> f64 {
        let bytes: usize = self.reports.iter().map(|report| report.bytes).sum();
        bytes as f64 / self.states().max(1) as f64
    }

    pub(super) fn text(&self) -> anyhow::Result<()> {
        let mut out = std::io::stdout().lock();
        for (scope, report) in self.scopes.iter().zip(self.reports) {
            writeln!(out, "{}: {report}", describe(scope))?;
        }
        let reached: Vec<String> = self.sightings().iter().map(|what| what.to_string()).collect();
        writeln!(out, "reached: {}", reached.join(", "))?;
        let missing: Vec<String> = self.missing().iter().map(Sometimes::to_string).collect();
        if !missing.is_empty() {
            writeln!(out, "VACUOUS, never reached: {}", missing.join(", "))?;
        }
        let (worlds, states) = (self.reports.len(), self.states());
        match (self.is_broken(), self.is_complete()) {
            (true, _) => writeln!(out, "{worlds} worlds, {states} states: broken")?,
            (false, true) => {
                writeln!(out, "{worlds} worlds exhausted, {states} states: every law holds")?;
            }
            (false, false) => writeln!(out, "{worlds} worlds, {states} states: INCOMPLETE")?,
        }
        out.flush()?;
        let (seconds, speed) = (self.took.as_secs_f64(), self.states_per_second());
        let bytes = self.bytes_per_state();
        eprintln!("{seconds:.1} s, {speed:.0} states per second, {bytes:.0} bytes per state");
        Ok(())
    }

    pub(super) fn json(&self) -> anyhow::Result<()> {
        let names = |all: &mut dyn Iterator<Item = Sometimes>| -> Vec<String> {
            all.map(|what| what.to_string()).collect()
        };
        let worlds: Vec<_> = self
            .scopes
            .iter()
            .zip(self.reports)
            .map(|(scope, report)| {
                let claims: Vec<_> = scope
                    .clients
                    .iter()
                    .map(|c| {
                        let wanted = &c.claim.wanted;
                        let among = wanted.lines.as_ref().map(|lines| {
                            let units = lines.iter().flat_map(|line| line.among.iter());
                            units.map(|unit| unit.0).collect::<Vec<_>>()
                        });
                        json!({
                            "home": c.home.0,
                            "units": wanted.units.get(),
                            "among": among,
                            "movable": wanted.movable,
                        })
                    })
                    .collect();
                let (verdict, breach) = match &report.verdict {
                    Verdict::Holds => ("holds", None),
                    Verdict::Vacuous(_) => ("vacuous", None),
                    Verdict::Incomplete => ("incomplete", None),
                    Verdict::Broken(counterexample) => ("broken", Some(counterexample)),
                };
                json!({
                    "claims": claims,
                    "states": report.states,
                    "bytes": report.bytes,
                    "transitions": report.transitions,
                    "depth": report.depth,
                    "verdict": verdict,
                    "law": breach.map(|c| c.breach.law),
                    "breach": breach.map(|c| c.breach.what.clone()),
                    "transcript": breach.map(|c| c.transcript.clone()),
                    "reached": names(&mut report.sightings.iter()),
                })
            })
            .collect();
        let result = json!({
            "protocol": P::NAME,
            "nodes": self.args.nodes,
            "units": self.args.units,
            "worlds": worlds,
            "states": self.states(),
            "complete": self.is_complete(),
            "reached": names(&mut self.sightings().iter()),
            "never_reached": names(&mut self.missing().into_iter()),
            "holds": self.is_complete() && !self.is_broken(),
            "seconds": self.took.as_secs_f64(),
            "states_per_second": self.states_per_second(),
            "bytes_per_state": self.bytes_per_state(),
        });
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", serde_json::to_string_pretty(&result)?)?;
        Ok(())
    }
}

/// The claims of a world: `n0 claims 1, n2 claims 2`.
fn describe<P: Checked>(scope: &Scope<P>) -> String {
    let claim = |plan: &ClientPlan| format!("{} claims {}", plan.home, choosy::describe(plan));
    let claims: Vec<String> = scope.clients.iter().map(claim).collect();
    claims.join(", ")
}

/// Whether some of these claims together take exactly all units.
fn can_fill(wants: &[Want], units: u32) -> bool {
    let mut sums = vec![0];
    for &(_, h) in wants {
        let more: Vec<u32> = sums.iter().map(|sum| sum + h).collect();
        sums.extend(more);
    }
    sums.contains(&units)
}

/// Whether one claim can hold units such that a second does not fit and a third does.
fn can_overtake(wants: &[Want], units: u32) -> bool {
    let h = |place: usize| wants[place].1;
    let places = 0..wants.len();
    places.clone().any(|held| {
        places.clone().filter(|&p| p != held).any(|blocked| {
            places
                .clone()
                .filter(|&p| p != held && p != blocked)
                .any(|passing| h(held) + h(blocked) > units && h(held) + h(passing) <= units)
        })
    })
}
