//! Asynchronous runs: messages, claims, releases and withdrawals in any order (spec 5.3).

use super::*;

/// A ring under a scheduler that knows no fairness but that of chance.
pub(super) struct Chaos<M: Stabilizing> {
    pub(super) track: Track<M>,
    pub(super) chance: Chance,
    /// Whether clients still ask.
    pub(super) asking: bool,
    /// Of a thousand steps, how many are timeouts without need.
    pub(super) premature: u64,
    pub(super) grants: u64,
}

impl<M: Stabilizing> Chaos<M> {
    pub(super) fn new(track: Track<M>, seed: u64) -> Self {
        Chaos { track, chance: Chance(seed), asking: true, premature: 0, grants: 0 }
    }

    pub(super) fn step(&mut self) {
        let station = self.chance.below(self.track.size() as u64) as usize;
        let need = 1 + self.chance.below(u64::from(self.track.terms.claim_max)) as u32;
        let granted = match self.chance.below(20) {
            0 if self.asking => self.track.step(station, |m, t, out| m.request(t, need, out)),
            1 if self.track.stations[station].station().in_use() > 0 => {
                self.track.step(station, M::leave)
            }
            // A withdrawal, more seldom.
            2 if self.asking && self.chance.below(4) == 0 => self.track.step(station, M::leave),
            3 => self.root(),
            4 => self.track.step(station, M::nudge),
            _ => self.track.deliver(station),
        };
        self.grants += u64::from(granted);
    }

    /// The root's alarms: early only if that was asked for.
    fn root(&mut self) -> bool {
        let launched = self.track.stations[0].has_launched();
        let nothing_under_way = !self
            .track
            .links
            .iter()
            .flatten()
            .any(|message| matches!(message, Message::Controller(_) | Message::Frame(_)));
        if launched && (nothing_under_way || self.chance.below(1000) < self.premature) {
            return self.track.step(0, M::timeout);
        }
        self.chance.below(20) == 0 && self.track.step(0, M::launch)
    }

    pub(super) fn run(&mut self, steps: usize, mut check: impl FnMut(&Track<M>)) {
        for _ in 0..steps {
            self.step();
            check(&self.track);
        }
    }

    /// Clients stop asking; whoever waits must be served, whoever was is soon over.
    pub(super) fn everyone_is_served(&mut self, steps: usize) -> bool {
        self.asking = false;
        for _ in 0..steps {
            self.step();
            if self.track.stations.iter().all(|m| m.station().standing == Standing::Out) {
                return true;
            }
        }
        false
    }
}

const RINGS: [(u32, u32, usize); 6] =
    [(1, 1, 1), (2, 2, 2), (2, 2, 3), (4, 3, 6), (3, 3, 3), (8, 2, 12)];

fn closure<M: Stabilizing>(seeds: u64) {
    for (units, claim_max, size) in RINGS {
        let terms = terms(units, claim_max, size);
        for seed in 0..seeds {
            let mut chaos = Chaos::new(Track::<M>::started(terms, size), seed);
            chaos.run(2000, |track| {
                assert!(M::is_legitimate(track), "seed {seed}: {track:#?}");
                assert!(track.in_use() <= u64::from(units));
            });
            assert!(chaos.everyone_is_served(400_000), "{units} {size} seed {seed}");
            assert!(chaos.grants > 0);
        }
    }
}

fn convergence<M: Stabilizing>(seeds: u64) {
    for (units, claim_max, size) in RINGS {
        let terms = terms(units, claim_max, size);
        for seed in 0..seeds {
            let mut chaos = Chaos::new(Track::<M>::new(terms, size), seed);
            let chance = &mut chaos.chance;
            chaos.track = Track::scrambled(terms, size, 4, &mut |bound| chance.below(bound));
            chaos.track.settle(&mut |_| {});
            let mut steps = 0;
            while !M::is_legitimate(&chaos.track) {
                chaos.step();
                steps += 1;
                assert!(steps < 400_000, "{units} {size} seed {seed}: never legitimate");
            }
            chaos.run(500, |track| assert!(M::is_legitimate(track), "seed {seed}"));
            assert!(chaos.everyone_is_served(400_000), "{units} {size} seed {seed}");
        }
    }
}

/// A timeout that comes too early costs messages, never safety or service.
fn premature<M: Stabilizing>(seeds: u64) {
    for (units, claim_max, size) in RINGS {
        let terms = terms(units, claim_max, size);
        for seed in 0..seeds {
            let mut chaos = Chaos::new(Track::<M>::started(terms, size), seed);
            chaos.premature = 200;
            chaos.run(2000, |track| {
                assert!(track.in_use() <= u64::from(units), "seed {seed}");
            });
            assert!(chaos.everyone_is_served(400_000), "{units} {size} seed {seed}");
        }
    }
}

#[test]
fn from_a_legitimate_ring_only_legitimate_rings_follow() {
    closure::<core::Core<Count>>(20);
    closure::<core::Core<Named>>(10);
    closure::<train::Train<Count>>(20);
    closure::<train::Train<Named>>(10);
}

#[test]
fn from_any_ring_a_legitimate_one_follows_and_everyone_is_served() {
    convergence::<core::Core<Count>>(40);
    convergence::<core::Core<Named>>(20);
    convergence::<train::Train<Count>>(40);
    convergence::<train::Train<Named>>(20);
}

#[test]
fn an_early_timeout_is_harmless() {
    premature::<core::Core<Count>>(20);
    premature::<train::Train<Count>>(20);
    premature::<train::Train<Named>>(20);
}
