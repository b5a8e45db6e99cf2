//! The pool of the paper's evaluation, or a smaller one, and what theory says about it.

use quorate_papers::Pace;

use super::HOLD;

/// A pool, and what theory says about it (broadcast spec 6.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct Pool {
    pub(super) nodes: u32,
    pub(super) units: u32,
    pub(super) crashes: u32,
    pub(super) sites: u32,
}

impl Pool {
    /// Of the paper; or one with the same bend, at rho = n/k - 1 where messages take no time.
    pub(super) fn of(pace: Pace) -> Pool {
        let small = Pool { nodes: 20, units: 2, crashes: 1, sites: 4 };
        pace.pick(small, Pool { nodes: 100, units: 10, crashes: 9, sites: 10 })
    }

    pub(super) fn file(self) -> String {
        let Pool { nodes, units, crashes, sites } = self;
        format!(
            "nodes = {nodes}\nunits = {units}\ncrashes_max = {crashes}\nsites = {sites}\n\
             inside = 0.01\ninside_spread = 0.5\nhold = {HOLD}\n"
        )
    }

    /// How long a unit lies idle between two holders under load: its permission travels.
    pub(super) fn idle(self, latency: f64) -> f64 {
        let far = self.nodes - self.nodes / self.sites;
        f64::from(far) / f64::from(self.nodes - 1) * latency
    }

    pub(super) fn plateau(self, latency: f64) -> f64 {
        f64::from(self.units) / (HOLD + self.idle(latency))
    }

    pub(super) fn floor(latency: f64) -> f64 {
        2.07 * latency
    }

    pub(super) fn knee(self, latency: f64) -> f64 {
        let cycle = f64::from(self.nodes) / self.plateau(latency);
        (cycle - HOLD - Pool::floor(latency)) / HOLD
    }

    pub(super) fn demand(self, latency: f64, rho: f64) -> f64 {
        f64::from(self.nodes) / (HOLD * (1.0 + rho) + Pool::floor(latency))
    }
}
