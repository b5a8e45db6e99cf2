//! `quorate-lab sim seeds`: many runs, each drawn from its seed, on all cores.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, bail, ensure};
use clap::{Args as _, FromArgMatches as _};
use indicatif::{ProgressBar, ProgressStyle};
use quorate_sim::{Plan, Profile, Report, Verdict, Watch, swarm_command};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::parse_seed;
use super::report::{add_speed, speed};
use crate::Outcome;
use crate::campaign::{Campaign, Division, INTERRUPTED, Performed};
use crate::protocols::{Chosen, Offered, registry};

#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  quorate-lab sim seeds --count 2000
  quorate-lab sim seeds --count 500 --faults crashes --json
  quorate-lab sim seeds --protocol ring --corrupt --count 100
  quorate-lab sim seeds --variant labels --count 100
  quorate-lab sim seeds --every --minutes 30

On many machines (docs/campaigns.md):
  quorate-lab sim seeds --count 100000 --shard 3/8 --out DIR       the third of eight parts
  quorate-lab merge DIR                                            all of them, as one run

Exit code 1 if a law was broken; the line that replays it is printed. 75 if it was interrupted and
--resume goes on.")]
#[command(group(clap::ArgGroup::new("how_many").required(true).args(["count", "minutes"])))]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) swarm: Swarm,
    /// Every protocol in turn, and what each has that must be played; the time is shared
    #[arg(long, conflicts_with_all = ["protocol", "variant", "corrupt", "json"])]
    every: bool,
    /// Seeds for each profile
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// How long to go on; runs under way at the end are given up and not counted
    #[arg(long, value_name = "M")]
    minutes: Option<f64>,
    /// A fault profile, or all of them
    #[arg(long, value_name = "PROFILE|all", default_value = "all", value_parser = parse_profiles)]
    faults: Profiles,
    /// The first seed; others follow [default: 1, or the time of day with --minutes]
    #[arg(long, value_parser = parse_seed)]
    first: Option<u64>,
    /// Look for more after the first broken law
    #[arg(long)]
    keep_going: bool,
    /// Threads [default: as many as there are cores]
    #[arg(long, value_name = "N", conflicts_with = "out")]
    threads: Option<usize>,
    /// Write what each run gave into this folder, as a part of a campaign (with --count)
    #[arg(long, value_name = "DIR", requires = "count", conflicts_with_all = ["every", "minutes"])]
    out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) division: Division,
    /// Print numbers as JSON, the same for the same seeds
    #[arg(long)]
    json: bool,
    /// With --json, also how fast this machine ran them: wall_seconds, steps_per_second
    #[arg(long, requires = "json")]
    speed: bool,
}

/// What is played.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Swarm {
    #[command(flatten)]
    pub(crate) chosen: Chosen,
    /// Begin in any state: arbitrary variables, garbage on the links (ring)
    #[arg(long)]
    corrupt: bool,
}

#[derive(Clone, Debug)]
struct Profiles(Vec<Profile>);

fn parse_profiles(text: &str) -> Result<Profiles, String> {
    if text == "all" {
        return Ok(Profiles(Profile::ALL.to_vec()));
    }
    let profile: Profile = text.parse().map_err(|error| format!("{error}, or all"))?;
    Ok(Profiles(vec![profile]))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    ensure!(args.minutes.is_none_or(|m| m > 0.0 && m < 1e6), "--minutes must be above 0");
    ensure!(args.count != Some(0), "--count must be at least 1");
    ensure!(args.threads != Some(0), "--threads must be at least 1");
    ensure!(
        args.out.is_none() || args.division.is_divided(),
        "--out keeps the parts of a campaign: say which, for example --shard 1/1"
    );
    if args.every {
        return every(args);
    }
    (args.swarm.chosen.does()?.seeds)(args)
}

/// One swarm after the other, each for its share of the time.
fn every(args: &Args) -> anyhow::Result<Outcome> {
    let swarms: Vec<Swarm> = swarms()?;
    let minutes = args.minutes.map(|minutes| minutes / swarms.len() as f64);
    let mut outcome = Outcome::Good;
    for swarm in swarms {
        let args = Args { swarm, minutes, every: false, ..args.clone() };
        if run(&args)? != Outcome::Good {
            outcome = Outcome::Broken;
            if !args.keep_going {
                break;
            }
        }
    }
    Ok(outcome)
}

/// What every protocol wants played, in the order of their list.
pub(crate) fn swarms() -> anyhow::Result<Vec<Swarm>> {
    let words = |name: &'static str| move |more: &&str| format!("seeds --protocol {name}{more}");
    let all = registry().iter().flat_map(|one| one.swarms.iter().map(words(one.name)));
    let read = |words: String| {
        let command = Swarm::augment_args(clap::Command::new("seeds"));
        let matches = command.try_get_matches_from(words.split(' '))?;
        Ok(Swarm::from_arg_matches(&matches)?)
    };
    all.map(read).collect()
}

/// What is added up over the runs of one profile.
#[derive(Clone, Default, Debug, Deserialize, Serialize)]
struct Sum {
    seeds: u64,
    steps: u64,
    grants: u64,
    crashes: u64,
    messages_lost: u64,
    cut_short: u64,
    broken: u64,
}

/// A broken run; the number of the run comes first, so that the smallest is the first.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Found {
    number: u64,
    law: String,
    what: String,
    replay: String,
}

/// What one run gave: which profile it was of, what it adds up to, and whether it was broken.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct One {
    position: usize,
    sum: Sum,
    found: Option<Found>,
}

pub(crate) fn run_with<P: Offered>(args: &Args) -> anyhow::Result<Outcome> {
    let hunt = Hunt::new(args)?;
    // A panic inside a step is a breach, and its words are in it; the rest is noise.
    std::panic::set_hook(Box::new(|_| {}));
    let started = Instant::now();
    if args.out.is_some() || args.division.is_merged() {
        return hunt.divided::<P>(args, started);
    }
    let threads = match args.threads {
        Some(threads) => threads,
        None => std::thread::available_parallelism()?.get(),
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..threads).map(|_| scope.spawn(|| hunt.work::<P>(started))).collect();
        workers.into_iter().try_for_each(|worker| {
            worker.join().map_err(|_| anyhow::anyhow!("a worker of the simulator panicked"))?
        })
    })?;
    // The default is to print; nothing after this panics quietly.
    _ = std::panic::take_hook();
    hunt.bar.finish_and_clear();
    hunt.report(P::NAME, args, started.elapsed())
}

struct Hunt<'a> {
    chosen: Chosen,
    profiles: &'a [Profile],
    first: u64,
    runs_max: u64,
    time_max: Option<Duration>,
    keep_going: bool,
    corrupt: bool,
    next: AtomicU64,
    /// No run from this number on is started any more.
    stop: AtomicU64,
    bar: ProgressBar,
    sums: Mutex<Vec<Sum>>,
    found: Mutex<Vec<Found>>,
}

impl<'a> Hunt<'a> {
    fn new(args: &'a Args) -> anyhow::Result<Self> {
        let profiles = &args.faults.0[..];
        let runs_max = args.count.map_or(u64::MAX, |count| count * profiles.len() as u64);
        let bar = match args.count {
            Some(_) => ProgressBar::new(runs_max),
            None => ProgressBar::new_spinner(),
        };
        bar.set_style(ProgressStyle::with_template(
            "{elapsed_precise} {bar:40} {pos}/{len} runs, {per_sec} {msg}",
        )?);
        let time_of_day = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs() << 16;
        let fallback = if args.minutes.is_some() { time_of_day } else { 1 };
        Ok(Hunt {
            chosen: args.swarm.chosen.clone(),
            profiles,
            first: args.first.unwrap_or(fallback),
            runs_max,
            time_max: args.minutes.map(|minutes| Duration::from_secs_f64(minutes * 60.0)),
            keep_going: args.keep_going,
            corrupt: args.swarm.corrupt,
            next: AtomicU64::new(0),
            stop: AtomicU64::new(u64::MAX),
            bar,
            sums: Mutex::new(vec![Sum::default(); profiles.len()]),
            found: Mutex::new(Vec::new()),
        })
    }

    fn is_late(&self, started: Instant) -> bool {
        self.time_max.is_some_and(|most| started.elapsed() >= most)
    }

    /// Runs one seed after the other. Numbers are given out in order and, unless time is up, every
    /// run is finished, so that the first broken one is the same however many threads there are.
    fn work<P: Offered>(&self, started: Instant) -> anyhow::Result<()> {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let late = self.is_late(started);
            if number >= self.runs_max || late || number >= self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let Some(one) = self.one::<P>(number, started)? else { return Ok(()) };
            if one.found.is_some() && !self.keep_going {
                self.stop.fetch_min(number, Ordering::Relaxed);
            }
            self.count(one);
            self.bar.inc(1);
        }
    }

    /// Runs one seed; `None` if time was up before it was over.
    fn one<P: Offered>(&self, number: u64, started: Instant) -> anyhow::Result<Option<One>> {
        let position = (number % self.profiles.len() as u64) as usize;
        let profile = self.profiles[position];
        let seed = self.first.wrapping_add(number / self.profiles.len() as u64);
        let mut plan = Plan::swarm(seed, profile, P::NEEDS);
        P::fit(&mut plan, &self.chosen.options);
        plan.silence = P::silence(&plan, self.corrupt);
        let pool = P::pool(&plan, &self.chosen.options)?;
        let mut pulse = |_| match self.is_late(started) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let watch = Watch { strict: true, pulse: Some(&mut pulse), ..Watch::default() };
        let report = match self.corrupt {
            true => P::run_corrupted(&plan, &pool, watch)
                .with_context(|| format!("--corrupt: {} does not heal from any state", P::NAME))?,
            false => quorate_sim::run::<P>(&plan, &pool, watch),
        };
        if report.verdict == Verdict::Stopped {
            return Ok(None);
        }
        let mut found = None;
        if let Verdict::Broken(breach) = &report.verdict {
            let mut command = swarm_command(&self.chosen.to_string(), seed, profile);
            if self.corrupt {
                command.push_str(" --corrupt");
            }
            let replay = report.replay_line(&command);
            self.bar.suspend(|| eprintln!("BROKEN {breach}\n  {replay}"));
            let (law, what) = (breach.law.to_string(), breach.what.clone());
            found = Some(Found { number, law, what, replay });
        }
        Ok(Some(One { position, sum: Sum::of(&report), found }))
    }

    /// The same as a part of a campaign, or from all parts of one. Every run is made.
    fn divided<P: Offered>(self, args: &Args, started: Instant) -> anyhow::Result<Outcome> {
        let numbers: Vec<u64> = (0..self.runs_max).collect();
        let campaign = Campaign {
            command: "sim seeds",
            out: args.out.as_deref(),
            input: Value::Null,
            encode: &|one: &One| serde_json::to_value(one).unwrap_or_default(),
            decode: &|value: &Value| Ok(serde_json::from_value::<One>(value.clone())?),
        };
        let progress = |done: usize, all: usize| {
            self.bar.set_length(all as u64);
            self.bar.set_position(done as u64);
        };
        let performed = args.division.perform(&campaign, &numbers, &progress, |number| {
            self.one::<P>(*number, started)?.context("time does not end")
        });
        _ = std::panic::take_hook();
        self.bar.finish_and_clear();
        match performed? {
            Performed::All(all) => {
                all.into_iter().for_each(|one| self.count(one));
                self.report(P::NAME, args, started.elapsed())
            }
            Performed::Part(runs) => {
                crate::print(format_args!("{runs} runs of this part are written"))?;
                Ok(Outcome::Good)
            }
            Performed::Interrupted => {
                eprintln!("interrupted: what is done is written; go on with --resume");
                Ok(Outcome::Code(INTERRUPTED))
            }
        }
    }

    fn count(&self, one: One) {
        let mut sums = self.sums.lock().expect("no worker panics with it");
        sums[one.position].add(&one.sum);
        self.found.lock().expect("no worker panics with it").extend(one.found);
    }

    fn report(self, protocol: &str, args: &Args, wall: Duration) -> anyhow::Result<Outcome> {
        let sums = self.sums.into_inner().expect("no worker panicked");
        let mut found = self.found.into_inner().expect("no worker panicked");
        found.sort_by_key(|found| found.number);
        if let (Some(minutes), true) = (args.minutes, sums.iter().all(|sum| sum.seeds == 0)) {
            bail!("no run was over within {minutes} minutes: give more");
        }
        let steps: u64 = sums.iter().map(|sum| sum.steps).sum();
        if args.json {
            let rows: Vec<_> = self.profiles.iter().zip(&sums).map(|(p, s)| s.json(*p)).collect();
            let breaches: Vec<_> = found
                .iter()
                .map(|f| json!({ "law": f.law, "what": f.what, "replay": f.replay }))
                .collect();
            let mut report = json!({
                "protocol": protocol,
                "corrupt": self.corrupt,
                "first_seed": format!("{:#x}", self.first),
                "profiles": rows,
                "breaches": breaches,
                "steps": steps,
            });
            if args.speed {
                add_speed(&mut report, steps, wall);
            }
            crate::print(format_args!("{report:#}"))?;
        } else {
            let from = if self.corrupt { ", each from any state" } else { "" };
            let first = self.first;
            crate::print(format_args!(
                "{protocol}, seeds from {first:#x}{from}, all laws after every step"
            ))?;
            crate::print(format_args!(
                "{:<11}{:>8}{:>12}{:>11}{:>9}{:>9}{:>11}{:>8}",
                "faults", "seeds", "steps", "grants", "crashes", "lost", "cut short", "broken"
            ))?;
            for (profile, sum) in self.profiles.iter().zip(&sums) {
                crate::print(sum.row(*profile))?;
            }
            eprintln!("{}", speed(steps, wall));
        }
        match found.first() {
            None => Ok(Outcome::Good),
            Some(first) => {
                eprintln!("{} broken. To see the first again:\n  {}", found.len(), first.replay);
                Ok(Outcome::Broken)
            }
        }
    }
}

impl Sum {
    fn of(report: &Report) -> Sum {
        Sum {
            seeds: 1,
            steps: report.steps,
            grants: report.measures.grants,
            crashes: report.measures.crashes,
            messages_lost: report.measures.messages_lost,
            cut_short: report.measures.cut_short,
            broken: u64::from(matches!(report.verdict, Verdict::Broken(_))),
        }
    }

    fn add(&mut self, other: &Sum) {
        self.seeds += other.seeds;
        self.steps += other.steps;
        self.grants += other.grants;
        self.crashes += other.crashes;
        self.messages_lost += other.messages_lost;
        self.cut_short += other.cut_short;
        self.broken += other.broken;
    }

    fn row(&self, profile: Profile) -> String {
        let Sum { seeds, steps, grants, crashes, messages_lost, cut_short, broken } = self;
        let name = profile.name();
        format!(
            "{name:<11}{seeds:>8}{steps:>12}{grants:>11}{crashes:>9}{messages_lost:>9}\
             {cut_short:>11}{broken:>8}"
        )
    }

    fn json(&self, profile: Profile) -> serde_json::Value {
        json!({
            "faults": profile.name(),
            "seeds": self.seeds,
            "steps": self.steps,
            "grants": self.grants,
            "crashes": self.crashes,
            "messages_lost": self.messages_lost,
            "cut_short": self.cut_short,
            "broken": self.broken,
        })
    }
}
