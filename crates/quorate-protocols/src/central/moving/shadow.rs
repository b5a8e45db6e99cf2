//! The shadow: a node that is told every grant before the client is (charter spec S13 to S17).
//!
//! Whoever decides tells its shadow what it grants, and tells the home when the shadow has answered
//! (charter spec S13). The shadow keeps what it heard, of each unit the largest fence, and ends
//! nothing by itself (charter spec S14). If it never answers, nobody new is told anything until the
//! seat's node has applied that the shadow is struck (charter spec S15). One that was named while
//! there were holders is sent all of them, and is vouched for when it has answered to that (charter
//! spec S16). Renewals and ends need not be told: what is over costs a lease at most, if the shadow
//! has to take over.

use std::collections::BTreeMap;

use quorate_core::{ClaimId, Fence, Moment, NodeId, Shadow, Shares};

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
    /// By the seat of this term.
    pub(super) term: u32,
    pub(super) granted: BTreeMap<ClaimId, Granted>,
}

impl Trail {
    /// Takes in one grant, unless something newer is known of one of its units: links repeat and
    /// reorder (charter spec S14).
    fn take(&mut self, it: Granted) {
        let shown = &it.2;
        let newer = |known: &Shares| {
            let mut pairs = known.iter().flat_map(|k| shown.shares.iter().map(move |s| (k, s)));
            pairs.any(|(k, s)| k.unit == s.unit && k.fence > s.fence)
        };
        if self.granted.values().any(|(_, _, known)| newer(&known.shares)) {
            return;
        }
        let meets =
            |known: &Shares| known.iter().any(|k| shown.shares.iter().any(|s| s.unit == k.unit));
        self.granted.retain(|_, (_, _, known)| !meets(&known.shares));
        self.granted.insert(shown.claim, it);
    }
}

impl Reign {
    /// Everything that is granted, or this of it, as a shadow is told.
    fn shown(&self, which: impl Fn(ClaimId) -> bool) -> Vec<Granted> {
        let entries = self.arbiter.entries.iter().filter(|(claim, _)| which(**claim));
        let granted = entries.filter_map(|(&claim, booked)| {
            let State::Granted { held, .. } = &booked.state else { return None };
            let (attempt, shares) = (booked.asker.attempt, held.shares.clone());
            Some((booked.asker.node, booked.sent, Shown { claim, attempt, shares }))
        });
        granted.collect()
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
            reign.vouched = shadow.is_none_or(|it| it.whole);
        }
        match shadow {
            None => self.flush(desk),
            Some(it) if broken!(judge(seat, term), VouchAtOnce) => desk.out.vouch(term, it.naming),
            Some(_) => self.show_all(desk),
        }
    }

    /// Nobody has to know of a grant before its home does.
    pub(super) fn flush(&mut self, desk: &mut Desk<'_>) {
        let Some(reign) = &mut self.reign else { return };
        for claim in std::mem::take(&mut reign.untold) {
            reign.untold.insert(claim);
            let words = reign.answers(claim, None);
            let term = reign.tenure.term;
            desk.words.extend(words.into_iter().map(|(to, word)| (to, term, word)));
        }
    }

    /// A shadow that is not vouched for yet is shown all that is granted, now and until it answers.
    pub(super) fn show_all(&mut self, desk: &mut Desk<'_>) {
        let Some(reign) = self.reign.as_ref().filter(|it| it.stage == Stage::Open && !it.vouched)
        else {
            return;
        };
        if let Some(Shadow { node, boot, naming, .. }) = reign.shadow {
            let (term, granted) = (reign.tenure.term, reign.shown(|_| true));
            desk.out.tell(node, Message::Tell { term, boot, naming: Some(naming), granted });
        }
    }

    /// Tells the shadow of grants of which homes wait to be told.
    pub(super) fn tell_shadow(&self, claims: &[ClaimId], desk: &mut Desk<'_>) {
        let Some(reign) = &self.reign else { return };
        let Some(Shadow { node, boot, .. }) = reign.shadow else { return };
        let granted = reign.shown(|claim| claims.contains(&claim));
        if !granted.is_empty() {
            let term = reign.tenure.term;
            desk.out.tell(node, Message::Tell { term, boot, naming: None, granted });
        }
    }

    /// As a shadow, hears of grants. It answers no seat of a term that is over as far as it knows:
    /// so that one can grant nothing new, however long it has a licence (charter spec S17).
    pub(super) fn on_tell(
        &mut self,
        seat: &Seat<'_>,
        (from, term, boot): (NodeId, u32, u32),
        naming: Option<u32>,
        granted: Vec<Granted>,
        desk: &mut Desk<'_>,
    ) {
        let at = judge(seat, term);
        let over = self.applied.is_some_and(|applied| applied.term > term);
        if boot != seat.boot || over && !broken!(at, AnswerTellsAfter) {
            return; // Another life of this node knew more than this one does.
        }
        let named = |(_, _, it): &Granted| Some((it.claim, it.shares.newest()?));
        let claims = granted.iter().filter_map(named).collect();
        if self.trail.as_ref().is_none_or(|trail| trail.term < term) {
            self.trail = Some(Box::new(Trail { term, granted: BTreeMap::new() }));
        }
        if let Some(trail) = self.trail.as_mut().filter(|trail| trail.term == term) {
            granted.into_iter().for_each(|it| trail.take(it));
            desk.out.tell(from, Message::Told { term, naming, claims });
        }
    }

    /// The shadow knows of these.
    pub(super) fn on_told(
        &mut self,
        (from, term): (NodeId, u32),
        naming: Option<u32>,
        claims: Vec<(ClaimId, Fence)>,
        desk: &mut Desk<'_>,
    ) {
        let Some(reign) = self.reign.as_mut().filter(|reign| reign.tenure.term == term) else {
            return;
        };
        let Some(shadow) = reign.shadow.filter(|shadow| shadow.node == from) else { return };
        for (claim, fence) in claims {
            let words = reign.answers(claim, Some(fence));
            desk.words.extend(words.into_iter().map(|(to, word)| (to, term, word)));
        }
        if naming == Some(shadow.naming) && !reign.vouched {
            reign.vouched = true;
            desk.out.vouch(term, shadow.naming);
        }
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
                    let lease = at.pool.goods.lease.length();
                    post.out.arm(crate::central::Alarm::LeaseEnd(shown.claim), lease);
                }
            }
        });
        desk.out.arm(super::Alarm::Lull, seat.pool.lull());
    }
}
