//! The requester's half, as members see it: tickets are proposed, views come, and once all of a
//! quorum leave room the client may go.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use quorate_core::{ClaimId, Fence, Moment, NodeId};

use super::local::{Phase, Round, Said};
use super::member::shares;
use super::message::{Message, Rival};
use super::pool::broken;
use super::requester::Requester;
use super::{Post, Seat};
use crate::home::About;
use crate::quorums::asking::{lasting_quorum, too_few};

impl Requester {
    pub(super) fn hear(
        &mut self,
        seat: &Seat<'_>,
        from: NodeId,
        message: Message,
        post: &mut Post<'_>,
    ) {
        match message {
            Message::Propose { claim, attempt, ticket } => {
                self.on_propose(seat, About { from, claim, attempt }, ticket, post);
            }
            Message::View { claim, attempt, rivals, mark, sent } => {
                self.on_view(seat, About { from, claim, attempt }, (rivals, mark, sent), post);
            }
            Message::Queued { claim, attempt, mark } => {
                let about = About { from, claim, attempt };
                if let Some((said, _)) = self.said(about) {
                    said.rings = 0; // The member lives, and knows the claim.
                    self.heed(seat, about, mark, post);
                }
            }
            Message::Renewed { claim, attempt, sent } => {
                self.on_renewed(seat, About { from, claim, attempt }, sent, post);
            }
            Message::Lost { claim, attempt } => {
                self.on_lost(seat, About { from, claim, attempt }, post);
            }
            Message::Register { .. } | Message::Settle { .. } | Message::Release { .. } => {
                unreachable!("messages for members go to the member")
            }
        }
    }

    fn said(&mut self, about: About) -> Option<(&mut Said, Phase)> {
        let local = self.claims.get_mut(&about.claim)?;
        let phase = local.phase;
        let said = local.quorum.get_mut(&about.from).filter(|_| local.attempt == about.attempt)?;
        Some((said, phase))
    }

    /// Nobody waits for it here. But an earlier boot of this node may have asked for it: its client
    /// may use the units, and this message be an old copy.
    fn decline(&self, seat: &Seat<'_>, about: About, post: &mut Post<'_>) {
        let About { from, claim, attempt } = about;
        if attempt.boot == seat.boot && !broken!(seat, NoHeal) {
            post.send(from, Message::Release { claim, attempt, whole: false });
        }
    }

    fn on_propose(&mut self, seat: &Seat<'_>, about: About, ticket: Fence, post: &mut Post<'_>) {
        let Some((said, phase)) = self.said(about) else { return self.decline(seat, about, post) };
        said.rings = 0;
        if phase != Phase::Waiting(Round::Asking) || broken!(seat, T1OneRound) {
            return;
        }
        said.proposed = Some(ticket);
        self.settle(seat, about.claim, post);
    }

    /// Takes a ticket if all that were asked have proposed one.
    pub(super) fn settle(&mut self, seat: &Seat<'_>, claim: ClaimId, post: &mut Post<'_>) {
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        if local.phase != Phase::Waiting(Round::Asking) || broken!(seat, T1OneRound) {
            return;
        }
        // Answers come in the order in which members were asked: the last one is missing longest.
        if local.quorum.values().rev().any(|said| said.proposed.is_none()) {
            return;
        }
        let proposed = local.quorum.values().filter_map(|said| said.proposed);
        local.ticket = proposed.max().expect("quorums are not empty");
        local.phase = Phase::Waiting(Round::Settled);
        local.tell_all(seat, claim, post);
    }

    /// Forgets what a member said before this mark, and says so at once: somebody waits for it.
    fn heed(&mut self, seat: &Seat<'_>, about: About, mark: Fence, post: &mut Post<'_>) {
        let About { from, claim, .. } = about;
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        let said = local.quorum.get_mut(&from).expect("the caller has looked it up");
        if mark > said.mark {
            said.mark = mark;
            if !broken!(seat, KeepVoidViews) {
                said.rivals = None;
            }
            if !local.is_held() {
                local.tell(seat, claim, from, post);
            }
        }
    }

    fn on_view(
        &mut self,
        seat: &Seat<'_>,
        about: About,
        (rivals, mark, sent): (Arc<[Rival]>, Fence, Moment),
        post: &mut Post<'_>,
    ) {
        let About { from, claim, .. } = about;
        let Some((said, _)) = self.said(about) else { return self.decline(seat, about, post) };
        said.rings = 0;
        if mark < said.mark {
            return; // Void by now.
        }
        self.heed(seat, about, mark, post);
        let (said, phase) = self.said(about).expect("it was found here");
        let until = seat.pool.lease.deadline(sent, Duration::ZERO);
        if until <= seat.now {
            // Too late to rely on: the entry may have ended since, and others not have seen it.
            return self.claims[&claim].tell(seat, claim, from, post);
        }
        // During one lease rivals only get fewer: the shorter of two views is the newer one.
        let relied_on = said.is_relied_on(seat.now);
        match &said.rivals {
            Some(known) if relied_on && known.len() < rivals.len() => {}
            _ => said.rivals = Some(rivals),
        }
        if said.joins.is_none() {
            said.until = said.until.max(Some(until));
        }
        if matches!(phase, Phase::Held { .. }) {
            return self.go_on(seat, claim, post);
        }
        self.try_enter(seat, claim, post);
    }

    /// Lets the client in if all of its quorum have been heard and leave room for it.
    pub(super) fn try_enter(&mut self, seat: &Seat<'_>, claim: ClaimId, post: &mut Post<'_>) {
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        match local.phase {
            Phase::Waiting(Round::Settled) => {}
            Phase::Waiting(Round::Asking) if broken!(seat, T1OneRound) => {}
            // An old view does not bring back what is over.
            Phase::Waiting(_) | Phase::Held { .. } | Phase::Ending { .. } => return,
        }
        // As above: most views are not the last one, and then rivals need not be put together.
        let has_view = |said: &Said| said.rivals.is_some() && said.is_relied_on(seat.now);
        if !local.quorum.values().rev().all(has_view) {
            return;
        }
        let views = local.quorum.values().filter_map(|said| said.rivals.as_ref());
        let mut older: BTreeSet<Rival> = BTreeSet::new();
        let mut taken = u64::from(local.units.get());
        for rival in views.flat_map(|rivals| rivals.iter()) {
            if older.insert(*rival) {
                taken += u64::from(rival.units.get());
            }
            if taken > u64::from(seat.pool.units) {
                return;
            }
        }
        let until = local.deadline(seat).expect("all of its quorum can be relied on");
        let shares = shares(local.units, local.ticket);
        self.enter(seat, claim, (shares, until), post);
    }

    fn on_renewed(&mut self, seat: &Seat<'_>, about: About, sent: Moment, post: &mut Post<'_>) {
        let Some((said, _)) = self.said(about) else { return self.decline(seat, about, post) };
        let counts = match said.joins {
            Some(since) => sent >= since,
            // Its entry may have ended since, and others not have seen it.
            None => said.until.is_none_or(|until| until > seat.now) || broken!(seat, ReviveMember),
        };
        if counts {
            said.joins = None;
            said.until = said.until.max(Some(seat.pool.lease.deadline(sent, Duration::ZERO)));
            let local = &self.claims[&about.claim];
            if local.is_unconfirmed() {
                local.tell_joined(seat, about.claim, post); // Somebody knows it.
            }
            self.go_on(seat, about.claim, post);
        }
    }

    /// A member can be relied on for longer.
    fn go_on(&mut self, seat: &Seat<'_>, claim: ClaimId, post: &mut Post<'_>) {
        let local = &self.claims[&claim];
        let told = if let Phase::Held { told } = local.phase { told } else { None };
        let adds_nothing =
            |said: &Said| told >= said.until && said.until.is_none_or(|it| it < Moment::NEVER);
        if told.is_some() && too_few(&seat.pool.quorums, local.units, &local.quorum, adds_nothing) {
            return; // No quorum lasts longer than what the client was told.
        }
        let Some(until) = local.deadline(seat) else { return };
        if self.extend(seat, claim, until, post) {
            self.leave_suspects(seat, claim, post);
        }
    }

    /// Once enough others know of what is held, those believed dead are not needed (arbiter spec
    /// C5).
    fn leave_suspects(&mut self, seat: &Seat<'_>, claim: ClaimId, post: &mut Post<'_>) {
        let suspects = &self.suspects;
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        let Phase::Held { told: Some(told) } = local.phase else { return };
        let gone = local.members().intersection(suspects);
        let (quorums, how_long) = (&seat.pool.quorums, (told, suspects));
        let enough = lasting_quorum(quorums, local.units, how_long, local.relied()).is_some();
        if gone.is_empty() || !enough {
            return;
        }
        self.own.migrations.add();
        for node in gone.iter() {
            local.quorum.remove(&node);
            local.release(claim, node, post);
        }
    }

    fn on_lost(&mut self, seat: &Seat<'_>, about: About, post: &mut Post<'_>) {
        let Some((said, phase)) = self.said(about) else { return };
        let proposed = said.proposed.is_some();
        let local = self.claims.get_mut(&about.claim).expect("it was found here");
        if matches!(phase, Phase::Waiting(_)) {
            let gone = std::iter::once(about.from).collect();
            let rest = local.members().difference(&gone);
            let enough = seat.pool.quorums.contains_quorum(local.units, &rest);
            match (enough, proposed) {
                (true, _) => self.go_without(seat, about.claim, &gone, post),
                (false, true) => self.restart(seat, about.claim, post),
                // It is in grace, and will be asked again.
                (false, false) => {}
            }
            return;
        }
        if matches!(phase, Phase::Ending { .. }) {
            return; // All of it ends soon, and not before its client must have stopped.
        }
        // A member that was relied on says this only if it forgot, and then it shows nobody
        // anything for as long: the client may go on, and the member is asked to know of it again.
        // Of what a client shows here those that have not answered may still know, so far as they
        // live.
        let goes_on = match phase {
            Phase::Held { told: Some(told) } => told > seat.now,
            Phase::Held { told: None } => {
                local.quorum.entry(about.from).or_default().joins = Some(seat.now);
                local.may_be_known(seat, &self.suspects)
            }
            Phase::Waiting(_) | Phase::Ending { .. } => false,
        };
        if goes_on && seat.pool.leases_end() && !broken!(seat, LoseWhatIsForgotten) {
            let said = Said { joins: Some(seat.now), ..Said::default() };
            local.quorum.insert(about.from, said);
            local.tell_joined(seat, about.claim, post);
            return self.arm_retry(seat, post);
        }
        let nobody_knows = local.is_unconfirmed() && !goes_on;
        local.quorum.remove(&about.from);
        if nobody_knows || !seat.pool.quorums.contains_quorum(local.units, &local.members()) {
            self.lose(seat, about.claim, post);
        }
    }
}
