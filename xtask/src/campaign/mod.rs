//! `cargo xtask campaign`: workloads and faults drawn by seed, on hosts of the laboratory, and
//! clients' histories judged by the laws. Linux, and root. docs/campaign.md says how to use it.

mod acts;
mod beside;
mod crew;
mod draw;
mod faults;
mod files;
mod grown;
mod history;
pub(crate) mod json;
mod judge;
mod planted;
mod play;
mod report;
mod stage;
mod timeline;
mod workloads;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::lab::net::{Outcome, say};
use draw::{Draw, Means, Only};
use play::{Result, play};
use stage::Tools;

const HELP: &str = "\
cargo xtask campaign [--minutes N | --draws N] [--seed S] [--only NAMES] [--lanes N] [--json]
                     [--program FILE] [--real FILE] [--other FILE] [--keep FOLDER] [--stop]
cargo xtask campaign --list
cargo xtask campaign --planted
cargo xtask campaign --beside [--draws N] [--lanes N]

  --minutes N           draw for so long (5 unless said)
  --draws N             so many draws instead
  --seed S              the first draw's seed; the next draws count on. The clock's, unless said
  --only NAMES          draw from these workloads, faults, protocols and numbers of hosts only,
                        with commas; of a kind of which none is named, from all. Several faults
                        happen together
  --lanes N             so many draws at the same time (1 unless said)
  --json                print the results as JSON, one object a draw
  --program FILE        play with this quorate, instead of building one
  --real FILE           the test program `real`, for the Rust client; built, unless said
  --other FILE          another build of quorate, for the fault `upgrade`
  --keep FOLDER         where failures and the report go (target/campaign unless said)
  --stop                stop at the first breach
  --list                all workloads and faults
  --planted             whether bugs in nodes and in clients are found that were put there
  --beside              the same clients and faults on etcd's lock and on Redis, in one table, each
                        N times (once unless said); installs Debian's packages if they are missing

Linux, root and python3. All is in network namespaces, from which no packet leaves, and is taken
down at the end, also after a Ctrl-C.

Exit code 0 if all is well, 1 if not, 2 if the command was not understood.";

/// What was asked for.
#[derive(Default)]
struct Wish {
    minutes: Option<u64>,
    draws: Option<u64>,
    seed: Option<u64>,
    only: Only,
    lanes: usize,
    json: bool,
    stop: bool,
    planted: bool,
    beside: bool,
    program: Option<PathBuf>,
    real: Option<PathBuf>,
    other: Option<PathBuf>,
    keep: Option<PathBuf>,
}

/// `cargo xtask campaign` with these words.
pub(crate) fn run(root: &Path, words: &[&str]) -> ExitCode {
    match words {
        ["--help" | "-h"] => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        ["--list"] => {
            list();
            return ExitCode::SUCCESS;
        }
        // What `cargo xtask test` starts.
        ["short", program, real] => return code(short(root, program, real)),
        _ => {}
    }
    let wish = match read(words) {
        Ok(wish) => wish,
        Err(problem) => {
            eprintln!("xtask campaign: {problem}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    let done = possible().and_then(|()| tools(root, &wish)).and_then(|tools| {
        let keep = keep(root, &wish);
        match (wish.planted, wish.beside) {
            (true, _) => Ok(planted::find_all(&tools, &keep)),
            (_, true) => beside::compare(&tools, &keep, wish.draws.unwrap_or(1), wish.lanes),
            _ => Ok(campaign(root, &wish, &tools)),
        }
    });
    match done {
        Ok(good) => code(good),
        Err(why) => {
            eprintln!("cargo xtask campaign cannot be used here: {why}");
            ExitCode::FAILURE
        }
    }
}

fn code(good: bool) -> ExitCode {
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn read(words: &[&str]) -> Outcome<Wish> {
    let mut wish = Wish { lanes: 1, ..Wish::default() };
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        let mut value = || words.next().copied().ok_or(format!("{word} takes a value"));
        let number = |text: &str| {
            text.parse::<u64>().map_err(|_| format!("{word} takes a whole number, not {text:?}"))
        };
        match word {
            "--json" => wish.json = true,
            "--stop" => wish.stop = true,
            "--planted" => wish.planted = true,
            "--beside" => wish.beside = true,
            "--minutes" => wish.minutes = Some(number(value()?)?),
            "--draws" => wish.draws = Some(number(value()?)?),
            "--seed" => wish.seed = Some(number(value()?)?),
            "--lanes" => wish.lanes = number(value()?)?.clamp(1, 8) as usize,
            "--only" => wish.only = Only(value()?.split(',').map(String::from).collect()),
            "--program" => wish.program = Some(absolute(value()?)?),
            "--real" => wish.real = Some(absolute(value()?)?),
            "--other" => wish.other = Some(absolute(value()?)?),
            "--keep" => wish.keep = Some(value()?.into()),
            _ => return Err(format!("not understood: {word}")),
        }
    }
    match wish.only.unknown() {
        Some(name) => Err(format!("there is no {name:?}: see --list")),
        None => Ok(wish),
    }
}

fn absolute(file: &str) -> Outcome<PathBuf> {
    Path::new(file).canonicalize().map_err(|error| format!("cannot find {file}: {error}"))
}

fn list() {
    println!("workloads");
    for one in workloads::ALL {
        println!("  {:20} {}", one.name, one.about);
    }
    println!("\nfaults");
    for one in faults::all() {
        println!("  {:20} {}", one.name, one.about);
    }
    let names: Vec<&str> = draw::Protocol::ALL.iter().map(|one| one.name()).collect();
    println!("\nprotocols\n  {}\n\nhosts\n  3, 5, 7", names.join(", "));
}

fn possible() -> Outcome {
    crate::lab::possible()?;
    let python = Command::new("python3").args(["-c", "import ssl"]).status();
    match python.is_ok_and(|status| status.success()) {
        true => Ok(()),
        false => Err("clients are python3's: install it".into()),
    }
}

fn keep(root: &Path, wish: &Wish) -> PathBuf {
    wish.keep.clone().unwrap_or_else(|| crate::steps::target(root).join("campaign"))
}

/// Builds what is not named. The test program brings `quorate` with it.
fn tools(root: &Path, wish: &Wish) -> Outcome<Tools> {
    let (program, real) = match (&wish.program, &wish.real) {
        (Some(program), real) => (program.clone(), real.clone()),
        (None, named) => {
            let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
            let words = "test --locked -p quorate --test real --no-run --message-format json";
            let built = Command::new(cargo)
                .args(words.split(' '))
                .current_dir(root)
                .stderr(std::process::Stdio::inherit())
                .output()
                .map_err(|error| error.to_string())?;
            let text = String::from_utf8_lossy(&built.stdout).into_owned();
            let built = text.lines().find_map(|line| {
                let (_, rest) = line.split_once("\"executable\":\"")?;
                let path = rest.split_once('"')?.0;
                path.contains("/deps/real-").then(|| PathBuf::from(path))
            });
            let real = named.clone().or(built).ok_or("quorate could not be built")?;
            let program = crate::steps::target(root).join("debug/quorate");
            (absolute(&program.display().to_string())?, Some(real))
        }
    };
    let (root, other) = (root.to_path_buf(), wish.other.clone());
    Ok(Tools { program, real, other, root, node_bug: None, client_bug: None })
}

fn campaign(root: &Path, wish: &Wish, tools: &Tools) -> bool {
    let keep = keep(root, wish);
    let clock = || std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
    let first = wish.seed.unwrap_or_else(clock);
    let minutes = wish.minutes.unwrap_or(5);
    let until = Instant::now() + Duration::from_secs(60 * minutes);
    let enough = |drawn: u64| match wish.draws {
        Some(draws) => drawn >= draws,
        None => Instant::now() >= until,
    };
    let results = draws(tools, &wish.only, wish.lanes, (&keep, wish.stop), |drawn| {
        (!enough(drawn)).then_some(first + drawn)
    });
    let again = format!("cargo xtask campaign --seed {first}{}", only(&wish.only));
    let made = std::fs::create_dir_all(&keep)
        .and_then(|()| std::fs::write(keep.join("report.html"), report::page(&results, &again)))
        .and_then(|()| std::fs::write(keep.join("results.json"), report::json(&results)));
    if let Err(error) = made {
        say(&format!("cannot write {}: {error}", keep.display()));
    }
    if wish.json {
        say(&report::json(&results));
    }
    let broken = results.iter().filter(|one| !one.summary.breaches.is_empty()).count();
    let count = |of: fn(&Result) -> usize| results.iter().map(of).sum::<usize>();
    say(&format!(
        "--- campaign: {} draws, {} claims, {} holds judged, {} lost, {broken} draws with a \
         breach; {}",
        results.len(),
        count(|one| one.summary.claims),
        count(|one| one.summary.holds),
        count(|one| one.summary.lost),
        keep.join("report.html").display(),
    ));
    broken == 0 && !results.is_empty()
}

fn only(only: &Only) -> String {
    if only.0.is_empty() { String::new() } else { format!(" --only {}", only.0.join(",")) }
}

/// Plays draws in lanes, as long as there is a next seed.
fn draws(
    tools: &Tools,
    names: &Only,
    lanes: usize,
    (keep, stop): (&Path, bool),
    seed: impl Fn(u64) -> Option<u64> + Sync,
) -> Vec<Result> {
    let means =
        Means { real: tools.real.is_some(), other: tools.other.is_some(), clocks: stage::clocks() };
    let results = Mutex::new((0, Vec::<Result>::new()));
    std::thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(|| {
                loop {
                    let mut shared = results.lock().expect("lanes do not panic");
                    let broken = shared.1.iter().any(|one| !one.summary.breaches.is_empty());
                    let Some(seed) = seed(shared.0).filter(|_| !(stop && broken)) else { return };
                    shared.0 += 1;
                    drop(shared);
                    let draw = Draw::new(seed, names, means);
                    let again =
                        format!("cargo xtask campaign --seed {seed} --draws 1{}", only(names));
                    match play(&draw, tools, keep, &again) {
                        Ok(result) => {
                            say(&shown(&result, &again));
                            results.lock().expect("lanes do not panic").1.push(result);
                        }
                        Err(why) => say(&format!("seed {seed}: the stage could not be set: {why}")),
                    }
                }
            });
        }
    });
    results.into_inner().expect("lanes do not panic").1
}

/// A line, or what is wrong.
fn shown(result: &Result, again: &str) -> String {
    let Result { draw, summary, kept, seconds } = result;
    let line = format!(
        "seed {}: {}: {} holds, {} lost, {} of {} probes, {seconds:.0} s",
        draw.seed,
        draw.shown(),
        summary.holds,
        summary.lost,
        summary.granted,
        summary.probes
    );
    match kept {
        None => format!("ok      {line}"),
        Some(kept) => format!(
            "BREACH  {line}\n  {}\n  kept in {}\n  again: {again}",
            summary.breaches.join("\n  "),
            kept.display()
        ),
    }
}

/// For `cargo xtask test`: a few draws, and the planted bugs, at the same time.
fn short(root: &Path, program: &str, real: &str) -> bool {
    println!("\n--- campaign: a few draws of fixed seeds, and planted bugs");
    if let Err(why) = possible() {
        println!("--- campaign: skipped: {why}");
        return true;
    }
    let wish = Wish {
        program: absolute(program).ok(),
        real: absolute(real).ok(),
        lanes: 2,
        ..Wish::default()
    };
    let Ok(tools) = tools(root, &wish) else { return false };
    let keep = keep(root, &wish);
    std::thread::scope(|scope| {
        let bugs = scope.spawn(|| planted::find_all(&tools, &keep));
        let held = planted::SHORT.iter().all(|names| {
            let only = Only(names.iter().map(|name| (*name).to_owned()).collect());
            let results =
                draws(&tools, &only, 1, (&keep, false), |drawn| (drawn == 0).then_some(1));
            let fine = |one: &Result| one.summary.breaches.is_empty() && one.summary.holds > 0;
            !results.is_empty() && results.iter().all(fine)
        });
        bugs.join().unwrap_or(false) && held
    })
}
