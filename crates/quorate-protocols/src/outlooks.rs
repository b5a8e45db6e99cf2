//! The operator's law for every protocol: what cannot be granted is not promised.
//!
//! Any nodes of five are lost for good, and what the others say of each size of claim is what
//! becomes of such a claim. Sizes are asked one at a time: a claim that cannot be granted may keep
//! what it has gathered from one that could.

use std::fmt::Debug;

use quorate_core::{Lease, NodeSet, Protocol};
use quorate_laws::Breach;
use quorate_sim::{Needs, Plan, Profile, Want, judge_outlooks};

use crate::arbiter::{self, Arbiter};
use crate::broadcast::{self, Reclaim, Weighted};
use crate::central::{self, Central};
use crate::quorums::Quorums;
use crate::ring::{self, Ring};
use crate::table::{self, Table};
use crate::ticket::{self, Ticket};

const NODES: u32 = 5;
const UNITS: u32 = 3;

fn plan(units: u32, h: u32) -> Plan {
    let mut plan = Plan::quiet(0x0e1e, NODES, units);
    plan.workload.want = Want::always(h);
    plan.links.ordered = true;
    plan.duration /= 20;
    plan
}

/// All ways to lose nodes, all sizes; the first breach.
fn judge<P: Protocol<Pool: Debug>>(pool: &P::Pool, most: u32) -> Result<(), Breach> {
    for h in 1..=most {
        for bits in 0u32..(1 << NODES) - 1 {
            let lost: NodeSet = (0..NODES).filter(|node| bits & 1 << node != 0).collect();
            let plan = plan(P::capacity(pool), h);
            judge_outlooks::<P>(&plan, pool, &lost).map_err(|breach| {
                let what = format!("without {lost}, {h} units, {pool:?}: {}", breach.what);
                Breach { what, ..breach }
            })?;
        }
    }
    Ok(())
}

/// For one size of claim quorums are found that are not for another: large claims need few nodes.
fn by_size() -> arbiter::Pool {
    arbiter::Pool { quorums: Quorums::by_size(NODES, UNITS), ..arbiter::Pool::new(UNITS, NODES) }
}

#[test]
fn one_node_decides() {
    assert_eq!(judge::<Central>(&central::Pool::new(UNITS), UNITS), Ok(()));
}

#[test]
fn quorums_give_permissions() {
    assert_eq!(judge::<Arbiter>(&arbiter::Pool::named(UNITS, NODES), UNITS), Ok(()));
    assert_eq!(judge::<Arbiter>(&arbiter::Pool::new(UNITS, NODES), UNITS), Ok(()));
    assert_eq!(judge::<Arbiter>(&by_size(), UNITS), Ok(()));
}

#[test]
fn quorums_give_tickets_or_keep_a_table() {
    let all = ticket::Pool { spares: NODES, ..ticket::Pool::new(UNITS, NODES) };
    assert_eq!(judge::<Ticket>(&all, UNITS), Ok(()));
    assert_eq!(judge::<Ticket>(&ticket::Pool::new(UNITS, NODES), UNITS), Ok(()));
    assert_eq!(judge::<Table>(&table::Pool::new(UNITS, NODES), UNITS), Ok(()));
}

/// Nodes that are lost cost units, for ever or until they are counted out.
#[test]
fn everybody_is_asked() {
    let lease = Lease::new(std::time::Duration::from_secs(10), 200);
    for reclaim in [Reclaim::Never, Reclaim::Lease(lease)] {
        let pool = broadcast::Pool::weighted(NODES, 6, 2, 2);
        let pool = broadcast::Pool { lease: Some(lease), reclaim, ..pool };
        assert_eq!(judge::<Weighted>(&pool, 2), Ok(()));
    }
}

#[test]
fn tokens_go_round() {
    assert_eq!(judge::<Ring>(&ring::Pool::new(UNITS, NODES), UNITS), Ok(()));
}

#[test]
fn promises_that_are_not_kept_are_found() {
    let mutant = Some(arbiter::Mutant::PromiseByLargest);
    let breach = judge::<Arbiter>(&arbiter::Pool { mutant, ..by_size() }, UNITS).unwrap_err();
    assert_eq!(breach.law, "honest outlook");
    let mut pool = central::Pool::new(UNITS);
    pool.goods.mutant = Some(central::Mutant::PromiseWithoutArbiter);
    assert_eq!(judge::<Central>(&pool, 1).unwrap_err().law, "honest outlook");
}

/// After any history: crashes, restarts, cuts and lost messages until a moment, then some nodes
/// stay away.
#[test]
fn whatever_happened_before() {
    for seed in 0..60u64 {
        let mut drawn = Plan::swarm(seed, Profile::Crashes, Needs::default());
        drawn.nodes = NODES;
        drawn.steps_max = drawn.steps_max.min(2_000);
        drawn.pool.arbiter %= NODES;
        let (units, lost) = (drawn.pool.units, (seed * 7 % 32) as u32);
        let h = 1 + (seed as u32 / 3) % units;
        drawn.workload = plan(units, h).workload;
        let lost: NodeSet = (0..NODES - 1).filter(|node| lost & 1 << node != 0).collect();
        let lease = Lease::new(drawn.pool.lease.unwrap(), drawn.pool.drift_ppm);
        let retry = drawn.pool.retry;
        let said = |what: &str, judged: Result<(), Breach>| {
            assert_eq!(judged, Ok(()), "{what}, seed {seed}, without {lost}\n{drawn}");
        };
        let pool = arbiter::Pool { lease, retry, ..arbiter::Pool::named(units, NODES) };
        said("named", judge_outlooks::<Arbiter>(&drawn, &pool, &lost));
        let pool = ticket::Pool { lease, retry, ..ticket::Pool::new(units, NODES) };
        said("ticket", judge_outlooks::<Ticket>(&drawn, &pool, &lost));
        let mut pool = table::Pool::new(units, NODES);
        (pool.goods.lease, pool.goods.retry) = (lease, retry);
        said("table", judge_outlooks::<Table>(&drawn, &pool, &lost));
        let pool = central::tests::seeds::pool(&drawn, None);
        said("central", judge_outlooks::<Central>(&drawn, &pool, &lost));
    }
}
