//! One draw, from the first host to the judgement.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::draw::Draw;
use super::faults::BEAT;
use super::history::{self, What};
use super::json::Json;
use super::judge::{self, Case, Summary};
use super::stage::{self, POOL, Stage, Tools};
use super::timeline;
use crate::lab::net::{Outcome, Process};

/// How long clients live before anything goes wrong, and after all is healed.
const BEFORE: Duration = Duration::from_millis(1200);
const AFTER: Duration = Duration::from_millis(1500);

/// What came of it.
pub(crate) struct Result {
    pub(crate) draw: Draw,
    pub(crate) summary: Summary,
    /// Where all of it is kept, if something is wrong.
    pub(crate) kept: Option<PathBuf>,
    pub(crate) seconds: f64,
}

/// Plays a draw. What is wrong is in the summary; `Err` if the stage could not even be set.
pub(crate) fn play(draw: &Draw, tools: &Tools, keep: &Path, again: &str) -> Outcome<Result> {
    let began = Instant::now();
    let mut stage = Stage::new(draw.clone(), tools.clone())?;
    let level = levels(&stage);
    let mut faults = (0, u64::MAX);
    let played = act(&mut stage, &mut faults);
    let folder = stage.lab.host("eye").folder.clone();
    let lines = history::read(&folder);
    let events = stage.events.iter().map(|(at, _)| *at).collect();
    let starts = stage
        .events
        .iter()
        .filter_map(|(at, what)| what.strip_suffix(" starts").map(|node| (*at, node.to_owned())));
    let case = Case { draw, killed: &stage.killed, faults, events, starts: starts.collect() };
    // Safety first: it explains more.
    let mut summary = judge::judge(&lines, &case);
    if let Err(why) = played {
        let (law, what) = why.split_once(": ").unwrap_or(("the stage", &why));
        summary.breach(&law.to_lowercase(), what.to_owned());
        // Whoever was not served is named above.
        summary.breaches.sort_by_key(|breach| breach.starts_with("everyone served"));
    } else if !draw.brief {
        let made = lines.iter().filter(|line| line.what == What::Made);
        let made: Vec<&str> = made.map(|line| line.pool.as_str()).collect();
        after(&stage, &level, &made, &mut summary);
    }
    for node in 0..stage.nodes.len() {
        let log = stage.host(node).read("node.log").unwrap_or_default();
        if let Some(line) = log.lines().find(|line| line.contains("panicked at")) {
            let name = stage.nodes[node].name.clone();
            summary.breach("no node panics", format!("{name}: {line}"));
        }
    }
    let kept = (!summary.breaches.is_empty()).then(|| keep.join(format!("draw-{}", draw.seed)));
    if let Some(kept) = &kept {
        let page = timeline::page(draw, &lines, &stage.events, &summary, again);
        save(&stage, kept, &page, &summary, again)?;
    }
    let seconds = began.elapsed().as_secs_f64();
    Ok(Result { draw: draw.clone(), summary, kept, seconds })
}

fn act(stage: &mut Stage, faults: &mut (u64, u64)) -> Outcome {
    stage.look()?;
    stage.crews()?;
    std::thread::sleep(BEFORE);
    let all = stage.draw.faults.clone();
    faults.0 = stage::now();
    for fault in &all {
        stage.note(format!("begins: {}", fault.name));
    }
    let (began, span) = (Instant::now(), stage.draw.span);
    let mut beat = 0;
    while began.elapsed() < span {
        for fault in &all {
            (fault.act)(stage, beat).map_err(|why| format!("THE FAULT {}: {why}", fault.name))?;
        }
        stage.check_alive()?;
        beat += 1;
        std::thread::sleep((BEAT * beat).saturating_sub(began.elapsed()));
    }
    if stage.draw.brief {
        return Ok(());
    }
    stage.heal()?;
    faults.1 = stage::now();
    stage.until_ready()?;
    stage.note("all nodes are ready".into());
    std::thread::sleep(AFTER);
    stage.finish_crews()?;
    stage.all_units()?;
    stage.stop_looking()?;
    stage.check_alive()
}

/// Descriptors and memory (kB) of each node.
fn levels(stage: &Stage) -> Vec<Option<(u32, usize, u64)>> {
    let level = |process: &Process| {
        let id = process.id();
        let files = fs::read_dir(format!("/proc/{id}/fd")).ok()?.count();
        let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some((id, files, line.split_whitespace().next()?.parse().ok()?))
    };
    stage.nodes.iter().map(|node| node.process.as_ref().and_then(level)).collect()
}

/// What must be true when everybody has gone: nothing is held, nobody waits, and nodes use no more
/// than they did before.
fn after(
    stage: &Stage,
    before: &[Option<(u32, usize, u64)>],
    made: &[&str],
    summary: &mut Summary,
) {
    // What clients that were killed had lasts for a lease. A claim that waited at a node which was
    // away keeps its place for ten, should its client ask again (docs/protocols/central.md).
    let since = Instant::now();
    let held_by = stage.draw.lease * 3 + Duration::from_secs(5);
    let queued_by = stage.draw.lease * 10 + held_by;
    for number in 0..stage.nodes.len() {
        let name = &stage.nodes[number].name;
        loop {
            let shown = stage.ask(number, &format!("/v1/pools/{POOL}")).unwrap_or_default();
            let count = |field| Json::parse(&shown).and_then(|pool| pool.get(field).number());
            let (held, waiting) = (count("held"), count("waiting"));
            // The pool of a pattern's workload may never have been used.
            if (held.unwrap_or(0), waiting.unwrap_or(0)) == (0, 0) {
                break;
            }
            let patience = if held.unwrap_or(0) > 0 { held_by } else { queued_by };
            if since.elapsed() > patience {
                // Named so that what nodes say of its claims is kept.
                let what = format!(
                    "pool {POOL}: {name} shows {held:?} held and {waiting:?} waiting: {shown}"
                );
                summary.breach("nothing is left", what);
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    // What was acknowledged is there, everywhere.
    for pool in made {
        for number in 0..stage.nodes.len() {
            if let Err(why) = stage.ask(number, &format!("/v1/pools/{pool}/definition")) {
                let name = &stage.nodes[number].name;
                summary.breach("nothing is lost", format!("{name} does not know {pool}: {why}"));
            }
        }
    }
    const MORE_FILES: usize = 40;
    const MORE_KB: u64 = 96 * 1024;
    for ((before, after), node) in before.iter().zip(levels(stage)).zip(&stage.nodes) {
        let (Some((id, files, memory)), Some((same, files_now, memory_now))) = (before, after)
        else {
            continue;
        };
        if *id == same && (files_now > files + MORE_FILES || memory_now > memory + MORE_KB) {
            let what = format!(
                "{}: {files} descriptors and {memory} kB before, {files_now} and {memory_now} \
                 after",
                node.name
            );
            summary.breach("resources return", what);
        }
    }
}

/// Histories, logs, configurations, a page to look at, and the command to see it again.
fn save(stage: &Stage, kept: &Path, page: &str, summary: &Summary, again: &str) -> Outcome {
    let wrong = |error: std::io::Error| format!("cannot keep {}: {error}", kept.display());
    let _ = fs::remove_dir_all(kept);
    fs::create_dir_all(kept).map_err(wrong)?;
    for host in stage.lab.hosts() {
        let files = fs::read_dir(&host.folder).into_iter().flatten().flatten();
        for file in files {
            let name = file.file_name().to_string_lossy().into_owned();
            let wanted = name.starts_with("history-") || name.ends_with(".log");
            if wanted {
                let to = if name == "node.log" { format!("{}.log", host.name) } else { name };
                fs::copy(file.path(), kept.join(to)).map_err(wrong)?;
            }
        }
        if let Ok(text) = host.read(stage.file()) {
            fs::write(kept.join(format!("{}.toml", host.name)), text).map_err(wrong)?;
        }
    }
    // What nodes say of the pools in which something is wrong, as long as they are there.
    let mut pools: Vec<&str> = summary
        .breaches
        .iter()
        .filter_map(|breach| Some(breach.split_once(": pool ")?.1.split_once(':')?.0))
        .collect();
    pools.dedup();
    for pool in pools.iter().take(3) {
        for number in 0..stage.nodes.len() {
            for what in ["", "/holders", "/queue"] {
                let path = format!("/v1/pools/{pool}{what}");
                let said = stage.ask(number, &path).unwrap_or_else(|why| why);
                let name = format!("{}-{}.json", stage.nodes[number].name, path.replace('/', "-"));
                fs::write(kept.join(name), said).map_err(wrong)?;
            }
        }
    }
    let mut text = format!("{}\n\n{again}\n\n", stage.draw.shown());
    text += &summary.breaches.join("\n");
    text += "\n\n";
    for (at, what) in &stage.events {
        text += &format!("{:12.2} s  {what}\n", *at as f64 / 1e9);
    }
    fs::write(kept.join("README"), text).map_err(wrong)?;
    fs::write(kept.join("timeline.html"), page).map_err(wrong)
}
