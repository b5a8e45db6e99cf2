//! A pool that changes while its seat moves: stories step by step, and every history of small
//! worlds.

use std::collections::VecDeque;

use quorate_check::{Budget, Report, Scope, Sometimes};
use quorate_core::{
    Charter, Claim, ClaimId, Effect, Event, EventOf, Moment, NodeId, Outbox, Protocol, Seat, Start,
    Tenure, Units,
};

use super::exhaustive::{QUIET, explore, scope, under};
use crate::central::moving::{Message, Moving, Pool};
use crate::central::pool::Mutant;
use crate::goods::{Fairness, Goods};

/// A pool of so many units that had up to so many, among two nodes.
pub(super) fn pool(units: u32, ever: u32) -> Pool {
    let goods = Goods { ever: Some(ever), ..Goods::new(units) };
    Pool::new(crate::central::Pool::of(goods), 2)
}

/// Two nodes that know different definitions, and links that deliver when asked to.
pub(super) struct Pair {
    seats: Vec<(Moving, Pool)>,
    wire: VecDeque<(NodeId, NodeId, Message)>,
    told: Vec<String>,
}

impl Pair {
    pub(super) fn new(pool: &Pool) -> Self {
        let boot = |node: usize| {
            let seat = Seat { me: node.into(), boot: 0, now: Moment::ZERO, pool };
            (Moving::boot(&seat, Start::First, &mut Outbox::new()), pool.clone())
        };
        let seats = vec![boot(0), boot(1)];
        let mut pair = Pair { seats, wire: VecDeque::new(), told: Vec::new() };
        pair.decides(0, 1);
        pair
    }

    /// Both learn that this node decides from now on, and it may.
    pub(super) fn decides(&mut self, node: u32, term: u32) {
        let after = term.checked_sub(1).filter(|term| *term > 0);
        let tenure = Tenure { term, after, node: NodeId(node), boot: 0 };
        for each in 0..2 {
            self.step(each, Event::Charter(Charter::Applied(tenure)));
        }
        self.licensed(node as usize, term);
        self.deliver_all();
    }

    pub(super) fn licensed(&mut self, node: usize, term: u32) {
        self.step(node, Event::Charter(Charter::Licensed { term, asked: Moment(1) }));
    }

    pub(super) fn learns(&mut self, node: usize, pool: &Pool) {
        self.seats[node].1 = pool.clone();
        self.step(node, Event::Charter(Charter::Amended { edition: 1 }));
    }

    pub(super) fn step(&mut self, node: usize, event: EventOf<Moving>) {
        let me = node.into();
        let (moving, pool) = &mut self.seats[node];
        let seat = Seat { me, boot: 0, now: Moment(1), pool };
        let mut out = Outbox::new();
        moving.step(&seat, event, &mut out);
        moving.audit(&seat);
        for effect in out.drain() {
            match effect {
                Effect::Tell { to, message } => self.wire.push_back((me, to, message)),
                Effect::Grant { .. } | Effect::Lose { .. } | Effect::Refuse { .. } => {
                    self.told.push(format!("{me} {effect}"));
                }
                _ => {}
            }
        }
    }

    pub(super) fn claims(&mut self, node: usize, serial: u64, units: u32) {
        let units = Units::new(units, 100).unwrap();
        self.step(node, Event::Claim(Claim::any(id(serial), units)));
        self.deliver_all();
    }

    pub(super) fn releases(&mut self, node: usize, serial: u64) {
        self.step(node, Event::Release(id(serial)));
        self.deliver_all();
    }

    pub(super) fn deliver_all(&mut self) {
        while let Some((from, to, message)) = self.wire.pop_front() {
            self.step(to.index(), Event::Hear { from, message });
        }
    }

    pub(super) fn told(&mut self) -> Vec<String> {
        std::mem::take(&mut self.told)
    }
}

pub(super) fn id(serial: u64) -> ClaimId {
    ClaimId { origin: 7, serial }
}

#[test]
fn units_that_come_are_granted_under_the_next_licence() {
    let mut pair = Pair::new(&pool(1, 1));
    pair.claims(1, 1, 1);
    pair.claims(1, 2, 1);
    assert_eq!(pair.told(), ["n1 GRANT 7.1 u0 f1/1"]);
    pair.learns(0, &pool(2, 2));
    pair.deliver_all();
    assert_eq!(pair.told(), [""; 0], "not under a licence from before the change");
    pair.licensed(0, 1);
    pair.deliver_all(); // The home has not heard of the unit that it gets.
    assert_eq!(pair.told(), ["n1 GRANT 7.2 u1 f1/2"]);
}

#[test]
fn units_that_go_are_used_to_the_end_and_come_back_with_larger_fences() {
    let mut pair = Pair::new(&pool(2, 2));
    pair.claims(0, 1, 1);
    pair.claims(1, 2, 1);
    assert_eq!(pair.told(), ["n0 GRANT 7.1 u0 f1/1", "n1 GRANT 7.2 u1 f1/2"]);
    for node in 0..2 {
        pair.learns(node, &pool(1, 2));
    }
    pair.licensed(0, 1);
    pair.claims(0, 3, 1);
    // The seat moves with its books, and a unit that the pool has no more is among them.
    pair.decides(1, 2);
    pair.releases(1, 2);
    assert_eq!(pair.told(), [""; 0], "what came back is gone");
    pair.releases(0, 1);
    assert_eq!(pair.told(), ["n0 GRANT 7.3 u0 f2/1"]);
    for node in 0..2 {
        pair.learns(node, &pool(2, 2));
    }
    pair.licensed(1, 2);
    pair.claims(0, 4, 1);
    assert_eq!(pair.told(), ["n0 GRANT 7.4 u1 f2/2"]);
}

/// Whoever takes over must know of units that the pool has no more: it may have them again.
#[test]
fn a_unit_that_is_there_again_is_not_granted_beside_whoever_kept_it() {
    for (mutant, others) in [(None, 0), (Some(Mutant::ForgetRemoved), 1)] {
        let broken = |mut pool: Pool| {
            pool.central.goods.mutant = mutant;
            pool
        };
        let mut pair = Pair::new(&broken(pool(2, 2)));
        pair.claims(0, 1, 1);
        pair.claims(0, 2, 1);
        for node in 0..2 {
            pair.learns(node, &broken(pool(1, 2)));
        }
        pair.licensed(0, 1);
        pair.decides(1, 2);
        pair.releases(0, 1);
        for node in 0..2 {
            pair.learns(node, &broken(pool(2, 2)));
        }
        pair.licensed(1, 2);
        pair.told();
        pair.claims(1, 3, 1);
        pair.claims(1, 4, 1);
        let granted = pair.told().iter().filter(|told| told.contains("u1")).count();
        assert_eq!(granted, others, "{mutant:?}");
    }
}

/// The next seat, which has not heard of a unit, would take it for free when it does.
#[test]
fn a_change_that_came_after_a_move_is_not_decided_by_before_it() {
    for (mutant, others) in [(None, 1), (Some(Mutant::DecideAmendedAtOnce), 2)] {
        let broken = |mut pool: Pool| {
            pool.central.goods.mutant = mutant;
            pool
        };
        let mut pair = Pair::new(&broken(pool(1, 1)));
        for serial in [1, 2] {
            pair.claims(0, serial, 1);
        }
        // The charter moved the seat, and then changed the pool: the old seat hears that first.
        pair.learns(0, &broken(pool(2, 2)));
        pair.decides(1, 2);
        pair.learns(1, &broken(pool(2, 2)));
        pair.licensed(1, 2);
        pair.claims(1, 3, 1);
        let granted = pair.told().iter().filter(|told| told.contains("u1 ")).count();
        assert_eq!(granted, others, "{mutant:?}");
    }
}

#[test]
fn claims_that_became_impossible_are_refused_and_others_get_their_turn() {
    let mut pair = Pair::new(&pool(3, 3));
    pair.claims(0, 1, 1);
    pair.claims(1, 2, 3);
    pair.claims(0, 3, 2);
    pair.told();
    pair.learns(0, &pool(2, 3));
    pair.deliver_all();
    pair.licensed(0, 1);
    let why = "the pool does not have so many units that will do";
    assert_eq!(pair.told(), [format!("n1 REFUSE 7.2: {why}")]);
    // A home that has not heard asks in vain, and refuses it when it has.
    pair.claims(1, 4, 3);
    assert_eq!(pair.told(), [""; 0]);
    pair.learns(1, &pool(2, 3));
    assert_eq!(pair.told(), [format!("n1 REFUSE 7.4: {why}")]);
    pair.claims(1, 5, 3);
    assert_eq!(pair.told(), [format!("n1 REFUSE 7.5: {why}")]);
    pair.releases(0, 1);
    assert_eq!(pair.told(), ["n0 GRANT 7.3 u0,u1 f1/2"]);
}

/// A home that has heard of more units asks a seat that has not: it is asked again.
#[test]
fn a_claim_for_more_than_the_seat_knows_waits_until_it_does() {
    let mut pair = Pair::new(&pool(1, 1));
    pair.learns(1, &pool(3, 3));
    pair.claims(1, 1, 3);
    assert_eq!(pair.told(), [""; 0]);
    pair.learns(0, &pool(3, 3));
    pair.licensed(0, 1);
    pair.step(1, Event::Trust(NodeId(0)));
    pair.deliver_all();
    assert_eq!(pair.told(), ["n1 GRANT 7.1 u0,u1,u2 f1/1"]);
}

#[test]
fn who_may_pass_whom_is_settled_anew() {
    let mut pair = Pair::new(&pool(2, 2));
    pair.claims(0, 1, 1);
    pair.claims(0, 2, 2);
    pair.claims(0, 3, 1);
    assert_eq!(pair.told(), ["n0 GRANT 7.1 u0 f1/1"]);
    let mut passing = pool(2, 2);
    passing.central.goods.fairness = Fairness::Backfill(3);
    pair.learns(0, &passing);
    pair.licensed(0, 1);
    assert_eq!(pair.told(), ["n0 GRANT 7.3 u1 f1/2"]);
}

/// Each of two nodes has a client; the first decides, until the charter says otherwise.
pub(super) fn changing(
    wants: &[(NodeId, u32)],
    units: &[u32],
    moves: u8,
    budget: Budget,
) -> Scope<Moving> {
    let mut world = under(scope(2, BOTH, budget), |council| council.moves = moves);
    let ever = |upto: usize| units[..=upto].iter().max().copied().unwrap();
    let pools: Vec<Pool> = (0..units.len()).map(|at| pool(units[at], ever(at))).collect();
    world.pool = pools[0].clone();
    world.editions = pools[1..].to_vec();
    for (plan, (home, h)) in world.clients.iter_mut().zip(wants) {
        let wanted = Units::new(*h, units[0]).expect("as many as there are at first");
        (plan.home, plan.claim) = (*home, Claim::any(plan.claim.id, wanted));
    }
    world
}

pub(super) const BOTH: &[(NodeId, u32)] = &[(NodeId(0), 1), (NodeId(1), 1)];

pub(super) fn broken(mut scope: Scope<Moving>, mutant: Mutant) -> Report {
    for pool in scope.editions.iter_mut().chain([&mut scope.pool]) {
        pool.central.goods.mutant = Some(mutant);
    }
    explore(&scope, &[])
}

/// A changed number is a changed protocol or a changed checker.
#[test]
fn a_pool_that_changes_while_its_seat_moves_is_exhausted_in_as_many_states_as_ever() {
    let more = [Sometimes::MoreThanThereAre];
    let moved = [Sometimes::Full, Sometimes::SeatMoved];
    let renewals = Budget { renewals: 1, ..QUIET };
    let (mut counted, mut pinned) = (Vec::new(), Vec::new());
    for (name, scope, required, states) in [
        ("raised", changing(BOTH, &[1, 2], 1, QUIET), &moved[..], 463_148),
        ("lowered", changing(BOTH, &[2, 1], 1, QUIET), &more[..], 706_395),
        ("lowered and raised", changing(BOTH, &[2, 1, 2], 0, QUIET), &more[..], 19_150),
        ("deleted", changing(BOTH, &[1, 0], 1, QUIET), &more[..], 401_393),
        ("renewals", changing(BOTH, &[2, 1], 0, renewals), &more[..], 54_735),
    ] {
        let report = explore(&scope, required);
        assert!(report.holds(), "{name}: {report}");
        counted.push((name, report.states));
        pinned.push((name, states));
    }
    assert_eq!(counted, pinned);
}

/// Each broken rule, the smallest change in which it shows, and the law that finds it.
#[test]
fn every_broken_rule_of_changes_is_found_by_the_law_it_breaks() {
    let large = &[(NodeId(0), 1), (NodeId(1), 2)];
    for (mutant, scope, law) in [
        (Mutant::GrantRemoved, changing(BOTH, &[2, 1], 0, QUIET), "units in force"),
        (Mutant::FencesAnew, changing(BOTH, &[1, 1], 0, QUIET), "no panic"),
        (Mutant::WaitForNothing, changing(large, &[2, 1], 0, QUIET), "no panic"),
    ] {
        let report = broken(scope, mutant);
        assert_eq!(report.broken_law(), Some(law), "{mutant:?}: {report}");
    }
}
