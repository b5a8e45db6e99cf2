//! `central` in the laboratory.

use std::sync::Arc;

use anyhow::ensure;
use quorate_core::{Lease, NodeId, Protocol};
use quorate_protocols::central::moving::{self, Moving};
use quorate_protocols::central::{Central, Pool};
use quorate_protocols::reference::{Judged, Operator};
use quorate_protocols::{Fairness, Goods};
use quorate_sim::{CouncilPlan, Needs, Plan, Want};

use super::{Checked, Does, Offered, Options, Registered, Variant};
use crate::commands::check;

pub(super) const CENTRAL: Registered = Registered {
    name: Central::NAME,
    about: "One node decides",
    does: Does::all::<Central>(),
    variants: &[
        Variant {
            name: "labels",
            about: "central, drawn plans: labels, moves, an operator; every theorem is judged",
            does: Does::simulated::<Judged>(),
        },
        Variant {
            name: "moving",
            about: "central: the seat moves as a control plane says; simulated, for drawn plans",
            does: Does::all::<Moving>(),
        },
    ],
    options: &[],
    swarms: &["", " --variant labels", " --variant moving"],
};

impl Offered for Central {
    const NEEDS: Needs = Needs { order: false, reliability: false, permanence: false };

    fn pool(plan: &Plan, _: &Options) -> anyhow::Result<Pool> {
        let plan = &plan.pool;
        let length = plan.lease();
        let mut goods = Goods::new(plan.units);
        goods.lease = Lease::new(length, plan.drift_ppm);
        goods.retry = plan.retry;
        goods.fairness = match plan.backfill {
            0 => Fairness::Fifo,
            bound => Fairness::Backfill(bound),
        };
        goods.durable = plan.durable;
        Ok(Pool { goods, arbiter: NodeId(plan.arbiter), moves: false })
    }
}

/// Fewest units that differ, so that every choice can be granted.
const LABELLED_MIN: u32 = 6;

impl Offered for Judged {
    const NEEDS: Needs = Central::NEEDS;

    fn fit(plan: &mut Plan, _: &Options) {
        plan.pool.units = plan.pool.units.max(LABELLED_MIN);
        // Every fourth pool is one in which all ask for one unit.
        let choices = Operator::choices(plan.pool.units, !plan.seed.is_multiple_of(4));
        let movable = [0, 300_000, 1_000_000][(plan.seed % 3) as usize];
        let want = Want::one_of(choices).expect("there are choices, all of some units");
        plan.workload.want = want.movable(movable);
    }

    fn pool(plan: &Plan, options: &Options) -> anyhow::Result<(Pool, Operator)> {
        let drawn = plan.steps_max < u64::MAX && plan.pool.units >= LABELLED_MIN;
        ensure!(drawn, "--variant labels is for plans drawn from a seed: sim seeds, or --swarm");
        let mut pool = Central::pool(plan, options)?;
        pool.goods.labels = Some(Arc::new(Operator::labels(pool.goods.units)));
        let every = [0, 11, 37, 150][(plan.seed / 4 % 4) as usize];
        Ok((pool, Operator { every, seed: plan.seed }))
    }
}

impl Offered for Moving {
    const NEEDS: Needs = Central::NEEDS;

    fn fit(plan: &mut Plan, _: &Options) {
        plan.pool.durable = false;
        let lease = plan.pool.lease.map_or(0, |lease| lease.as_nanos() as u64);
        let times = (plan.links.delay.mean(), lease);
        let seat = NodeId(plan.pool.arbiter);
        plan.council = Some(CouncilPlan::drawn(plan.seed, seat, times));
        // Whoever decides may be replaced, and replaced again, before it grants anything.
        plan.silence = 20 * lease;
    }

    fn pool(plan: &Plan, options: &Options) -> anyhow::Result<moving::Pool> {
        ensure!(
            plan.council.is_some() && !plan.pool.durable,
            "--variant moving is for plans drawn from a seed: sim seeds, or --swarm"
        );
        let pool = Central::pool(plan, options)?;
        Ok(moving::Pool::new(Pool { moves: true, ..pool }, plan.nodes as usize))
    }
}

impl Checked for Central {
    const HAS_BOOKS: bool = true;
    const CHOOSES: bool = true;
    const MOVES: bool = true;

    fn small(args: &check::Args) -> anyhow::Result<Pool> {
        let mut pool = Pool::new(args.units);
        pool.goods.fairness = args.fairness;
        pool.goods.durable = args.durable;
        pool.goods.labels = args.choosy.labels(args.units);
        Ok(pool)
    }

    fn special(_: &check::Args) -> Vec<NodeId> {
        vec![NodeId(0)]
    }
}

impl Checked for Moving {
    const HAS_BOOKS: bool = true;

    fn small(args: &check::Args) -> anyhow::Result<moving::Pool> {
        ensure!(!args.durable, "--variant moving: a seat that moves writes nothing down");
        let pool = Pool { moves: true, ..Central::small(args)? };
        Ok(moving::Pool::new(pool, args.nodes))
    }

    /// Seldom, or even small worlds have more states than fit.
    fn early_rings() -> Option<u8> {
        Some(0)
    }

    fn council(args: &check::Args) -> Option<quorate_check::Council> {
        Some(args.chair.council())
    }
}
