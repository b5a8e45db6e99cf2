//! The requester's half, as arbiters see it: permissions come, are asked back, renewed and lost,
//! and once a quorum of them is in force the client may go (arbiter spec 7.4, C1, C6).

use std::sync::Arc;
use std::time::Duration;

use quorate_core::{ClaimId, Fence, Moment, NodeId, NodeSet};

use super::local::{Local, Permit, PermitState, Phase};
use super::message::{End, GrantNumber, Message};
use super::pool::broken;
use super::requester::Requester;
use super::{Post, Seat};
use crate::home::About;
use crate::quorums::asking::{lasting_quorum, too_few};

/// A permission as an arbiter tells it.
#[derive(Clone, Copy)]
struct Given {
    grant: GrantNumber,
    floor: Fence,
    until: Moment,
    /// The pick that is locked with it.
    named: u64,
}

impl Requester {
    pub(super) fn hear(
        &mut self,
        seat: &Seat<'_>,
        from: NodeId,
        message: Message,
        post: &mut Post<'_>,
    ) {
        let lease = &seat.pool.lease;
        match message {
            Message::Grant { claim, attempt, grant, floor, sent, waited, taken, clock } => {
                self.clock.hear(clock);
                let mut until = lease.deadline(sent, waited);
                if broken!(seat, L1CountFromReceipt) {
                    until = seat.now.after(lease.length());
                }
                if broken!(seat, L3IgnoreDrift) {
                    until = sent.after(waited.saturating_add(lease.length()));
                }
                let given = Given { grant, floor, until, named: 0 };
                let about = About { from, claim, attempt };
                if let Some(local) = self.claims.get_mut(&claim)
                    && seat.pool.picks_units()
                {
                    local.taken.insert(from, Arc::clone(&taken));
                }
                self.on_grant(seat, about, given, post);
                self.look_around(seat, about, taken, post);
            }
            Message::Queued { claim, attempt, taken, clock } => {
                self.clock.hear(clock);
                self.on_queued(About { from, claim, attempt });
                self.look_around(seat, About { from, claim, attempt }, taken, post);
                #[cfg(test)]
                self.maekawa_failed(seat, claim, post);
            }
            Message::Inquire { claim, attempt, grant, clock } => {
                self.clock.hear(clock);
                self.on_inquire(seat, About { from, claim, attempt }, grant, post);
            }
            Message::Renewed { claim, attempt, grant, floor, round, sent, clock } => {
                self.clock.hear(clock);
                let mut until = lease.deadline(sent, Duration::ZERO);
                if broken!(seat, L3IgnoreDrift) {
                    until = sent.after(lease.length());
                }
                let given = Given { grant, floor, until, named: round };
                self.on_renewed(seat, About { from, claim, attempt }, given, post);
            }
            Message::Lost { claim, attempt, grant, clock } => {
                self.clock.hear(clock);
                self.on_lost(seat, About { from, claim, attempt }, grant, post);
            }
            Message::Retokened { claim, attempt, grant, token, clock } => {
                self.clock.hear(clock);
                self.on_retokened(seat, About { from, claim, attempt }, grant, token, post);
            }
            Message::Named { claim, attempt, grant, round, floor, clock } => {
                self.clock.hear(clock);
                let about = About { from, claim, attempt };
                self.on_named(seat, about, (grant, round, floor), post);
            }
            Message::Taken { claim, attempt, grant, round, taken, clock } => {
                self.clock.hear(clock);
                let about = About { from, claim, attempt };
                self.on_taken(seat, about, (grant, round), taken, post);
            }
            Message::Roll { clock } => {
                self.clock.hear(clock);
                self.on_roll(seat, from, post);
            }
            Message::Request { .. }
            | Message::Yield { .. }
            | Message::Release { .. }
            | Message::Renew { .. }
            | Message::Retoken { .. }
            | Message::Survey { .. }
            | Message::Report { .. }
            | Message::Name { .. }
            | Message::Alive { .. } => unreachable!("messages for arbiters go to the arbiter"),
        }
    }

    fn on_grant(&mut self, seat: &Seat<'_>, about: About, given: Given, post: &mut Post<'_>) {
        let About { from, claim, attempt } = about;
        self.own.fence = self.own.fence.max(given.floor);
        let local = self.claims.get_mut(&claim);
        let permit = local.and_then(|local| local.enlisted.get_mut(&from));
        let Some(permit) = permit.filter(|permit| permit.attempt == attempt) else {
            // Nobody waits for it here: give it back, so that no tombstones are needed (arbiter
            // spec M8). But what an earlier boot of ours asked for may be in use by its client
            // (arbiter spec C3).
            let foreign = attempt.boot != seat.boot && !broken!(seat, DeclineForeignBoot);
            if !foreign && !broken!(seat, M8NoHeal) && !self.may_rest_on(seat, claim, from) {
                // This may overtake the release of a client that did use its units (arbiter spec
                // C6).
                let used = !self.claims.contains_key(&claim);
                let end = if used { End::Used } else { End::Unused };
                post.send(from, Message::Release { claim, attempt, end });
            }
            return;
        };
        if given.grant <= permit.yielded && !broken!(seat, M2NoGrantNumbers) {
            // This home gave the permission back before it arrived, and says so again, in case that
            // was lost.
            return post.send(from, Message::Yield { claim, attempt, grant: given.grant });
        }
        let again =
            matches!(permit.state, PermitState::Given { grant, .. } if grant == given.grant);
        if !take(seat, &mut permit.state, given) {
            return self.ask_anew(seat, claim, from, post);
        }
        if again && broken!(seat, M7CountGrants) {
            self.count_twice(seat, claim, given);
        }
        self.go_on(seat, claim, post);
    }

    /// Whether what a client uses may rest on what an arbiter gave in an earlier try. The arbiter
    /// said, perhaps before that, that it had lost it, and is asked for it again: it is not told in
    /// the same breath that nobody needs it.
    fn may_rest_on(&self, seat: &Seat<'_>, claim: ClaimId, arbiter: NodeId) -> bool {
        let asked_again =
            |local: &Local| local.enlisted.get(&arbiter).is_some_and(|permit| !permit.is_given());
        let held = self.claims.get(&claim).filter(|local| local.is_held());
        held.is_some_and(asked_again) && !broken!(seat, DeclineWhatIsUsed)
    }

    /// A mistake for tests: the second copy of a permission counts as another arbiter's.
    fn count_twice(&mut self, seat: &Seat<'_>, claim: ClaimId, given: Given) {
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        let asked = |state: &PermitState| matches!(state, PermitState::Asked { .. });
        if let Some(other) = local.enlisted.values_mut().find(|permit| asked(&permit.state)) {
            take(seat, &mut other.state, given);
        }
    }

    fn on_queued(&mut self, About { from, claim, attempt }: About) {
        let local = self.claims.get_mut(&claim);
        let permit = local.and_then(|local| local.enlisted.get_mut(&from));
        if let Some(permit) = permit.filter(|permit| permit.attempt == attempt)
            && let PermitState::Asked { rings } = &mut permit.state
        {
            *rings = 0; // The arbiter lives, and has the claim in its queue.
        }
    }

    fn on_inquire(
        &mut self,
        seat: &Seat<'_>,
        About { from, claim, attempt }: About,
        grant: GrantNumber,
        post: &mut Post<'_>,
    ) {
        let Some(local) = self.claims.get_mut(&claim) else { return };
        // What is in use is not given back; its release answers (arbiter spec M4).
        let held = local.is_held() && !broken!(seat, M4HolderYields);
        let Some(permit) = local.enlisted.get_mut(&from) else { return };
        let newer = grant > permit.yielded || broken!(seat, M2NoGrantNumbers);
        if held || permit.attempt != attempt || !newer {
            return;
        }
        #[cfg(test)]
        if broken!(seat, MaekawaFailed) && !local.failed {
            permit.inquired = Some(grant);
            return;
        }
        // Also when the permission itself has not arrived yet: it will be known by its number.
        permit.yielded = grant;
        permit.state = PermitState::Asked { rings: 0 };
        post.send(from, Message::Yield { claim, attempt, grant });
    }

    /// Maekawa's rule: who has heard that it will not be served now gives way, also to those that
    /// asked before.
    #[cfg(test)]
    fn maekawa_failed(&mut self, seat: &Seat<'_>, claim: ClaimId, post: &mut Post<'_>) {
        let Some(local) = self.claims.get_mut(&claim) else { return };
        if !broken!(seat, MaekawaFailed) || local.is_held() {
            return;
        }
        local.failed = true;
        let asked =
            |permit: &mut super::local::Permit| Some((permit.attempt, permit.inquired.take()?));
        let asked: Vec<_> = local
            .enlisted
            .iter_mut()
            .filter_map(|(&from, permit)| Some((from, asked(permit)?)))
            .collect();
        for (from, (attempt, grant)) in asked {
            self.on_inquire(seat, About { from, claim, attempt }, grant, post);
        }
    }

    fn on_renewed(
        &mut self,
        seat: &Seat<'_>,
        About { from, claim, attempt }: About,
        given: Given,
        post: &mut Post<'_>,
    ) {
        self.own.fence = self.own.fence.max(given.floor);
        let local = self.claims.get_mut(&claim);
        let permit = local.and_then(|local| local.enlisted.get_mut(&from));
        let Some(permit) = permit.filter(|permit| permit.attempt == attempt) else {
            return; // Released meanwhile; the release is on its way.
        };
        if given.grant <= permit.yielded {
            return;
        }
        if !take(seat, &mut permit.state, given) {
            return self.ask_anew(seat, claim, from, post);
        }
        if let PermitState::Given { grant, named, told, .. } = &mut permit.state
            && *grant == given.grant
        {
            // An arbiter that forgot, or one that was never told, has other units locked or none.
            if !broken!(seat, C7MoveWithoutNames) {
                *named = given.named;
            }
            *told = if *told == *named { *told } else { 0 };
        }
        let was_unconfirmed = self.claims[&claim].is_unconfirmed();
        self.go_on(seat, claim, post);
        if was_unconfirmed {
            self.reach_out(seat, claim, post);
        }
    }

    fn on_lost(
        &mut self,
        seat: &Seat<'_>,
        About { from, claim, attempt }: About,
        lost: Option<GrantNumber>,
        post: &mut Post<'_>,
    ) {
        let Some(local) = self.claims.get_mut(&claim) else { return };
        let Some(permit) = local.enlisted.get(&from).filter(|p| p.attempt == attempt) else {
            return;
        };
        if let (Some(lost), PermitState::Given { grant, .. }) = (lost, permit.state)
            && lost != grant
        {
            return;
        }
        if lost.is_some() && matches!(permit.state, PermitState::Asked { .. }) {
            return; // The message is about a permission that this home gave back itself.
        }
        if !local.is_held() {
            // The client still wants its units, and keeps its age.
            return self.ask_anew(seat, claim, from, post);
        }
        if matches!(local.phase, Phase::Ending { .. }) {
            return; // All of it ends soon, and not before its client must have stopped.
        }
        let stopped = local.phase.has_stopped(seat.now);
        let was_shown = permit.state == PermitState::Shown;
        local.enlisted.remove(&from);
        // An arbiter whose promise lasts says this only if it forgot, and then it promises nothing
        // else for as long: the client may go on, and others are asked meanwhile. Of what a client
        // shows here those that have not answered may still know, so far as they live.
        let enough = seat.pool.quorums.contains_quorum(local.wish.units, &local.counted_on());
        let may_go_on = match local.phase {
            Phase::Held { told: Some(_) } => !stopped,
            Phase::Held { told: None } => local.may_be_known(seat, &self.suspects),
            Phase::Waiting(_) | Phase::Ending { .. } => false,
        };
        let (at_once, given_back) =
            (broken!(seat, LoseWhatIsForgotten), broken!(seat, GiveBackWhatIsLost));
        let may_go_on = may_go_on && seat.pool.leases_end() && !at_once && !given_back;
        if !enough && !may_go_on {
            return self.lose(seat, claim, post);
        }
        local.lacks |= !enough;
        // Or it said so before it gave what the client uses, and the message is late: then it has
        // that still, and is asked for it under a new try rather than left out, where it would
        // hear that nobody needs it.
        if !was_shown && !stopped && seat.pool.leases_end() {
            self.ask_anew(seat, claim, from, post);
        }
        self.reach_out(seat, claim, post);
    }

    fn on_retokened(
        &mut self,
        seat: &Seat<'_>,
        About { from, claim, attempt }: About,
        number: GrantNumber,
        token: Fence,
        post: &mut Post<'_>,
    ) {
        let local = self.claims.get_mut(&claim);
        let permit = local.and_then(|local| local.enlisted.get_mut(&from));
        let Some(permit) = permit.filter(|permit| permit.attempt == attempt) else { return };
        if matches!(permit.state, PermitState::Given { grant, .. } if grant == number) {
            permit.token = permit.token.max(token);
            self.try_enter(seat, claim, false, post);
        }
    }

    /// A permission came or was renewed: somebody waiting may enter, somebody inside go on longer.
    pub(super) fn go_on(&mut self, seat: &Seat<'_>, claim: ClaimId, post: &mut Post<'_>) {
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        match local.phase {
            Phase::Waiting(_) => return self.try_enter(seat, claim, false, post),
            Phase::Ending { .. } => return,
            Phase::Held { .. } => {}
        }
        if local.phase.has_stopped(seat.now) && !broken!(seat, L6ReviveDead) {
            return; // Dead is for good: its client has stopped (arbiter spec C1).
        }
        local.lacks &= !seat.pool.quorums.contains_quorum(local.wish.units, &local.counted_on());
        let until = local.deadline(seat).unwrap_or(Moment(0));
        if self.extend(seat, claim, until, post) {
            self.leave_suspects(seat, claim, post);
        }
        self.name_used(seat, claim, false, post);
    }

    /// Once enough others have given their permission, those believed dead are not needed (arbiter
    /// spec C5).
    fn leave_suspects(&mut self, seat: &Seat<'_>, claim: ClaimId, post: &mut Post<'_>) {
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        let Phase::Held { told: Some(told) } = local.phase else { return };
        let (quorums, how_long) = (&seat.pool.quorums, (told, &self.suspects));
        let found = lasting_quorum(quorums, local.wish.units, how_long, local.relied());
        let Some(quorum) = found else { return };
        if local.enlisted.keys().all(|&node| !self.suspects.contains(node)) {
            return;
        }
        self.own.migrations.add();
        local.enlisted.retain(|&node, permit| {
            let stays = quorum.contains(node) || !self.suspects.contains(node);
            if !stays {
                let attempt = permit.attempt;
                post.send(node, Message::Release { claim, attempt, end: End::Unused });
            }
            stays
        });
    }

    /// Lets the client in if a quorum's permissions are in force, its fence exceeds all their
    /// floors, and all of them know it. `again` repeats what they were told, in case it was lost.
    pub(super) fn try_enter(
        &mut self,
        seat: &Seat<'_>,
        claim: ClaimId,
        again: bool,
        post: &mut Post<'_>,
    ) {
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        if local.is_held() {
            return;
        }
        let is_live = |permit: &Permit| permit.until().is_some_and(|until| until > seat.now);
        let (quorums, units) = (&seat.pool.quorums, local.wish.units);
        if too_few(quorums, units, &local.enlisted, |permit| !is_live(permit)) {
            return;
        }
        let (live, token) = (local.live(seat), local.token);
        let settled = |node: NodeId| local.enlisted[&node].token == token;
        let Some(quorum) = quorums.within(units, &live, settled) else {
            return;
        };
        if seat.pool.picks_units() && !self.settle_pick(seat, claim, &quorum, again, post) {
            return;
        }
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        let floor = |node: NodeId| match local.enlisted[&node].state {
            PermitState::Given { floor, .. } => floor,
            PermitState::Asked { .. } | PermitState::Shown => unreachable!("it is in force"),
        };
        let floor = quorum.iter().map(floor).max().expect("quorums are not empty");
        if floor >= local.token {
            // An older holder had a larger one. Its age stays what it is (arbiter spec C6).
            local.token = floor.next();
            self.own.fence = self.own.fence.max(local.token);
        }
        let mut settled = true;
        for node in quorum.iter() {
            let permit = local.enlisted.get_mut(&node).expect("it is in force");
            let (attempt, token) = (permit.attempt, local.token);
            let PermitState::Given { grant, retold, .. } = &mut permit.state else {
                unreachable!("it is in force");
            };
            if permit.token == token || broken!(seat, F2SecretToken) {
                continue;
            }
            settled = false;
            if again || *retold != token {
                *retold = token;
                post.send(node, Message::Retoken { claim, attempt, grant: *grant, token });
            }
        }
        if settled {
            self.go_in(seat, claim, &quorum, post);
        }
    }

    fn go_in(&mut self, seat: &Seat<'_>, claim: ClaimId, quorum: &NodeSet, post: &mut Post<'_>) {
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        local.enlisted.retain(|&node, permit| {
            let needed = quorum.contains(node);
            if !needed {
                let attempt = permit.attempt;
                post.send(node, Message::Release { claim, attempt, end: End::Unused });
            }
            needed
        });
        let until = local.deadline(seat).expect("a quorum's permissions are in force");
        let shares = local.shares();
        self.enter(seat, claim, (shares, until), post);
    }
}

/// Takes a permission. A repetition of an older answer never shortens it. Says whether it can be
/// relied on.
///
/// It cannot if it comes when it is over, or when what it prolongs is: its arbiter may have ended
/// it, given another its permission, and forgotten both. An arbiter that forgot takes up what it is
/// shown, and cannot know. Whoever hears of it while it lasts can: then it had not ended (arbiter
/// spec C3).
fn take(seat: &Seat<'_>, state: &mut PermitState, new: Given) -> bool {
    let Given { grant, floor, until, .. } = new;
    let (ended, dead) = (broken!(seat, ReviveWhatEnded), broken!(seat, L6ReviveDead));
    let revives = ended || dead;
    match state {
        PermitState::Given { grant: known, until: lasts, floor: known_floor, .. }
            if *known == grant =>
        {
            if *lasts <= seat.now && !revives {
                return false;
            }
            *lasts = until.max(*lasts);
            *known_floor = floor.max(*known_floor);
            true
        }
        PermitState::Given { grant: known, .. } if *known > grant => true,
        _ => {
            let (retold, told, named, watched) = (Fence::default(), 0, 0, false);
            *state = PermitState::Given { grant, floor, until, retold, told, named, watched };
            until > seat.now || revives
        }
    }
}
