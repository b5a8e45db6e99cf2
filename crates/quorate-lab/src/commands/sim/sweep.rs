//! `quorate-lab sim sweep`: an experiment from a file.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};

use crate::Outcome;
use crate::campaign::{Division, INTERRUPTED, Performed};
use crate::experiment::{Broken, Folder, Sweep, write_all};

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
  crashes_max = 3
  rho = [1, 2, 4, 8]
  latency = [0.05, 0.2]
  repetitions = 5

Every combination is run. Protocols: central, arbiter-uniform, arbiter-cube, ticket, table, ring,
raymond, raynal, timer-free, weighted. The folder gets results.csv, results.json, a figure for each
metric, and index.html, which needs nothing else; it must be new, empty, or hold earlier results,
which are replaced.

What a file can say, and what holds if it does not; times are in seconds. These can also be lists:
  nodes = 10            nodes
  units = 3             units of the pool
  crashes_max = 0       most crashes that are recovered from (timer-free, weighted)
  node_units_max = 1    most units that one node asks for at a time (weighted)
  hold = 2.0            how long a client uses its units
  rho = 5.0             how long it thinks in between, as a multiple of hold
  latency = 0.1         one way between two sites
  crashes = 0           so many nodes die for good, chosen by chance
  crash_every = 0.0     the time between two of these crashes
  idle = 0              so many nodes have no clients
  freeze = 0.0          one node stands still for so long from crash_at on
  notices = false       who finds a crash tells everybody (timer-free, weighted)
  probe = 0.0           a node queries at least so often, 0 for never (timer-free, weighted)
  reclaim               when who is believed to have crashed is counted out: never, lease, trust-rp;
                        left out, trust-rp for timer-free, and for weighted lease if there is one
  lease = 0.0           how long a grant lasts without renewal, 0 for longer than any run
And these cannot:
  title = \"A sweep\"     what stands above the results
  protocols             which are compared: this must be said
  think_spread = 0.25   the deviation of the time to think, as a share of its mean
  want = \"1\"            how many units a claim asks for: 2, or 1,2, or 1:80,4:20
  latency_spread = 0.05 how much latency varies to both sides, as a share of it
  sites = 1             at how many sites nodes lie
  inside = 1.0          a message inside a site takes this times the latency
  inside_spread = 0.05  how much that varies to both sides
  crash_at = 0.0        when the first node dies, or stands still
  warm_up = 100.0       nothing is measured before this
  measured = 500.0      and then for so long
  until_known = false   a run ends as soon as every live node knows of every crash
  series_step = 0.0     units in use are also recorded over stretches of this length, 0 for not
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
pub(super) fn progress_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar} {pos} of {len} runs, {eta} left");
    ProgressBar::new(0).with_style(style.expect("the template is sound"))
}

pub(super) fn advance(bar: &ProgressBar, done: usize, all: usize) {
    bar.set_length(all as u64);
    bar.set_position(done as u64);
}
