//! What `test`, `fix`, `seeds` and `checks` run, in order.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::suites::{self, Job, Suite};
use crate::{alerts, browser, python, tidy};

/// How much of `test` to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tier {
    /// What one wants before every commit.
    Quick,
    /// What CI runs.
    Default,
}

/// One command of the sequence, with a name for the summary.
struct Step {
    name: &'static str,
    program: Program,
    words: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Program {
    Cargo,
    /// The laboratory as the tests built it: `cargo run` would build it once more, with other
    /// features.
    Laboratory,
    /// This program.
    Chores,
}

fn step(name: &'static str, words: &str) -> Step {
    let words = words.split_whitespace().map(String::from).collect();
    Step { name, program: Program::Cargo, words }
}

fn built(name: &'static str, words: &str) -> Step {
    Step { program: Program::Laboratory, ..step(name, words) }
}

/// Everything CI checks. Goes on after a failure, so that one run shows all that is wrong.
pub(crate) fn test(root: &Path, tier: Tier) -> bool {
    // A whole run builds everything once: notes for the next build would cost it a fifth of its
    // time and gigabytes of disk, and lines for a debugger more. A panic says its line without.
    let once: &[_] = &[("CARGO_INCREMENTAL", "0"), ("CARGO_PROFILE_DEV_DEBUG", "false")];
    let notes = if tier == Tier::Default { once } else { &[] };
    let mut summary = vec![("tidy".to_owned(), report("tidy", &tidy::check(root)))];
    let formatting = step("formatting", "fmt --all --check");
    summary.push((formatting.name.into(), run_with(root, &formatting, notes)));
    let suites = suites::build(root, notes);
    summary.push(("tests, built".into(), suites.is_some()));
    if tier == Tier::Default {
        summary.push(("a browser".into(), browser::install()));
        python::install(root);
        summary.push(("alerts and dashboard".into(), alerts::check(root)));
    }
    if let Some(suites) = suites {
        let (reckoning, waiting) = jobs(root, tier, notes, &suites);
        summary.extend(suites::run(reckoning, waiting));
    }
    println!("\nsummary");
    for (name, good) in &summary {
        println!("  {} {name}", if *good { "ok    " } else { "FAILED" });
    }
    let failed = summary.iter().filter(|(_, good)| !good).count();
    println!("{} passed, {failed} failed", summary.len() - failed);
    failed == 0
}

/// What reckons, and beside it what waits for processes. The first gives way to the second, in
/// which a node or a browser should not wait for a core too.
fn jobs(root: &Path, tier: Tier, notes: &[(&str, &str)], suites: &[Suite]) -> (Vec<Job>, Vec<Job>) {
    let (mut waits, reckons): (Vec<_>, Vec<_>) = suites.iter().partition(|suite| suite.waits());
    // The longest goes first: whatever ends last, ends alone.
    waits.sort_by_key(|suite| suite.named(LONGEST).is_none());
    let job = |step: &Step| {
        let name = format!("{}: {}", step.name, step.shown());
        Job { name, command: command(root, step, notes) }
    };
    let mut waiting: Vec<Job> = waits.into_iter().map(Suite::job).collect();
    // Clippy needs nothing of the tests: it goes first where cores are idle while others wait.
    let clippy = [
        step("clippy", "clippy --workspace --all-targets --locked -- -D warnings"),
        step("clippy of the tests in a browser", BROWSER_CLIPPY),
    ];
    let mut reckoning: Vec<Job> = clippy.iter().map(&job).collect();
    reckoning.extend(reckons.into_iter().map(Suite::job));
    reckoning.push(job(&step("tests in the documentation", "test --workspace --locked --doc")));
    reckoning.push(job(&step("documentation", DOCUMENTATION)));
    if tier == Tier::Default {
        reckoning.extend(
            [
                built("nonsense for decoders", FUZZ),
                built("model checks", MODEL_CHECK),
                built("model checks, with a record on disk", MODEL_CHECK_DURABLE),
                built("simulated seeds", SEEDS),
                built("simulated seeds of units that differ", LABELS_SEEDS),
                built("simulated seeds of arbiter", ARBITER_SEEDS),
                built("simulated seeds of ticket", TICKET_SEEDS),
                built("simulated seeds of table", TABLE_SEEDS),
                built("simulated seeds of broadcast", BROADCAST_SEEDS),
                built("simulated seeds of the ring", RING_SEEDS),
                built("simulated seeds of the ring, from any state", RING_CORRUPT_SEEDS),
            ]
            .iter()
            .map(job),
        );
        waiting.push(job(&step("what people see, in a browser", BROWSER)));
        let python = step("the client for Python", "python");
        waiting.push(job(&Step { program: Program::Chores, ..python }));
    }
    // With the daemon that the tests built.
    let daemon = target(root).join("debug/quorate").display().to_string();
    let lab = step("machines of their own", "lab short");
    let words = lab.words.into_iter().chain([daemon.clone()]).collect();
    waiting.push(job(&Step { program: Program::Chores, words, ..lab }));
    // And with the program that has the Rust client and planted bugs in it.
    let real = suites.iter().find_map(|suite| suite.named(LONGEST));
    if let (Tier::Default, Some(real)) = (tier, real) {
        let campaign = step("a short campaign", "campaign short");
        let words = campaign.words.into_iter().chain([daemon, real.display().to_string()]);
        let words = words.collect();
        waiting.push(job(&Step { program: Program::Chores, words, ..campaign }));
    }
    (reckoning.into_iter().map(suites::yielding).collect(), waiting)
}

/// The trials on real processes.
const LONGEST: &str = "quorate real";

/// Three claims of every size and placement, a cancel, and a crash of the arbiter between any two
/// effects. One alarm may ring while a message is on its way; without that limit the same worlds
/// have some twenty million states and take minutes each (docs/protocols/central.md).
const MODEL_CHECK: &str =
    "check --protocol central --claims 3 --cancels 1 --crashes 1 --early-rings 1";
const MODEL_CHECK_DURABLE: &str =
    "check --protocol central --claims 3 --cancels 1 --crashes 1 --early-rings 1 --durable";
const DOCUMENTATION: &str = "doc --workspace --no-deps --document-private-items --locked";
/// A look at each; `cargo xtask fuzz` is the long one.
const FUZZ: &str = "fuzz --inputs 400000";
/// One at a time: a browser wants a machine of its own.
const BROWSER: &str = "test --workspace --locked --test browser -- --test-threads 1";
/// The whole workspace is named so that what was built for the other tests serves these too.
const BROWSER_CLIPPY: &str = "clippy --workspace --locked --test browser -- -D warnings";
const SEEDS: &str = "sim seeds --protocol central --faults all --count 200";
const LABELS_SEEDS: &str = "sim seeds --protocol central --variant labels --count 20";
const ARBITER_SEEDS: &str = "sim seeds --protocol arbiter --faults all --count 40";
const TICKET_SEEDS: &str = "sim seeds --protocol ticket --faults all --count 40";
const TABLE_SEEDS: &str = "sim seeds --protocol table --faults all --count 40";
const BROADCAST_SEEDS: &str = "sim seeds --protocol broadcast --faults all --count 40";
const RING_SEEDS: &str = "sim seeds --protocol ring --faults all --count 60";
const RING_CORRUPT_SEEDS: &str = "sim seeds --protocol ring --corrupt --faults all --count 30";

fn laboratory(words: &str) -> String {
    format!("run --profile dist --locked --quiet --package quorate-lab -- {words}")
}

/// Writes: formatting, and what clippy can repair.
pub(crate) fn fix(root: &Path) -> bool {
    let clippy = "clippy --workspace --all-targets --fix --allow-dirty --allow-staged";
    run(root, &step("clippy", clippy)) && run(root, &step("formatting", "fmt --all"))
}

/// The long run: every protocol in turn, with an equal share of the time, until a law is broken;
/// the command that shows it again is the last thing printed.
pub(crate) fn seeds(root: &Path, minutes: u64) -> bool {
    let words = format!("sim seeds --every --faults all --minutes {minutes}");
    run(root, &step("seeds", &laboratory(&words)))
}

/// Nonsense for everything that reads what others wrote, with optimisation and overflow checks.
pub(crate) fn fuzz(root: &Path, words: &str) -> bool {
    let words = format!("run --release --locked --quiet --package quorate-lab -- fuzz {words}");
    run(root, &step("nonsense for decoders", &words))
}

/// Explorations that take from seconds to minutes each, and gigabytes; one at a time.
pub(crate) fn checks(root: &Path, filter: Option<&str>) -> bool {
    let filter = filter.unwrap_or_default();
    let features = "--features quorate-protocols/long-checks";
    let words = format!(
        "test --release --locked -p quorate-protocols --lib {features} {filter} -- --test-threads 1"
    );
    run(root, &step("long model checks", &words))
}

/// The long run on real processes (crates/quorate/tests/real), with assertions and audits on.
pub(crate) fn real_seeds(root: &Path, minutes: u64) -> bool {
    let words = format!("test --locked -p quorate --test real -- --minutes {minutes}");
    run(root, &step("seeds on real processes", &words))
}

/// Where cargo builds.
pub(crate) fn target(root: &Path) -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    named.unwrap_or_else(|| root.join("target"))
}

impl Step {
    /// As a person would type it.
    fn shown(&self) -> String {
        let program = match self.program {
            Program::Cargo => "cargo",
            Program::Laboratory => "quorate-lab",
            Program::Chores => "cargo xtask",
        };
        format!("{program} {}", self.words.join(" "))
    }
}

fn command(root: &Path, step: &Step, environment: &[(&str, &str)]) -> Command {
    let mut command = match step.program {
        Program::Cargo => Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())),
        Program::Laboratory => Command::new(target(root).join("debug/quorate-lab")),
        Program::Chores => Command::new(std::env::current_exe().unwrap_or_else(|_| "xtask".into())),
    };
    command.args(&step.words).current_dir(root).env("RUSTDOCFLAGS", "-D warnings");
    command.envs(environment.iter().copied());
    command
}

fn run(root: &Path, step: &Step) -> bool {
    run_with(root, step, &[])
}

fn run_with(root: &Path, step: &Step, environment: &[(&str, &str)]) -> bool {
    println!("\n--- {}: {}", step.name, step.shown());
    let began = Instant::now();
    let mut command = command(root, step, environment);
    let status = command.status();
    let good = match status {
        Ok(status) => status.success(),
        Err(error) => {
            println!("could not start {}: {error}", command.get_program().display());
            false
        }
    };
    println!("--- {}: {} after {:.0?}", step.name, verdict(good), began.elapsed());
    good
}

/// Prints what a check of our own found; true if it found nothing.
pub(crate) fn report(name: &str, findings: &[String]) -> bool {
    println!("\n--- {name}");
    for finding in findings {
        println!("{finding}");
    }
    println!("--- {name}: {}", verdict(findings.is_empty()));
    findings.is_empty()
}

fn verdict(good: bool) -> &'static str {
    if good { "ok" } else { "FAILED" }
}
