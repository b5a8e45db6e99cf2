//! Simulated claims that choose among units by their labels, in bundles, and members that may not
//! use all of them. Every table is audited after every step: the laws of the allocator hold in it.

use quorate_sim::{Needs, Plan, Profile, Verdict, Want, Watch, run};

use crate::central;
use crate::central::tests::{eligible, labelled, seeds};
use crate::goods::Goods;
use crate::reference::Operator;
use crate::table::pool::Mutant;
use crate::table::{Pool, Table};

/// A run with labels and bundles; `reserved`: and clients that may not use all units.
fn play(seed: u64, profile: Profile, reserved: bool, mutant: Option<Mutant>) -> Verdict {
    let mut plan = Plan::swarm(seed, profile, Needs::default());
    plan.pool.units = plan.pool.units.max(6);
    let base = seeds::pool(&plan, None);
    let labels = Some(labelled::labels(base.goods.units));
    let mut base = central::Pool { goods: Goods { labels, ..base.goods }, ..base };
    plan.workload.want = Want::one_of(labelled::menu(&base)).unwrap();
    if reserved {
        base = eligible::drawn(&plan, base);
    }
    let pool = Pool { mutant, ..Pool::drawn(base.goods, plan.nodes, seed) };
    run::<Table>(&plan, &pool, Watch { strict: true, ..Watch::default() }).verdict
}

#[test]
fn every_fault_profile_is_survived_by_claims_that_choose() {
    for profile in Profile::ALL {
        for seed in 0..10 {
            let verdict = play(seed, profile, seed % 2 == 1, None);
            assert_eq!(verdict, Verdict::Clean, "seed {seed} of {profile:?}");
        }
    }
}

#[test]
fn a_table_that_ignores_what_claims_choose_is_caught() {
    let law = (0..100).find_map(|seed| {
        match play(seed, Profile::None, false, Some(Mutant::IgnoreLines)) {
            Verdict::Broken(breach) => Some(breach.law),
            _ => None,
        }
    });
    assert_eq!(law, Some("one grant per claim"));
}

/// Whether some seed of a pool with a broken allocator breaks this theorem.
fn breaks(rule: central::Mutant, single: bool, theorem: &str) -> bool {
    (0..300).any(|seed| {
        let mut plan = Plan::swarm(seed, Profile::None, Needs::default());
        plan.pool.units = plan.pool.units.max(6);
        let base = seeds::pool(&plan, Some(rule));
        let labels = Some(labelled::labels(base.goods.units));
        let goods = Goods { labels, ..base.goods };
        let choices = Operator::choices(goods.units, !single);
        plan.workload.want = Want::one_of(choices).unwrap();
        let pool = Pool::drawn(goods, plan.nodes, seed);
        let watch = Watch { strict: true, ..Watch::default() };
        match run::<Table>(&plan, &pool, watch).verdict {
            Verdict::Broken(breach) => breach.what.starts_with(theorem),
            _ => false,
        }
    })
}

#[test]
fn each_broken_rule_of_the_allocator_breaks_its_theorem_in_a_table_too() {
    use central::Mutant::{BindEarly, Greedy, StrictFifo};
    for (rule, single, theorem) in [
        (Greedy, false, "law A"),
        (BindEarly, true, "law M"),
        (StrictFifo, true, "law W"),
        (StrictFifo, false, "decision"),
    ] {
        assert!(breaks(rule, single, theorem), "{rule:?} and {theorem}");
    }
}
