//! How long nobody is granted anything after a node has died: one crash at any moment under load,
//! in simulated time. Claims of the dead node's clients are in the table, one of them may have the
//! lock of any member, and any section may be about to ask the dead one.

use quorate_core::NodeId;
use quorate_sim::{Arrivals, Plan, Session, Span, Watch};

use crate::central;
use crate::central::tests::absent;
use crate::table::pool::Mutant;
use crate::table::{Pool, Table};

const MS: u64 = 1_000_000;
/// The daemon's: silence of three seconds, looked for once a second.
const SUSPICION: (u64, u64) = (3_000 * MS, 4_000 * MS);
/// All sections that wait for each other: of five nodes, with 2|q| hops of a millisecond each, once
/// with a round that is too early, and until the first of four holders is done.
const ROUND_TRIPS: u64 = 400 * MS;

fn plan(seed: u64) -> Plan {
    let mut plan = Plan::quiet(seed, 5, 4);
    plan.duration = 60_000 * MS;
    let think = Span::Exponential(30 * MS);
    plan.workload.arrivals = Arrivals::Closed { clients_per_node: 2, think };
    plan.workload.hold = Span::Exponential(100 * MS);
    let (low, high) = SUSPICION;
    plan.faults.detection = Some(Span::Uniform { low, high });
    plan
}

/// The longest time without a grant in the twenty seconds after a crash.
fn longest_gap(seed: u64, mutant: Option<Mutant>) -> u64 {
    let plan = plan(seed);
    let goods = central::tests::seeds::pool(&plan, None).goods;
    let pool = Pool { goods, mutant, ..Pool::new(4, 5) };
    let mut session = Session::<Table>::new(&plan, &pool, Watch::default()).unwrap();
    session.stagger();
    let killed = 2_000 * MS + seed * 7_919_104_729 % (1_000 * MS);
    session.advance(killed).unwrap();
    session.kill(NodeId((seed % 5) as u32)).unwrap();
    let (mut grants, mut last, mut longest) = (session.measures().grants, killed, 0);
    for tick in 1..=4_000 {
        session.advance(killed + tick * 5 * MS).unwrap();
        let (now, sofar) = (session.now(), session.measures().grants);
        if sofar > grants {
            longest = longest.max(now - last);
            (grants, last) = (sofar, now);
        }
    }
    longest.max(session.now() - last)
}

/// Gaps after a crash, seed by seed, ascending.
fn distribution(mutant: Option<Mutant>) -> Vec<u64> {
    let mut gaps: Vec<u64> = (0..60).map(|seed| longest_gap(seed, mutant) / MS).collect();
    gaps.sort_unstable();
    gaps
}

#[test]
fn after_a_crash_grants_go_on_when_it_is_suspected() {
    let gaps = distribution(None);
    let bound = (SUSPICION.1 + ROUND_TRIPS) / MS;
    assert!(gaps.iter().all(|gap| *gap <= bound), "{gaps:?} ms, above {bound}");
}

/// What it was before: up to patience and a retry more for every section that waits.
#[test]
fn sections_that_ask_the_dead_are_caught() {
    let gaps = distribution(Some(Mutant::AskTheDead));
    let bound = (SUSPICION.1 + ROUND_TRIPS) / MS;
    assert!(gaps.iter().filter(|gap| **gap > bound).count() > 5, "{gaps:?} ms, up to {bound}");
}

#[test]
fn a_node_that_dies_with_ten_waiting_claims_delays_nobody() {
    let plan = absent::dead_waiters(1);
    let goods = central::tests::seeds::pool(&plan, None).goods;
    let served_after = |mutant| {
        let pool = Pool { goods: goods.clone(), mutant, ..Pool::new(1, 3) };
        absent::served_after::<Table>(&plan, &pool)
    };
    assert!(served_after(None) < 100);
    let without = served_after(Some(Mutant::ServeTheDead));
    assert!(without > 10 * 3_000 - 100, "a lease each: {without} ms");
}
