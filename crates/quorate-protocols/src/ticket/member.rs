//! A member's half: tickets proposed, tickets settled, and who may be older than whom.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quorate_core::{
    ClaimId, Fact, Fence, Moment, NodeId, Outbox, Share, Shares, Unit, Units, numbers,
};

use super::message::{Message, Rival, Standing};
use super::pool::broken;
use super::{Alarm, Post, Seat, Ticket};
use crate::attempt::{Asker, Bid};
use crate::count::Count;

/// The entries of one member.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Member {
    /// The largest ticket it has proposed or heard of.
    pub(super) top: Fence,
    pub(super) entries: BTreeMap<Bid, Entry>,
    /// All entries, by ticket or proposal.
    pub(super) order: BTreeSet<(Fence, Bid)>,
    /// Raised whenever a holder joins: views from before are void.
    pub(super) mark: Fence,
    /// Holders that were not told yet that this member knows of them.
    joining: BTreeSet<Bid>,
    /// Whether something told in an earlier life may still be relied on.
    grace: bool,
    /// How many entries were taken up in grace.
    reclaims: Count,
}

numbers!(Member { top, entries, order, mark, joining, grace, reclaims: plain });

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
    /// Whether it was ever told any.
    viewed: bool,
    /// The largest mark that its home has heard: it has no view from before that.
    pub(super) seen: Fence,
    /// The mark at which it joined; views from before do not have it.
    pub(super) joined: Fence,
    /// Two homes let their clients in with this entry, and each may rely on it: neither can end it,
    /// and it ends with its lease.
    shared: bool,
}

numbers!(Entry { asker, units, ticket, settled, held, sent, told, viewed, seen, joined, shared });

/// What a holder has: so many units, with its ticket for a fence.
pub(super) fn shares(units: Units, ticket: Fence) -> Shares {
    let share = |unit| Share { unit: Unit(unit), fence: ticket };
    Shares::new(&(0..units.get()).map(share).collect::<Vec<_>>())
}

impl Member {
    pub(super) fn boot(seat: &Seat<'_>, first: bool, out: &mut Outbox<Ticket>) -> Self {
        let grace = !first && !broken!(seat, NoGrace);
        if grace && seat.pool.leases_end() {
            out.arm(Alarm::Grace, seat.pool.lease.length());
        }
        let (entries, order, joining, reclaims) = Default::default();
        let (top, mark) = (Fence::floor(seat.boot), Fence::floor(seat.boot));
        Member { top, entries, order, mark, joining, grace, reclaims }
    }

    pub(super) fn is_in_grace(&self) -> bool {
        self.grace
    }

    pub(super) fn hear(
        &mut self,
        seat: &Seat<'_>,
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
            Message::Settle { claim, attempt, units, ticket, standing, seen, sent } => {
                if units.get() > seat.pool.units {
                    return post.out.anomaly(from, "a claim for more units than the pool has");
                }
                let asker = Asker { node: from, attempt };
                let (settled, held) = (true, standing != Standing::Waiting);
                let shown = Entry { settled, held, seen, ..Entry::new(asker, units, ticket, sent) };
                self.on_settle(seat, claim, shown, standing, post);
            }
            Message::Release { claim, attempt, whole } => {
                let bid = Asker { node: from, attempt }.bid(claim);
                let is_meant = |known: &Bid| {
                    let entry = &self.entries[known];
                    let whose = *known == bid || (whole && known.is_earlier_life_of(bid));
                    whose && entry.asker.attempt <= attempt && !entry.shared
                };
                let over: Vec<Bid> = self.bids(claim).filter(is_meant).collect();
                over.iter().for_each(|&bid| self.end(seat, bid, post.out));
                if !over.is_empty() {
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
        seat: &Seat<'_>,
        claim: ClaimId,
        asker: Asker,
        units: Units,
        (above, sent): (Fence, Moment),
        post: &mut Post<'_>,
    ) {
        let bid = asker.bid(claim);
        if self.grace {
            // A member in grace does not know what a ticket must exceed; others may propose one.
            let attempt = asker.attempt;
            return post.send(asker.node, Message::Lost { claim, attempt });
        }
        if broken!(seat, OneEntryPerClaim) {
            let others: Vec<Bid> = self.bids(claim).filter(|&other| other != bid).collect();
            others.into_iter().for_each(|other| self.end(seat, other, post.out));
        }
        if self.bids(claim).any(|known| bid.is_earlier_life_of(known)) {
            return;
        }
        self.drop_earlier_lives(seat, bid, post.out);
        match self.entries.get_mut(&bid) {
            Some(known) if asker.is_before(known.asker) || known.shared => return,
            Some(known) if known.asker == asker => {
                if known.settled {
                    return; // An old copy.
                }
                known.sent = sent;
            }
            known => {
                if known.is_some() {
                    self.end(seat, bid, post.out);
                }
                self.top = self.top.max(above).next();
                let (settled, seen) = (broken!(seat, T1OneRound), self.mark);
                let new = Entry { settled, seen, ..Entry::new(asker, units, self.top, sent) };
                self.insert(bid, new);
            }
        }
        self.arm(seat, bid, post.out);
        let (ticket, attempt) = (self.entries[&bid].ticket, asker.attempt);
        post.send(asker.node, Message::Propose { claim, attempt, ticket });
        self.refresh(seat, post);
    }

    fn on_settle(
        &mut self,
        seat: &Seat<'_>,
        claim: ClaimId,
        mut shown: Entry,
        standing: Standing,
        post: &mut Post<'_>,
    ) {
        let (Asker { node, attempt }, bid) = (shown.asker, shown.asker.bid(claim));
        let (held, sent) = (shown.held, shown.sent);
        if self.bids(claim).any(|known| bid.is_earlier_life_of(known)) {
            return;
        }
        let relied = standing == Standing::Held || broken!(seat, AdoptShown);
        let joins = standing == Standing::Joins;
        // What is taken up in grace may have ended here before the crash, its message having been
        // under way for long. The home that sent it can tell: it does not count an answer that
        // comes when what it relied on is over. Any other could not, so nobody else is told that
        // this member knows it.
        let unproven = self.grace && !relied && !broken!(seat, ConfirmInGrace);
        if !unproven {
            self.hand_over(seat, bid, &shown, post.out);
        }
        match self.entries.get(&bid) {
            Some(known) if shown.asker.is_before(known.asker) => return,
            // It does not know who has views from before. The holder will ask again.
            _ if joins && unproven => return,
            Some(known) if known.asker == shown.asker || known.is_taken_over_by(&shown) => {
                if shown.ticket < known.ticket {
                    // Not the entry it has its ticket from: that one ended, and a late copy of its
                    // registration made another.
                    return post.send(node, Message::Lost { claim, attempt });
                }
                (shown.shared, shown.joined) = (known.shared, known.joined);
                shown.viewed = known.viewed;
                shown.seen = shown.seen.max(known.seen);
                self.remove(bid);
            }
            _ if joins && self.grace => return,
            known if joins && known.is_none_or(|known| !known.shared) => {
                if known.is_some() {
                    self.end(seat, bid, post.out);
                }
                shown.joined = self.let_join(seat, bid, shown.ticket, post);
            }
            // Taken up is only what is in use and relied on this member all the time: anything else
            // may have ended here before the crash, or never have been here, and others may enter
            // without having seen it.
            None if self.grace && held && relied => self.reclaims.add(),
            _ => return post.send(node, Message::Lost { claim, attempt }),
        }
        if !broken!(seat, T2NoBump) {
            self.top = self.top.max(shown.ticket);
        }
        self.insert(bid, shown);
        self.arm(seat, bid, post.out);
        if held && !self.joining.contains(&bid) {
            post.send(node, Message::Renewed { claim, attempt, sent });
        }
        self.refresh(seat, post);
        if !held && self.entries[&bid].told.is_none() {
            post.send(node, Message::Queued { claim, attempt, mark: self.mark });
        }
    }

    /// A holder is to be known here from now on: recalls all views that do not have it. Says the
    /// mark of those that have.
    fn let_join(&mut self, seat: &Seat<'_>, bid: Bid, ticket: Fence, post: &mut Post<'_>) -> Fence {
        self.top = self.top.max(ticket).next();
        self.mark = self.top;
        if !broken!(seat, JoinAtOnce) {
            self.joining.insert(bid);
        }
        for &(_, younger) in self.order.range((ticket, bid)..) {
            let entry = self.entries.get_mut(&younger).expect("it is in the order");
            entry.told = None;
            if !entry.viewed {
                entry.seen = self.mark; // It has none.
            } else if !entry.held {
                let (Asker { node, attempt }, claim) = (entry.asker, younger.claim);
                post.send(node, Message::Queued { claim, attempt, mark: self.mark });
            }
        }
        self.mark
    }

    /// Tells holders that joined that they are known, if nobody has a view without them.
    fn confirm(&mut self, post: &mut Post<'_>) {
        let joining: Vec<Bid> = self.joining.iter().copied().collect();
        for bid in joining {
            let Some(Entry { asker, ticket, joined, sent, .. }) = self.entries.get(&bid) else {
                self.joining.remove(&bid);
                continue;
            };
            let relies = |younger: &Bid| {
                let entry = &self.entries[younger];
                entry.viewed && !entry.held && entry.seen < *joined
            };
            let mut younger = self.order.range((*ticket, bid)..).map(|(_, younger)| younger);
            if !younger.any(relies) {
                let (Asker { node, attempt }, sent) = (*asker, *sent);
                self.joining.remove(&bid);
                post.send(node, Message::Renewed { claim: bid.claim, attempt, sent });
            }
        }
    }

    /// Tells those whose rivals have become fewer. Whoever finds the pool full of older ones here
    /// is told nothing: it could not enter whatever others say.
    fn refresh(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        if self.grace {
            return;
        }
        if !self.joining.is_empty() {
            self.confirm(post);
        }
        let mut older: Vec<Rival> = Vec::new();
        let mut taken = 0;
        for &(_, bid) in &self.order {
            if taken >= seat.pool.units {
                return;
            }
            let entry = self.entries.get_mut(&bid).expect("whoever is in the order has an entry");
            let units = entry.units;
            let fits = taken + units.get() <= seat.pool.units;
            let rivals = older.len() as u32;
            if entry.settled && !entry.held && fits && entry.told.is_none_or(|told| told != rivals)
            {
                (entry.told, entry.viewed) = (Some(rivals), true);
                let Asker { node, attempt } = entry.asker;
                let (rivals, sent): (Arc<[Rival]>, _) = (older.as_slice().into(), entry.sent);
                let (claim, mark) = (bid.claim, self.mark);
                post.send(node, Message::View { claim, attempt, rivals, mark, sent });
            }
            if entry.settled || !broken!(seat, T3IgnoreUnsettled) {
                older.push(Rival { bid, units });
                taken += units.get();
            }
        }
    }

    pub(super) fn on_ring_lease_end(&mut self, seat: &Seat<'_>, bid: Bid, post: &mut Post<'_>) {
        let claim = bid.claim;
        let entry = self.remove(bid).expect("a lease is armed for entries only");
        if entry.held {
            post.out.reclaim(claim, shares(entry.units, entry.ticket));
        }
        let Asker { node, attempt } = entry.asker;
        post.send(node, Message::Lost { claim, attempt });
        self.refresh(seat, post);
    }

    pub(super) fn on_ring_grace(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        self.grace = false;
        self.refresh(seat, post);
    }

    /// All that asked for a claim.
    fn bids(&self, claim: ClaimId) -> impl Iterator<Item = Bid> + '_ {
        let first = Bid { claim, node: NodeId(0), boot: 0 };
        self.entries.range(first..).map(|(&bid, _)| bid).take_while(move |bid| bid.claim == claim)
    }

    /// A home was restarted: what its earlier life had no ticket for here is in nobody's use.
    fn drop_earlier_lives(&mut self, seat: &Seat<'_>, bid: Bid, out: &mut Outbox<Ticket>) {
        let is_over =
            |earlier: &Bid| earlier.is_earlier_life_of(bid) && !self.entries[earlier].settled;
        let over: Vec<Bid> = self.bids(bid.claim).filter(is_over).collect();
        over.into_iter().for_each(|earlier| self.end(seat, earlier, out));
    }

    /// A client shows, through this bid's home, what it was let in with through another. The entry
    /// becomes this one's; but another node may rely on it as well, so from then on it ends with
    /// its lease and not before.
    fn hand_over(&mut self, seat: &Seat<'_>, to: Bid, shown: &Entry, out: &mut Outbox<Ticket>) {
        if self.entries.contains_key(&to) {
            return;
        }
        let fits = |from: &Bid| self.entries[from].is_taken_over_by(shown);
        let Some(from) = self.bids(to.claim).find(fits) else { return };
        let mut entry = self.remove(from).expect("it was found here");
        entry.shared |= !from.is_earlier_life_of(to) && !broken!(seat, HandOverWhole);
        entry.asker = shown.asker;
        self.insert(to, entry);
        if self.joining.remove(&from) {
            self.joining.insert(to);
        }
        if seat.pool.leases_end() {
            out.disarm(Alarm::LeaseEnd(from));
        }
    }

    fn insert(&mut self, bid: Bid, entry: Entry) {
        self.order.insert((entry.ticket, bid));
        self.entries.insert(bid, entry);
    }

    fn remove(&mut self, bid: Bid) -> Option<Entry> {
        let entry = self.entries.remove(&bid)?;
        let ordered = self.order.remove(&(entry.ticket, bid));
        assert!(ordered, "every entry is in the order");
        Some(entry)
    }

    fn end(&mut self, seat: &Seat<'_>, bid: Bid, out: &mut Outbox<Ticket>) {
        self.remove(bid);
        if seat.pool.leases_end() {
            out.disarm(Alarm::LeaseEnd(bid));
        }
    }

    fn arm(&self, seat: &Seat<'_>, bid: Bid, out: &mut Outbox<Ticket>) {
        if seat.pool.leases_end() {
            out.arm(Alarm::LeaseEnd(bid), seat.pool.lease.length());
        }
    }

    pub(super) fn facts(&self, show: &mut dyn FnMut(Fact)) {
        show(Fact::gauge("in_grace", self.grace));
        show(Fact::gauge("entries", self.entries.len() as u64));
        show(Fact::counter("reclaims", self.reclaims.get()));
    }

    pub(super) fn audit(&self) {
        assert_eq!(self.order.len(), self.entries.len());
        for (&bid, entry) in &self.entries {
            assert!(self.order.contains(&(entry.ticket, bid)), "every entry is in the order");
            assert!(entry.ticket <= self.top || cfg!(test), "no ticket is above the largest known");
        }
    }
}

impl Entry {
    /// One that waits for its ticket, or for a place in the order of tickets.
    fn new(asker: Asker, units: Units, ticket: Fence, sent: Moment) -> Entry {
        let (settled, held, told, viewed) = (false, false, None, false);
        let (seen, joined, shared) = (Fence::default(), Fence::default(), false);
        Entry { asker, units, ticket, settled, held, sent, told, viewed, seen, joined, shared }
    }

    /// Whether this is what a client shows that outlived its node.
    fn is_taken_over_by(&self, shown: &Entry) -> bool {
        let same = (self.settled, self.ticket, self.units) == (true, shown.ticket, shown.units);
        shown.held && same
    }
}
