//! The protocols by name: the one place where a name on the command line becomes a type.

mod quorums;

use std::time::Duration;

use quorate_core::{Lease, NodeId, Protocol};
use quorate_protocols::arbiter::Arbiter;
use quorate_protocols::central::{self, Central};
use quorate_protocols::ring::{self, Ring};
use quorate_protocols::ticket::Ticket;
use quorate_sim::{Needs, Plan};

pub(crate) use quorums::Options;

/// A protocol, by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Name {
    /// One node decides.
    Central,
    /// Tokens go round.
    Ring,
    /// Quorums decide.
    Arbiter,
    /// Quorums give tickets.
    Ticket,
}

impl Name {
    /// Does some work with the protocol's type.
    pub(crate) fn visit<W: Work>(self, work: W) -> W::Outcome {
        match self {
            Name::Central => work.with::<Central>(),
            Name::Ring => work.with::<Ring>(),
            Name::Arbiter => work.with::<Arbiter>(),
            Name::Ticket => work.with::<Ticket>(),
        }
    }
}

/// Work that can be done with any protocol.
pub(crate) trait Work {
    /// What comes of it.
    type Outcome;
    /// Does it.
    fn with<P: Offered>(self) -> Self::Outcome;
}

/// What the command must know of a protocol beyond its contract.
pub(crate) trait Offered: Protocol {
    /// What it needs from links.
    const NEEDS: Needs;

    /// Its pool, as planned.
    fn pool(plan: &Plan, options: &Options) -> anyhow::Result<Self::Pool>;

    /// What people should know about the pool beyond the plan.
    fn about(_plan: &Plan, _options: &Options) -> anyhow::Result<Option<String>> {
        Ok(None)
    }
}

impl Offered for Central {
    const NEEDS: Needs = Needs { order: false, reliability: false };

    fn pool(plan: &Plan, options: &Options) -> anyhow::Result<central::Pool> {
        options.refuse_for(Self::NAME)?;
        let plan = &plan.pool;
        let Some(length) = plan.lease else {
            anyhow::bail!("central lives by leases: give --lease a duration");
        };
        let fairness = match plan.backfill {
            0 => central::Fairness::Fifo,
            bound => central::Fairness::Backfill(bound),
        };
        let mut pool = central::Pool::new(plan.units);
        pool.arbiter = NodeId(plan.arbiter);
        pool.lease = Lease::new(length, plan.drift_ppm);
        pool.retry = plan.retry;
        pool.fairness = fairness;
        pool.durable = plan.durable;
        Ok(pool)
    }
}

impl Offered for Ring {
    const NEEDS: Needs = Needs { order: true, reliability: true };

    fn pool(plan: &Plan, options: &Options) -> anyhow::Result<ring::Pool> {
        options.refuse_for(Self::NAME)?;
        let Some(length) = plan.pool.lease else {
            anyhow::bail!("ring lives by leases: give --lease a duration");
        };
        let mut pool = ring::Pool::new(plan.pool.units, plan.nodes);
        pool.lease = Lease::new(length, plan.pool.drift_ppm);
        // A traversal visits every node: a root that is less patient than that only makes traffic.
        let traversal = plan.links.delay.mean().saturating_mul(u64::from(plan.nodes));
        pool.timeout = plan.pool.retry.max(Duration::from_nanos(traversal.saturating_mul(4)));
        pool.idle = plan.pool.retry;
        Ok(pool)
    }
}
