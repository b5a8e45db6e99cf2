//! `table` in the laboratory.

use std::time::Duration;

use anyhow::ensure;
use quorate_core::{Lease, Protocol};
use quorate_protocols::central::Central;
use quorate_protocols::table::{Pool, Table};
use quorate_protocols::voting::{self, Settled};
use quorate_sim::{Needs, Plan};

use super::options::Group;
use super::quorums::{QuorumOptions, as_planned, is_drawn};
use super::{Checked, Does, Offered, Options, Registered};
use crate::commands::check;

pub(super) const TABLE: Registered = Registered {
    name: Table::NAME,
    about: "Quorums keep one table of all claims",
    does: Does::all::<Table>(),
    variants: &[],
    options: &[Group::Quorums],
    swarms: &[""],
};

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

impl Checked for Table {
    const HAS_BOOKS: bool = true;
    const CHOOSES: bool = true;

    fn small(args: &check::Args) -> anyhow::Result<Pool> {
        let (mut pool, _) = args.chosen.options.quorums.table(args.nodes as u32, args.units)?;
        pool.goods.durable = args.durable;
        pool.goods.fairness = args.fairness;
        pool.goods.labels = args.choosy.labels(args.units);
        pool.patience = None;
        if !args.leases {
            pool.goods.lease = Lease::new(Duration::MAX, 0);
        }
        Ok(pool)
    }

    fn early_rings() -> Option<u8> {
        Some(0)
    }
}
