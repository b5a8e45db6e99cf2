//! `quorate-lab bench quorum`: the laboratory's questions on this machine, and, if a Python with
//! the quoracle package is given, the same loads computed by quoracle on the same machine in the
//! same run.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use quorate_quorum::{
    Answers, Effort, Explicit, Expr, Findings, Formula, Rule, build, domination, load,
};
use serde_json::{Value, json};

use crate::Outcome;

/// Arguments of `quorate-lab bench quorum`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Each question is asked several times; the shortest time is shown, with the answer.
The comparison needs a Python interpreter that can import quoracle (pip install quoracle).

Examples:
  quorate-lab bench quorum
  quorate-lab bench quorum --python venv/bin/python")]
pub(crate) struct Args {
    /// A Python interpreter with quoracle, to compare loads with
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A question with how long its answer took.
struct Timed {
    question: String,
    answer: String,
    time: Duration,
}

/// What quoracle found for each load: the load and the seconds it took.
type Theirs = Option<Vec<(f64, f64)>>;

/// Measures.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let questions = questions()?;
    let loads = loads()?;
    let theirs = args.python.as_deref().map(|python| quoracle(python, &loads)).transpose()?;
    let mut out = std::io::stdout().lock();
    if args.json {
        serde_json::to_writer(&mut out, &to_json(&questions, &loads, &theirs))?;
        writeln!(out)?;
    } else {
        write!(out, "{}", table(&questions, &loads, &theirs))?;
    }
    Ok(Outcome::Good)
}

fn to_json(questions: &[Timed], loads: &[LoadCase], theirs: &Theirs) -> Value {
    let row = |t: &Timed| {
        let seconds = t.time.as_secs_f64();
        json!({ "question": t.question, "answer": t.answer, "seconds": seconds })
    };
    let load = |(index, l): (usize, &LoadCase)| {
        let other = theirs.as_ref().map(|theirs| theirs[index]);
        json!({
            "system": l.name, "quorums": l.quorums, "load": l.load,
            "seconds": l.time.as_secs_f64(),
            "quoracle_load": other.map(|o| o.0), "quoracle_seconds": other.map(|o| o.1),
        })
    };
    let questions: Vec<Value> = questions.iter().map(row).collect();
    let loads: Vec<Value> = loads.iter().enumerate().map(load).collect();
    json!({ "questions": questions, "loads": loads })
}

fn table(questions: &[Timed], loads: &[LoadCase], theirs: &Theirs) -> String {
    let mut text = format!("{:<56}{:>12}  answer\n", "question", "time");
    for t in questions {
        text.push_str(&format!("{:<56}{:>12}  {}\n", t.question, shown(t.time), t.answer));
    }
    let other = if theirs.is_some() { "quoracle" } else { "" };
    let head = format!("{:<22}{:>9}{:>11}{:>12}", "load of", "quorums", "load", "time");
    text.push_str(&format!("\n{head}{other:>12}\n"));
    for (index, l) in loads.iter().enumerate() {
        let (time, load, quorums) = (shown(l.time), l.load, l.quorums);
        text.push_str(&format!("{:<22}{quorums:>9}{load:>11.6}{time:>12}", l.name));
        if let Some((_, seconds)) = theirs.as_ref().map(|theirs| theirs[index]) {
            let ratio = seconds / l.time.as_secs_f64();
            let seconds = shown(Duration::from_secs_f64(seconds));
            text.push_str(&format!("{seconds:>12}  {ratio:.0} times"));
        }
        text.push('\n');
    }
    text
}

fn shown(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s < 1e-3 => format!("{:.1} us", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

/// The shortest of a few runs, or one run if it is long.
fn timed<T>(mut work: impl FnMut() -> T) -> (T, Duration) {
    let start = Instant::now();
    let mut result = work();
    let mut best = start.elapsed();
    let mut left = if best < Duration::from_millis(200) { 20 } else { 0 };
    while left > 0 {
        let start = Instant::now();
        result = work();
        best = best.min(start.elapsed());
        left -= 1;
    }
    (result, best)
}

fn questions() -> anyhow::Result<Vec<Timed>> {
    let mut rows = Vec::new();
    let mut report = |spec: &str, nodes: usize, units: usize| -> anyhow::Result<()> {
        let up = vec![0.9; nodes];
        let ask = || {
            let family = build(spec, Some(nodes), units)?;
            let found = Findings::of(family.rule.as_ref(), units, &up, &mut Effort::default());
            anyhow::Ok(found)
        };
        let (found, time) = timed(ask);
        let found = found?;
        let survives = found.survives.low;
        let known = found.availability;
        let spread = if known.high > known.low {
            format!(" (+-{:.0e})", (known.high - known.low) / 2.0)
        } else {
            String::new()
        };
        let answer = format!("survives {survives}, unavailable {:.3e}{spread}", known.missing);
        let question = format!("full report, {spec} n={nodes} k={units}");
        rows.push(Timed { question, answer, time });
        Ok(())
    };
    for (spec, nodes, units) in [
        ("uniform", 10_000, 1),
        ("uniform", 10_000, 2),
        ("cube", 10_000, 1),
        ("cube", 10_000, 2),
        ("cube", 10_000, 3),
        ("hierarchy", 10_000, 2),
        ("plane", 13, 1),
        ("plane", 21, 1),
        ("plane", 31, 1),
        ("plane", 57, 1),
    ] {
        report(spec, nodes, units)?;
    }
    for (spec, nodes, units) in [("uniform", 21, 2), ("uniform", 19, 2), ("space", 40, 2)] {
        let family = build(spec, Some(nodes), units)?;
        let quorums = family.rule.enumerate(100_000).context("few enough to list")?;
        let listed = Explicit::new(nodes, quorums)?;
        let (decided, time) = timed(|| domination(&listed, units, &mut Effort::default()));
        let answer = match decided?.witness() {
            Some(witness) => format!("dominated, witness of {} nodes", witness.len()),
            None => "not dominated".to_owned(),
        };
        let count = listed.quorums().len();
        let question = format!("domination of {spec} n={nodes} k={units}, {count} quorums listed");
        rows.push(Timed { question, answer, time });
    }
    Ok(rows)
}

/// A load computed by linear program, ours and quoracle's from the same expression.
struct LoadCase {
    name: String,
    python: String,
    quorums: usize,
    load: f64,
    time: Duration,
}

fn loads() -> anyhow::Result<Vec<LoadCase>> {
    let mut systems: Vec<(String, Expr, String)> = Vec::new();
    for nodes in [5, 7, 9, 11] {
        let names: Vec<String> = (0..nodes).map(|i| format!("n[{i}]")).collect();
        let python = format!("majority([{}])", names.join(", "));
        systems.push((
            format!("majority {nodes}"),
            format!("majority(0-{})", nodes - 1).parse()?,
            python,
        ));
    }
    for side in [3, 4] {
        // Reading a row, writing its dual: what quoracle's own grid example is.
        let row = |r: usize| (0..side).map(move |c| r * side + c);
        let all: Vec<String> = (0..side)
            .map(|r| {
                format!("all({})", row(r).map(|i| i.to_string()).collect::<Vec<_>>().join(","))
            })
            .collect();
        let python: Vec<String> = (0..side)
            .map(|r| row(r).map(|i| format!("n[{i}]")).collect::<Vec<_>>().join("*"))
            .collect();
        let expr = format!("any({})", all.join(","));
        systems.push((format!("grid {side}x{side}, rows"), expr.parse()?, python.join(" + ")));
    }
    // Paths through a bridge of five nodes, one bridge and two in a row: nodes repeat, so that
    // nothing factors. (Longer ones are too much for quoracle, which also lists every quorum of the
    // dual.)
    let bridge = |i: usize| {
        let [a, b, c, d, e] = [i, i + 1, i + 2, i + 3, i + 4];
        let ours = format!("any(all({a},{b}),all({a},{c},{e}),all({d},{e}),all({d},{c},{b}))");
        let [a, b, c, d, e] = [a, b, c, d, e].map(|node| format!("n[{node}]"));
        (ours, format!("({a}*{b} + {a}*{c}*{e} + {d}*{e} + {d}*{c}*{b})"))
    };
    let ((one, python), (two, python_two)) = (bridge(0), bridge(5));
    systems.push(("paths, 5 nodes".to_owned(), one.parse()?, python.clone()));
    let both = format!("all({one},{two})");
    systems.push(("paths, 10 nodes".to_owned(), both.parse()?, format!("{python} * {python_two}")));
    systems
        .into_iter()
        .map(|(name, expr, python)| {
            let work = || {
                let formula = Formula::new(1, expr.clone());
                let quorums = formula.enumerate(100_000).context("few enough to list")?;
                let listed = Explicit::new(formula.nodes(), quorums)?;
                let load = load(&listed)?;
                ensure!(load.is_exact(), "the dual does not agree");
                anyhow::Ok((listed.quorums().len(), load.high))
            };
            let (solved, time) = timed(work);
            let (quorums, load) = solved?;
            // The closed form, where there is one, must agree.
            let closed = Answers::of(&Formula::new(1, expr)).load(1);
            ensure!(
                (closed.high - load).abs() < 1e-9,
                "closed form and program disagree on {name}"
            );
            Ok(LoadCase { name, python, quorums, load, time })
        })
        .collect()
}

/// Runs quoracle on the same systems; one process, so that its imports are not counted.
fn quoracle(python: &Path, loads: &[LoadCase]) -> anyhow::Result<Vec<(f64, f64)>> {
    let cases: Vec<&str> = loads.iter().map(|case| case.python.as_str()).collect();
    let script = format!(
        r#"
import json, time
from quoracle import *
n = [Node(str(i)) for i in range(100)]
rows = []
for text in {}:
    best, load = None, None
    for _ in range(3):
        start = time.perf_counter()
        load = QuorumSystem(reads=eval(text)).load(read_fraction=1)
        spent = time.perf_counter() - start
        best = spent if best is None else min(best, spent)
        if spent > 2: break
    rows.append([load, best])
print(json.dumps(rows))
"#,
        serde_json::to_string(&cases)?
    );
    let shown = python.display();
    let output = Command::new(python)
        .args(["-c", &script])
        .output()
        .with_context(|| format!("cannot run {shown}"))?;
    let error = String::from_utf8_lossy(&output.stderr);
    let last = error.lines().last().unwrap_or_default();
    ensure!(output.status.success(), "quoracle did not run in {shown}: {last}");
    // The solver behind quoracle may print; our rows are the last line.
    let text = String::from_utf8_lossy(&output.stdout);
    let rows = text.lines().last().unwrap_or_default();
    let rows: Vec<(f64, f64)> =
        serde_json::from_str(rows).with_context(|| format!("cannot read what {shown} printed"))?;
    ensure!(rows.len() == loads.len(), "quoracle answered {} of {}", rows.len(), loads.len());
    for (case, (load, _)) in loads.iter().zip(&rows) {
        ensure!((load - case.load).abs() < 1e-6, "{}: quoracle says {load}", case.name);
    }
    Ok(rows)
}
