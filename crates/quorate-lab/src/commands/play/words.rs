//! A run as words: what can be chosen, within bounds that a page can show and a request can bear.

use std::fmt;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::{CommandFactory as _, Parser as _};
use quorate_papers::PrintedProcess;
use quorate_sim::{
    Arrivals, Delay, Film, Hands, Intervention, Needs, Plan, Pulse, Span, Time, Verdict, Want,
    Watch,
};
use serde_json::json;

use super::challenges::{self, Challenge};
use super::{Played, Trace};
use crate::commands::sim::film::{About, film_json};
use crate::commands::sim::parse_seed;
use crate::protocols::{Chosen, Offered};

/// Most nodes that can be told apart, touched and cut from each other.
const NODES_MAX: u32 = 16;
const UNITS_MAX: u32 = 64;
const CLIENTS_MAX: u32 = 8;
const STEPS_MAX: u64 = 20_000;
const ACTS_MAX: usize = 500;
const LENGTH_MAX: usize = 16_000;
/// Lines that a page bears.
const FRAMES_MAX: usize = 60_000;
/// No request takes longer, whatever is asked.
const PATIENCE: Duration = Duration::from_secs(5);
/// Where nothing happens by itself: longer than anybody plays.
const NEVER: Span = Span::Constant(1_000_000_000_000_000);
const HOUR: Time = Time(3_600_000_000_000);

/// A run that somebody plays with.
#[derive(clap::Parser, Clone, Debug)]
#[command(no_binary_name = true, disable_help_flag = true, name = "WORDS")]
pub(crate) struct Words {
    #[command(flatten)]
    pub(crate) chosen: Chosen,
    /// A paper's misprint to play against, which says everything else
    #[arg(long, value_parser = challenges::find)]
    challenge: Option<&'static Challenge>,
    /// Nodes
    #[arg(long, default_value_t = 5)]
    nodes: u32,
    /// Units of the pool
    #[arg(long, default_value_t = 2)]
    units: u32,
    /// Clients at each node
    #[arg(long, value_name = "C", default_value_t = 1)]
    clients: u32,
    /// How many units a claim asks for: 2, or 1,2, or 1:80,4:20
    #[arg(long, default_value = "1")]
    want: Want,
    /// How long a client thinks between two claims
    #[arg(long, value_name = "SPAN", default_value = "exponential:20ms")]
    think: Span,
    /// How long a client uses its units
    #[arg(long, value_name = "SPAN", default_value = "exponential:15ms")]
    hold: Span,
    /// How long a message takes
    #[arg(long, value_name = "MODEL", default_value = "uniform:500us..1500us")]
    delay: Delay,
    /// How long a grant lasts without renewal [default: 400ms, or 1h by hand]
    #[arg(long, value_name = "TIME")]
    lease: Option<Time>,
    /// How long participants wait before they repeat themselves [default: 60ms, or 1h by hand]
    #[arg(long, value_name = "TIME")]
    retry: Option<Time>,
    /// Promises are on disk before they are told
    #[arg(long)]
    durable: bool,
    /// Begin in any state (ring)
    #[arg(long)]
    corrupt: bool,
    /// Nothing happens by itself: clients claim and messages arrive as you say
    #[arg(long)]
    by_hand: bool,
    /// Where all chance comes from
    #[arg(long, value_parser = parse_seed, default_value = "1")]
    seed: u64,
    /// Stop after so many steps
    #[arg(long, value_name = "N", default_value_t = 600)]
    steps: u64,
    /// What is done after how many steps: 12:crash:2,30:restart:2. Also forget:2 (restart without
    /// memory), pause:2, resume:2, vanish:2 (its clients), cut:0-1, heal:0-1, drop:17 and
    /// deliver:17 (messages), claim:2, release:2, corrupt, rest (faults are over)
    #[arg(long, value_name = "ACTS", value_delimiter = ',')]
    intervene: Vec<Intervention>,
}

impl Words {
    /// Reads words, none of which may lead to a file: they may come from a link.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Words> {
        ensure!(text.len() <= LENGTH_MAX, "more than {LENGTH_MAX} characters of words");
        let words = text.split_whitespace();
        let is_file = |word: &str| {
            word.starts_with("--graph") || word.starts_with("--structure") || word.contains("file:")
        };
        ensure!(!words.clone().any(is_file), "what is played may not come from files");
        let words = Words::try_parse_from(words).map_err(|error| {
            let said = error.render().to_string();
            let first = said.split("\n\nUsage").next().unwrap_or_default();
            anyhow::anyhow!("{}", first.trim().trim_start_matches("error: "))
        })?;
        words.check()?;
        Ok(words)
    }

    /// What there is to say.
    pub(super) fn help() -> String {
        let mut command = Words::command().override_usage("quorate-lab play --show 'WORDS'");
        command.render_long_help().to_string()
    }

    fn check(&self) -> anyhow::Result<()> {
        let Words { nodes, units, clients, steps, .. } = *self;
        ensure!((1..=NODES_MAX).contains(&nodes), "--nodes {nodes}: choose 1 to {NODES_MAX}");
        ensure!((1..=UNITS_MAX).contains(&units), "--units {units}: choose 1 to {UNITS_MAX}");
        let most = CLIENTS_MAX;
        ensure!((1..=most).contains(&clients), "--clients {clients}: choose 1 to {most}");
        ensure!(steps <= STEPS_MAX, "--steps {steps}: choose at most {STEPS_MAX}");
        let acts = self.intervene.len();
        ensure!(acts <= ACTS_MAX, "--intervene: {acts} are more than {ACTS_MAX}");
        let ordered = self.intervene.is_sorted_by_key(|it| it.after);
        ensure!(ordered, "--intervene: write them in the order of their steps");
        quorate_core::Units::new(self.want.most(), units)?;
        let busy = self.think.mean() > 0 && self.hold.mean() > 0;
        ensure!(busy, "--think and --hold must be above 0: no time would pass");
        let delay = self.delay.mean();
        ensure!((1_000..=HOUR.0).contains(&delay), "--delay: choose 1us to 1h");
        let least = Time(delay.saturating_mul(3));
        for (name, given) in [("lease", self.lease), ("retry", self.retry)] {
            let Some(time) = given else { continue };
            ensure!(time.0 >= least.0, "--{name} {time}: with this --delay at least {least}");
            ensure!(time.0 <= 1_000 * HOUR.0, "--{name} {time}: choose at most 1000h");
        }
        Ok(())
    }

    /// Plays it.
    pub(crate) fn play(&self, trace: Trace<'_>) -> anyhow::Result<Played> {
        let Some(challenge) = self.challenge else {
            return (self.chosen.does()?.play)(self, trace);
        };
        let set = challenge.set(self)?;
        match challenge.misprint {
            Some(misprint) => play_pool::<PrintedProcess>(&set, &misprint, trace),
            None => (set.chosen.does()?.play)(&set, trace),
        }
    }

    /// These words with what a challenge says instead of its own.
    pub(super) fn with(&self, given: &str) -> anyhow::Result<Words> {
        let set = Words::parse(given).context("a challenge")?;
        let (steps, intervene) = (self.steps, self.intervene.clone());
        Ok(Words { challenge: self.challenge, steps, intervene, ..set })
    }

    pub(super) fn challenge(&self) -> Option<&'static Challenge> {
        self.challenge
    }

    fn plan<P: Offered>(&self) -> Plan {
        let mut plan = Plan::quiet(self.seed, self.nodes, self.units);
        plan.links.delay = self.delay.clone();
        let default = |soon: u64| if self.by_hand { HOUR } else { Time(soon) };
        plan.pool.lease = Some(self.lease.unwrap_or(default(400_000_000)).into());
        plan.pool.retry = self.retry.unwrap_or(default(60_000_000)).into();
        plan.pool.durable = self.durable;
        plan.workload.want = self.want.clone();
        plan.workload.hold = self.hold;
        let clients_per_node = self.clients;
        plan.workload.arrivals = Arrivals::Closed { clients_per_node, think: self.think };
        // Somebody watches over nodes, as in the daemon, and is not very quick about it.
        let notices = self.delay.mean().saturating_mul(20);
        plan.faults.detection = Some(Span::Uniform { low: notices / 2, high: notices });
        plan.faults.greetings = true;
        plan.duration = 1_000 * HOUR.0;
        plan.silence = P::silence(&plan, self.corrupt);
        plan
    }

    /// Nothing happens by itself, and messages are brought in any order that the protocol bears.
    fn still(&self, plan: &mut Plan, needs: Needs) {
        plan.links.delay = Delay::Everywhere(NEVER);
        plan.links.ordered = needs.order;
        plan.workload.hold = NEVER;
        let clients_per_node = self.clients;
        plan.workload.arrivals = Arrivals::Closed { clients_per_node, think: NEVER };
        plan.faults.detection = None;
    }

    fn hands(&self) -> Hands {
        let steps_max = Some(self.steps).filter(|_| !self.by_hand);
        Hands { acts: self.intervene.clone(), steps_max, alone: self.by_hand }
    }
}

/// Plays a run of one protocol.
pub(crate) fn play_with<P: Offered>(words: &Words, trace: Trace<'_>) -> anyhow::Result<Played> {
    let pool = P::pool(&words.plan::<P>(), &words.chosen.options)?;
    play_pool::<P>(words, &pool, trace)
}

fn play_pool<P: Offered>(
    words: &Words,
    pool: &P::Pool,
    trace: Trace<'_>,
) -> anyhow::Result<Played> {
    let mut plan = words.plan::<P>();
    let units = P::capacity(pool);
    ensure!(units == plan.pool.units, "{} has {units} units here: say --units {units}", P::NAME);
    if words.by_hand {
        words.still(&mut plan, P::NEEDS);
    }
    let mut film = Film::new(FRAMES_MAX);
    let began = Instant::now();
    let mut late = false;
    let mut patience = |_: Pulse| {
        late = began.elapsed() > PATIENCE;
        if late { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let watch = Watch {
        strict: true,
        until: None,
        trace: trace.map(|text| text as &mut dyn fmt::Write),
        film: Some(&mut film),
        pulse: Some(&mut patience),
        ..Watch::default()
    };
    let report = P::play(&plan, pool, watch, words.hands(), words.corrupt)
        .with_context(|| format!("--corrupt: {} does not heal from any state", P::NAME))?;
    ensure!(!late, "it took more than {} s: choose fewer --steps", PATIENCE.as_secs());
    let about = About::<P> { plan: &plan, pool, report: &report, command: String::new() };
    let mut shown = film_json(&film, &about);
    let broken = match &report.verdict {
        Verdict::Broken(breach) => Some(json!({"law": breach.law, "what": breach.what})),
        Verdict::Clean | Verdict::Stopped => None,
    };
    let Needs { order, reliability, permanence } = P::NEEDS;
    shown["by_hand"] = words.by_hand.into();
    shown["broken"] = json!(broken);
    shown["over"] = (report.verdict != Verdict::Stopped).into();
    shown["steps"] = report.measures.happenings.into();
    shown["needs"] = json!({"order": order, "reliability": reliability, "permanence": permanence});
    shown["heals"] = P::HEALS.into();
    shown["challenge"] = json!(words.challenge().map(Challenge::json));
    Ok(Played { film: shown, broken: broken.is_some() })
}
