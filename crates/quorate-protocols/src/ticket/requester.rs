//! The requester's half, as its clients and its alarm see it: a ticket for each claim, and members
//! to rely on for what is held. What members answer is heard in [`super::hearing`].

use std::collections::BTreeMap;

use quorate_core::{Claim, ClaimId, Fact, Fence, NodeId, NodeSet, Refusal, Seat, Shares, Units};

use super::local::{Local, Phase, Round, Said};
use super::member::shares;
use super::message::Message;
use super::pool::broken;
use super::{Alarm, Post, Ticket};
use crate::count::Count;
use crate::home::{Outlook, Renewal, replacement};

/// The claims of a node's own clients. Nothing here need survive a crash: clients ask again.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Requester {
    pub(super) outlook: Outlook,
    pub(super) claims: BTreeMap<ClaimId, Local>,
    /// How often a claim had to start again.
    restarts: Count,
    /// How often what is held left members that are suspected.
    pub(super) migrations: Count,
}

impl Requester {
    pub(super) fn on_claim(&mut self, seat: &Seat<'_, Ticket>, claim: &Claim, post: &mut Post<'_>) {
        assert!(claim.wanted.units.get() <= seat.pool.units, "h <= k was settled at the door");
        if self.claims.contains_key(&claim.id) {
            return; // A client that repeats itself changes nothing.
        }
        if claim.wanted.lines.is_some() {
            return post.out.refuse(claim.id, Refusal::NotByName);
        }
        self.start(seat, claim.id, claim.wanted.units, claim.draw, Fence::default(), post);
    }

    /// Asks a quorum for a ticket above this one.
    fn start(
        &mut self,
        seat: &Seat<'_, Ticket>,
        claim: ClaimId,
        units: Units,
        draw: u64,
        ticket: Fence,
        post: &mut Post<'_>,
    ) {
        let (quorums, spares) = (&seat.pool.quorums, seat.pool.spares);
        let chosen = self.outlook.first_choice(quorums, units, (seat.me, draw), spares);
        let quorum = chosen.iter().map(|node| (node, Said::default())).collect();
        let attempt = self.outlook.next_attempt(seat.boot);
        let phase = Phase::Waiting(Round::Asking);
        let local = Local { units, draw, attempt, ticket, phase, quorum };
        local.tell_all(seat, claim, post);
        self.claims.insert(claim, local);
        self.arm_retry(seat, post);
    }

    /// What waits starts again, elsewhere if need be, since a member does not know it any more or
    /// may never answer.
    pub(super) fn restart(&mut self, seat: &Seat<'_, Ticket>, claim: ClaimId, post: &mut Post<'_>) {
        let local = self.claims.remove(&claim).expect("the caller has looked it up");
        assert!(!local.is_held(), "what is in use does not start again");
        self.restarts.add();
        local.release_all(claim, post);
        self.start(seat, claim, local.units, local.draw, local.ticket, post);
    }

    pub(super) fn on_release(
        &mut self,
        seat: &Seat<'_, Ticket>,
        claim: ClaimId,
        post: &mut Post<'_>,
    ) {
        match self.claims.remove(&claim) {
            Some(local) => local.release_all(claim, post),
            None => {
                // Its client may have outlived our last boot, and we do not know whom it asked.
                let attempt = self.outlook.next_attempt(seat.boot);
                for node in seat.pool.quorums.members().iter() {
                    post.send(node, Message::Release { claim, attempt, whole: true });
                }
            }
        }
    }

    pub(super) fn on_cancel(
        &mut self,
        seat: &Seat<'_, Ticket>,
        claim: ClaimId,
        post: &mut Post<'_>,
    ) {
        self.on_release(seat, claim, post);
        post.out.refuse(claim, Refusal::Cancelled);
    }

    pub(super) fn on_renew(
        &mut self,
        seat: &Seat<'_, Ticket>,
        claim: ClaimId,
        shares: &Shares,
        post: &mut Post<'_>,
    ) {
        if !self.claims.contains_key(&claim) && !self.take_over(seat, claim, shares) {
            return post.out.lose(claim);
        }
        match self.claims[&claim].phase.renewal(seat.now) {
            Renewal::Waits => return,
            Renewal::Lost => return post.out.lose(claim),
            Renewal::Over if !broken!(seat, ReviveDead) => return self.lose(seat, claim, post),
            Renewal::Over | Renewal::Asks => {}
        }
        self.widen(seat, claim);
        self.claims[&claim].tell_all(seat, claim, post);
        self.arm_retry(seat, post);
    }

    /// A client outlived our last boot: its fence is its ticket, and its quorum knows that.
    fn take_over(&mut self, seat: &Seat<'_, Ticket>, claim: ClaimId, shown: &Shares) -> bool {
        let units = u32::try_from(shown.len()).ok();
        let units = units.and_then(|units| Units::new(units, seat.pool.units).ok());
        let (Some(units), Some(share)) = (units, shown.iter().next()) else { return false };
        if *shown != shares(units, share.fence) {
            return false; // No pool like this gave it.
        }
        let members = seat.pool.quorums.members();
        let quorum = members.iter().map(|node| (node, Said::default())).collect();
        let attempt = self.outlook.next_attempt(seat.boot);
        let (phase, ticket, draw) = (Phase::Held { told: None }, share.fence, 0);
        self.claims.insert(claim, Local { units, draw, attempt, ticket, phase, quorum });
        true
    }

    /// The client has nothing any more, and is told so. It may hear that late or never, so what it
    /// had is given back when its deadline has passed and not before ([`quorate_core::Effect`]).
    pub(super) fn lose(&mut self, seat: &Seat<'_, Ticket>, claim: ClaimId, post: &mut Post<'_>) {
        let local = self.claims.get_mut(&claim).expect("only a known claim is lost");
        let Some(until) = local.phase.unheard_until(seat.now, &seat.pool.lease) else { return };
        post.out.lose(claim);
        local.phase = Phase::Ending { until };
        match until <= seat.now {
            true => self.give_back(claim, post),
            false => self.arm_retry(seat, post),
        }
    }

    fn give_back(&mut self, claim: ClaimId, post: &mut Post<'_>) {
        let local = self.claims.remove(&claim).expect("the caller has looked it up");
        local.release_all(claim, post);
    }

    /// Asks again for what waits: that also keeps its entries alive. For what is held, only those
    /// are asked again that do not know of it yet; all else its client renews, or is dead.
    pub(super) fn on_ring_retry(&mut self, seat: &Seat<'_, Ticket>, post: &mut Post<'_>) {
        self.outlook.retrying = false;
        if broken!(seat, NeverRetry) {
            return;
        }
        let claims: Vec<ClaimId> = self.claims.keys().copied().collect();
        for claim in claims {
            let local = &self.claims[&claim];
            match local.phase {
                Phase::Waiting(_) => self.ask_again(seat, claim, post),
                Phase::Ending { .. } if local.phase.is_over(seat.now) => {
                    self.give_back(claim, post);
                }
                // Its client has stopped, and perhaps is dead: nobody else would end this.
                Phase::Held { .. } if local.joins() && local.phase.has_stopped(seat.now) => {
                    self.give_back(claim, post);
                }
                Phase::Held { .. } => {
                    for (&node, _) in local.quorum.iter().filter(|(_, said)| said.joins.is_some()) {
                        local.tell(seat, claim, node, post);
                    }
                }
                Phase::Ending { .. } => {}
            }
        }
        self.arm_retry(seat, post);
    }

    fn ask_again(&mut self, seat: &Seat<'_, Ticket>, claim: ClaimId, post: &mut Post<'_>) {
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
    pub(super) fn on_suspect(
        &mut self,
        seat: &Seat<'_, Ticket>,
        node: NodeId,
        post: &mut Post<'_>,
    ) {
        self.outlook.suspects.insert(node);
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
    fn widen(&mut self, seat: &Seat<'_, Ticket>, claim: ClaimId) -> NodeSet {
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
        let (quorums, suspects) = (&seat.pool.quorums, &self.outlook.suspects);
        let known = |node: NodeId| local.quorum.contains_key(&node);
        let Some(quorum) = replacement(quorums, local.units, suspects, known) else {
            return NodeSet::new();
        };
        let wanted = self.outlook.and_more(quorums, quorum, local.draw, seat.pool.spares);
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
        seat: &Seat<'_, Ticket>,
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
        let avoid = self.outlook.suspects.union(gone);
        let (units, draw) = (local.units, local.draw);
        if seat.pool.quorums.draw(units, seat.me, draw, &avoid).is_some() {
            let known = std::mem::replace(&mut self.outlook.suspects, avoid);
            self.restart(seat, claim, post);
            self.outlook.suspects = known;
        }
    }

    pub(super) fn on_trust(&mut self, node: NodeId) {
        self.outlook.suspects.remove(node);
    }

    pub(super) fn arm_retry(&mut self, seat: &Seat<'_, Ticket>, post: &mut Post<'_>) {
        let needs = |local: &Local| !matches!(local.phase, Phase::Held { .. }) || local.joins();
        if !self.outlook.retrying && self.claims.values().any(needs) {
            self.outlook.retrying = true;
            post.out.arm(Alarm::Retry, seat.pool.retry);
        }
    }

    pub(super) fn facts(&self, show: &mut dyn FnMut(Fact)) {
        let asked = self.claims.values().flat_map(|local| local.quorum.keys().copied());
        self.outlook.facts(asked, show);
        show(Fact::counter("migrations", self.migrations.get()));
        show(Fact::counter("restarts", self.restarts.get()));
    }

    pub(super) fn audit(&self, seat: &Seat<'_, Ticket>) {
        // What is over needs none.
        let is_ending = |local: &Local| matches!(local.phase, Phase::Ending { .. });
        for local in self.claims.values().filter(|local| !is_ending(local)) {
            let enough = seat.pool.quorums.contains_quorum(local.units, &local.members());
            assert!(enough, "every claim has a quorum");
        }
    }
}
