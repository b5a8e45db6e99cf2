//! Who is next: the allocator decides, and here it is done.
//!
//! A claim is stamped when it first arrives and keeps that stamp while the arbiter lives, however
//! often it is asked for again. Stamps that requesters gave would let whoever has heard least jump
//! the queue: their clocks stand still between grants. Backfill is bounded (conventions 2.11): a
//! younger claim passes blocked older ones only if it fits now, and the oldest of them, which was
//! passed most often, has been passed fewer times than the pool allows.

use quorate_core::{Fence, Holding, Seat, Share, Shares, Unit};

use super::arbiter::Arbiter;
use super::booked::State;
use super::pool::broken;
use super::{Alarm, Central, Post};
use crate::allocator::{Deed, Ticket};

impl Arbiter {
    /// Grants whatever may be granted now.
    pub(super) fn schedule(&mut self, seat: &Seat<'_, Central>, post: &mut Post<'_>) {
        if self.grace {
            return;
        }
        self.allocator.pass(&mut self.deeds);
        self.carry_out(seat, post);
    }

    /// Does what the allocator decided.
    pub(super) fn carry_out(&mut self, seat: &Seat<'_, Central>, post: &mut Post<'_>) {
        #[cfg(test)]
        while broken!(seat, GrantWithoutRoom) && !self.grace && self.allocator.waiting() > 0 {
            self.allocator.pretend_free();
            self.allocator.pass(&mut self.deeds);
        }
        let mut deeds = std::mem::take(&mut self.deeds);
        for deed in deeds.drain(..) {
            match deed {
                Deed::Grant { ticket, units } => self.grant(seat, ticket, &units, post),
                Deed::Move { ticket, add, drop } => {
                    self.begin_move(seat, ticket, (add, drop), post);
                }
            }
        }
        self.deeds = deeds;
    }

    fn grant(
        &mut self,
        seat: &Seat<'_, Central>,
        ticket: Ticket,
        units: &[Unit],
        post: &mut Post<'_>,
    ) {
        let claim = ticket.claim;
        let booked = self.entries.get_mut(&claim).expect("only booked claims are granted");
        if !broken!(seat, ReuseFence) || self.fence == Fence::floor(seat.boot) {
            self.fence = self.fence.next();
        }
        let fence = self.fence;
        let shares = match *units {
            [unit] => Shares::new(&[Share { unit, fence }]),
            _ => Shares::new(&units.iter().map(|&unit| Share { unit, fence }).collect::<Vec<_>>()),
        };
        let waited = seat.now.since(booked.arrived);
        assert_eq!(booked.state, State::Waiting, "only waiting claims are granted");
        booked.state = State::Granted { held: Holding::new(shares), waited, adopted: false };
        if !self.allocator.is_movable(ticket) {
            booked.wanted.lines = None;
        }
        let (node, answer) = booked.answer(claim);
        if broken!(seat, TellBeforePersist) {
            post.send(node, answer.clone());
        }
        self.write_down(seat, post.out);
        post.out.arm(Alarm::LeaseEnd(claim), self.keeps(seat, claim));
        if !broken!(seat, TellBeforePersist) {
            post.send(node, answer);
        }
    }
}
