//! How long a ring takes to become right, in unit-delay rounds (ring spec 5.1 and 5.5).
//!
//! In a round everything that is under way makes one hop, so that a traversal of n stations takes n
//! rounds, and results are given in units of n. Chance comes in as `draw(n)`, any number below n.

use super::track::Track;
use crate::ring::legitimate::Stabilizing;
use crate::ring::station::StationClaim;

/// What stations' clients do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// Nobody asks; whatever the start left behind is used for up to six rounds.
    Idle,
    /// Everybody asks again as soon as its claim is over.
    Heavy {
        /// Rounds for which units are used, on average.
        uses: u32,
    },
}

/// How to run a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RingTrial {
    /// For so many rounds.
    pub rounds: u32,
    /// The root waits so long for its traversal.
    pub timeout: u32,
    /// A train that nobody needs stands so long.
    pub park: u32,
    /// What clients do.
    pub load: Load,
}

impl RingTrial {
    /// As in ring spec 5.1: a timeout of two traversals, and as many rounds as it takes to see that
    /// nothing happens any more.
    pub fn new(size: usize, load: Load) -> Self {
        let n = size as u32;
        let uses = match load {
            Load::Idle => 6,
            Load::Heavy { uses } => 4 * uses,
        };
        RingTrial { rounds: 10 * n + 2 * uses + 20, timeout: 2 * n, park: 2 * n, load }
    }
}

/// What was seen in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Measured {
    /// Rounds until there was one traversal for good.
    pub controlled: u32,
    /// Rounds until there were exactly l tokens for good.
    pub exact: u32,
    /// Rounds until no more than l units were in use for good.
    pub safe: u32,
    /// Rounds in all.
    pub rounds: u32,
    /// Rounds of the second half, to which everything below belongs: what a fault costs is over
    /// then.
    pub calm: u32,
    /// Hops of messages.
    pub messages: u64,
    /// Claims granted.
    pub grants: u64,
    /// Units in use, summed over rounds.
    pub used: u64,
    /// Rounds that granted claims waited, in all.
    pub waited: u64,
    /// The longest of these waits.
    pub waited_max: u32,
}

impl Measured {
    /// Whether it was still wrong in the last fifth of the run: then it may never become right.
    pub fn has_failed(&self) -> bool {
        let late = self.rounds - self.rounds / 5;
        self.exact > late || self.safe > late || self.controlled > late
    }
}

/// A ring with its clients.
struct Run<'a, M: Stabilizing> {
    track: Track<M>,
    plan: RingTrial,
    draw: &'a mut dyn FnMut(u64) -> u64,
    /// Rounds for which each station's units will still be used.
    left: Vec<u32>,
    /// When each station asked.
    asked: Vec<u32>,
    /// Rounds since the root last began a traversal, or parked.
    quiet: u32,
    measured: Measured,
}

/// Runs a ring from whatever state it is in.
pub fn stabilize<M: Stabilizing>(
    track: Track<M>,
    plan: RingTrial,
    draw: &mut dyn FnMut(u64) -> u64,
) -> Measured {
    let size = track.size();
    let left = (0..size).map(|_| draw(7) as u32).collect();
    let measured = Measured { rounds: plan.rounds, ..Measured::default() };
    let mut run = Run { track, plan, draw, left, asked: vec![0; size], quiet: 0, measured };
    run.track.settle(&mut |_| {});
    for now in 0..plan.rounds {
        run.judge(now);
        run.round(now);
    }
    run.judge(plan.rounds);
    run.measured
}

impl<M: Stabilizing> Run<'_, M> {
    fn judge(&mut self, now: u32) {
        let (track, measured) = (&self.track, &mut self.measured);
        let in_use = track.in_use();
        if !M::is_controlled(track) {
            measured.controlled = now + 1;
        }
        if track.tokens() != u64::from(track.terms.units) {
            measured.exact = now + 1;
        }
        if in_use > u64::from(track.terms.units) {
            measured.safe = now + 1;
        }
    }

    fn round(&mut self, now: u32) {
        if self.is_calm(now) {
            self.measured.calm += 1;
            self.measured.messages += self.track.under_way() as u64;
            self.measured.used += self.track.in_use();
        }
        let before = self.traversal();
        let mut granted = Vec::new();
        self.track.round(&mut |station| granted.push(station));
        for station in granted {
            self.on_grant(station, now);
        }
        for station in 0..self.track.size() {
            self.client(station, now);
            self.act(station, now, M::nudge);
        }
        self.quiet = if self.traversal() == before { self.quiet + 1 } else { 0 };
        let launched = self.track.stations[0].has_launched();
        if launched && self.quiet >= self.plan.timeout {
            self.quiet = 0;
            self.act(0, now, M::timeout);
        } else if !launched && self.quiet >= self.plan.park {
            self.quiet = 0;
            self.act(0, now, M::launch);
        }
    }

    fn is_calm(&self, now: u32) -> bool {
        now >= self.plan.rounds / 2
    }

    /// Which traversal the root waits for, if it does.
    fn traversal(&self) -> (u64, bool) {
        let root = &self.track.stations[0];
        (root.station().seq, root.has_launched())
    }

    fn act(
        &mut self,
        station: usize,
        now: u32,
        act: impl FnOnce(&mut M, &crate::ring::Terms, &mut crate::ring::Post<M::Tokens>),
    ) {
        if self.track.step(station, act) {
            self.on_grant(station, now);
        }
    }

    fn on_grant(&mut self, station: usize, now: u32) {
        let uses = match self.plan.load {
            Load::Idle => 6,
            Load::Heavy { uses } => 2 * uses,
        };
        self.left[station] = (self.draw)(u64::from(uses) + 1) as u32;
        if !self.is_calm(now) {
            return;
        }
        let waited = now - self.asked[station];
        self.measured.grants += 1;
        self.measured.waited += u64::from(waited);
        self.measured.waited_max = self.measured.waited_max.max(waited);
    }

    /// What the client at a station does in this round.
    fn client(&mut self, station: usize, now: u32) {
        if let StationClaim::Using { .. } = self.track.stations[station].station().standing {
            match self.left[station].checked_sub(1) {
                Some(less) => self.left[station] = less,
                None => self.act(station, now, M::leave),
            }
        }
        let free = self.track.stations[station].station().standing == StationClaim::Out;
        if free && matches!(self.plan.load, Load::Heavy { .. }) {
            let need = (self.draw)(u64::from(self.track.terms.claim_max)) as u32 + 1;
            self.asked[station] = now;
            self.act(station, now, |machine, terms, out| machine.request(terms, need, out));
        }
    }
}
