//! Members that crash and forget while others hold: what they may take up again, and what not.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quorate_core::{
    Claim, ClaimId, Effect, Event, EventOf, Fence, Moment, NodeId, Protocol, Share, Shares, Start,
    Unit, Units,
};

use crate::by_hand::ByHand;
use crate::ticket::message::{Message, Standing};
use crate::ticket::pool::Mutant;
use crate::ticket::{Alarm, Bid, Pool, Ticket};

/// Claim 1, made at n3; claim 2, made at n5.
const HELD: ClaimId = ClaimId { origin: 1, serial: 1 };
const NEXT: ClaimId = ClaimId { origin: 1, serial: 2 };

/// One unit and majorities of nodes 0 to 2; messages arrive at once, unless their road is cut.
struct World {
    nodes: ByHand<Ticket>,
    cut: BTreeSet<(u32, u32)>,
    /// Until when each claim may be used, as its client was told last.
    told: BTreeMap<ClaimId, Moment>,
    /// Whether somebody was let in while another one could use the unit.
    broken: bool,
    /// Who was told that it has nothing any more.
    lost: Vec<ClaimId>,
}

impl World {
    fn new(spares: u32, mutant: Option<Mutant>) -> World {
        let pool = Pool { mutant, spares, ..Pool::new(1, 3) };
        let (told, cut, lost) = Default::default();
        World { nodes: ByHand::new(6, pool, Moment(1)).0, cut, told, broken: false, lost }
    }

    fn at(&mut self, seconds: u64) {
        self.nodes.now = Moment(1).after(Duration::from_secs(seconds));
    }

    /// Crashes, and is back at once with nothing.
    fn forget(&mut self, node: u32) {
        let _ = self.nodes.restart(NodeId(node), Start::Amnesia);
    }

    /// Something happens to a node, and all that comes of it.
    fn step(&mut self, node: u32, event: EventOf<Ticket>) {
        let mut next = Some((NodeId(node), event));
        while let Some((me, event)) = next {
            for effect in self.nodes.step(me, event) {
                match effect {
                    Effect::Grant { claim, until, .. } | Effect::Extend { claim, until } => {
                        self.told.insert(claim, until);
                        let now = self.nodes.now;
                        self.broken |= self.told.values().filter(|t| **t > now).count() > 1;
                    }
                    Effect::Lose { claim } => self.lost.push(claim),
                    _ => {}
                }
            }
            self.nodes.wire.retain(|(from, to, _)| !self.cut.contains(&(from.0, to.0)));
            next = self.nodes.next();
        }
    }

    fn claim(&mut self, node: u32, id: ClaimId, draw: u64) {
        self.step(node, Event::Claim(Claim { draw, ..Claim::any(id, Units::ONE) }));
    }

    /// The holder's client shows what it has at n3.
    fn renew(&mut self) {
        let fence = self.nodes.nodes[3].requester.claims.get(&HELD).map(|local| local.ticket);
        let fence = fence.unwrap_or(self.nodes.nodes[1].member.as_ref().expect("a member").top);
        let shares = Shares::new(&[Share { unit: Unit(0), fence }]);
        self.step(3, Event::Renew { claim: HELD, shares });
    }

    /// The lease that a member gave the holder ends.
    fn end_lease_at(&mut self, member: u32) {
        let bid = Bid { claim: HELD, node: NodeId(3), boot: 0 };
        self.step(member, Event::Ring(Alarm::LeaseEnd(bid)));
    }
}

/// Claim 1 is held by the word of n0 and n1, and claim 2 has a view from n2. Then n2 forgets, and
/// so does n3, which shows the grant to n1 and n2 and does not reach n0: n2 has never heard of it.
fn shown_to_a_stranger(mutant: Option<Mutant>) -> bool {
    let mut world = World::new(0, mutant);
    world.claim(3, HELD, 0);
    world.at(5);
    world.claim(5, NEXT, 2);
    assert!(world.told.contains_key(&HELD) && !world.told.contains_key(&NEXT));
    world.forget(2);
    world.forget(3);
    world.cut.extend([(3, 0), (0, 3)]);
    world.at(9);
    world.renew();
    world.at(10);
    world.end_lease_at(0);
    world.broken
}

#[test]
fn who_forgot_takes_up_only_what_relied_on_it() {
    assert!(!shown_to_a_stranger(None));
    assert!(shown_to_a_stranger(Some(Mutant::AdoptShown)));
}

/// Claim 1 is held by the word of all three members. Its entry at n2 ends, which claim 2 sees
/// there; then n2 forgets, and hears of the grant again, while n0 no longer does.
fn back_to_a_member(mutant: Option<Mutant>) -> bool {
    let mut world = World::new(1, mutant);
    world.claim(3, HELD, 0);
    world.at(5);
    world.cut.extend([(3, 2), (2, 3)]);
    world.renew();
    world.at(6);
    world.step(5, Event::Suspect(NodeId(1)));
    world.claim(5, NEXT, 2);
    world.at(11);
    world.end_lease_at(2);
    world.forget(2);
    world.cut = [(3, 0), (0, 3)].into();
    world.at(12);
    world.renew();
    world.at(15);
    world.nodes.now = world.nodes.now.after(Duration::from_millis(500));
    world.end_lease_at(0);
    assert!(world.told.contains_key(&NEXT), "claim 2 is let in");
    world.broken
}

#[test]
fn a_holder_does_not_come_back_to_a_member_whose_entry_may_have_ended() {
    assert!(!back_to_a_member(None));
    assert!(back_to_a_member(Some(Mutant::ReviveMember)));
}

/// Claim 1 is held by the word of all three members. What it tells n2 is under way for long: its
/// entry there ends, which claim 2 sees, n2 forgets, and then takes it up. Its home asks n2 to know
/// of it again, or is restarted and shows it; and n0 no longer knows it.
fn taken_up_late(restarted: bool, mutant: Option<Mutant>) -> bool {
    let mut world = World::new(1, mutant);
    world.claim(3, HELD, 0);
    world.at(5);
    world.cut.extend([(3, 2), (2, 3)]);
    let local = &world.nodes.nodes[3].requester.claims[&HELD];
    let (attempt, units, ticket) = (local.attempt, local.units, local.ticket);
    let (standing, seen, sent) = (Standing::Held, Fence::default(), world.nodes.now);
    let late = Message::Settle { claim: HELD, attempt, units, ticket, standing, seen, sent };
    world.renew();
    world.at(6);
    world.step(5, Event::Suspect(NodeId(1)));
    world.claim(5, NEXT, 2);
    world.at(11);
    world.end_lease_at(2);
    world.forget(2);
    world.step(2, Event::Hear { from: NodeId(3), message: late });
    world.cut = [(3, 0), (0, 3)].into();
    world.at(12);
    if restarted {
        world.forget(3);
    }
    world.renew();
    world.at(15);
    world.nodes.now = world.nodes.now.after(Duration::from_millis(500));
    world.end_lease_at(0);
    assert!(world.told.contains_key(&NEXT), "claim 2 is let in");
    world.broken
}

#[test]
fn what_a_member_takes_up_late_is_confirmed_to_nobody_who_cannot_tell() {
    for restarted in [false, true] {
        assert!(!taken_up_late(restarted, None));
        assert!(taken_up_late(restarted, Some(Mutant::ConfirmInGrace)));
    }
}

/// A client shows what it was never given, or so long ago that nobody knows: it hears so at once.
#[test]
fn what_no_member_knows_is_lost_at_once() {
    let mut world = World::new(2, None);
    let shares = Shares::new(&[Share { unit: Unit(0), fence: Fence(7) }]);
    world.step(3, Event::Renew { claim: HELD, shares });
    assert_eq!(world.lost, [HELD]);
}

/// The same with a member that is dead. It is not waited for, whether it is suspected before or
/// after the others have answered: alone it could not have let anybody in.
fn lost_without_the_dead(suspected_first: bool, mutant: Option<Mutant>) -> bool {
    let mut world = World::new(2, mutant);
    world.cut.extend([(3, 1), (1, 3)]);
    let shares = Shares::new(&[Share { unit: Unit(0), fence: Fence(7) }]);
    if suspected_first {
        world.step(3, Event::Suspect(NodeId(1)));
    }
    world.step(3, Event::Renew { claim: HELD, shares });
    if !suspected_first {
        assert!(world.lost.is_empty(), "it may know it");
        world.step(3, Event::Suspect(NodeId(1)));
    }
    world.lost == [HELD]
}

#[test]
fn what_no_living_member_knows_is_lost_at_once() {
    for suspected_first in [false, true] {
        assert!(lost_without_the_dead(suspected_first, None));
        assert!(!lost_without_the_dead(suspected_first, Some(Mutant::WaitForTheDead)));
    }
}

/// Claim 1 is held by the word of n0 and n1. Then n0 forgets it, and so does its home, to which its
/// client shows it: n1 knows it, and n2 can. Says whether the client got more time.
fn home_and_member_forget(mutant: Option<Mutant>) -> bool {
    let mut world = World::new(0, mutant);
    world.claim(3, HELD, 0);
    world.at(5);
    world.forget(0);
    world.forget(3);
    let before = world.told[&HELD];
    world.renew();
    world.claim(5, NEXT, 2);
    assert!(!world.broken && !world.told.contains_key(&NEXT));
    world.told[&HELD] > before
}

#[test]
fn who_outlives_its_home_is_known_by_a_member_that_was_never_asked() {
    assert!(home_and_member_forget(None));
    assert!(!home_and_member_forget(Some(Mutant::LoseWhatIsForgotten)));
}

/// With a spare a grant outlives the crash of any one member, for as long as it likes; without, it
/// ends when a member of its quorum does.
#[test]
fn a_spare_member_is_one_crash_survived() {
    for (spares, member, kept) in [(1, 0, true), (1, 1, true), (1, 2, true), (0, 1, false)] {
        let mut world = World::new(spares, None);
        world.claim(3, HELD, 0);
        world.cut.extend([(3, member), (member, 3)]);
        for seconds in (3..40).step_by(3) {
            world.at(seconds);
            world.renew();
        }
        assert_eq!(world.told[&HELD] > world.nodes.now, kept, "{spares} {member}");
    }
}

/// Who waits keeps its place when a spare goes, and starts again if the rest is no quorum.
#[test]
fn who_waits_goes_on_without_a_spare() {
    for (spares, restarts) in [(1, 0), (0, 1)] {
        let mut world = World::new(spares, None);
        world.claim(3, HELD, 0);
        world.claim(5, NEXT, 0);
        world.step(5, Event::Suspect(NodeId(1)));
        let mut seen = None;
        let (node, seat) = (&world.nodes.nodes[5], world.nodes.seat(NodeId(5)));
        node.facts(&seat, &mut |fact| {
            if fact.name == "restarts" {
                seen = Some(fact.value);
            }
        });
        assert_eq!(seen, Some(restarts), "{spares}");
        world.step(3, Event::Release(HELD));
        assert!(world.told.contains_key(&NEXT), "{spares}");
    }
}

/// Claim 1 is held by the word of n0 and n1. n1 is suspected, and dead; n2 is asked instead.
#[test]
fn what_is_held_moves_to_a_member_that_was_never_asked() {
    let mut world = World::new(0, None);
    world.claim(3, HELD, 0);
    world.claim(5, NEXT, 2);
    world.cut.extend([(3, 1), (1, 3)]);
    world.at(3);
    world.step(3, Event::Suspect(NodeId(1)));
    for seconds in (4..60).step_by(3) {
        world.at(seconds);
        world.renew();
        if seconds == 10 {
            world.end_lease_at(1);
        }
    }
    assert!(world.told[&HELD] > world.nodes.now && !world.told.contains_key(&NEXT));
    assert!(!world.broken);
    world.step(3, Event::Release(HELD));
    assert!(world.told.contains_key(&NEXT));
}

/// Claim 1 is held by the word of n0 and n1, and claim 2 has a view from n2 and waits for one from
/// n0. Then claim 1 moves from n0 to n2, and n2's word does not reach who waits.
fn joins_unseen(mutant: Option<Mutant>) -> bool {
    let mut world = World::new(0, mutant);
    world.claim(3, HELD, 0);
    world.at(5);
    world.step(5, Event::Suspect(NodeId(1)));
    world.claim(5, NEXT, 0);
    world.cut.extend([(2, 5), (3, 0), (0, 3)]);
    world.at(6);
    world.step(3, Event::Suspect(NodeId(0)));
    world.at(9);
    world.renew();
    world.at(11);
    world.end_lease_at(0);
    assert!(world.told.contains_key(&NEXT), "claim 2 is let in");
    world.broken
}

#[test]
fn a_member_that_a_holder_joins_recalls_what_it_said_before() {
    assert!(!joins_unseen(None));
    assert!(joins_unseen(Some(Mutant::JoinAtOnce)));
}
