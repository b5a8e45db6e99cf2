//! A small world of arbiters whose messages are delivered by hand, judged by the laws after every
//! step.

use quorate_core::{Claim, ClaimId, Event, Moment, NodeId, Protocol, Units};
use quorate_laws::End;

use crate::arbiter::{Arbiter, Message, Pool};
use crate::by_hand::{Judged, Parcel};

pub(super) type Cluster = Judged<Arbiter>;

pub(super) fn id(serial: u64) -> ClaimId {
    ClaimId { origin: 1, serial }
}

pub(super) fn cluster(nodes: usize, pool: Pool) -> Cluster {
    Judged::new(nodes, pool, Moment(1), true)
}

/// Whether a message is of this kind, and on that link.
pub(super) fn is(kind: &str, from: u32, to: u32) -> impl Fn(&Parcel<Message>) -> bool {
    move |(sender, receiver, message)| {
        (sender.0, receiver.0, Arbiter::KINDS[Arbiter::kind(message)]) == (from, to, kind)
    }
}

impl Cluster {
    pub(super) fn claim(&mut self, node: u32, serial: u64, h: u32, draw: u64) {
        let units = Units::new(h, self.pool.units).unwrap();
        self.claim_as(NodeId(node), Claim { draw, ..Claim::any(id(serial), units) });
    }

    pub(super) fn release(&mut self, node: u32, serial: u64) {
        self.end(self.alias(NodeId(node), id(serial)), End::Released);
        self.step(NodeId(node), Event::Release(id(serial)));
    }

    pub(super) fn cancel(&mut self, node: u32, serial: u64) {
        self.end(self.alias(NodeId(node), id(serial)), End::Released);
        self.step(NodeId(node), Event::Cancel(id(serial)));
    }

    pub(super) fn renew(&mut self, node: u32, serial: u64) {
        let shares = self.using[&self.alias(NodeId(node), id(serial))].shares.clone();
        self.step(NodeId(node), Event::Renew { claim: id(serial), shares });
    }

    /// The first message of this kind on that link arrives.
    pub(super) fn deliver(&mut self, from: u32, to: u32, kind: &str) {
        let place = self.find(from, to, kind);
        let parcel = self.take(place);
        self.arrive(parcel);
    }

    /// It arrives, and a copy of it stays on its way.
    pub(super) fn deliver_and_keep(&mut self, from: u32, to: u32, kind: &str) {
        let parcel = self.wire[self.find(from, to, kind)].clone();
        self.arrive(parcel);
    }

    pub(super) fn find(&self, from: u32, to: u32, kind: &str) -> usize {
        let place = self.wire.iter().position(is(kind, from, to));
        place.unwrap_or_else(|| panic!("no {kind} from {from} to {to}:\n{}", self.trace))
    }

    pub(super) fn is_using(&self, serial: u64) -> bool {
        self.using.contains_key(&id(serial))
    }

    pub(super) fn units_in_use(&self) -> usize {
        self.using.values().map(|used| used.shares.len()).sum()
    }
}
