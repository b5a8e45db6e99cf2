//! Simulated runs: clean where the rules are kept, caught where one is broken.

use std::sync::Arc;

use quorate_core::{Lease, NodeId};
use quorate_sim::{Needs, Plan, Profile, Verdict, Watch, run, swarm_command};

use crate::central::pool::Mutant;
use crate::central::{Central, Pool};
use crate::goods::{Fairness, Goods};

pub(crate) fn pool(plan: &Plan, mutant: Option<Mutant>) -> Pool {
    let lease = plan.pool.lease.expect("central has leases");
    let goods = Goods {
        units: plan.pool.units,
        ever: None,
        drained: Arc::default(),
        lease_ever: None,
        lease: Lease::new(lease, plan.pool.drift_ppm),
        retry: plan.pool.retry,
        fairness: Fairness::Backfill(plan.pool.backfill),
        durable: plan.pool.durable,
        standing: false,
        eligible: None,
        labels: None,
        mutant,
    };
    Pool { goods, arbiter: NodeId(plan.pool.arbiter), moves: false }
}

fn play(seed: u64, profile: Profile, mutant: Option<Mutant>) -> Verdict {
    let plan = Plan::swarm(seed, profile, Needs::default());
    let pool = pool(&plan, mutant);
    let report = run::<Central>(&plan, &pool, Watch { strict: true, ..Watch::default() });
    if mutant.is_none() && report.verdict != Verdict::Clean {
        let line = report.replay_line(&swarm_command("central", seed, profile));
        panic!("{:?}\n{line}", report.verdict);
    }
    report.verdict
}

#[test]
fn every_fault_profile_is_survived() {
    for profile in Profile::ALL {
        for seed in 0..40 {
            play(seed, profile, None);
        }
    }
}

/// The simulator's own queue went back in time in the first of these.
#[test]
fn seeds_that_once_failed_stay_clean() {
    play(0x19b, Profile::Clients, None);
}

/// The law that some seed of this profile finds broken.
fn caught(profile: Profile, mutant: Mutant) -> &'static str {
    (0..2_000)
        .find_map(|seed| match play(seed, profile, Some(mutant)) {
            Verdict::Broken(breach) => Some(breach.law),
            _ => None,
        })
        .unwrap_or_else(|| panic!("nobody noticed {mutant:?}"))
}

#[test]
fn a_holder_that_counts_from_receipt_is_caught() {
    let law = caught(Profile::Network, Mutant::CountFromReceipt);
    assert!(["capacity", "exclusivity", "fence order"].contains(&law), "{law}");
}

#[test]
fn a_holder_that_ignores_drift_is_caught() {
    let law = caught(Profile::Clocks, Mutant::IgnoreDrift);
    assert!(["capacity", "exclusivity"].contains(&law), "{law}");
}

#[test]
fn a_requester_that_asks_only_once_is_caught() {
    assert_eq!(caught(Profile::Network, Mutant::NeverRetry), "everyone served");
}

/// Network faults come with wrong suspicions.
#[test]
fn a_claim_that_never_comes_back_into_its_turn_is_caught() {
    assert_eq!(caught(Profile::Network, Mutant::StayAway), "everyone served");
}

#[test]
fn an_arbiter_that_never_reclaims_is_caught() {
    let law = caught(Profile::Clients, Mutant::NeverReclaim);
    assert!(["everyone served", "no lost units"].contains(&law), "{law}");
}

#[test]
fn an_arbiter_that_forgot_and_grants_at_once_is_caught() {
    let law = caught(Profile::Amnesia, Mutant::NoGrace);
    assert!(["capacity", "exclusivity"].contains(&law), "{law}");
}

#[test]
fn telling_before_writing_down_is_caught() {
    let law = caught(Profile::Disk, Mutant::TellBeforePersist);
    assert!(["capacity", "exclusivity"].contains(&law), "{law}");
}
