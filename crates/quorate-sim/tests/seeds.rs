//! Whole runs of a toy protocol: clean where it is right, caught where it is wrong, and the same
//! again from the same seed.

mod toy;

use std::ops::ControlFlow;

use quorate_core::Lease;
use quorate_sim::{Needs, Plan, Profile, Report, Verdict, Watch, run, swarm_command};
use toy::{Mistake, Pool, Toy};

const SEEDS: u64 = 12;

fn pool(plan: &Plan, mistake: Option<Mistake>) -> Pool {
    let lease = plan.pool.lease.expect("the toy has leases");
    Pool {
        units: plan.pool.units,
        lease: Lease::new(lease, plan.pool.drift_ppm),
        retry: plan.pool.retry,
        durable: plan.pool.durable,
        mistake,
    }
}

fn play(seed: u64, profile: Profile, mistake: Option<Mistake>, until: Option<u64>) -> Report {
    let plan = Plan::swarm(seed, profile, Needs::default());
    let pool = pool(&plan, mistake);
    run::<Toy>(&plan, &pool, Watch { strict: true, until, ..Watch::default() })
}

fn trace(seed: u64, profile: Profile) -> String {
    let plan = Plan::swarm(seed, profile, Needs::default());
    let mut text = String::new();
    let watch = Watch { strict: true, trace: Some(&mut text), ..Watch::default() };
    run::<Toy>(&plan, &pool(&plan, None), watch);
    text
}

#[test]
fn a_correct_protocol_is_clean_under_every_profile() {
    for profile in Profile::ALL {
        for seed in 0..SEEDS {
            let report = play(seed, profile, None, None);
            let command = swarm_command("toy", seed, profile);
            assert_eq!(report.verdict, Verdict::Clean, "{}", report.replay_line(&command));
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_trace_to_the_byte() {
    for profile in Profile::ALL {
        let first = trace(7, profile);
        assert!(first.lines().count() > 100, "{profile}: {first}");
        assert!(first == trace(7, profile), "{profile}: two runs of one seed differ");
        assert!(first != trace(8, profile), "{profile}: the seed does not matter");
    }
}

/// Whoever has no more time need not wait for the end of a long run.
#[test]
fn a_run_ends_when_whoever_watches_it_says_so() {
    let mut plan = Plan::quiet(1, 5, 2);
    plan.duration *= 100;
    let pool = pool(&plan, None);
    let mut told = 0;
    let mut end = |_| {
        told += 1;
        if told < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let ended = run::<Toy>(&plan, &pool, Watch { pulse: Some(&mut end), ..Watch::default() });
    assert_eq!(told, 3, "nobody is asked again");
    assert_eq!(ended.verdict, Verdict::Stopped);
    assert!(ended.ended_at < plan.duration);
}

/// The first law that breaks among some seeds, after checking that its replay line replays it.
fn caught(profile: Profile, mistake: Mistake) -> String {
    for seed in 0..400 {
        let report = play(seed, profile, Some(mistake), None);
        let Verdict::Broken(breach) = &report.verdict else { continue };
        let line = report.replay_line(&swarm_command("toy", seed, profile));
        let start = format!("quorate-lab sim run --protocol toy --swarm --seed {seed:#x} --faults");
        assert!(line.starts_with(&start), "{line}");
        let until = line.split(" --until ").nth(1).and_then(|rest| rest.split(' ').next());
        let until = quorate_sim::parse_time(until.expect("a time")).expect("a time");
        let again = play(seed, profile, Some(mistake), Some(until));
        assert_eq!(again.verdict, report.verdict, "{line}");
        assert_eq!(again.ended_at, report.ended_at, "{line}");
        return breach.law.to_string();
    }
    panic!("nobody noticed {mistake:?}")
}

#[test]
fn telling_before_persisting_is_caught() {
    let law = caught(Profile::Disk, Mistake::TellBeforePersist);
    assert!(["capacity", "exclusivity"].contains(&law.as_str()), "{law}");
}

#[test]
fn granting_without_room_is_caught() {
    let law = caught(Profile::None, Mistake::GrantWithoutRoom);
    assert!(["capacity", "exclusivity"].contains(&law.as_str()), "{law}");
}

#[test]
fn never_asking_again_is_caught_by_the_liveness_phase() {
    assert_eq!(caught(Profile::Network, Mistake::NeverRetry), "everyone served");
}

#[test]
fn a_holder_that_trusts_its_clock_too_far_is_caught() {
    let law = caught(Profile::Clocks, Mistake::IgnoreDrift);
    assert!(["capacity", "exclusivity"].contains(&law.as_str()), "{law}");
}

#[test]
fn a_panic_is_a_breach_with_a_replay_line() {
    assert_eq!(caught(Profile::None, Mistake::Panic), "no panic");
}
