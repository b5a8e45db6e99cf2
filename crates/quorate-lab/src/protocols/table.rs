//! `table` on the command line.

use anyhow::ensure;
use quorate_protocols::central::Central;
use quorate_protocols::table::{Pool, Table};
use quorate_protocols::voting::{self, Settled};
use quorate_sim::{Needs, Plan};

use super::quorums::{QuorumOptions, as_planned, is_drawn};
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
        let lease = plan.pool.lease;
        ensure!(lease.is_some(), "table lives by leases: give --lease a duration");
        let goods = Central::pool(plan, options)?.goods;
        if is_drawn(plan, &options.quorums) {
            return Ok(Pool::drawn(goods, plan.nodes, plan.seed));
        }
        let (pool, _) = as_planned(plan, &options.quorums).table(plan.nodes, plan.pool.units)?;
        Ok(Pool { goods, ..pool })
    }

    fn about(plan: &Plan, options: &Options) -> anyhow::Result<Option<String>> {
        if is_drawn(plan, &options.quorums) {
            return Ok(None);
        }
        let (_, worth) = as_planned(plan, &options.quorums).table(plan.nodes, plan.pool.units)?;
        Ok(Some(format!("{}: {}", worth.family, worth.summary)))
    }
}
