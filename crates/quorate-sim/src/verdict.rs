//! A run and its verdict.
//!
//! First the safety phase: faults, and every law at every moment. Then the liveness phase: faults
//! stop, every node runs that the pool cannot do without, and everything that was asked must be
//! granted. At last the world is at rest, and everything must be free again.

use std::fmt;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use quorate_core::{Corruptible, Protocol};
use quorate_laws::Breach;

use crate::corruption::Corruption;
use crate::film::Film;
use crate::hands::{Busy, Hands};
use crate::measure::Measures;
use crate::plan::Plan;
use crate::trace::Trace;
use crate::world::{Stop, World};
use crate::{Profile, Time};

/// How closely a run is watched.
#[derive(Default)]
pub struct Watch<'a> {
    /// Whether every step is followed by an audit and a look at the books.
    pub strict: bool,
    /// Stop at this true time, in nanoseconds.
    pub until: Option<u64>,
    /// Numbers up to this true time are kept apart, so that a run can be measured from then on.
    pub warm_up: u64,
    /// Whether the first claims of a closed loop are spread ([`crate::Session::stagger`]).
    pub stagger: bool,
    /// Where to write a line for every event.
    pub trace: Option<&'a mut dyn fmt::Write>,
    /// Where to record what a replay draws.
    pub film: Option<&'a mut Film>,
    /// Told now and then how far the run is, for whoever waits for it, who may end it.
    pub pulse: Option<&'a mut dyn FnMut(Pulse) -> ControlFlow<()>>,
}

/// How far a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pulse {
    /// True time, in nanoseconds.
    pub now: u64,
    /// Steps so far.
    pub steps: u64,
    /// Grants so far.
    pub grants: u64,
    /// Whether new claims are over, and what was asked is being served.
    pub calm: bool,
}

/// What participants take, if they count it ([`Protocol::footprint`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// Bytes of all of them.
    pub total: u64,
    /// Bytes of the largest.
    pub most: u64,
    /// How many they are.
    pub seats: u32,
    /// Bytes that the simulator itself keeps for each node.
    pub around: u64,
}

impl Memory {
    /// What a participant takes on average.
    pub fn mean(&self) -> f64 {
        self.total as f64 / f64::from(self.seats.max(1))
    }
}

impl fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("strict", &self.strict).finish_non_exhaustive()
    }
}

/// What a run was like.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Numbers of the safety phase...
    pub measures: Measures,
    /// ...and at the end of its warm-up, if it has one.
    pub warmed_up: Option<Measures>,
    /// Steps of both phases.
    pub steps: u64,
    /// True time at the end, in nanoseconds.
    pub ended_at: u64,
    /// What the participants took at the end, if they count it.
    pub memory: Option<Memory>,
    /// How it went.
    pub verdict: Verdict,
}

/// How a run went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// No law was broken, and everybody was served.
    Clean,
    /// No law was broken up to the moment at which the run was to stop, or was ended.
    Stopped,
    /// A law was broken.
    Broken(Breach),
}

impl Report {
    /// The line that replays a broken run up to the breach, given how the run was started.
    pub fn replay_line(&self, command: &str) -> String {
        // Rounded up to a whole millisecond: the run stops at the breach in any case.
        let until = Time(self.ended_at.div_ceil(1_000_000).max(1) * 1_000_000);
        format!("{command} --until {until} --trace")
    }
}

/// How a run drawn by the swarm is started from the command line.
pub fn swarm_command(protocol: &str, seed: u64, profile: Profile) -> String {
    format!("quorate-lab sim run --protocol {protocol} --swarm --seed {seed:#x} --faults {profile}")
}

/// Runs a plan.
pub fn run<'a, P: Protocol>(plan: &'a Plan, pool: &'a P::Pool, watch: Watch<'a>) -> Report {
    run_from::<P>(plan, pool, watch, None, None)
}

/// Runs a plan in which the pool is changed, one change after the other, as often as the plan of
/// the control plane says. Claims ask for what the first one has.
pub fn run_changing<'a, P: Protocol>(
    plan: &'a Plan,
    (pool, editions): (&'a P::Pool, &'a [P::Pool]),
    watch: Watch<'a>,
) -> Report {
    run_in::<P>(plan, (pool, editions), watch, None, None)
}

/// Runs a plan from any state: every variable of every participant is arbitrary, and so is what is
/// on the links. The laws are asked from the moment at which the pool is legitimate, which it must
/// become; after that it must be right like any other.
pub fn run_corrupted<'a, P: Corruptible>(
    plan: &'a Plan,
    pool: &'a P::Pool,
    watch: Watch<'a>,
) -> Report {
    let strict = watch.strict;
    run_from::<P>(plan, pool, watch, Some(Corruption::new(strict)), None)
}

/// Runs a plan in which somebody interferes.
pub fn run_with<'a, P: Protocol>(
    plan: &'a Plan,
    pool: &'a P::Pool,
    watch: Watch<'a>,
    hands: Hands,
) -> Report {
    let busy = Busy::new(hands, watch.strict, None);
    run_from::<P>(plan, pool, watch, None, Some(busy))
}

/// The same for a protocol that heals from any state, into which it can be brought, and in which it
/// can begin.
pub fn run_corrupted_with<'a, P: Corruptible>(
    plan: &'a Plan,
    pool: &'a P::Pool,
    watch: Watch<'a>,
    hands: Hands,
    from_start: bool,
) -> Report {
    let strict = watch.strict;
    let corruption = from_start.then(|| Corruption::new(strict));
    let busy = Busy::new(hands, strict, Some(Corruption::new));
    run_from::<P>(plan, pool, watch, corruption, Some(busy))
}

fn run_from<'a, P: Protocol>(
    plan: &'a Plan,
    pool: &'a P::Pool,
    watch: Watch<'a>,
    corruption: Option<Corruption<P>>,
    busy: Option<Busy<P>>,
) -> Report {
    run_in::<P>(plan, (pool, &[]), watch, corruption, busy)
}

fn run_in<'a, P: Protocol>(
    plan: &'a Plan,
    (pool, editions): (&'a P::Pool, &'a [P::Pool]),
    watch: Watch<'a>,
    corruption: Option<Corruption<P>>,
    mut busy: Option<Busy<P>>,
) -> Report {
    let (strict, until) = (watch.strict, watch.until.unwrap_or(u64::MAX));
    let (stagger, warm_up) = (watch.stagger, watch.warm_up);
    let trace = Trace::new(watch);
    let mut world = match catch(|| World::<P>::new(plan, pool, strict, trace)) {
        Ok(world) => world,
        Err(breach) => {
            let measures = Measures::new(P::capacity(pool), P::KINDS.len(), 0);
            let verdict = Verdict::Broken(breach);
            let (steps, ended_at, warmed_up, memory) = Default::default();
            return Report { measures, warmed_up, steps, ended_at, memory, verdict };
        }
    };
    world.will_change(editions);
    let (mut measures, mut warmed_up) = (None, None);
    let verdict = catch(|| {
        if stagger {
            world.stagger();
        }
        if let Some(corruption) = corruption {
            world.corrupt(corruption)?;
        }
        if warm_up > 0 {
            world.run_until(warm_up.min(world.plan.duration).min(until))?;
            world.finish_measures();
            warmed_up = Some(world.measures.clone());
        }
        play(&mut world, until, &mut measures, &mut busy)
    })
    .unwrap_or_else(Verdict::Broken);
    if let Verdict::Broken(breach) = &verdict {
        world.note(&"law", format_args!("BROKEN {breach}"));
    }
    let (steps, ended_at) = (world.measures.steps, world.now);
    let legitimate_at = world.measures.legitimate_at;
    let memory = world.memory();
    let mut measures = measures.unwrap_or_else(|| {
        world.close_measures();
        world.measures
    });
    measures.legitimate_at = legitimate_at;
    Report { measures, warmed_up, steps, ended_at, memory, verdict }
}

/// A participant that contradicts itself panics, which is a breach like any other.
fn catch<T>(work: impl FnOnce() -> Result<T, Stop>) -> Result<T, Breach> {
    let done = catch_unwind(AssertUnwindSafe(work)).map(|done| done.map_err(|stop| *stop));
    done.unwrap_or_else(|panic| {
        let what = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("a panic without words");
        Err(Breach { law: "no panic", what: what.to_string() })
    })
}

fn play<P: Protocol>(
    world: &mut World<'_, P>,
    until: u64,
    measures: &mut Option<Measures>,
    busy: &mut Option<Busy<P>>,
) -> Result<Verdict, Stop> {
    let mut advance = |world: &mut World<'_, P>, end| match busy {
        Some(busy) => world.run_with(busy, end),
        None => world.run_until(end),
    };
    advance(world, world.plan.duration.min(until))?;
    if world.ended || world.now >= until {
        return Ok(Verdict::Stopped);
    }
    world.close_measures();
    *measures = Some(world.measures.clone());
    world.calm_down()?;
    world.progress_at = world.now;
    let patience = world.plan.patience();
    loop {
        let end = world.progress_at.saturating_add(patience);
        advance(world, end.min(until))?;
        if world.ended || world.now >= until {
            return Ok(Verdict::Stopped);
        }
        if world.progress_at.saturating_add(patience) <= world.now || world.is_over() {
            break;
        }
    }
    let books = world.all_books();
    world
        .laws
        .at_rest(&world.who_waits(), books.iter().map(|(node, entries)| (*node, &entries[..])))?;
    if !world.everybody_is_done() {
        let what = "long after faults stopped, a client is not done".into();
        return Err(Breach { law: "everyone served", what }.into());
    }
    Ok(Verdict::Clean)
}
