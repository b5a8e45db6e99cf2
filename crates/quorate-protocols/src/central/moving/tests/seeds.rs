//! Simulated runs in which the seat moves: clean where the rules are kept, caught where one is
//! broken. Here time is real: clocks drift, and a licence ends while messages are on their way.

use quorate_core::NodeId;
use quorate_sim::{CouncilPlan, Needs, Plan, Profile, Report, Verdict, Watch, run, swarm_command};

use crate::central::moving::{Moving, Pool};
use crate::central::pool::Mutant;
use crate::central::tests::seeds::pool;

fn play(seed: u64, profile: Profile, mutant: Option<Mutant>, stale: bool) -> Report {
    let mut plan = Plan::swarm(seed, profile, Needs::default());
    plan.pool.durable = false;
    let lease = plan.pool.lease.expect("central has leases").as_nanos() as u64;
    let times = (plan.links.delay.mean(), lease);
    let council = CouncilPlan::drawn(seed, NodeId(plan.pool.arbiter), times);
    plan.council = Some(CouncilPlan { stale_answers: stale, ..council });
    plan.silence = 20 * lease;
    let central = crate::central::Pool { moves: true, ..pool(&plan, mutant) };
    let pool = Pool::new(central, plan.nodes as usize);
    let report = run::<Moving>(&plan, &pool, Watch { strict: true, ..Watch::default() });
    if mutant.is_none() && !stale && report.verdict != Verdict::Clean {
        let line = report.replay_line(&swarm_command("central --variant moving", seed, profile));
        panic!("{:?}\n{line}", report.verdict);
    }
    report
}

#[test]
fn every_fault_profile_is_survived_while_the_seat_moves() {
    let (mut moves, mut takeovers, mut grants) = (0, 0, 0);
    for profile in Profile::ALL {
        for seed in 0..20 {
            let report = play(seed, profile, None, false);
            moves += report.measures.seat_moves;
            takeovers += report.measures.takeovers;
            grants += report.measures.grants;
        }
    }
    assert!(moves > 500 && grants > 20_000, "{moves} moves, {grants} grants: nothing happened");
    assert!(takeovers > 40, "{takeovers} takeovers by shadows");
}

/// The law that some seed finds broken. One that did is the first to be played.
fn caught(first: u64, mutant: Option<Mutant>, stale: bool) -> &'static str {
    (first..first + 2_000)
        .find_map(|seed| match play(seed, Profile::Everything, mutant, stale).verdict {
            Verdict::Broken(breach) => Some(breach.law),
            _ => None,
        })
        .unwrap_or_else(|| panic!("nobody noticed {mutant:?}"))
}

/// Rules about time, which the checker takes as given.
#[test]
fn broken_rules_of_licences_are_caught() {
    let laws = ["capacity", "exclusivity", "fence order"];
    for (first, mutant, stale) in [
        (47, Some(Mutant::DecideUnlicensed), false),
        (0, Some(Mutant::NoGraceAfterMove), false),
        (122, None, true),
        (0, Some(Mutant::ClientFirst), false),
    ] {
        let law = caught(first, mutant, stale);
        assert!(laws.contains(&law), "{mutant:?}: {law}");
    }
}
