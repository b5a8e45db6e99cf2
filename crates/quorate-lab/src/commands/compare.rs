//! `quorate-lab compare`: every protocol and mode on the same workload and seeds.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::json;

use super::cluster::table;
use super::sim::sweep::{advance, progress_bar};
use crate::Outcome;
use crate::campaign::{Division, INTERRUPTED, Performed};
use crate::experiment::Broken;
use crate::experiment::contest::{CONTENDERS, Compared, Comparison, Preset, page, picture};

/// Compare all protocols and modes on the same workload and seeds: messages, waiting, throughput,
/// fairness, load of the busiest node, state, and what is left after crashes.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate-lab compare                                          a little of everything
  quorate-lab compare --preset sizes --html sizes.html         3 to 1,000 nodes
  quorate-lab compare --preset crashes --csv crashes.csv --svg crashes.svg
  quorate-lab compare --protocol central --protocol 'arbiter --family grid'
  quorate-lab compare --preset all --shard 1/8 --out parts     a part; then
  quorate-lab merge parts                                      all parts, as one run

A protocol is what stands behind --protocol of `sim run`, with its options. All runs are on the
engine of `sim run`: the same seed gives the same numbers there. Who cannot play a workload is left
out, and it is said why.

What the columns mean: quorate-lab sim sweep --help. The CSV has a line for each number of each run.

Exit codes: 0 done; 1 a run broke a law; 2 wrong input, or a file cannot be written; 75 interrupted,
go on with --resume.")]
pub(crate) struct Args {
    /// What is varied
    #[arg(long, value_enum, default_value = "quick")]
    preset: Preset,
    /// Compare only these; can be given several times [default: every protocol and mode]
    #[arg(long, value_name = "WORDS")]
    protocol: Vec<String>,
    /// Runs of each combination, each with the next seed [default: as the preset has it]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repetitions: Option<u32>,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    /// Write a line for each number of each run
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Draw all figures into one picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write a page with tables and figures, which needs nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The folder for parts (--shard, --resume)
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) division: Division,
}

/// Does it.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let all: Vec<String> = CONTENDERS.map(str::to_owned).into();
    let contenders = if args.protocol.is_empty() { &all } else { &args.protocol };
    let comparison = Comparison::new(args.preset, contenders, (args.repetitions, args.seed))?;
    let left_out = comparison.left_out.clone();
    if let Some(out) = &args.out {
        std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    }
    let bar = progress_bar();
    let performed = comparison.run(&args.division, args.out.as_deref(), &|done, all| {
        advance(&bar, done, all);
    });
    bar.finish_and_clear();
    let compared = match performed {
        Ok(Performed::All(compared)) => compared,
        Ok(Performed::Part(runs)) => {
            crate::print(format_args!("{runs} runs of this part are written"))?;
            return Ok(Outcome::Good);
        }
        Ok(Performed::Interrupted) => {
            eprintln!("interrupted: what is done is written; go on with --resume");
            return Ok(Outcome::Code(INTERRUPTED));
        }
        Err(error) => return said_if_broken(error),
    };
    args.write(&compared, &left_out)?;
    if args.json {
        let panels: Vec<_> = compared.iter().map(Compared::json).collect();
        crate::print(format_args!("{:#}", json!({ "panels": panels, "left_out": left_out })))?;
        return Ok(Outcome::Good);
    }
    for one in &compared {
        let (head, rows) = one.table();
        crate::print(one.panel.heading)?;
        crate::print(table(&head.iter().map(String::as_str).collect::<Vec<_>>(), &rows))?;
    }
    for line in &left_out {
        crate::print(format_args!("left out of {line}"))?;
    }
    Ok(Outcome::Good)
}

/// Says which run broke a law, if that is the error, and how to see it again.
///
/// # Errors
/// It is another.
pub(super) fn said_if_broken(error: anyhow::Error) -> anyhow::Result<Outcome> {
    let Some(broken) = error.downcast_ref::<Broken>() else { return Err(error) };
    eprintln!("BROKEN {broken}");
    eprintln!("This file shows it again with `quorate-lab sim sweep`:");
    eprintln!("{}", broken.run.file()?);
    Ok(Outcome::Broken)
}

impl Args {
    fn write(&self, compared: &[Compared], left_out: &[String]) -> anyhow::Result<()> {
        let write = |path: &Path, text: String| {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
        };
        if let Some(path) = &self.csv {
            let parts = compared.iter().map(Compared::csv).enumerate();
            // One header for all.
            let parts = parts.map(|(place, text)| match place {
                0 => text,
                _ => text.split_once('\n').map_or(String::new(), |(_, rest)| rest.to_owned()),
            });
            write(path, parts.collect())?;
        }
        if let Some(path) = &self.svg {
            write(path, picture(compared)?)?;
        }
        if let Some(path) = &self.html {
            let name = clap::ValueEnum::to_possible_value(&self.preset);
            let name = name.map_or(String::new(), |name| name.get_name().to_owned());
            let command = format!("quorate-lab compare --preset {name} --seed {}", self.seed);
            write(path, page(compared, left_out, &command)?)?;
        }
        Ok(())
    }
}
