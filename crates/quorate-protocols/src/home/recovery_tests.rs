//! How long it takes after a node is back, goes on or is reached again until a claim for all units
//! is granted: in simulated time, with leases, retries and suspicion as a daemon has them.

use std::time::Duration;

use quorate_core::{Lease, NodeId, Protocol};
use quorate_sim::{Arrival, Arrivals, Plan, Rng, Session, Span, Watch};

use crate::{arbiter, central, table, ticket};

const MS: u64 = 1_000_000;
const LEASE: u64 = 2_000 * MS;
const RETRY: u64 = 1_000 * MS;
const NODES: u32 = 5;
const UNITS: u32 = 4;
/// When something goes wrong.
const HURT: u64 = 3_000 * MS;

/// What happens to a node, until it is made good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hurt {
    /// It crashes; its clients wait for it, and it remembers nothing.
    Crash,
    /// It crashes, and its clients are gone.
    Death,
    /// It stands still.
    Pause,
    /// Nobody hears it, and it hears nobody. What is said meanwhile is lost.
    Cut,
}

/// Short uses everywhere until all is well again, and a few that began before and last; then one
/// claim for all.
fn plan(seed: u64, lasts: u64, last: NodeId) -> Plan {
    let mut rng = Rng::new(seed ^ 0x6865_616c);
    let mut plan = Plan::quiet(seed, NODES, UNITS);
    let healed = HURT + lasts;
    plan.duration = healed + 120_000 * MS;
    plan.pool.lease = Some(Duration::from_nanos(LEASE));
    plan.pool.retry = Duration::from_nanos(RETRY);
    plan.faults.detection = Some(Span::Uniform { low: 3_000 * MS, high: 4_000 * MS });
    plan.faults.amnesia_ppm = 1_000_000;
    plan.links.cuts_hold = false;
    let mut script: Vec<Arrival> = (0..40)
        .map(|which| {
            let node = rng.below(u64::from(NODES)) as u32;
            if which < 3 {
                // In use when it happens, and hardly longer than until all is well again.
                let (at, hold) = (rng.below(900 * MS), 2_500 * MS);
                return Arrival { at, node, units: 1, hold };
            }
            let (at, hold) = (rng.below(healed), rng.between(5, 60) * MS);
            Arrival { at, node, units: 1 + u32::from(rng.chance(300_000)), hold }
        })
        .collect();
    script.sort_by_key(|arrival| arrival.at);
    let all = Arrival { at: healed, node: last.0, units: UNITS, hold: MS };
    script.push(all);
    plan.workload.arrivals = Arrivals::Script(script);
    plan
}

/// From the moment at which all is well to the grant of the claim for all units.
fn recovery<P: Protocol>(
    (plan, pool): (&Plan, &P::Pool),
    hurt: Hurt,
    node: NodeId,
    lasts: u64,
) -> u64 {
    let mut session = Session::<P>::new(plan, pool, Watch { strict: true, ..Watch::default() })
        .unwrap_or_else(|breach| panic!("{breach}"));
    let healed = HURT + lasts;
    session.advance(HURT).unwrap();
    let others = || (0..NODES).map(NodeId).filter(|other| *other != node);
    match hurt {
        Hurt::Crash => session.crash(node),
        Hurt::Death => session.kill(node).unwrap(),
        Hurt::Pause => session.freeze(node, lasts),
        Hurt::Cut => session.cut_off(node),
    }
    // Whoever is not heard for so long is suspected, and trusted when it is heard again.
    let silent = [Hurt::Pause, Hurt::Cut].contains(&hurt) && lasts > 3_500 * MS;
    if silent {
        session.advance(HURT + 3_500 * MS).unwrap();
        for other in others() {
            session.suspect(other, node, true).unwrap();
            if hurt == Hurt::Cut {
                session.suspect(node, other, true).unwrap();
            }
        }
    }
    session.advance(healed).unwrap();
    match hurt {
        // Its peers know by its greeting that it is another.
        Hurt::Crash | Hurt::Death => {
            session.restart(node).unwrap();
            for other in others() {
                session.suspect(other, node, true).unwrap();
                session.suspect(other, node, false).unwrap();
            }
        }
        Hurt::Pause => {}
        Hurt::Cut => session.heal(node).unwrap(),
    }
    if silent {
        session.advance(healed + 20 * MS).unwrap();
        for other in others() {
            session.suspect(other, node, false).unwrap();
            session.suspect(node, other, false).unwrap();
        }
    }
    let last = plan_claims(plan) - 1;
    while session.measures().grants_of.get(last).is_none_or(|grants| *grants == 0) {
        let next = session.now() + 5 * MS;
        assert!(next < plan.duration, "{hurt:?} of {node}: never");
        session.advance(next).unwrap();
    }
    session.now() - healed
}

fn plan_claims(plan: &Plan) -> usize {
    let Arrivals::Script(script) = &plan.workload.arrivals else { unreachable!("it is one") };
    script.len()
}

/// For each kind the median and the longest, in milliseconds: short ones and ones that are noticed,
/// of every node.
fn measured<P: Protocol>(hurts: &[Hurt], pool: impl Fn(&Plan) -> P::Pool) -> Vec<(Hurt, u64, u64)> {
    hurts
        .iter()
        .map(|&hurt| {
            let mut times: Vec<u64> = (0..40)
                .map(|seed| {
                    let lasts = [300, 2_500, 6_000][seed as usize % 3] * MS + seed * 7 * MS;
                    let node = (seed / 3 % 5) as u32;
                    // Clients of a node that dies are gone.
                    let last = if hurt == Hurt::Death { node + 1 } else { node + seed as u32 };
                    let (node, plan) = (NodeId(node), plan(seed, lasts, NodeId(last % NODES)));
                    recovery::<P>((&plan, &pool(&plan)), hurt, node, lasts) / MS
                })
                .collect();
            times.sort_unstable();
            (hurt, times[times.len() / 2], times[times.len() - 1])
        })
        .collect()
}

/// One lease: what holders have who are gone, or the grace of an arbiter that forgot. Then what was
/// said to nobody is said again, and a few short uses end that came before.
const BOUND: u64 = (LEASE + 2 * RETRY) / MS + 500;

fn within_bounds<P: Protocol>(hurts: &[Hurt], pool: impl Fn(&Plan) -> P::Pool) {
    let measured = measured::<P>(hurts, pool);
    let within = measured.iter().all(|(_, _, longest)| *longest <= BOUND);
    assert!(within, "{}: {measured:?} ms > {BOUND}", P::NAME);
}

const ALL: [Hurt; 4] = [Hurt::Crash, Hurt::Death, Hurt::Pause, Hurt::Cut];

#[test]
fn central_grants_all_units_within_a_lease_and_two_retries_of_a_fault() {
    within_bounds::<central::Central>(&ALL, |plan| central::tests::seeds::pool(plan, None));
}

fn table_pool(plan: &Plan, mutant: Option<table::pool::Mutant>) -> table::Pool {
    let goods = central::tests::seeds::pool(plan, None).goods;
    table::Pool { goods, mutant, ..table::Pool::new(UNITS, NODES) }
}

#[test]
fn table_does_too() {
    within_bounds::<table::Table>(&ALL, |plan| table_pool(plan, None));
}

/// The claims of a node that is back before it is suspected, and of whose clients nobody is left,
/// would be granted in their turn, for a lease each.
#[test]
fn a_table_node_that_does_not_look_back_is_caught() {
    let mutant = Some(table::pool::Mutant::LeaveEarlierLives);
    let measured = measured::<table::Table>(&[Hurt::Death], |plan| table_pool(plan, mutant));
    assert!(measured[0].2 > BOUND, "{measured:?} ms");
}

#[test]
fn named_units_can_all_be_had_as_soon() {
    within_bounds::<arbiter::Arbiter>(&ALL, |plan| arbiter::Pool {
        lease: Lease::new(Duration::from_nanos(LEASE), plan.pool.drift_ppm),
        retry: Duration::from_nanos(RETRY),
        ..arbiter::Pool::named(UNITS, NODES)
    });
}

#[test]
fn counted_units_can_all_be_had_as_soon() {
    within_bounds::<arbiter::Arbiter>(&ALL, |plan| arbiter::Pool {
        lease: Lease::new(Duration::from_nanos(LEASE), plan.pool.drift_ppm),
        retry: Duration::from_nanos(RETRY),
        ..arbiter::Pool::new(UNITS, NODES)
    });
}

#[test]
fn tickets_can_all_be_had_as_soon() {
    within_bounds::<ticket::Ticket>(&ALL, |plan| ticket::Pool {
        lease: Lease::new(Duration::from_nanos(LEASE), plan.pool.drift_ppm),
        retry: Duration::from_nanos(RETRY),
        ..ticket::Pool::new(UNITS, NODES)
    });
}
