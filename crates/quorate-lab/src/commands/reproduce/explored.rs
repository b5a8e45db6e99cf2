//! Evidence from the checker and the simulator, by the command lines that show the same.

use clap::Parser as _;
use quorate_check::Verdict;
use quorate_papers::Found;

use crate::commands::check;
use crate::experiment::{Cell, Sweep};

/// What every history of some worlds came to.
pub(super) struct Explored {
    /// The command.
    pub(super) command: String,
    pub(super) states: usize,
    /// The law that is broken, and how long a history breaks it.
    pub(super) broken: Option<(String, usize)>,
    /// Whether all worlds were explored to the end.
    pub(super) complete: bool,
}

impl Explored {
    pub(super) fn holds(&self) -> bool {
        self.broken.is_none() && self.complete && self.states > 0
    }
}

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: check::Args,
}

/// Explores what `quorate-lab check` would with these words.
pub(super) fn explore(words: &str) -> anyhow::Result<Explored> {
    let line = Line::try_parse_from(std::iter::once("check").chain(words.split_whitespace()))?;
    let reports = check::reports(&line.args)?;
    let broken = reports.iter().find_map(|report| match &report.verdict {
        Verdict::Broken(example) => Some((example.breach.law.to_owned(), example.transcript.len())),
        _ => None,
    });
    Ok(Explored {
        command: format!("quorate-lab check {words}"),
        states: reports.iter().map(|report| report.states).sum(),
        broken,
        complete: reports.iter().all(|report| report.verdict != Verdict::Incomplete),
    })
}

/// Measures what `quorate-lab sim sweep` would with this file, on the workload of papers.
pub(super) fn measure(file: &str) -> anyhow::Result<Vec<Cell>> {
    Sweep::parse_of_papers(file)?.run(&|_, _| ())
}

/// Evidence that could not be gathered is none.
pub(super) fn or_failed(found: anyhow::Result<Found>) -> Found {
    found.unwrap_or_else(|error| Found::if_so(false, format!("could not be found out: {error:#}")))
}
