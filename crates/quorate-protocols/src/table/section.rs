//! A section: lock a quorum, one member after the other, take the newest table, change it, and
//! store it (labels spec 6.4).
//!
//! At most one per node at a time, and it does everything that the node's clients want by then.
//! Members are locked in ascending order: the section that has the highest lock anybody wants
//! waits for nobody, so there is no deadlock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use quorate_core::{ClaimId, Fence, Moment, NodeId, NodeSet, Refusal, Units, numbers};

use super::message::Message;
use super::pool::broken;
use super::requester::{Requester, Wait};
use super::sheet::{Errand, Sheet, Upshot, Version};
use super::{Post, Seat};
use crate::attempt::Attempt;
use crate::home;

/// A section under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Section {
    pub(super) id: Attempt,
    pub(super) round: Fence,
    /// Who is to be locked, ascending.
    quorum: Vec<NodeId>,
    pub(super) phase: Phase,
    /// How often the retry alarm rang without any answer.
    rings: u32,
    /// Who did not answer in earlier tries at the same, or gives its lock to nobody yet.
    quiet: NodeSet,
}

numbers!(Section { id, round, quorum, phase, rings, quiet });

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Phase {
    /// What the members locked so far know.
    Locking { known: Vec<Known> },
    /// The new table is on its way; `left` have not said that they have it.
    Storing {
        sheet: Arc<Sheet>,
        left: NodeSet,
        /// Our clock before it was sent.
        sent: Moment,
        errands: BTreeMap<ClaimId, Errand>,
        upshot: Upshot,
    },
}

numbers!(enum Phase { Locking { known }, Storing { sheet, left, sent, errands, upshot } });

/// What a member said with its lock.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Known {
    pub(super) sheet: Arc<Sheet>,
    known_for: Duration,
    pub(super) overdue: Arc<[(ClaimId, Version)]>,
    pub(super) floor: Fence,
}

numbers!(Known { sheet, known_for, overdue, floor });

impl Section {
    /// The members that owe an answer.
    fn awaited(&self) -> NodeSet {
        match &self.phase {
            Phase::Locking { known } => self.quorum.get(known.len()).copied().into_iter().collect(),
            Phase::Storing { left, .. } => left.clone(),
        }
    }

    /// Whether it cannot end without a member: to store with it, or to lock it first.
    fn needs(&self, node: NodeId) -> bool {
        match &self.phase {
            Phase::Locking { .. } => self.quorum.contains(&node),
            Phase::Storing { left, .. } => left.contains(node),
        }
    }

    /// Says again what was not answered.
    fn repeat(&self, post: &mut Post<'_>) {
        self.awaited().iter().for_each(|to| self.tell(to, post));
    }

    /// Says to a member what it is to answer.
    fn tell(&self, to: NodeId, post: &mut Post<'_>) {
        let section = self.id;
        let message = match &self.phase {
            Phase::Locking { .. } => Message::Lock { section, round: self.round },
            Phase::Storing { sheet, .. } => Message::Store { section, sheet: Arc::clone(sheet) },
        };
        post.send(to, message);
    }

    /// Whether a claim's new lease has begun at some members, and its home may yet hear of it.
    pub(super) fn relies_on(&self, claim: ClaimId) -> bool {
        let Phase::Storing { sheet, .. } = &self.phase else { return false };
        let since = sheet.rows.get(&claim).and_then(|row| Some(row.granted()?.1));
        since == Some(sheet.version)
    }
}

impl Requester {
    /// Begins a section, if there is something to do and none is under way.
    pub(super) fn open_section(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        if self.own.section.is_none() && (!self.own.errands.is_empty() || self.own.tidy) {
            self.begin(seat, NodeSet::new(), post);
        }
        self.arm_retry(seat, post);
    }

    fn begin(&mut self, seat: &Seat<'_>, quiet: NodeSet, post: &mut Post<'_>) {
        let avoid = [self.suspects.union(&quiet), self.suspects.clone(), NodeSet::new()];
        let chosen = avoid.iter().find_map(|avoid| self.elsewhere(seat, avoid));
        let chosen = chosen.expect("a family has a quorum");
        let mut quorum: Vec<NodeId> = chosen.iter().collect();
        if broken!(seat, Unordered) && seat.me.0 % 2 == 1 {
            quorum.reverse();
        }
        let (id, round) = (self.next_attempt(seat), self.own.round);
        let phase = Phase::Locking { known: Vec::new() };
        let section = Section { id, round, quorum, phase, rings: 0, quiet };
        section.repeat(post);
        self.own.section = Some(section);
        self.own.sections.add();
    }

    /// Gives the section up and begins another, without the members that do not answer.
    fn restart(&mut self, seat: &Seat<'_>, quiet: NodeSet, post: &mut Post<'_>) {
        let Some(section) = self.own.section.take() else { return };
        self.own.restarts.add();
        match section.phase {
            Phase::Locking { known } => {
                // Every member that was asked is told, since its lock may be on its way.
                for &to in section.quorum.iter().take(known.len() + 1) {
                    post.send(to, Message::Unlock { section: section.id, clean: true });
                }
            }
            // Members will take the lock away, so what this section stored somewhere is older than
            // what follows. Yet other sections may go on from it and tell of it, so each errand is
            // asked for again in a new try.
            Phase::Storing { errands, .. } => {
                for (claim, errand) in errands {
                    let attempt = self.next_attempt(seat);
                    if let (Errand::Ask, Some(local)) = (&errand, self.claims.get_mut(&claim)) {
                        local.attempt = attempt;
                    }
                    self.own.errands.entry(claim).or_insert(errand);
                }
                self.own.tidy = true;
            }
        }
        self.begin(seat, quiet, post);
    }

    /// A quorum without these.
    pub(super) fn elsewhere(&self, seat: &Seat<'_>, avoid: &NodeSet) -> Option<NodeSet> {
        seat.pool.quorums.draw(Units::ONE, seat.me, self.own.draw, avoid)
    }

    fn can_avoid(&self, seat: &Seat<'_>, quiet: &NodeSet) -> bool {
        self.elsewhere(seat, &self.suspects.union(quiet)).is_some()
    }

    pub(super) fn repeat_section(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        let Some(section) = &mut self.own.section else { return };
        if let Some(patience) = seat.pool.patience {
            section.rings = section.rings.saturating_add(1);
            if section.rings > patience {
                let awaited = section.awaited();
                // If only members are left that did not answer before, they are asked again.
                for quiet in [section.quiet.union(&awaited), awaited] {
                    if self.can_avoid(seat, &quiet) {
                        return self.restart(seat, quiet, post);
                    }
                }
            }
        }
        let Some(section) = &self.own.section else { return };
        section.repeat(post);
    }

    /// A section that will need a member that seems dead goes round it at once, also if that
    /// member's turn to be locked has not come. Otherwise the section would ask it when its turn
    /// comes, and keep the locks it has from everybody else for as long as it is patient.
    pub(super) fn on_suspect(&mut self, seat: &Seat<'_>, node: NodeId, post: &mut Post<'_>) {
        self.suspects.insert(node);
        let Some(section) = &self.own.section else { return };
        let needs = match broken!(seat, AskTheDead) {
            false => section.needs(node),
            true => section.awaited().contains(node),
        };
        if needs && self.can_avoid(seat, &NodeSet::new()) {
            let quiet = section.quiet.clone();
            self.restart(seat, quiet, post);
        }
    }

    /// A node is heard again. What was said to it may be lost, and is said once more; and with it
    /// there may be a quorum without those who are not heard.
    pub(super) fn on_trust(&mut self, seat: &Seat<'_>, node: NodeId, post: &mut Post<'_>) {
        self.suspects.remove(node);
        self.ask_keeper(node, post);
        let Some(section) = &self.own.section else { return };
        let stuck = self.suspects.iter().any(|suspect| section.needs(suspect));
        if stuck && self.can_avoid(seat, &NodeSet::new()) {
            let quiet = section.quiet.clone();
            return self.restart(seat, quiet, post);
        }
        if section.awaited().contains(node) {
            section.tell(node, post);
        }
    }

    pub(super) fn hear(
        &mut self,
        seat: &Seat<'_>,
        from: NodeId,
        message: Message,
        post: &mut Post<'_>,
    ) {
        let id = match &message {
            Message::Locked { section, .. }
            | Message::Queued { section }
            | Message::Refused { section, .. }
            | Message::Stored { section }
            | Message::Probe { section } => *section,
            _ => return self.hear_about_claim(seat, from, message, post),
        };
        let Some(section) = self.own.section.as_mut().filter(|section| section.id == id) else {
            // The section is over, and the member may have its lock back. But the section may have
            // stored something elsewhere.
            if matches!(message, Message::Locked { .. } | Message::Probe { .. }) {
                post.send(from, Message::Unlock { section: id, clean: false });
            }
            return;
        };
        if !section.quorum.contains(&from) {
            return post.out.anomaly(from, "an answer from a member that was not asked");
        }
        match (message, &mut section.phase) {
            (
                Message::Locked { sheet, known_for, overdue, floor, .. },
                Phase::Locking { known },
            ) => {
                if section.quorum.get(known.len()) != Some(&from) {
                    return; // The same answer again.
                }
                section.rings = 0;
                known.push(Known { sheet, known_for, overdue, floor });
                if known.len() < section.quorum.len() && !broken!(seat, LockOne) {
                    return section.repeat(post);
                }
                self.change(seat, post);
            }
            (Message::Queued { .. }, _) => section.rings = 0,
            (Message::Refused { round, closed, .. }, _) => {
                self.own.round = self.own.round.max(round);
                let mut quiet = section.quiet.clone();
                if closed {
                    quiet.insert(from);
                    if !self.can_avoid(seat, &quiet) {
                        return; // It will be asked again.
                    }
                }
                self.restart(seat, quiet, post);
            }
            (Message::Probe { .. }, Phase::Locking { .. }) => {
                post.send(from, Message::Busy { section: id });
            }
            (Message::Probe { .. }, Phase::Storing { sheet, .. }) => {
                post.send(from, Message::Store { section: id, sheet: Arc::clone(sheet) });
            }
            (Message::Stored { .. }, Phase::Storing { left, .. }) => {
                section.rings = 0;
                left.remove(from);
                if left.is_empty() || broken!(seat, TellEarly) {
                    self.finish(seat, post);
                }
            }
            _ => {} // Late.
        }
    }

    /// All of the quorum is locked: the newest table is the table.
    fn change(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        let section = self.own.section.as_ref().expect("the caller has looked it up");
        let Phase::Locking { known } = &section.phase else { unreachable!("and where it is") };
        let versions = known.iter().map(|known| known.sheet.version);
        let newest = match broken!(seat, TakeOldest) {
            false => versions.max(),
            true => versions.min(),
        };
        let newest = newest.expect("quorums are not empty");
        let of_newest = || known.iter().filter(|known| known.sheet.version == newest);
        let found = Arc::clone(&of_newest().next().expect("it is one of them").sheet);
        let mut sheet = Sheet::clone(&found);
        sheet.wait(of_newest().map(|known| known.known_for).max().unwrap_or_default());
        sheet.version = newest.after(section.round);
        let overdue: BTreeSet<(ClaimId, Version)> =
            known.iter().flat_map(|known| known.overdue.iter().copied()).collect();
        let floor = known.iter().map(|known| known.floor).max().unwrap_or_default();
        let mut upshot = Upshot::default();
        sheet.expire(seat, &overdue, &mut upshot);
        let errands = std::mem::take(&mut self.own.errands);
        (self.own.tidy, self.own.unseen) = (false, false);
        for (&claim, errand) in &errands {
            let asked = self.claims.get(&claim).map(|local| (&local.wanted, local.attempt));
            sheet.run(seat, claim, errand, asked, &mut upshot);
        }
        sheet.excuse(seat, &self.suspects);
        sheet.pass(seat, floor, &mut upshot);
        let sheet = Arc::new(sheet);
        self.own.changes.note(found, &sheet);
        let section = self.own.section.as_mut().expect("the caller has looked it up");
        let left: NodeSet = section.quorum.iter().copied().collect();
        section.phase = Phase::Storing { sheet, left, sent: seat.now, errands, upshot };
        section.repeat(post);
        if !seat.pool.confirm {
            self.finish(seat, post);
        }
    }

    /// All of the quorum have the new table: everybody may know what is in it.
    fn finish(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        let section = self.own.section.take().expect("the caller has looked it up");
        let Phase::Storing { sheet, sent, errands, upshot, .. } = section.phase else {
            unreachable!("and where it is")
        };
        let until = Self::deadline(seat, sent);
        for (claim, node, attempt, shares) in upshot.ended {
            post.out.reclaim(claim, shares);
            post.send(node, Message::Lost { claim, attempt });
        }
        for claim in upshot.clashes {
            if self.claims.remove(&claim).is_some() {
                post.out.refuse(claim, Refusal::NameTaken);
            }
        }
        for (claim, sent, waited) in upshot.granted {
            let row = &sheet.rows[&claim];
            let (shares, _) = row.granted().expect("it was just granted");
            let (attempt, shares) = (row.attempt, shares.clone());
            if row.node == seat.me {
                self.on_grant(seat, (claim, attempt), shares, until, post);
            } else {
                post.send(row.node, Message::Notify { claim, attempt, shares, sent, waited });
            }
        }
        let keepers: NodeSet = section.quorum.iter().copied().collect();
        for (claim, errand) in errands {
            let row = sheet.rows.get(&claim).filter(|row| row.node == seat.me);
            match (errand, row.and_then(|row| Some((row, row.granted()?)))) {
                (Errand::Ask, Some((row, (shares, _)))) => {
                    self.on_grant(seat, (claim, row.attempt), shares.clone(), until, post);
                }
                (Errand::Ask, None) => {
                    if let Some(local) = self.claims.get_mut(&claim)
                        && local.phase == home::Phase::Waiting(Wait::Asking)
                        && row.is_some_and(|row| row.attempt == local.attempt)
                    {
                        let (keepers, unsure) = (keepers.clone(), NodeSet::new());
                        let listed = Wait::Listed { keepers, unsure, asked: false };
                        local.phase = home::Phase::Waiting(listed);
                    }
                }
                (Errand::Renew(theirs), granted) => {
                    let kept = granted.filter(|(_, (shares, _))| **shares == theirs);
                    let wanted = kept.map(|(row, _)| row.wanted.clone());
                    self.on_renewed(seat, claim, wanted, until, post);
                }
                (Errand::End(_), _) => {}
            }
        }
        self.open_section(seat, post);
    }
}
