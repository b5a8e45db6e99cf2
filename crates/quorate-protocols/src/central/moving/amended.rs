//! A pool that changes while it runs (charter spec 3).
//!
//! The definition is in the charter, and every node applies it at its own moment. What a seat may
//! grant it grants by the one that it has applied, under a licence asked for since: a majority has
//! then confirmed that its term stood when that definition was in force. So the seat of a later
//! term, which has applied whatever came before it, knows every definition by which anybody was
//! ever granted anything, and above all every unit that the pool ever had ([`Goods::ever`]).
//!
//! * *Units that come* are granted as soon as that licence is there, which is a round of the
//!   charter.
//! * *Units that go* are granted no more, and whoever has one keeps it: it stays in the books, is
//!   renewed, shown and handed over like any other. When it comes back it is gone. Fences are
//!   counted by the seat and not by the unit, so that one which is there again later has none that
//!   it had before.
//! * *Claims that can never be granted now* are refused at once, by their homes and by the seat.
//! * *What was asked for under another definition* than the seat's, and is impossible by the
//!   seat's, is left alone: one of the two has not heard of the last change yet, and the home asks
//!   again.
//! * *A longer or shorter lease* counts for whatever is promised from then on, and is said with it:
//!   a home may have heard of another. Whoever waits for promises to be over that somebody else
//!   made, or that were made earlier, waits by the longest lease that they may have been made with
//!   ([`Goods::lease_ever`]): a seat in grace, one whose holders were handed over or taken over, a
//!   home that does not know what its clients have. A while after a change that is the lease again:
//!   when nobody decides by an earlier definition any more, and what was promised by one is over.
//!   Both the seat's node finds out by its own clock, so that knowledge ends with its life.
//!
//! [`Goods::lease_ever`]: crate::goods::Goods::lease_ever
//! [`Goods::ever`]: crate::goods::Goods::ever

use std::time::Duration;

use quorate_core::{Moment, Unit};

use super::{Alarm, Desk, Moving, Seat, judge};
use crate::central::orders::holds;
use crate::central::pool::broken;

/// What this life of a node knows of the leases of its pool.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Leases {
    /// By the definition that it has applied.
    now: Duration,
    /// Of what may be in force that was promised before now.
    pub(super) longest: Duration,
    /// Of what was ever promised.
    ever: Duration,
}

impl Leases {
    pub(super) fn of(seat: &Seat<'_>) -> Leases {
        let goods = &seat.pool.central.goods;
        let (now, ever) = (goods.lease.length(), goods.longest());
        Leases { now, longest: ever, ever }
    }
}

impl Moving {
    /// Shows the units that are granted to nobody, if this node decides: those that are drained and
    /// those that the pool has no more; and whether somebody still has them.
    pub fn drained(&self, show: &mut dyn FnMut(Unit, bool)) {
        let Some(reign) = &self.reign else { return };
        for unit in reign.arbiter.allocator.drained() {
            show(unit, reign.arbiter.entries.values().any(|booked| holds(booked, unit)));
        }
    }

    /// This node has applied another definition of the pool.
    pub(super) fn amend(&mut self, seat: &Seat<'_>, desk: &mut Desk<'_>) {
        let before = std::mem::replace(&mut self.leases, Leases::of(seat));
        let grown = self.leases.ever > before.ever;
        if grown && !self.is_first && !broken!(judge(seat, 0), CompleteByOldLease) {
            self.is_complete = false;
            desk.out.arm(Alarm::Complete, self.leases.ever);
        }
        if let Some(reign) = &mut self.reign {
            if self.leases.now != before.now {
                reign.arbiter.had_lease(before.now);
            }
            reign.arbiter.longest = self.leases.longest;
            let term = reign.tenure.term;
            if !broken!(judge(seat, term), DecideAmendedAtOnce) {
                (reign.licence, reign.amended) = (Moment::ZERO, seat.now);
            }
            desk.out.ask_licence(term, seat.now);
        }
        self.as_seat(seat, desk, |reign, at, post| {
            reign.arbiter.grace = !reign.may_grant(at);
            reign.arbiter.amend(at, post);
        });
        self.as_home(seat, desk, |home, at, post| home.amend(at, post));
        self.wait_out(seat, desk);
    }

    /// Waits until nothing is in force any more that was promised by an earlier definition.
    pub(super) fn wait_out(&mut self, seat: &Seat<'_>, desk: &mut Desk<'_>) {
        if seat.pool.central.goods.lease_ever.is_none() || self.applied.is_none() {
            return;
        }
        desk.out.disarm(Alarm::Settled);
        if self.leases.longest > self.leases.now {
            desk.out.arm(Alarm::Amended, seat.pool.lull());
            if broken!(judge(seat, 0), SettleAtOnce) {
                self.on_ring_settled();
            }
        } else {
            desk.out.disarm(Alarm::Amended);
        }
    }

    pub(super) fn on_ring_settled(&mut self) {
        self.leases.longest = self.leases.now;
        if let Some(reign) = &mut self.reign {
            reign.arbiter.settle(self.leases.longest);
        }
    }
}
