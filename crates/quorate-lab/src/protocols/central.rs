//! `central` on the command line.

use std::sync::Arc;

use anyhow::{bail, ensure};
use quorate_core::{Lease, NodeId};
use quorate_protocols::central::{Central, Pool};
use quorate_protocols::reference::{Judged, Operator};
use quorate_protocols::{Fairness, Goods};
use quorate_sim::{Needs, Plan, Want};

use super::{Offered, Options};

impl Offered for Central {
    const NEEDS: Needs = Needs { order: false, reliability: false, permanence: false };

    fn pool(plan: &Plan, _: &Options) -> anyhow::Result<Pool> {
        let plan = &plan.pool;
        let Some(length) = plan.lease else {
            bail!("central lives by leases: give --lease a duration");
        };
        let mut goods = Goods::new(plan.units);
        goods.lease = Lease::new(length, plan.drift_ppm);
        goods.retry = plan.retry;
        goods.fairness = match plan.backfill {
            0 => Fairness::Fifo,
            bound => Fairness::Backfill(bound),
        };
        goods.durable = plan.durable;
        Ok(Pool { goods, arbiter: NodeId(plan.arbiter) })
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
