//! The requester's half, as its clients and its alarm see it: a ticket for each claim, and members
//! to rely on for what is held. What members answer is heard in [`super::hearing`].

use std::time::Duration;

use quorate_core::{Claim, ClaimId, Fact, Fence, Moment, NodeId, NodeSet, Refusal, Shares, Units};

use super::local::{Local, Phase, Round, Said};
use super::member::shares;
use super::message::Message;
use super::pool::{Pool, broken};
use super::{Alarm, Post, Seat, Ticket};
use crate::count::Count;
use crate::home::{Asks, Home, Rule};
use crate::quorums::asking::{self, and_more, first_choice, replacement};

/// The claims of a node's own clients.
pub(super) type Requester = Home<Tickets>;

/// What the homes of `ticket` count.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Tickets {
    /// How often a claim had to start again.
    restarts: Count,
    /// How often what is held left members that are suspected.
    pub(super) migrations: Count,
}

impl Asks for Tickets {
    type Protocol = Ticket;
    type Local = Local;
    type Wait = Round;

    const RETRY: Alarm = Alarm::Retry;

    fn retry(pool: &Pool) -> Duration {
        pool.retry
    }

    fn longest(pool: &Pool) -> Duration {
        pool.lease.length()
    }

    fn phase(local: &mut Local) -> &mut Phase {
        &mut local.phase
    }

    fn ask(
        home: &mut Requester,
        seat: &Seat<'_>,
        claim: &Claim,
        post: &mut Post<'_>,
    ) -> Result<Local, Refusal> {
        if claim.wanted.lines.is_some() {
            return Err(Refusal::NotByName);
        }
        let (units, draw) = (claim.wanted.units, claim.draw);
        Ok(home.start(seat, claim.id, units, draw, Fence::default(), post))
    }

    fn end(
        home: &mut Requester,
        seat: &Seat<'_>,
        claim: ClaimId,
        local: Option<Local>,
        post: &mut Post<'_>,
    ) {
        match local {
            Some(local) => local.release_all(claim, post),
            None => {
                // We do not know whom it asked.
                let attempt = home.next_attempt(seat);
                for node in seat.pool.quorums.members().iter() {
                    post.send(node, Message::Release { claim, attempt, whole: true });
                }
            }
        }
    }

    /// Its fence is its ticket, and its quorum knows that.
    fn take_over(home: &mut Requester, seat: &Seat<'_>, shown: &Shares) -> Option<Local> {
        let units = Units::new(u32::try_from(shown.len()).ok()?, seat.pool.units).ok()?;
        let ticket = shown.iter().next()?.fence;
        if *shown != shares(units, ticket) {
            return None;
        }
        let members = seat.pool.quorums.members();
        let quorum = members.iter().map(|node| (node, Said::default())).collect();
        let (attempt, phase) = (home.next_attempt(seat), Phase::Held { told: None });
        let shown = Some(seat.now);
        Some(Local { units, draw: 0, attempt, ticket, phase, quorum, shown })
    }

    fn renew(
        home: &mut Requester,
        seat: &Seat<'_>,
        claim: ClaimId,
        _shares: Shares,
        post: &mut Post<'_>,
    ) {
        home.widen(seat, claim);
        home.claims[&claim].tell_all(seat, claim, post);
        home.arm_retry(seat, post);
    }

    /// Asks again for what waits: that also keeps its entries alive. For what is held, only those
    /// are asked again that do not know of it yet; all else its client renews, or is dead.
    fn remind(home: &mut Requester, seat: &Seat<'_>, post: &mut Post<'_>) -> bool {
        if broken!(seat, NeverRetry) {
            return false;
        }
        let claims: Vec<ClaimId> = home.claims.keys().copied().collect();
        for claim in claims {
            let joins = home.claims[&claim].joins();
            if home.ends(seat, claim, joins, post) || home.ends_unconfirmed(seat, claim, post) {
                continue;
            }
            let local = &home.claims[&claim];
            match local.phase {
                Phase::Waiting(_) => home.ask_again(seat, claim, post),
                Phase::Held { .. } => local.tell_joined(seat, claim, post),
                Phase::Ending { .. } => {}
            }
        }
        true
    }

    fn is_busy(home: &Requester) -> bool {
        let needs = |local: &Local| {
            !matches!(local.phase, Phase::Held { .. }) || local.joins() || local.is_unconfirmed()
        };
        home.claims.values().any(needs)
    }

    fn breaks(seat: &Seat<'_>, rule: Rule) -> bool {
        rule == Rule::DeadIsForGood && broken!(seat, ReviveDead)
    }
}

impl Requester {
    /// Asks a quorum for a ticket above this one.
    fn start(
        &mut self,
        seat: &Seat<'_>,
        claim: ClaimId,
        units: Units,
        draw: u64,
        ticket: Fence,
        post: &mut Post<'_>,
    ) -> Local {
        let (quorums, spares) = (&seat.pool.quorums, seat.pool.spares);
        let chosen = first_choice(quorums, units, (seat.me, draw), &self.suspects, spares);
        let quorum = chosen.iter().map(|node| (node, Said::default())).collect();
        let attempt = self.next_attempt(seat);
        let phase = Phase::Waiting(Round::Asking);
        let local = Local { units, draw, attempt, ticket, phase, quorum, shown: None };
        local.tell_all(seat, claim, post);
        local
    }

    /// What waits starts again, elsewhere if need be, since a member does not know it any more or
    /// may never answer.
    pub(super) fn restart(&mut self, seat: &Seat<'_>, claim: ClaimId, post: &mut Post<'_>) {
        let local = self.claims.remove(&claim).expect("the caller has looked it up");
        assert!(!local.is_held(), "what is in use does not start again");
        self.own.restarts.add();
        local.release_all(claim, post);
        let local = self.start(seat, claim, local.units, local.draw, local.ticket, post);
        self.claims.insert(claim, local);
        self.arm_retry(seat, post);
    }

    fn ask_again(&mut self, seat: &Seat<'_>, claim: ClaimId, post: &mut Post<'_>) {
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        local.tell_all(seat, claim, post);
        let mut quiet = NodeSet::new();
        for (&node, said) in &mut local.quorum {
            said.rings = said.rings.saturating_add(1);
            if seat.pool.patience.is_some_and(|patience| said.rings > patience) {
                said.rings = 0;
                quiet.insert(node);
            }
        }
        if !quiet.is_empty() {
            self.go_without(seat, claim, &quiet, post);
        }
    }

    /// Who waits for a node that is believed dead goes on without it. Who holds something by its
    /// word asks others, to be independent of it before its lease ends (arbiter spec C4, C5).
    pub(super) fn on_suspect(&mut self, seat: &Seat<'_>, node: NodeId, post: &mut Post<'_>) {
        self.suspects.insert(node);
        let unknown =
            |local: &Local| local.is_unconfirmed() && !local.may_be_known(seat, &self.suspects);
        let unknown: Vec<ClaimId> =
            self.claims.iter().filter(|(_, local)| unknown(local)).map(|(&id, _)| id).collect();
        unknown.into_iter().for_each(|claim| self.lose(seat, claim, post));
        let touched = |local: &Local| local.quorum.contains_key(&node);
        let touched: Vec<ClaimId> =
            self.claims.iter().filter(|(_, local)| touched(local)).map(|(&id, _)| id).collect();
        let gone = std::iter::once(node).collect();
        for claim in touched {
            match self.claims[&claim].is_held() {
                true => {
                    let new = self.widen(seat, claim);
                    let local = &self.claims[&claim];
                    new.iter().for_each(|node| local.tell(seat, claim, node, post));
                }
                false => self.go_without(seat, claim, &gone, post),
            }
        }
        self.arm_retry(seat, post);
    }

    /// Chooses members to rely on for what is held, instead of those that are suspected, and as
    /// many more as the pool wants; also those whose entry may have ended. Says who is new. They
    /// count once they know of it and nobody relies any more on what they said before.
    fn widen(&mut self, seat: &Seat<'_>, claim: ClaimId) -> NodeSet {
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        let Phase::Held { told: Some(_) } = local.phase else { return NodeSet::new() };
        if broken!(seat, ReviveMember) {
            return NodeSet::new();
        }
        let now = seat.now;
        for said in local.quorum.values_mut() {
            if !said.is_relied_on(now) && said.joins.is_none() {
                (said.until, said.joins) = (None, Some(now));
            }
        }
        let (quorums, suspects) = (&seat.pool.quorums, &self.suspects);
        let known = |node: NodeId| local.quorum.contains_key(&node);
        let Some(quorum) = replacement(quorums, local.units, suspects, known) else {
            return NodeSet::new();
        };
        let wanted = and_more(quorums, quorum, local.draw, suspects, seat.pool.spares);
        let new = wanted.difference(&local.members());
        for node in new.iter() {
            local.quorum.insert(node, Said { joins: Some(now), ..Said::default() });
        }
        new
    }

    /// What waits goes on without these members if the others contain a quorum, keeping its place;
    /// else it starts again elsewhere, if there is a quorum elsewhere.
    pub(super) fn go_without(
        &mut self,
        seat: &Seat<'_>,
        claim: ClaimId,
        gone: &NodeSet,
        post: &mut Post<'_>,
    ) {
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        let rest = local.members().difference(gone);
        if seat.pool.quorums.contains_quorum(local.units, &rest) {
            for node in local.members().intersection(gone).iter() {
                local.quorum.remove(&node);
                local.release(claim, node, post);
            }
            self.settle(seat, claim, post);
            return self.try_enter(seat, claim, post);
        }
        let avoid = self.suspects.union(gone);
        let (units, draw) = (local.units, local.draw);
        if seat.pool.quorums.draw(units, seat.me, draw, &avoid).is_some() {
            let known = std::mem::replace(&mut self.suspects, avoid);
            self.restart(seat, claim, post);
            self.suspects = known;
        }
    }

    /// Ends what a client showed and too few members confirmed for a whole lease: whoever told the
    /// client of it did so before, so it has stopped. Says whether it did.
    fn ends_unconfirmed(&mut self, seat: &Seat<'_>, claim: ClaimId, post: &mut Post<'_>) -> bool {
        let local = &self.claims[&claim];
        let length = seat.pool.lease.length();
        let over = |since: Moment| since.after(length) <= seat.now;
        let ends = local.is_unconfirmed() && local.shown.is_some_and(over);
        if ends {
            post.out.lose(claim);
            self.on_release(seat, claim, post);
        }
        ends
    }

    pub(super) fn on_trust(&mut self, node: NodeId) {
        self.suspects.remove(node);
    }

    pub(super) fn facts(&self, show: &mut dyn FnMut(Fact)) {
        let asked = self.claims.values().flat_map(|local| local.quorum.keys().copied());
        asking::facts(&self.suspects, asked, show);
        show(Fact::counter("migrations", self.own.migrations.get()));
        show(Fact::counter("restarts", self.own.restarts.get()));
    }

    pub(super) fn audit(&self, seat: &Seat<'_>) {
        // What is over needs none.
        let is_ending = |local: &Local| matches!(local.phase, Phase::Ending { .. });
        for local in self.claims.values().filter(|local| !is_ending(local)) {
            let enough = seat.pool.quorums.contains_quorum(local.units, &local.members());
            assert!(enough, "every claim has a quorum");
        }
    }
}
