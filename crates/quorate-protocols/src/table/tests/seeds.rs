//! Simulated runs: clean where the rules are kept, caught where one is broken.

use quorate_sim::{Needs, Plan, Profile, Verdict, Watch, run, swarm_command};

use crate::central;
use crate::table::pool::Mutant;
use crate::table::{Pool, Table};

fn play(seed: u64, profile: Profile, mutant: Option<Mutant>) -> Option<&'static str> {
    let plan = Plan::swarm(seed, profile, Needs::default());
    let goods = central::tests::seeds::pool(&plan, None).goods;
    let pool = Pool { mutant, ..Pool::drawn(goods, plan.nodes, seed) };
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

/// Whoever was cancelled had been passed, and took the count of all older claims along.
#[test]
fn a_seed_in_which_a_claim_was_passed_four_times_instead_of_two() {
    play(0x17, Profile::Swarm, None);
}

#[test]
fn every_fault_profile_is_survived() {
    for profile in Profile::ALL {
        for seed in 0..15 {
            play(seed, profile, None);
        }
    }
}

/// Nodes are restarted one after the other: whoever renews keeps what it has.
#[test]
fn whoever_renews_keeps_what_it_has_while_nodes_are_restarted_one_after_the_other() {
    let small = |seed: &u64| Plan::swarm(*seed, Profile::Restarts, Needs::default()).nodes <= 10;
    for seed in (0..25).chain([117, 219]).filter(small) {
        play(seed, Profile::Restarts, None);
    }
}

/// After a long wait next to nothing of the lease was left: over before its first renewal.
#[test]
fn telling_of_what_is_left_of_a_lease_is_caught() {
    let law = play(2, Profile::Restarts, Some(Mutant::TellWhatIsLeft));
    assert_eq!(law, Some("holders keep"));
}

/// The law that some seed of this profile finds broken. One that did is the first to be played.
fn caught(first: u64, profile: Profile, mutant: Mutant) -> &'static str {
    (first..first + 400)
        .find_map(|seed| play(seed, profile, Some(mutant)))
        .unwrap_or_else(|| panic!("nobody noticed {mutant:?}"))
}

#[test]
fn broken_rules_are_caught() {
    for (first, profile, mutant, laws) in [
        (1, Profile::None, Mutant::TakeOldest, &["capacity", "fence order", "exclusivity"][..]),
        (0, Profile::None, Mutant::ReuseFence, &["fence order"]),
        (23, Profile::Swarm, Mutant::ForgetPassed, &["bounded overtaking"]),
        (0, Profile::Clients, Mutant::NeverReclaim, &["everyone served", "no lost units"]),
        (169, Profile::Network, Mutant::StayAway, &["everyone served"]),
        (0, Profile::Network, Mutant::NeverRetry, &["everyone served", "no lost units"]),
        (5, Profile::Amnesia, Mutant::NoGrace, &["capacity", "fence order", "exclusivity"]),
    ] {
        let law = caught(first, profile, mutant);
        assert!(laws.contains(&law), "{mutant:?}: {law}");
    }
}
