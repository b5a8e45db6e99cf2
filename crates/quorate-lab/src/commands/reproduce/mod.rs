//! `quorate-lab reproduce`: what the papers state, found out anew.
//!
//! Statements, mathematics and the report are in quorate-papers. Here is what needs the checker or
//! the simulator, and the command.

mod explored;
mod k_arbiter;
mod timer_free;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::IsTerminal;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context as _, ensure};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use quorate_papers::{Evidence, Found, Judged, Pace, Report, evidence, papers};
use serde_json::Value;

use crate::Outcome;
use crate::campaign::{Campaign, Division, INTERRUPTED, Performed};

/// Go through everything that the papers state: holds, holds as corrected, does not hold, left
/// open; with evidence that is computed now.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate-lab reproduce --html papers.html       everything, as a page with figures
  quorate-lab reproduce --quick                  the same statements in smaller scopes
  quorate-lab reproduce --only KA-T4.5           one statement, with all its evidence
  quorate-lab reproduce --paper k-arbiter --quick --json papers.json
  quorate-lab reproduce --shard 3/8 --out DIR    a part of it, on one of eight machines; then
  quorate-lab merge DIR                          all parts, as one run

Exit codes: 0 every verdict is the expected one; 1 one is not, or is missing; 2 the input was wrong,
or a file cannot be written; 75 interrupted, go on with --resume.")]
pub(crate) struct Args {
    /// Smaller scopes: under a minute
    #[arg(long)]
    quick: bool,
    /// One paper only
    #[arg(long, value_name = "NAME")]
    paper: Option<String>,
    /// These statements only, and show all of their evidence
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    only: Vec<String>,
    /// Write a page that needs nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write everything as JSON; - for standard output, and no summary
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the pages of docs/papers into this folder (with --quick)
    #[arg(long, value_name = "DIR", requires = "quick")]
    docs: Option<PathBuf>,
    /// Write what was found out into this folder, as a part of a campaign
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) division: Division,
}

/// Does it.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    ensure!(
        args.out.is_none() || args.division.is_divided(),
        "--out keeps the parts of a campaign: say which, for example --shard 1/1"
    );
    let report = match report(args)? {
        Performed::All(reports) => reports.into_iter().next().context("there is one")?,
        Performed::Part(statements) => {
            crate::print(format_args!("{statements} statements of this part are written"))?;
            return Ok(Outcome::Good);
        }
        Performed::Interrupted => {
            eprintln!("interrupted: what is done is written; go on with --resume");
            return Ok(Outcome::Code(INTERRUPTED));
        }
    };
    if let Some(path) = &args.html {
        write(path, &report.html())?;
    }
    if let Some(folder) = &args.docs {
        ensure!(args.only.is_empty(), "--docs writes whole pages: leave out --only");
        for (paper, _) in &report.papers {
            let text = report.markdown(paper.name).context("it is in the report")?;
            write(&folder.join(format!("{}.md", paper.name)), &text)?;
        }
    }
    match args.json.as_deref() {
        Some(path) if path == Path::new("-") => crate::print(format_args!("{:#}", report.json()))?,
        json => {
            if let Some(path) = json {
                write(path, &format!("{:#}\n", report.json()))?;
            }
            if !args.only.is_empty() {
                crate::print(report.details().trim_end())?;
            } else {
                crate::print(report.summary().trim_end())?;
            }
        }
    }
    let complaints = report.complaints();
    for complaint in &complaints {
        eprintln!("NOT AS EXPECTED {complaint}");
    }
    Ok(if complaints.is_empty() { Outcome::Good } else { Outcome::Broken })
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Evidence by name: mathematics, or what the laboratory adds.
fn found_by(name: &str) -> Option<Evidence> {
    let ours = k_arbiter::EVIDENCE.iter().chain(timer_free::all());
    let ours = ours.copied().find(|(known, _)| *known == name).map(|(_, evidence)| evidence);
    ours.or_else(|| evidence(name))
}

fn report(args: &Args) -> anyhow::Result<Performed<Report>> {
    let names: Vec<&str> = papers().iter().map(|paper| paper.name).collect();
    if let Some(paper) = &args.paper {
        ensure!(names.contains(&paper.as_str()), "no paper {paper}: there is {}", names.join(", "));
    }
    let mut left: BTreeSet<&str> = args.only.iter().map(String::as_str).collect();
    let mut jobs = Vec::new();
    for (number, paper) in papers().iter().enumerate() {
        if args.paper.as_ref().is_some_and(|only| only != paper.name) {
            continue;
        }
        for statement in &paper.statements {
            if args.only.is_empty() || args.only.contains(&statement.id) {
                left.remove(statement.id.as_str());
                jobs.push((number, statement));
            }
        }
    }
    ensure!(
        left.is_empty(),
        "no statement {}: quorate-lab reproduce --quick --json - lists all",
        left.into_iter().collect::<Vec<_>>().join(", ")
    );
    let pace = if args.quick { Pace::Quick } else { Pace::Whole };
    let bar = progress_bar(jobs.len());
    // Statements that have their evidence in common have it found once.
    let names = jobs.iter().map(|(_, statement)| (statement.evidence.as_str(), OnceLock::new()));
    let known: BTreeMap<&str, OnceLock<Option<Found>>> = names.collect();
    let campaign = Campaign {
        command: "reproduce",
        out: args.out.as_deref(),
        input: Value::Null,
        encode: &encode,
        decode: &decode,
    };
    let progress = |done: usize, _: usize| bar.set_position(done as u64);
    let performed = args.division.perform(&campaign, &jobs, &progress, |(_, statement)| {
        bar.set_message(statement.id.clone());
        let found = known[statement.evidence.as_str()].get_or_init(|| {
            let evidence = found_by(&statement.evidence)?;
            // Whatever one statement's evidence runs into, the others are still found out.
            let failed = |_| Found::if_so(false, "its evidence panicked");
            Some(catch_unwind(|| evidence(pace)).unwrap_or_else(failed))
        });
        Ok(found.clone())
    })?;
    bar.finish_and_clear();
    let all = match performed {
        Performed::All(all) => all,
        Performed::Part(statements) => return Ok(Performed::Part(statements)),
        Performed::Interrupted => return Ok(Performed::Interrupted),
    };
    let judged = jobs.iter().zip(all);
    let judged = judged.map(|((_, statement), found)| Judged { statement, found });
    let mut report = Report { pace, papers: Vec::new() };
    for ((number, _), judged) in jobs.iter().zip(judged) {
        let paper = &papers()[*number];
        match report.papers.last_mut() {
            Some((last, all)) if last.name == paper.name => all.push(judged),
            _ => report.papers.push((paper, vec![judged])),
        }
    }
    Ok(Performed::All(vec![report]))
}

fn encode(found: &Option<Found>) -> Value {
    found.as_ref().map_or(Value::Null, Found::to_line)
}

fn decode(value: &Value) -> anyhow::Result<Option<Found>> {
    match value.is_null() {
        true => Ok(None),
        false => Ok(Some(Found::from_line(value).context("this is no evidence")?)),
    }
}

/// Progress on standard error, if somebody is watching.
fn progress_bar(jobs: usize) -> ProgressBar {
    let bar = ProgressBar::new(jobs as u64);
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let template = "{bar:24} {pos}/{len} statements {elapsed} {msg}";
    bar.with_style(ProgressStyle::with_template(template).expect("the template is constant"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A statement without evidence would fail every run; this says so at once.
    #[test]
    fn every_statement_has_its_evidence() {
        for statement in papers().iter().flat_map(|paper| &paper.statements) {
            assert!(found_by(&statement.evidence).is_some(), "{}", statement.id);
        }
    }
}
