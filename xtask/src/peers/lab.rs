//! `cargo xtask peers --lab`: the laboratory beside what others simulate, compute and check with,
//! on the same small problems, each a process of its own, in alternation.
//!
//! | ours | beside | what is counted |
//! |---|---|---|
//! | `sim run --protocol ring` | SimGrid, tokens that go round (`ring.cpp`) | messages |
//! | `sim run --variant raymond` | SimPy (`raymond.py`) | messages |
//! | `quorum report` | quoracle, the load of one family (`loads.py`) | families |
//! | `check --protocol central` | stateright, the same value in a world of its own (`stateright/`) | states |
//!
//! Ratios are of processor time for each of these. What the two sides do besides differs, mostly
//! against us: our runs have clients, leases, and laws that judge every step.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::browser::apt;
use crate::campaign::json::Json;
use crate::steps;

/// How often each is measured.
const ROUNDS: usize = 3;

/// What a program said, as a number of what is counted.
type Read = fn(&Json) -> Option<f64>;

/// Two programs with the same problem.
struct Contest {
    problem: &'static str,
    counted: &'static str,
    ours: (Command, Read),
    beside: &'static str,
    theirs: (Command, Read),
}

/// What one run did, and the processor time that it took.
#[derive(Clone, Copy)]
struct Run {
    done: f64,
    seconds: f64,
}

impl Run {
    fn speed(self) -> f64 {
        self.done / self.seconds
    }
}

/// A contest, and the runs of both sides.
type Line = (Contest, Vec<Run>, Vec<Run>);

/// Installs, builds, and measures.
pub(crate) fn run(root: &Path, json: bool) -> bool {
    let lines = Programs::prepare(root)
        .and_then(|programs| programs.contests().into_iter().map(hold).collect::<Result<_, _>>());
    match lines {
        Ok(lines) if json => println!("{}", as_json(lines)),
        Ok(lines) => table(lines),
        Err(why) => {
            eprintln!("{why}");
            return false;
        }
    }
    true
}

fn hold(mut contest: Contest) -> Result<Line, String> {
    eprintln!("{} ...", contest.problem);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for (side, runs) in [(&mut contest.ours, &mut ours), (&mut contest.theirs, &mut theirs)] {
            runs.push(measured(&mut side.0, side.1)?);
        }
    }
    Ok((contest, ours, theirs))
}

fn median(mut runs: Vec<Run>) -> Run {
    runs.sort_by(|a, b| a.speed().total_cmp(&b.speed()));
    runs[runs.len() / 2]
}

fn table(lines: Vec<Line>) {
    println!("| problem | ours | theirs | ours, a second | theirs, a second | ratio |");
    println!("|---|---|---|---:|---:|---:|");
    for (Contest { problem, counted, beside, .. }, ours, theirs) in lines {
        let (ours, theirs) = (median(ours), median(theirs));
        println!(
            "| {problem} | {:.0} {counted} in {:.2} s | {beside}: {:.0} in {:.2} s | {:.0} | \
             {:.0} | {:.1} |",
            ours.done,
            ours.seconds,
            theirs.done,
            theirs.seconds,
            ours.speed(),
            theirs.speed(),
            ours.speed() / theirs.speed()
        );
    }
}

fn as_json(lines: Vec<Line>) -> String {
    let runs = |runs: Vec<Run>| {
        let one = |Run { done, seconds }| format!("{{\"done\":{done},\"seconds\":{seconds}}}");
        runs.into_iter().map(one).collect::<Vec<_>>().join(",")
    };
    let line = |(Contest { problem, counted, beside, .. }, ours, theirs)| {
        format!(
            "{{\"problem\":\"{problem}\",\"counted\":\"{counted}\",\"beside\":\"{beside}\",\
             \"ours\":[{}],\"theirs\":[{}]}}",
            runs(ours),
            runs(theirs)
        )
    };
    format!("[{}]", lines.into_iter().map(line).collect::<Vec<_>>().join(",\n"))
}

/// Runs it once.
fn measured(command: &mut Command, read: Read) -> Result<Run, String> {
    let before = of_children()?;
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("{command:?}: {error}"))?;
    let seconds = of_children()? - before;
    let said = String::from_utf8_lossy(&output.stdout);
    let done = Json::parse(&said).and_then(|json| read(&json));
    let done = done.filter(|_| output.status.success());
    let done = done.ok_or_else(|| format!("{command:?} said {said:?}"))?;
    Ok(Run { done, seconds: seconds.max(0.01) })
}

/// Processor time of all children that have ended: `cutime` and `cstime`, hundredths of a second.
fn of_children() -> Result<f64, String> {
    let stat = std::fs::read_to_string("/proc/self/stat").map_err(|error| error.to_string())?;
    let (_, rest) = stat.rsplit_once(')').ok_or("unknown form of /proc/self/stat")?;
    let ticks = rest.split_whitespace().skip(13).take(2).map(|field| field.parse::<u64>().ok());
    let ticks: Option<u64> = ticks.sum();
    Ok(ticks.ok_or("unknown form of /proc/self/stat")? as f64 / 100.0)
}

/// Everything that is run, built.
struct Programs {
    lab: PathBuf,
    ring: PathBuf,
    python: PathBuf,
    stateright: PathBuf,
    scripts: PathBuf,
}

impl Programs {
    fn prepare(root: &Path) -> Result<Programs, String> {
        let scripts = root.join("xtask/peers");
        let folder = steps::target(root).join("peers");
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let header = Path::new("/usr/include/simgrid/s4u.hpp");
        if !header.exists() && !apt(&["libsimgrid-dev", "g++"]) {
            return Err("libsimgrid-dev could not be installed: install it by hand".into());
        }
        let ring = folder.join("ring");
        let mut cc = Command::new("g++");
        cc.args(["-O2", "-o"]).arg(&ring).arg(scripts.join("ring.cpp")).arg("-lsimgrid");
        done(&mut cc)?;
        let environment = folder.join("python");
        let python = environment.join("bin/python");
        if !python.exists() {
            done(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        }
        done(Command::new(&python).args(["-m", "pip", "install", "-q", "simpy", "quoracle"]))?;
        let cargo = || Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
        let mut lab = cargo();
        lab.args(["build", "--profile", "dist", "--locked", "--quiet", "--package", "quorate-lab"]);
        done(lab.current_dir(root))?;
        let others = folder.join("stateright");
        let mut build = cargo();
        build.args(["build", "--release", "--quiet", "--target-dir"]).arg(&others);
        done(build.current_dir(scripts.join("stateright")))?;
        Ok(Programs {
            lab: steps::target(root).join("dist/quorate-lab"),
            ring,
            python,
            stateright: others.join("release/beside-stateright"),
            scripts,
        })
    }

    fn contests(&self) -> Vec<Contest> {
        let of = |program: &Path, words: &str| {
            let mut command = Command::new(program);
            command.args(words.split_whitespace());
            command
        };
        let ours = |words: &str| {
            let mut command = of(&self.lab, words);
            command.arg("--json");
            command
        };
        let script = |name: &str, words: &str| {
            let mut command = Command::new(&self.python);
            command.arg(self.scripts.join(name)).args(words.split_whitespace());
            command
        };
        let ring = "sim run --protocol ring --variant core --nodes 100 --units 10 --duration 400s";
        let raymond = "sim run --protocol broadcast --variant raymond --nodes 20 --units 4 \
                       --hold exponential:20ms --duration 2000s";
        let small = "check --protocol central --nodes 3 --units 2 --want 1,2,1,1,2,1 \
                     --home 0,1,2,0,1,2 --early-rings 0";
        vec![
            Contest {
                problem: "10 tokens in a ring of 100 nodes, 1 ms a hop",
                counted: "messages",
                ours: (ours(ring), messages),
                beside: "SimGrid",
                theirs: (of(&self.ring, "100 10 4000000 --log=root.thres:error"), messages),
            },
            Contest {
                problem: "Raymond's algorithm, 20 processes, 4 at once",
                counted: "messages",
                ours: (ours(raymond), messages),
                beside: "SimPy",
                theirs: (script("raymond.py", "20 4 300 1"), messages),
            },
            Contest {
                problem: "the load of majorities of 15 nodes",
                counted: "family",
                ours: (ours("quorum report --family majority --nodes 15 --units 1"), load),
                beside: "quoracle",
                theirs: (script("loads.py", "15"), load),
            },
            Contest {
                problem: "all histories of 6 claims for 2 units at 3 nodes, `central`",
                counted: "states",
                ours: (ours(small), |json| number(json.get("states"))),
                beside: "stateright",
                theirs: (of(&self.stateright, "1,2,1,1,2,1 0,1,2,0,1,2 1"), |json| {
                    number(json.get("states"))
                }),
            },
        ]
    }
}

/// All messages of a simulated run, of whatever kind.
fn messages(json: &Json) -> Option<f64> {
    match json.get("messages") {
        Json::Object(kinds) => kinds.values().map(number).sum(),
        all => number(all),
    }
}

/// One family, if its load is right.
fn load(json: &Json) -> Option<f64> {
    number(json.get("load")).filter(|load| (load - 8.0 / 15.0).abs() < 1e-6).map(|_| 1.0)
}

fn number(json: &Json) -> Option<f64> {
    let Json::Number(digits) = json else { return None };
    digits.parse().ok()
}

fn done(command: &mut Command) -> Result<(), String> {
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?}: {status}")),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}
