//! `arbiter` in the laboratory.

use std::time::Duration;

use quorate_core::{Lease, Protocol};
use quorate_protocols::arbiter::{self, Arbiter};
use quorate_protocols::quorums::Quorums;
use quorate_protocols::quorums::family::Need;
use quorate_protocols::voting::{self, Settled};
use quorate_sim::{Needs, Plan};

use super::options::Group;
use super::quorums::{Mode, QuorumOptions, as_planned, is_drawn};
use super::{Checked, Does, Offered, Options, Registered};
use crate::commands::check;

pub(super) const ARBITER: Registered = Registered {
    name: Arbiter::NAME,
    about: "Quorums decide",
    does: Does::all::<Arbiter>(),
    variants: &[],
    options: &[Group::Quorums],
    swarms: &["", " --mode named", " --naming"],
};

impl QuorumOptions {
    /// A pool of permissions, as far as these options make it, and what its quorums are worth.
    pub(crate) fn arbiter(
        &self,
        nodes: u32,
        units: u32,
    ) -> anyhow::Result<(arbiter::Pool, voting::Worth)> {
        let mode = match self.mode {
            Some(Mode::Named) => voting::Mode::Named,
            _ => voting::Mode::Arbiter,
        };
        match self.terms(mode).settle(nodes, units)? {
            Settled { pool: voting::Pool::Arbiter(mut pool), worth } => {
                pool.hedge = self.hedge.unwrap_or(0);
                Ok((pool, worth))
            }
            Settled { .. } => unreachable!("permissions make a pool of permissions"),
        }
    }

    /// What the swarm plays when nothing is said: every mode, and families that fit.
    fn drawn(plan: &Plan) -> arbiter::Pool {
        const KINDS: [(Mode, &str, u32); 9] = [
            (Mode::Count, "uniform", u32::MAX),
            (Mode::Named, "majority", u32::MAX),
            (Mode::Count, "threshold", u32::MAX),
            (Mode::Count, "uniform", 2),
            (Mode::Named, "grid", u32::MAX),
            (Mode::Count, "hierarchy", u32::MAX),
            (Mode::Named, "hierarchy", u32::MAX),
            (Mode::Count, "cube", 2),
            (Mode::Count, "singleton", u32::MAX),
        ];
        let (nodes, units) = (plan.nodes, plan.pool.units);
        let (mode, spec, most) = KINDS[(plan.seed % KINDS.len() as u64) as usize];
        let holders_max = most.min(units);
        let (n, k) = (nodes as usize, units as usize);
        let need = match mode {
            Mode::Named => Need::coterie(n, k),
            Mode::Count => Need::counting(n, k, holders_max as usize),
        };
        let mut pool = arbiter::Pool::new(units, nodes);
        // Where a family does not fit the nodes, the uniform one always does.
        pool.quorums =
            need.quorums(spec).unwrap_or_else(|_| Quorums::uniform(nodes, need.meet as u32));
        pool.mode = match mode {
            Mode::Named => arbiter::Mode::Named,
            Mode::Count => arbiter::Mode::Count { holders_max, backfill: 0 },
        };
        pool.hedge = (plan.seed % 3) as u32;
        pool.patience = Some(2 + (plan.seed % 2) as u32);
        pool.naming = mode == Mode::Count && plan.seed / KINDS.len() as u64 % 4 == 3;
        pool
    }
}

impl Offered for Arbiter {
    const NEEDS: Needs = Needs { order: false, reliability: false, permanence: false };

    fn pool(plan: &Plan, options: &Options) -> anyhow::Result<arbiter::Pool> {
        let options = &options.quorums;
        let length = plan.pool.lease();
        let mut pool = match is_drawn(plan, options) {
            true => QuorumOptions::drawn(plan),
            false => as_planned(plan, options).arbiter(plan.nodes, plan.pool.units)?.0,
        };
        pool.lease = Lease::new(length, plan.pool.drift_ppm);
        pool.retry = plan.pool.retry;
        pool.durable = plan.pool.durable;
        if let arbiter::Mode::Count { backfill, .. } = &mut pool.mode {
            *backfill = plan.pool.backfill;
        }
        Ok(pool)
    }

    fn about(plan: &Plan, options: &Options) -> anyhow::Result<Option<String>> {
        if is_drawn(plan, &options.quorums) {
            let quorums = Self::pool(plan, options)?.quorums;
            return Ok(Some(format!("drawn: {} voters", quorums.members().len())));
        }
        let options = as_planned(plan, &options.quorums);
        let (_, worth) = options.arbiter(plan.nodes, plan.pool.units)?;
        Ok(Some(format!("{}: {}", worth.family, worth.summary)))
    }
}

impl Checked for Arbiter {
    const HAS_BOOKS: bool = true;

    fn small(args: &check::Args) -> anyhow::Result<arbiter::Pool> {
        let (mut pool, _) = args.chosen.options.quorums.arbiter(args.nodes as u32, args.units)?;
        pool.durable = args.durable;
        // Nobody is suspected here, and time stands still: whoever does not answer would be asked
        // beside others in every state.
        pool.patience = None;
        if let arbiter::Mode::Count { backfill, .. } = &mut pool.mode {
            *backfill = args.fairness.overtakes_max();
        }
        if !args.leases {
            pool.lease = Lease::new(Duration::MAX, 0);
        }
        Ok(pool)
    }

    fn early_rings() -> Option<u8> {
        Some(0)
    }
}
