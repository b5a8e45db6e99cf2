//! Where units are locks: claims that wait for taken units hear of free ones (arbiter spec 7.11).
//!
//! A requester chose units when it asked, without knowing who has what. Units that nobody has or
//! waits for are offered to those that wait for others, oldest first, as many as there are; whoever
//! can use them asks for them instead ([`super::picking`]). An arbiter tells a claim of a free unit
//! once. A claim that has this arbiter's permission may still wait at another arbiter, which knows
//! of other holders: if it asked this arbiter who has what, this arbiter tells it once more when
//! one of those units is free.

use std::collections::BTreeSet;
use std::sync::Arc;

use quorate_core::Unit;

use super::booked::Booked;
use super::grantor::Grantor;
use super::message::Message;
use super::pool::Mode;
use super::{Post, Seat};
use crate::attempt::{Asker, Bid};

impl Grantor {
    pub(super) fn offer_free(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        if self.queue.is_empty() && self.watching().next().is_none() {
            return;
        }
        let waiting = self.queue.iter().map(|(_, bid)| &self.entries[bid]);
        let wanted: BTreeSet<Unit> =
            waiting.flat_map(names).chain(self.locks.keys().copied()).collect();
        let mut free = seat.pool.units.saturating_sub(wanted.len() as u32);
        if free == 0 {
            return;
        }
        self.tell_watchers(seat, post);
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

    /// Claims with a permission that asked what others have, and were told of a unit that is free
    /// now. They use theirs or wait elsewhere, so they take nothing from those that wait here.
    fn tell_watchers(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        for bid in self.watching().collect::<Vec<Bid>>() {
            let taken = self.taken_from(seat, bid);
            let mut told = self.entries[&bid].offered.iter().flat_map(|told| told.iter());
            if told.any(|unit| !taken.contains(unit)) {
                self.tell_others(seat, bid, false, post);
            }
        }
    }

    fn watching(&self) -> impl Iterator<Item = Bid> + '_ {
        let granted = self.granted.iter().map(|&(_, bid)| bid);
        granted.filter(|bid| self.entries[bid].offered.is_some())
    }

    /// Tells a claim with a permission what others have, and once more when that changes if it
    /// `asks`.
    pub(super) fn tell_others(
        &mut self,
        seat: &Seat<'_>,
        bid: Bid,
        asks: bool,
        post: &mut Post<'_>,
    ) {
        let taken = self.taken_from(seat, bid);
        self.send_grant(seat, bid, Arc::clone(&taken), post);
        let booked = self.entries.get_mut(&bid).expect("whoever is granted is booked");
        booked.offered = (asks && !taken.is_empty()).then_some(taken);
    }

    /// Units that a claim would wait for: those that others have, or older ones wait for.
    pub(super) fn taken_from(&self, seat: &Seat<'_>, bid: Bid) -> Arc<[Unit]> {
        if seat.pool.mode != Mode::Named {
            return Default::default();
        }
        let key = (self.entries[&bid].stamp, bid);
        let older = self.queue.range(..key).map(|(_, older)| &self.entries[older]);
        let locked = self.locks.iter().filter(|(_, owner)| **owner != bid).map(|(&unit, _)| unit);
        let units: BTreeSet<Unit> = locked.chain(older.flat_map(names)).collect();
        units.into_iter().collect()
    }
}

fn names(booked: &Booked) -> impl Iterator<Item = Unit> + '_ {
    booked.wish.names.iter().flat_map(|names| names.iter().copied())
}
