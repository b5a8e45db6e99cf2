//! What an experiment leaves behind: tables, results and figures in a folder.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::{Map, Value, json};

use super::chart::{Chart, Curve, Point};
use super::page::Page;
use super::stats::Summary;
use super::sweep::{Cell, Metric, Sweep};

/// Writes one file, with an error that names it.
pub(crate) fn write(folder: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let path = folder.join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Everything about a sweep that is no preset: a table, results, a figure for each metric, a page.
pub(crate) fn write_all(sweep: &Sweep, cells: &[Cell], folder: &Path) -> anyhow::Result<()> {
    let mut page = Page::new(&sweep.title);
    describe(sweep, cells, folder, "", &mut page)?;
    write(folder, "index.html", &page.finish())
}

/// The same as a part of a page; names of files begin with `prefix`.
pub(crate) fn describe(
    sweep: &Sweep,
    cells: &[Cell],
    folder: &Path,
    prefix: &str,
    page: &mut Page,
) -> anyhow::Result<()> {
    write(folder, &format!("{prefix}results.csv"), &csv(sweep, cells, &Metric::ALL))?;
    let results = json!({ "sweep": sweep, "cells": cells_json(cells) });
    write(folder, &format!("{prefix}results.json"), &format!("{results:#}\n"))?;
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
        write(folder, &format!("{prefix}{}.svg", metric.name()), &svg)?;
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
        let point = Point::new(cell.setting.on(sweep.x), summary);
        match curves.iter_mut().find(|curve| curve.label == label) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve { label, points: vec![point] }),
        }
    }
    // Names go where curves leave room: to the side on which the tallest is lower.
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let (first, last) = points()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(first, last), point| {
            (first.min(point.x), last.max(point.x))
        });
    let third = (last - first) / 3.0;
    let tallest = |is: &dyn Fn(f64) -> bool| {
        points().filter(|point| is(point.x)).fold(0.0, |most: f64, point| most.max(point.y))
    };
    let names_left = tallest(&|x| x <= first + third) < tallest(&|x| x >= last - third);
    Chart {
        title: title.into(),
        x_label: sweep.x.name().into(),
        y_label: metric.label().into(),
        curves,
        marks: Vec::new(),
        names_left,
    }
}

/// A line for each setting: what was varied, then mean and half-width of each metric.
pub(crate) fn csv(sweep: &Sweep, cells: &[Cell], metrics: &[Metric]) -> String {
    let mut text = format!("curve,{}", sweep.x.name());
    for metric in metrics {
        let _ = write!(text, ",{0},{0}_ci95", metric.name());
    }
    text.push('\n');
    for cell in cells {
        let label = sweep.label(&cell.setting);
        let _ = write!(text, "\"{label}\",{}", cell.setting.on(sweep.x));
        for &metric in metrics {
            let _ = match cell.summary(metric) {
                Some(Summary { mean, ci95: Some(ci95), .. }) => {
                    write!(text, ",{mean:.6},{ci95:.6}")
                }
                Some(Summary { mean, ci95: None, .. }) => write!(text, ",{mean:.6},"),
                None => write!(text, ",,"),
            };
        }
        text.push('\n');
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
        let text = "rho = [1, 5]\nrepetitions = 2\nwarm_up = 5\nmeasured = 50";
        let sweep = Sweep::parse(text).unwrap();
        let cells = sweep.run(&|_, _| {}).unwrap();
        let folder = std::env::temp_dir().join(format!("quorate-sweep-{}", std::process::id()));
        write_all(&sweep, &cells, &folder).unwrap();
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(read("results.csv").lines().count(), 3);
        let results: Value = serde_json::from_str(&read("results.json")).unwrap();
        assert_eq!(results["cells"].as_array().unwrap().len(), 2);
        assert!(results["cells"][0]["obtaining_time"]["ci95"].is_f64());
        assert!(read("obtaining_time.svg").starts_with("<svg"));
        assert!(!folder.join("detection_time.svg").exists(), "nobody crashed");
        let page = read("index.html");
        assert!(page.contains("<svg") && page.contains("<td>central</td><td>5</td>"), "{page}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
