//! `quorate-lab sim sweep`: an experiment from a file.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};

use super::super::cluster::table;
use crate::Outcome;
use crate::campaign::{Division, INTERRUPTED, Performed};
use crate::experiment::{Broken, Folder, Metric, Sweep, rows, write_all};

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate-lab sim sweep experiment.toml --out results
  quorate-lab sim sweep experiment.toml --out results --shard 3/8     a part; then
  quorate-lab merge results                                           all parts, as one run

A file may say, for example:
  title = \"Latency\"
  protocols = [\"central\", \"raymond\", \"timer-free\"]
  nodes = 20
  units = 4
  rho = [1, 2, 4, 8]
  latency = [0.001, 0.02]
  repetitions = 5

Every combination is run, on the same engine and with the defaults of `sim run`. A protocol is what
stands behind --protocol there, with its options: \"central\", \"arbiter --family grid\", \"arbiter
--mode named\", \"table --voters 3\", \"arbiter --family file:F\", \"broadcast --variant raynal\";
shorter names are arbiter-uniform, arbiter-cube, raymond, raynal, timer-free, weighted. The folder
gets results.csv (a line for each setting), long.csv (a line for each number of each run),
results.json, a figure for each metric, and index.html, which needs nothing else; it must be new,
empty, or hold earlier results, which are replaced.

What a file can say, and what holds if it does not; times are in seconds. These can also be lists:
  nodes = 5             nodes
  units = 2             units of the pool
  crashes_max           most crashes that are recovered from (timer-free, weighted)
  node_units_max        most units that one node asks for at a time (weighted) [all]
  hold = 0.01           how long a client uses its units
  rho = 2.0             how long it thinks in between, as a multiple of hold
  latency = 0.001       one way between two sites
  crashes = 0           so many nodes die for good, chosen by chance
  crash_every = 0.0     the time between two of these crashes
  idle = 0              so many nodes have no clients
  freeze = 0.0          one node stands still for so long from crash_at on
  notices = false       who finds a crash tells everybody (timer-free, weighted)
  probe                 a node queries at least so often, 0 for never (timer-free, weighted) [an
                        eighth of a lease]
  reclaim               when who is believed to have crashed is counted out: never, lease, trust-rp
                        [trust-rp for timer-free, never for weighted]
  lease = 10.0          how long a grant lasts without renewal, 0 for longer than any run
  retry = 1.0           how long participants wait before they repeat themselves, 0 for never
And these cannot:
  title = \"A sweep\"     what stands above the results
  protocols             which are compared: this must be said
  hold_spread           the deviation of hold, as a share of its mean [exponential]
  think_spread          the deviation of the time to think, likewise [exponential]
  clients_per_node = 1  clients at each node
  stagger = false       first claims are spread over the first time that each client thinks
  want = \"1\"            how many units a claim asks for: 2, or 1,2, or 1:80,4:20
  latency_spread = 0.0  how much latency varies to both sides, as a share of it
  sites = 1             at how many sites nodes lie
  inside = 1.0          a message inside one of several sites takes this times the latency
  inside_spread = 0.0   how much that varies to both sides
  reordering = false    links may change the order of messages, where the protocol bears it
  crash_at = 0.0        when the first node dies, or stands still
  drift = 200           how wrong clocks may be, in millionths
  backfill = 0          how often a waiting claim may be overtaken, where that is promised
  warm_up = 0.0         nothing is measured before this
  measured = 10.0       and then for so long
  until_known = false   a run ends as soon as every live node knows of every crash
  series_step = 0.0     units in use are also recorded over stretches of this length, 0 for not;
                        then it is also said when a pool serves as before after crashes
  repetitions = 5       runs of each combination, each with the next seed
  seed = 1              the first seed
  x = \"rho\"             what is on the horizontal axis: one of those that can be lists

Exit codes: 0 done; 1 a run broke a law, and a file that shows it again was written; 2 the file
makes no sense, or the folder cannot be written to; 75 interrupted, go on with --resume.")]
pub(crate) struct Args {
    /// The experiment
    file: PathBuf,
    /// The folder for its results
    #[arg(long, value_name = "DIR", default_value = "sweep")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) division: Division,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let text = fs::read_to_string(&args.file)
        .with_context(|| format!("cannot read {}", args.file.display()))?;
    let wrong = || format!("{} is no experiment, and nothing was run", args.file.display());
    let sweep = Sweep::parse(&text).with_context(wrong)?;
    let folder = folder(&args.out)?;
    let bar = progress_bar();
    let performed =
        sweep.run_divided(&args.division, &args.out, &|done, all| advance(&bar, done, all));
    bar.finish_and_clear();
    let Some(performed) = or_broken(performed, &folder)? else { return Ok(Outcome::Broken) };
    let cells = match performed {
        Performed::All(cells) => cells,
        Performed::Part(runs) => {
            crate::print(format_args!("{runs} runs of this part are written"))?;
            return Ok(Outcome::Good);
        }
        Performed::Interrupted => {
            eprintln!("interrupted: what is done is written; go on with --resume");
            return Ok(Outcome::Code(INTERRUPTED));
        }
    };
    write_all(&sweep, &cells, &folder)?;
    let metrics = [
        Metric::MessagesPerCs,
        Metric::MessagesProtocol,
        Metric::ObtainingTime,
        Metric::WaitingP99,
        Metric::CsPerSecond,
        Metric::Fairness,
    ];
    let head = ["protocol", sweep.x.name()].into_iter().chain(metrics.map(Metric::name));
    let head: Vec<&str> = head.collect();
    let lines = rows(&sweep, &cells, &metrics);
    crate::print(table(&head, &lines))?;
    crate::print(format_args!("{} settings, {} runs each", cells.len(), sweep.repetitions))?;
    if let Some(off) = sweep.switched_off() {
        crate::print(off)?;
    }
    crate::print(args.out.join("index.html").display())?;
    Ok(Outcome::Good)
}

/// A folder for results, before anything is run.
pub(super) fn folder(path: &Path) -> anyhow::Result<Folder> {
    let folder = Folder::open(path)?;
    if folder.is_used {
        eprintln!("earlier results in {} are replaced", path.display());
    }
    Ok(folder)
}

/// What was found; `None` if a run broke a law, which is said, with a file that shows it again.
pub(super) fn or_broken<T>(found: anyhow::Result<T>, folder: &Folder) -> anyhow::Result<Option<T>> {
    let error = match found {
        Ok(found) => return Ok(Some(found)),
        Err(error) => error,
    };
    let Some(broken) = error.downcast_ref::<Broken>() else { return Err(error) };
    folder.write("broken.toml", &broken.run.file()?)?;
    eprintln!("BROKEN {broken}");
    eprintln!("No results were written. To see it again:");
    eprintln!("  quorate-lab sim sweep {} --out again", folder.join("broken.toml").display());
    Ok(None)
}

/// Hidden where standard error is no terminal.
pub(crate) fn progress_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar} {pos} of {len} runs, {eta} left");
    ProgressBar::new(0).with_style(style.expect("the template is sound"))
}

pub(crate) fn advance(bar: &ProgressBar, done: usize, all: usize) {
    bar.set_length(all as u64);
    bar.set_position(done as u64);
}
