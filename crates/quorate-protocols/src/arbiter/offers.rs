//! Where units are locks: claims that wait for taken units hear of free ones (spec 7.11).
//!
//! A requester chose units when it asked, without knowing who has what. Units that nobody has or
//! waits for are offered to those that wait for others, oldest first, as many as there are; whoever
//! can use them asks for them instead ([`super::picking`]). Nobody is told the same twice.

use std::collections::BTreeSet;
use std::sync::Arc;

use quorate_core::{Seat, Unit};

use super::grantor::{Booked, Grantor};
use super::message::Message;
use super::pool::Mode;
use super::{Arbiter, Post};
use crate::attempt::{Asker, Bid};

impl Grantor {
    pub(super) fn offer_free(&mut self, seat: &Seat<'_, Arbiter>, post: &mut Post<'_>) {
        let waiting = self.queue.iter().map(|(_, bid)| &self.entries[bid]);
        let wanted: BTreeSet<Unit> =
            waiting.flat_map(names).chain(self.locks.keys().copied()).collect();
        let mut free = seat.pool.units.saturating_sub(wanted.len() as u32);
        if free == 0 {
            return;
        }
        let mut ahead: BTreeSet<Unit> = self.locks.keys().copied().collect();
        let waiting: Vec<Bid> = self.queue.iter().map(|&(_, bid)| bid).collect();
        for bid in waiting {
            let booked = self.entries.get_mut(&bid).expect("whoever waits is booked");
            if booked.units() > free {
                break;
            }
            free -= booked.units();
            let before = |told: &Arc<[Unit]>| told.iter().all(|unit| ahead.contains(unit));
            if !booked.offered.as_ref().is_some_and(before) {
                let taken: Arc<[Unit]> = ahead.iter().copied().collect();
                booked.offered = Some(Arc::clone(&taken));
                let (Asker { node, attempt }, clock) = (booked.asker, self.clock.0);
                post.send(node, Message::Queued { claim: bid.claim, attempt, taken, clock });
            }
            ahead.extend(names(&self.entries[&bid]));
        }
    }

    /// Units that a waiting claim would wait for.
    pub(super) fn taken_from(&self, seat: &Seat<'_, Arbiter>, bid: Bid) -> Arc<[Unit]> {
        if seat.pool.mode != Mode::Named {
            return Default::default();
        }
        let key = (self.entries[&bid].stamp, bid);
        let older = self.queue.range(..key).map(|(_, older)| &self.entries[older]);
        let units: BTreeSet<Unit> =
            self.locks.keys().copied().chain(older.flat_map(names)).collect();
        units.into_iter().collect()
    }
}

fn names(booked: &Booked) -> impl Iterator<Item = Unit> + '_ {
    booked.wish.names.iter().flat_map(|names| names.iter().copied())
}
