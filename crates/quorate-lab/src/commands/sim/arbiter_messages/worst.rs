//! The most messages that one arbiter can be made to exchange, played by hand.
//!
//! k claims for one unit each have the arbiter's permission and wait for another one. Then come b
//! claims for the whole pool, each older than those k: every time all k give way (`inquire`,
//! `yield`) and get their permission back afterwards (`grant`). Together with `request`, `grant`
//! and `release` of every claim that makes 3(k+b) + 3kb (arbiter spec 7.9).
//!
//! With one unit there is more: its holders have fences, all these claims were made before anybody
//! had heard of another's, so everybody but the first must raise its own and tell the arbiter
//! (`retoken`, `retokened`). That is 2b for the b+1 claims.

use std::time::Duration;

use quorate_core::{
    Claim, ClaimId, Effect, Event, EventOf, Lease, Moment, NodeId, Outbox, Protocol, Seat, Start,
    Units,
};
use quorate_protocols::arbiter::{Arbiter, Message, Pool};
use quorate_protocols::quorums::Quorums;

/// What came of one play.
pub(crate) struct Worst {
    /// k: units, and claims for one each.
    pub(crate) units: u32,
    /// b: claims for all units.
    pub(crate) whole: u32,
    /// Messages to and from the arbiter.
    pub(crate) messages: usize,
}

impl Worst {
    pub(crate) fn bound(&self) -> usize {
        let (k, b) = (self.units as usize, self.whole as usize);
        3 * (k + b) + 3 * k * b + self.fences()
    }

    /// Those of them that tell fences.
    pub(crate) fn fences(&self) -> usize {
        if self.units == 1 { 2 * self.whole as usize } else { 0 }
    }
}

const ARBITER: NodeId = NodeId(0);
/// The arbiter that keeps the small claims waiting.
const OTHER: NodeId = NodeId(1);

struct Wire {
    from: NodeId,
    to: NodeId,
    message: Message,
}

struct World {
    pool: Pool,
    nodes: Vec<Arbiter>,
    wires: Vec<Wire>,
    using: Vec<ClaimId>,
    /// Messages that the arbiter has sent and heard.
    messages: usize,
}

/// Plays it. Whole-pool claims are made by nodes with smaller numbers, which makes them older.
pub(crate) fn play(units: u32, whole: u32) -> Worst {
    let mut pool = Pool::new(units, 2);
    pool.quorums = Quorums::Threshold { members: 2, size: 2 };
    pool.lease = Lease::new(Duration::MAX, 0);
    let mut world = World::new(pool, 2 + whole + units);
    let older = |place: u32| NodeId(2 + place);
    let small = |place: u32| NodeId(2 + whole + place);
    // All claim before anybody has heard of another.
    for place in 0..whole {
        world.claim(older(place), units);
    }
    for place in 0..units {
        world.claim(small(place), 1);
    }
    let is_small = |node: NodeId| node.0 >= 2 + whole;
    // The small ones get this arbiter's permission, and nothing from the other.
    world.deliver(|wire| is_small(wire.from) && wire.to == ARBITER || is_small(wire.to));
    for place in 0..whole {
        let node = older(place);
        let blocked = |wire: &Wire| is_small(wire.from) && wire.to == OTHER;
        let later = |wire: &Wire| {
            !is_small(wire.from) && !is_small(wire.to) && wire.from != node && wire.to != node
        };
        world.deliver(|wire| !blocked(wire) && !later(wire));
        world.release(node, place);
        world.deliver(|wire| !blocked(wire) && !later(wire));
    }
    world.deliver(|_| true);
    for place in 0..units {
        world.release(small(place), whole + place);
    }
    world.deliver(|_| true);
    Worst { units, whole, messages: world.messages }
}

impl World {
    fn new(pool: Pool, nodes: u32) -> World {
        let mut world =
            World { pool, nodes: Vec::new(), wires: Vec::new(), using: Vec::new(), messages: 0 };
        for me in (0..nodes).map(NodeId) {
            let mut out = Outbox::new();
            let seat = Seat { me, boot: 0, now: Moment(1), pool: &world.pool };
            world.nodes.push(Arbiter::boot(&seat, Start::First, &mut out));
        }
        world
    }

    /// The serial numbers of claims are the order in which they are made.
    fn claim(&mut self, node: NodeId, units: u32) {
        let id = ClaimId { origin: 0, serial: u64::from(node.0 - 2) };
        let units = Units::new(units, self.pool.units).expect("from one unit to all");
        self.step(node, Event::Claim(Claim::any(id, units)));
    }

    fn release(&mut self, node: NodeId, serial: u32) {
        let id = ClaimId { origin: 0, serial: u64::from(serial) };
        assert!(self.using.contains(&id), "every claim is served in its turn");
        self.step(node, Event::Release(id));
    }

    /// Delivers what may arrive, in the order of sending, and what comes of it, until nothing is
    /// left.
    fn deliver(&mut self, may: impl Fn(&Wire) -> bool) {
        while let Some(place) = self.wires.iter().position(&may) {
            let Wire { from, to, message } = self.wires.remove(place);
            self.messages += usize::from(from == ARBITER || to == ARBITER);
            self.step(to, Event::Hear { from, message });
        }
    }

    fn step(&mut self, me: NodeId, event: EventOf<Arbiter>) {
        let mut out = Outbox::new();
        let seat = Seat { me, boot: 0, now: Moment(1), pool: &self.pool };
        self.nodes[me.index()].step(&seat, event, &mut out);
        for effect in out.drain() {
            match effect {
                Effect::Tell { to, message } => self.wires.push(Wire { from: me, to, message }),
                Effect::Grant { claim, .. } => self.using.push(claim),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_case_is_reached_and_not_exceeded() {
        for (units, whole) in [(1, 1), (1, 3), (2, 1), (2, 2), (2, 3), (3, 2), (5, 4)] {
            let worst = play(units, whole);
            assert_eq!(worst.messages, worst.bound(), "k={units} b={whole}");
        }
    }
}
