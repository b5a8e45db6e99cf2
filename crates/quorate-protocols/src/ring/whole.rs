//! A pool of seats as one ring: bringing it into any state, and seeing that it is right.

use std::collections::VecDeque;

use quorate_core::{Corruptible, Event, EventOf, NodeId, NodeSet, Outbox, Seat};

use super::legitimate::Stabilizing;
use super::message::Message;
use super::place::Seated;
use super::pool::{Pool, Variant};
use super::seat::ROOT;
use super::tether::{Epoch, Parcel};
use super::tokens::Named;
use super::train::Train;
use super::{Alarm, Mix, Ring};
use crate::reference::ring::Core;
use crate::reference::ring::Track;

/// Most garbage on a link, as in ring spec 5.
const GARBAGE_MAX: u64 = 4;

impl Corruptible for Ring {
    fn corrupt(
        &mut self,
        seat: &Seat<'_, Self>,
        draw: &mut dyn FnMut(u64) -> u64,
        out: &mut Outbox<Self>,
    ) {
        self.scramble(seat, draw, out);
    }

    fn garbage(
        pool: &Pool,
        draw: &mut dyn FnMut(u64) -> u64,
        show: &mut dyn FnMut(NodeId, NodeId, Parcel),
    ) {
        let mix = Mix::ALL[draw(Mix::ALL.len() as u64) as usize];
        for (node, visit) in pool.tour() {
            let right = pool.right_of(node, visit, &NodeSet::new());
            let count = if right == node { 0 } else { draw(GARBAGE_MAX + 1) };
            for _ in 0..count {
                let (message, change) = match pool.variant {
                    Variant::Core => (Core::garbage(pool.terms(), mix, draw), 0),
                    Variant::Train => (Train::garbage(pool.terms(), mix, draw), draw(8) as u32),
                };
                let epoch = Epoch { config: pool.epoch, boot: 0, change };
                let back = (draw(2) == 0).then(|| draw(pool.terms().seqs));
                show(node, right, Parcel { epoch, back, skipped: NodeSet::new(), message });
            }
        }
    }

    fn is_legitimate(
        pool: &Pool,
        participants: &[&Self],
        under_way: &[(NodeId, NodeId, &Parcel)],
    ) -> bool {
        let one_ring = participants.iter().all(|ring| {
            let same = ring.tether.epoch == participants[ROOT.index()].tether.epoch;
            // A blind node may not report all that its clients use; a node without a licence keeps
            // its tokens.
            let settled = !ring.blind && ring.watch.as_ref().is_none_or(|watch| !watch.settling);
            let licensed = ring.places.iter().all(|place| !place.is_barred());
            same && ring.tether.skipped.is_empty() && settled && licensed
        });
        match pool.variant {
            _ if !one_ring => false,
            Variant::Core => {
                let track = track(pool, participants, under_way, |seated| match seated {
                    Seated::Core(machine) => Some(machine.clone()),
                    Seated::Train(_) => None,
                });
                track.is_some_and(|track| Core::is_legitimate(&track))
            }
            Variant::Train => {
                let track = track(pool, participants, under_way, |seated| match seated {
                    Seated::Train(machine) => Some(machine.clone()),
                    Seated::Core(_) => None,
                });
                track.is_some_and(|track| Train::is_legitimate(&track))
            }
        }
    }

    fn is_disturbed_by(&self, seat: &Seat<'_, Self>, event: &EventOf<Self>) -> bool {
        let fences_itself = self.tether.until.is_some_and(|until| until <= seat.now);
        fences_itself
            || match event {
                // Patience that ends too early brings a second train, which does no harm.
                Event::Ring(alarm) => matches!(alarm, Alarm::Timeout | Alarm::Fence),
                Event::Suspect(_) | Event::Trust(_) => self.watch.is_some(),
                Event::Claim(_)
                | Event::Release(_)
                | Event::Cancel(_)
                | Event::Withdraw(_)
                | Event::Renew { .. }
                | Event::Hear { .. }
                | Event::Charter(_) => false,
            }
    }
}

/// The ring that the seats make up together; `None` if something on its way is of a later epoch.
fn track<M: Stabilizing<Tokens = Named>>(
    pool: &Pool,
    participants: &[&Ring],
    under_way: &[(NodeId, NodeId, &Parcel)],
    machine: impl Fn(&Seated) -> Option<M>,
) -> Option<Track<M>> {
    let epoch = participants[ROOT.index()].tether.epoch?;
    if under_way.iter().any(|(_, _, parcel)| parcel.epoch > epoch) {
        return None;
    }
    let mut track = Track { terms: *pool.terms(), stations: Vec::new(), links: Vec::new() };
    for (node, visit) in pool.tour() {
        let ring = participants[node.index()];
        for place in ring.places.iter().filter(|place| place.visit == visit) {
            track.stations.push(machine(&place.seated)?);
            track.links.push(VecDeque::new());
        }
        let right = pool.right_of(node, visit, &NodeSet::new());
        let own = ring.own.iter().map(|parcel| (node, node, parcel));
        let sent = under_way.iter().copied().chain(own);
        let messages = sent
            .filter(|(from, to, parcel)| (*from, *to) == (node, right) && parcel.epoch == epoch)
            .map(|(_, _, parcel)| -> Message<Named> { parcel.message.clone() });
        track.links.last_mut()?.extend(messages);
    }
    Some(track)
}
