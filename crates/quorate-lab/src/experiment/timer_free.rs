//! The evaluation of the timer-free paper (Bouillaguet, Arantes, Sens 2009, section 5), run again.
//!
//! The paper's plots are not in its file and three of its numbers were left blank (X, Y and Z).
//! This is its workload as sweeps, its claims one by one, and what is found. The profile and the
//! formulas that results are compared with are in the specification (broadcast spec 6.1 and 6.2).

use std::time::{Duration, Instant};

use super::claims::Section;
use super::contender::Contender;
use super::crew::Progress;
use super::metric::Metric;
use super::output::Folder;
use super::page::Page;
use super::setting::{Many, Parameter};
use super::stats::Summary;
use super::sweep::{Cell, Sweep};

/// How much of the evaluation is run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Effort {
    /// One way between two clusters, in seconds.
    pub(crate) latency: f64,
    /// A few repetitions of a few settings, to see that it works.
    pub(crate) quick: bool,
}

/// What was found, and where it was written.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) summary: Vec<String>,
    /// Claims that came out otherwise than theory expects.
    pub(crate) unexpected: Vec<String>,
}

const NODES: f64 = 100.0;
const UNITS: f64 = 10.0;
const HOLD: f64 = 2.0;

/// The experiments.
pub(super) struct Sweeps {
    pub(super) load: Sweep,
    pub(super) decline: Sweep,
    pub(super) detection: Sweep,
    pub(super) faster: Sweep,
}

fn plan(effort: Effort) -> Sweeps {
    let profile = Sweep {
        protocols: vec![Contender::raymond(), Contender::timer_free()],
        nodes: Many::One(NODES as u32),
        units: Many::One(UNITS as u32),
        crashes_max: Some(Many::One(9)),
        hold: Many::One(HOLD),
        latency: Many::One(effort.latency),
        sites: 10,
        inside: 0.01,
        inside_spread: 0.5,
        repetitions: if effort.quick { 3 } else { 20 },
        ..Sweep::of_papers()
    };
    let all_rho =
        vec![0.5, 1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12., 13., 14., 16., 18., 20.];
    // With 10, so that a bend at 9 is told from the one at 12 that longer ways have.
    let few_rho = vec![2.0, 5.0, 9.0, 10.0, 12.0, 16.0, 20.0];
    // Longer ways make a request cycle longer, and with it all that is waited for.
    let slower = Theory { latency: 1.0 }.plateau() / Theory { latency: effort.latency }.plateau();
    let slower = slower.max(1.0);
    let load = Sweep {
        title: "Timer-free k-exclusion: load".into(),
        rho: Many::List(if effort.quick { few_rho } else { all_rho }),
        warm_up: 200.0 * slower,
        measured: 1200.0 * slower,
        ..profile.clone()
    };
    let decline = Sweep {
        title: "Timer-free k-exclusion: nine crashes".into(),
        rho: Many::List(vec![2.0, 8.0]),
        crashes: Many::One(9),
        crash_at: 100.0,
        crash_every: Many::One(10.0),
        warm_up: 0.0,
        measured: 400.0 * slower,
        series_step: 5.0,
        x: Parameter::Crashes,
        ..profile.clone()
    };
    let detection = Sweep {
        title: "Timer-free k-exclusion: detection".into(),
        protocols: vec![Contender::timer_free()],
        rho: Many::List(vec![2.0, 8.0]),
        crashes: Many::List(if effort.quick { vec![1, 5, 9] } else { (1..=9).collect() }),
        crash_at: 100.0,
        crash_every: Many::List(vec![0.0, 10.0]),
        warm_up: 0.0,
        measured: 1500.0 * slower,
        until_known: true,
        repetitions: if effort.quick { 3 } else { 10 },
        x: Parameter::Crashes,
        ..profile
    };
    let faster = Sweep {
        title: "Timer-free k-exclusion: faster detection".into(),
        rho: Many::One(2.0),
        crashes: Many::List(vec![1, 3, 5, 7, 9]),
        crash_every: Many::One(0.0),
        notices: Many::List(vec![false, true]),
        probe: Some(Many::List(vec![0.0, 20.0])),
        ..detection.clone()
    };
    Sweeps { load, decline, detection, faster }
}

/// What theory says (broadcast spec 6.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct Theory {
    latency: f64,
}

impl Theory {
    /// How long a unit lies idle between two holders under load: its permission travels, and nine
    /// of ten times to another cluster.
    fn idle(self) -> f64 {
        90.0 / 99.0 * self.latency
    }

    /// Grants per second while somebody always waits.
    pub(super) fn plateau(self) -> f64 {
        UNITS / (HOLD + self.idle())
    }

    /// From claim to grant when nobody waits: there and back to all but a few.
    pub(super) fn floor(self) -> f64 {
        2.07 * self.latency
    }

    /// Where the demand falls below the plateau.
    pub(super) fn knee(self) -> f64 {
        (NODES * (HOLD + self.idle()) / UNITS - HOLD - self.floor()) / HOLD
    }
}

/// Runs the evaluation and writes figures, tables, results and the page.
///
/// # Errors
/// A run broke a law, a live node was taken for dead, or something could not be written.
pub(crate) fn figures(
    effort: Effort,
    folder: &Folder,
    progress: &Progress<'_>,
) -> anyhow::Result<Outcome> {
    let started = Instant::now();
    let plan = plan(effort);
    let sweeps = [&plan.load, &plan.decline, &plan.detection, &plan.faster];
    let runs = sweeps.map(|sweep| sweep.settings().len() * sweep.repetitions as usize);
    let all: usize = runs.iter().sum();
    let mut before = 0;
    let mut done: Vec<(&Sweep, Vec<Cell>)> = Vec::new();
    for (sweep, runs) in sweeps.into_iter().zip(runs) {
        let cells = sweep.run_after(&done, &|done, _| progress(before + done, all))?;
        done.push((sweep, cells));
        before += runs;
    }
    let cells = done.into_iter().map(|(_, cells)| cells).collect::<Vec<_>>();
    let steps = cells.iter().flatten().flat_map(|cell| &cell.samples).map(|s| s.steps).sum();
    let [load, decline, detection, faster] = cells.try_into().expect("as many as sweeps");
    let report = Report {
        effort,
        theory: Theory { latency: effort.latency },
        plan,
        load,
        decline,
        detection,
        faster,
        steps,
        took: started.elapsed(),
    };
    report.write(folder)
}

/// Everything that was run.
pub(super) struct Report {
    pub(super) effort: Effort,
    pub(super) theory: Theory,
    pub(super) plan: Sweeps,
    pub(super) load: Vec<Cell>,
    pub(super) decline: Vec<Cell>,
    pub(super) detection: Vec<Cell>,
    pub(super) faster: Vec<Cell>,
    pub(super) steps: u64,
    pub(super) took: Duration,
}

/// Something the paper says, what was found, and whether it holds; and whether that is what is
/// expected of a correct simulation, as far as theory can tell.
pub(super) struct Claim {
    pub(super) claimed: &'static str,
    pub(super) found: String,
    pub(super) holds: bool,
    pub(super) expected: Option<bool>,
}

impl Report {
    pub(super) fn at(&self, protocol: Contender, rho: f64, metric: Metric) -> Option<Summary> {
        let is = |cell: &&Cell| cell.setting.protocol == protocol && cell.setting.rho == rho;
        self.load.iter().find(is)?.summary(metric)
    }

    /// Not a number where nothing was granted, so that no claim about it holds.
    pub(super) fn mean(&self, protocol: Contender, rho: f64, metric: Metric) -> f64 {
        self.at(protocol, rho, metric).map_or(f64::NAN, |summary| summary.mean)
    }

    pub(super) fn rhos(&self) -> Vec<f64> {
        self.plan.load.rho.values()
    }

    /// Messages of the timer-free protocol beyond Raymond's, in percent, repetition by repetition.
    pub(super) fn overhead(&self, rho: f64) -> Option<Summary> {
        let values = |protocol| {
            let is = |cell: &&Cell| cell.setting.protocol == protocol && cell.setting.rho == rho;
            let samples = self.load.iter().find(is).map(|cell| cell.samples.clone());
            samples.unwrap_or_default()
        };
        let (ours, theirs) = (values(Contender::timer_free()), values(Contender::raymond()));
        let percents: Vec<f64> = ours
            .iter()
            .zip(&theirs)
            .filter_map(|(a, b)| Some((a.of(Metric::MessagesPerCs)?, b.of(Metric::MessagesPerCs)?)))
            .map(|(a, b)| 100.0 * (a / b - 1.0))
            .collect();
        Summary::of(&percents)
    }

    fn write(&self, folder: &Folder) -> anyhow::Result<Outcome> {
        let mut page =
            Page::new("A timer-free fault tolerant k-mutual exclusion algorithm: evaluation");
        self.introduce(&mut page);
        let mut unexpected = Vec::new();
        let mut lines = Vec::new();
        for Section { name, heading, chart, table, numbers, claims } in self.sections() {
            let svg = chart.svg()?;
            folder.write(&format!("{name}.svg"), &svg)?;
            folder.write(&format!("{name}.csv"), &table)?;
            page.heading(heading);
            page.figure(&svg, &chart.title);
            if let Some((head, rows)) = numbers {
                page.table(&head, &rows);
            }
            for Claim { claimed, found, holds, expected } in claims {
                page.claim(claimed, &found, holds);
                let verdict = if holds { "holds" } else { "does not hold" };
                let line = format!("{verdict}: {claimed} ({found})");
                if expected.is_some_and(|expected| expected != holds) {
                    unexpected.push(line.clone());
                }
                lines.push(line);
            }
            if name == "messages" {
                self.blanks(&mut page);
            }
        }
        folder.write("index.html", &page.finish())?;
        folder.write("results.json", &format!("{:#}\n", self.json()))?;
        lines.push(self.speed());
        Ok(Outcome { summary: lines, unexpected })
    }

    fn speed(&self) -> String {
        let seconds = self.took.as_secs_f64();
        let rate = self.steps as f64 / seconds / 1e6;
        format!(
            "{:.0} million steps in {seconds:.1} s: {rate:.1} million per second",
            self.steps as f64 / 1e6
        )
    }

    fn introduce(&self, page: &mut Page) {
        page.text(
            "100 nodes in 10 clusters share 10 units; a client uses one for 2 s and then thinks \
             for rho times as long (normal, deviation a quarter, cut at 0). Bands are 95 % \
             confidence intervals over the repetitions. In every run no more units were in use \
             than there are, and nobody alive was taken for dead.",
        );
        let Theory { latency } = self.theory;
        page.text(&format!(
            "One way between clusters takes {latency} s on average, inside a cluster a hundredth \
             of it. {} repetitions, and {} where the time until crashes are known is measured. \
             {}.",
            self.plan.load.repetitions,
            self.plan.detection.repetitions,
            self.speed()
        ));
        page.text(&format!(
            "The paper says that claims are served in 2 s when nobody waits, and that throughput \
             begins to fall at rho = 9. No single latency gives both: a floor of 2 s needs about \
             1 s one way, with which the bend is at {:.1}; a bend at 9 needs a latency near 0, \
             with which there is no such floor. Here theory expects the floor at {:.2} s, the bend \
             at {:.1} and {:.3} grants per second on the plateau.",
            Theory { latency: 1.0 }.knee(),
            self.theory.floor(),
            self.theory.knee(),
            self.theory.plateau(),
        ));
    }

    fn blanks(&self, page: &mut Page) {
        page.text(
            "The paper leaves three numbers blank: the increase in messages at rho = 2, 9 and 20.",
        );
        let rows: Vec<Vec<String>> = [("X", 2.0), ("Y", 9.0), ("Z", 20.0)]
            .into_iter()
            .map(|(name, rho)| {
                let increase = self.overhead(rho).map(|percent| percent.shown(2));
                let increase = increase.map_or("–".into(), |percent| format!("{percent} %"));
                vec![name.into(), rho.to_string(), increase]
            })
            .collect();
        page.table(&["blank", "rho", "increase"], &rows);
        page.text(
            "It is no constant: a node that is ahead of a request answers it twice, so the \
             increase is the length of the queue, in percent of Raymond's 2(n-1) messages.",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATENCIES: [f64; 2] = [0.1, 1.0];

    fn nothing_measured(effort: Effort) -> Report {
        Report {
            effort,
            theory: Theory { latency: effort.latency },
            plan: plan(effort),
            load: Vec::new(),
            decline: Vec::new(),
            detection: Vec::new(),
            faster: Vec::new(),
            steps: 0,
            took: Duration::from_secs(1),
        }
    }

    /// What theory expects does not depend on what is found, so that anything else is noticed.
    #[test]
    fn a_simulation_that_measures_nothing_is_not_as_expected() {
        for latency in LATENCIES {
            let report = nothing_measured(Effort { latency, quick: true });
            let unexpected: Vec<&str> = report
                .sections()
                .iter()
                .flat_map(|section| &section.claims)
                .filter(|claim| claim.expected.is_some_and(|expected| expected != claim.holds))
                .map(|claim| claim.claimed)
                .collect();
            let about_two = unexpected.iter().any(|claim| claim.ends_with("a floor of 2 s"));
            assert_eq!(about_two, latency == 1.0, "{unexpected:?}");
            let about_nine = unexpected.iter().any(|claim| claim.ends_with("at rho = 9"));
            assert_eq!(about_nine, latency == 0.1, "{unexpected:?}");
            assert!(unexpected.contains(&"throughput is constant under load"), "{unexpected:?}");
        }
    }

    /// A curve exactly as theory has it bends, as far as these settings show, where theory says.
    #[test]
    fn the_settings_are_close_enough_to_see_the_bend() {
        for (latency, quick) in LATENCIES.into_iter().flat_map(|l| [(l, false), (l, true)]) {
            let theory = Theory { latency };
            let demand = |rho: f64| NODES / (HOLD + theory.floor() + rho * HOLD);
            let rhos = plan(Effort { latency, quick }).load.rho.values();
            let bend = rhos.into_iter().find(|&rho| demand(rho) < 0.97 * theory.plateau());
            let is_nine = bend.is_some_and(|bend| (bend - 9.0).abs() <= 1.0);
            assert_eq!(is_nine, (theory.knee() - 9.0).abs() <= 1.0, "{latency} {quick} {bend:?}");
        }
    }
}
