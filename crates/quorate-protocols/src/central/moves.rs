//! Holders that go from one unit to another: make before break.
//!
//! An arbiter that wants a holder elsewhere gives it a unit more and asks for another back. The
//! holder has both until it shows, by a renewal, that it left the old one; only then somebody else
//! may have it. So the answer to a move is a renewal, and lost messages need no rule of their own:
//! the arbiter repeats what was not answered whenever the holder renews, and fences tell an old
//! move from a new one.

use quorate_core::{ClaimId, Seat, Share, Shares, Unit};

use super::arbiter::{Arbiter, State};
use super::message::Message;
use super::{Central, Post};
use crate::allocator::Ticket;

/// A holder is to leave one unit for another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Move {
    /// The unit it leaves...
    pub from: Share,
    /// ...and the one it has got.
    pub to: Share,
}

/// What a holder has, and the moves it has not answered. Both units of those are among what it has.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Held {
    pub(super) shares: Shares,
    pub(super) moves: Vec<Move>,
}

impl Held {
    pub(super) fn new(shares: Shares) -> Self {
        Held { shares, moves: Vec::new() }
    }

    /// What it was granted, before the moves that it has not answered.
    pub(super) fn before_moves(&self) -> Shares {
        self.moves.iter().fold(self.shares.clone(), |shares, it| shares.without(it.to))
    }

    /// Asks it to move. Nothing, and false, if that is known or old.
    pub(super) fn begin(&mut self, it: Move) -> bool {
        let other = |share: &Share| share.unit == it.to.unit && *share != it.to;
        if self.moves.contains(&it)
            || !self.shares.contains(it.from)
            || self.shares.iter().any(other)
        {
            return false;
        }
        if !self.shares.contains(it.to) {
            self.shares = self.shares.with(it.to);
        }
        self.moves.push(it);
        true
    }

    /// The holder shows what it has: takes in which moves it has answered, and returns what it
    /// left. `None` if nobody who has this could show that. Who has not heard of a move shows less
    /// than it has.
    pub(super) fn shown(&mut self, shown: &Shares) -> Option<Vec<Share>> {
        let (mut moves, mut left) = (Vec::new(), Vec::new());
        let (mut shares, mut expected) = (self.shares.clone(), self.shares.clone());
        for &it in &self.moves {
            match (shown.contains(it.from), shown.contains(it.to)) {
                (true, heard) => {
                    moves.push(it);
                    expected = if heard { expected } else { expected.without(it.to) };
                }
                (false, true) => {
                    left.push(it.from);
                    (shares, expected) = (shares.without(it.from), expected.without(it.from));
                }
                (false, false) => return None,
            }
        }
        (expected == *shown).then(|| {
            (self.shares, self.moves) = (shares, moves);
            left
        })
    }
}

impl Arbiter {
    /// A holder gets another unit, and is asked to leave one.
    pub(super) fn begin_move(
        &mut self,
        seat: &Seat<'_, Central>,
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
