//! `table` on the command line.

use anyhow::{bail, ensure};
use quorate_core::Lease;
use quorate_protocols::arbiter::family::Need;
use quorate_protocols::central::Fairness;
use quorate_protocols::table::{Pool, Table};
use quorate_protocols::voting::{self, Settled};
use quorate_sim::{Needs, Plan};

use super::quorums::{QuorumOptions, is_drawn};
use super::{Offered, Options};

impl QuorumOptions {
    /// A pool whose table a coterie keeps.
    pub(crate) fn table(&self, nodes: u32, units: u32) -> anyhow::Result<(Pool, voting::Worth)> {
        let other = self.mode.is_some() || self.max_holders.is_some() || self.hedge.is_some();
        ensure!(!other && !self.naming, "table has no --mode, --max-holders, --hedge or --naming");
        match self.terms(voting::Mode::Table).settle(nodes, units)? {
            Settled { pool: voting::Pool::Table(pool), worth } => Ok((pool, worth)),
            Settled { .. } => unreachable!("a table makes a pool with a table"),
        }
    }
}

impl Offered for Table {
    const NEEDS: Needs = Needs { order: false, reliability: false, permanence: false };

    fn pool(plan: &Plan, options: &Options) -> anyhow::Result<Pool> {
        let Some(length) = plan.pool.lease else {
            bail!("table lives by leases: give --lease a duration");
        };
        let (nodes, units) = (plan.nodes, plan.pool.units);
        let mut pool = match is_drawn(plan, &options.quorums) {
            true => {
                let members = nodes.min(5);
                let mut pool = Pool::new(units, members);
                let need = Need::coterie(members as usize, units as usize);
                let spec = ["majority", "grid", "hierarchy", "wall"][(plan.seed % 4) as usize];
                pool.quorums = need.quorums(spec).unwrap_or(pool.quorums);
                pool.patience = Some(2 + (plan.seed % 2) as u32);
                pool
            }
            false => options.quorums.table(nodes, units)?.0,
        };
        pool.goods.lease = Lease::new(length, plan.pool.drift_ppm);
        pool.goods.retry = plan.pool.retry;
        pool.goods.durable = plan.pool.durable;
        pool.goods.fairness = match plan.pool.backfill {
            0 => Fairness::Fifo,
            bound => Fairness::Backfill(bound),
        };
        Ok(pool)
    }

    fn about(plan: &Plan, options: &Options) -> anyhow::Result<Option<String>> {
        if is_drawn(plan, &options.quorums) {
            return Ok(None);
        }
        let (_, worth) = options.quorums.table(plan.nodes, plan.pool.units)?;
        Ok(Some(format!("{}: {}", worth.family, worth.summary)))
    }
}
