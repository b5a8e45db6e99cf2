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
//!
//! [`Goods::ever`]: crate::goods::Goods::ever

use quorate_core::Moment;

use super::{Desk, Moving, Seat, judge};
use crate::central::pool::broken;

impl Moving {
    /// This node has applied another definition of the pool.
    pub(super) fn amend(&mut self, seat: &Seat<'_>, desk: &mut Desk<'_>) {
        if let Some(reign) = &mut self.reign {
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
    }
}
