//! What an experiment varies: every parameter is a number or a list, and every combination is run.

use anyhow::{Context, ensure};
use quorate_sim::Want;
use serde::{Deserialize, Serialize};

use super::contender::Contender;
use super::crew::{self, Progress};
use super::play::{Sample, play};
use super::stats::Summary;

/// An experiment. Times are in seconds.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Sweep {
    pub(crate) title: String,
    pub(crate) protocols: Vec<Contender>,
    pub(crate) nodes: Many<u32>,
    pub(crate) units: Many<u32>,
    /// Most crashes that are recovered from, where a protocol knows such a bound.
    pub(crate) crashes_max: Many<u32>,
    /// Most units that one node asks for at a time, where a protocol knows such a bound.
    pub(crate) node_units_max: Many<u32>,
    /// How long a client uses its units.
    pub(crate) hold: Many<f64>,
    /// How long it thinks in between, as a multiple of `hold`.
    pub(crate) rho: Many<f64>,
    /// The deviation of that (normal, cut at 0), as a share of its mean.
    pub(crate) think_spread: f64,
    /// How many units a claim asks for: `2`, `1,2` or `1:80,4:20`.
    pub(crate) want: String,
    /// One way between two sites; spread evenly by `latency_spread` on both sides.
    pub(crate) latency: Many<f64>,
    pub(crate) latency_spread: f64,
    /// Nodes lie at so many sites; inside a site a message takes `inside` times the latency.
    pub(crate) sites: u32,
    pub(crate) inside: f64,
    pub(crate) inside_spread: f64,
    /// Crashes for good, the first at `crash_at` and then one every `crash_every`.
    pub(crate) crashes: Many<u32>,
    pub(crate) crash_at: f64,
    pub(crate) crash_every: Many<f64>,
    /// So many nodes have no clients: they only answer.
    pub(crate) idle: Many<u32>,
    /// One node stands still for so long from `crash_at` on; 0 for not at all.
    pub(crate) freeze: Many<f64>,
    /// Whether who finds a crash first-hand tells everybody.
    pub(crate) notices: Many<bool>,
    /// After how long without a query a node makes one; 0 for never.
    pub(crate) probe: Many<f64>,
    /// How long a grant lasts without renewal, where a protocol has leases; 0 for longer than any
    /// run.
    pub(crate) lease: f64,
    /// Nothing is measured before this...
    pub(crate) warm_up: f64,
    /// ...and then for so long.
    pub(crate) measured: f64,
    /// Whether a run ends as soon as every live node knows of every crash.
    pub(crate) until_known: bool,
    /// Units in use are recorded over stretches of this length; 0 for not at all.
    pub(crate) series_step: f64,
    pub(crate) repetitions: u32,
    pub(crate) seed: u64,
    /// The parameter on the horizontal axis.
    pub(crate) x: Axis,
}

impl Default for Sweep {
    fn default() -> Self {
        Sweep {
            title: "A sweep".into(),
            protocols: vec![Contender::Central],
            nodes: Many::One(10),
            units: Many::One(3),
            crashes_max: Many::One(0),
            node_units_max: Many::One(1),
            hold: Many::One(2.0),
            rho: Many::One(5.0),
            think_spread: 0.25,
            want: "1".into(),
            latency: Many::One(0.1),
            latency_spread: 0.05,
            sites: 1,
            inside: 1.0,
            inside_spread: 0.05,
            crashes: Many::One(0),
            crash_at: 0.0,
            crash_every: Many::One(0.0),
            idle: Many::One(0),
            freeze: Many::One(0.0),
            notices: Many::One(false),
            probe: Many::One(0.0),
            lease: 0.0,
            warm_up: 100.0,
            measured: 500.0,
            until_known: false,
            series_step: 0.0,
            repetitions: 5,
            seed: 1,
            x: Axis::Rho,
        }
    }
}

/// One value or several.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(crate) enum Many<T> {
    One(T),
    List(Vec<T>),
}

impl<T: Copy> Many<T> {
    pub(crate) fn values(&self) -> Vec<T> {
        match self {
            Many::One(value) => vec![*value],
            Many::List(values) => values.clone(),
        }
    }
}

/// A parameter that can be on the horizontal axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Axis {
    Crashes,
    Freeze,
    Idle,
    Latency,
    Nodes,
    Rho,
    Units,
}

impl Axis {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Axis::Crashes => "crashes",
            Axis::Freeze => "freeze",
            Axis::Idle => "idle",
            Axis::Latency => "latency",
            Axis::Nodes => "nodes",
            Axis::Rho => "rho",
            Axis::Units => "units",
        }
    }
}

/// One combination of parameters.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct Setting {
    pub(crate) protocol: Contender,
    pub(crate) nodes: u32,
    pub(crate) units: u32,
    pub(crate) crashes_max: u32,
    pub(crate) node_units_max: u32,
    pub(crate) hold: f64,
    pub(crate) rho: f64,
    pub(crate) latency: f64,
    pub(crate) crashes: u32,
    pub(crate) crash_every: f64,
    pub(crate) idle: u32,
    pub(crate) freeze: f64,
    pub(crate) notices: bool,
    pub(crate) probe: f64,
    pub(crate) lease: f64,
}

impl Setting {
    pub(crate) fn on(&self, axis: Axis) -> f64 {
        match axis {
            Axis::Crashes => f64::from(self.crashes),
            Axis::Freeze => self.freeze,
            Axis::Idle => f64::from(self.idle),
            Axis::Latency => self.latency,
            Axis::Nodes => f64::from(self.nodes),
            Axis::Rho => self.rho,
            Axis::Units => f64::from(self.units),
        }
    }
}

/// What is measured in every run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Metric {
    ObtainingTime,
    Waiting,
    CsPerSecond,
    UnitsInUse,
    MessagesPerCs,
    /// Only where somebody always waits.
    SynchronizationDelay,
    DetectionTime,
    /// Only where somebody crashed and crashes are found at all.
    CrashesKnown,
    /// Only where somebody stands still, and crashes are found at all.
    FalselySuspected,
}

impl Metric {
    pub(crate) const ALL: [Metric; 9] = [
        Metric::ObtainingTime,
        Metric::Waiting,
        Metric::CsPerSecond,
        Metric::UnitsInUse,
        Metric::MessagesPerCs,
        Metric::SynchronizationDelay,
        Metric::DetectionTime,
        Metric::CrashesKnown,
        Metric::FalselySuspected,
    ];

    /// Its name in files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Metric::ObtainingTime => "obtaining_time",
            Metric::Waiting => "waiting",
            Metric::CsPerSecond => "cs_per_second",
            Metric::UnitsInUse => "units_in_use",
            Metric::MessagesPerCs => "messages_per_cs",
            Metric::SynchronizationDelay => "synchronization_delay",
            Metric::DetectionTime => "detection_time",
            Metric::CrashesKnown => "crashes_known",
            Metric::FalselySuspected => "falsely_suspected",
        }
    }

    /// Its name on axes.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Metric::ObtainingTime => "seconds from claim to grant",
            Metric::Waiting => "claims waiting",
            Metric::CsPerSecond => "grants per second",
            Metric::UnitsInUse => "units in use",
            Metric::MessagesPerCs => "messages per grant",
            Metric::SynchronizationDelay => "seconds from free to next user",
            Metric::DetectionTime => "seconds until every live node knows",
            Metric::CrashesKnown => "share of crashes that every live node knows of in the end",
            Metric::FalselySuspected => "share of runs in which a live node was suspected",
        }
    }
}

/// A combination of parameters and what its repetitions gave.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) setting: Setting,
    pub(crate) samples: Vec<Sample>,
}

impl Cell {
    /// A metric over the repetitions; `None` if no run has it.
    pub(crate) fn summary(&self, metric: Metric) -> Option<Summary> {
        let values: Vec<f64> = self.samples.iter().filter_map(|sample| sample.of(metric)).collect();
        Summary::of(&values)
    }
}

impl Sweep {
    /// Reads an experiment from the text of a file.
    ///
    /// # Errors
    /// If it is not one; nothing was run.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Sweep> {
        let sweep: Sweep = toml::from_str(text).context("not an experiment")?;
        ensure!(!sweep.protocols.is_empty(), "an experiment compares at least one protocol");
        ensure!(sweep.repetitions > 0, "an experiment has at least one repetition");
        ensure!(sweep.sites > 0, "nodes lie at one site at least");
        let want: Want = sweep.want.parse()?;
        for setting in sweep.settings() {
            let Setting { nodes, units, crashes_max, crashes, idle, .. } = setting;
            ensure!(nodes > 0 && units > 0, "a pool has nodes and units");
            ensure!(want.most() <= units, "a claim asks for at most the {units} units there are");
            ensure!(crashes < nodes, "of {nodes} nodes at most {} can crash", nodes - 1);
            let most = nodes - 1 - crashes;
            ensure!(idle <= most, "somebody must have clients: at most {most} nodes can be idle");
            ensure!(crashes_max <= (nodes - 1) / 2, "crashes_max is at most (nodes - 1) / 2");
        }
        Ok(sweep)
    }

    /// Every combination, protocol by protocol.
    pub(crate) fn settings(&self) -> Vec<Setting> {
        let mut all: Vec<Setting> = Vec::new();
        for &protocol in &self.protocols {
            all.push(Setting {
                protocol,
                nodes: 0,
                units: 0,
                crashes_max: 0,
                node_units_max: 0,
                hold: 0.0,
                rho: 0.0,
                latency: 0.0,
                crashes: 0,
                crash_every: 0.0,
                idle: 0,
                freeze: 0.0,
                notices: false,
                probe: 0.0,
                lease: self.lease,
            });
        }
        spread(&mut all, &self.nodes, |setting, value| setting.nodes = value);
        spread(&mut all, &self.units, |setting, value| setting.units = value);
        spread(&mut all, &self.crashes_max, |setting, value| setting.crashes_max = value);
        spread(&mut all, &self.node_units_max, |setting, value| setting.node_units_max = value);
        spread(&mut all, &self.hold, |setting, value| setting.hold = value);
        spread(&mut all, &self.latency, |setting, value| setting.latency = value);
        spread(&mut all, &self.notices, |setting, value| setting.notices = value);
        spread(&mut all, &self.probe, |setting, value| setting.probe = value);
        spread(&mut all, &self.crash_every, |setting, value| setting.crash_every = value);
        spread(&mut all, &self.idle, |setting, value| setting.idle = value);
        spread(&mut all, &self.freeze, |setting, value| setting.freeze = value);
        spread(&mut all, &self.rho, |setting, value| setting.rho = value);
        spread(&mut all, &self.crashes, |setting, value| setting.crashes = value);
        all
    }

    /// Runs everything.
    ///
    /// # Errors
    /// The first run that broke a law, or in which a live node was taken for dead.
    pub(crate) fn run(&self, progress: &Progress<'_>) -> anyhow::Result<Vec<Cell>> {
        let settings = self.settings();
        let jobs: Vec<(Setting, u64)> = settings
            .iter()
            .flat_map(|&setting| (0..u64::from(self.repetitions)).map(move |r| (setting, r)))
            .collect();
        let samples = crew::all(&jobs, progress, |&(setting, repetition)| {
            play(self, &setting, self.seed + repetition)
        })?;
        let mut samples = samples.into_iter();
        let repetitions = self.repetitions as usize;
        let cells = settings
            .into_iter()
            .map(|setting| Cell { setting, samples: samples.by_ref().take(repetitions).collect() });
        Ok(cells.collect())
    }

    /// What tells a setting from others with the same place on the horizontal axis.
    pub(crate) fn label(&self, setting: &Setting) -> String {
        let mut label = setting.protocol.name().to_string();
        let mut note = |varied: bool, axis: Option<Axis>, text: String| {
            if varied && axis != Some(self.x) {
                label.push_str(&text);
            }
        };
        let varied = |count: usize| count > 1;
        let Setting { nodes, units, rho, latency, crashes, crash_every, idle, freeze, .. } =
            *setting;
        note(varied(self.nodes.values().len()), Some(Axis::Nodes), format!(", {nodes} nodes"));
        note(varied(self.units.values().len()), Some(Axis::Units), format!(", {units} units"));
        note(varied(self.rho.values().len()), Some(Axis::Rho), format!(", rho {rho}"));
        let text = format!(", latency {latency} s");
        note(varied(self.latency.values().len()), Some(Axis::Latency), text);
        let text = format!(", {crashes} crashes");
        note(varied(self.crashes.values().len()), Some(Axis::Crashes), text);
        note(varied(self.idle.values().len()), Some(Axis::Idle), format!(", {idle} idle"));
        let text = format!(", still for {freeze} s");
        note(varied(self.freeze.values().len()), Some(Axis::Freeze), text);
        let together = if crash_every > 0.0 { "one by one" } else { "at once" };
        note(varied(self.crash_every.values().len()), None, format!(", {together}"));
        let has_notices = setting.notices && varied(self.notices.values().len());
        note(has_notices, None, ", notices".into());
        let has_probe = setting.probe > 0.0 && varied(self.probe.values().len());
        note(has_probe, None, format!(", probe {} s", setting.probe));
        label
    }
}

fn spread<T: Copy>(all: &mut Vec<Setting>, values: &Many<T>, set: impl Fn(&mut Setting, T)) {
    let values = values.values();
    *all = all
        .iter()
        .flat_map(|setting| {
            values.iter().map(|&value| {
                let mut setting = *setting;
                set(&mut setting, value);
                setting
            })
        })
        .collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        title = "Small"
        protocols = ["central", "raymond", "timer-free"]
        nodes = 8
        units = 2
        crashes_max = 1
        rho = [1, 10]
        latency = [0.01, 0.1]
        warm_up = 20
        measured = 100
        repetitions = 2
    "#;

    #[test]
    fn every_combination_is_run_and_repeated() {
        let sweep = Sweep::parse(FILE).unwrap();
        let cells = sweep.run(&|_, _| {}).unwrap();
        assert_eq!(cells.len(), 3 * 2 * 2);
        assert!(cells.iter().all(|cell| cell.samples.len() == 2));
        assert_eq!(sweep.label(&cells[0].setting), "central, latency 0.01 s");
        for cell in &cells {
            let of = |metric| cell.summary(metric).unwrap().mean;
            assert!(of(Metric::CsPerSecond) > 0.0);
            let messages = of(Metric::MessagesPerCs);
            match cell.setting.protocol {
                // Seven of eight clients are not at the arbiter's node. Claims that are under way
                // when the measuring begins or ends make all of these a little uncertain.
                Contender::Central => assert!((2.0..=3.2).contains(&messages), "{messages}"),
                Contender::Raymond => assert!((12.5..=15.0).contains(&messages), "{messages}"),
                _ => assert!((13.5..=22.0).contains(&messages), "{messages}"),
            }
            // Little's law: who waits is who arrives times how long it takes.
            let arrived = of(Metric::CsPerSecond) * of(Metric::ObtainingTime);
            assert!((arrived - of(Metric::Waiting)).abs() < 0.15 * arrived + 0.05);
        }
    }

    #[test]
    fn the_experiments_of_the_documentation_are_experiments() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/experiments");
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        for file in files.filter(|file| file.extension().is_some_and(|end| end == "toml")) {
            let text = std::fs::read_to_string(&file).unwrap();
            Sweep::parse(&text).unwrap_or_else(|error| panic!("{}: {error:#}", file.display()));
        }
    }

    #[test]
    fn the_same_file_gives_the_same_numbers() {
        let sweep = Sweep { rho: Many::One(3.0), ..Sweep::parse(FILE).unwrap() };
        let runs = [sweep.run(&|_, _| {}).unwrap(), sweep.run(&|_, _| {}).unwrap()];
        for (one, other) in runs[0].iter().zip(&runs[1]) {
            assert_eq!(one.samples, other.samples);
        }
    }

    #[test]
    fn a_file_that_makes_no_sense_is_refused_in_one_line() {
        for (line, what) in [
            ("speed = 3", "not an experiment"),
            ("protocols = []", "at least one protocol"),
            ("units = 2\nwant = \"3\"", "at most the 2 units"),
            ("crashes_max = 9", "at most (nodes - 1) / 2"),
            ("crashes = 10", "at most 9 can crash"),
            ("crashes = 4\nidle = 6", "at most 5 nodes can be idle"),
            ("want = \"many\"", "no numbers of units"),
        ] {
            let error = Sweep::parse(line).unwrap_err();
            assert!(format!("{error:#}").contains(what), "{line}: {error:#}");
        }
    }

    /// Spec 6.2, "also": who never asks makes no queries, and nobody whose query ended long ago can
    /// tell whom it does not hear. A node that only stands still is found out like a dead one.
    #[test]
    fn idle_nodes_hide_a_crash_and_a_still_one_looks_like_one() {
        let file = r#"
            protocols = ["weighted"]
            nodes = 10
            units = 3
            crashes_max = 2
            rho = 2
            crashes = 1
            crash_at = 50
            idle = [0, 3]
            probe = [0, 20]
            warm_up = 10
            measured = 300
            repetitions = 2
        "#;
        let of = |cell: &Cell, metric| cell.summary(metric).map(|summary| summary.mean);
        let cells = Sweep::parse(file).unwrap().run(&|_, _| {}).unwrap();
        for cell in &cells {
            let hidden = cell.setting.idle > 0 && cell.setting.probe == 0.0;
            let known = if hidden { 0.0 } else { 1.0 };
            assert_eq!(of(cell, Metric::CrashesKnown), Some(known), "{:?}", cell.setting);
            assert_eq!(of(cell, Metric::FalselySuspected), None);
        }
        let still = Sweep {
            crashes: Many::One(0),
            idle: Many::One(0),
            probe: Many::One(20.0),
            freeze: Many::List(vec![0.1, 100.0]),
            ..Sweep::parse(file).unwrap()
        };
        let cells = still.run(&|_, _| {}).unwrap();
        let suspected: Vec<_> =
            cells.iter().map(|cell| of(cell, Metric::FalselySuspected)).collect();
        assert_eq!(suspected, [Some(0.0), Some(1.0)]);
    }
}
