//! Simulated runs in which the seat moves: clean where the rules are kept, caught where one is
//! broken. Here time is real: clocks drift, and a licence ends while messages are on their way.

use std::sync::Arc;

use quorate_core::{Lease, NodeId, Unit};
use quorate_sim::{
    Arrivals, CouncilPlan, Needs, Plan, Profile, Recurring, Report, Span, Verdict, Want, Watch,
    run, run_changing, swarm_command,
};

use super::on_demand::{self, Broken, OnDemand};
use crate::central::moving::{Moving, Pool};
use crate::central::pool::Mutant;
use crate::central::tests::seeds::pool;
use crate::goods::{Fairness, LeaseEver};

/// What changes.
#[derive(Clone, Copy, Debug)]
enum Changes {
    Units,
    Drains,
    Leases,
}

impl Changes {
    const ALL: [Changes; 3] = [Changes::Units, Changes::Drains, Changes::Leases];
}

fn play(seed: u64, profile: Profile, mutant: Option<Mutant>, stale: bool) -> Report {
    let mut plan = Plan::swarm(seed, profile, Needs::default());
    plan.pool.durable = false;
    let lease = plan.pool.lease.expect("central has leases").as_nanos() as u64;
    let times = (plan.links.delay.mean(), lease);
    let council = CouncilPlan::drawn(seed, NodeId(plan.pool.arbiter), times);
    plan.council = Some(CouncilPlan { stale_answers: stale, ..council });
    plan.silence = 20 * lease;
    let central = pool(&plan, mutant);
    let pool = Pool::new(central, plan.nodes as usize);
    let report = run::<Moving>(&plan, &pool, Watch { strict: true, ..Watch::default() });
    if mutant.is_none() && !stale && report.verdict != Verdict::Clean {
        let line = report.replay_line(&swarm_command("central --variant moving", seed, profile));
        panic!("{:?}\n{line}", report.verdict);
    }
    report
}

/// The same in a pool that is changed again and again: to fewer units and to more than it had, or
/// to shorter leases and longer ones.
fn play_changing(seed: u64, profile: Profile, what: Changes, mutant: Option<Mutant>) -> Report {
    let mut plan = Plan::swarm(seed, profile, Needs::default());
    plan.pool.durable = false;
    let lease = plan.pool.lease.expect("central has leases").as_nanos() as u64;
    let times = (plan.links.delay.mean(), lease);
    let council = CouncilPlan::drawn(seed, NodeId(plan.pool.arbiter), times);
    let mut dice = quorate_core::Dice::new(seed);
    let changes = Recurring { every: lease * (1 + dice.below(6)), lasts: Span::Constant(0) };
    plan.council = Some(CouncilPlan { changes: Some(changes), ..council });
    plan.silence = 20 * lease;
    let mut central = pool(&plan, mutant);
    let first = central.goods.units;
    central.goods.ever = Some(first);
    let nodes = plan.nodes as usize;
    let began = Pool::new(central.clone(), nodes);
    // Licences last as long as ever, so leases are at least as long as at first.
    let with = |central| Pool { licence: began.licence, ..Pool::new(central, nodes) };
    let first_lease = central.goods.lease;
    let (length, drift) = (first_lease.length(), first_lease.drift_ppm());
    let mut editions: Vec<Pool> = Vec::new();
    for _ in 0..200 {
        let goods = &mut central.goods;
        match what {
            Changes::Units => {
                goods.units = 1 + dice.below(2 * u64::from(first)) as u32;
                goods.ever = goods.ever.max(Some(goods.units));
                goods.fairness = Fairness::Backfill(dice.below(4) as u32);
            }
            Changes::Drains => {
                let drained = (0..first).filter(|_| dice.below(3) == 0);
                // Somebody waits for all there are, and is refused where some are drained.
                goods.drained = drained.map(Unit).collect();
            }
            Changes::Leases => {
                let lease = length.mul_f64([1.0, 1.5, 3.0, 5.0][dice.below(4) as usize]);
                goods.lease = Lease::new(lease, drift);
                let longest = goods.longest();
                goods.lease_ever = Some(LeaseEver { first: length, longest });
            }
        }
        editions.push(with(central.clone()));
    }
    // The last one can serve everybody.
    central.goods.units = first;
    (central.goods.lease, central.goods.drained) = (first_lease, Arc::default());
    editions.push(with(central));
    let watch = Watch { strict: true, ..Watch::default() };
    run_changing::<Moving>(&plan, (&began, &editions), watch)
}

#[test]
fn every_fault_profile_is_survived_while_the_pool_changes_too() {
    let (mut moves, mut amendments, mut grants) = (0, 0, 0);
    for (profile, what) in Profile::ALL.into_iter().flat_map(|it| Changes::ALL.map(|w| (it, w))) {
        for seed in 0..20 {
            let report = play_changing(seed, profile, what, None);
            assert_eq!(report.verdict, Verdict::Clean, "{profile} {seed} {what:?}");
            moves += report.measures.seat_moves;
            amendments += report.measures.amendments;
            grants += report.measures.grants;
        }
    }
    assert!(moves > 500 && grants > 20_000, "{moves} moves, {grants} grants: nothing happened");
    assert!(amendments > 500, "{amendments} amendments");
}

#[test]
fn broken_rules_of_changes_are_caught() {
    let twice = &["exclusivity", "capacity", "fence order"][..];
    let lost = &["exclusivity", "capacity", "fence order", "no panic"][..];
    // The seed that notices is the first to be played.
    for (mutant, what, first, laws) in [
        (Mutant::GrantRemoved, Changes::Units, 0, &["units in force"][..]),
        (Mutant::ForgetRemoved, Changes::Units, 30, lost),
        (Mutant::FencesAnew, Changes::Units, 0, &["fence order", "no panic"]),
        (Mutant::GrantDrained, Changes::Drains, 0, &["units in force"]),
        (Mutant::GraceByNewLease, Changes::Leases, 1547, twice),
        (Mutant::KeepByNewLease, Changes::Leases, 87, twice),
        (Mutant::CountByOwnLease, Changes::Leases, 194, twice),
        (Mutant::SettleAtOnce, Changes::Leases, 84, twice),
    ] {
        let broken =
            |seed| match play_changing(seed, Profile::Everything, what, Some(mutant)).verdict {
                Verdict::Broken(breach) => Some(breach.law),
                _ => None,
            };
        let found = (first..first + 2_000).find_map(broken);
        let law = found.unwrap_or_else(|| panic!("nobody noticed {mutant:?}"));
        assert!(laws.contains(&law), "{mutant:?}: {law}");
    }
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

/// The same where nodes take seats when somebody uses the pool there, which is seldom; says how
/// often one opened at once after another node had decided.
fn play_on_demand(seed: u64, profile: Profile, broken: Option<Broken>) -> (Verdict, u64) {
    let mut plan = Plan::swarm(seed, profile, Needs::default());
    plan.pool.durable = false;
    let mut dice = quorate_core::Dice::new(seed);
    plan.nodes = 2 + dice.below(3) as u32;
    plan.pool.units = 1 + dice.below(2) as u32;
    plan.pool.arbiter = 0;
    let lease = plan.pool.lease.expect("central has leases").as_nanos() as u64;
    let think = Span::Exponential(lease * (2 + dice.below(8)));
    plan.workload.arrivals = Arrivals::Closed { clients_per_node: 1, think };
    plan.workload.want = Want::always(1);
    (plan.duration, plan.steps_max) = (lease * 200, 10_000);
    let times = (plan.links.delay.mean(), lease);
    let council = CouncilPlan::drawn(seed, NodeId(0), times);
    let moves = Recurring { every: lease * (2 + dice.below(6)), lasts: Span::Constant(0) };
    plan.council = Some(CouncilPlan { moves: Some(moves), ..council });
    plan.silence = 40 * lease;
    let pool = Pool::new(pool(&plan, None), plan.nodes as usize);
    let pool = on_demand::Pool { pool, is_made: false, edition: 0, still: false, broken };
    let before = on_demand::opened();
    let verdict = run::<OnDemand>(&plan, &pool, Watch { strict: true, ..Watch::default() }).verdict;
    (verdict, on_demand::opened() - before)
}

#[test]
fn every_fault_profile_is_survived_where_seats_are_taken_on_demand() {
    let mut opened = 0;
    for profile in Profile::ALL {
        for seed in 0..40 {
            let (verdict, times) = play_on_demand(seed, profile, None);
            assert_eq!(verdict, Verdict::Clean, "{profile} {seed}");
            opened += times;
        }
    }
    assert!(opened > 100, "{opened} pools opened at once: nothing happened");
}

#[test]
fn broken_rules_of_seats_that_are_taken_on_demand_are_caught() {
    // The seed that notices is the first to be played.
    for (rule, first) in [(Broken::OpenAlways, 0), (Broken::OpenAfterLicence, 0)] {
        let broken = |seed| match play_on_demand(seed, Profile::Everything, Some(rule)).0 {
            Verdict::Broken(breach) => Some((seed, breach.law)),
            _ => None,
        };
        let (seed, law) = (first..first + 2_000).find_map(broken).expect("nobody noticed");
        let laws = ["capacity", "exclusivity", "fence order"];
        assert!(laws.contains(&law), "{rule:?}: {law}, seed {seed}");
    }
}
