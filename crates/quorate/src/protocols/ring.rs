//! `ring` on the command line.

use std::time::Duration;

use anyhow::bail;
use quorate_core::Lease;
use quorate_protocols::ring::{self, Pool, Ring};
use quorate_sim::{Needs, Plan, Report, Watch};

use super::{Offered, Options, Variant};

impl Offered for Ring {
    const NEEDS: Needs = Needs { order: true, reliability: true, permanence: false };

    fn pool(plan: &Plan, options: &Options) -> anyhow::Result<Pool> {
        let Some(length) = plan.pool.lease else {
            bail!("ring lives by leases: give --lease a duration");
        };
        let mut pool = Pool::new(plan.pool.units, plan.nodes);
        pool.lease = Lease::new(length, plan.pool.drift_ppm);
        // A traversal visits every node: a root that is less patient than that only makes traffic.
        let traversal = plan.links.delay.mean().saturating_mul(u64::from(plan.nodes));
        pool.timeout = plan.pool.retry.max(Duration::from_nanos(traversal.saturating_mul(4)));
        // Two frames in a row pass well within a licence, even when the train stands between them.
        let visit = pool.timeout.max(plan.pool.retry);
        pool.idle = plan.pool.retry;
        pool.ttl = Lease::new(length.max(visit * 8), plan.pool.drift_ppm);
        if let Some(graph) = &options.graph {
            pool.follow(&graph.edges)?;
        }
        if options.variant == Some(Variant::Core) {
            pool.variant = ring::Variant::Core;
        }
        Ok(pool)
    }

    fn run_corrupted<'a>(plan: &'a Plan, pool: &'a Pool, watch: Watch<'a>) -> Option<Report> {
        Some(quorate_sim::run_corrupted::<Ring>(plan, pool, watch))
    }
}
