//! Transcripts: scripts that move a world by hand, with everything that happens printed below each
//! command. They are tests that read like a conversation.
//!
//! Commands start at the left margin, what happened is indented, `#` starts a comment:
//!
//! ```text
//! nodes 2
//! pool units=1
//! claim n1 c1 1
//!     n1 claim 1.1 h1
//!        > n0 request 1.1 h1 @1n1 e1
//! deliver n1 n0
//! ```
//!
//! | command | does |
//! |---|---|
//! | `nodes 3`, `pool key=value ...` | sets the stage; at the top |
//! | `claim n1 c1 2`, `again n1 c1` | client 1 claims 2 units at node 1, or repeats its claim |
//! | `claim n1 c1 2 0,1 3` | the same, one of units 0 and 1, and unit 3 |
//! | `release c1`, `cancel c1`, `renew c1` | what clients do |
//! | `renew n2 c1` | client 1 shows another node what it has |
//! | `deliver n1 n0 [2] [copy]`, `deliver all` | the oldest (or 2nd) message of a link; a copy stays |
//! | `drop n1 n0 [2]`, `drop all` | it is lost |
//! | `ring n0 NAME` | an armed alarm rings now |
//! | `advance 5s` | time passes: due alarms ring, holders stop at their deadlines |
//! | `run 5s` | the same, and every message arrives a millisecond after it was sent |
//! | `cut n0 n1`, `heal n0 n1` | `run` and `deliver all` leave what is between them on its way |
//! | `crash n0`, `crash n0 after 1` | now, or in its next step after that many effects |
//! | `restart n0 recovered`, `restart n0 amnesia` | it comes back |
//! | `suspect n0 n1`, `trust n0 n1` | the failure detector's opinion |
//! | `books`, `pending` | prints books of arbiters; messages under way and armed alarms |
//!
//! Laws watch, and a broken one is printed. To rewrite transcripts with what happens now, run their
//! tests with `UPDATE_EXPECT=1`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use quorate_core::{NodeId, Protocol, Unit};

use crate::stage::Stage;

/// What the top of a script says about its stage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Nodes.
    pub nodes: u32,
    /// What the `pool` line says, for the protocol's test to interpret.
    pub pool: BTreeMap<String, String>,
}

impl Setting {
    /// A number of the `pool` line.
    ///
    /// # Panics
    /// If it is there and is not a number.
    pub fn number(&self, key: &str, fallback: u32) -> u32 {
        self.pool.get(key).map_or(fallback, |text| text.parse().expect("a number"))
    }

    /// A duration of the `pool` line.
    ///
    /// # Panics
    /// If it is there and is not a duration.
    pub fn duration(&self, key: &str, fallback: std::time::Duration) -> std::time::Duration {
        self.pool.get(key).map_or(fallback, |text| {
            std::time::Duration::from_nanos(crate::parse_time(text).expect("a duration"))
        })
    }

    /// Whether the `pool` line has this word.
    pub fn flag(&self, key: &str) -> bool {
        self.pool.get(key).is_some_and(|value| value != "false")
    }
}

/// Replays every transcript below a folder, and compares.
///
/// # Panics
/// If one differs from what it says, or there is none.
pub fn check_transcripts<P: Protocol>(folder: &Path, pool: impl Fn(&Setting) -> P::Pool) {
    let mut paths = Vec::new();
    collect(folder, &mut paths);
    assert!(!paths.is_empty(), "no transcripts in {}", folder.display());
    paths.sort();
    for path in paths {
        check_transcript::<P>(&path, &pool);
    }
}

/// Replays one transcript, and compares.
///
/// # Panics
/// If it differs from what it says.
pub fn check_transcript<P: Protocol>(path: &Path, pool: impl Fn(&Setting) -> P::Pool) {
    let written = fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("reading {}: {error}", path.display()));
    let happened =
        replay::<P>(&written, pool).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if written == happened {
        return;
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(path, happened)
            .unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
        return;
    }
    panic!(
        "{} says something else than what happens (UPDATE_EXPECT=1 rewrites it):\n{}",
        path.display(),
        difference(&written, &happened)
    );
}

/// Runs a script; gives it back with what happened below each command.
///
/// # Errors
/// The line that makes no sense, and why.
pub fn replay<P: Protocol>(
    script: &str,
    pool: impl Fn(&Setting) -> P::Pool,
) -> Result<String, String> {
    let mut setting = Setting { nodes: 1, pool: BTreeMap::new() };
    let mut stage: Option<Stage<P>> = None;
    let mut happened = String::new();
    for (number, line) in script.lines().enumerate() {
        if line.starts_with(' ') {
            continue; // What happened last time.
        }
        happened.push_str(line);
        happened.push('\n');
        let words: Vec<&str> = line.split_whitespace().collect();
        let wrong = |why: String| format!("line {}: '{line}': {why}", number + 1);
        match words[..] {
            [] => {}
            [first, ..] if first.starts_with('#') => {}
            ["nodes", n] => setting.nodes = n.parse().map_err(|_| wrong("a number".into()))?,
            ["pool", ref options @ ..] => {
                setting.pool.extend(options.iter().map(|option| {
                    let (key, value) = option.split_once('=').unwrap_or((option, "true"));
                    (key.to_string(), value.to_string())
                }));
            }
            _ => {
                let stage = stage.get_or_insert_with(|| Stage::new(pool(&setting), setting.nodes));
                obey(stage, &words).map_err(wrong)?;
                happened.push_str(&std::mem::take(&mut stage.text));
            }
        }
    }
    Ok(happened)
}

/// One command.
fn obey<P: Protocol>(stage: &mut Stage<P>, words: &[&str]) -> Result<(), String> {
    let node = |stage: &Stage<P>, word: &str| {
        let node = word.strip_prefix('n').and_then(|n| n.parse().ok()).map(NodeId);
        node.filter(|node| stage.has(*node)).ok_or_else(|| format!("no node '{word}'"))
    };
    let client = |word: &str| {
        let client = word.strip_prefix('c').and_then(|c| c.parse().ok());
        client.ok_or_else(|| format!("'{word}' is no client: write c1"))
    };
    let number = |word: &str| {
        let number: Option<usize> = word.parse().ok();
        number.ok_or_else(|| format!("'{word}' is no number"))
    };
    match *words {
        ["claim", at, who, units, ref among @ ..] => {
            let units = number(units)? as u32;
            let list = |word: &&str| word.split(',').map(|u| Ok(Unit(number(u)? as u32))).collect();
            let among = among.iter().map(list).collect::<Result<Vec<Vec<Unit>>, String>>()?;
            stage.claim(node(stage, at)?, client(who)?, units, &among)
        }
        ["again", at, who] => stage.claim_again(node(stage, at)?, client(who)?),
        ["release", who] => stage.release(client(who)?),
        ["cancel", who] => stage.cancel(client(who)?),
        ["renew", who] => stage.renew(client(who)?),
        ["renew", at, who] => stage.renew_at(node(stage, at)?, client(who)?),
        ["deliver", "all"] => stage.deliver_all(),
        ["deliver", from, to, ref rest @ ..] => {
            let keep = rest.last() == Some(&"copy");
            let position = rest.first().filter(|word| **word != "copy");
            let position = position.map_or(Ok(1), |word| number(word))?.max(1);
            stage.deliver((node(stage, from)?, node(stage, to)?), position, keep)
        }
        ["drop", "all"] => {
            stage.drop_all();
            Ok(())
        }
        ["drop", from, to, ref rest @ ..] => {
            let position = rest.first().map_or(Ok(1), |word| number(word))?.max(1);
            stage.drop_message((node(stage, from)?, node(stage, to)?), position)
        }
        ["ring", at, ..] => stage.ring(node(stage, at)?, &words[2..].join(" ")),
        ["advance", time] => {
            let nanos = crate::parse_time(time).map_err(|error| error.to_string())?;
            stage.advance(std::time::Duration::from_nanos(nanos))
        }
        ["run", time] => {
            let nanos = crate::parse_time(time).map_err(|error| error.to_string())?;
            stage.run(std::time::Duration::from_nanos(nanos))
        }
        [how @ ("cut" | "heal"), a, b] => {
            let (a, b) = (node(stage, a)?, node(stage, b)?);
            stage.set_cut([(a, b), (b, a)], how == "cut");
            Ok(())
        }
        ["crash", at] => {
            stage.crash(node(stage, at)?);
            Ok(())
        }
        ["crash", at, "after", effects] => {
            stage.crash_after(node(stage, at)?, number(effects)?);
            Ok(())
        }
        ["restart", at, "recovered"] => stage.restart(node(stage, at)?, false),
        ["restart", at, "amnesia"] => stage.restart(node(stage, at)?, true),
        ["suspect", at, about] => stage.suspect(node(stage, at)?, node(stage, about)?),
        ["trust", at, about] => stage.trust(node(stage, at)?, node(stage, about)?),
        ["books"] => {
            stage.books();
            Ok(())
        }
        ["pending"] => {
            stage.pending();
            Ok(())
        }
        _ => Err("no such command (crates/quorate-sim/src/script.rs has the list)".into()),
    }
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("reading {}: {error}", folder.display()));
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            paths.push(path);
        }
    }
}

/// The first place at which two transcripts differ, with what is around it.
fn difference(written: &str, happened: &str) -> String {
    let (written, happened): (Vec<&str>, Vec<&str>) =
        (written.lines().collect(), happened.lines().collect());
    let same = written.iter().zip(&happened).take_while(|(a, b)| a == b).count();
    let start = same.saturating_sub(4);
    let mut shown = String::new();
    for line in &written[start..same] {
        shown += &format!("  {line}\n");
    }
    for line in written[same..].iter().take(4) {
        shown += &format!("- {line}\n");
    }
    for line in happened[same..].iter().take(8) {
        shown += &format!("+ {line}\n");
    }
    format!("line {}:\n{shown}", same + 1)
}
