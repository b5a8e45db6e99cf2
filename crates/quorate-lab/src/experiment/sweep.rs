//! What an experiment varies: every parameter is a value or a list, and every combination is run.

use std::fmt;
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::contender::Contender;
use super::crew::{self, Progress};
use super::metric::Metric;
use super::play::play;
use super::sample::Sample;
use super::setting::{Many, Parameter, Reclaim, Setting};
use super::stats::Summary;
use crate::campaign::{Campaign, Division, Performed};

/// An experiment. Times are in seconds.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Sweep {
    pub(crate) title: String,
    pub(crate) protocols: Vec<Contender>,
    pub(crate) nodes: Many<u32>,
    pub(crate) units: Many<u32>,
    /// Most crashes that are recovered from, where a protocol knows such a bound. Of this and
    /// others, where it is left out, the default of `sim run` holds.
    pub(crate) crashes_max: Option<Many<u32>>,
    /// Most units that one node asks for at a time, where a protocol knows such a bound.
    pub(crate) node_units_max: Option<Many<u32>>,
    /// How long a client uses its units.
    pub(crate) hold: Many<f64>,
    /// The deviation of that (normal, cut at 0), as a share of its mean; exponential if left out.
    pub(crate) hold_spread: Option<f64>,
    /// How long it thinks in between, as a multiple of `hold`.
    pub(crate) rho: Many<f64>,
    /// The deviation of that, likewise.
    pub(crate) think_spread: Option<f64>,
    pub(crate) clients_per_node: u32,
    /// Whether first claims are spread over the first time that each client thinks.
    pub(crate) stagger: bool,
    /// How many units a claim asks for: `2`, `1,2` or `1:80,4:20`.
    pub(crate) want: String,
    /// One way between two sites; spread evenly by `latency_spread` on both sides.
    pub(crate) latency: Many<f64>,
    pub(crate) latency_spread: f64,
    /// Nodes lie at so many sites; inside a site a message takes `inside` times the latency.
    pub(crate) sites: u32,
    pub(crate) inside: f64,
    pub(crate) inside_spread: f64,
    /// Whether links may change the order of messages, where the protocol bears it.
    pub(crate) reordering: bool,
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
    pub(crate) probe: Option<Many<f64>>,
    /// When who is believed to have crashed is counted out, where a protocol can do so.
    pub(crate) reclaim: Option<Many<Reclaim>>,
    /// How long a grant lasts without renewal, where a protocol has leases; 0 for longer than any
    /// run.
    pub(crate) lease: Many<f64>,
    /// How long participants wait before they repeat themselves; 0 for longer than any run.
    pub(crate) retry: Many<f64>,
    /// How wrong clocks may be, in millionths.
    pub(crate) drift: u32,
    /// How often a waiting claim may be overtaken, where a protocol can promise that.
    pub(crate) backfill: u32,
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
    pub(crate) x: Parameter,
}

/// The defaults of `sim run`.
impl Default for Sweep {
    fn default() -> Self {
        Sweep {
            title: "A sweep".into(),
            protocols: Vec::new(),
            nodes: Many::One(5),
            units: Many::One(2),
            crashes_max: None,
            node_units_max: None,
            hold: Many::One(0.01),
            hold_spread: None,
            rho: Many::One(2.0),
            think_spread: None,
            clients_per_node: 1,
            stagger: false,
            want: "1".into(),
            latency: Many::One(0.001),
            latency_spread: 0.0,
            sites: 1,
            inside: 1.0,
            inside_spread: 0.0,
            reordering: false,
            crashes: Many::One(0),
            crash_at: 0.0,
            crash_every: Many::One(0.0),
            idle: Many::One(0),
            freeze: Many::One(0.0),
            notices: Many::One(false),
            probe: None,
            reclaim: None,
            lease: Many::One(10.0),
            retry: Many::One(1.0),
            drift: 200,
            backfill: 0,
            warm_up: 0.0,
            measured: 10.0,
            until_known: false,
            series_step: 0.0,
            repetitions: 5,
            seed: 1,
            x: Parameter::Rho,
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

    /// How long each crash took to become known in any run: their smallest and largest.
    pub(crate) fn detection_range(&self) -> Option<(f64, f64)> {
        let times: Vec<f64> =
            self.samples.iter().flat_map(|sample| sample.detection.iter().copied()).collect();
        Summary::of(&times).map(|all| (all.min, all.max))
    }
}

/// A run that broke a law, or in which a live node was taken for dead.
#[derive(Debug)]
pub(crate) struct Broken {
    /// That run, and nothing else.
    pub(crate) run: Box<Sweep>,
    pub(crate) what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.run.title, self.what)
    }
}

impl std::error::Error for Broken {}

impl Sweep {
    /// Reads an experiment from the text of a file.
    ///
    /// # Errors
    /// If it is not one, or could not be run as it says.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Sweep> {
        let sweep: Sweep = toml::from_str(text).map_err(|error| in_one_line(text, &error))?;
        sweep.check()?;
        Ok(sweep)
    }

    /// The same, where what is left out is as papers have it ([`Sweep::of_papers`]).
    ///
    /// # Errors
    /// If it is not one, or could not be run as it says.
    pub(crate) fn parse_of_papers(text: &str) -> anyhow::Result<Sweep> {
        let mut fields: toml::Table = toml::from_str(&Sweep::of_papers().file()?)?;
        fields.extend(toml::from_str::<toml::Table>(text)?);
        let sweep: Sweep = fields.try_into()?;
        sweep.check()?;
        Ok(sweep)
    }

    /// What takes no part although a pool of nodes has it, in words: whoever compares messages must
    /// know.
    pub(crate) fn switched_off(&self) -> Option<String> {
        let off = |many: &Many<f64>| many.values().contains(&0.0);
        let probes = self.probe.as_ref().is_some_and(off);
        let words = [
            (off(&self.lease), "leases (lease = 0: they outlast the run)"),
            (off(&self.retry), "retries (retry = 0: nothing is said twice)"),
            (probes, "probes (probe = 0: nobody is asked whether it is there)"),
        ];
        let words: Vec<&str> = words.iter().filter(|it| it.0).map(|it| it.1).collect();
        (!words.is_empty()).then(|| format!("switched off: {}", words.join(", ")))
    }

    /// The workload of papers: nothing takes part that they do not have, and times are much alike.
    pub(crate) fn of_papers() -> Sweep {
        Sweep {
            nodes: Many::One(10),
            units: Many::One(3),
            crashes_max: Some(Many::One(0)),
            node_units_max: Some(Many::One(1)),
            hold: Many::One(2.0),
            hold_spread: Some(0.0),
            rho: Many::One(5.0),
            think_spread: Some(0.25),
            stagger: true,
            latency: Many::One(0.1),
            latency_spread: 0.05,
            inside_spread: 0.05,
            reordering: true,
            probe: Some(Many::One(0.0)),
            lease: Many::One(0.0),
            retry: Many::One(0.0),
            drift: 0,
            warm_up: 100.0,
            measured: 500.0,
            ..Sweep::default()
        }
    }

    /// What such a file would say.
    pub(crate) fn file(&self) -> anyhow::Result<String> {
        let fields = serde_json::to_value(self).context("an experiment is a table")?;
        let fields = fields.as_object().context("an experiment is a table")?;
        let said = fields.iter().filter(|(_, value)| !value.is_null());
        // Numbers, truths, words and lists are written as in JSON.
        Ok(said.map(|(name, value)| format!("{name} = {value}\n")).collect())
    }

    /// Every combination, protocol by protocol. What a protocol does not have makes no difference
    /// to it, unless it is on the horizontal axis.
    pub(crate) fn settings(&self) -> Vec<Setting> {
        let start = Setting {
            protocol: self.protocols[0],
            nodes: 0,
            units: 0,
            crashes_max: None,
            node_units_max: None,
            hold: 0.0,
            rho: 0.0,
            latency: 0.0,
            crashes: 0,
            crash_every: 0.0,
            idle: 0,
            freeze: 0.0,
            notices: false,
            probe: None,
            reclaim: None,
            lease: 0.0,
            retry: 0.0,
        };
        let mut all = vec![start];
        spread(&mut all, &self.protocols, |setting, value| setting.protocol = value);
        for parameter in Parameter::ALL {
            let all = &mut all;
            match parameter {
                Parameter::Nodes => spread(all, &self.nodes.values(), |s, v| s.nodes = v),
                Parameter::Units => spread(all, &self.units.values(), |s, v| s.units = v),
                Parameter::CrashesMax => {
                    maybe(all, self.crashes_max.as_ref(), |s, v| s.crashes_max = Some(v));
                }
                Parameter::NodeUnitsMax => {
                    maybe(all, self.node_units_max.as_ref(), |s, v| s.node_units_max = Some(v));
                }
                Parameter::Hold => spread(all, &self.hold.values(), |s, v| s.hold = v),
                Parameter::Latency => spread(all, &self.latency.values(), |s, v| s.latency = v),
                Parameter::Notices => spread(all, &self.notices.values(), |s, v| s.notices = v),
                Parameter::Probe => maybe(all, self.probe.as_ref(), |s, v| s.probe = Some(v)),
                Parameter::Reclaim => {
                    maybe(all, self.reclaim.as_ref(), |s, v| s.reclaim = Some(v));
                }
                Parameter::Lease => spread(all, &self.lease.values(), |s, v| s.lease = v),
                Parameter::Retry => spread(all, &self.retry.values(), |s, v| s.retry = v),
                Parameter::CrashEvery => {
                    spread(all, &self.crash_every.values(), |s, v| s.crash_every = v);
                }
                Parameter::Idle => spread(all, &self.idle.values(), |s, v| s.idle = v),
                Parameter::Freeze => spread(all, &self.freeze.values(), |s, v| s.freeze = v),
                Parameter::Rho => spread(all, &self.rho.values(), |s, v| s.rho = v),
                Parameter::Crashes => spread(all, &self.crashes.values(), |s, v| s.crashes = v),
            }
        }
        let mut different: Vec<Setting> = Vec::new();
        for setting in all {
            let setting = setting.protocol.settle(setting, self.x);
            if !different.contains(&setting) {
                different.push(setting);
            }
        }
        different
    }

    /// The first combination with this protocol.
    pub(super) fn settings_of(&self, protocol: Contender) -> Setting {
        Sweep { protocols: vec![protocol], ..self.clone() }.settings()[0]
    }

    /// The values of a parameter, as numbers.
    pub(super) fn numbers(&self, of: Parameter) -> Vec<f64> {
        let whole = |many: &Many<u32>| many.values().into_iter().map(f64::from).collect();
        match of {
            Parameter::Nodes => whole(&self.nodes),
            Parameter::Units => whole(&self.units),
            Parameter::CrashesMax => self.crashes_max.as_ref().map_or(vec![0.0], whole),
            Parameter::NodeUnitsMax => self.node_units_max.as_ref().map_or(vec![1.0], whole),
            Parameter::Hold => self.hold.values(),
            Parameter::Latency => self.latency.values(),
            Parameter::Notices => {
                self.notices.values().into_iter().map(|it| f64::from(u8::from(it))).collect()
            }
            Parameter::Probe => self.probe.as_ref().map_or(vec![0.0], Many::values),
            Parameter::Reclaim => match &self.reclaim {
                Some(reclaim) => reclaim.values().iter().map(|&it| f64::from(it as u8)).collect(),
                None => vec![0.0],
            },
            Parameter::Lease => self.lease.values(),
            Parameter::Retry => self.retry.values(),
            Parameter::CrashEvery => self.crash_every.values(),
            Parameter::Idle => whole(&self.idle),
            Parameter::Freeze => self.freeze.values(),
            Parameter::Rho => self.rho.values(),
            Parameter::Crashes => whole(&self.crashes),
        }
    }

    /// What is varied beside the horizontal axis.
    pub(crate) fn varied(&self) -> Vec<Parameter> {
        let is_varied = |it: &Parameter| *it != self.x && self.numbers(*it).len() > 1;
        Parameter::ALL.into_iter().filter(is_varied).collect()
    }

    /// One run of one setting as an experiment of its own: equal if, and only if, the runs are.
    pub(super) fn only(&self, setting: &Setting, seed: u64) -> Sweep {
        Sweep {
            title: String::new(),
            protocols: vec![setting.protocol],
            nodes: Many::One(setting.nodes),
            units: Many::One(setting.units),
            crashes_max: setting.crashes_max.map(Many::One),
            node_units_max: setting.node_units_max.map(Many::One),
            hold: Many::One(setting.hold),
            rho: Many::One(setting.rho),
            latency: Many::One(setting.latency),
            crashes: Many::One(setting.crashes),
            crash_every: Many::One(setting.crash_every),
            idle: Many::One(setting.idle),
            freeze: Many::One(setting.freeze),
            notices: Many::One(setting.notices),
            probe: setting.probe.map(Many::One),
            reclaim: setting.reclaim.map(Many::One),
            lease: Many::One(setting.lease),
            retry: Many::One(setting.retry),
            repetitions: 1,
            seed,
            x: Parameter::Rho,
            ..self.clone()
        }
    }

    /// Runs everything.
    ///
    /// # Errors
    /// [`Broken`], about the first run that is.
    pub(crate) fn run(&self, progress: &Progress<'_>) -> anyhow::Result<Vec<Cell>> {
        self.run_after(&[], progress)
    }

    /// The same as a part of a campaign, or from all parts of one.
    ///
    /// # Errors
    /// [`Broken`], about the first run that is.
    pub(crate) fn run_divided(
        &self,
        division: &Division,
        out: &Path,
        progress: &Progress<'_>,
    ) -> anyhow::Result<Performed<Cell>> {
        let jobs = self.jobs();
        let campaign = Campaign {
            command: "sim sweep",
            out: Some(out),
            input: serde_json::to_value(self).context("an experiment is a table")?,
            encode: &Sample::encode,
            decode: &Sample::decode,
        };
        let performed = division.perform(&campaign, &jobs, progress, |(setting, seed)| {
            self.play(setting, *seed, self.only(setting, *seed))
        })?;
        Ok(match performed {
            Performed::All(samples) => Performed::All(self.cells(samples)),
            Performed::Part(runs) => Performed::Part(runs),
            Performed::Interrupted => Performed::Interrupted,
        })
    }

    pub(super) fn jobs(&self) -> Vec<(Setting, u64)> {
        let seeds = self.seed..self.seed + u64::from(self.repetitions);
        let each = |setting: Setting| seeds.clone().map(move |seed| (setting, seed));
        self.settings().into_iter().flat_map(each).collect()
    }

    pub(super) fn cells(&self, samples: Vec<Sample>) -> Vec<Cell> {
        let mut samples = samples.into_iter();
        let repetitions = self.repetitions as usize;
        let settings = self.settings().into_iter();
        settings
            .map(|setting| Cell { setting, samples: samples.by_ref().take(repetitions).collect() })
            .collect()
    }

    pub(super) fn play(&self, setting: &Setting, seed: u64, run: Sweep) -> anyhow::Result<Sample> {
        play(self, setting, seed).map_err(|error| {
            let Some(what) = error.downcast_ref::<quorate_laws::Breach>() else {
                return error;
            };
            let title = format!("{}, seed {seed}", self.label(setting));
            let run = Box::new(Sweep { title, ..run });
            Broken { run, what: what.to_string() }.into()
        })
    }

    /// The same, except what these have run already.
    ///
    /// # Errors
    /// [`Broken`], about the first run that is.
    pub(crate) fn run_after(
        &self,
        earlier: &[(&Sweep, Vec<Cell>)],
        progress: &Progress<'_>,
    ) -> anyhow::Result<Vec<Cell>> {
        let known: Vec<(Sweep, &Sample)> = earlier
            .iter()
            .flat_map(|(sweep, cells)| cells.iter().map(move |cell| (sweep, cell)))
            .flat_map(|(sweep, cell)| {
                let runs = (sweep.seed..).zip(&cell.samples);
                runs.map(|(seed, sample)| (sweep.only(&cell.setting, seed), sample))
            })
            .collect();
        let samples = crew::all(&self.jobs(), progress, |(setting, seed)| {
            let run = self.only(setting, *seed);
            match known.iter().find(|(earlier, _)| *earlier == run) {
                Some(&(_, sample)) => Ok(sample.taken_over()),
                None => self.play(setting, *seed, run),
            }
        })?;
        Ok(self.cells(samples))
    }

    /// What tells a setting from others with the same place on the horizontal axis.
    pub(crate) fn label(&self, setting: &Setting) -> String {
        let name = setting.protocol.name();
        let words = self.varied().into_iter().filter(|&it| setting.protocol.has(it));
        words.fold(name.into(), |label, varied| label + &setting.words(varied))
    }
}

/// What is wrong with a file, and where.
fn in_one_line(text: &str, error: &toml::de::Error) -> anyhow::Error {
    let what = error.message().replace('\n', ", ");
    let what = what.replace("expected f64", "expected a number");
    let what = what.replace("expected u32", "expected a whole number");
    let what = what.replace("expected u64", "expected a whole number");
    let Some(span) = error.span() else { return anyhow::anyhow!("{what}") };
    let number = text[..span.start].matches('\n').count();
    let line = text.lines().nth(number).unwrap_or_default().trim();
    anyhow::anyhow!("line {}, {line}: {what}", number + 1)
}

/// The same where nothing may have been said.
fn maybe<T: Copy>(all: &mut Vec<Setting>, many: Option<&Many<T>>, set: impl Fn(&mut Setting, T)) {
    if let Some(many) = many {
        spread(all, &many.values(), set);
    }
}

fn spread<T: Copy>(all: &mut Vec<Setting>, values: &[T], set: impl Fn(&mut Setting, T)) {
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
mod tests;
