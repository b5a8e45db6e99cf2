//! `ring` in the laboratory.

use std::time::Duration;

use anyhow::ensure;
use quorate_core::{Lease, Protocol};
use quorate_protocols::ring::{self, Pool, Ring};
use quorate_sim::{Arrivals, Faults, Hands, Needs, Plan, PoolPlan, Report, Time, Watch};

use super::options::Group;
use super::{Checked, Does, Offered, Options, Registered, Variant};
use crate::commands::check;

pub(super) const RING: Registered = Registered {
    name: Ring::NAME,
    about: "Tokens go round",
    does: Does::all::<Ring>(),
    variants: &[
        Variant {
            name: "train",
            about: "ring: all messages in one frame: what the daemon runs",
            does: Does::all::<Ring>(),
        },
        Variant { name: CORE, about: "ring: the paper's messages", does: Does::all::<Ring>() },
    ],
    options: &[Group::Graph],
    swarms: &["", " --variant core", " --corrupt"],
};

const CORE: &str = "core";

/// How many traversals a run lasts by default, at least: nothing is granted before the second.
const TRAVERSALS: u64 = 4;

/// How many claims come in one traversal of a large ring, by default.
const CLAIMS: u64 = 1_000;

impl Offered for Ring {
    const NEEDS: Needs = Needs { order: true, reliability: true, permanence: false };

    /// The paper has no crashes, and `core` has the paper's messages: a station that forgets is a
    /// transient fault, from which it heals, but until then there may be more tokens than units.
    fn fit(plan: &mut Plan, options: &Options) {
        if options.variant() == Some(CORE) {
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
        let delay = plan.links.delay.mean();
        ensure!(delay > 0, "--delay: tokens never rest, so a message must take some time");
        let mut pool = Pool::new(plan.pool.units, plan.nodes);
        pool.lease = Lease::new(plan.pool.lease(), plan.pool.drift_ppm);
        let (timeout, ttl) = patience(plan);
        pool.timeout = timeout;
        let delay = Duration::from_nanos(delay);
        pool.idle = match retry(plan) {
            None => delay,
            Some(retry) => retry.max(delay * plan.nodes),
        };
        pool.ttl = Lease::new(ttl, plan.pool.drift_ppm);
        if let Some(graph) = &options.graph {
            pool.follow(&graph.edges)?;
        }
        if options.variant() == Some(CORE) {
            pool.variant = ring::Variant::Core;
        }
        Ok(pool)
    }

    fn run_corrupted<'a>(plan: &'a Plan, pool: &'a Pool, watch: Watch<'a>) -> Option<Report> {
        Some(quorate_sim::run_corrupted::<Ring>(plan, pool, watch))
    }

    const HEALS: bool = true;

    fn play<'a>(
        plan: &'a Plan,
        pool: &'a Pool,
        watch: Watch<'a>,
        hands: Hands,
        corrupt: bool,
    ) -> Option<Report> {
        Some(quorate_sim::run_corrupted_with::<Ring>(plan, pool, watch, hands, corrupt))
    }
}

/// How long a message takes to get round.
fn traversal(plan: &Plan) -> u64 {
    plan.links.delay.mean().saturating_mul(u64::from(plan.nodes))
}

/// How long it waits before it says something again, unless retries are switched off: then its root
/// never rests, and waits for its frame as long as a traversal may take.
fn retry(plan: &Plan) -> Option<Duration> {
    Some(plan.pool.retry).filter(|retry| *retry < PoolPlan::NEVER)
}

/// How long the root waits for its frame: a traversal visits every node, and less patience than
/// that only makes traffic. And how long a licence lasts: two frames in a row pass well within it,
/// even when the train stands between them.
fn patience(plan: &Plan) -> (Duration, Duration) {
    let timeout = retry(plan)
        .unwrap_or_default()
        .max(Duration::from_nanos(traversal(plan).saturating_mul(4)));
    let lease = plan.pool.lease.unwrap_or_default();
    (timeout, lease.max(timeout * 8))
}

impl Checked for Ring {
    const HAS_BOOKS: bool = false;

    fn small(args: &check::Args) -> anyhow::Result<ring::Pool> {
        ensure!(args.nodes > 1, "ring on one node sends to itself: choose 2 nodes or more");
        ensure!(
            args.crashes == 0,
            "ring passes messages all the time, so that a restarted node's grace always ends \
             early here: try crashes with sim seeds"
        );
        ensure!(args.duplicates == 0, "ring needs links that do not repeat messages");
        ensure!(
            args.network == check::NetworkKind::Fifo,
            "ring needs links that keep the order of messages"
        );
        let core = args.chosen.options.variant() == Some(CORE);
        ensure!(!core || args.losses == 0, "core needs links that lose nothing: try train");
        // More numbers than traversals that can be under way at once.
        let seqs = 2 + u64::from(args.early_rings.unwrap_or(0)) + u64::from(args.losses);
        let mut pool = ring::Pool::new(args.units, args.nodes as u32).with_seqs(seqs);
        pool.variant = if core { ring::Variant::Core } else { ring::Variant::Train };
        Ok(pool)
    }

    /// An impatient root would have more traversals under way than there are numbers for them.
    fn early_rings() -> Option<u8> {
        Some(0)
    }
}
