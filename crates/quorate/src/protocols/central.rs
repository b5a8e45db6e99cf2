//! `central` on the command line.

use anyhow::bail;
use quorate_core::{Lease, NodeId};
use quorate_protocols::central::{Central, Fairness, Pool};
use quorate_sim::{Needs, Plan};

use super::{Offered, Options};

impl Offered for Central {
    const NEEDS: Needs = Needs { order: false, reliability: false, permanence: false };

    fn pool(plan: &Plan, _: &Options) -> anyhow::Result<Pool> {
        let plan = &plan.pool;
        let Some(length) = plan.lease else {
            bail!("central lives by leases: give --lease a duration");
        };
        let mut pool = Pool::new(plan.units);
        pool.arbiter = NodeId(plan.arbiter);
        pool.lease = Lease::new(length, plan.drift_ppm);
        pool.retry = plan.retry;
        pool.fairness = match plan.backfill {
            0 => Fairness::Fifo,
            bound => Fairness::Backfill(bound),
        };
        pool.durable = plan.durable;
        Ok(pool)
    }
}
