//! Claims that choose among units by their labels.

use std::sync::Arc;

use quorate_core::{Claim, Event, Fence, Line, NodeId, Share, Shares, Start, Unit, Units, Wanted};
use quorate_sim::{Needs, Plan, Profile, Verdict, Want, Watch, run};

use super::{Table, id};
use crate::allocator::labels::Labels;
use crate::central::pool::Mutant;
use crate::central::{Alarm, Attempt, Central, Message, Pool};
use crate::goods::Goods;
use crate::reference::BUNDLES;
use crate::reference::Operator;

/// Every third unit is an h100, the others are a100s; even ones are in the eu, odd ones in the us.
pub(crate) fn labels(units: u32) -> Arc<Labels> {
    Arc::new(Operator::labels(units))
}

pub(super) fn pool(units: u32) -> Pool {
    Pool::of(Goods { labels: Some(labels(units)), ..Goods::new(units) })
}

/// So many of each of these, at once.
pub(crate) fn bundle(pool: &Pool, lines: &[(u32, &str)]) -> Arc<[Line]> {
    let labels = pool.goods.labels.as_ref().unwrap();
    let line = |(count, selector): &(u32, &str)| {
        let units = Units::new(*count, pool.goods.units).unwrap();
        Line::of(units, labels.select(&selector.parse().unwrap()))
    };
    lines.iter().map(line).collect()
}

fn claim(table: &mut Table, node: usize, serial: u64, lines: &[(u32, &str)]) {
    let sum = lines.iter().map(|(count, _)| count).sum();
    let units = Units::new(sum, table.world.pool.goods.units).unwrap();
    let lines = Some(bundle(&table.world.pool, lines));
    let wanted = Wanted { lines, ..Wanted::any(units) };
    table.step(node, Event::Claim(Claim::new(id(serial), wanted)));
    table.deliver_all();
}

#[test]
fn claims_get_units_with_the_labels_they_ask_for_and_delay_nobody_else() {
    // h100: 0 and 3; a100: 1, 2, 4 and 5. In the eu: 0, 2 and 4.
    let mut table = Table::new(2, pool(6));
    claim(&mut table, 1, 1, &[(2, "gpu=h100")]);
    assert_eq!(table.wanted(), ["n1 GRANT 7.1 u0,u3 f1"]);
    claim(&mut table, 1, 2, &[(1, "gpu=h100,zone=eu")]);
    claim(&mut table, 0, 3, &[(1, "gpu=a100")]);
    claim(&mut table, 1, 4, &[(1, "zone=us"), (1, "gpu=a100,zone=eu")]);
    let wanted = table.wanted();
    assert_eq!(wanted.len(), 2, "7.2 waits, and both others do not: {wanted:?}");
    table.step(1, Event::Release(id(1)));
    table.deliver_all();
    assert_eq!(table.wanted(), ["n1 GRANT 7.2 u0 f4"]);
}

#[test]
fn a_bundle_is_granted_all_at_once_or_not_at_all() {
    let mut table = Table::new(2, pool(6));
    claim(&mut table, 0, 1, &[(1, "gpu=h100")]);
    assert_eq!(table.wanted(), ["n0 GRANT 7.1 u0 f1"]);
    claim(&mut table, 1, 2, &[(2, "gpu=h100"), (2, "gpu=a100")]);
    assert_eq!(table.wanted(), [""; 0]);
    table.step(0, Event::Release(id(1)));
    table.deliver_all();
    assert_eq!(table.wanted(), ["n1 GRANT 7.2 u0,u1,u2,u3 f2"]);
}

#[test]
fn what_can_never_be_granted_is_refused_at_once() {
    let mut table = Table::new(2, pool(6));
    claim(&mut table, 1, 1, &[(3, "gpu=h100")]);
    claim(&mut table, 1, 2, &[(1, "gpu=b200")]);
    claim(&mut table, 1, 3, &[(1, "gpu=h100,zone=eu"), (2, "gpu=h100")]);
    let refused =
        |serial| format!("n1 REFUSE 7.{serial}: the pool does not have so many units that will do");
    assert_eq!(table.wanted(), [refused(1), refused(2), refused(3)]);
    assert_eq!(table.world.sent, 0);
    let lines =
        bundle(&table.world.pool, &[(1, "zone=us"), (1, "gpu=h100,zone=eu"), (2, "gpu=h100")]);
    let impossible = table.world.pool.goods.possible(NodeId(1), &lines).unwrap_err();
    assert_eq!(impossible.lines, [1, 2], "and it is known which lines ask for too much");
    assert_eq!((impossible.wanted, impossible.there_are), (3, 2));
}

#[test]
fn a_pool_whose_units_are_alike_refuses_claims_that_choose() {
    let mut table = Table::new(2, Pool::new(6));
    let lines = Some(bundle(&pool(6), &[(1, "gpu=h100")]));
    let wanted = Wanted { lines, ..Wanted::any(Units::ONE) };
    table.step(1, Event::Claim(Claim::new(id(1), wanted)));
    let counts = "n1 REFUSE 7.1: this pool's protocol counts units and cannot choose among them";
    assert_eq!(table.wanted(), [counts]);
}

#[test]
fn lines_that_no_peer_may_send_change_nothing() {
    let mut table = Table::new(2, pool(6));
    let line = |units, among: &[u32]| {
        let among = among.iter().map(|unit| Unit(*unit)).collect();
        Line::of(Units::new(units, 9).unwrap(), among)
    };
    let (claim, attempt, sent) = (id(1), Attempt { boot: 0, clock: 1 }, table.world.now);
    for lines in [
        vec![],
        vec![line(1, &[6])],
        vec![line(1, &[3, 0])],
        vec![line(2, &[0, 3])],
        vec![line(1, &[0]), line(1, &[3])],
    ] {
        let wanted = Wanted { lines: Some(lines.into()), ..Wanted::any(Units::ONE) };
        let message = Message::Request { claim, attempt, wanted, sent };
        table.step(0, Event::Hear { from: NodeId(1), message });
        let wanted = table.wanted();
        assert!(matches!(&wanted[..], [one] if one.contains("cannot have")), "{wanted:?}");
    }
}

/// The name of a claim that asks for other units of the same number is not to be used for this one.
#[test]
fn a_grant_of_units_that_will_not_do_is_not_taken() {
    let mut table = Table::new(2, pool(6));
    claim(&mut table, 0, 1, &[(1, "gpu=a100")]);
    assert_eq!(table.wanted(), ["n0 GRANT 7.1 u1 f1"]);
    claim(&mut table, 1, 1, &[(1, "gpu=h100")]);
    assert_eq!(table.wanted(), ["n1 REFUSE 7.1: a different claim has this name"]);
}

#[test]
fn an_arbiter_that_forgot_takes_bundles_back_and_serves_the_rest_after_its_grace() {
    let mut table = Table::new(2, pool(6));
    claim(&mut table, 1, 1, &[(1, "gpu=h100"), (1, "gpu=a100")]);
    assert_eq!(table.wanted(), ["n1 GRANT 7.1 u0,u1 f1"]);
    table.restart(0, Start::Amnesia);
    claim(&mut table, 1, 2, &[(2, "gpu=h100")]);
    let share = |unit| Share { unit: Unit(unit), fence: Fence(1) };
    let shares = Shares::new(&[share(0), share(1)]);
    table.step(1, Event::Renew { claim: id(1), shares });
    table.deliver_all();
    table.wanted();
    table.step(0, Event::Ring(Alarm::Grace));
    table.deliver_all();
    assert_eq!(table.wanted(), [""; 0], "7.1 still has one of the two");
    table.step(1, Event::Release(id(1)));
    table.deliver_all();
    let wanted = table.wanted();
    let again = |one: &String| one.starts_with("n1 GRANT 7.2 u0,u3 ");
    assert!(matches!(&wanted[..], [one] if again(one)), "{wanted:?}");
}

/// What simulated clients ask for: of what [`Operator::choices`] says by labels, the units.
pub(crate) fn menu(pool: &Pool) -> Vec<Arc<[Line]>> {
    BUNDLES.iter().map(|lines| bundle(pool, lines)).collect()
}

/// A run with labels, bundles, and so many in a million claims that can be moved.
pub(super) fn play(
    seed: u64,
    profile: Profile,
    movable_ppm: u32,
    mutant: Option<Mutant>,
) -> (Verdict, u64) {
    let mut plan = Plan::swarm(seed, profile, Needs::default());
    plan.pool.units = plan.pool.units.max(6);
    let base = super::seeds::pool(&plan, mutant);
    let labels = Some(labels(base.goods.units));
    let pool = Pool { goods: Goods { labels, ..base.goods }, ..base };
    plan.workload.want = Want::one_of(menu(&pool)).unwrap().movable(movable_ppm);
    let report = run::<Central>(&plan, &pool, Watch { strict: true, ..Watch::default() });
    let moves = Message::KINDS.iter().position(|kind| *kind == "move").unwrap();
    (report.verdict, report.measures.messages[moves])
}

#[test]
fn every_fault_profile_is_survived_by_claims_that_choose() {
    for profile in Profile::ALL {
        for seed in 0..12 {
            assert_eq!(
                play(seed, profile, 0, None).0,
                Verdict::Clean,
                "seed {seed} of {profile:?}"
            );
        }
    }
}

#[test]
fn an_arbiter_that_ignores_what_claims_choose_is_caught() {
    let law =
        (0..100).find_map(|seed| match play(seed, Profile::ALL[0], 0, Some(Mutant::IgnoreLines)) {
            (Verdict::Broken(breach), _) => Some(breach.law),
            _ => None,
        });
    assert_eq!(law, Some("one grant per claim"));
}
