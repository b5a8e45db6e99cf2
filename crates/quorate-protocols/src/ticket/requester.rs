//! The requester's half: a ticket for each claim of its clients, and the moment to let them in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use quorate_core::{
    Claim, ClaimId, Clock, Fact, Fence, Moment, NodeId, NodeSet, Refusal, Seat, Shares, Units,
};

use super::member::shares;
use super::message::{Message, Rival, Standing};
use super::pool::broken;
use super::{Alarm, Post, Ticket};
use crate::attempt::Attempt;
use crate::count::Count;

/// The claims of a node's own clients. Nothing here need survive a crash: clients ask again.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Requester {
    pub(super) clock: Clock,
    pub(super) claims: BTreeMap<ClaimId, Local>,
    suspects: NodeSet,
    retrying: bool,
    /// How often a claim had to start again.
    restarts: Count,
}

/// A local client's claim.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Local {
    units: Units,
    draw: u64,
    pub(super) attempt: Attempt,
    /// Its ticket, once all of its quorum have proposed one; until then what it must exceed.
    pub(super) ticket: Fence,
    phase: Phase,
    /// Its quorum, and what each member said.
    pub(super) quorum: BTreeMap<NodeId, Said>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// Members are asked to propose a ticket.
    Asking,
    /// It has one, and waits for older claims.
    Settled,
    /// The client was told of its grant, to last until then; `None` if that was in an earlier life
    /// of ours. What is over stays over.
    Held { told: Option<Moment> },
    /// The client was told that it has nothing any more, and may not hear it before then. Until it
    /// gives its units back, or that moment passes, they stay taken.
    Ending { until: Moment },
}

/// What a member said about a claim.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Said {
    pub(super) proposed: Option<Fence>,
    /// Whom it last knew to be older, perhaps.
    rivals: Option<Arc<[Rival]>>,
    /// Our deadline for relying on it, before its own.
    until: Option<Moment>,
    /// How often the retry alarm rang without any answer.
    rings: u32,
}

/// Which try of which claim a message is about, and who sent it.
#[derive(Clone, Copy)]
struct About {
    from: NodeId,
    claim: ClaimId,
    attempt: Attempt,
}

impl Local {
    /// Whether its client may be using units.
    fn is_held(&self) -> bool {
        matches!(self.phase, Phase::Held { .. } | Phase::Ending { .. })
    }

    fn members(&self) -> NodeSet {
        self.quorum.keys().copied().collect()
    }

    /// What a member is told, who said this so far.
    fn message(&self, seat: &Seat<'_, Ticket>, claim: ClaimId, said: &Said) -> Message {
        let Local { units, attempt, ticket, .. } = *self;
        let sent = seat.now;
        let standing = match self.phase {
            Phase::Asking => {
                return Message::Register { claim, attempt, units, above: ticket, sent };
            }
            Phase::Settled => Standing::Waiting,
            Phase::Held { .. } | Phase::Ending { .. } => match said.until {
                None => Standing::Shown,
                Some(until) if until <= sent && !broken!(seat, ReviveMember) => Standing::Shown,
                Some(_) => Standing::Held,
            },
        };
        Message::Settle { claim, attempt, units, ticket, standing, sent }
    }

    fn tell_all(&self, seat: &Seat<'_, Ticket>, claim: ClaimId, post: &mut Post<'_>) {
        for (&node, said) in &self.quorum {
            post.send(node, self.message(seat, claim, said));
        }
    }

    /// Until when some quorum of those that answered can be relied on.
    fn deadline(&self, seat: &Seat<'_, Ticket>) -> Option<Moment> {
        let mut lasting: Vec<(Moment, NodeId)> =
            self.quorum.iter().filter_map(|(&node, said)| Some((said.until?, node))).collect();
        lasting.sort_unstable_by(|a, b| b.cmp(a));
        let mut longest = NodeSet::new();
        lasting.into_iter().find_map(|(until, node)| {
            longest.insert(node);
            seat.pool.quorums.contains_quorum(self.units, &longest).then_some(until)
        })
    }

    pub(super) fn relies_on(&self, node: NodeId) -> bool {
        !self.is_held() && self.quorum.get(&node).is_some_and(|said| said.until.is_some())
    }
}

impl Requester {
    pub(super) fn on_claim(&mut self, seat: &Seat<'_, Ticket>, claim: &Claim, post: &mut Post<'_>) {
        assert!(claim.units.get() <= seat.pool.units, "h <= k was settled at the door");
        if self.claims.contains_key(&claim.id) {
            return; // A client that repeats itself changes nothing.
        }
        if claim.lines.is_some() {
            return post.out.refuse(claim.id, Refusal::NotByName);
        }
        self.start(seat, claim.id, claim.units, claim.draw, Fence::default(), post);
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
        let quorums = &seat.pool.quorums;
        let chosen = quorums
            .draw(units, seat.me, draw, &self.suspects)
            .or_else(|| quorums.draw(units, seat.me, draw, &NodeSet::new()))
            .expect("a family has a quorum");
        let rest = quorums.members().difference(&chosen).difference(&self.suspects);
        let start = (draw % rest.len().max(1) as u64) as usize;
        let around = rest.iter().skip(start).chain(rest.iter().take(start));
        let spares = around.take(seat.pool.spares as usize);
        let quorum = chosen.iter().chain(spares).map(|node| (node, Said::default())).collect();
        let (attempt, phase) = (self.next_attempt(seat), Phase::Asking);
        let local = Local { units, draw, attempt, ticket, phase, quorum };
        local.tell_all(seat, claim, post);
        self.claims.insert(claim, local);
        self.arm_retry(seat, post);
    }

    /// What waits starts again, elsewhere if need be, since a member does not know it any more or
    /// may never answer.
    fn restart(&mut self, seat: &Seat<'_, Ticket>, claim: ClaimId, post: &mut Post<'_>) {
        let local = self.claims.remove(&claim).expect("the caller has looked it up");
        assert!(!local.is_held(), "what is in use cannot move");
        self.restarts.add();
        release_all(&local, claim, post);
        self.start(seat, claim, local.units, local.draw, local.ticket, post);
    }

    pub(super) fn on_release(
        &mut self,
        seat: &Seat<'_, Ticket>,
        claim: ClaimId,
        post: &mut Post<'_>,
    ) {
        match self.claims.remove(&claim) {
            Some(local) => release_all(&local, claim, post),
            None => {
                // Its client may have outlived our last boot, and we do not know whom it asked.
                let attempt = self.next_attempt(seat);
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
        let local = &self.claims[&claim];
        let told = match local.phase {
            Phase::Asking | Phase::Settled => return,
            Phase::Ending { .. } => return post.out.lose(claim),
            Phase::Held { told } => told,
        };
        if told.is_some_and(|told| told <= seat.now) && !broken!(seat, ReviveDead) {
            return self.lose(seat, claim, post);
        }
        local.tell_all(seat, claim, post);
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
        let (attempt, phase) = (self.next_attempt(seat), Phase::Held { told: None });
        let (ticket, draw) = (share.fence, 0);
        self.claims.insert(claim, Local { units, draw, attempt, ticket, phase, quorum });
        true
    }

    /// The client has nothing any more, and is told so. It may hear that late or never, so what it
    /// had is given back when its deadline has passed and not before ([`quorate_core::Effect`]).
    fn lose(&mut self, seat: &Seat<'_, Ticket>, claim: ClaimId, post: &mut Post<'_>) {
        let local = self.claims.get_mut(&claim).expect("only a known claim is lost");
        let until = match local.phase {
            Phase::Asking | Phase::Settled => unreachable!("only what a client has is lost"),
            Phase::Ending { .. } => return,
            // Another life told it, at most one lease ago.
            Phase::Held { told } => told.unwrap_or(seat.now.after(seat.pool.lease.length())),
        };
        post.out.lose(claim);
        if until <= seat.now {
            let local = self.claims.remove(&claim).expect("it was found here");
            return release_all(&local, claim, post);
        }
        local.phase = Phase::Ending { until };
        self.arm_retry(seat, post);
    }

    /// Asks again for what waits: that also keeps its entries alive.
    pub(super) fn on_ring_retry(&mut self, seat: &Seat<'_, Ticket>, post: &mut Post<'_>) {
        self.retrying = false;
        if broken!(seat, NeverRetry) {
            return;
        }
        let is_over =
            |local: &Local| matches!(local.phase, Phase::Ending { until } if until <= seat.now);
        let over: Vec<ClaimId> =
            self.claims.iter().filter(|(_, local)| is_over(local)).map(|(&id, _)| id).collect();
        for claim in over {
            let local = self.claims.remove(&claim).expect("it was found here");
            release_all(&local, claim, post);
        }
        let waiting: Vec<ClaimId> =
            self.claims.iter().filter(|(_, local)| !local.is_held()).map(|(&id, _)| id).collect();
        for claim in waiting {
            let local = self.claims.get_mut(&claim).expect("it was found here");
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
        self.arm_retry(seat, post);
    }

    pub(super) fn on_suspect(
        &mut self,
        seat: &Seat<'_, Ticket>,
        node: NodeId,
        post: &mut Post<'_>,
    ) {
        self.suspects.insert(node);
        let touched = |local: &Local| !local.is_held() && local.quorum.contains_key(&node);
        let touched: Vec<ClaimId> =
            self.claims.iter().filter(|(_, local)| touched(local)).map(|(&id, _)| id).collect();
        let gone = std::iter::once(node).collect();
        for claim in touched {
            self.go_without(seat, claim, &gone, post);
        }
    }

    /// What waits goes on without these members if the others contain a quorum, keeping its place;
    /// else it starts again elsewhere, if there is a quorum elsewhere.
    fn go_without(
        &mut self,
        seat: &Seat<'_, Ticket>,
        claim: ClaimId,
        gone: &NodeSet,
        post: &mut Post<'_>,
    ) {
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        let rest = local.members().difference(gone);
        if seat.pool.quorums.contains_quorum(local.units, &rest) {
            for node in gone.iter().filter(|node| local.quorum.remove(node).is_some()) {
                let attempt = local.attempt;
                post.send(node, Message::Release { claim, attempt, whole: false });
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

    pub(super) fn on_trust(&mut self, node: NodeId) {
        self.suspects.remove(node);
    }

    pub(super) fn hear(
        &mut self,
        seat: &Seat<'_, Ticket>,
        from: NodeId,
        message: Message,
        post: &mut Post<'_>,
    ) {
        match message {
            Message::Propose { claim, attempt, ticket } => {
                self.on_propose(seat, About { from, claim, attempt }, ticket, post);
            }
            Message::View { claim, attempt, rivals, sent } => {
                self.on_view(seat, About { from, claim, attempt }, rivals, sent, post);
            }
            Message::Queued { claim, attempt } => {
                if let Some((said, _)) = self.said(About { from, claim, attempt }) {
                    said.rings = 0; // It lives, and knows us.
                }
            }
            Message::Renewed { claim, attempt, sent } => {
                let Some((said, _)) = self.said(About { from, claim, attempt }) else { return };
                let over = said.until.is_some_and(|until| until <= seat.now);
                if over && !broken!(seat, ReviveMember) {
                    return; // Its entry may have ended since, and others not have seen it.
                }
                said.until = said.until.max(Some(seat.pool.lease.deadline(sent, Duration::ZERO)));
                self.go_on(seat, claim, post);
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

    fn on_propose(
        &mut self,
        seat: &Seat<'_, Ticket>,
        about: About,
        ticket: Fence,
        post: &mut Post<'_>,
    ) {
        let About { from, claim, attempt } = about;
        let Some((said, phase)) = self.said(about) else {
            // Nobody waits for it here. But this may be an old copy, and what an earlier boot of
            // ours asked for be in use.
            if attempt.boot == seat.boot && !broken!(seat, NoHeal) {
                post.send(from, Message::Release { claim, attempt, whole: false });
            }
            return;
        };
        said.rings = 0;
        if phase != Phase::Asking || broken!(seat, T1OneRound) {
            return;
        }
        said.proposed = Some(ticket);
        self.settle(seat, claim, post);
    }

    /// Takes a ticket if all that were asked have proposed one.
    fn settle(&mut self, seat: &Seat<'_, Ticket>, claim: ClaimId, post: &mut Post<'_>) {
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        if local.phase != Phase::Asking || broken!(seat, T1OneRound) {
            return;
        }
        let proposed: Option<Vec<Fence>> =
            local.quorum.values().map(|said| said.proposed).collect();
        let Some(proposed) = proposed else { return };
        local.ticket = proposed.into_iter().max().expect("quorums are not empty");
        local.phase = Phase::Settled;
        local.tell_all(seat, claim, post);
    }

    fn on_view(
        &mut self,
        seat: &Seat<'_, Ticket>,
        about: About,
        rivals: Arc<[Rival]>,
        sent: Moment,
        post: &mut Post<'_>,
    ) {
        let About { from, claim, attempt } = about;
        let Some((said, phase)) = self.said(about) else {
            // Nobody waits for it here. But what an earlier boot of ours asked for may be in use.
            if attempt.boot == seat.boot && !broken!(seat, NoHeal) {
                post.send(from, Message::Release { claim, attempt, whole: false });
            }
            return;
        };
        said.rings = 0;
        let until = seat.pool.lease.deadline(sent, Duration::ZERO);
        if until <= seat.now {
            // Too late to rely on: the entry may have ended since, and others not have seen it.
            let local = &self.claims[&claim];
            return post.send(from, local.message(seat, claim, &local.quorum[&from]));
        }
        // During one lease rivals only get fewer: the shorter of two views is the newer one.
        let relied_on = said.until.is_some_and(|until| until > seat.now);
        match &said.rivals {
            Some(known) if relied_on && known.len() < rivals.len() => {}
            _ => said.rivals = Some(rivals),
        }
        said.until = said.until.max(Some(until));
        if matches!(phase, Phase::Held { .. }) {
            return self.go_on(seat, claim, post);
        }
        self.try_enter(seat, claim, post);
    }

    /// Lets the client in if all of its quorum have been heard and leave room for it.
    fn try_enter(&mut self, seat: &Seat<'_, Ticket>, claim: ClaimId, post: &mut Post<'_>) {
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        if local.phase == Phase::Asking && !broken!(seat, T1OneRound) {
            return;
        }
        let mut older: BTreeSet<Rival> = BTreeSet::new();
        for said in local.quorum.values() {
            let Some(rivals) = &said.rivals else { return };
            if said.until.is_none_or(|until| until <= seat.now) {
                return;
            }
            older.extend(rivals.iter());
        }
        let taken: u64 = older.iter().map(|rival| u64::from(rival.units.get())).sum();
        if taken + u64::from(local.units.get()) > u64::from(seat.pool.units) {
            return;
        }
        let until = local.deadline(seat).expect("all of its quorum can be relied on");
        local.phase = Phase::Held { told: Some(until) };
        post.out.grant(claim, shares(local.units, local.ticket), until);
    }

    /// A member can be relied on for longer.
    fn go_on(&mut self, seat: &Seat<'_, Ticket>, claim: ClaimId, post: &mut Post<'_>) {
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        let Phase::Held { told } = local.phase else { return };
        if told.is_some_and(|told| told <= seat.now) && !broken!(seat, ReviveDead) {
            return; // Dead is for good: its client has stopped.
        }
        let Some(until) = local.deadline(seat) else { return };
        if until > seat.now && told.is_none_or(|told| until > told) {
            local.phase = Phase::Held { told: Some(until) };
            post.out.extend(claim, until);
        }
    }

    fn on_lost(&mut self, seat: &Seat<'_, Ticket>, about: About, post: &mut Post<'_>) {
        let Some((said, phase)) = self.said(about) else { return };
        let proposed = said.proposed.is_some();
        let local = self.claims.get_mut(&about.claim).expect("it was found here");
        if matches!(phase, Phase::Asking | Phase::Settled) {
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
        local.quorum.remove(&about.from);
        if !seat.pool.quorums.contains_quorum(local.units, &local.members()) {
            self.lose(seat, about.claim, post);
        }
    }

    fn next_attempt(&mut self, seat: &Seat<'_, Ticket>) -> Attempt {
        Attempt { boot: seat.boot, clock: self.clock.tick() }
    }

    fn arm_retry(&mut self, seat: &Seat<'_, Ticket>, post: &mut Post<'_>) {
        let needs = |local: &Local| !matches!(local.phase, Phase::Held { .. });
        if !self.retrying && self.claims.values().any(needs) {
            self.retrying = true;
            post.out.arm(Alarm::Retry, seat.pool.retry);
        }
    }

    pub(super) fn facts(&self, show: &mut dyn FnMut(Fact)) {
        for node in self.suspects.iter() {
            show(Fact::gauge("suspected", true).about(node));
        }
        let in_use: BTreeSet<NodeId> =
            self.claims.values().flat_map(|local| local.quorum.keys().copied()).collect();
        for node in in_use {
            show(Fact::gauge("quorum_member", true).about(node));
        }
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

fn release_all(local: &Local, claim: ClaimId, post: &mut Post<'_>) {
    for &node in local.quorum.keys() {
        post.send(node, Message::Release { claim, attempt: local.attempt, whole: false });
    }
}
