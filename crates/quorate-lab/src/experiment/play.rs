//! One run of an experiment.

use std::time::Duration;

use anyhow::Context as _;
use quorate_core::{NodeId, NodeSet};
use quorate_laws::Breach;
use quorate_sim::{
    Arrivals, Delay, Faults, Links, Measures, Plan, PoolPlan, Rng, Session, Span, Watch, Workload,
};
use serde_json::{Value, json};

use super::contender::{Watched, Work};
use super::metric::Metric;
use super::setting::Setting;
use super::sweep::Sweep;

/// What one run measured.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Sample {
    obtaining_time: f64,
    waiting: f64,
    cs_per_second: f64,
    units_in_use: f64,
    messages_per_cs: f64,
    /// How long a unit lies idle between two users, where there was always somebody to use it.
    synchronization_delay: Option<f64>,
    /// For each crash, how long until every live node knew; only of those that became known.
    pub(crate) detection: Vec<f64>,
    /// Crashes that did not become known to all before the run ended.
    pub(crate) unknown: u32,
    /// The share of crashes that did.
    crashes_known: Option<f64>,
    /// Whether a live node was taken for dead, where one stood still.
    falsely_suspected: Option<bool>,
    /// Units in use over each stretch of time.
    pub(crate) series: Vec<f64>,
    /// Steps of all participants; none if it was taken over from another experiment.
    pub(crate) steps: u64,
}

impl Sample {
    /// As a line of a campaign: numbers by their bits, so that they come back as they were.
    pub(crate) fn encode(&self) -> Value {
        let bits = |numbers: &[f64]| numbers.iter().map(|it| it.to_bits()).collect::<Vec<u64>>();
        let Sample { obtaining_time, waiting, cs_per_second, units_in_use, .. } = *self;
        let numbers = [obtaining_time, waiting, cs_per_second, units_in_use, self.messages_per_cs];
        json!({
            "numbers": bits(&numbers),
            "synchronization_delay": self.synchronization_delay.map(f64::to_bits),
            "detection": bits(&self.detection),
            "unknown": self.unknown,
            "crashes_known": self.crashes_known.map(f64::to_bits),
            "falsely_suspected": self.falsely_suspected,
            "series": bits(&self.series),
            "steps": self.steps,
        })
    }

    /// And back.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn decode(value: &Value) -> anyhow::Result<Sample> {
        let list = |name: &str| -> anyhow::Result<Vec<f64>> {
            let bits = value[name].as_array().with_context(|| format!("no {name}"))?;
            let number = |bits: &Value| bits.as_u64().map(f64::from_bits).context("no number");
            bits.iter().map(number).collect()
        };
        let numbers: [f64; 5] =
            list("numbers")?.try_into().map_err(|_| anyhow::anyhow!("not five numbers"))?;
        let [obtaining_time, waiting, cs_per_second, units_in_use, messages_per_cs] = numbers;
        let maybe = |name: &str| value[name].as_u64().map(f64::from_bits);
        Ok(Sample {
            obtaining_time,
            waiting,
            cs_per_second,
            units_in_use,
            messages_per_cs,
            synchronization_delay: maybe("synchronization_delay"),
            detection: list("detection")?,
            unknown: value["unknown"].as_u64().context("no unknown")? as u32,
            crashes_known: maybe("crashes_known"),
            falsely_suspected: value["falsely_suspected"].as_bool(),
            series: list("series")?,
            steps: value["steps"].as_u64().context("no steps")?,
        })
    }

    /// The same for another experiment, which took no steps for it.
    pub(crate) fn taken_over(&self) -> Sample {
        Sample { steps: 0, ..self.clone() }
    }

    pub(crate) fn of(&self, metric: Metric) -> Option<f64> {
        let is_per_grant = matches!(metric, Metric::ObtainingTime | Metric::MessagesPerCs);
        if is_per_grant && self.cs_per_second == 0.0 {
            return None;
        }
        Some(match metric {
            Metric::ObtainingTime => self.obtaining_time,
            Metric::Waiting => self.waiting,
            Metric::CsPerSecond => self.cs_per_second,
            Metric::UnitsInUse => self.units_in_use,
            Metric::MessagesPerCs => self.messages_per_cs,
            Metric::SynchronizationDelay => return self.synchronization_delay,
            Metric::DetectionTime => {
                let sum: f64 = self.detection.iter().sum();
                return (!self.detection.is_empty()).then(|| sum / self.detection.len() as f64);
            }
            Metric::CrashesKnown => return self.crashes_known,
            Metric::FalselySuspected => {
                return self.falsely_suspected.map(|is| f64::from(u8::from(is)));
            }
        })
    }
}

/// How often it is looked who knows of a crash, in seconds.
const LOOK_EVERY: f64 = 0.25;

/// Runs one setting once.
///
/// # Errors
/// A [`Breach`]: of a law, or a live node was taken for dead that did not stand still.
pub(crate) fn play(sweep: &Sweep, setting: &Setting, seed: u64) -> anyhow::Result<Sample> {
    let plan = plan(sweep, setting, seed)?;
    setting.protocol.visit(setting, Run { sweep, setting, plan: &plan })
}

struct Run<'a> {
    sweep: &'a Sweep,
    setting: &'a Setting,
    plan: &'a Plan,
}

impl Work for Run<'_> {
    type Outcome = anyhow::Result<Sample>;

    fn with<P: Watched>(self, pool: &P::Pool) -> anyhow::Result<Sample> {
        let Run { sweep, setting, plan } = self;
        let mut session = Session::<P>::new(plan, pool, Watch::default())?;
        session.stagger();
        let mut casualties = Casualties::new(sweep, setting, plan.seed);
        casualties.dismiss_clients(&mut session)?;
        let end = sweep.warm_up + sweep.measured;
        let mut before = None;
        let mut series = Vec::new();
        let mut level = (0.0, 0.0);
        loop {
            let now = session.now() as f64 / 1e9;
            if before.is_none() && now >= sweep.warm_up {
                before = Some(session.measures().clone());
            }
            if sweep.series_step > 0.0 && now - level.0 >= sweep.series_step - 1e-9 {
                let area = session.measures().in_use.mean() * now;
                series.push((area - level.1) / (now - level.0));
                level = (now, area);
            }
            casualties.look(&session)?;
            if now >= end || sweep.until_known && casualties.all_known() {
                break;
            }
            casualties.strike(&mut session)?;
            let mut next = end.min(casualties.next_look(now));
            if before.is_none() {
                next = next.min(sweep.warm_up);
            }
            if sweep.series_step > 0.0 {
                next = next.min(level.0 + sweep.series_step);
            }
            session.advance((next * 1e9) as u64)?;
        }
        let before = before.unwrap_or_else(|| session.measures().clone());
        let mut sample = between(&before, session.measures());
        // More wait than there are units: then none is idle because nobody wants it. Units that
        // crashes cost are not waiting for anybody.
        let units = f64::from(setting.units);
        if setting.crashes == 0 && sample.waiting > units && sample.cs_per_second > 0.0 {
            let idle = (units - sample.units_in_use) / sample.cs_per_second;
            sample.synchronization_delay = Some(idle);
        }
        casualties.report(&mut sample);
        sample.series = series;
        Ok(sample)
    }
}

/// What happened between two readings of the measures.
fn between(before: &Measures, after: &Measures) -> Sample {
    let grants = (after.grants - before.grants) as f64;
    let seconds = (after.elapsed - before.elapsed) as f64 / 1e9;
    let total = |m: &Measures| m.waiting.mean() * m.waiting.count() as f64;
    let area =
        |m: &Measures| (m.queue.mean() * m.elapsed as f64, m.in_use.mean() * m.elapsed as f64);
    let (waited, used) = (area(after).0 - area(before).0, area(after).1 - area(before).1);
    let ratio = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
    Sample {
        obtaining_time: ratio(total(after) - total(before), grants) / 1e9,
        waiting: ratio(waited / 1e9, seconds),
        cs_per_second: ratio(grants, seconds),
        units_in_use: ratio(used / 1e9, seconds).max(0.0),
        messages_per_cs: ratio((after.messages_sent() - before.messages_sent()) as f64, grants),
        steps: after.steps,
        ..Sample::default()
    }
}

/// Who crashes when, and who knows.
struct Casualties {
    /// Victims in order, each with the time of its crash and, later, of everybody's knowing.
    victims: Vec<(NodeId, f64, Option<f64>)>,
    struck: usize,
    nodes: u32,
    idle: Vec<NodeId>,
    /// Who stands still, from when, and for how long; `None` if nobody does.
    still: Option<(NodeId, f64, f64)>,
    is_still_ahead: bool,
    /// Whether anybody has an opinion at all.
    is_watched: bool,
    falsely_suspected: bool,
}

impl Casualties {
    fn new(sweep: &Sweep, setting: &Setting, seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0xdead);
        let mut nodes: Vec<u32> = (0..setting.nodes).collect();
        let mut pick = || nodes.swap_remove(rng.below(nodes.len() as u64) as usize);
        let victims = (0..setting.crashes).map(|number| {
            let at = sweep.crash_at + f64::from(number) * setting.crash_every;
            (NodeId(pick()), at, None)
        });
        let victims = victims.collect();
        let idle = (0..setting.idle).map(|_| NodeId(pick())).collect();
        let lasts = setting.freeze;
        let still = (lasts > 0.0).then(|| (NodeId(pick()), sweep.crash_at, lasts));
        Casualties {
            victims,
            struck: 0,
            nodes: setting.nodes,
            idle,
            still,
            is_still_ahead: still.is_some(),
            is_watched: true,
            falsely_suspected: false,
        }
    }

    fn dismiss_clients<P: Watched>(&self, session: &mut Session<'_, P>) -> Result<(), Breach> {
        self.idle.iter().try_for_each(|&node| session.dismiss(node))
    }

    fn all_known(&self) -> bool {
        self.victims.iter().all(|victim| victim.2.is_some())
    }

    /// When something is due.
    fn next_look(&self, now: f64) -> f64 {
        let next = self.victims.get(self.struck).map_or(f64::INFINITY, |victim| victim.1);
        let next = match self.still {
            Some((_, at, _)) if self.is_still_ahead => next.min(at),
            _ => next,
        };
        let unknown = self.victims[..self.struck].iter().any(|victim| victim.2.is_none());
        let waiting = unknown || self.still.is_some() && !self.is_still_ahead;
        if waiting { next.min(now + LOOK_EVERY) } else { next }
    }

    fn strike<P: Watched>(&mut self, session: &mut Session<'_, P>) -> Result<(), Breach> {
        while let Some(&(victim, at, _)) = self.victims.get(self.struck) {
            if at > session.now() as f64 / 1e9 {
                break;
            }
            session.kill(victim)?;
            self.struck += 1;
        }
        if let Some((node, at, lasts)) = self.still
            && self.is_still_ahead
            && at <= session.now() as f64 / 1e9
        {
            session.freeze(node, (lasts * 1e9) as u64);
            self.is_still_ahead = false;
        }
        Ok(())
    }

    /// Notes which crashes everybody knows of by now, and makes sure that nobody alive is taken for
    /// dead unless it stood still.
    fn look<P: Watched>(&mut self, session: &Session<'_, P>) -> Result<(), Breach> {
        let dead: NodeSet = self.victims[..self.struck].iter().map(|victim| victim.0).collect();
        let mut known = dead.clone();
        for node in (0..self.nodes).map(NodeId) {
            let Some(participant) = session.participant(node) else { continue };
            let Some(crashed) = participant.crashed() else {
                self.is_watched = false;
                return Ok(());
            };
            let is_right = crashed.is_subset(&dead);
            self.falsely_suspected |= !is_right;
            let is_excused = self.still.is_some();
            if !is_right && !is_excused {
                let what = format!("{node} takes a live node for dead: {crashed}");
                return Err(Breach { law: "no false suspicion", what });
            }
            known = known.intersection(crashed);
        }
        let now = session.now() as f64 / 1e9;
        for victim in &mut self.victims[..self.struck] {
            if victim.2.is_none() && known.contains(victim.0) {
                victim.2 = Some(now);
            }
        }
        Ok(())
    }

    fn report(&self, sample: &mut Sample) {
        let known = self.victims.iter().filter_map(|&(_, at, known)| Some(known? - at));
        sample.detection = known.collect();
        let (all, known) = (self.victims.len(), sample.detection.len());
        sample.unknown = (all - known) as u32;
        if self.is_watched {
            sample.crashes_known = (all > 0).then(|| known as f64 / all as f64);
            sample.falsely_suspected = self.still.map(|_| self.falsely_suspected);
        }
    }
}

/// Messages per grant of Raymond's protocol without pauses, where all use their units as long, or
/// as chance has it.
///
/// # Errors
/// A [`Breach`].
pub(crate) fn messages_of_raymond(
    nodes: u32,
    units: u32,
    even: bool,
    seconds: u64,
) -> anyhow::Result<f64> {
    let sweep = Sweep { rho: super::setting::Many::One(0.0), ..Sweep::default() };
    let mut setting = sweep.settings_of(super::contender::Contender::Raymond);
    (setting.nodes, setting.units) = (nodes, units);
    let mut plan = plan(&sweep, &setting, 1)?;
    if !even {
        plan.workload.hold = Span::Exponential((setting.hold * 1e9) as u64);
    }
    let pool = quorate_protocols::broadcast::Pool::raymond(nodes, units);
    let mut session =
        Session::<quorate_protocols::reference::Raymond>::new(&plan, &pool, Watch::default())?;
    session.stagger();
    session.advance(seconds * 1_000_000_000)?;
    let measures = session.measures();
    Ok(measures.messages_sent() as f64 / measures.grants.max(1) as f64)
}

fn plan(sweep: &Sweep, setting: &Setting, seed: u64) -> anyhow::Result<Plan> {
    let nanos = |seconds: f64| (seconds * 1e9) as u64;
    let even = |mean: f64, spread: f64| Span::Uniform {
        low: nanos(mean * (1.0 - spread)),
        high: nanos(mean * (1.0 + spread)),
    };
    let think = setting.rho * setting.hold;
    let think = Span::Normal { mean: nanos(think), deviation: nanos(think * sweep.think_spread) };
    let delay = Delay::Sites {
        count: sweep.sites,
        inside: even(setting.latency * sweep.inside, sweep.inside_spread),
        between: even(setting.latency, sweep.latency_spread),
    };
    Ok(Plan {
        seed,
        nodes: setting.nodes,
        pool: PoolPlan {
            units: setting.units,
            backfill: 0,
            lease: None,
            drift_ppm: 0,
            retry: Duration::from_secs(1),
            durable: false,
            arbiter: 0,
        },
        workload: Workload {
            arrivals: Arrivals::Closed { clients_per_node: 1, think },
            hold: Span::Constant(nanos(setting.hold)),
            want: sweep.want.parse()?,
            cancel_ppm: 0,
            patience: Span::ZERO,
        },
        links: Links { ordered: setting.protocol.needs_order(), ..Links::reliable(delay) },
        sync: Span::ZERO,
        drift_ppm: 0,
        faults: Faults::none(),
        duration: u64::MAX,
        steps_max: u64::MAX,
        grants_max: u64::MAX,
        silence: 0,
        council: None,
    })
}
