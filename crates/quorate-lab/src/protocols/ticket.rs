//! `ticket` in the laboratory.

use std::time::Duration;

use anyhow::ensure;
use quorate_core::{Lease, Protocol};
use quorate_protocols::quorums::family::Need;
use quorate_protocols::ticket::{self, Ticket};
use quorate_protocols::voting::{self, Settled};
use quorate_sim::{Needs, Plan};

use super::options::Group;
use super::quorums::{QuorumOptions, as_planned, is_drawn};
use super::{Checked, Does, Offered, Options, Registered};
use crate::commands::check;

pub(super) const TICKET: Registered = Registered {
    name: Ticket::NAME,
    about: "Quorums give tickets",
    does: Does::all::<Ticket>(),
    variants: &[],
    options: &[Group::Quorums],
    swarms: &[""],
};

impl QuorumOptions {
    /// A pool of tickets, which need a coterie and nothing else.
    pub(crate) fn ticket(
        &self,
        nodes: u32,
        units: u32,
    ) -> anyhow::Result<(ticket::Pool, voting::Worth)> {
        let other = self.mode.is_some() || self.max_holders.is_some() || self.hedge.is_some();
        ensure!(!other && !self.naming, "ticket has no --mode, --max-holders, --hedge or --naming");
        match self.terms(voting::Mode::Ticket).settle(nodes, units)? {
            Settled { pool: voting::Pool::Ticket(pool), worth } => Ok((pool, worth)),
            Settled { .. } => unreachable!("tickets make a pool of tickets"),
        }
    }
}

impl Offered for Ticket {
    const NEEDS: Needs = Needs { order: false, reliability: false, permanence: false };

    fn pool(plan: &Plan, options: &Options) -> anyhow::Result<ticket::Pool> {
        let options = &options.quorums;
        let length = plan.pool.lease();
        let mut pool = match is_drawn(plan, options) {
            true => {
                let mut pool = ticket::Pool::new(plan.pool.units, plan.nodes);
                let need = Need::coterie(plan.nodes as usize, plan.pool.units as usize);
                pool.quorums = need.drawn(plan.seed);
                pool.spares = (plan.seed / 4 % 3) as u32;
                pool.patience = Some(2 + (plan.seed % 2) as u32);
                pool
            }
            false => as_planned(plan, options).ticket(plan.nodes, plan.pool.units)?.0,
        };
        pool.lease = Lease::new(length, plan.pool.drift_ppm);
        pool.retry = plan.pool.retry;
        Ok(pool)
    }

    fn about(plan: &Plan, options: &Options) -> anyhow::Result<Option<String>> {
        let options = &options.quorums;
        if is_drawn(plan, options) {
            return Ok(None);
        }
        let (_, worth) = as_planned(plan, options).ticket(plan.nodes, plan.pool.units)?;
        Ok(Some(format!("{}: {}", worth.family, worth.summary)))
    }
}

impl Checked for Ticket {
    const HAS_BOOKS: bool = false;

    fn small(args: &check::Args) -> anyhow::Result<ticket::Pool> {
        ensure!(!args.durable, "ticket writes nothing down");
        let (mut pool, _) = args.chosen.options.quorums.ticket(args.nodes as u32, args.units)?;
        pool.patience = None;
        if !args.leases {
            pool.lease = Lease::new(Duration::MAX, 0);
        }
        Ok(pool)
    }

    fn early_rings() -> Option<u8> {
        Some(0)
    }
}
