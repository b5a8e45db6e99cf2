//! Units that are taken out of service, and brought back.

use quorate_core::{Order, Seat, Unit};

use super::arbiter::{Arbiter, Booked, State};
use super::message::Message;
use super::{Central, Post};

impl Arbiter {
    /// Does what an operator orders; the unit is one of the pool's.
    pub(super) fn obey(&mut self, seat: &Seat<'_, Central>, order: Order, post: &mut Post<'_>) {
        match order {
            Order::Drain(unit) => {
                for ticket in self.allocator.drain(unit) {
                    // Else it would block others for ever (labels spec, trap 7 of 6.6).
                    let gone = self.entries.remove(&ticket.claim).expect("whoever waits is booked");
                    let (claim, attempt) = (ticket.claim, gone.asker.attempt);
                    post.send(gone.asker.node, Message::Refused { claim, attempt });
                }
            }
            Order::Restore(unit) => {
                let in_use = self.entries.values().any(|booked| holds(booked, unit));
                self.allocator.restore(unit, in_use);
            }
        }
        self.write_down(seat, post.out);
        self.schedule(seat, post);
    }
}

pub(super) fn holds(booked: &Booked, unit: Unit) -> bool {
    match &booked.state {
        State::Granted { held, .. } => held.shares.iter().any(|share| share.unit == unit),
        State::Waiting => false,
    }
}
