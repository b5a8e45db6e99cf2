//! A member's half: tickets proposed, tickets settled, and who may be older than whom.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quorate_core::{
    ClaimId, Fact, Fence, Moment, NodeId, Outbox, Seat, Share, Shares, Unit, Units,
};

use super::message::{Message, Rival};
use super::pool::broken;
use super::{Alarm, Post, Ticket};
use crate::attempt::Asker;
use crate::count::Count;

/// The entries of one member.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Member {
    /// The largest ticket it has proposed or heard of.
    pub(super) top: Fence,
    pub(super) entries: BTreeMap<ClaimId, Entry>,
    /// All entries, by ticket or proposal.
    pub(super) order: BTreeSet<(Fence, ClaimId)>,
    /// Whether something told in an earlier life may still be relied on.
    grace: bool,
    /// How many entries were taken up in grace.
    reclaims: Count,
}

/// A claim as a member knows it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Entry {
    pub(super) asker: Asker,
    pub(super) units: Units,
    /// Its ticket, or what was proposed for one.
    pub(super) ticket: Fence,
    settled: bool,
    held: bool,
    /// The asker's clock when it sent what the lease was last counted from.
    sent: Moment,
    /// How many rivals the last view had. They only get fewer, so the number says which.
    told: Option<u32>,
}

/// What a holder has: so many units, with its ticket for a fence.
pub(super) fn shares(units: Units, ticket: Fence) -> Shares {
    let share = |unit| Share { unit: Unit(unit), fence: ticket };
    Shares::new(&(0..units.get()).map(share).collect::<Vec<_>>())
}

impl Member {
    pub(super) fn boot(seat: &Seat<'_, Ticket>, first: bool, out: &mut Outbox<Ticket>) -> Self {
        let grace = !first && !broken!(seat, NoGrace);
        if grace && seat.pool.leases_end() {
            out.arm(Alarm::Grace, seat.pool.lease.length());
        }
        let (entries, order) = Default::default();
        Member { top: Fence::floor(seat.boot), entries, order, grace, reclaims: Count::default() }
    }

    pub(super) fn hear(
        &mut self,
        seat: &Seat<'_, Ticket>,
        from: NodeId,
        message: Message,
        post: &mut Post<'_>,
    ) {
        match message {
            Message::Register { claim, attempt, units, above, sent } => {
                if units.get() > seat.pool.units {
                    return post.out.anomaly(from, "a claim for more units than the pool has");
                }
                let asker = Asker { node: from, attempt };
                self.on_register(seat, claim, asker, units, (above, sent), post);
            }
            Message::Settle { claim, attempt, units, ticket, held, sent } => {
                if units.get() > seat.pool.units {
                    return post.out.anomaly(from, "a claim for more units than the pool has");
                }
                let asker = Asker { node: from, attempt };
                let shown = Entry { asker, units, ticket, settled: true, held, sent, told: None };
                self.on_settle(seat, claim, shown, post);
            }
            Message::Release { claim, attempt } => {
                let is_older =
                    |entry: &Entry| entry.asker.node == from && entry.asker.attempt <= attempt;
                if self.entries.get(&claim).is_some_and(is_older) {
                    self.end(seat, claim, post.out);
                    self.refresh(seat, post);
                }
            }
            Message::Propose { .. }
            | Message::View { .. }
            | Message::Queued { .. }
            | Message::Renewed { .. }
            | Message::Lost { .. } => unreachable!("messages for requesters go to the requester"),
        }
    }

    fn on_register(
        &mut self,
        seat: &Seat<'_, Ticket>,
        claim: ClaimId,
        asker: Asker,
        units: Units,
        (above, sent): (Fence, Moment),
        post: &mut Post<'_>,
    ) {
        if self.grace {
            return; // It does not know what it must exceed. Patience finds other members.
        }
        match self.entries.get_mut(&claim) {
            Some(known) if asker.is_before(known.asker) => return,
            Some(known) if known.asker == asker => {
                if known.settled {
                    return; // An old copy.
                }
                known.sent = sent;
            }
            known => {
                if known.is_some() {
                    self.end(seat, claim, post.out);
                }
                self.top = self.top.max(above).next();
                let settled = broken!(seat, T1OneRound);
                let (ticket, held, told) = (self.top, false, None);
                self.insert(claim, Entry { asker, units, ticket, settled, held, sent, told });
            }
        }
        self.arm(seat, claim, post.out);
        let (ticket, attempt) = (self.entries[&claim].ticket, asker.attempt);
        post.send(asker.node, Message::Propose { claim, attempt, ticket });
        self.refresh(seat, post);
    }

    fn on_settle(
        &mut self,
        seat: &Seat<'_, Ticket>,
        claim: ClaimId,
        shown: Entry,
        post: &mut Post<'_>,
    ) {
        let Asker { node, attempt } = shown.asker;
        let (held, sent) = (shown.held, shown.sent);
        match self.entries.get(&claim) {
            Some(known) if shown.asker.is_before(known.asker) => return,
            Some(known) if known.asker == shown.asker || known.is_taken_over_by(&shown) => {
                if shown.ticket < known.ticket {
                    // Not the entry it has its ticket from: that one ended, and a late copy of its
                    // registration made another.
                    return post.send(node, Message::Lost { claim, attempt });
                }
                self.remove(claim);
            }
            // Only what is in use: a claim that waits may have ended here before the crash, and
            // others may have entered without having seen it.
            None if self.grace && held => self.reclaims.add(),
            _ => return post.send(node, Message::Lost { claim, attempt }),
        }
        if !broken!(seat, T2NoBump) {
            self.top = self.top.max(shown.ticket);
        }
        self.insert(claim, shown);
        self.arm(seat, claim, post.out);
        if held {
            post.send(node, Message::Renewed { claim, attempt, sent });
        }
        self.refresh(seat, post);
        if !held && self.entries[&claim].told.is_none() {
            post.send(node, Message::Queued { claim, attempt });
        }
    }

    /// Tells those whose rivals have become fewer. Whoever finds the pool full of older ones here
    /// is told nothing: it could not enter whatever others say.
    fn refresh(&mut self, seat: &Seat<'_, Ticket>, post: &mut Post<'_>) {
        if self.grace {
            return;
        }
        let mut older: Vec<Rival> = Vec::new();
        let mut taken = 0;
        for &(_, claim) in &self.order {
            if taken >= seat.pool.units {
                return;
            }
            let entry = self.entries.get_mut(&claim).expect("whoever is in the order has an entry");
            let units = entry.units;
            let fits = taken + units.get() <= seat.pool.units;
            let rivals = older.len() as u32;
            if entry.settled && !entry.held && fits && entry.told.is_none_or(|told| told != rivals)
            {
                entry.told = Some(rivals);
                let Asker { node, attempt } = entry.asker;
                let (rivals, sent): (Arc<[Rival]>, _) = (older.as_slice().into(), entry.sent);
                post.send(node, Message::View { claim, attempt, rivals, sent });
            }
            if entry.settled || !broken!(seat, T3IgnoreUnsettled) {
                older.push(Rival { claim, units });
                taken += units.get();
            }
        }
    }

    pub(super) fn on_ring_lease_end(
        &mut self,
        seat: &Seat<'_, Ticket>,
        claim: ClaimId,
        post: &mut Post<'_>,
    ) {
        let entry = self.remove(claim).expect("a lease is armed for entries only");
        if entry.held {
            post.out.reclaim(claim, shares(entry.units, entry.ticket));
        }
        let Asker { node, attempt } = entry.asker;
        post.send(node, Message::Lost { claim, attempt });
        self.refresh(seat, post);
    }

    pub(super) fn on_ring_grace(&mut self, seat: &Seat<'_, Ticket>, post: &mut Post<'_>) {
        self.grace = false;
        self.refresh(seat, post);
    }

    fn insert(&mut self, claim: ClaimId, entry: Entry) {
        self.order.insert((entry.ticket, claim));
        self.entries.insert(claim, entry);
    }

    fn remove(&mut self, claim: ClaimId) -> Option<Entry> {
        let entry = self.entries.remove(&claim)?;
        let ordered = self.order.remove(&(entry.ticket, claim));
        assert!(ordered, "every entry is in the order");
        Some(entry)
    }

    fn end(&mut self, seat: &Seat<'_, Ticket>, claim: ClaimId, out: &mut Outbox<Ticket>) {
        self.remove(claim);
        if seat.pool.leases_end() {
            out.disarm(Alarm::LeaseEnd(claim));
        }
    }

    fn arm(&self, seat: &Seat<'_, Ticket>, claim: ClaimId, out: &mut Outbox<Ticket>) {
        if seat.pool.leases_end() {
            out.arm(Alarm::LeaseEnd(claim), seat.pool.lease.length());
        }
    }

    pub(super) fn facts(&self, show: &mut dyn FnMut(Fact)) {
        show(Fact::gauge("in_grace", self.grace));
        show(Fact::gauge("entries", self.entries.len() as u64));
        show(Fact::counter("reclaims", self.reclaims.get()));
    }

    pub(super) fn audit(&self) {
        assert_eq!(self.order.len(), self.entries.len());
        for (&claim, entry) in &self.entries {
            assert!(self.order.contains(&(entry.ticket, claim)), "every entry is in the order");
            assert!(entry.ticket <= self.top || cfg!(test), "no ticket is above the largest known");
        }
    }
}

impl Entry {
    /// Whether this is what a client shows that outlived its node.
    fn is_taken_over_by(&self, shown: &Entry) -> bool {
        let same = (self.settled, self.ticket, self.units) == (true, shown.ticket, shown.units);
        shown.held && same
    }
}
