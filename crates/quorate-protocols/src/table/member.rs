//! A member's half: its copy of the table, and a lock for one section at a time.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use quorate_core::{
    ClaimId, Entry, Fact, Fence, Kept, Moment, NodeId, Outbox, Shares, Stamp, Standing, Start,
    numbers,
};

use super::message::Message;
use super::pool::broken;
use super::sheet::{NUMBER_MAX, Sheet};
use super::{Alarm, Pool, Post, Seat, Table};
use crate::attempt::Attempt;
use crate::count::Count;
use crate::opening::{BLOCK, Opening, Report};

/// One copy of the table, and who may change it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Member {
    pub(super) sheet: Arc<Sheet>,
    /// When it came.
    stored: Moment,
    /// Grants in it that were not renewed in time.
    pub(super) overdue: BTreeSet<ClaimId>,
    /// Sections of earlier rounds do not get the lock.
    pub(super) promised: Fence,
    pub(super) lock: Option<Lock>,
    /// Who wants it, in the order in which they came.
    pub(super) queue: VecDeque<Lock>,
    /// All fences that it may have forgotten are below.
    pub(super) floor: Fence,
    pub(super) opening: Opening,
    /// Rounds and fences up to these are on disk, if anything is.
    pub(super) written: Option<(Fence, Fence)>,
    /// Whether leases end. A copy without them may be old for ever, and is no book to go by.
    has_leases: bool,
    breaks: Count,
    /// The newest table that others told of, while it learns what it forgot.
    pub(super) told: Arc<Sheet>,
}

numbers!(Member {
    sheet,
    stored,
    overdue,
    promised,
    lock,
    queue,
    floor,
    opening,
    written,
    has_leases,
    breaks: plain,
    told,
});

/// A section that has the lock, or wants it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Lock {
    pub(super) node: NodeId,
    pub(super) section: Attempt,
    pub(super) round: Fence,
    /// How often it was asked whether it still goes on, without an answer.
    probes: u32,
}

numbers!(Lock { node, section, round, probes });

/// What a member writes down: how far rounds and fences have come, so that it can be sure of both
/// after a restart. Only a durable one writes down the table, too.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Record {
    /// All rounds that it knew or gave its lock to are below.
    pub round: Fence,
    /// All fences that it knew are below.
    pub fence: Fence,
    /// Whether rounds and fences older than this record may have been forgotten.
    pub unsure: bool,
    /// The table as it was, if the pool is durable and the table was not lost.
    pub sheet: Option<Sheet>,
}

impl Record {
    /// Whether a member of this pool can have written it.
    pub fn is_sound(&self, pool: &Pool) -> bool {
        let small = self.round.0 < NUMBER_MAX && self.fence.0 < NUMBER_MAX;
        let sheet = self.sheet.as_ref();
        small
            && sheet.is_none_or(|sheet| {
                let known = sheet.version.round <= self.round && sheet.fence <= self.fence;
                known && sheet.is_sound(&pool.goods)
            })
    }
}

impl Member {
    pub(super) fn boot(seat: &Seat<'_>, start: Start<Record>, out: &mut Outbox<Table>) -> Self {
        let mut member = Member {
            sheet: Arc::default(),
            stored: seat.now,
            overdue: BTreeSet::new(),
            promised: Fence::default(),
            lock: None,
            queue: VecDeque::new(),
            floor: Fence::default(),
            opening: Opening::Open,
            written: None,
            has_leases: seat.pool.leases_end(),
            breaks: Count::default(),
            told: Arc::default(),
        };
        match start {
            // A member that never wrote a record has never given its lock.
            Start::First | Start::Recovered(None) => {}
            Start::Recovered(Some(record)) => {
                (member.promised, member.floor) = (record.round, record.fence);
                member.written = Some((record.round, record.fence));
                let keeps = record.sheet.filter(|_| seat.pool.goods.durable);
                if keeps.is_none() || record.unsure {
                    // What stands is not over after a lease: the table must be learned anew.
                    let sure = !record.unsure && !seat.pool.goods.standing;
                    member.opening = Opening::Grace { sure };
                }
                if let Some(sheet) = keeps {
                    member.adopt(seat, Arc::new(sheet), out);
                }
            }
            Start::Amnesia => {
                member.opening = Opening::Grace { sure: false };
                member.write_down(seat, out);
            }
        }
        if broken!(seat, NoGrace) {
            member.opening = Opening::Open;
        }
        if !member.is_open() && seat.pool.leases_end() {
            out.arm(Alarm::Grace, seat.pool.goods.lease.length());
        }
        member
    }

    pub(super) fn hear(
        &mut self,
        seat: &Seat<'_>,
        from: NodeId,
        message: Message,
        post: &mut Post<'_>,
    ) {
        match message {
            Message::Lock { section, round } => self.on_lock(seat, from, section, round, post),
            Message::Store { section, sheet } => self.on_store(seat, from, section, sheet, post),
            Message::Unlock { section, clean } => {
                if self.has_lock(from, section) {
                    if clean { self.lock = None } else { self.take_lock_away(seat) }
                }
                self.queue.retain(|lock| (lock.node, lock.section) != (from, section));
                self.advance(seat, post);
            }
            Message::Busy { section } => {
                if let Some(lock) = &mut self.lock
                    && (lock.node, lock.section) == (from, section)
                {
                    lock.probes = 0;
                }
            }
            Message::Ask { claim, attempt } => {
                if self.is_open() {
                    let row = self.sheet.rows.get(&claim);
                    let waits =
                        row.is_some_and(|row| row.is_asked_by(from, attempt) && row.is_in_turn());
                    post.send(from, Message::Told { claim, attempt, waits });
                }
            }
            Message::Survey => self.on_survey(seat, from, post),
            Message::Report { round, fence, boot, sure, sheet } => {
                let report = Report { round, fence, boot, sure };
                self.on_report(seat, from, report, sheet, post);
            }
            _ => unreachable!("messages for requesters go to the requester"),
        }
    }

    fn has_lock(&self, node: NodeId, section: Attempt) -> bool {
        self.lock.is_some_and(|lock| (lock.node, lock.section) == (node, section))
    }

    fn on_lock(
        &mut self,
        seat: &Seat<'_>,
        node: NodeId,
        section: Attempt,
        round: Fence,
        post: &mut Post<'_>,
    ) {
        if !self.is_open() {
            return self.refuse(node, section, post); // It may have forgotten what it promised.
        }
        if self.has_lock(node, section) {
            return self.tell_locked(seat, post);
        }
        let newer = |lock: &Lock| lock.node == node && lock.section > section;
        if self.lock.iter().chain(&self.queue).any(newer) {
            return; // A late copy.
        }
        if self.lock.is_some_and(|lock| lock.node == node) {
            // A node has one section at a time: the older one is over, however far it came.
            self.take_lock_away(seat);
        }
        match self.queue.iter_mut().find(|lock| lock.node == node) {
            Some(waiting) if waiting.section == section => {}
            Some(waiting) => (waiting.section, waiting.round) = (section, round),
            None => self.queue.push_back(Lock { node, section, round, probes: 0 }),
        }
        self.advance(seat, post);
        if self.queue.iter().any(|lock| lock.node == node) {
            post.send(node, Message::Queued { section });
        }
    }

    fn refuse(&self, node: NodeId, section: Attempt, post: &mut Post<'_>) {
        let (round, closed) = (self.promised, !self.is_open());
        post.send(node, Message::Refused { section, round, closed });
    }

    /// Gives the lock to whoever has waited longest.
    pub(super) fn advance(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        if self.lock.is_some() {
            return;
        }
        while let Some(next) = self.queue.pop_front() {
            let Lock { node, section, round, .. } = next;
            if round < self.promised {
                self.refuse(node, section, post);
                continue;
            }
            self.promised = round;
            self.lock = Some(next);
            self.write_down(seat, post.out);
            post.out.arm(Alarm::Hold, seat.pool.goods.retry);
            return self.tell_locked(seat, post);
        }
        post.out.disarm(Alarm::Hold);
    }

    fn tell_locked(&self, seat: &Seat<'_>, post: &mut Post<'_>) {
        let Lock { node, section, .. } = self.lock.expect("it was just given");
        let since = |claim: &ClaimId| Some((*claim, self.sheet.rows.get(claim)?.granted()?.1));
        let overdue = self.overdue.iter().filter_map(since).collect();
        let (sheet, known_for) = (Arc::clone(&self.sheet), seat.now.since(self.stored));
        let floor = self.floor;
        post.send(node, Message::Locked { section, sheet, known_for, overdue, floor });
    }

    /// Whatever the section stored elsewhere, or will, is older than what follows here.
    pub(super) fn take_lock_away(&mut self, seat: &Seat<'_>) {
        let Some(lock) = self.lock.take() else { return };
        self.breaks.add();
        if !broken!(seat, SameRound) {
            self.promised = self.promised.max(lock.round.next());
        }
    }

    fn on_store(
        &mut self,
        seat: &Seat<'_>,
        from: NodeId,
        section: Attempt,
        sheet: Arc<Sheet>,
        post: &mut Post<'_>,
    ) {
        let newer = sheet.version > self.sheet.version;
        let unlocked = broken!(seat, StoreUnlocked) && self.is_open();
        if newer && (self.has_lock(from, section) || unlocked) {
            self.lock = None;
            self.adopt(seat, sheet, post.out);
        } else {
            let known = self.is_open() && sheet.version == self.sheet.version;
            if self.has_lock(from, section) {
                self.take_lock_away(seat); // A late copy of its request got it once more.
            }
            if !known {
                self.refuse(from, section, post);
                return self.advance(seat, post);
            }
        }
        if seat.pool.confirm {
            post.send(from, Message::Stored { section });
        }
        self.advance(seat, post);
    }

    /// Takes a newer table, and watches over the leases that are new in it.
    pub(super) fn adopt(&mut self, seat: &Seat<'_>, sheet: Arc<Sheet>, out: &mut Outbox<Table>) {
        let since = |of: &Sheet, claim: &ClaimId| Some(of.rows.get(claim)?.granted()?.1);
        let before = std::mem::replace(&mut self.sheet, sheet);
        self.stored = seat.now;
        self.promised = self.promised.max(self.sheet.version.round);
        self.write_down(seat, out);
        if !seat.pool.leases_end() {
            return;
        }
        for claim in before.rows.keys() {
            let was = since(&before, claim);
            if was.is_some() && since(&self.sheet, claim).is_none() {
                self.overdue.remove(claim);
                out.disarm(Alarm::LeaseEnd(*claim));
            }
        }
        for (claim, row) in &self.sheet.rows {
            let is = since(&self.sheet, claim);
            if row.has_no_lease(seat) {
                continue;
            }
            if is.is_some() && is != since(&before, claim) {
                self.overdue.remove(claim);
                out.arm(Alarm::LeaseEnd(*claim), seat.pool.goods.lease.length());
            }
        }
    }

    /// The lease of a claim is over. Whoever looks at the table next will end it; and if that does
    /// not come to pass, this member will look again.
    pub(super) fn on_ring_lease_end(
        &mut self,
        seat: &Seat<'_>,
        claim: ClaimId,
        post: &mut Post<'_>,
    ) {
        if !broken!(seat, NeverReclaim) {
            self.overdue.insert(claim);
            post.out.arm(Alarm::LeaseEnd(claim), seat.pool.goods.lease.length());
        }
    }

    /// The lock has been out for long: is its section still going on?
    pub(super) fn on_ring_hold(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        let Some(lock) = &mut self.lock else { return };
        if let Some(patience) = seat.pool.patience {
            lock.probes = lock.probes.saturating_add(1);
            if lock.probes > patience {
                self.take_lock_away(seat);
                return self.advance(seat, post);
            }
        }
        let (node, section) = (lock.node, lock.section);
        post.out.arm(Alarm::Hold, seat.pool.goods.retry);
        post.send(node, Message::Probe { section });
    }

    pub(super) fn on_suspect(&mut self, seat: &Seat<'_>, node: NodeId, post: &mut Post<'_>) {
        self.queue.retain(|lock| lock.node != node);
        if self.lock.is_some_and(|lock| lock.node == node) {
            self.take_lock_away(seat);
            self.advance(seat, post);
        }
    }

    /// The largest fence that was or may be in use.
    pub(super) fn highest(&self) -> Fence {
        self.floor.max(self.sheet.fence)
    }

    /// Whatever follows in this step rests on it.
    pub(super) fn write_down(&mut self, seat: &Seat<'_>, out: &mut Outbox<Table>) {
        let covered = self.written.is_some_and(|(round, fence)| {
            self.promised < round && self.highest() <= fence && self.is_open()
        });
        if covered && !seat.pool.goods.durable {
            return;
        }
        let (round, fence) = match (covered, self.written) {
            (true, Some(written)) => written,
            _ => (self.promised.next(), Fence(self.highest().0.saturating_add(BLOCK))),
        };
        self.written = Some((round, fence));
        let keeps = seat.pool.goods.durable && self.is_open();
        let sheet = keeps.then(|| Sheet::clone(&self.sheet));
        out.persist(Record { round, fence, unsure: !self.opening.is_sure(), sheet });
    }

    pub(super) fn ledger(&self, show: &mut dyn FnMut(Entry)) {
        for (&claim, row) in self.sheet.rows.iter().filter(|_| self.has_leases) {
            let standing = match row.granted() {
                Some(_) => Standing::Granted,
                None => row.waits_as(),
            };
            let stamp = Stamp { clock: row.age, node: row.node };
            let kept = row.wanted.standing.as_ref().map(|text| {
                let shares = row.granted().map(|(shares, _)| shares.clone());
                let shares = shares.unwrap_or_else(|| Shares::new(&[]));
                Box::new(Kept { text: Arc::clone(text), shares })
            });
            show(Entry { claim, stamp, units: row.wanted.units, standing, kept });
        }
    }

    /// Round and number of this copy of the table: copies with larger ones are newer.
    pub(super) fn edition(&self) -> (u64, u64) {
        (self.sheet.version.round.0, self.sheet.version.count.0)
    }

    pub(super) fn facts(&self, show: &mut dyn FnMut(Fact)) {
        let (round, version) = self.edition();
        show(Fact::gauge("in_grace", !self.is_open()));
        show(Fact::gauge("round", round));
        show(Fact::gauge("version", version));
        show(Fact::gauge("rows", self.sheet.rows.len() as u64));
        show(Fact::gauge("locked", self.lock.is_some()));
        show(Fact::counter("locks_taken_away", self.breaks.get()));
    }

    pub(super) fn audit(&self, seat: &Seat<'_>) {
        assert!(self.lock.is_some() || self.queue.is_empty(), "a lock that is wanted is given");
        assert!(self.promised >= self.sheet.version.round || broken!(seat, SameRound));
        let mut taken = BTreeSet::new();
        for row in self.sheet.rows.values() {
            for share in row.granted().into_iter().flat_map(|(shares, _)| shares) {
                assert!(taken.insert(share.unit), "a unit has one holder");
                assert!(share.fence <= self.sheet.fence);
            }
        }
    }
}
