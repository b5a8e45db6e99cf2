//! What the checker must know of a protocol beyond its contract.

use std::time::Duration;

use anyhow::ensure;
use quorate_core::{Explorable, Lease, NodeId};
use quorate_protocols::arbiter::{self, Arbiter};
use quorate_protocols::broadcast::{self, Weighted};
use quorate_protocols::central::{self, Central};
use quorate_protocols::reference::sharing::{self, Sharing};
use quorate_protocols::reference::{Counted, Rule};
use quorate_protocols::ring::{self, Ring};
use quorate_protocols::table::{self, Table};
use quorate_protocols::ticket::{self, Ticket};

use super::Args;
use crate::protocols::{ReclaimKind, Variant, broadcast_pool};

/// A protocol that can be checked from the command line.
pub(super) trait Checked: Explorable<Pool: Sync> {
    /// Whether an arbiter of its sets units aside for others before they hear of it.
    const HAS_BOOKS: bool;
    /// Whether claims can choose among units...
    const CHOOSES: bool = false;
    /// ...and holders be asked to move.
    const MOVES: bool = false;

    /// The pool, as asked for.
    fn pool(args: &Args) -> anyhow::Result<Self::Pool>;

    /// Nodes that differ from all others, whoever crashes.
    fn special(args: &Args) -> Vec<NodeId>;

    /// How often alarms may ring early, unless it was said.
    fn early_rings() -> Option<u8>;

    /// How many quorums a client of this node chooses among, if every choice is to be looked at.
    fn choices(_pool: &Self::Pool, _home: NodeId) -> Option<u64> {
        None
    }

    /// Most equal copies of a message on one link.
    fn copies_max(_args: &Args) -> usize {
        1
    }
}

impl Checked for Central {
    const HAS_BOOKS: bool = true;
    const CHOOSES: bool = true;
    const MOVES: bool = true;

    fn pool(args: &Args) -> anyhow::Result<central::Pool> {
        let mut pool = central::Pool::new(args.units);
        pool.goods.fairness = args.fairness;
        pool.goods.durable = args.durable;
        pool.goods.labels = args.choosy.labels(args.units);
        Ok(pool)
    }

    fn special(_args: &Args) -> Vec<NodeId> {
        vec![NodeId(0)]
    }

    fn early_rings() -> Option<u8> {
        None
    }
}

impl Checked for Arbiter {
    const HAS_BOOKS: bool = true;

    fn pool(args: &Args) -> anyhow::Result<arbiter::Pool> {
        let (mut pool, _) = args.chosen.options.quorums.arbiter(args.nodes as u32, args.units)?;
        pool.durable = args.durable;
        // Nobody is suspected here, and time stands still: whoever does not answer would be asked
        // beside others in every state.
        pool.patience = None;
        if let arbiter::Mode::Count { backfill, .. } = &mut pool.mode {
            *backfill = match args.fairness {
                quorate_protocols::Fairness::Fifo => 0,
                quorate_protocols::Fairness::Backfill(bound) => bound,
            };
        }
        if !args.leases {
            pool.lease = Lease::new(Duration::MAX, 0);
        }
        Ok(pool)
    }

    /// Which quorum a node draws depends on its place.
    fn special(args: &Args) -> Vec<NodeId> {
        (0..args.nodes).map(NodeId::from).collect()
    }

    fn early_rings() -> Option<u8> {
        Some(0)
    }
}

impl Checked for Ticket {
    const HAS_BOOKS: bool = false;

    fn pool(args: &Args) -> anyhow::Result<ticket::Pool> {
        ensure!(!args.durable, "ticket writes nothing down");
        let (mut pool, _) = args.chosen.options.quorums.ticket(args.nodes as u32, args.units)?;
        pool.patience = None;
        if !args.leases {
            pool.lease = Lease::new(Duration::MAX, 0);
        }
        Ok(pool)
    }

    fn special(args: &Args) -> Vec<NodeId> {
        (0..args.nodes).map(NodeId::from).collect()
    }

    fn early_rings() -> Option<u8> {
        Some(0)
    }
}

impl Checked for Table {
    const HAS_BOOKS: bool = true;
    const CHOOSES: bool = true;

    fn pool(args: &Args) -> anyhow::Result<table::Pool> {
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

    fn special(args: &Args) -> Vec<NodeId> {
        everybody(args)
    }

    fn early_rings() -> Option<u8> {
        Some(0)
    }
}

impl Checked for Sharing {
    const HAS_BOOKS: bool = true;

    /// The first nodes are the processes, the others play the arbiters: as in the paper, where
    /// every message takes its time.
    fn pool(args: &Args) -> anyhow::Result<sharing::Pool> {
        let options = &args.chosen.options.sharing;
        ensure!(
            args.crashes == 0 && args.losses == 0 && args.duplicates == 0,
            "protocol P knows neither crashes nor links that lose or repeat messages"
        );
        ensure!(!args.want.is_empty() && args.want.iter().all(|h| *h == 1), "say --want 1,1,...");
        let processes = options.structure()?.processes().len() as u32;
        let hosts: Vec<NodeId> = (processes..args.nodes as u32).map(NodeId).collect();
        ensure!(!hosts.is_empty(), "{processes} processes, and no node left for the arbiters");
        let pool = options.pool(&hosts)?;
        let units = pool.units;
        ensure!(units == args.units, "the structure has {units} units that somebody may use");
        Ok(pool)
    }

    /// P commits to one quorum blindly: theorem 2 must hold for each.
    fn choices(pool: &sharing::Pool, home: NodeId) -> Option<u64> {
        pool.quorums.get(home.index()).map(|quorums| quorums.len() as u64)
    }

    fn special(args: &Args) -> Vec<NodeId> {
        everybody(args)
    }

    fn early_rings() -> Option<u8> {
        None
    }
}

impl Checked for Ring {
    const HAS_BOOKS: bool = false;

    fn pool(args: &Args) -> anyhow::Result<ring::Pool> {
        ensure!(args.nodes > 1, "ring on one node sends to itself: choose 2 nodes or more");
        ensure!(
            args.crashes == 0,
            "ring passes messages all the time, so that a restarted node's grace always ends \
             early here: try crashes with sim seeds"
        );
        ensure!(args.duplicates == 0, "ring needs links that do not repeat messages");
        ensure!(
            args.network == super::NetworkKind::Fifo,
            "ring needs links that keep the order of messages"
        );
        let core = args.chosen.options.variant == Some(Variant::Core);
        ensure!(!core || args.losses == 0, "core needs links that lose nothing: try train");
        // More numbers than traversals that can be under way at once.
        let seqs = 2 + u64::from(args.early_rings.unwrap_or(0)) + u64::from(args.losses);
        let mut pool = ring::Pool::new(args.units, args.nodes as u32).with_seqs(seqs);
        pool.variant = if core { ring::Variant::Core } else { ring::Variant::Train };
        Ok(pool)
    }

    /// No two nodes of a ring are alike.
    fn special(args: &Args) -> Vec<NodeId> {
        (0..args.nodes).map(NodeId::from).collect()
    }

    /// An impatient root would have more traversals under way than there are numbers for them.
    fn early_rings() -> Option<u8> {
        Some(0)
    }
}

/// The pool of a broadcasting protocol. Links repeat and reorder at most; where they lose as well,
/// whoever waits asks again.
fn asking_everybody(args: &Args) -> anyhow::Result<broadcast::Pool> {
    let options = &args.chosen.options;
    let variant = options.variant.unwrap_or(Variant::Weighted);
    ensure!(
        options.crashes.reclaim != Some(ReclaimKind::Lease),
        "--reclaim lease rests on clocks, and the checker has none: try it with \
         `quorate-lab sim seeds --protocol broadcast --reclaim lease --count 100`"
    );
    let mut pool = broadcast_pool(variant, options.crashes, (args.nodes as u32, args.units), None)?;
    let fits = |&h: &u32| h <= pool.node_units_max;
    ensure!(
        pool.node_units_max == args.units || !args.want.is_empty() && args.want.iter().all(fits),
        "here a claim asks for one unit: say so, as in --want 1,1"
    );
    if args.crashes > 0 {
        ensure!(
            pool.reclaim == broadcast::Reclaim::Never,
            "a node comes back only where suspects are never counted out: say --reclaim never"
        );
        pool.lease = Some(Lease::new(Duration::from_secs(10), 200));
    }
    if args.losses > 0 {
        pool.retry = Some(Duration::from_secs(1));
    }
    Ok(pool)
}

/// Of two requests with equal clocks the smaller node's is first: no two nodes are alike.
fn everybody(args: &Args) -> Vec<NodeId> {
    (0..args.nodes).map(NodeId::from).collect()
}

impl Checked for Weighted {
    const HAS_BOOKS: bool = false;

    fn pool(args: &Args) -> anyhow::Result<broadcast::Pool> {
        asking_everybody(args)
    }

    fn special(args: &Args) -> Vec<NodeId> {
        everybody(args)
    }

    fn early_rings() -> Option<u8> {
        None
    }

    /// A protocol that repeats its requests bears the loss of a copy; one that does not would stand
    /// still.
    fn copies_max(args: &Args) -> usize {
        if args.losses > 0 { 1 } else { 4 }
    }
}

impl<R: Rule> Checked for Counted<R> {
    const HAS_BOOKS: bool = false;

    fn pool(args: &Args) -> anyhow::Result<broadcast::Pool> {
        ensure!(
            args.losses == 0 && args.duplicates == 0,
            "answers are differences: links must deliver each message once"
        );
        ensure!(
            args.crashes == 0,
            "who restarts stays out for good, and its clients wait for ever"
        );
        asking_everybody(args)
    }

    fn special(args: &Args) -> Vec<NodeId> {
        everybody(args)
    }

    fn early_rings() -> Option<u8> {
        None
    }

    /// Two answers may be equal, and both count.
    fn copies_max(_: &Args) -> usize {
        4
    }
}
