//! The same processes with delays, uses and pauses: a run of the algorithm in time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::model::{Message, Phase, Process, Terms};
use crate::chance::Chance;

/// How long messages take.
#[derive(Clone, Copy, Debug)]
pub(super) enum Delays {
    /// So many sites; between two about so long, and inside one a hundredth of it.
    Sites(usize, f64),
    /// Anything between these, wherever from.
    Flat(f64, f64),
}

/// What is run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) terms: Terms,
    pub(super) delays: Delays,
    /// How long units are used, and how much longer a process thinks in between.
    pub(super) hold: f64,
    pub(super) rho: f64,
    /// Who never asks.
    pub(super) idle: u32,
    /// Who asks so many times more rarely.
    pub(super) rare: (u32, f64),
    /// After how long without a query a process makes one; 0 for never.
    pub(super) probe: f64,
    /// When this many crash, at once, highest first.
    pub(super) crash_at: f64,
    pub(super) crashes: u32,
    /// Process 0 stands still for so long, at the time of the crashes.
    pub(super) still: f64,
    pub(super) end: f64,
    pub(super) seed: u64,
}

/// What came of it.
#[derive(Clone, Default, Debug)]
pub(super) struct Ran {
    pub(super) grants: u64,
    pub(super) messages: u64,
    /// Most inside at once.
    pub(super) most: u32,
    /// When every live process knew of all crashes, from the crash on; and who asks rarely.
    pub(super) known_after: Option<f64>,
    pub(super) rare_after: Option<f64>,
    /// Whether a live process was taken for crashed.
    pub(super) suspected: bool,
    /// First learnt from one's own query, and from a request.
    pub(super) own: u64,
    pub(super) told: u64,
    /// Of these, how often from somebody who had permitted the request that waited.
    pub(super) withdrawn: u64,
    /// Entries after the crashes and a half of all the time.
    pub(super) later: u64,
    /// Whether everybody was always heard in time by more than f, itself among them.
    pub(super) responsive: bool,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Ask(usize),
    Leave(usize),
    Deliver(usize, usize, Message),
    Probe(usize),
    Crash,
}

struct Run<'a, const N: usize> {
    plan: &'a Plan,
    chance: Chance,
    processes: [Process<N>; N],
    alive: u32,
    queried_at: [f64; N],
    /// Who has always heard each in time.
    heard_by: [u32; N],
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    events: Vec<Event>,
    now: f64,
    ran: Ran,
}

/// Runs it with `N` processes.
pub(super) fn run<const N: usize>(plan: &Plan) -> Ran {
    let mut run = Run {
        plan,
        chance: Chance(plan.seed),
        processes: [Process::<N>::new(); N],
        alive: ((1u64 << N) - 1) as u32,
        queried_at: [0.0; N],
        heard_by: [u32::MAX; N],
        queue: BinaryHeap::new(),
        events: Vec::new(),
        now: 0.0,
        ran: Ran::default(),
    };
    for i in (0..N).filter(|i| plan.idle >> i & 1 == 0) {
        let after = run.think(i) * run.chance.between(0.0, 1.0);
        run.at(after, Event::Ask(i));
    }
    if plan.probe > 0.0 {
        for i in 0..N {
            let after = run.chance.between(0.0, plan.probe);
            run.at(after, Event::Probe(i));
        }
    }
    run.at(plan.crash_at, Event::Crash);
    while let Some(Reverse((time, number))) = run.queue.pop() {
        run.now = time as f64 / 1e9;
        if run.now > plan.end {
            break;
        }
        run.happens(run.events[number as usize]);
    }
    let everybody = ((1u64 << N) - 1) as u32;
    let heard = run.heard_by.iter().map(|by| (by & everybody).count_ones());
    run.ran.responsive = heard.min().is_some_and(|least| least > plan.terms.crashes_max);
    run.ran
}

impl<const N: usize> Run<'_, N> {
    fn at(&mut self, time: f64, event: Event) {
        self.queue.push(Reverse(((time * 1e9) as u64, self.events.len() as u64)));
        self.events.push(event);
    }

    fn think(&mut self, i: usize) -> f64 {
        let mean = self.plan.rho * self.plan.hold;
        let rarely = if self.plan.rare.0 >> i & 1 == 1 { self.plan.rare.1 } else { 1.0 };
        rarely * self.chance.normal(mean, mean / 4.0)
    }

    /// Whether a process stands still, and until when.
    fn still_until(&self, i: usize) -> Option<f64> {
        let Plan { still, crash_at, .. } = *self.plan;
        let until = crash_at + still;
        (i == 0 && self.now >= crash_at && self.now < until).then_some(until)
    }

    fn happens(&mut self, event: Event) {
        let terms = self.plan.terms;
        let actor = match event {
            Event::Ask(i) | Event::Leave(i) | Event::Probe(i) | Event::Deliver(_, i, _) => i,
            Event::Crash => return self.crash(),
        };
        if self.alive >> actor & 1 == 0 {
            return;
        }
        if let Some(until) = self.still_until(actor) {
            return self.at(until, event);
        }
        let mut out = Vec::new();
        match event {
            Event::Ask(i) => {
                self.queried_at[i] = self.now;
                let seen = self.processes[i].request(terms, i, &mut out);
                self.note(i, &seen);
            }
            Event::Leave(i) => {
                self.processes[i].leave(terms, &mut out);
                let after = self.now + self.think(i);
                self.at(after, Event::Ask(i));
            }
            Event::Probe(i) => {
                if self.now - self.queried_at[i] >= self.plan.probe {
                    self.queried_at[i] = self.now;
                    self.processes[i].probe(terms, i, &mut out);
                }
                self.at(self.now + self.plan.probe, Event::Probe(i));
            }
            Event::Deliver(from, to, message) => {
                if let Some(late) = self.processes[to].truly_ends(terms, from, message) {
                    for l in (0..N).filter(|l| late & self.alive & 1 << l != 0) {
                        self.heard_by[l] &= !(1 << to);
                    }
                }
                let seen = self.processes[to].hear(terms, to, from, message, &mut out);
                self.note(to, &seen);
            }
            Event::Crash => {}
        }
        self.ran.messages += out.len() as u64;
        for (to, message) in out {
            let takes = match self.plan.delays {
                Delays::Flat(low, high) => self.chance.between(low, high),
                Delays::Sites(sites, time) => {
                    let size = N.div_ceil(sites);
                    let near = actor / size == to / size;
                    let (low, high) = if near { (0.005, 0.015) } else { (0.95, 1.05) };
                    time * self.chance.between(low, high)
                }
            };
            self.at(self.now + takes, Event::Deliver(actor, to, message));
        }
    }

    fn crash(&mut self) {
        for i in (0..N).rev().take(self.plan.crashes as usize) {
            self.alive &= !(1 << i);
        }
    }

    fn note(&mut self, i: usize, seen: &super::model::Seen) {
        let ran = &mut self.ran;
        ran.own += u64::from(seen.own.count_ones());
        ran.told += u64::from(seen.told.count_ones());
        ran.withdrawn += u64::from(seen.withdrawn.count_ones());
        ran.suspected |= self.processes[i].crashed & self.alive != 0;
        if seen.own | seen.told != 0 {
            self.look();
        }
        if seen.entered.is_some() {
            self.ran.grants += 1;
            self.ran.later += u64::from(self.now > self.plan.crash_at + 0.5 * self.plan.end);
            let is_in =
                |j: &usize| self.alive >> j & 1 == 1 && self.processes[*j].phase == Phase::Inside;
            self.ran.most = self.ran.most.max((0..N).filter(is_in).count() as u32);
            self.at(self.now + self.plan.hold, Event::Leave(i));
        }
    }

    fn look(&mut self) {
        let dead = ((1u64 << N) - 1) as u32 & !self.alive;
        let after = self.now - self.plan.crash_at;
        let knows = |i: usize| self.processes[i].crashed & dead == dead;
        let all = |mask: u32| (0..N).filter(|i| mask >> i & 1 == 1).all(knows);
        if dead != 0 && self.ran.known_after.is_none() && all(self.alive) {
            self.ran.known_after = Some(after);
        }
        let rare = self.plan.rare.0 & self.alive;
        if dead != 0 && rare != 0 && self.ran.rare_after.is_none() && all(rare) {
            self.ran.rare_after = Some(after);
        }
    }
}
