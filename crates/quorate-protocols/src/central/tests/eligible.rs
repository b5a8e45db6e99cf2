//! Members that may not use all units.

use std::sync::Arc;

use quorate_check::{Limits, Scope, Sometimes, check};
use quorate_core::{Event, NodeId, Unit};
use quorate_sim::{Needs, Plan, Profile, Verdict, Watch, run};

use super::{Table, id};
use crate::central::{Central, Pool};
use crate::goods::Goods;

/// Node by node, which units its clients may use.
fn pool(units: u32, eligible: &[&[u32]]) -> Pool {
    let node = |own: &&[u32]| own.iter().map(|unit| Unit(*unit)).collect::<Arc<[Unit]>>();
    let eligible = Some(eligible.iter().map(node).collect());
    Pool::of(Goods { eligible, ..Goods::new(units) })
}

#[test]
fn a_node_gets_only_units_it_may_use_and_leaves_the_others_to_those_who_can() {
    let mut table = Table::new(3, pool(3, &[&[0, 1, 2], &[0], &[0, 1]]));
    table.claim(1, 1, 1);
    table.deliver_all();
    assert_eq!(table.wanted(), ["n1 GRANT 7.1 u0 f1"]);
    table.claim(1, 2, 1);
    table.claim(2, 3, 1);
    table.deliver_all();
    assert_eq!(table.wanted(), ["n2 GRANT 7.3 u1 f2"], "7.2 waits for u0 and delays nobody else");
    table.claim(0, 4, 1);
    assert_eq!(table.wanted(), ["n0 GRANT 7.4 u2 f3"]);
    table.step(1, Event::Release(id(1)));
    table.deliver_all();
    assert_eq!(table.wanted(), ["n1 GRANT 7.2 u0 f4"]);
}

#[test]
fn a_claim_for_more_units_than_its_node_may_use_is_refused_at_once() {
    let mut table = Table::new(2, pool(3, &[&[0, 1, 2], &[0]]));
    table.claim(1, 1, 2);
    let refused = ["n1 REFUSE 7.1: no single node of this pool may have so many units"];
    assert_eq!(table.wanted(), refused);
    table.deliver_all();
    assert_eq!(table.world.sent, 0);
}

/// Clients of every node may use two thirds of the units, not the same everywhere.
pub(crate) fn drawn(plan: &Plan, base: Pool) -> Pool {
    let own = |node: u64| {
        let draw = |unit: &u32| !(plan.seed + node * 7 + u64::from(*unit)).is_multiple_of(3);
        let chosen: Vec<Unit> = (0..base.goods.units).filter(draw).map(Unit).collect();
        if chosen.is_empty() { Arc::from([Unit(0)]) } else { Arc::from(chosen) }
    };
    let eligible = Some((0..u64::from(plan.nodes)).map(own).collect());
    Pool { goods: Goods { eligible, ..base.goods }, ..base }
}

/// The paper's two-process example with a third: every history of it.
#[test]
fn small_worlds_with_units_that_differ_are_exhausted() {
    let wants = &[(NodeId(0), 1), (NodeId(1), 1), (NodeId(2), 2)];
    let mut scope = Scope::<Central>::new(3, pool(2, &[&[0, 1], &[0], &[0, 1]]), wants).unwrap();
    scope.budget.early_rings = Some(1);
    scope.budget.cancels = 1;
    let required = vec![Sometimes::Enter, Sometimes::Full];
    let report = check(&scope, &Limits { states_max: 500_000, required }, &mut |_| {});
    assert!(report.holds(), "{report}");
}

#[test]
fn every_fault_profile_is_survived_by_a_pool_whose_units_differ() {
    for profile in Profile::ALL {
        for seed in 0..12 {
            let plan = Plan::swarm(seed, profile, Needs::default());
            let pool = drawn(&plan, super::seeds::pool(&plan, None));
            let watch = Watch { strict: true, ..Watch::default() };
            let report = run::<Central>(&plan, &pool, watch);
            assert_eq!(report.verdict, Verdict::Clean, "seed {seed} of {profile:?}");
        }
    }
}
