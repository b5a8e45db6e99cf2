//! Nodes are restarted one after the other, most of them having written nothing down: whoever
//! renews keeps what it has.

use quorate_sim::{Needs, Plan, Profile, Verdict, Watch, run, swarm_command};

use super::cluster::{Cluster, cluster};
use super::seeds::{Kind, pool};
use crate::arbiter::pool::Mutant;
use crate::arbiter::{Arbiter, Pool};
use crate::quorums::Quorums;

const KINDS: [Kind; 5] = [Kind::Named, Kind::Uniform, Kind::BySize, Kind::FewHolders, Kind::Naming];

/// The law that a seed finds broken, and how many nodes were restarted.
fn play(seed: u64, kind: Kind, mutant: Option<Mutant>) -> (Option<&'static str>, u64) {
    let plan = Plan::swarm(seed, Profile::Restarts, Needs::default());
    match plan.nodes {
        ..=10 => judge(&plan, kind, pool(&plan, kind, mutant)),
        _ => (None, 0),
    }
}

fn judge(plan: &Plan, kind: Kind, pool: Pool) -> (Option<&'static str>, u64) {
    let (seed, mutant) = (plan.seed, pool.mutant);
    let report = run::<Arbiter>(plan, &pool, Watch { strict: true, ..Watch::default() });
    match report.verdict {
        Verdict::Clean | Verdict::Stopped => (None, report.measures.crashes),
        Verdict::Broken(breach) if mutant.is_some() => (Some(breach.law), report.measures.crashes),
        Verdict::Broken(ref breach) => {
            let line = report.replay_line(&swarm_command("arbiter", seed, Profile::Restarts));
            panic!("{kind:?}: {breach}\n{line}");
        }
    }
}

#[test]
fn whoever_renews_keeps_what_it_has_while_nodes_are_restarted_one_after_the_other() {
    for kind in KINDS {
        let restarts: u64 = (0..15).map(|seed| play(seed, kind, None).1).sum();
        assert!(restarts > 20, "{kind:?}: {restarts}");
    }
}

/// Where quorums are not just any so many, a holder asks as many more as one of them may fail.
#[test]
fn families_that_are_no_thresholds_outlive_restarts_too() {
    for spec in ["hierarchy:3,3", "wall"] {
        let built = quorate_quorum::build(spec, Some(9), 1).expect("it fits");
        let quorums = Quorums::of(&*built.rule).expect("not too many");
        let play = |seed| {
            let mut plan = Plan::swarm(seed, Profile::Restarts, Needs::default());
            plan.nodes = 9;
            let named = pool(&plan, Kind::Named, None);
            judge(&plan, Kind::Named, Pool { quorums: quorums.clone(), ..named }).1
        };
        let restarts: u64 = (0..6).map(play).sum();
        assert!(restarts > 20, "{spec}: {restarts}");
    }
}

/// Without the further arbiters that a holder asks, seeds of every kind find somebody that lost.
#[test]
fn resting_on_the_quorum_that_let_it_in_is_caught() {
    // One that did is the first to be played.
    for (kind, first) in KINDS.into_iter().zip([2, 2, 2, 15, 26]) {
        let mutant = Some(Mutant::RestOnOneQuorum);
        let caught = (first..first + 60).find_map(|seed| play(seed, kind, mutant).0);
        assert_eq!(caught, Some("holders keep"), "{kind:?}");
    }
}

/// Two units, any three of four arbiters. Claim 1 is held by the word of 0, 1 and 2; claim 3 by
/// that of 1, 2 and 3; claim 2, which is older than that, has the permission of 3 and waits. The
/// holder of the first renews.
fn full(mutant: Option<Mutant>) -> Cluster {
    let mut world = cluster(7, Pool { mutant, ..Pool::new(2, 4) });
    world.claim(4, 1, 1, 0);
    world.settle();
    world.claim(5, 2, 1, 3);
    world.deliver(5, 3, "request");
    world.wire.clear();
    world.claim(6, 3, 1, 1);
    world.settle();
    assert!(world.is_using(1) && !world.is_using(2) && world.is_using(3), "{}", world.trace);
    world.renew(4, 1);
    world.settle();
    world
}

#[test]
fn a_holder_that_asks_another_arbiter_is_not_kept_waiting_by_one_that_uses_its_units() {
    let world = full(None);
    world.must_be_lawful();
    let granted = |world: &Cluster| world.trace.matches("> n4 grant 1.1").count();
    assert_eq!(granted(&world), 4, "all arbiters know it\n{}", world.trace);
    assert_eq!(granted(&full(Some(Mutant::AskTheYoungest))), 3);
}
