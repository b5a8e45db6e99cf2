//! The protocols by name: the one place where a name on the command line becomes a type.

use quorate_core::{Lease, NodeId, Protocol};
use quorate_protocols::central::{self, Central};
use quorate_sim::{Needs, PoolPlan};

/// A protocol, by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Name {
    /// One node decides.
    Central,
}

impl Name {
    /// Does some work with the protocol's type.
    pub(crate) fn visit<W: Work>(self, work: W) -> W::Outcome {
        match self {
            Name::Central => work.with::<Central>(),
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
    fn pool(plan: &PoolPlan) -> anyhow::Result<Self::Pool>;
}

impl Offered for Central {
    const NEEDS: Needs = Needs { order: false, reliability: false };

    fn pool(plan: &PoolPlan) -> anyhow::Result<central::Pool> {
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
