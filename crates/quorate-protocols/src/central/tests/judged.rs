//! The allocator's theorems, judged after every step of simulated runs with labels, bundles,
//! holders that move, and an operator who drains and relabels units: kept under every fault, and
//! each broken variant of the specification caught.

use quorate_sim::{Needs, Plan, Profile, Verdict, Want, Watch, run};

use super::labelled::labels;
use crate::central::pool::Mutant;
use crate::central::{Message, Pool};
use crate::goods::Goods;
use crate::reference::{Judged, Operator};

fn play(seed: u64, profile: Profile, every: u64, mutant: Option<Mutant>) -> (Verdict, u64) {
    let mut plan = Plan::swarm(seed, profile, Needs::default());
    plan.pool.units = plan.pool.units.max(6);
    let base = super::seeds::pool(&plan, mutant);
    let labels = Some(labels(base.goods.units));
    let pool = Pool { goods: Goods { labels, ..base.goods }, ..base };
    let want = Want::one_of(Operator::choices(pool.goods.units, !seed.is_multiple_of(4))).unwrap();
    plan.workload.want = want.movable([0, 300_000, 1_000_000][(seed % 3) as usize]);
    let pool = (pool, Operator { every, seed });
    let report = run::<Judged>(&plan, &pool, Watch { strict: true, ..Watch::default() });
    let refused = Message::KINDS.iter().position(|kind| *kind == "refused").unwrap();
    (report.verdict, report.measures.messages[refused])
}

#[test]
fn the_theorems_hold_under_every_fault_while_units_are_drained_and_relabelled() {
    let mut refused = 0;
    for profile in Profile::ALL {
        for seed in 0..6 {
            let (verdict, told) = play(seed, profile, 7 + seed % 50, None);
            assert_eq!(verdict, Verdict::Clean, "seed {seed} of {profile:?}");
            refused += told;
        }
    }
    assert!(refused > 30, "labels change so that claims are refused: {refused}");
}

/// What breaks first when a rule is broken: the law, or what the theorem says.
fn caught(mutant: Mutant) -> String {
    let broken = (0..300).find_map(|seed| match play(seed, Profile::None, 0, Some(mutant)) {
        (Verdict::Broken(breach), _) => Some(breach),
        _ => None,
    });
    let broken = broken.unwrap_or_else(|| panic!("nobody noticed {mutant:?}"));
    let theorem = broken.what.split(':').next().filter(|_| broken.law == "no panic");
    theorem.unwrap_or(broken.law).to_owned()
}

#[test]
fn each_broken_variant_of_the_specification_is_caught_by_what_it_breaks() {
    let found: Vec<String> = [
        Mutant::Greedy,
        Mutant::StrictFifo,
        Mutant::BindEarly,
        Mutant::HandOverEarly,
        Mutant::CountOnly,
    ]
    .map(caught)
    .into();
    assert_eq!(found, ["law A", "decision", "law M", "law S", "law S"]);
}
