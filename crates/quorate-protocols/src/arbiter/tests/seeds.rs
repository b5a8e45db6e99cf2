//! Simulated runs: clean where the rules are kept, caught where one is broken.

use quorate_core::Lease;
use quorate_sim::{
    Arrivals, Delay, Needs, Plan, Profile, Recurring, Span, Verdict, Want, Watch, run,
    swarm_command,
};

use crate::arbiter::pool::Mutant;
use crate::arbiter::{Arbiter, Mode, Pool};
use crate::quorums::Quorums;

/// The families and modes that pools of the swarm have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Uniform,
    BySize,
    FewHolders,
    Named,
    Naming,
    /// The same by the word of one arbiter: whatever it forgets, nobody else knows.
    NamingAlone,
    /// The same by majorities, which is safe as long as there are no more clients than units.
    NamingPairs,
}

const KINDS: [Kind; 6] =
    [Kind::Uniform, Kind::BySize, Kind::FewHolders, Kind::Named, Kind::Naming, Kind::NamingAlone];

pub(super) fn pool(plan: &Plan, kind: Kind, mutant: Option<Mutant>) -> Pool {
    let (units, members) = (plan.pool.units, plan.nodes);
    let lease = plan.pool.lease.expect("arbiter has leases");
    let holders_max = if kind == Kind::FewHolders { units.min(2) } else { units };
    Pool {
        units,
        quorums: match kind {
            Kind::Uniform | Kind::Naming => Quorums::uniform(members, units),
            Kind::BySize => Quorums::by_size(members, units),
            Kind::FewHolders => Quorums::uniform(members, holders_max),
            Kind::Named | Kind::NamingPairs => Quorums::majority(members),
            Kind::NamingAlone => Quorums::Threshold { members: 1, size: 1 },
        },
        mode: match kind {
            Kind::Named => Mode::Named,
            _ => Mode::Count { holders_max, backfill: plan.pool.backfill },
        },
        naming: matches!(kind, Kind::Naming | Kind::NamingAlone | Kind::NamingPairs),
        lease: Lease::new(lease, plan.pool.drift_ppm),
        retry: plan.pool.retry,
        hedge: (plan.seed % 3) as u32,
        patience: Some(2 + (plan.seed % 2) as u32),
        durable: plan.pool.durable,
        mutant,
        once: false,
    }
}

/// Runs a seed. Large pools are left to the long runs: every claim of theirs asks dozens of nodes.
pub(super) fn play(
    seed: u64,
    profile: Profile,
    kind: Kind,
    mutant: Option<Mutant>,
) -> Option<&'static str> {
    play_harder(seed, profile, kind, mutant, |_| {})
}

/// The same, with a plan made worse.
fn play_harder(
    seed: u64,
    profile: Profile,
    kind: Kind,
    mutant: Option<Mutant>,
    harder: impl Fn(&mut Plan),
) -> Option<&'static str> {
    let mut plan = Plan::swarm(seed, profile, Needs::default());
    if plan.nodes > 10 {
        return None;
    }
    harder(&mut plan);
    let pool = pool(&plan, kind, mutant);
    let report = run::<Arbiter>(&plan, &pool, Watch { strict: true, ..Watch::default() });
    match report.verdict {
        Verdict::Clean | Verdict::Stopped => None,
        Verdict::Broken(breach) if mutant.is_some() => Some(breach.law),
        Verdict::Broken(ref breach) => {
            let line = report.replay_line(&swarm_command("arbiter", seed, profile));
            panic!("{kind:?}: {breach}\n{line}");
        }
    }
}

#[test]
fn every_fault_profile_is_survived() {
    for profile in Profile::ALL {
        for kind in KINDS {
            for seed in 0..4 {
                play(seed, profile, kind, None);
            }
        }
    }
}

/// The law that some seed of this profile finds broken. One that did is the first to be played.
fn caught(first: u64, profile: Profile, kind: Kind, mutant: Mutant) -> &'static str {
    (first..first + 300)
        .find_map(|seed| play(seed, profile, kind, Some(mutant)))
        .unwrap_or_else(|| panic!("nobody noticed {mutant:?}"))
}

fn is_unsafe(law: &str) -> bool {
    ["capacity", "exclusivity", "fence order"].contains(&law)
}

#[test]
fn l_1_a_holder_that_counts_from_receipt_is_caught() {
    assert!(is_unsafe(caught(11, Profile::Clocks, Kind::Uniform, Mutant::L1CountFromReceipt)));
}

#[test]
fn l_2_an_arbiter_that_forgot_and_grants_at_once_is_caught() {
    assert!(is_unsafe(caught(40, Profile::Amnesia, Kind::Uniform, Mutant::L2NoGrace)));
}

#[test]
fn l_4_a_wait_counted_on_a_newer_reading_is_caught() {
    assert!(is_unsafe(caught(87, Profile::Network, Kind::Uniform, Mutant::L4WaitedOnResetStamp)));
}

/// Mistakes that seeds found in us: the first let 40 of 20 units be used (seed 179, before holders
/// asked further arbiters).
#[test]
fn what_seeds_have_found_stays_found() {
    let kind = Kind::BySize;
    assert_eq!(play(179, Profile::Amnesia, kind, None), None);
    // An arbiter that forgot took up a permission that it had ended and given to another.
    let mutant = Some(Mutant::ReviveWhatEnded);
    assert_eq!(play(65, Profile::Everything, kind, mutant), Some("capacity"));
    assert_eq!(play(65, Profile::Everything, kind, None), None);
    // A node stood still. What its own claim had was given to two others, and the older of them
    // gave it back when that claim was asked for again: it was passed by the younger.
    let (kind, mutant) = (Kind::FewHolders, Some(Mutant::ServeBeforeItHears));
    assert_eq!(play(1079, Profile::Everything, kind, mutant), Some("bounded overtaking"));
    assert_eq!(play(1079, Profile::Everything, kind, None), None);
    // The same wait goes on after a restart, and is overtaken no more often.
    assert_eq!(play(14, Profile::Everything, Kind::Uniform, None), None);
}

#[test]
fn ending_what_a_holder_asks_for_again_is_caught() {
    let (kind, mutant) = (Kind::NamingAlone, Mutant::EndWhatIsAskedAgain);
    assert!(is_unsafe(caught(109, Profile::Everything, kind, mutant)));
}

#[test]
fn giving_back_at_once_what_a_client_lost_is_caught() {
    assert!(is_unsafe(caught(8, Profile::Amnesia, Kind::Named, Mutant::GiveBackWhatIsLost)));
    assert_eq!(play(31, Profile::Amnesia, Kind::Named, None), None);
}

/// The column "drifty" of a table (arbiter spec 8): clocks that are wrong by almost a
/// third, and clients that use their units to the last moment.
fn drifty(plan: &mut Plan) {
    let lease = plan.pool.lease.expect("the swarm has leases").as_nanos() as u64;
    (plan.pool.drift_ppm, plan.drift_ppm) = (300_000, 300_000);
    plan.faults.client_pause_ppm = 500_000;
    plan.workload.hold = Span::Exponential(2 * lease);
    plan.steps_max = 8_000;
}

/// The column "late": answers take long, and arbiters are suspected and trusted again meanwhile.
fn late(plan: &mut Plan) {
    let delay = plan.pool.retry.as_nanos() as u64 / 8;
    plan.links.delay = Delay::Everywhere(Span::Exponential(delay));
    plan.links.loss_ppm = 0;
    plan.faults.slander = Some(Recurring { every: delay, lasts: Span::Exponential(2 * delay) });
    plan.workload.hold = Span::Exponential(delay);
    plan.steps_max = 8_000;
}

/// The law that some seed of a plan made worse finds broken; without the mistake none does.
fn caught_harder(
    first: u64,
    profile: Profile,
    kind: Kind,
    mutant: Mutant,
    harder: fn(&mut Plan),
) -> &'static str {
    let caught = (first..first + 60).find_map(|seed| {
        let law = play_harder(seed, profile, kind, Some(mutant), harder)?;
        assert_eq!(play_harder(seed, profile, kind, None, harder), None);
        Some(law)
    });
    caught.unwrap_or_else(|| panic!("nobody noticed {mutant:?}"))
}

#[test]
fn l_3_a_holder_that_ignores_drift_is_caught() {
    assert!(is_unsafe(caught_harder(
        8,
        Profile::Clocks,
        Kind::BySize,
        Mutant::L3IgnoreDrift,
        drifty
    )));
}

#[test]
fn m14_l_5_tries_that_are_not_told_apart_are_caught() {
    assert!(is_unsafe(caught_harder(
        48,
        Profile::Network,
        Kind::Uniform,
        Mutant::M14NoAttempts,
        late
    )));
}

#[test]
fn c10_ending_what_a_restarted_home_was_given_is_caught() {
    assert!(is_unsafe(caught(31, Profile::Crashes, Kind::Uniform, Mutant::C10DropGranted)));
}

/// Arbiters are suspected and trusted again all the time, and units are used for several leases:
/// who holds some moves from arbiter to arbiter.
fn restless(plan: &mut Plan) {
    let lease = plan.pool.lease.expect("the swarm has leases").as_nanos() as u64;
    plan.links.delay = Delay::Everywhere(Span::Exponential(lease / 100));
    plan.links.loss_ppm = 0;
    plan.pool.retry = std::time::Duration::from_nanos(lease / 10);
    plan.faults.slander = Some(Recurring { every: lease / 4, lasts: Span::Exponential(lease / 2) });
    plan.workload.hold = Span::Exponential(2 * lease);
    plan.duration = 60 * lease;
    plan.steps_max = 8_000;
}

/// The same for two clients at most, each of one unit, who need majorities of three arbiters only:
/// two of their quorums may share one arbiter, which a grant may have moved to.
fn two_restless(plan: &mut Plan) {
    restless(plan);
    (plan.nodes, plan.pool.units) = (3, 2);
    let every = plan.workload.hold.mean() / 8;
    plan.workload.arrivals = Arrivals::Open { every, clients_max: 2 };
    plan.workload.want = Want::always(1);
}

#[test]
fn c7_locking_units_in_grace_is_caught() {
    assert!(is_unsafe(caught(14, Profile::Amnesia, Kind::NamingAlone, Mutant::C7PickInGrace)));
}

#[test]
fn c7_moving_without_units_is_caught() {
    let (kind, mutant) = (Kind::NamingPairs, Mutant::C7MoveWithoutNames);
    assert!(is_unsafe(caught_harder(1, Profile::None, kind, mutant, two_restless)));
}

#[test]
fn c10_ending_what_an_old_list_does_not_have_is_caught() {
    let (kind, mutant) = (Kind::NamingAlone, Mutant::C10DropUnlisted);
    assert!(is_unsafe(caught_harder(44, Profile::Network, kind, mutant, late)));
}

#[test]
fn f_2_a_fence_that_arbiters_do_not_know_is_caught() {
    assert_eq!(caught(1, Profile::None, Kind::Named, Mutant::F2SecretToken), "fence order");
}

/// Five units of seven nodes, claims for two and three: with the obvious sizes of quorums three of
/// them need not meet.
#[test]
fn h_1_quorums_by_size_that_are_too_small_are_caught() {
    let verdict = |seed, sizes: &[u32]| {
        let mut plan = Plan::quiet(seed, 7, 5);
        plan.workload.want = Want::weighted(vec![(2, 2), (3, 1)]).expect("sound");
        plan.workload.hold = Span::Exponential(50_000_000);
        plan.grants_max = 500;
        let quorums = Quorums::BySize { members: 7, sizes: sizes.into() };
        let pool = Pool { quorums, ..Pool::new(5, 7) };
        run::<Arbiter>(&plan, &pool, Watch { strict: true, ..Watch::default() }).verdict
    };
    let Quorums::BySize { sizes: right, .. } = Quorums::by_size(7, 5) else { unreachable!() };
    assert!((0..20).all(|seed| verdict(seed, &right) == Verdict::Clean));
    let naive: Vec<u32> = (1..=5).map(|h| 7 - 6 / (5 / h + 1)).collect();
    let found = (0..20).find_map(|seed| match verdict(seed, &naive) {
        Verdict::Broken(breach) => Some(breach.law),
        _ => None,
    });
    assert_eq!(found, Some("capacity"));
}
