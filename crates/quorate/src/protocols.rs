//! The protocols by name: the one place where a name on the command line becomes a type.

use std::time::Duration;

use quorate_core::{Lease, NodeId, Protocol};
use quorate_protocols::central::{self, Central};
use quorate_protocols::ring::{self, Ring};
use quorate_sim::{Needs, Plan, Report, Watch};

/// A protocol, by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Name {
    /// One node decides.
    Central,
    /// Tokens go round.
    Ring,
}

impl Name {
    /// Does some work with the protocol's type.
    pub(crate) fn visit<W: Work>(self, work: W) -> W::Outcome {
        match self {
            Name::Central => work.with::<Central>(),
            Name::Ring => work.with::<Ring>(),
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
    fn pool(plan: &Plan) -> anyhow::Result<Self::Pool>;

    /// A run that begins in any state, if the protocol heals from any.
    fn run_corrupted<'a>(
        _plan: &'a Plan,
        _pool: &'a Self::Pool,
        _watch: Watch<'a>,
    ) -> Option<Report> {
        None
    }

    /// Makes it run on a network, given by its edges, with the messages of one of its variants.
    fn reshape(_pool: &mut Self::Pool, _shape: &RingShape) -> anyhow::Result<()> {
        anyhow::bail!("only ring has --variant and --graph")
    }
}

/// What only a ring can be told.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct RingShape {
    /// With which messages.
    pub(crate) variant: Option<RingVariant>,
    /// The edges of a network.
    pub(crate) edges: Option<Vec<(NodeId, NodeId)>>,
}

/// With which messages a ring runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum RingVariant {
    /// The paper's.
    Core,
    /// All of them in one frame: what a node runs.
    Train,
}

impl Offered for Central {
    const NEEDS: Needs = Needs { order: false, reliability: false };

    fn pool(plan: &Plan) -> anyhow::Result<central::Pool> {
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

    fn pool(plan: &Plan) -> anyhow::Result<ring::Pool> {
        let Some(length) = plan.pool.lease else {
            anyhow::bail!("ring lives by leases: give --lease a duration");
        };
        let mut pool = ring::Pool::new(plan.pool.units, plan.nodes);
        pool.lease = Lease::new(length, plan.pool.drift_ppm);
        // A traversal visits every node: a root that is less patient than that only makes traffic.
        let traversal = plan.links.delay.mean().saturating_mul(u64::from(plan.nodes));
        pool.timeout = plan.pool.retry.max(Duration::from_nanos(traversal.saturating_mul(4)));
        // Two frames in a row pass well within a licence, even when the train stands between them.
        let visit = pool.timeout.max(plan.pool.retry);
        pool.idle = plan.pool.retry;
        pool.ttl = Lease::new(length.max(visit * 8), plan.pool.drift_ppm);
        Ok(pool)
    }

    fn run_corrupted<'a>(plan: &'a Plan, pool: &'a ring::Pool, watch: Watch<'a>) -> Option<Report> {
        Some(quorate_sim::run_corrupted::<Ring>(plan, pool, watch))
    }

    fn reshape(pool: &mut ring::Pool, shape: &RingShape) -> anyhow::Result<()> {
        if let Some(edges) = &shape.edges {
            pool.follow(edges)?;
        }
        if let Some(variant) = shape.variant {
            pool.variant = match variant {
                RingVariant::Core => ring::Variant::Core,
                RingVariant::Train => ring::Variant::Train,
            };
        }
        Ok(())
    }
}
