//! The protocols by name: the one place where a name on the command line becomes a type.

use std::fmt;
use std::time::Duration;

use quorate_core::{Lease, NodeId, Protocol};
use quorate_protocols::broadcast::{Raymond, Raynal, Weighted};
use quorate_protocols::central::{self, Central};
use quorate_protocols::ring::{self, Ring};
use quorate_sim::{Needs, Plan};

use crate::broadcast::{self, Variant};

/// A protocol, by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Name {
    /// One node decides.
    Central,
    /// Everybody is asked.
    Broadcast,
    /// Tokens go round.
    Ring,
}

/// A protocol and its own options, as chosen on the command line.
#[derive(clap::Args, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chosen {
    /// The protocol
    #[arg(long, value_enum, default_value = "central")]
    pub(crate) protocol: Name,
    #[command(flatten)]
    pub(crate) options: broadcast::Options,
}

impl Chosen {
    /// Does some work with the protocol's type.
    ///
    /// # Errors
    /// Those of the work, or an option was given that the protocol does not have.
    pub(crate) fn visit<T, W: Work<Outcome = anyhow::Result<T>>>(self, work: W) -> W::Outcome {
        let Chosen { protocol, options } = self;
        let none = options == broadcast::Options::default();
        anyhow::ensure!(none || protocol == Name::Broadcast, "only broadcast has{options}");
        match (protocol, options.variant.unwrap_or_default()) {
            (Name::Central, _) => work.with::<Central>(),
            (Name::Ring, _) => work.with::<Ring>(),
            (Name::Broadcast, Variant::Weighted | Variant::TimerFree) => work.with::<Weighted>(),
            (Name::Broadcast, Variant::Raymond) => work.with::<Raymond>(),
            (Name::Broadcast, Variant::Raynal) => work.with::<Raynal>(),
        }
    }
}

/// The words behind `--protocol` that choose the same again.
impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.protocol {
            Name::Central => "central",
            Name::Broadcast => "broadcast",
            Name::Ring => "ring",
        };
        write!(f, "{name}{}", self.options)
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

    /// Makes a drawn plan one that it can serve.
    fn fit(_plan: &mut Plan, _options: &broadcast::Options) {}

    /// Its pool, as planned.
    fn pool(plan: &Plan, options: &broadcast::Options) -> anyhow::Result<Self::Pool>;
}

impl Offered for Central {
    const NEEDS: Needs = Needs { order: false, reliability: false, permanence: false };

    fn pool(plan: &Plan, _: &broadcast::Options) -> anyhow::Result<central::Pool> {
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
    const NEEDS: Needs = Needs { order: true, reliability: true, permanence: false };

    fn pool(plan: &Plan, _: &broadcast::Options) -> anyhow::Result<ring::Pool> {
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
