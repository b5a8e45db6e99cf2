//! One run of an experiment.

use std::time::Duration;

use quorate_core::{NodeId, NodeSet};
use quorate_laws::Breach;
use quorate_sim::{
    Arrivals, Delay, Faults, Links, Plan, PoolPlan, Rng, Session, Span, Watch, Workload,
};

use super::metric::Metric;
use super::sample::Sample;
use super::setting::Setting;
use super::sweep::Sweep;
use crate::protocols::{Offered, Options};

/// How often it is looked who knows of a crash, in seconds.
const LOOK_EVERY: f64 = 0.25;

/// Runs one setting once.
///
/// # Errors
/// A [`Breach`]: of a law, or a live node was taken for dead that did not stand still.
pub(crate) fn play(sweep: &Sweep, setting: &Setting, seed: u64) -> anyhow::Result<Sample> {
    let plan = plan(sweep, setting, seed)?;
    let options = setting.protocol.options(setting);
    (setting.protocol.does().measure)(&Job { sweep, setting, plan: &plan, options: &options })
}

/// One run, for whoever knows the protocol's type.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    sweep: &'a Sweep,
    setting: &'a Setting,
    plan: &'a Plan,
    options: &'a Options,
}

/// Does it.
///
/// # Errors
/// Those of [`play`], or there is no such pool.
pub(crate) fn measure_with<P: Offered>(job: &Job<'_>) -> anyhow::Result<Sample> {
    let Job { sweep, setting, .. } = *job;
    let mut plan = job.plan.clone();
    plan.links.ordered |= P::NEEDS.order;
    let pool = P::pool(&plan, job.options)?;
    let mut session = Session::<P>::new(&plan, &pool, Watch::default())?;
    if sweep.stagger {
        session.stagger();
    }
    let mut casualties = Casualties::new(sweep, setting, plan.seed);
    casualties.dismiss_clients(&mut session)?;
    let end = sweep.warm_up + sweep.measured;
    let mut before = None;
    let mut series = Vec::new();
    let mut level = (0.0, 0.0);
    loop {
        let now = session.now() as f64 / 1e9;
        if before.is_none() && now >= sweep.warm_up && sweep.warm_up > 0.0 {
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
        if now < sweep.warm_up {
            next = next.min(sweep.warm_up);
        }
        if sweep.series_step > 0.0 {
            next = next.min(level.0 + sweep.series_step);
        }
        session.advance((next * 1e9) as u64)?;
    }
    let mut sample = Sample::between(before.as_ref(), session.closed_measures());
    casualties.report(&mut sample);
    sample.recover(sweep, setting, &series);
    sample.series = series;
    Ok(sample)
}

/// Only builds the pool of a setting.
///
/// # Errors
/// There is no such pool.
pub(crate) fn fits(sweep: &Sweep, setting: &Setting) -> anyhow::Result<()> {
    let plan = plan(sweep, setting, 1)?;
    (setting.protocol.does().fits)(&plan, &setting.protocol.options(setting))
}

impl Sample {
    /// Whether and when as many units are in use again as before the crashes, over a stretch of the
    /// series: nine tenths of it, since chance has its part.
    fn recover(&mut self, sweep: &Sweep, setting: &Setting, series: &[f64]) {
        if setting.crashes == 0 || series.is_empty() {
            return;
        }
        let step = sweep.series_step;
        let from = (sweep.warm_up / step).ceil() as usize;
        let crash = (sweep.crash_at / step).floor() as usize;
        let quiet = series.get(from..crash).unwrap_or_default();
        if quiet.is_empty() {
            return;
        }
        let usual = quiet.iter().sum::<f64>() / quiet.len() as f64;
        let last = sweep.crash_at + f64::from(setting.crashes - 1) * setting.crash_every;
        let first = (last / step).ceil() as usize;
        let again = (first..series.len()).find(|&at| series[at] >= 0.9 * usual);
        self.set(Metric::Recovered, Some(f64::from(u8::from(again.is_some()))));
        self.set(Metric::RecoveryTime, again.map(|at| (at + 1) as f64 * step - last));
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

    fn dismiss_clients<P: Offered>(&self, session: &mut Session<'_, P>) -> Result<(), Breach> {
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

    fn strike<P: Offered>(&mut self, session: &mut Session<'_, P>) -> Result<(), Breach> {
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
    fn look<P: Offered>(&mut self, session: &Session<'_, P>) -> Result<(), Breach> {
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
            let share = (all > 0).then(|| known as f64 / all as f64);
            sample.set(Metric::CrashesKnown, share);
            let suspected = f64::from(u8::from(self.falsely_suspected));
            sample.set(Metric::FalselySuspected, self.still.map(|_| suspected));
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
    let sweep = Sweep { rho: super::setting::Many::One(0.0), ..Sweep::of_papers() };
    let mut setting = sweep.settings_of(super::contender::Contender::raymond());
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
    let even = |mean: f64, spread: f64| match spread {
        0.0 => Span::Constant(nanos(mean)),
        _ => {
            Span::Uniform { low: nanos(mean * (1.0 - spread)), high: nanos(mean * (1.0 + spread)) }
        }
    };
    let about = |mean: f64, spread: Option<f64>| match spread {
        None => Span::Exponential(nanos(mean)),
        Some(0.0) => Span::Constant(nanos(mean)),
        Some(share) => Span::Normal { mean: nanos(mean), deviation: nanos(mean * share) },
    };
    let think = about(setting.rho * setting.hold, sweep.think_spread);
    let between = even(setting.latency, sweep.latency_spread);
    let delay = match sweep.sites {
        1 => Delay::Everywhere(between),
        count => Delay::Sites {
            count,
            inside: even(setting.latency * sweep.inside, sweep.inside_spread),
            between,
        },
    };
    let lease = (setting.lease > 0.0).then(|| Duration::from_secs_f64(setting.lease));
    let retry = (setting.retry > 0.0).then(|| Duration::from_secs_f64(setting.retry));
    Ok(Plan {
        seed,
        nodes: setting.nodes,
        pool: PoolPlan {
            units: setting.units,
            backfill: sweep.backfill,
            lease,
            drift_ppm: sweep.drift,
            retry: retry.unwrap_or(PoolPlan::NEVER),
            durable: false,
            arbiter: 0,
        },
        workload: Workload {
            arrivals: Arrivals::Closed { clients_per_node: sweep.clients_per_node, think },
            hold: about(setting.hold, sweep.hold_spread),
            want: sweep.want.parse()?,
            cancel_ppm: 0,
            patience: Span::ZERO,
        },
        links: Links { ordered: !sweep.reordering, ..Links::reliable(delay) },
        sync: Span::ZERO,
        drift_ppm: sweep.drift,
        faults: Faults::none(),
        duration: u64::MAX,
        steps_max: u64::MAX,
        grants_max: u64::MAX,
        silence: 0,
        council: None,
    })
}
