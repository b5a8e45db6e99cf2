//! `ring` on the command line.

use std::time::Duration;

use anyhow::{bail, ensure};
use quorate_core::Lease;
use quorate_protocols::ring::{self, Pool, Ring};
use quorate_sim::{Arrivals, Faults, Needs, Plan, Report, Time, Watch};

use super::{Offered, Options, Variant};

/// How many traversals a run lasts by default, at least: nothing is granted before the second.
const TRAVERSALS: u64 = 4;

/// How many claims come in one traversal of a large ring, by default.
const CLAIMS: u64 = 1_000;

impl Offered for Ring {
    const NEEDS: Needs = Needs { order: true, reliability: true, permanence: false };

    /// The paper has no crashes, and `core` has the paper's messages: a station that forgets is a
    /// transient fault, from which it heals, but until then there may be more tokens than units.
    fn fit(plan: &mut Plan, options: &Options) {
        if options.variant == Some(Variant::Core) {
            plan.faults.crashes = None;
        }
    }

    /// A claim may need a traversal to wake the root, one to be seen and some more to collect units
    /// for it. After a fault nothing is made for as long as a licence lasts.
    fn silence(plan: &Plan, corrupt: bool) -> u64 {
        if !corrupt && plan.faults == Faults::none() {
            return traversal(plan).saturating_mul(6);
        }
        let (_, ttl) = patience(plan);
        Time::from(ttl).0.saturating_mul(2)
    }

    /// In a large ring nothing happens within seconds: a run lasts for some traversals, and clients
    /// come one by one instead of standing at every node. Otherwise nobody but the first few nodes
    /// would be served, or a million claims would have to be.
    fn suit(plan: &mut Plan) {
        let traversal = traversal(plan);
        let enough = traversal.saturating_mul(TRAVERSALS);
        if plan.duration >= enough {
            return;
        }
        plan.duration = enough;
        let every = (traversal / CLAIMS).max(1);
        plan.workload.arrivals = Arrivals::Open { every, clients_max: u32::MAX };
    }

    fn pool(plan: &Plan, options: &Options) -> anyhow::Result<Pool> {
        let Some(length) = plan.pool.lease else {
            bail!("ring lives by leases: give --lease a duration");
        };
        let delay = plan.links.delay.mean();
        ensure!(delay > 0, "--delay: tokens never rest, so a message must take some time");
        let mut pool = Pool::new(plan.pool.units, plan.nodes);
        pool.lease = Lease::new(length, plan.pool.drift_ppm);
        let (timeout, ttl) = patience(plan);
        pool.timeout = timeout;
        pool.idle = plan.pool.retry.max(Duration::from_nanos(traversal(plan)));
        pool.ttl = Lease::new(ttl, plan.pool.drift_ppm);
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

/// How long a message takes to get round.
fn traversal(plan: &Plan) -> u64 {
    plan.links.delay.mean().saturating_mul(u64::from(plan.nodes))
}

/// How long the root waits for its frame: a traversal visits every node, and less patience than
/// that only makes traffic. And how long a licence lasts: two frames in a row pass well within it,
/// even when the train stands between them.
fn patience(plan: &Plan) -> (Duration, Duration) {
    let timeout = plan.pool.retry.max(Duration::from_nanos(traversal(plan).saturating_mul(4)));
    let lease = plan.pool.lease.unwrap_or_default();
    (timeout, lease.max(timeout * 8))
}
