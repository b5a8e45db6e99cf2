//! Members that are restarted one after the other and forgot everything, each when the one before
//! promises again: whoever renews keeps what it has.

use std::time::Duration;

use quorate_core::NodeId;
use quorate_sim::{Arrival, Arrivals, Plan, Rng, Session, Span, Watch};

use crate::central;
use crate::table::pool::Mutant;
use crate::table::{Pool, Table};

const MS: u64 = 1_000_000;
const MEMBERS: u32 = 5;
const NODES: u32 = 9;
const LEASE: u64 = 3_000 * MS;

/// Eight that hold for as long as it lasts, and others that come and go, all at nodes that are no
/// members: what members forget is the matter here, not homes.
fn plan(seed: u64) -> Plan {
    let mut rng = Rng::new(seed ^ 0x666f_7267);
    let mut plan = Plan::quiet(seed, NODES, 10);
    plan.duration = 60_000 * MS;
    plan.pool.lease = Some(Duration::from_nanos(LEASE));
    plan.faults.detection = Some(Span::Uniform { low: 300 * MS, high: 900 * MS });
    plan.faults.amnesia_ppm = 1_000_000;
    let home = |which: u32| MEMBERS + which % (NODES - MEMBERS);
    let holder = |which| Arrival { at: MS, node: home(which), units: 1, hold: 120_000 * MS };
    let mut script: Vec<Arrival> = (0..8).map(holder).collect();
    script.extend((0..600).map(|which| {
        let (at, hold) = (rng.between(2, 50_000) * MS, rng.between(1, 40) * MS);
        Arrival { at, node: home(which), units: 1, hold }
    }));
    script.sort_by_key(|arrival| arrival.at);
    plan.workload.arrivals = Arrivals::Script(script);
    plan
}

/// How many lost what they had.
fn lost(seed: u64, mutant: Option<Mutant>) -> u64 {
    let plan = plan(seed);
    let goods = central::tests::seeds::pool(&plan, None).goods;
    let pool = Pool { goods, mutant, ..Pool::new(10, MEMBERS) };
    let watch = Watch { strict: true, ..Watch::default() };
    let mut session = Session::<Table>::new(&plan, &pool, watch).unwrap();
    let mut rng = Rng::new(seed);
    for member in 0..MEMBERS {
        // Down, then in grace for a lease; then a lease in which everybody renews.
        let from = session.now() + LEASE + rng.below(1_000 * MS);
        session.advance(from).unwrap();
        session.crash(NodeId(member));
        session.advance(from + rng.between(50, 2_000) * MS).unwrap();
        session.restart(NodeId(member)).unwrap();
        session.advance(session.now() + LEASE + 10 * MS).unwrap();
    }
    session.measures().cut_short
}

#[test]
fn whoever_renews_keeps_what_it_has_while_members_forget_one_after_the_other() {
    let lost: Vec<u64> = (0..20).map(|seed| lost(seed, None)).collect();
    assert_eq!(lost, [0; 20]);
}

/// Renewals that wait for a member that seems dead come too late.
#[test]
fn sections_that_ask_the_dead_cost_holders_their_units() {
    let lost: u64 = (0..20).map(|seed| lost(seed, Some(Mutant::AskTheDead))).sum();
    assert!(lost > 0);
}
