//! Every protocol and mode on the same workload and seeds: what each costs and what one gets.
//!
//! A comparison is a few panels, and a panel is a sweep, or several that share an axis.

use std::path::Path;

use serde_json::{Value, json};

use super::contender::Contender;
use super::crew::Progress;
use super::metric::Metric;
use super::output::{cells_json, chart, long_csv, rows};
use super::page::Page;
use super::sample::Sample;
use super::setting::{Many, Parameter, Setting};
use super::sweep::{Cell, Sweep};
use crate::campaign::{Campaign, Division, Performed};

/// A header, and rows under it.
pub(crate) type Table = (Vec<String>, Vec<Vec<String>>);

/// Whom a comparison compares if nobody says otherwise: every protocol and mode, and what papers
/// describe.
pub(crate) const CONTENDERS: [&str; 13] = [
    "central",
    "arbiter --survive 0",
    "arbiter --naming --survive 0",
    "arbiter --mode named --survive 0",
    "arbiter --family threshold --survive 0",
    "ticket --survive 0",
    "table --survive 0",
    "ring",
    "ring --variant core",
    "broadcast --reclaim lease",
    "timer-free",
    "raymond",
    "raynal",
];

/// What is varied.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Preset {
    /// A little of everything, within a minute
    Quick,
    /// From clients that never think to clients that mostly do
    Load,
    /// 3 to 1,000 nodes under the same load
    Sizes,
    /// 1 to 16 units, each claim for one
    Units,
    /// Claims of 1 and of 4 of 8 units
    Claims,
    /// Three regions, 20 ms apart
    Regions,
    /// So many nodes die for good while all units are wanted
    Crashes,
    /// All of these
    All,
}

/// One axis.
pub(crate) struct Panel {
    pub(crate) name: &'static str,
    pub(crate) heading: &'static str,
    sweeps: Vec<Sweep>,
    /// What the terminal shows of it.
    metrics: &'static [Metric],
}

const COSTS: &[Metric] = &[
    Metric::MessagesPerCs,
    Metric::MessagesProtocol,
    Metric::BusiestNode,
    Metric::ObtainingTime,
    Metric::WaitingP99,
    Metric::CsPerSecond,
    Metric::SynchronizationDelay,
    Metric::Fairness,
    Metric::OvertakenMax,
    Metric::StateBytes,
];
const LOSSES: &[Metric] =
    &[Metric::Recovered, Metric::RecoveryTime, Metric::CsPerSecond, Metric::WaitingP99];

impl Preset {
    fn panels(self) -> Vec<Panel> {
        match self {
            Preset::Quick => vec![
                load(vec![0.0, 8.0], 2),
                sizes(&[3, 10, 30], 1),
                regions(2),
                crashes(vec![1, 2], 2),
            ],
            Preset::Load => vec![load(vec![0.0, 1.0, 2.0, 4.0, 8.0, 16.0], 5)],
            Preset::Sizes => vec![sizes(&[3, 10, 30, 100, 300, 1_000], 3)],
            Preset::Units => vec![units(5)],
            Preset::Claims => vec![claims(5)],
            Preset::Regions => vec![regions(5)],
            Preset::Crashes => vec![crashes(vec![1, 2, 3, 4], 10)],
            Preset::All => {
                let all = [Preset::Load, Preset::Sizes, Preset::Units, Preset::Claims];
                let all = all.into_iter().chain([Preset::Regions, Preset::Crashes]);
                all.flat_map(Preset::panels).collect()
            }
        }
    }
}

fn base(title: &str, repetitions: u32) -> Sweep {
    Sweep {
        title: title.into(),
        nodes: Many::One(9),
        units: Many::One(3),
        warm_up: 0.5,
        measured: 2.0,
        repetitions,
        ..Sweep::default()
    }
}

fn load(rho: Vec<f64>, repetitions: u32) -> Panel {
    let title = "9 nodes at one site, 1 ms apart, share 3 units, held for 10 ms";
    let sweep = Sweep { rho: Many::List(rho), ..base(title, repetitions) };
    let heading = "Load: clients think so many times as long as they hold";
    Panel { name: "load", heading, sweeps: vec![sweep], metrics: COSTS }
}

fn sizes(nodes: &[u32], repetitions: u32) -> Panel {
    let title = "3 units, half of which are in use, however many nodes there are";
    let one = |&nodes: &u32| Sweep {
        nodes: Many::One(nodes),
        // So that the claims of all nodes together come as often.
        rho: Many::One(f64::from(nodes) / 1.5 - 1.0),
        x: Parameter::Nodes,
        ..base(title, repetitions)
    };
    let heading = "Size: more nodes, the same load";
    Panel { name: "sizes", heading, sweeps: nodes.iter().map(one).collect(), metrics: COSTS }
}

fn units(repetitions: u32) -> Panel {
    let sweep = Sweep {
        units: Many::List(vec![1, 2, 4, 8, 16]),
        nodes: Many::One(21),
        rho: Many::One(0.0),
        x: Parameter::Units,
        ..base("21 nodes, whose clients never think", repetitions)
    };
    Panel { name: "units", heading: "Units, all wanted", sweeps: vec![sweep], metrics: COSTS }
}

fn claims(repetitions: u32) -> Panel {
    let sweep = Sweep {
        units: Many::One(8),
        want: "1:80,4:20".into(),
        rho: Many::List(vec![0.0, 1.0, 4.0]),
        ..base("8 units, four of five claims are for 1 and the fifth for 4", repetitions)
    };
    Panel { name: "claims", heading: "Claims that differ", sweeps: vec![sweep], metrics: COSTS }
}

fn regions(repetitions: u32) -> Panel {
    let sweep = Sweep {
        latency: Many::One(0.02),
        latency_spread: 0.1,
        sites: 3,
        inside: 0.05,
        inside_spread: 0.1,
        hold: Many::One(0.1),
        rho: Many::List(vec![0.0, 8.0]),
        warm_up: 2.0,
        measured: 10.0,
        ..base("9 nodes in three regions, 20 ms apart, 3 units held for 100 ms", repetitions)
    };
    Panel { name: "regions", heading: "Three regions", sweeps: vec![sweep], metrics: COSTS }
}

fn crashes(crashes: Vec<u32>, repetitions: u32) -> Panel {
    let sweep = Sweep {
        crashes: Many::List(crashes),
        crash_at: 5.0,
        rho: Many::One(0.0),
        lease: Many::One(2.0),
        retry: Many::One(0.2),
        warm_up: 1.0,
        measured: 24.0,
        series_step: 0.5,
        x: Parameter::Crashes,
        ..base(
            "9 nodes, 3 units, leases of 2 s; so many die at once, and no failure detector helps",
            repetitions,
        )
    };
    Panel { name: "crashes", heading: "After crashes", sweeps: vec![sweep], metrics: LOSSES }
}

/// A comparison before it is run.
pub(crate) struct Comparison {
    panels: Vec<Panel>,
    /// Who cannot take part, where and why.
    pub(crate) left_out: Vec<String>,
}

/// A panel and what its runs gave.
pub(crate) struct Compared {
    pub(crate) panel: Panel,
    pub(crate) cells: Vec<Cell>,
}

impl Comparison {
    /// Of these contenders; where one cannot play, the others do without it.
    ///
    /// # Errors
    /// There is no such protocol.
    pub(crate) fn new(
        preset: Preset,
        contenders: &[String],
        (repetitions, seed): (Option<u32>, u64),
    ) -> anyhow::Result<Comparison> {
        let contenders = contenders.iter().map(|name| Contender::new(name));
        let contenders: Vec<Contender> = contenders.collect::<anyhow::Result<_>>()?;
        let (mut panels, mut left_out) = (preset.panels(), Vec::new());
        for panel in &mut panels {
            for sweep in &mut panel.sweeps {
                sweep.seed = seed;
                sweep.repetitions = repetitions.unwrap_or(sweep.repetitions);
                for &contender in &contenders {
                    let alone = Sweep { protocols: vec![contender], ..sweep.clone() };
                    match alone.check() {
                        Ok(()) => sweep.protocols.push(contender),
                        Err(error) => {
                            let why = error.root_cause();
                            left_out.push(format!("{}: {}: {why}", panel.name, contender.name()));
                        }
                    }
                }
            }
            panel.sweeps.retain(|sweep| !sweep.protocols.is_empty());
        }
        panels.retain(|panel| !panel.sweeps.is_empty());
        Ok(Comparison { panels, left_out })
    }

    /// Runs it, or a part of it.
    ///
    /// # Errors
    /// A run broke a law, or parts do not fit.
    pub(crate) fn run(
        self,
        division: &Division,
        out: Option<&Path>,
        progress: &Progress<'_>,
    ) -> anyhow::Result<Performed<Compared>> {
        let sweeps = self.panels.iter().flat_map(|panel| &panel.sweeps);
        let jobs: Vec<(&Sweep, Setting, u64)> = sweeps
            .clone()
            .flat_map(|sweep| sweep.jobs().into_iter().map(move |(one, seed)| (sweep, one, seed)))
            .collect();
        let campaign = Campaign {
            command: "compare",
            out,
            input: json!(sweeps.collect::<Vec<_>>()),
            encode: &Sample::encode,
            decode: &Sample::decode,
        };
        let performed =
            division.perform(&campaign, &jobs, progress, |(sweep, setting, seed)| {
                sweep.play(setting, *seed, sweep.only(setting, *seed))
            })?;
        let mut samples = match performed {
            Performed::All(samples) => samples.into_iter(),
            Performed::Part(runs) => return Ok(Performed::Part(runs)),
            Performed::Interrupted => return Ok(Performed::Interrupted),
        };
        let compared = self.panels.into_iter().map(|panel| {
            let of = |sweep: &Sweep| {
                sweep.cells(samples.by_ref().take(sweep.jobs().len()).collect::<Vec<_>>())
            };
            let cells = panel.sweeps.iter().flat_map(of).collect();
            Compared { panel, cells }
        });
        Ok(Performed::All(compared.collect()))
    }
}

impl Compared {
    /// What all its sweeps have in common.
    fn sweep(&self) -> &Sweep {
        &self.panel.sweeps[0]
    }

    /// The most important numbers.
    pub(crate) fn table(&self) -> Table {
        let sweep = self.sweep();
        let metrics = self.panel.metrics;
        let head = [self.panel.name, sweep.x.name()].into_iter();
        let head = head.chain(metrics.iter().map(|metric| metric.name()));
        (head.map(str::to_owned).collect(), rows(sweep, &self.cells, metrics))
    }

    /// Every number of every run.
    pub(crate) fn csv(&self) -> String {
        let text = long_csv(self.sweep(), &self.cells);
        let with = |line: &str, first: &str| format!("{first},{line}\n");
        let mut lines = text.lines();
        let head = lines.next().map_or(String::new(), |line| with(line, "panel"));
        head + &lines.map(|line| with(line, self.panel.name)).collect::<String>()
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "panel": self.panel.name,
            "sweeps": self.panel.sweeps,
            "cells": cells_json(&self.cells),
        })
    }

    /// A figure for each metric that has more than one place on the axis.
    pub(crate) fn figures(&self) -> anyhow::Result<Vec<(Metric, String)>> {
        let mut figures = Vec::new();
        for &metric in self.panel.metrics {
            let chart = chart(self.sweep(), &self.cells, metric, metric.label());
            if chart.curves.iter().any(|curve| curve.points.len() > 1) {
                figures.push((metric, chart.svg()?));
            }
        }
        Ok(figures)
    }
}

/// All of it as a page that needs nothing else.
///
/// # Errors
/// A figure cannot be drawn.
pub(crate) fn page(all: &[Compared], left_out: &[String], command: &str) -> anyhow::Result<String> {
    let mut page = Page::new("Protocols compared");
    page.text(
        "The same workload and the same seeds under every protocol and mode, simulated. Messages \
         are counted by what they are for: the protocol, retries, leases, probes. Means, and half \
         the width of the 95 % confidence interval.",
    );
    page.text(&format!("Made by: {command}"));
    for compared in all {
        page.heading(compared.panel.heading);
        page.text(&compared.sweep().title);
        if let Some(off) = compared.sweep().switched_off() {
            page.text(&off);
        }
        let (head, rows) = compared.table();
        page.table(&head.iter().map(String::as_str).collect::<Vec<_>>(), &rows);
        for (metric, svg) in compared.figures()? {
            page.figure(&svg, metric.label());
        }
    }
    if !left_out.is_empty() {
        page.heading("Who could not take part");
        left_out.iter().for_each(|line| page.text(line));
    }
    Ok(page.finish())
}

/// All figures in one picture, two in a row.
///
/// # Errors
/// A figure cannot be drawn.
pub(crate) fn picture(all: &[Compared]) -> anyhow::Result<String> {
    const CELL: (usize, usize) = (1020, 460);
    let mut inner = String::new();
    let mut top = 0;
    for compared in all {
        let title = format!("{}: {}", compared.panel.heading, compared.sweep().title);
        let title = title.replace('&', "&amp;").replace('<', "&lt;");
        inner += &format!(
            "<text x=\"20\" y=\"{}\" font-family=\"sans-serif\" font-size=\"22\">{title}</text>\n",
            top + 32
        );
        top += 48;
        let figures = compared.figures()?;
        for (place, (_, svg)) in figures.iter().enumerate() {
            let (x, y) = (place % 2 * CELL.0, top + place / 2 * CELL.1);
            inner += &svg.replacen("<svg ", &format!("<svg x=\"{x}\" y=\"{y}\" "), 1);
        }
        top += figures.len().div_ceil(2) * CELL.1;
    }
    let width = 2 * CELL.0;
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{top}\" \
         viewBox=\"0 0 {width} {top}\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         {inner}</svg>\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every preset can be played by nearly everybody, and who cannot play is named.
    #[test]
    fn presets_are_sound_and_say_who_is_left_out() {
        let all: Vec<String> = CONTENDERS.map(str::to_owned).into();
        let comparison = Comparison::new(Preset::All, &all, (None, 1)).unwrap();
        assert_eq!(comparison.panels.len(), 6);
        let claims = comparison.panels.iter().find(|panel| panel.name == "claims").unwrap();
        let names: Vec<&str> = claims.sweeps[0].protocols.iter().map(|it| it.name()).collect();
        assert!(names.contains(&"central") && !names.contains(&"raymond"), "{names:?}");
        let why = comparison.left_out.iter().find(|line| line.starts_with("claims: raymond"));
        assert!(why.is_some_and(|why| why.contains("serves 1 unit at a time")), "{why:?}");
    }
}
