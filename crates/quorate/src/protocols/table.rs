//! `table` on the command line.

use anyhow::{Context, bail, ensure};
use quorate_core::Lease;
use quorate_protocols::arbiter::family::{Chosen, Need};
use quorate_protocols::central::Fairness;
use quorate_protocols::table::{Pool, Table};
use quorate_sim::{Needs, Plan};

use super::quorums::{QuorumOptions, is_drawn};
use super::{Offered, Options};

/// Most nodes that keep the table unless it is said: every section visits a quorum of them, one
/// after the other, and all sections of a pool take turns.
const MEMBERS_MAX: u32 = 5;

impl QuorumOptions {
    /// The coterie that keeps a table.
    fn of_table(&self, nodes: u32, units: u32) -> anyhow::Result<Chosen> {
        let voters = self.voters.unwrap_or(nodes.min(MEMBERS_MAX));
        ensure!((1..=nodes).contains(&voters), "--voters {voters}: there are {nodes} nodes");
        // Of two nodes a majority is both, and nobody expects it to survive one.
        let survive = self.survive.unwrap_or(u32::from(nodes > 2)) as usize;
        let coterie = Need::coterie(voters as usize, units as usize);
        let need = Need { survive, rounds: 8, ..coterie };
        let spec = self.family.as_deref().unwrap_or("majority");
        let chosen = if spec == "auto" { need.best() } else { need.family(spec) };
        chosen.with_context(|| format!("--family {spec} (--survive 0 accepts any)"))
    }

    /// A pool whose table a coterie keeps.
    pub(crate) fn table(&self, nodes: u32, units: u32) -> anyhow::Result<Pool> {
        let other = self.mode.is_some() || self.max_holders.is_some() || self.hedge.is_some();
        ensure!(!other && !self.naming, "table has no --mode, --max-holders, --hedge or --naming");
        let mut pool = Pool::new(units, nodes);
        pool.quorums = self.of_table(nodes, units)?.quorums;
        Ok(pool)
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
                let members = nodes.min(MEMBERS_MAX);
                let mut pool = Pool::new(units, members);
                let need = Need::coterie(members as usize, units as usize);
                let spec = ["majority", "grid", "hierarchy", "wall"][(plan.seed % 4) as usize];
                pool.quorums = need.quorums(spec).unwrap_or(pool.quorums);
                pool.patience = Some(2 + (plan.seed % 2) as u32);
                pool
            }
            false => options.quorums.table(nodes, units)?,
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
        let Chosen { name, summary, .. } = options.quorums.of_table(plan.nodes, plan.pool.units)?;
        Ok(Some(format!("{name}: {summary}")))
    }
}
