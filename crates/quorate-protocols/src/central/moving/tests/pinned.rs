//! Pools that files let one node decide until the charter says who does (charter spec S18): every
//! history of small worlds, and simulated runs.

use quorate_check::{Budget, Scope, Sometimes};
use quorate_core::NodeId;
use quorate_sim::{CouncilPlan, Needs, Plan, Profile, Report, Span, Verdict, Watch, run};

use super::exhaustive::{QUIET, apart, explore, found, pair, under};
use crate::central::moving::{Moving, Pool};
use crate::central::pool::Mutant;
use crate::central::tests::seeds::pool;

/// The first node decides because files say so, and gives that up at some moment.
pub(super) fn pinned(mut scope: Scope<Moving>) -> Scope<Moving> {
    scope.pool.pinned = Some(NodeId(0));
    under(scope, |council| (council.pinned, council.moves) = (true, 0))
}

/// A changed number is a changed protocol or a changed checker.
#[test]
fn a_pool_that_was_pinned_is_exhausted_in_as_many_states_as_ever() {
    use Sometimes::{Full, OpenedByTime, OpenedByWord, Reclaim, SeatMoved};
    let all = [Full, Reclaim, SeatMoved, OpenedByWord, OpenedByTime];
    let renewals = Budget { renewals: 1, ..QUIET };
    let (mut counted, mut known) = (Vec::new(), Vec::new());
    for (name, scope, states) in
        [("quiet", pinned(pair(QUIET)), 42_677), ("renewals", pinned(pair(renewals)), 234_769)]
    {
        let report = explore(&scope, &all);
        assert!(report.holds(), "{name}: {report}");
        counted.push((name, report.states));
        known.push((name, states));
    }
    assert_eq!(counted, known);
}

#[test]
fn a_node_that_goes_on_after_it_gave_up_is_found() {
    let crash = Budget { crashes: 1, ..QUIET };
    found(vec![
        (Mutant::GoOnUnpinned, pinned(pair(QUIET)), "capacity"),
        (Mutant::GoOnUnpinned, pinned(apart(QUIET)), "capacity"),
        (Mutant::PinnedFencesAnew, pinned(pair(crash)), "fence order"),
    ]);
}

fn play(seed: u64, profile: Profile, mutant: Option<Mutant>) -> Report {
    let mut plan = Plan::swarm(seed, profile, Needs::default());
    plan.pool.durable = false;
    let lease = plan.pool.lease.expect("central has leases").as_nanos() as u64;
    let times = (plan.links.delay.mean(), lease);
    let council = CouncilPlan::drawn(seed, NodeId(plan.pool.arbiter), times);
    let mut dice = quorate_core::Dice::new(seed);
    let unpins = (lease * dice.below(20), Span::Exponential(plan.links.delay.mean() * 4));
    plan.council = Some(CouncilPlan { unpins: Some(unpins), ..council });
    plan.silence = 20 * lease;
    let mut pool = Pool::new(pool(&plan, mutant), plan.nodes as usize);
    pool.pinned = Some(NodeId(plan.pool.arbiter));
    run::<Moving>(&plan, &pool, Watch { strict: true, ..Watch::default() })
}

#[test]
fn every_fault_profile_is_survived_while_a_pinned_seat_begins_to_move() {
    let (mut moves, mut grants) = (0, 0);
    for profile in Profile::ALL {
        for seed in 0..20 {
            let report = play(seed, profile, None);
            assert_eq!(report.verdict, Verdict::Clean, "{profile} {seed}");
            moves += report.measures.seat_moves;
            grants += report.measures.grants;
        }
    }
    assert!(moves > 500 && grants > 20_000, "{moves} moves, {grants} grants: nothing happened");
}

/// Here time is real: who goes on does so while the next one waits for what was promised before.
#[test]
fn one_that_goes_on_is_caught() {
    let found = (0..2_000).find_map(|seed| {
        match play(seed, Profile::Everything, Some(Mutant::GoOnUnpinned)).verdict {
            Verdict::Broken(breach) => Some(breach.law),
            _ => None,
        }
    });
    let law = found.expect("somebody notices");
    assert!(["capacity", "exclusivity", "fence order"].contains(&law), "{law}");
}
