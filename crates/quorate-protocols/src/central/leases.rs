//! Leases that change while the pool runs (charter spec 3).
//!
//! Who promises something says for how long, and homes count by that, whatever lease they have
//! heard of. Who waits for a promise to be over waits by the longest lease that it may have been
//! made with: one that was made here, by those of which it is known; one that somebody else made,
//! by the longest that may be in force.

use std::time::Duration;

use quorate_core::ClaimId;

use super::Seat;
use super::arbiter::Arbiter;
use super::booked::State;
use super::message::Message;
use super::pool::broken;

impl Arbiter {
    /// How long what a claim has is kept for it without a renewal, from a promise that is made now.
    pub(crate) fn keeps(&self, seat: &Seat<'_>, claim: ClaimId) -> Duration {
        let lease = seat.pool.goods.lease.length();
        match self.promised.get(&claim) {
            Some(earlier) if !broken!(seat, KeepByNewLease) => lease.max(*earlier),
            _ => lease,
        }
    }

    /// By which lease a word of the seat promises something. A grant may be told later than it was
    /// made, and then counts by the lease of that time if it is the shorter one.
    pub(crate) fn promises(&self, seat: &Seat<'_>, word: &Message) -> Option<Duration> {
        let lease = seat.pool.goods.lease.length();
        match word {
            Message::Grant { claim, .. } => match self.promised.get(claim) {
                Some(earlier) if !broken!(seat, TellByNewLease) => Some(lease.min(*earlier)),
                _ => Some(lease),
            },
            Message::Renewed { .. } => Some(lease),
            _ => None,
        }
    }

    /// A claim was promised something anew, by the pool's lease.
    pub(crate) fn is_renewed(&mut self, seat: &Seat<'_>, claim: ClaimId) {
        if self.promised.get(&claim).is_some_and(|it| *it <= seat.pool.goods.lease.length()) {
            self.promised.remove(&claim);
        }
    }

    /// The pool has another lease from now on than it had: whoever has something was promised it by
    /// that, or by an earlier one of which that is known.
    pub(crate) fn had_lease(&mut self, before: Duration) {
        for (&claim, booked) in &self.entries {
            if matches!(booked.state, State::Granted { .. }) {
                self.promised.entry(claim).or_insert(before);
            }
        }
    }

    /// No promise is in force any more that lasts longer than this.
    pub(crate) fn settle(&mut self, longest: Duration) {
        self.longest = longest;
        self.promised.retain(|_, earlier| *earlier <= longest);
    }
}
