//! Stories of seats that move, step by step.

use std::collections::VecDeque;
use std::time::Duration;

use quorate_core::{
    Charter, Claim, ClaimId, Effect, Event, EventOf, Fence, Lease, Moment, NodeId, Outbox,
    Protocol, Seat, Shadow, Share, Shares, Start, Tenure, Unit, Units,
};

use crate::attempt::Attempt;
use crate::central::moving::{Books, Message, Moving, Pool, Shown};
use crate::goods::Goods;

/// Two nodes that talk over links which deliver when asked to, and no clock that runs.
struct Pair {
    pool: Pool,
    seats: Vec<Moving>,
    boots: Vec<u32>,
    wire: VecDeque<(NodeId, NodeId, Message)>,
    /// What clients were told, as traces show it.
    told: Vec<String>,
}

impl Pair {
    fn new() -> Self {
        let central = crate::central::Pool::new(1);
        let pool = Pool::new(central, 2);
        let (boots, wire, told) = (vec![0, 0], VecDeque::new(), Vec::new());
        let mut pair = Pair { pool, seats: Vec::new(), boots, wire, told };
        for node in 0..2 {
            let seat = pair.boot(node, Start::First);
            pair.seats.push(seat);
        }
        for node in 0..2 {
            pair.applies(node, 1, None, (0, 0));
        }
        pair.licensed(0, 1);
        pair
    }

    fn boot(&self, node: usize, start: Start<std::convert::Infallible>) -> Moving {
        let (me, boot, now) = (node.into(), self.boots[node], Moment::ZERO);
        Moving::boot(&Seat { me, boot, now, pool: &self.pool }, start, &mut Outbox::new())
    }

    fn restart(&mut self, node: usize) {
        self.wire.retain(|(_, to, _)| to.index() != node);
        self.boots[node] += 1;
        self.seats[node] = self.boot(node, Start::Amnesia);
    }

    fn step(&mut self, node: usize, event: EventOf<Moving>) {
        let (me, boot, now) = (node.into(), self.boots[node], Moment::ZERO);
        let seat = Seat { me, boot, now, pool: &self.pool };
        let mut out = Outbox::new();
        self.seats[node].step(&seat, event, &mut out);
        self.seats[node].audit(&seat);
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

    fn applies(&mut self, node: usize, term: u32, after: Option<u32>, (seat, boot): (u32, u32)) {
        let tenure = Tenure { term, after, node: NodeId(seat), boot };
        self.step(node, Event::Charter(Charter::Applied(tenure)));
    }

    fn licensed(&mut self, node: usize, term: u32) {
        self.step(node, Event::Charter(Charter::Licensed { term, asked: Moment::ZERO }));
    }

    fn claims(&mut self, node: usize, serial: u64) {
        self.step(node, Event::Claim(Claim::any(id(serial), Units::ONE)));
    }

    fn deliver_all(&mut self) {
        while let Some((from, to, message)) = self.wire.pop_front() {
            self.step(to.index(), Event::Hear { from, message });
        }
    }

    fn told(&mut self) -> Vec<String> {
        std::mem::take(&mut self.told)
    }
}

fn id(serial: u64) -> ClaimId {
    ClaimId { origin: 7, serial }
}

/// The seat moves on purpose: who has something keeps it, who waits keeps its place, and the next
/// seat decides at once.
#[test]
fn books_hand_over_grants_and_the_queue() {
    let mut pair = Pair::new();
    pair.claims(1, 1);
    pair.deliver_all();
    assert_eq!(pair.told(), ["n1 GRANT 7.1 u0 f1/1"]);
    pair.claims(0, 2);
    pair.claims(1, 3);
    pair.deliver_all();
    pair.applies(0, 2, Some(1), (1, 0));
    pair.deliver_all(); // The books come before the next seat knows that it is one.
    pair.applies(1, 2, Some(1), (1, 0));
    pair.licensed(1, 2);
    pair.deliver_all();
    assert_eq!(pair.told(), [""; 0]);
    pair.step(1, Event::Release(id(1)));
    pair.deliver_all();
    assert_eq!(pair.told(), ["n0 GRANT 7.2 u0 f2/1"], "the older of those who wait");
}

/// Who renews while the next seat waits for the end of licences is answered when that has come, and
/// not only when it asks again.
#[test]
fn renewals_that_came_too_early_are_answered_as_soon_as_may_be() {
    let mut pair = Pair::new();
    pair.claims(0, 1);
    assert_eq!(pair.told(), ["n0 GRANT 7.1 u0 f1/1"]);
    pair.applies(0, 2, Some(1), (1, 0));
    pair.wire.clear(); // The books are lost.
    pair.applies(1, 2, Some(1), (1, 0));
    pair.licensed(1, 2);
    pair.wire.clear(); // The roll is, too.
    let shares = Shares::new(&[Share { unit: Unit(0), fence: Fence::floor(1).next() }]);
    pair.step(0, Event::Renew { claim: id(1), shares });
    pair.deliver_all();
    let on_the_wire = |pair: &Pair| {
        pair.wire.iter().map(|(_, _, it)| it.to_string()).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(on_the_wire(&pair), "", "the seat before may still renew it and end that lease");
    pair.step(1, Event::Ring(crate::central::moving::Alarm::Lull));
    let said = on_the_wire(&pair);
    assert!(said.starts_with("renewed 7.1") && said.ends_with("t2"), "{said}");
}

/// Without a licence nobody decides, and with one for another term neither.
#[test]
fn an_open_seat_waits_for_its_licence() {
    let mut pair = Pair::new();
    pair.applies(0, 2, Some(1), (1, 0));
    pair.applies(1, 2, Some(1), (1, 0));
    pair.claims(1, 1);
    pair.deliver_all();
    pair.licensed(1, 1);
    assert_eq!(pair.told(), [""; 0]);
    pair.licensed(1, 2);
    assert_eq!(pair.told(), ["n1 GRANT 7.1 u0 f2/1"]);
}

/// A node that was restarted does not know what its earlier life promised since. It asks the
/// charter for a term of its own, and does not decide in the old one.
#[test]
fn only_the_life_that_the_charter_names_decides() {
    let mut pair = Pair::new();
    pair.restart(0);
    pair.applies(0, 1, None, (0, 0));
    pair.licensed(0, 1);
    pair.claims(0, 1);
    pair.deliver_all();
    assert_eq!(pair.told(), [""; 0]);
    let (me, boot, now) = (NodeId(0), pair.boots[0], Moment::ZERO);
    let decides = |pair: &Pair| {
        let mut decides = false;
        let seat = Seat { me, boot, now, pool: &pair.pool };
        pair.seats[0].facts(&seat, &mut |fact| decides |= fact.name == "decides");
        decides
    };
    assert!(!decides(&pair));
    pair.applies(0, 2, Some(1), (0, 1));
    assert!(decides(&pair));
}

/// Whoever has a licence has none when whoever waits for its end has waited (charter spec S3), at
/// the corners of the drift range.
#[test]
fn a_licence_is_over_before_the_next_seat_counts_on_it() {
    for drift_ppm in [0, 200, 50_000, 300_000] {
        let goods =
            Goods { lease: Lease::new(Duration::from_secs(10), drift_ppm), ..Goods::new(1) };
        let pool = Pool::new(crate::central::Pool::of(goods), 2);
        let rho = f64::from(drift_ppm) / 1e6;
        for (old, new) in [(1.0 - rho, 1.0 + rho), (1.0 + rho, 1.0 - rho)] {
            let licensed = pool.licensed_until(Moment::ZERO).0 as f64 / 1e9 / old;
            let waited = pool.lull().as_secs_f64() / new;
            assert!(licensed <= waited + 1e-9, "{drift_ppm} {licensed} {waited}");
        }
    }
}

/// A grant is told when the shadow knows of it, and a shadow that takes over knows who has what:
/// nobody waits for a licence to end but those who would be told again.
#[test]
fn a_shadow_decides_as_soon_as_it_is_called() {
    let mut pair = Pair::new();
    let shadow = Shadow { node: NodeId(1), boot: 0, naming: 0, whole: true };
    pair.step(0, Event::Charter(Charter::Shadowed { term: 1, shadow: Some(shadow) }));
    pair.claims(0, 1);
    assert_eq!(pair.told(), [""; 0], "its shadow does not know yet");
    pair.deliver_all();
    assert_eq!(pair.told(), ["n0 GRANT 7.1 u0 f1/1"]);
    pair.claims(1, 2);
    pair.deliver_all();
    let tenure = Tenure { term: 2, after: Some(1), node: NodeId(1), boot: 0 };
    pair.step(1, Event::Charter(Charter::Inherited(tenure, 0)));
    pair.licensed(1, 2);
    assert_eq!(pair.told(), [""; 0], "the unit is in use");
    // The client of the seat that is gone comes here, and is done.
    pair.step(1, Event::Release(id(1)));
    assert_eq!(pair.told(), ["n1 GRANT 7.2 u0 f2/1"]);
}

/// Links reorder: of each unit a shadow keeps the newest holder that it heard of, and a seat whose
/// shadow is struck tells what it has withheld.
#[test]
fn a_shadow_keeps_the_newest_and_one_that_is_struck_holds_nobody_up() {
    let mut pair = Pair::new();
    let shadow = Some(Shadow { node: NodeId(1), boot: 0, naming: 0, whole: true });
    pair.step(0, Event::Charter(Charter::Shadowed { term: 1, shadow }));
    pair.claims(0, 1);
    pair.step(0, Event::Release(id(1)));
    pair.claims(0, 2);
    pair.wire.make_contiguous().reverse();
    pair.deliver_all();
    assert_eq!(pair.told(), ["n0 GRANT 7.2 u0 f1/2"], "and not the one that is over");
    let trail = pair.seats[1].trail.as_ref().unwrap();
    assert_eq!(trail.granted.keys().collect::<Vec<_>>(), [&id(2)]);
    pair.step(0, Event::Release(id(2)));
    pair.claims(0, 3);
    assert_eq!(pair.told(), [""; 0]);
    pair.step(0, Event::Charter(Charter::Shadowed { term: 1, shadow: None }));
    assert_eq!(pair.told(), ["n0 GRANT 7.3 u0 f1/3"]);
}

impl Pair {
    /// Whom the shadow, which is the second node, takes for holders.
    fn trail(&self) -> Vec<u64> {
        let trail = self.seats[1].trail.as_ref().expect("it was told something");
        trail.granted.keys().map(|claim| claim.serial).collect()
    }

    fn shadowed(&mut self, naming: u64) {
        let shadow = Shadow { node: NodeId(1), boot: 0, naming, whole: true };
        self.step(0, Event::Charter(Charter::Shadowed { term: 1, shadow: Some(shadow) }));
    }
}

/// What is over is told at once, with what is granted by that: else the books of a shadow would
/// grow for ever, and every unit be taken for held.
#[test]
fn a_shadow_hears_what_is_over() {
    let mut pair = Pair::new();
    pair.shadowed(0);
    pair.claims(0, 1);
    pair.deliver_all();
    pair.step(0, Event::Release(id(1)));
    pair.deliver_all();
    assert_eq!(pair.trail(), [0; 0]);
    pair.claims(0, 2);
    pair.deliver_all();
    pair.claims(0, 3);
    pair.step(0, Event::Release(id(2)));
    let told = &pair.wire.back().expect("the shadow is told").2;
    assert_eq!(told.to_string(), "tell t1 7.3 u0 f1/3, 7.2 over f1/3");
    pair.deliver_all();
    assert_eq!(pair.trail(), [3]);
    let units = &pair.seats[1].trail.as_ref().expect("as before").units;
    assert_eq!(units.len(), 1);
}

/// Who leaves one of its units keeps the others, and what comes late changes nothing: of a claim,
/// as of a unit, a shadow keeps the newest that it heard of.
#[test]
fn a_shadow_keeps_what_is_left_of_a_grant() {
    let mut pair = Pair::new();
    let shown = |claim, shares: &[(u32, u64)]| {
        let share = |&(unit, fence): &(u32, u64)| Share { unit: Unit(unit), fence: Fence(fence) };
        let shares = Shares::new(&shares.iter().map(share).collect::<Vec<_>>());
        let shown = Shown { claim: id(claim), attempt: Attempt { boot: 0, clock: 1 }, shares };
        (NodeId(0), Moment::ZERO, shown)
    };
    let mut hear = |granted| {
        let (all, ended) = (false, Vec::new());
        let message = Message::Tell { term: 1, boot: 0, naming: 0, all, granted, ended };
        pair.step(1, Event::Hear { from: NodeId(0), message });
        let trail = pair.seats[1].trail.as_ref().expect("it was told something");
        let of = |(_, _, it): &(NodeId, Moment, Shown)| {
            let units = it.shares.iter().map(|share| share.unit.0);
            (it.claim.serial, units.collect::<Vec<_>>())
        };
        trail.granted.values().map(of).collect::<Vec<_>>()
    };
    assert_eq!(hear(vec![shown(1, &[(0, 1), (1, 2)])]), [(1, vec![0, 1])]);
    assert_eq!(hear(vec![shown(2, &[(0, 3)])]), [(1, vec![1]), (2, vec![0])]);
    assert_eq!(hear(vec![shown(2, &[(5, 2)])]), [(1, vec![1]), (2, vec![0])], "it came late");
    assert_eq!(hear(vec![shown(3, &[(0, 2)])]), [(1, vec![1]), (2, vec![0])], "so did this");
}

/// Links reorder: word that a grant is over says nothing of what the same claim got since.
#[test]
fn a_late_end_ends_no_newer_grant() {
    let kept = |mutant| {
        let mut pair = Pair::new();
        pair.pool.central.goods.mutant = mutant;
        pair.shadowed(0);
        pair.claims(0, 1);
        pair.deliver_all();
        let (all, granted, ended) = (false, Vec::new(), vec![(id(1), Fence::floor(1))]);
        let message = Message::Tell { term: 1, boot: 0, naming: 0, all, granted, ended };
        pair.step(1, Event::Hear { from: NodeId(0), message });
        pair.trail()
    };
    assert_eq!(kept(None), [1]);
    assert_eq!(kept(Some(crate::central::pool::Mutant::EndAnyGrant)), [0; 0], "so it is looked at");
}

/// The charter speaks of a group. Of a pool of it that its shadow was not shown, or not since it
/// was named, it takes nothing over: it waits as any other node would.
#[test]
fn a_shadow_that_was_not_shown_all_waits() {
    let waits = |pair: &Pair| {
        let (me, boot, now) = (NodeId(1), pair.boots[1], Moment::ZERO);
        let seat = Seat { me, boot, now, pool: &pair.pool };
        pair.seats[1].health(&seat).in_grace
    };
    let tenure = Tenure { term: 2, after: Some(1), node: NodeId(1), boot: 0 };
    let inherit = |pair: &mut Pair, naming| {
        pair.step(1, Event::Charter(Charter::Inherited(tenure, naming)));
    };
    let mut shown = Pair::new();
    shown.shadowed(0);
    shown.deliver_all();
    inherit(&mut shown, 0);
    assert!(!waits(&shown));
    let mut unshown = Pair::new();
    unshown.shadowed(0);
    unshown.wire.clear();
    inherit(&mut unshown, 0);
    assert!(waits(&unshown));
    // Named again, it was told of one grant, and the rest is on its way.
    let mut again = Pair::new();
    again.shadowed(0);
    again.deliver_all();
    again.shadowed(1);
    again.wire.clear();
    again.claims(0, 1);
    again.deliver_all();
    inherit(&mut again, 1);
    assert!(waits(&again));
    // Or of nothing: what it was told before lacks what was granted in between.
    let earlier = |mutant| {
        let mut pair = Pair::new();
        pair.pool.central.goods.mutant = mutant;
        pair.shadowed(0);
        pair.deliver_all();
        inherit(&mut pair, 1);
        waits(&pair)
    };
    assert!(earlier(None));
    assert!(!earlier(Some(crate::central::pool::Mutant::InheritEarlier)), "so it is looked at");
}

/// One that had not heard of the pool, or of which nothing was heard, is shown all again as soon as
/// it is heard; and it is said since when it owes an answer.
#[test]
fn a_shadow_that_is_heard_again_is_shown_all() {
    let mut pair = Pair::new();
    let owes = |pair: &Pair| {
        let (me, boot, now) = (NodeId(0), pair.boots[0], Moment::ZERO);
        let seat = Seat { me, boot, now, pool: &pair.pool };
        let shadow = pair.seats[0].health(&seat).shadow.expect("it has one");
        (shadow.silent_since.is_some(), shadow.whole)
    };
    pair.shadowed(0);
    pair.wire.clear();
    pair.claims(0, 1);
    pair.wire.clear();
    assert_eq!((owes(&pair), pair.told()), ((true, false), Vec::new()));
    pair.step(0, Event::Trust(NodeId(1)));
    pair.deliver_all();
    assert_eq!(pair.told(), ["n0 GRANT 7.1 u0 f1/1"]);
    assert_eq!(owes(&pair), (false, true));
    pair.step(0, Event::Trust(NodeId(1)));
    assert_eq!(pair.wire.len(), 0, "it knows");
}

/// What is said of homes that cannot be is left alone: nobody could be answered there.
#[test]
fn books_of_strangers_change_nothing() {
    let mut pair = Pair::new();
    let (claim, attempt, sent) = (id(1), Attempt { boot: 0, clock: 1 }, Moment::ZERO);
    let shares = Shares::new(&[Share { unit: Unit(0), fence: Fence(1) }]);
    let granted = vec![(NodeId(2), sent, Shown { claim, attempt, shares })];
    let (before, naming) = (pair.seats[1].clone(), 0);
    let books = Books { of: 1, term: 2, granted: granted.clone(), waiting: Vec::new() };
    let tell = Message::Tell { term: 1, boot: 0, naming, all: false, granted, ended: Vec::new() };
    for message in [Message::Books(Box::new(books)), tell] {
        pair.step(1, Event::Hear { from: NodeId(0), message });
    }
    assert_eq!((&pair.seats[1], pair.wire.len()), (&before, 0));
}

/// Until it gives up what files let it decide it needs no licence, and speaks of no term; then it
/// grants nothing, and its books open the first term of the charter.
#[test]
fn what_a_pinned_seat_gave_stays_when_the_charter_begins() {
    let mut pair = Pair::new();
    pair.pool.pinned = Some(NodeId(0));
    pair.boots[0] = 3;
    for node in 0..2 {
        pair.seats[node] = pair.boot(node, Start::First);
    }
    pair.applies(0, Tenure::PINNED, None, (0, 2));
    pair.claims(1, 1);
    pair.deliver_all();
    assert_eq!(pair.told(), [""; 0], "another life of it was meant");
    pair.applies(0, Tenure::PINNED, None, (0, 3));
    pair.claims(0, 2);
    pair.claims(1, 3);
    pair.deliver_all();
    assert_eq!(pair.told(), ["n0 GRANT 7.2 u0 f3/1"]);
    pair.step(0, Event::Charter(Charter::Unpinned));
    pair.step(0, Event::Release(id(2)));
    pair.deliver_all();
    assert_eq!(pair.told(), [""; 0], "what comes back is taken back, and given to nobody");
    pair.applies(0, 9, Some(Tenure::PINNED), (1, 0));
    pair.deliver_all();
    pair.applies(1, 9, Some(Tenure::PINNED), (1, 0));
    pair.licensed(1, 9);
    pair.deliver_all();
    assert_eq!(pair.told(), ["n1 GRANT 7.3 u0 f9/1"]);
    pair.applies(0, Tenure::PINNED, None, (0, 3));
    pair.claims(0, 4);
    pair.deliver_all();
    assert_eq!(pair.told(), [""; 0], "what files say is over");
}
