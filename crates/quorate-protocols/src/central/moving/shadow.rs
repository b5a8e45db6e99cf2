//! The shadow: a node that is told every grant before the client is (charter spec S13 to S17).
//!
//! Whoever decides tells its shadow what it grants, and tells the home when the shadow has answered
//! (charter spec S13). The shadow keeps what it heard, of each unit the largest fence, and ends
//! nothing by itself (charter spec S14). If it never answers, nobody new is told anything until the
//! seat's node has applied that the shadow is struck (charter spec S15). One that was named while
//! there were holders is sent all of them, and is vouched for when it has answered to that (charter
//! spec S16). Renewals need not be told. What is over is told at once, with whatever is granted by
//! it, and nobody waits for that: a shadow that has not heard of it when it takes over keeps the
//! units for a lease, and no law depends on it.

use std::collections::BTreeMap;

use quorate_core::{ClaimId, Fence, Moment, NodeId, Shadow, Shadowing, Share, Shares, Unit};

use super::message::{Message, Shown};
use super::reign::{Reign, Stage};
use super::{Desk, Moving, Seat, Word, judge};
use crate::central::booked::State;
use crate::central::pool::broken;

/// A grant as a seat shows it: who asked last, by which clock, and for what.
pub(super) type Granted = (NodeId, Moment, Shown);

/// What a shadow was told.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Trail {
    /// By the seat of this term...
    pub(super) term: u32,
    /// ...since it was named for this time.
    pub(super) naming: u64,
    /// Whether it was shown all that was granted before.
    pub(super) all: bool,
    pub(super) granted: BTreeMap<ClaimId, Granted>,
    /// Who of these has which unit.
    pub(super) units: BTreeMap<Unit, ClaimId>,
}

/// What a seat tells its shadow.
pub(super) struct Told {
    pub(super) term: u32,
    pub(super) naming: u64,
    pub(super) all: bool,
    pub(super) granted: Vec<Granted>,
    pub(super) ended: Vec<(ClaimId, Fence)>,
}

impl Trail {
    fn new(term: u32, naming: u64) -> Self {
        Trail { term, naming, all: false, granted: BTreeMap::new(), units: BTreeMap::new() }
    }

    /// Takes in one grant, unless something newer is known of its claim or of one of its units:
    /// links repeat and reorder (charter spec S14). Whoever had one of these units keeps its
    /// others.
    fn take(&mut self, it: Granted) {
        let (claim, shares) = (it.2.claim, it.2.shares.clone());
        let later = |known: &Granted| known.2.shares.newest() > shares.newest();
        let newer = |share: &Share| {
            let known = self.units.get(&share.unit).and_then(|claim| self.granted.get(claim));
            let mut known = known.into_iter().flat_map(|(_, _, known)| known.shares.iter());
            known.any(|known| known.unit == share.unit && known.fence > share.fence)
        };
        if self.granted.get(&claim).is_some_and(later) || shares.iter().any(newer) {
            return;
        }
        self.drop(claim);
        for share in &shares {
            if let Some(before) = self.units.insert(share.unit, claim)
                && let Some((_, _, known)) = self.granted.get_mut(&before)
            {
                let left: Vec<Share> =
                    known.shares.iter().filter(|it| it.unit != share.unit).copied().collect();
                known.shares = Shares::new(&left);
                if left.is_empty() {
                    self.granted.remove(&before);
                }
            }
        }
        self.granted.insert(claim, it);
    }

    /// What this claim had up to this fence is over. It may have been granted anew since.
    fn end(&mut self, claim: ClaimId, fence: Fence, any: bool) {
        let known = self.granted.get(&claim);
        if known.is_some_and(|(_, _, it)| it.shares.newest() <= Some(fence) || any) {
            self.drop(claim);
        }
    }

    fn drop(&mut self, claim: ClaimId) {
        let gone = self.granted.remove(&claim);
        for share in gone.iter().flat_map(|(_, _, it)| it.shares.iter()) {
            self.units.remove(&share.unit);
        }
    }
}

impl Reign {
    /// What this claim has, as a shadow is told.
    fn shown(&self, claim: ClaimId) -> Option<Granted> {
        let booked = self.arbiter.entries.get(&claim)?;
        let State::Granted { held, .. } = &booked.state else { return None };
        let (attempt, shares) = (booked.asker.attempt, held.shares.clone());
        Some((booked.asker.node, booked.sent, Shown { claim, attempt, shares }))
    }

    /// What this claim had is over, if it has nothing now: then the shadow hears of it. Whatever it
    /// is granted later has a larger fence.
    pub(super) fn ended(&self, claim: ClaimId, though_it_stands: bool) -> Option<(ClaimId, Fence)> {
        let over = !self.has(claim) || though_it_stands;
        (self.shadow.is_some() && over).then_some((claim, self.arbiter.fence))
    }

    /// Whether somebody could go on at once if this node were gone.
    pub(super) fn is_shadowed(&self) -> bool {
        self.vouched && self.shadow.is_some_and(|shadow| shadow.whole)
    }

    /// How it is with whoever shadows this seat.
    pub(super) fn shadowing(&self) -> Option<Shadowing> {
        let Shadow { node, naming, .. } = self.shadow?;
        let whole = self.is_shadowed();
        Some(Shadowing { node, naming, whole, silent_since: self.asked.filter(|_| self.is_owed()) })
    }

    /// Whether the shadow has not answered for something that still is so.
    pub(super) fn is_owed(&self) -> bool {
        !self.vouched || self.untold.iter().any(|claim| self.has(*claim))
    }

    /// What homes are told only when the shadow knows of it.
    pub(super) fn withholds(&mut self, word: &Word) -> bool {
        let (Word::Grant { claim, .. } | Word::Move { claim, .. }) = word else { return false };
        self.shadow.is_some() && {
            self.untold.insert(*claim);
            true
        }
    }

    /// The answers to claims of which the shadow knows this, or that need not wait any more.
    fn answers(&mut self, claim: ClaimId, known: Option<Fence>) -> Vec<(NodeId, Word)> {
        let Some(booked) = self.arbiter.entries.get(&claim) else {
            self.untold.remove(&claim);
            return Vec::new();
        };
        let State::Granted { held, .. } = &booked.state else { return Vec::new() };
        if known.is_some_and(|fence| held.shares.newest() != Some(fence))
            || !self.untold.remove(&claim)
        {
            return Vec::new();
        }
        let (node, attempt) = (booked.asker.node, booked.asker.attempt);
        let moves = held.moves.iter().map(|&it| (node, Word::Move { claim, attempt, it }));
        std::iter::once(booked.answer(claim)).chain(moves).collect()
    }
}

impl Moving {
    /// Who shadows this node's seat, if it decides.
    pub(super) fn shadow(&self) -> Option<Shadow> {
        self.reign.as_ref()?.shadow
    }

    /// Whether this node decides, and its shadow owes it an answer.
    pub fn awaits_its_shadow(&self) -> bool {
        self.reign.as_ref().is_some_and(|reign| reign.shadow.is_some() && reign.is_owed())
    }

    /// This node has applied who shadows its term.
    pub(super) fn on_shadowed(
        &mut self,
        seat: &Seat<'_>,
        term: u32,
        shadow: Option<Shadow>,
        desk: &mut Desk<'_>,
    ) {
        let Some(reign) = self.reign.as_mut().filter(|reign| reign.tenure.term == term) else {
            return;
        };
        let naming = |shadow: &Option<Shadow>| shadow.as_ref().map(|it| it.naming);
        let is_new = naming(&reign.shadow) != naming(&shadow);
        reign.shadow = shadow;
        if is_new {
            (reign.vouched, reign.asked) = (shadow.is_none(), None);
        }
        match shadow {
            None => self.flush(seat, desk),
            Some(it) if broken!(judge(seat, term), VouchAtOnce) => desk.out.vouch(term, it.naming),
            Some(_) => self.show_all(seat, desk),
        }
    }

    /// Nobody has to know of a grant before its home does.
    pub(super) fn flush(&mut self, seat: &Seat<'_>, desk: &mut Desk<'_>) {
        let Some(reign) = &mut self.reign else { return };
        for claim in std::mem::take(&mut reign.untold) {
            reign.untold.insert(claim);
            let words = reign.answers(claim, None);
            desk.say(seat, reign, words);
        }
    }

    /// A shadow that is not vouched for yet is shown all that is granted, now and until it answers.
    pub(super) fn show_all(&mut self, seat: &Seat<'_>, desk: &mut Desk<'_>) {
        let unshown = |it: &&Reign| it.stage == Stage::Open && !it.vouched;
        let Some(reign) = self.reign.as_deref().filter(unshown) else { return };
        let granted = reign.arbiter.entries.keys().filter_map(|it| reign.shown(*it)).collect();
        self.tell(seat, true, (granted, Vec::new()), desk);
    }

    /// What it was told may be lost: if it has not answered for a while it is told again.
    pub(super) fn tell_again(&mut self, seat: &Seat<'_>, desk: &mut Desk<'_>) {
        self.show_all(seat, desk);
        let Some(reign) = &self.reign else { return };
        if reign.asked.is_some_and(|asked| seat.now.since(asked) >= seat.pool.ask_every()) {
            let granted: Vec<Granted> =
                reign.untold.iter().filter_map(|it| reign.shown(*it)).collect();
            if !granted.is_empty() {
                self.tell(seat, false, (granted, Vec::new()), desk);
            }
        }
    }

    /// Tells the shadow of grants of which homes wait to be told, and of what is over.
    pub(super) fn tell_shadow(
        &mut self,
        seat: &Seat<'_>,
        claims: &[ClaimId],
        ended: Vec<(ClaimId, Fence)>,
        desk: &mut Desk<'_>,
    ) {
        let Some(reign) = &self.reign else { return };
        let granted: Vec<Granted> = claims.iter().filter_map(|it| reign.shown(*it)).collect();
        if !granted.is_empty() || !ended.is_empty() {
            self.tell(seat, false, (granted, ended), desk);
        }
    }

    fn tell(
        &mut self,
        seat: &Seat<'_>,
        all: bool,
        (granted, ended): (Vec<Granted>, Vec<(ClaimId, Fence)>),
        desk: &mut Desk<'_>,
    ) {
        let Some(reign) = self.reign.as_mut() else { return };
        let Some(Shadow { node, boot, naming, .. }) = reign.shadow else { return };
        if all || !granted.is_empty() {
            reign.asked.get_or_insert(seat.now);
        }
        let term = reign.tenure.term;
        desk.out.tell(node, Message::Tell { term, boot, naming, all, granted, ended });
    }

    /// As a shadow, hears of grants. It answers no seat of a term that is over as far as it knows:
    /// so that one can grant nothing new, however long it has a licence (charter spec S17).
    pub(super) fn on_tell(
        &mut self,
        seat: &Seat<'_>,
        (from, boot): (NodeId, u32),
        Told { term, naming, all, granted, ended }: Told,
        desk: &mut Desk<'_>,
    ) {
        let at = judge(seat, term);
        let over = self.applied.is_some_and(|applied| applied.term > term);
        if boot != seat.boot || over && !broken!(at, AnswerTellsAfter) {
            return; // Another life of this node knew more than this one does.
        }
        // Whatever it was told as an earlier shadow may lack what was granted in between.
        if self.trail.as_ref().is_none_or(|it| (it.term, it.naming) < (term, naming)) {
            self.trail = Some(Box::new(Trail::new(term, naming)));
        }
        let now = |it: &&mut Box<Trail>| (it.term, it.naming) == (term, naming);
        let Some(trail) = self.trail.as_mut().filter(now) else { return };
        for (claim, fence) in ended {
            trail.end(claim, fence, broken!(at, EndAnyGrant));
        }
        let named = |(_, _, it): &Granted| Some((it.claim, it.shares.newest()?));
        let claims: Vec<_> = granted.iter().filter_map(named).collect();
        granted.into_iter().for_each(|it| trail.take(it));
        trail.all |= all;
        if all || !claims.is_empty() {
            desk.out.tell(from, Message::Told { term, naming, all, claims });
        }
    }

    /// The shadow knows of these.
    pub(super) fn on_told(
        &mut self,
        seat: &Seat<'_>,
        (from, term): (NodeId, u32),
        (naming, all): (u64, bool),
        claims: Vec<(ClaimId, Fence)>,
        desk: &mut Desk<'_>,
    ) {
        let Some(reign) = self.reign.as_mut().filter(|reign| reign.tenure.term == term) else {
            return;
        };
        let its = |shadow: &Shadow| (shadow.node, shadow.naming) == (from, naming);
        if !reign.shadow.as_ref().is_some_and(its) {
            return;
        }
        for (claim, fence) in claims {
            let words = reign.answers(claim, Some(fence));
            desk.say(seat, reign, words);
        }
        if all && !reign.vouched {
            reign.vouched = true;
            desk.out.vouch(term, naming);
        }
        reign.asked = reign.is_owed().then_some(seat.now);
    }

    /// Whether this life was told all that the seat of that term gave, since it was named so. If
    /// not it waits as anybody else would: the charter speaks of groups, and this pool may be
    /// younger than its word.
    pub(super) fn knows_all(
        &self,
        at: &crate::central::Seat<'_>,
        after: Option<u32>,
        naming: u64,
    ) -> bool {
        let unshown_too = [broken!(at, InheritUnshown), broken!(at, VouchAtOnce)].contains(&true);
        let since = |trail: &Trail| trail.naming == naming || broken!(at, InheritEarlier);
        let last = |trail: &Trail| Some(trail.term) == after && since(trail) && trail.all;
        unshown_too || self.trail.as_deref().is_some_and(last)
    }

    /// The charter calls this life of this node, which shadowed the seat before, to decide: it
    /// knows whatever was told to any client, and opens (charter spec S17). What it took over may
    /// be renewed by the seat before while that has a licence: those leases begin when it has none.
    pub(super) fn inherit(&mut self, seat: &Seat<'_>, after: Option<u32>, desk: &mut Desk<'_>) {
        let trail = self.trail.take().filter(|trail| Some(trail.term) == after);
        self.as_seat(seat, desk, |reign, at, post| {
            reign.stage = Stage::Heir;
            for (node, sent, shown) in
                trail.into_iter().flat_map(|trail| trail.granted.into_values())
            {
                reign.note_all(at, node, sent, std::slice::from_ref(&shown), post.out);
                if broken!(at, LeaseFromTakeover) {
                    let lease = reign.arbiter.keeps(at, shown.claim);
                    post.out.arm(crate::central::Alarm::LeaseEnd(shown.claim), lease);
                }
            }
        });
        desk.out.arm(super::Alarm::Lull, seat.pool.lull());
    }
}
