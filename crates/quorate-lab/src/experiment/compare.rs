//! The same workload under every protocol: under load, and after crashes.
//!
//! Two sweeps, which are files of the documentation, on one page.

use super::crew::Progress;
use super::metric::Metric;
use super::output::{Folder, describe, rows};
use super::page::Page;
use super::setting::Many;
use super::sweep::Sweep;

const LOAD: &str = include_str!("../../../../docs/experiments/compare.toml");
const CRASHES: &str = include_str!("../../../../docs/experiments/compare-crashes.toml");

/// A header, and rows under it.
pub(crate) type Table = (Vec<String>, Vec<Vec<String>>);

/// Runs both, writes tables, figures and a page, and gives the most important numbers of each.
///
/// # Errors
/// A run broke a law, a live node was taken for dead, or something could not be written.
pub(crate) fn compare(
    quick: bool,
    folder: &Folder,
    progress: &Progress<'_>,
) -> anyhow::Result<Vec<Table>> {
    let (mut load, mut crashes) = (Sweep::parse(LOAD)?, Sweep::parse(CRASHES)?);
    if quick {
        (load.rho, load.measured, load.repetitions) = (Many::List(vec![0.5, 8.0]), 100.0, 2);
        (crashes.crashes, crashes.repetitions) = (Many::List(vec![0, 1]), 2);
        (crashes.warm_up, crashes.measured) = (150.0, 50.0);
    }
    let runs = |sweep: &Sweep| sweep.settings().len() * sweep.repetitions as usize;
    let (first, all) = (runs(&load), runs(&load) + runs(&crashes));
    let mut page = Page::new("Protocols compared");
    let mut tables = Vec::new();
    let metrics = [
        Metric::MessagesPerCs,
        Metric::ObtainingTime,
        Metric::CsPerSecond,
        Metric::SynchronizationDelay,
    ];
    let under_load = (&load, "load-", "Under load", 0);
    let after_crashes = (&crashes, "crashes-", "After crashes", first);
    for (sweep, prefix, heading, before) in [under_load, after_crashes] {
        let cells = sweep.run(&|done, _| progress(before + done, all))?;
        page.heading(&format!("{heading}: {}", sweep.title));
        describe(sweep, &cells, folder, prefix, &mut page)?;
        let head = [heading, sweep.x.name()].into_iter().chain(metrics.map(Metric::label));
        tables.push((head.map(str::to_owned).collect(), rows(sweep, &cells, &metrics)));
    }
    folder.write("index.html", &page.finish())?;
    Ok(tables)
}
