//! Holders that go from one unit to another: make before break.
//!
//! An arbiter that wants a holder elsewhere gives it a unit more and asks for another back. The
//! holder has both until it shows, by a renewal, that it left the old one; only then somebody else
//! may have it. So the answer to a move is a renewal, and lost messages need no rule of their own:
//! the arbiter repeats what was not answered whenever the holder renews, and fences tell an old
//! move from a new one.

use quorate_core::{ClaimId, Move, Share, Unit};

use super::arbiter::Arbiter;
use super::booked::State;
use super::message::Message;
use super::{Post, Seat};
use crate::allocator::Ticket;

impl Arbiter {
    /// A holder gets another unit, and is asked to leave one.
    pub(super) fn begin_move(
        &mut self,
        seat: &Seat<'_>,
        ticket: Ticket,
        (add, drop): (Unit, Unit),
        post: &mut Post<'_>,
    ) {
        self.fence = self.fence.next();
        let to = Share { unit: add, fence: self.fence };
        let booked = self.entries.get_mut(&ticket.claim).expect("only booked claims are moved");
        let State::Granted { held, .. } = &mut booked.state else {
            unreachable!("only holders are moved");
        };
        let from = held.shares.iter().find(|share| share.unit == drop);
        let it = Move { from: *from.expect("it has what it is to leave"), to };
        held.begin(it);
        self.write_down(seat, post.out);
        self.tell_moves(ticket.claim, post);
    }

    /// Tells a holder what it has not answered.
    pub(super) fn tell_moves(&self, claim: ClaimId, post: &mut Post<'_>) {
        let Some(booked) = self.entries.get(&claim) else { return };
        let State::Granted { held, .. } = &booked.state else { return };
        let (node, attempt) = (booked.asker.node, booked.asker.attempt);
        for &it in &held.moves {
            post.send(node, Message::Move { claim, attempt, it });
        }
    }

    /// A holder has left units, and others may have them.
    pub(super) fn end_moves(&mut self, claim: ClaimId, left: &[Share]) {
        let ticket = self.entries[&claim].ticket(claim);
        for share in left {
            // One that was asked in an earlier life is not known to the allocator as a mover.
            if !self.allocator.moved(ticket, share.unit) {
                self.allocator.release(ticket, [share.unit]);
            }
        }
    }
}
