//! One behaviour, one test.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quorate_core::{
    Claim, ClaimId, Effect, Event, EventOf, Fence, Line, Moment, NodeId, Share, Shares, Start,
    Unit, Units, Wanted,
};

use crate::allocator::labels::Labels;
use crate::by_hand::ByHand;
use crate::goods::Fairness;
use crate::quorums::Quorums;
use crate::table::pool::Mutant;
use crate::table::{Alarm, Message, Pool, Row, Sheet, State, Table};

/// Seats in one process, and a wire that delivers in order.
pub(super) struct Cluster {
    world: ByHand<Table>,
    wanted: Vec<String>,
}

fn id(serial: u64) -> ClaimId {
    ClaimId { origin: 7, serial }
}

impl Cluster {
    fn new(nodes: usize, pool: Pool) -> Self {
        let (world, _) = ByHand::new(nodes, pool, Moment::ZERO);
        Cluster { world, wanted: Vec::new() }
    }

    fn step(&mut self, node: usize, event: EventOf<Table>) {
        for effect in self.world.step(node.into(), event) {
            match effect {
                Effect::Arm { .. } | Effect::Disarm(_) | Effect::Persist(_) => {}
                other => self.wanted.push(format!("n{node} {other}")),
            }
        }
    }

    fn deliver_all(&mut self) {
        while let Some((to, event)) = self.world.next() {
            self.step(to.index(), event);
        }
    }

    fn claim(&mut self, node: usize, serial: u64, h: u32) {
        let units = Units::new(h, self.world.pool.goods.units).unwrap();
        self.step(node, Event::Claim(Claim::any(id(serial), units)));
        self.deliver_all();
    }

    fn release(&mut self, node: usize, serial: u64) {
        self.step(node, Event::Release(id(serial)));
        self.deliver_all();
    }

    fn wanted(&mut self) -> Vec<String> {
        std::mem::take(&mut self.wanted)
    }
}

/// Members 0 to 2, or as the quorums say; clients at nodes that are none, so that nothing is free.
fn outside(quorums: Quorums, confirm: bool) -> Cluster {
    let first_client = quorums.members().iter().last().unwrap().index() + 1;
    Cluster::new(first_client + 2, Pool { quorums, confirm, ..Pool::new(1, 3) })
}

/// Labels spec 6.4: 3|q| per event, so 6|q|+1 per use of a claim that had to wait.
#[test]
fn a_use_costs_six_messages_per_member_and_one() {
    let grid = quorate_quorum::build("grid", Some(9), 1).unwrap();
    for quorums in [Quorums::majority(3), Quorums::majority(5), Quorums::of(&*grid.rule).unwrap()] {
        let me = quorums.members().iter().last().unwrap().index() + 1;
        let drawn = quorums.draw(Units::ONE, NodeId::from(me), 0, &Default::default());
        let q = drawn.unwrap().len();
        for (confirm, rounds) in [(false, 3), (true, 4)] {
            let mut cluster = outside(quorums.clone(), confirm);
            cluster.claim(me, 1, 1);
            assert_eq!(cluster.wanted(), [format!("n{me} GRANT 7.1 u0 f1")]);
            let before = cluster.world.sent;
            assert_eq!(before, rounds * q, "granted in its own section");
            let other = me + 1;
            cluster.claim(other, 2, 1);
            assert_eq!(cluster.world.sent - before, rounds * q, "it waits");
            let waiting = cluster.world.sent;
            cluster.release(me, 1);
            assert_eq!(cluster.wanted(), [format!("n{other} GRANT 7.2 u0 f2")]);
            assert_eq!(cluster.world.sent - waiting, rounds * q + 1, "and it is told");
            cluster.release(other, 2);
            // Two sections of its own, and the word that it was granted in another's.
            let of_the_second = cluster.world.sent - before - rounds * q;
            assert_eq!(of_the_second, 2 * rounds * q + 1);
        }
    }
}

#[test]
fn what_clients_of_a_node_want_meanwhile_is_one_section() {
    let mut cluster = outside(Quorums::majority(3), false);
    for serial in 1..=4 {
        let claim = Claim::any(id(serial), Units::ONE);
        cluster.step(3, Event::Claim(claim));
    }
    cluster.deliver_all();
    assert_eq!(cluster.wanted(), ["n3 GRANT 7.1 u0 f1"]);
    assert_eq!(cluster.world.sent, 6, "all four were asked for in the first section");
}

/// Every third unit is an h100.
fn labels(units: u32) -> Arc<Labels> {
    let unit = |unit: u32| {
        let gpu = if unit.is_multiple_of(3) { "h100" } else { "a100" };
        (format!("gpu{unit}"), BTreeMap::from([("gpu".to_owned(), gpu.to_owned())]))
    };
    Arc::new(Labels::new((0..units).map(unit).collect()))
}

#[test]
fn bundles_of_labelled_units_are_granted_at_once_by_name() {
    let mut pool = Pool::new(6, 3);
    pool.goods.labels = Some(labels(6));
    let line = |pool: &Pool, count, selector: &str| {
        let among = pool.goods.labels.as_ref().unwrap().select(&selector.parse().unwrap());
        Line::of(Units::new(count, 6).unwrap(), among)
    };
    let both: Arc<[Line]> = [line(&pool, 2, "gpu=h100"), line(&pool, 1, "gpu=a100")].into();
    let too_many: Arc<[Line]> = [line(&pool, 3, "gpu=h100")].into();
    let one: Arc<[Line]> = [line(&pool, 1, "gpu=h100")].into();
    let mut cluster = Cluster::new(3, pool);
    let claim = |serial, lines: &Arc<[Line]>| {
        let units = lines.iter().map(|line| line.units.get()).sum();
        let units = Units::new(units, 6).unwrap();
        let wanted = Wanted { lines: Some(lines.clone()), ..Wanted::any(units) };
        Event::Claim(Claim::new(id(serial), wanted))
    };
    cluster.step(0, claim(1, &one));
    cluster.deliver_all();
    assert_eq!(cluster.wanted(), ["n0 GRANT 7.1 u0 f1"]);
    cluster.step(1, claim(2, &both));
    cluster.step(2, claim(3, &too_many));
    cluster.deliver_all();
    let refused = "n2 REFUSE 7.3: the pool does not have so many units that will do";
    assert_eq!(cluster.wanted(), [refused]);
    cluster.release(0, 1);
    assert_eq!(cluster.wanted(), ["n1 GRANT 7.2 u0,u1,u3 f2"]);
}

/// The specification's protection of the oldest, across sections: how often claims were passed is
/// in the table, and stays there when one of them is cancelled.
#[test]
fn whoever_is_cancelled_was_passed_along_with_all_older_claims() {
    let mut pool = Pool::new(2, 3);
    pool.goods.fairness = Fairness::Backfill(1);
    let mut cluster = Cluster::new(3, pool);
    cluster.claim(0, 1, 1);
    cluster.claim(1, 2, 2);
    cluster.claim(2, 3, 2);
    cluster.claim(0, 4, 1);
    assert_eq!(
        cluster.wanted(),
        ["n0 GRANT 7.1 u0 f1", "n0 GRANT 7.4 u1 f2"],
        "2 and 3 are passed"
    );
    cluster.step(2, Event::Cancel(id(3)));
    cluster.deliver_all();
    cluster.release(0, 4);
    cluster.wanted();
    cluster.claim(0, 5, 1);
    assert_eq!(cluster.wanted(), [""; 0], "2 was passed once already");
    cluster.release(0, 1);
    assert_eq!(cluster.wanted(), ["n1 GRANT 7.2 u0,u1 f3"]);
}

#[test]
fn units_of_a_holder_that_did_not_renew_come_back_with_a_larger_fence() {
    let mut cluster = Cluster::new(3, Pool::new(1, 3));
    cluster.claim(0, 1, 1);
    cluster.claim(2, 2, 1);
    cluster.wanted();
    cluster.step(1, Event::Ring(Alarm::LeaseEnd(id(1))));
    cluster.deliver_all();
    let wanted = cluster.wanted();
    assert_eq!(wanted, ["n1 RECLAIM 7.1 u0 f1", "n0 LOSE 7.1", "n2 GRANT 7.2 u0 f2"]);
}

#[test]
fn claims_beyond_what_a_message_can_carry_wait_at_their_homes() {
    let mut cluster = Cluster::new(3, Pool { room: 220, ..Pool::new(1, 3) });
    for serial in 1..=4 {
        cluster.claim(serial as usize % 3, serial, 1);
    }
    let rows = |cluster: &Cluster| cluster.world.nodes[0].member.as_ref().unwrap().sheet.rows.len();
    assert_eq!((cluster.wanted(), rows(&cluster)), (vec!["n1 GRANT 7.1 u0 f1".into()], 2));
    for (holder, serial) in [(1, 1), (2, 2), (0, 3)] {
        cluster.release(holder, serial);
        for node in [0, 1] {
            cluster.step(node, Event::Ring(Alarm::Retry));
            cluster.deliver_all();
        }
    }
    let granted = ["n2 GRANT 7.2 u0 f2", "n0 GRANT 7.3 u0 f3", "n1 GRANT 7.4 u0 f4"];
    assert_eq!(cluster.wanted(), granted);
}

/// A lock that is taken away, and a section that stores too late: it begins again, and nothing it
/// stored elsewhere counts.
#[test]
fn a_section_that_lost_a_lock_begins_again() {
    let mut cluster = Cluster::new(5, Pool { patience: Some(0), ..Pool::new(1, 3) });
    cluster.step(3, Event::Claim(Claim::any(id(1), Units::ONE)));
    while !matches!(cluster.world.wire.front(), Some((_, _, Message::Store { .. }))) {
        let (from, to, message) = cluster.world.wire.pop_front().unwrap();
        cluster.step(to.index(), Event::Hear { from, message });
    }
    cluster.step(1, Event::Ring(Alarm::Hold));
    cluster.deliver_all();
    assert_eq!(cluster.wanted(), ["n3 GRANT 7.1 u0 f1"]);
    cluster.claim(4, 2, 1);
    assert_eq!(cluster.wanted(), [""; 0]);
    cluster.release(3, 1);
    assert_eq!(cluster.wanted(), ["n4 GRANT 7.2 u0 f2"]);
}

/// Nodes killed two members of five and started them again: whoever renewed asked them in turn, and
/// lost what it had before their grace was over.
#[test]
fn members_that_forgot_say_so_and_others_are_asked_at_once() {
    let mut cluster = Cluster::new(6, Pool::new(1, 5));
    for node in [0, 2] {
        let _ = cluster.world.restart(NodeId(node), Start::Amnesia);
    }
    for (serial, draw) in (1..).zip(0..5) {
        let claim = Claim { draw, ..Claim::any(id(serial), Units::ONE) };
        cluster.step(5, Event::Claim(claim));
        cluster.deliver_all();
        let granted = format!("n5 GRANT 7.{serial} u0 f{serial}");
        assert_eq!(cluster.wanted(), [granted], "no alarm has rung");
        cluster.release(5, serial);
    }
}

/// A unit in use at n3; one claim waits at n4, and a younger one at n5, to which the client of the
/// first moves.
fn moving() -> Cluster {
    let mut cluster = Cluster::new(6, Pool::new(1, 3));
    for (node, serial) in [(3, 1), (4, 2), (5, 3), (5, 2)] {
        cluster.claim(node, serial, 1);
    }
    assert_eq!(cluster.wanted(), ["n3 GRANT 7.1 u0 f1"]);
    cluster
}

/// The client comes back to n4, and n5 gives its copy up. Who is granted next?
fn came_back(mutant: Option<Mutant>) -> Vec<String> {
    let mut cluster = moving();
    cluster.world.pool.mutant = mutant;
    cluster.step(5, Event::Withdraw(id(2)));
    cluster.deliver_all();
    cluster.release(3, 1);
    cluster.wanted()
}

#[test]
fn a_client_that_came_back_keeps_its_place() {
    assert_eq!(came_back(None), ["n4 GRANT 7.2 u0 f2"]);
    assert_eq!(came_back(Some(Mutant::GiveUpForAll)), ["n5 GRANT 7.3 u0 f2"]);
}

#[test]
fn a_client_that_moved_keeps_its_place_whoever_asks_meanwhile() {
    let mut cluster = moving();
    // Its first home has nobody to ask for any more, but does not know it yet.
    for _ in 0..3 {
        cluster.step(4, Event::Ring(Alarm::Retry));
        cluster.deliver_all();
    }
    assert_eq!(cluster.world.nodes[0].member.as_ref().unwrap().sheet.rows[&id(2)].node, NodeId(5));
    cluster.step(4, Event::Withdraw(id(2)));
    cluster.deliver_all();
    cluster.release(3, 1);
    assert_eq!(cluster.wanted(), ["n5 GRANT 7.2 u0 f2"]);
    // Nobody else could have been told of it.
    cluster.step(5, Event::Withdraw(id(2)));
    cluster.deliver_all();
    assert_eq!(cluster.wanted(), ["n5 GRANT 7.3 u0 f3"]);
}

/// Claims that were passed more often, together, than anybody counts.
fn passed_too_often() -> BTreeMap<ClaimId, Row> {
    let row = |age| Row {
        node: NodeId(1),
        attempt: crate::table::Attempt { boot: 0, clock: 1 },
        age,
        wanted: Wanted::any(Units::ONE),
        passed: u32::MAX,
        shared: false,
        others: Vec::new(),
        state: State::Waiting {
            sent: Moment::ZERO,
            waited: Duration::ZERO,
            absent: None,
            absences: 0,
        },
    };
    (1..=2).map(|serial| (id(serial), row(serial))).collect()
}

#[test]
fn messages_that_no_correct_peer_sends_are_anomalies_and_change_nothing() {
    let mut cluster = Cluster::new(4, Pool::new(1, 3));
    let before = cluster.world.nodes.clone();
    let section = crate::table::Attempt { boot: 0, clock: 1 };
    cluster.step(0, Event::Hear { from: NodeId(3), message: Message::Stored { section } });
    cluster.step(3, Event::Hear { from: NodeId(0), message: Message::Survey });
    let round = Fence(u64::MAX);
    cluster.step(0, Event::Hear { from: NodeId(1), message: Message::Lock { section, round } });
    let sheet = Arc::new(Sheet { fence: round, ..Sheet::default() });
    cluster.step(0, Event::Hear { from: NodeId(1), message: Message::Store { section, sheet } });
    let sheet = Arc::new(Sheet { rows: passed_too_often(), ..Sheet::default() });
    cluster.step(0, Event::Hear { from: NodeId(1), message: Message::Store { section, sheet } });
    let wanted = cluster.wanted();
    assert_eq!(wanted.len(), 5);
    assert!(wanted.iter().all(|line| line.contains("ANOMALY")), "{wanted:?}");
    assert_eq!(cluster.world.nodes, before);
    // Nor does it use what it did not ask for.
    cluster.claim(1, 1, 1);
    cluster.claim(0, 2, 1);
    cluster.wanted();
    let attempt = cluster.world.nodes[0].requester.claims[&id(2)].attempt;
    let shares = Shares::new(&[Share { unit: Unit(1), fence: Fence(2) }]);
    let (sent, waited) = (Moment::ZERO, Duration::ZERO);
    let message = Message::Notify { claim: id(2), attempt, shares, sent, waited };
    cluster.step(0, Event::Hear { from: NodeId(1), message });
    let wanted = cluster.wanted();
    assert!(matches!(&wanted[..], [one] if one.contains("a different claim")), "{wanted:?}");
}
