//! What an experiment leaves behind: tables, results and figures in a folder.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};

use super::chart::{Chart, Curve, Point};
use super::metric::Metric;
use super::page::Page;
use super::setting::Parameter;
use super::sweep::{Cell, Sweep};

/// Where results go. It is ready before anything is run, and nobody's own page is in the way.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Whether it holds earlier results, which are replaced.
    pub(crate) is_used: bool,
}

/// Says that what is in a folder are results.
const MARK: &str = ".quorate-results";
/// What most experiments write: in a folder without the mark they are somebody's own.
const USUAL: [&str; 3] = ["index.html", "results.json", "results.csv"];

impl Folder {
    /// Makes it ready.
    ///
    /// # Errors
    /// It cannot be made or written to, or something in it would be replaced that is not ours; then
    /// it is left as it was.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Folder> {
        let shown = path.display();
        let advice = "nothing was run; choose another folder with --out";
        let failed = || format!("cannot write to the folder {shown}: {advice}");
        fs::create_dir_all(path).with_context(failed)?;
        let names = fs::read_dir(path).with_context(failed)?;
        let names = names.map(|entry| entry.map(|entry| entry.file_name()));
        let names: Vec<OsString> = names.collect::<Result<_, _>>().with_context(failed)?;
        let is_used = names.iter().any(|name| name == MARK);
        let is_usual = |name: &&OsString| USUAL.iter().any(|usual| *name == usual);
        if let (Some(name), false) = (names.iter().find(is_usual), is_used) {
            let name = name.display();
            bail!("{shown} holds {name}, which no experiment wrote: {advice}");
        }
        let folder = Folder { path: path.to_path_buf(), is_used };
        folder.write(MARK, "What is here may be replaced by the next experiment.\n")?;
        Ok(folder)
    }

    /// A file in it.
    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes one file.
    ///
    /// # Errors
    /// Names it.
    pub(crate) fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let path = self.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Everything about a sweep that is no preset: a table, results, a figure for each metric, a page.
pub(crate) fn write_all(sweep: &Sweep, cells: &[Cell], folder: &Folder) -> anyhow::Result<()> {
    let mut page = Page::new(&sweep.title);
    describe(sweep, cells, folder, "", &mut page)?;
    folder.write("index.html", &page.finish())
}

/// The same as a part of a page; names of files begin with `prefix`.
pub(crate) fn describe(
    sweep: &Sweep,
    cells: &[Cell],
    folder: &Folder,
    prefix: &str,
    page: &mut Page,
) -> anyhow::Result<()> {
    folder.write(&format!("{prefix}results.csv"), &csv(sweep, cells, &Metric::ALL))?;
    folder.write(&format!("{prefix}long.csv"), &long_csv(sweep, cells))?;
    let results = json!({ "sweep": sweep, "cells": cells_json(cells) });
    folder.write(&format!("{prefix}results.json"), &format!("{results:#}\n"))?;
    let measured = |metric: &Metric| cells.iter().any(|cell| cell.summary(*metric).is_some());
    let metrics: Vec<Metric> = Metric::ALL.into_iter().filter(measured).collect();
    page.text(&format!(
        "{} repetitions of {} settings; means, and half the width of the 95 % confidence interval.",
        sweep.repetitions,
        cells.len()
    ));
    let head: Vec<&str> = ["", sweep.x.name()]
        .into_iter()
        .chain(metrics.iter().map(|metric| metric.label()))
        .collect();
    page.table(&head, &rows(sweep, cells, &metrics));
    for metric in metrics {
        let chart = chart(sweep, cells, metric, &sweep.title);
        // A single place on the horizontal axis is a column of the table, not a figure.
        if chart.curves.iter().all(|curve| curve.points.len() < 2) {
            continue;
        }
        let svg = chart.svg()?;
        folder.write(&format!("{prefix}{}.svg", metric.name()), &svg)?;
        page.figure(&svg, metric.label());
    }
    Ok(())
}

/// A row for each setting, for people.
pub(crate) fn rows(sweep: &Sweep, cells: &[Cell], metrics: &[Metric]) -> Vec<Vec<String>> {
    let shown = |cell: &Cell, metric| match cell.summary(metric) {
        Some(summary) => summary.shown(3).replace(' ', "\u{a0}"),
        None => "–".into(),
    };
    let row = |cell: &Cell| {
        let first = [sweep.label(&cell.setting), cell.setting.on(sweep.x).to_string()];
        first.into_iter().chain(metrics.iter().map(|&metric| shown(cell, metric))).collect()
    };
    cells.iter().map(row).collect()
}

/// A metric over the horizontal axis, one curve for each thing else that is varied.
pub(crate) fn chart(sweep: &Sweep, cells: &[Cell], metric: Metric, title: &str) -> Chart {
    let mut curves: Vec<Curve> = Vec::new();
    for cell in cells {
        let Some(summary) = cell.summary(metric) else { continue };
        let label = sweep.label(&cell.setting);
        let range = if metric == Metric::DetectionTime { cell.detection_range() } else { None };
        let point = Point { range, ..Point::new(cell.setting.on(sweep.x), summary) };
        match curves.iter_mut().find(|curve| curve.label == label) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve { label, points: vec![point] }),
        }
    }
    for curve in &mut curves {
        curve.points.sort_by(|one, other| one.x.total_cmp(&other.x));
    }
    Chart {
        title: title.into(),
        x_label: sweep.x.name().into(),
        y_label: metric.label().into(),
        logarithmic: (spans(points(&curves, |it| it.x)), spans(points(&curves, |it| it.y))),
        curves,
        marks: Vec::new(),
    }
}

fn points(curves: &[Curve], of: fn(&Point) -> f64) -> impl Iterator<Item = f64> {
    curves.iter().flat_map(|curve| &curve.points).map(of)
}

/// Whether values are so different that only a logarithmic axis shows the small ones.
fn spans(values: impl Iterator<Item = f64>) -> bool {
    let (least, most) = values
        .filter(|value| *value > 0.0)
        .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    most > 50.0 * least
}

/// A line for each setting: what was varied, then mean and half-width of each metric, and of times
/// until crashes are known the smallest and the largest.
pub(crate) fn csv(sweep: &Sweep, cells: &[Cell], metrics: &[Metric]) -> String {
    let varied = sweep.varied();
    let mut text = format!("curve,{}", sweep.x.name());
    for parameter in &varied {
        let _ = write!(text, ",{}", parameter.name());
    }
    for &metric in metrics {
        let _ = write!(text, ",{0},{0}_ci95", metric.name());
        if metric == Metric::DetectionTime {
            let _ = write!(text, ",{0}_min,{0}_max", metric.name());
        }
    }
    text.push('\n');
    let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.6}"));
    for cell in cells {
        let label = sweep.label(&cell.setting);
        let _ = write!(text, "\"{label}\",{}", cell.setting.on(sweep.x));
        for &parameter in &varied {
            let _ = write!(text, ",{}", cell.setting.value(parameter));
        }
        for &metric in metrics {
            let summary = cell.summary(metric);
            let ci95 = summary.and_then(|summary| summary.ci95);
            let mean = summary.map(|summary| summary.mean);
            let _ = write!(text, ",{},{}", number(mean), number(ci95));
            if metric == Metric::DetectionTime {
                let (least, most) = cell.detection_range().unzip();
                let _ = write!(text, ",{},{}", number(least), number(most));
            }
        }
        text.push('\n');
    }
    text
}

/// A line for each number of each run: what programs like to group by.
pub(crate) fn long_csv(sweep: &Sweep, cells: &[Cell]) -> String {
    let mut text = String::from("protocol");
    for parameter in Parameter::ALL {
        let _ = write!(text, ",{}", parameter.name());
    }
    text.push_str(",seed,metric,value\n");
    for cell in cells {
        let mut setting = format!("\"{}\"", cell.setting.protocol.name());
        for parameter in Parameter::ALL {
            let _ = write!(setting, ",{}", cell.setting.value(parameter));
        }
        for (seed, sample) in (sweep.seed..).zip(&cell.samples) {
            for metric in Metric::ALL {
                if let Some(value) = sample.of(metric) {
                    let _ = writeln!(text, "{setting},{seed},{},{value}", metric.name());
                }
            }
        }
    }
    text
}

/// Every setting with the summary of each metric.
pub(crate) fn cells_json(cells: &[Cell]) -> Vec<Value> {
    let one = |cell: &Cell| {
        let mut map = Map::new();
        map.insert("setting".into(), json!(cell.setting));
        for metric in Metric::ALL {
            if let Some(summary) = cell.summary(metric) {
                map.insert(metric.name().into(), json!(summary));
            }
        }
        Value::Object(map)
    };
    cells.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_gets_a_table_results_figures_and_a_page() {
        let text =
            "protocols = [\"central\"]\nrho = [1, 5]\nrepetitions = 2\nwarm_up = 5\nmeasured = 50";
        let sweep = Sweep::parse(text).unwrap();
        let cells = sweep.run(&|_, _| {}).unwrap();
        let folder = std::env::temp_dir().join(format!("quorate-sweep-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("notes"), "mine").unwrap();
        assert!(!Folder::open(&folder).unwrap().is_used);
        write_all(&sweep, &cells, &Folder::open(&folder).unwrap()).unwrap();
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(read("results.csv").lines().count(), 3);
        let results: Value = serde_json::from_str(&read("results.json")).unwrap();
        assert_eq!(results["cells"].as_array().unwrap().len(), 2);
        assert!(results["cells"][0]["obtaining_time"]["ci95"].is_f64());
        assert!(read("obtaining_time.svg").starts_with("<svg"));
        assert!(!folder.join("detection_time.svg").exists(), "nobody crashed");
        let page = read("index.html");
        assert!(page.contains("<svg") && page.contains("<td>central</td><td>5</td>"), "{page}");
        let table = read("results.csv");
        assert!(table.starts_with("curve,rho,obtaining_time,obtaining_time_ci95,"), "{table}");
        // Somebody's own files stay, and what is in the way is left as it was.
        fs::remove_file(folder.join(MARK)).unwrap();
        fs::write(folder.join("index.html"), "mine").unwrap();
        let error = Folder::open(&folder).unwrap_err().to_string();
        assert!(error.contains("which no experiment wrote: nothing was run"), "{error}");
        assert_eq!(read("index.html"), "mine");
        fs::remove_dir_all(&folder).unwrap();
    }
}
