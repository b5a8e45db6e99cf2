//! Simulated runs: clean where the rules are kept, caught where one is broken.

use quorate_core::Lease;
use quorate_sim::{Needs, Plan, Profile, Verdict, Watch, run, swarm_command};

use crate::central::Fairness;
use crate::table::pool::Mutant;
use crate::table::{Pool, Table};

fn play(seed: u64, profile: Profile, mutant: Option<Mutant>) -> Option<&'static str> {
    let plan = Plan::swarm(seed, profile, Needs::default());
    if plan.nodes > 10 {
        return None;
    }
    let lease = plan.pool.lease.expect("table has leases");
    let mut pool = Pool::new(plan.pool.units, plan.nodes.min(5));
    pool.goods.lease = Lease::new(lease, plan.pool.drift_ppm);
    pool.goods.retry = plan.pool.retry;
    pool.goods.durable = plan.pool.durable;
    pool.goods.fairness = Fairness::Backfill(plan.pool.backfill);
    pool.patience = Some(2 + (seed % 2) as u32);
    pool.mutant = mutant;
    let report = run::<Table>(&plan, &pool, Watch { strict: true, ..Watch::default() });
    match report.verdict {
        Verdict::Clean | Verdict::Stopped => None,
        Verdict::Broken(breach) if mutant.is_some() => Some(breach.law),
        Verdict::Broken(ref breach) => {
            let line = report.replay_line(&swarm_command("table", seed, profile));
            panic!("{breach}\n{line}");
        }
    }
}

#[test]
fn every_fault_profile_is_survived() {
    for profile in Profile::ALL {
        for seed in 0..30 {
            play(seed, profile, None);
        }
    }
}

/// The law that some seed of this profile finds broken.
fn caught(profile: Profile, mutant: Mutant) -> &'static str {
    (0..400)
        .find_map(|seed| play(seed, profile, Some(mutant)))
        .unwrap_or_else(|| panic!("nobody noticed {mutant:?}"))
}

#[test]
fn broken_rules_are_caught() {
    for (profile, mutant, laws) in [
        (Profile::None, Mutant::TakeOldest, &["capacity", "fence order", "exclusivity"][..]),
        (Profile::None, Mutant::ReuseFence, &["fence order"]),
        (Profile::Clients, Mutant::NeverReclaim, &["everyone served", "no lost units"]),
        (Profile::Network, Mutant::NeverRetry, &["everyone served", "no lost units"]),
        (Profile::Amnesia, Mutant::NoGrace, &["capacity", "fence order", "exclusivity"]),
    ] {
        let law = caught(profile, mutant);
        assert!(laws.contains(&law), "{mutant:?}: {law}");
    }
}
