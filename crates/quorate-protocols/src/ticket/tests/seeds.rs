//! Simulated runs: clean where the rules are kept, caught where one is broken.

use quorate_core::Lease;
use quorate_sim::{
    Delay, Needs, Plan, Profile, Recurring, Span, Verdict, Watch, run, swarm_command,
};

use crate::ticket::pool::Mutant;
use crate::ticket::{Pool, Ticket};

fn play(seed: u64, profile: Profile, mutant: Option<Mutant>) -> Option<&'static str> {
    play_harder(seed, profile, mutant, |_| {})
}

/// The same, with a plan made worse.
fn play_harder(
    seed: u64,
    profile: Profile,
    mutant: Option<Mutant>,
    harder: impl Fn(&mut Plan),
) -> Option<&'static str> {
    let mut plan = Plan::swarm(seed, profile, Needs::default());
    if plan.nodes > 10 {
        return None;
    }
    harder(&mut plan);
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

/// Nodes are restarted one after the other, and every claim asks all members, as nodes do unless
/// they are told otherwise: whoever renews keeps what it has.
fn restarted(seed: u64, mutant: Option<Mutant>) -> Option<&'static str> {
    let plan = Plan::swarm(seed, Profile::Restarts, Needs::default());
    if plan.nodes > 10 {
        return None;
    }
    let pool = Pool {
        lease: Lease::new(plan.pool.lease.expect("ticket has leases"), plan.pool.drift_ppm),
        retry: plan.pool.retry,
        spares: plan.nodes,
        mutant,
        ..Pool::new(plan.pool.units, plan.nodes)
    };
    let report = run::<Ticket>(&plan, &pool, Watch { strict: true, ..Watch::default() });
    match report.verdict {
        Verdict::Clean | Verdict::Stopped => None,
        Verdict::Broken(breach) if mutant.is_some() => Some(breach.law),
        Verdict::Broken(ref breach) => {
            let line = report.replay_line(&swarm_command("ticket", seed, Profile::Restarts));
            panic!("{breach}\n{line}");
        }
    }
}

#[test]
fn whoever_renews_keeps_what_it_has_while_nodes_are_restarted_one_after_the_other() {
    (0..40).for_each(|seed| assert_eq!(restarted(seed, None), None));
}

/// Members are suspected and trusted again all the time, and units are used for several leases: who
/// holds some moves from member to member, past those who wait.
fn restless(plan: &mut Plan) {
    let lease = plan.pool.lease.expect("the swarm has leases").as_nanos() as u64;
    let delay = lease / 100;
    plan.links.delay = Delay::Everywhere(Span::Exponential(delay));
    plan.pool.retry = std::time::Duration::from_nanos(lease / 10);
    plan.faults.slander = Some(Recurring { every: lease / 4, lasts: Span::Exponential(lease / 2) });
    plan.workload.hold = Span::Exponential(2 * lease);
    plan.workload.cancel_ppm = 0;
    plan.duration = 60 * lease;
    plan.steps_max = 8_000;
}

/// The law that some restless seed finds broken, of which one is the first to be played; without
/// the mistake none does.
fn caught_restless(first: u64, mutant: Mutant) -> &'static str {
    let caught = (first..first + 60).find_map(|seed| {
        let law = play_harder(seed, Profile::Network, Some(mutant), restless)?;
        assert_eq!(play_harder(seed, Profile::Network, None, restless), None);
        Some(law)
    });
    caught.unwrap_or_else(|| panic!("nobody noticed {mutant:?}"))
}

#[test]
fn joining_a_member_that_others_rely_on_is_caught() {
    assert_eq!(caught_restless(44, Mutant::JoinAtOnce), "capacity");
    assert_eq!(caught_restless(3, Mutant::KeepVoidViews), "capacity");
}

/// An old view came for a claim that was over, and its home granted it again, or found that it had
/// nobody left to rely on.
#[test]
fn what_seeds_have_found_stays_found() {
    assert_eq!(play_harder(0x7d, Profile::Crashes, None, restless), None);
    for profile in [Profile::Crashes, Profile::Amnesia, Profile::Everything] {
        for seed in 0..12 {
            assert_eq!(play_harder(seed, profile, None, restless), None);
        }
    }
}
