//! `quorate-lab sim run`: one run, measured, and its verdict.

use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use quorate_core::NODES_MAX;
use quorate_sim::{
    Arrivals, Delay, Measures, Plan, PoolPlan, Profile, Pulse, Rng, Scale, Span, Time, Verdict,
    Want, Watch, swarm_command,
};

use super::report::{Shown, speed};
use super::{film, parse_seed};
use crate::experiment::Sample;
use crate::protocols::{Chosen, Offered};
use crate::{Outcome, plots, unless_unread};

/// Every step is followed by an audit up to this many nodes, unless told otherwise.
const STRICT_NODES_MAX: u32 = 30;

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  quorate-lab sim run --nodes 20 --units 5
  quorate-lab sim run --nodes 100 --units 8 --want 1:80,4:20 --fairness backfill:3 --svg pool.svg
  quorate-lab sim run --nodes 9 --delay 'clusters:1ms,40ms;40ms,1ms' --faults crashes --durable
  quorate-lab sim run --protocol broadcast --variant timer-free --crashes-max 2 --nodes 7 --units 3
  quorate-lab sim run --protocol ring --nodes 1000000
  quorate-lab sim run --protocol arbiter --nodes 16 --units 2 --family hierarchy:4,4
  quorate-lab sim run --swarm --seed 0x5eed --faults network --until 2s --trace
  quorate-lab sim run --units 3 --want 1,2 --faults crashes --duration 500ms --html replay.html

Durations: 250us, 1.5ms, 2s, 3m. Distributions: 2ms, uniform:1ms..5ms, exponential:2ms,
normal:2ms,500us; for --delay also 'clusters:1ms,20ms;20ms,1ms'.

Exit codes: 0 no law was broken; 1 one was, and the line that replays it is printed; 2 an option
makes no sense, or a file cannot be written.")]
pub(crate) struct Args {
    #[command(flatten)]
    chosen: Chosen,
    #[command(flatten)]
    shape: Shape,
    /// Draw everything from the seed, as `quorate-lab sim seeds` does
    #[arg(long)]
    swarm: bool,
    /// Where all chance comes from
    #[arg(long, value_parser = parse_seed, default_value = "0x5eed")]
    seed: u64,
    /// What goes wrong: none, crashes, amnesia, network, clients, clocks, disk, everything, swarm,
    /// restarts, one after the other, in which no holder may lose anything, or hangups
    #[arg(long, value_name = "PROFILE", default_value = "none")]
    faults: Profile,
    /// Measure from this time on; claims, grants and the verdict are of the whole run
    #[arg(long, value_name = "TIME")]
    warm_up: Option<Time>,
    /// Spread first claims over the first time that each client thinks: clients that think equally
    /// long would all begin in step
    #[arg(long)]
    stagger: bool,
    /// Stop at this time of the simulated world
    #[arg(long, value_name = "TIME")]
    until: Option<Time>,
    /// Begin in any state: arbitrary variables, garbage on the links (ring)
    #[arg(long)]
    corrupt: bool,
    /// Print a line for every event instead of the table
    #[arg(long)]
    trace: bool,
    /// Audit every participant and read every arbiter's books after each step
    #[arg(long, overrides_with = "no_strict")]
    strict: bool,
    /// Only watch what clients see
    #[arg(long)]
    no_strict: bool,
    /// Print numbers as JSON, the same for the same seed
    #[arg(long)]
    json: bool,
    /// With --json, also how fast this machine ran it: wall_seconds, steps_per_second
    #[arg(long, requires = "json")]
    speed: bool,
    /// Write units in use and claims waiting over time
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Draw utilization, queue and waiting times
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write a page that plays the run: nodes, messages, units, faults. It needs no server
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// What the swarm would draw. Everything is optional, so that it shows whether anything was given.
#[derive(clap::Args, Clone, PartialEq, Default, Debug)]
struct Shape {
    /// Nodes [default: 5]
    #[arg(long)]
    nodes: Option<u32>,
    /// Units of the pool [default: 2]
    #[arg(long)]
    units: Option<u32>,
    /// Clients at each node [default: 1; in a ring of many nodes they come one by one]
    #[arg(long, value_name = "C")]
    clients_per_node: Option<u32>,
    /// Claims per second in the whole pool, whether or not earlier ones were served
    #[arg(long, value_name = "PER_SECOND", conflicts_with_all = ["clients_per_node", "think"])]
    rate: Option<f64>,
    /// How many units a claim asks for: 2, or 1,2, or 1:80,4:20 [default: 1]
    #[arg(long)]
    want: Option<Want>,
    /// How long a client thinks between two claims [default: exponential:20ms]
    #[arg(long, value_name = "SPAN")]
    think: Option<Span>,
    /// How long a client uses its units [default: exponential:10ms]
    #[arg(long, value_name = "SPAN")]
    hold: Option<Span>,
    /// Claims taken back when they have to wait, in percent [default: 0]
    #[arg(long, value_name = "PERCENT")]
    cancel: Option<f64>,
    /// How long a message takes [default: 1ms]
    #[arg(long, value_name = "MODEL")]
    delay: Option<Delay>,
    /// Messages lost, in percent [default: 0]
    #[arg(long, value_name = "PERCENT")]
    loss: Option<f64>,
    /// Messages that arrive twice, in percent [default: 0]
    #[arg(long, value_name = "PERCENT")]
    duplicate: Option<f64>,
    /// Links may change the order of messages
    #[arg(long)]
    reordering: bool,
    /// How long new claims are made [default: 10s, in a ring at least four traversals]
    #[arg(long, value_name = "TIME")]
    duration: Option<Time>,
    /// Stop making new claims after so many grants
    #[arg(long, value_name = "N")]
    grants: Option<u64>,
    /// fifo, or backfill:B (a waiting claim is overtaken at most B times) [default: fifo]
    #[arg(long, value_parser = parse_fairness)]
    fairness: Option<u32>,
    /// How long a grant lasts without renewal, 0 for longer than any run [default: 10s]
    #[arg(long, value_name = "TIME")]
    lease: Option<Time>,
    /// How wrong clocks may be, in millionths [default: 200]
    #[arg(long, value_name = "PPM")]
    drift: Option<u32>,
    /// How long participants wait before they repeat themselves, 0 for longer than any run
    /// [default: 1s]
    #[arg(long, value_name = "TIME")]
    retry: Option<Time>,
    /// Promises are on disk before they are told
    #[arg(long)]
    durable: bool,
    /// How long a record takes to reach the disk [default: 0]
    #[arg(long, value_name = "SPAN")]
    sync: Option<Span>,
    /// The node that decides, where one does [default: 0]
    #[arg(long, value_name = "NODE")]
    arbiter: Option<u32>,
}

fn parse_fairness(text: &str) -> Result<u32, String> {
    match text.strip_prefix("backfill:") {
        None if text == "fifo" => Ok(0),
        Some(bound) => bound.parse().map_err(|_| format!("'{bound}' is no number of overtakes")),
        None => Err("choose fifo or backfill:B".into()),
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    (args.chosen.does()?.run)(args)
}

pub(crate) fn run_with<P: Offered>(args: &Args) -> anyhow::Result<Outcome> {
    let plan = args.plan::<P>()?;
    let pool = P::pool(&plan, &args.chosen.options)?;
    let about = P::about(&plan, &args.chosen.options)?;
    let small = plan.nodes <= STRICT_NODES_MAX && args.faults != Profile::None;
    let strict = !args.no_strict && (args.strict || args.swarm || small);
    let mut lines = Lines { out: BufWriter::new(std::io::stdout().lock()), failed: None };
    if args.trace {
        writeln!(lines, "# {}", plan.to_string().replace('\n', "\n# "))?;
    }
    let bar = progress(&plan)?;
    let mut tell = |pulse| {
        show(&bar, pulse);
        ControlFlow::Continue(())
    };
    let mut film = args.html.is_some().then(|| film::new(&plan)).transpose()?;
    let watch = Watch {
        strict,
        until: args.until.map(|time| time.0),
        warm_up: args.warm_up.map_or(0, |time| time.0),
        stagger: args.stagger,
        trace: args.trace.then_some(&mut lines as &mut dyn std::fmt::Write),
        film: film.as_mut(),
        pulse: Some(&mut tell),
    };
    let started = Instant::now();
    let report = match args.corrupt {
        true => P::run_corrupted(&plan, &pool, watch)
            .with_context(|| format!("--corrupt: {} does not heal from any state", P::NAME))?,
        false => quorate_sim::run::<P>(&plan, &pool, watch),
    };
    let wall = started.elapsed();
    bar.finish_and_clear();
    let Lines { mut out, failed } = lines;
    let (protocol, kinds) = (P::NAME, P::KINDS);
    let shown = Shown {
        protocol,
        kinds,
        sample: Sample::between(report.warmed_up.as_ref(), &report.measures),
        off: switched_off(&plan, args.chosen.options.crashes.probe == Some(Time(0))),
        plan: &plan,
        about,
        report: &report,
        strict,
        wall: args.speed.then_some(wall),
    };
    let written = failed.map_or(Ok(()), Err).and_then(|()| {
        if args.json {
            writeln!(out, "{:#}", shown.json())?;
        } else if !args.trace {
            write!(out, "{}", shown.table())?;
        }
        out.flush()
    });
    unless_unread(written)?;
    args.write_files(&report.measures)?;
    if let (Some(path), Some(film)) = (&args.html, &film) {
        let command = args.command();
        film::write::<P>(
            path,
            film,
            &film::About { plan: &plan, pool: &pool, report: &report, command },
        )?;
    }
    if !args.json && !args.trace {
        eprintln!("{}", speed(report.steps, wall));
    }
    let Verdict::Broken(breach) = &report.verdict else { return Ok(Outcome::Good) };
    eprintln!("BROKEN {breach}");
    eprintln!("at {} s. To see it again:", seconds(report.ended_at));
    eprintln!("  {}", report.replay_line(&args.command()));
    Ok(Outcome::Broken)
}

impl Args {
    fn plan<P: Offered>(&self) -> anyhow::Result<Plan> {
        if self.swarm {
            ensure!(
                self.shape == Shape::default(),
                "--swarm draws everything from the seed: give only --faults, --until and outputs"
            );
            let graph = self.chosen.options.graph.is_some();
            ensure!(!graph, "--swarm draws how many nodes there are: no --graph");
            let mut plan = Plan::swarm(self.seed, self.faults, P::NEEDS);
            P::fit(&mut plan, &self.chosen.options);
            plan.silence = P::silence(&plan, self.corrupt);
            return Ok(plan);
        }
        let mut shape = self.shape.clone();
        if let Some(graph) = &self.chosen.options.graph {
            ensure!(shape.nodes.is_none(), "--graph says how many nodes there are: no --nodes");
            shape.nodes = Some(graph.nodes());
        }
        let mut plan = shape.plan::<P>(self.seed)?;
        ensure!(!P::NEEDS.order || plan.links.ordered, "{} needs ordered links", P::NAME);
        let lossless = plan.links.loss_ppm == 0 && plan.links.duplicate_ppm == 0;
        ensure!(!P::NEEDS.reliability || lossless, "{} needs reliable links", P::NAME);
        let scale = Scale {
            delay: plan.links.delay.mean().max(1),
            lease: plan.pool.lease.map_or(1_000_000_000, |lease| Time::from(lease).0),
        };
        plan.add_faults(&mut Rng::new(self.seed), self.faults, P::NEEDS, scale);
        plan.silence = P::silence(&plan, self.corrupt);
        Ok(plan)
    }

    /// This command again, without what only chooses its output.
    fn command(&self) -> String {
        if self.swarm {
            let command = swarm_command(&self.chosen.to_string(), self.seed, self.faults);
            return if self.corrupt { format!("{command} --corrupt") } else { command };
        }
        let mut words = vec!["quorate-lab".to_string()];
        let mut given = std::env::args().skip(1);
        while let Some(word) = given.next() {
            match word.as_str() {
                "--trace" | "--json" | "--speed" => {}
                "--csv" | "--svg" | "--html" => _ = given.next(),
                "--until" => _ = given.next(),
                other if other.contains([';', ' ', '*']) => words.push(format!("'{other}'")),
                _ => words.push(word),
            }
        }
        words.join(" ")
    }

    fn write_files(&self, measures: &Measures) -> anyhow::Result<()> {
        if let Some(path) = &self.csv {
            let mut text = String::from("time_s,units_in_use,claims_waiting\n");
            for ((at, used), (_, waiting)) in measures.in_use.points().zip(measures.queue.points())
            {
                writeln!(text, "{},{used:.4},{waiting:.4}", seconds(at))?;
            }
            std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
        }
        if let Some(path) = &self.svg {
            let svg = plots::run(measures).context("drawing")?;
            std::fs::write(path, svg).with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(())
    }
}

impl Shape {
    fn plan<P: Offered>(&self, seed: u64) -> anyhow::Result<Plan> {
        let nodes = self.nodes.unwrap_or(5);
        ensure!((1..=NODES_MAX).contains(&nodes), "--nodes {nodes}: choose 1 to {NODES_MAX}");
        let units = self.units.unwrap_or(2);
        let mut plan = Plan::quiet(seed, nodes, units);
        plan.links.delay = self.delay.clone().unwrap_or(plan.links.delay);
        P::suit(&mut plan);
        if let Some(want) = &self.want {
            plan.workload.want = want.clone();
        }
        quorate_core::Units::new(plan.workload.want.most(), units)?;
        plan.workload.hold = self.hold.unwrap_or(plan.workload.hold);
        plan.workload.cancel_ppm = percent("--cancel", self.cancel)?;
        self.set_arrivals(&mut plan)?;
        plan.links.loss_ppm = percent("--loss", self.loss)?;
        plan.links.duplicate_ppm = percent("--duplicate", self.duplicate)?;
        plan.links.ordered = !self.reordering;
        ensure!(self.duration != Some(Time(0)), "--duration must be above 0");
        ensure!(self.grants != Some(0), "--grants must be at least 1");
        plan.duration = match (self.duration, self.grants) {
            (Some(duration), _) => duration.0,
            (None, Some(_)) => u64::MAX / 4,
            (None, None) => plan.duration,
        };
        plan.grants_max = self.grants.unwrap_or(u64::MAX);
        plan.pool.backfill = self.fairness.unwrap_or(0);
        if self.lease == Some(Time(0)) {
            plan.pool.lease = None;
        } else if let Some(lease) = self.lease {
            // Shorter than a message and its answer: nobody is ever served, and the run never ends.
            let least = Time(plan.links.delay.mean().saturating_mul(3).max(1_000));
            ensure!(
                lease.0 >= least.0,
                "--lease {lease}: with this --delay choose at least {least}"
            );
            plan.pool.lease = Some(lease.into());
        }
        if self.retry == Some(Time(0)) {
            plan.pool.retry = PoolPlan::NEVER;
        } else if let Some(retry) = self.retry {
            let least = Time(1_000);
            ensure!(retry.0 >= least.0, "--retry {retry}: choose at least {least}");
            plan.pool.retry = retry.into();
        }
        plan.pool.drift_ppm = self.drift.unwrap_or(plan.pool.drift_ppm);
        ensure!(plan.pool.drift_ppm < 500_000, "--drift: no lease lives on clocks wrong by half");
        plan.drift_ppm = plan.pool.drift_ppm;
        plan.pool.durable = self.durable;
        plan.pool.arbiter = self.arbiter.unwrap_or(0);
        ensure!(plan.pool.arbiter < nodes, "--arbiter: nodes are 0 to {}", nodes - 1);
        plan.sync = self.sync.unwrap_or(Span::ZERO);
        Ok(plan)
    }

    fn set_arrivals(&self, plan: &mut Plan) -> anyhow::Result<()> {
        if let Some(rate) = self.rate {
            ensure!(rate > 0.0 && rate <= 1e9, "--rate {rate}: choose above 0, at most 1e9");
            let every = (1e9 / rate) as u64;
            plan.workload.arrivals = Arrivals::Open { every, clients_max: u32::MAX };
            return Ok(());
        }
        let closed = matches!(plan.workload.arrivals, Arrivals::Closed { .. });
        if closed || self.clients_per_node.is_some() || self.think.is_some() {
            let clients_per_node = self.clients_per_node.unwrap_or(1);
            ensure!(clients_per_node > 0, "--clients-per-node must be at least 1");
            let think = self.think.unwrap_or(Span::Exponential(20_000_000));
            let busy = think.mean() > 0 || plan.workload.hold.mean() > 0;
            ensure!(busy, "--think and --hold cannot both be 0: no time would pass");
            plan.workload.arrivals = Arrivals::Closed { clients_per_node, think };
        }
        Ok(())
    }
}

/// What takes no part although a pool of nodes has it.
fn switched_off(plan: &Plan, no_probes: bool) -> Vec<&'static str> {
    let all = [
        (plan.pool.lease.is_none(), "leases"),
        (plan.pool.retry == PoolPlan::NEVER, "retries"),
        (no_probes, "probes"),
    ];
    all.iter().filter(|it| it.0).map(|it| it.1).collect()
}

/// A bar over the time in which new claims are made; nobody sees it unless a person waits.
fn progress(plan: &Plan) -> anyhow::Result<ProgressBar> {
    let bar = ProgressBar::new(plan.duration / 1_000_000);
    let style = "{elapsed_precise} {bar:40} {msg}";
    bar.set_style(ProgressStyle::with_template(style)?);
    Ok(bar)
}

fn show(bar: &ProgressBar, Pulse { now, steps, grants, calm }: Pulse) {
    bar.set_position(now / 1_000_000);
    let at = now as f64 / 1e9;
    let doing = if calm { "serving the rest" } else { "making claims" };
    bar.set_message(format!("{doing}: {at:.1} s simulated, {steps} steps, {grants} grants"));
}

fn percent(name: &str, given: Option<f64>) -> anyhow::Result<u32> {
    let percent = given.unwrap_or(0.0);
    ensure!((0.0..=100.0).contains(&percent), "{name} {percent}: choose 0 to 100");
    Ok((percent * 10_000.0).round() as u32)
}

fn seconds(nanos: u64) -> String {
    format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

/// Trace lines on their way to standard output.
struct Lines<'a> {
    out: BufWriter<std::io::StdoutLock<'a>>,
    failed: Option<std::io::Error>,
}

impl std::fmt::Write for Lines<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.out.write_all(text.as_bytes()).map_err(|error| {
            self.failed.get_or_insert(error);
            std::fmt::Error
        })
    }
}
