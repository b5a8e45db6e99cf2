//! Simulated runs: clean where the rules are kept, caught where one is broken.

use quorate_core::Lease;
use quorate_sim::{Needs, Plan, Profile, Verdict, Watch, run, swarm_command};

use crate::ticket::pool::Mutant;
use crate::ticket::{Pool, Ticket};

fn play(seed: u64, profile: Profile, mutant: Option<Mutant>) -> Option<&'static str> {
    let plan = Plan::swarm(seed, profile, Needs::default());
    if plan.nodes > 10 {
        return None;
    }
    let lease = plan.pool.lease.expect("ticket has leases");
    let pool = Pool {
        lease: Lease::new(lease, plan.pool.drift_ppm),
        retry: plan.pool.retry,
        patience: Some(2 + (seed % 2) as u32),
        spares: (seed % 3) as u32,
        mutant,
        ..Pool::new(plan.pool.units, plan.nodes)
    };
    let report = run::<Ticket>(&plan, &pool, Watch { strict: true, ..Watch::default() });
    match report.verdict {
        Verdict::Clean | Verdict::Stopped => None,
        Verdict::Broken(breach) if mutant.is_some() => Some(breach.law),
        Verdict::Broken(ref breach) => {
            let line = report.replay_line(&swarm_command("ticket", seed, profile));
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
    (0..300)
        .find_map(|seed| play(seed, profile, Some(mutant)))
        .unwrap_or_else(|| panic!("nobody noticed {mutant:?}"))
}

#[test]
fn broken_rules_are_caught() {
    for mutant in [Mutant::T2NoBump, Mutant::T3IgnoreUnsettled] {
        assert_eq!(caught(Profile::Network, mutant), "capacity", "{mutant:?}");
    }
    assert_eq!(caught(Profile::Amnesia, Mutant::NoGrace), "capacity");
}
