//! Entries in an arbiter's books that nobody waits for or uses any more (arbiter spec C10):
//! requests of a home that was restarted, and permissions whose release was lost.
//!
//! Both end with their leases. Sooner, if somebody waits for them: a restarted home's requests are
//! over as soon as its new life is heard of, and when the oldest claim that waits asks again, all
//! homes with permissions are asked which of their claims are not over. A permission that is
//! missing from a home's list is over, if the home had already asked for it when it wrote the list.

use std::collections::BTreeSet;

use quorate_core::{ClaimId, NodeId};

use super::grantor::Grantor;
use super::message::Message;
use super::pool::broken;
use super::{Post, Seat};
use crate::attempt::{Asker, Bid};

impl Grantor {
    /// A home was restarted: nobody waits for what its earlier lives had in the queue. What they
    /// were given may be in use (arbiter spec C3).
    pub(super) fn hear_boot(&mut self, seat: &Seat<'_>, asker: Asker, post: &mut Post<'_>) {
        let (node, boot) = (asker.node, asker.attempt.boot);
        if boot <= self.boots.get(&node).copied().unwrap_or_default() {
            return;
        }
        self.boots.insert(node, boot);
        let is_over = |bid: &&Bid| {
            let of_earlier_life = bid.node == node && bid.boot < boot;
            let unused = self.entries[*bid].is_waiting() || broken!(seat, C10DropGranted);
            of_earlier_life && unused
        };
        let over: Vec<Bid> = self.entries.keys().filter(is_over).copied().collect();
        self.end_all(seat, &over, post);
    }

    /// Asks those that are in the way of the oldest that waits what they still have.
    pub(super) fn call_roll(&self, asking: Bid, post: &mut Post<'_>) {
        if self.queue.first().is_none_or(|&(_, head)| head != asking) {
            return;
        }
        let homes: BTreeSet<NodeId> = self.granted.iter().map(|(_, bid)| bid.node).collect();
        for home in homes {
            post.send(home, Message::Roll { clock: self.clock.0 });
        }
    }

    /// A home lists what it still has here, of all that it had asked for.
    pub(super) fn on_alive(
        &mut self,
        seat: &Seat<'_>,
        asker: Asker,
        listed: &[ClaimId],
        post: &mut Post<'_>,
    ) {
        let is_over = |bid: &&Bid| {
            let booked = &self.entries[*bid];
            let asked = booked.asker.attempt <= asker.attempt || broken!(seat, C10DropUnlisted);
            let same_life = (bid.node, bid.boot) == (asker.node, asker.attempt.boot);
            same_life && asked && !booked.shared && !listed.contains(&bid.claim)
        };
        let over: Vec<Bid> = self.entries.keys().filter(is_over).copied().collect();
        self.end_all(seat, &over, post);
    }

    fn end_all(&mut self, seat: &Seat<'_>, over: &[Bid], post: &mut Post<'_>) {
        for &bid in over {
            let used = !self.entries[&bid].is_waiting();
            self.end(seat, bid, used, post.out);
        }
        if !over.is_empty() {
            self.schedule(seat, post, None);
        }
    }
}
