//! Claims of nodes that seem dead are out of their turn until a node asks for them again.
//!
//! Granted, each would cost a lease, one after the other, and nobody would have it. Suspicion may
//! be wrong, so such a claim keeps its stamp, and is back with it as soon as it is asked for: a
//! home that lives repeats its requests. Only the order of grants depends on this. That its node is
//! trusted again is not enough: it may have been restarted, and not know of its clients.

use quorate_core::{ClaimId, NodeId, Seat, Stamp};

use super::arbiter::Arbiter;
use super::booked::State;
use super::pool::broken;
use super::{Alarm, Central, Post};
use crate::attempt::Asker;

impl Arbiter {
    /// A node seems dead.
    pub(super) fn on_suspect(
        &mut self,
        seat: &Seat<'_, Central>,
        node: NodeId,
        post: &mut Post<'_>,
    ) {
        if broken!(seat, ServeTheDead) {
            return;
        }
        let mut gone = Vec::new();
        for (&claim, booked) in &mut self.entries {
            if booked.asker.node == node && booked.state == State::Waiting {
                booked.state = State::Absent;
                gone.push(booked.ticket(claim));
            }
        }
        if gone.is_empty() {
            return;
        }
        for ticket in gone {
            let queued = self.allocator.cancel(ticket);
            assert!(queued, "whoever waits is in the queue");
        }
        post.out.arm(Alarm::Absent(node), seat.pool.goods.kept_absent());
        self.schedule(seat, post);
    }

    /// A claim is asked for. If it was out of its turn, it is in nobody's books any more, and this
    /// is the stamp with which it comes back.
    pub(super) fn bring_back(
        &mut self,
        seat: &Seat<'_, Central>,
        claim: ClaimId,
        asker: Asker,
    ) -> Option<Stamp> {
        let booked = self.entries.get(&claim)?;
        let late = asker.is_before(booked.asker);
        if late || booked.state != State::Absent || broken!(seat, StayAway) {
            return None;
        }
        self.entries.remove(&claim).map(|booked| booked.stamp)
    }

    /// Claims for which a node has not asked for so long are forgotten. Should it ask after all,
    /// they are new.
    pub(super) fn on_ring_absent(&mut self, node: NodeId) {
        self.entries.retain(|_, booked| booked.asker.node != node || booked.state != State::Absent);
    }
}
