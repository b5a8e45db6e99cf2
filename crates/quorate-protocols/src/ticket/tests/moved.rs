//! A claim is repeated at another node than the first: whoever uses units keeps them.

use std::collections::BTreeSet;

use quorate_core::{
    Claim, ClaimId, Effect, Event, EventOf, Moment, NodeId, Share, Shares, Unit, Units,
};

use crate::by_hand::ByHand;
use crate::ticket::pool::Mutant;
use crate::ticket::{Pool, Ticket};

/// One unit and majorities of nodes 0 to 2; messages arrive in the order of sending.
struct World {
    nodes: ByHand<Ticket>,
    /// Who was let in, and where.
    granted: BTreeSet<(NodeId, ClaimId)>,
}

fn id(serial: u64) -> ClaimId {
    ClaimId { origin: 1, serial }
}

impl World {
    fn new(mutant: Option<Mutant>) -> World {
        let pool = Pool { mutant, ..Pool::new(1, 3) };
        World { nodes: ByHand::new(6, pool, Moment(1)).0, granted: BTreeSet::new() }
    }

    /// Something happens to a node, and all that comes of it.
    fn step(&mut self, node: u32, event: EventOf<Ticket>) {
        let mut next = Some((NodeId(node), event));
        while let Some((me, event)) = next {
            for effect in self.nodes.step(me, event) {
                if let Effect::Grant { claim, .. } = effect {
                    self.granted.insert((me, claim));
                }
            }
            next = self.nodes.next();
        }
    }

    fn claim(&mut self, node: u32, serial: u64) {
        self.step(node, Event::Claim(Claim::any(id(serial), Units::ONE)));
    }

    fn is_using(&self, node: u32, serial: u64) -> bool {
        self.granted.contains(&(NodeId(node), id(serial)))
    }
}

/// Claim 1 is held through n3 and asked for through n4; claim 2 waits. Says whether it is let in.
fn repeated(mutant: Option<Mutant>) -> bool {
    let mut world = World::new(mutant);
    world.claim(3, 1);
    assert!(world.is_using(3, 1));
    world.claim(5, 2);
    assert!(!world.is_using(5, 2));
    world.claim(4, 1);
    world.is_using(5, 2) || world.is_using(4, 1)
}

#[test]
fn a_claim_repeated_at_another_node_takes_nothing_from_its_holder() {
    assert!(!repeated(None));
    assert!(repeated(Some(Mutant::OneEntryPerClaim)));
}

/// Claim 1 is held through n3, shown through n4 and given back there, though n3 relies on it.
fn given_back(mutant: Option<Mutant>) -> bool {
    let mut world = World::new(mutant);
    world.claim(3, 1);
    let fence = world.nodes.nodes[3].requester.claims[&id(1)].ticket;
    let shares = Shares::new(&[Share { unit: Unit(0), fence }]);
    world.step(4, Event::Renew { claim: id(1), shares });
    world.step(4, Event::Release(id(1)));
    world.claim(5, 2);
    world.is_using(5, 2)
}

#[test]
fn what_is_shown_through_another_node_is_not_given_back_by_it() {
    assert!(!given_back(None));
    assert!(given_back(Some(Mutant::HandOverWhole)));
}
