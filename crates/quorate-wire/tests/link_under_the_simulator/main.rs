//! A whole protocol under the simulator with every fault it knows, and between its seats not the
//! simulator's links but ours, as a node uses them. What arrives is checked message by message
//! (`linked.rs`), and the protocol's laws are judged as always.

mod linked;

use quorate_core::{Lease, NodeId, Protocol};
use quorate_protocols::Fairness;
use quorate_protocols::central::{self, Central};
use quorate_sim::{Needs, Plan, Profile, Report, Verdict, Watch, run};

use linked::{Linked, Mistake, Pool};

fn pool(plan: &Plan, mistake: Option<Mistake>) -> Pool<Central> {
    let lease = plan.pool.lease.expect("central has leases");
    let mut inner = central::Pool::new(plan.pool.units);
    inner.arbiter = NodeId(plan.pool.arbiter);
    inner.goods.lease = Lease::new(lease, plan.pool.drift_ppm);
    inner.goods.retry = plan.pool.retry;
    inner.goods.fairness = Fairness::Backfill(plan.pool.backfill);
    inner.goods.durable = plan.pool.durable;
    Pool { inner, nodes: plan.nodes, patience: lease / 8, mistake }
}

/// Among few nodes, since every two have a link, whether they use it or not; and where messages
/// stay in order unless they are lost, since every one out of order ends a connection.
fn play(seed: u64, profile: Profile, mistake: Option<Mistake>) -> Report {
    let needs = Needs { order: true, ..Needs::default() };
    let mut plans = (seed << 32..).map(|seed| Plan::swarm(seed, profile, needs));
    let plan = plans.find(|plan| (2..=5).contains(&plan.nodes)).expect("most have few");
    run::<Linked<Central>>(&plan, &pool(&plan, mistake), Watch { strict: true, ..Watch::default() })
}

#[test]
fn a_protocol_over_links_is_clean_under_every_fault() {
    let mut frames = [0; Linked::<Central>::KINDS.len()];
    for profile in Profile::ALL {
        for seed in 0..20 {
            let report = play(seed, profile, None);
            assert_eq!(report.verdict, Verdict::Clean, "seed {seed} of {profile}");
            for (sum, sent) in frames.iter_mut().zip(&report.measures.messages) {
                *sum += sent;
            }
        }
    }
    let [calls, _, data, ..] = frames;
    assert!(calls > 1_000 && data > 10_000, "{frames:?}: few messages, or few connections");
}

/// The law that some seed finds broken.
fn caught(profile: Profile, mistake: Mistake) -> &'static str {
    (0..100)
        .find_map(|seed| match play(seed, profile, Some(mistake)).verdict {
            Verdict::Broken(breach) => Some(breach.law),
            _ => None,
        })
        .expect("some seed finds it")
}

/// The links notice that a number is missing and close, again and again.
#[test]
fn a_side_that_claims_to_have_heard_what_it_has_not_is_caught() {
    assert_eq!(caught(Profile::Network, Mistake::SayOneMore), "everyone served");
}

#[test]
fn a_node_that_starts_again_under_the_same_boot_number_is_caught() {
    assert_eq!(caught(Profile::Crashes, Mistake::KeepBootNumber), "no panic");
}
