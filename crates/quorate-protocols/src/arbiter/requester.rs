//! The requester's half, as its clients and its alarm see it: claims, releases, renewals, retries,
//! and whom to ask instead of nodes that seem dead (arbiter spec 7.4, C2, C4, C5). What arbiters
//! answer is heard in [`super::hearing`].

use std::collections::{BTreeMap, BTreeSet};

use quorate_core::{
    Claim, ClaimId, Fact, Fence, NodeId, NodeSet, Refusal, Seat, Shares, Stamp, Wanted,
};

use super::choice::{choose, wish_of};
use super::local::{Local, Permit, PermitState, Phase, Polls};
use super::message::{End, Message, Pick};
use super::pool::{Mode, broken};
use super::{Alarm, Arbiter, Post};
use crate::attempt::Attempt;
use crate::count::Count;
use crate::home::{Outlook, Renewal, replacement};

/// The claims of a node's own clients. Nothing here need survive a crash: clients ask again.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Requester {
    pub(super) outlook: Outlook,
    /// The largest fence this node has heard of. Counted up for each claim, it is a logical clock
    /// for fences: mostly no arbiter objects to what it says.
    pub(super) fence: Fence,
    pub(super) claims: BTreeMap<ClaimId, Local>,
    /// How often what is held moved to other arbiters.
    pub(super) migrations: Count,
    /// How often the retry alarm made a claim ask again.
    polls: Count,
}

impl Requester {
    pub(super) fn on_claim(
        &mut self,
        seat: &Seat<'_, Arbiter>,
        claim: &Claim,
        post: &mut Post<'_>,
    ) {
        assert!(claim.wanted.units.get() <= seat.pool.units, "h <= k was settled at the door");
        if self.claims.contains_key(&claim.id) {
            return; // A client that repeats itself changes nothing.
        }
        let taken: BTreeSet<_> = self
            .claims
            .values()
            .flat_map(|local| local.wish.names.iter().flat_map(|names| names.iter().copied()))
            .collect();
        let Some(wish) = choose(seat.pool, claim, &taken) else {
            let why = match seat.pool.mode {
                Mode::Count { .. } => Refusal::NotByName,
                Mode::Named => Refusal::NeverEnough,
            };
            return post.out.refuse(claim.id, why);
        };
        let attempt = self.outlook.next_attempt(seat.boot);
        let mut local = Local {
            wanted: claim.wanted.clone(),
            wish,
            stamp: Stamp { clock: attempt.clock, node: seat.me },
            draw: claim.draw,
            token: self.next_token(seat),
            enlisted: BTreeMap::new(),
            phase: Phase::Waiting(Polls::FIRST),
            moves: 0,
            pick: None,
            taken: BTreeMap::new(),
            #[cfg(test)]
            failed: false,
        };
        let (quorums, hedge) = (&seat.pool.quorums, seat.pool.hedge);
        let (units, draw) = (claim.wanted.units, claim.draw);
        let first = self.outlook.first_choice(quorums, units, (seat.me, draw), hedge);
        for node in first.iter() {
            enlist(&mut local, seat, claim.id, node, attempt, post);
        }
        self.claims.insert(claim.id, local);
        self.arm_retry(seat, post);
    }

    pub(super) fn on_release(
        &mut self,
        seat: &Seat<'_, Arbiter>,
        claim: ClaimId,
        post: &mut Post<'_>,
    ) {
        match self.claims.remove(&claim) {
            Some(local) => release_all(&local, claim, post),
            None => {
                // Its client may have outlived our last boot, and we do not know whom it asked.
                let attempt = self.outlook.next_attempt(seat.boot);
                for node in seat.pool.quorums.members().iter() {
                    post.send(node, Message::Release { claim, attempt, end: End::Over });
                }
            }
        }
    }

    pub(super) fn on_cancel(
        &mut self,
        seat: &Seat<'_, Arbiter>,
        claim: ClaimId,
        post: &mut Post<'_>,
    ) {
        // A cancel that crosses its grants gives them back, and those still on their way will be
        // declined (arbiter spec M8).
        self.on_release(seat, claim, post);
        post.out.refuse(claim, Refusal::Cancelled);
    }

    pub(super) fn on_renew(
        &mut self,
        seat: &Seat<'_, Arbiter>,
        claim: ClaimId,
        shares: &Shares,
        post: &mut Post<'_>,
    ) {
        if !self.claims.contains_key(&claim) && !self.take_over(seat, claim, shares) {
            return post.out.lose(claim);
        }
        let local = &self.claims[&claim];
        match local.phase.renewal(seat.now) {
            Renewal::Waits => return,
            Renewal::Lost => return post.out.lose(claim),
            Renewal::Over if !broken!(seat, L6ReviveDead) => return self.lose(seat, claim, post),
            Renewal::Over | Renewal::Asks => {}
        }
        for (&node, permit) in &local.enlisted {
            if permit.is_given() || permit.state == PermitState::Shown {
                post.send(node, local.renew(claim, permit, seat.now));
            }
        }
    }

    /// A client outlived our last boot: all arbiters are shown what it has, and some will know it.
    fn take_over(&mut self, seat: &Seat<'_, Arbiter>, claim: ClaimId, shares: &Shares) -> bool {
        let Some(mut wish) = wish_of(seat.pool, shares) else { return false };
        let attempt = self.outlook.next_attempt(seat.boot);
        let pick = match seat.pool.picks_units() {
            true => wish.names.take().map(|names| Pick { round: attempt.clock, names }),
            false => None,
        };
        let token = shares.iter().map(|share| share.fence).max().unwrap_or_default();
        let shown = Permit { state: PermitState::Shown, ..Permit::asked(attempt, token) };
        let local = Local {
            wanted: Wanted::any(wish.units),
            wish,
            stamp: Stamp { clock: attempt.clock, node: seat.me },
            draw: 0,
            token,
            enlisted: seat.pool.quorums.members().iter().map(|node| (node, shown)).collect(),
            phase: Phase::Held { told: None },
            moves: 0,
            pick,
            taken: BTreeMap::new(),
            #[cfg(test)]
            failed: false,
        };
        self.claims.insert(claim, local);
        true
    }

    /// The client has nothing any more, and is told so. It may hear that late or never, so what it
    /// had is given back when its deadline has passed and not before ([`quorate_core::Effect`]).
    pub(super) fn lose(&mut self, seat: &Seat<'_, Arbiter>, claim: ClaimId, post: &mut Post<'_>) {
        let local = self.claims.get_mut(&claim).expect("only a known claim is lost");
        let Some(until) = local.phase.unheard_until(seat.now, &seat.pool.lease) else { return };
        post.out.lose(claim);
        if until <= seat.now || broken!(seat, GiveBackWhatIsLost) {
            let local = self.claims.remove(&claim).expect("it was found here");
            return release_all(&local, claim, post);
        }
        local.phase = Phase::Ending { until };
        self.arm_retry(seat, post);
    }

    /// Asks again for what waits, and keeps what was given meanwhile (arbiter spec C2).
    pub(super) fn on_ring_retry(&mut self, seat: &Seat<'_, Arbiter>, post: &mut Post<'_>) {
        self.outlook.retrying = false;
        #[cfg(test)]
        if seat.pool.once {
            return;
        }
        let claims: Vec<ClaimId> = self.claims.keys().copied().collect();
        let mut again = false;
        for claim in claims {
            let local = self.claims.get_mut(&claim).expect("it was found here");
            let asks = local.enlisted.values().any(|permit| {
                matches!(permit.state, PermitState::Asked { .. })
                    || (permit.is_given() && local.is_held() && !local.counts(permit))
            });
            // Its client has stopped, and perhaps is dead: nobody else would end this.
            let stopped = local.phase.has_stopped(seat.now) && !broken!(seat, RenewForTheDead);
            if local.phase.is_over(seat.now) || (stopped && asks) {
                let local = self.claims.remove(&claim).expect("it was found here");
                release_all(&local, claim, post);
                continue;
            }
            match &mut local.phase {
                Phase::Held { .. } if !asks => continue,
                Phase::Ending { .. } => {}
                Phase::Waiting(Polls { rest, .. }) if *rest > 0 => *rest -= 1,
                _ => {
                    self.polls.add();
                    if !broken!(seat, MoveInTheDark) {
                        local.look_again();
                    }
                    let quiet = ask_again(local, seat, claim, post);
                    if let Phase::Waiting(Polls { rest, gap }) = &mut local.phase {
                        *rest = *gap - 1;
                    }
                    if !quiet.is_empty() {
                        self.ask_others(seat, claim, &quiet, post);
                    }
                    match self.claims[&claim].is_held() {
                        true => self.name_used(seat, claim, true, post),
                        false => self.try_enter(seat, claim, true, post),
                    }
                }
            }
            again = true;
        }
        if again {
            self.arm_retry(seat, post);
        }
    }

    /// Enlists others beside arbiters that do not answer. Those stay enlisted: whoever answers
    /// first counts, and nothing churns if they were only slow.
    fn ask_others(
        &mut self,
        seat: &Seat<'_, Arbiter>,
        claim: ClaimId,
        quiet: &NodeSet,
        post: &mut Post<'_>,
    ) {
        let avoid = self.outlook.suspects.union(quiet);
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        let Some(instead) = instead_of(&avoid, local, seat) else { return };
        let attempt = self.outlook.next_attempt(seat.boot);
        for node in instead.difference(&local.enlisted()).iter() {
            enlist(local, seat, claim, node, attempt, post);
        }
    }

    /// The failure detector believes a node dead. Who waits for it asks others instead; who holds
    /// its permission asks others as well, to be independent of it before its lease ends (arbiter
    /// spec C4, C5).
    pub(super) fn on_suspect(
        &mut self,
        seat: &Seat<'_, Arbiter>,
        node: NodeId,
        post: &mut Post<'_>,
    ) {
        self.outlook.suspects.insert(node);
        let touched: Vec<ClaimId> = self
            .claims
            .iter()
            .filter(|(_, local)| !matches!(local.phase, Phase::Ending { .. }))
            .filter(|(_, local)| local.enlisted.contains_key(&node))
            .map(|(&claim, _)| claim)
            .collect();
        for claim in touched {
            let local = self.claims.get_mut(&claim).expect("it was found here");
            let outlook = &mut self.outlook;
            let Some(instead) = instead_of(&outlook.suspects, local, seat) else { continue };
            let attempt = reselection_attempt(outlook, seat, local);
            if local.is_held() {
                // Older than all who wait: they can give back what they were given. Whoever else
                // uses units leaves room for it.
                local.stamp.clock = 0;
            } else {
                for gone in local.enlisted().difference(&instead).iter() {
                    let permit = local.enlisted.remove(&gone).expect("it is enlisted");
                    let attempt = permit.attempt;
                    post.send(gone, Message::Release { claim, attempt, end: End::Unused });
                }
            }
            for new in instead.difference(&local.enlisted()).iter() {
                enlist(local, seat, claim, new, attempt, post);
            }
            self.try_enter(seat, claim, false, post);
        }
        self.arm_retry(seat, post);
    }

    pub(super) fn on_trust(&mut self, node: NodeId) {
        self.outlook.suspects.remove(node);
    }

    fn next_token(&mut self, seat: &Seat<'_, Arbiter>) -> Fence {
        if !seat.pool.names_units() {
            return Fence::default().next(); // Fences mean nothing where units have no names.
        }
        self.fence = self.fence.next();
        self.fence
    }

    pub(super) fn arm_retry(&mut self, seat: &Seat<'_, Arbiter>, post: &mut Post<'_>) {
        if !self.outlook.retrying && !self.claims.is_empty() {
            self.outlook.retrying = true;
            post.out.arm(Alarm::Retry, seat.pool.retry);
        }
    }

    pub(super) fn facts(&self, show: &mut dyn FnMut(Fact)) {
        let asked = self.claims.values().flat_map(|local| local.enlisted.keys().copied());
        self.outlook.facts(asked, show);
        show(Fact::counter("migrations", self.migrations.get()));
        show(Fact::counter("polls", self.polls.get()));
    }

    pub(super) fn audit(&self, seat: &Seat<'_, Arbiter>) {
        if broken!(seat, M4HolderYields) {
            return; // A test broke a rule on purpose: the laws must find it, not this assertion.
        }
        for local in self.claims.values() {
            if !matches!(local.phase, Phase::Held { .. }) {
                continue;
            }
            let enough = seat.pool.quorums.contains_quorum(local.wish.units, &local.counted_on());
            assert!(enough, "I3: who holds units has permissions from a quorum");
        }
    }
}

/// Asks an arbiter that does not know of the claim, or no longer.
pub(super) fn enlist(
    local: &mut Local,
    seat: &Seat<'_, Arbiter>,
    claim: ClaimId,
    node: NodeId,
    attempt: Attempt,
    post: &mut Post<'_>,
) {
    let permit = Permit::asked(attempt, local.token);
    post.send(node, local.request(claim, &permit, seat.now));
    local.enlisted.insert(node, permit);
}

/// One try for all arbiters enlisted in one go; a new one each time, even on ordered links (arbiter
/// spec M14).
fn reselection_attempt(outlook: &mut Outlook, seat: &Seat<'_, Arbiter>, local: &Local) -> Attempt {
    match broken!(seat, M14NoAttempts) {
        true => Attempt { boot: seat.boot, clock: local.stamp.clock },
        false => outlook.next_attempt(seat.boot),
    }
}

/// A quorum without any of these, with as many as possible of those that are enlisted.
fn instead_of(avoid: &NodeSet, local: &Local, seat: &Seat<'_, Arbiter>) -> Option<NodeSet> {
    let enlisted = |node: NodeId| local.enlisted.contains_key(&node);
    replacement(&seat.pool.quorums, local.wish.units, avoid, enlisted)
}

fn release_all(local: &Local, claim: ClaimId, post: &mut Post<'_>) {
    let end = if local.is_held() { End::Used } else { End::Unused };
    for (&node, permit) in &local.enlisted {
        post.send(node, Message::Release { claim, attempt: permit.attempt, end });
    }
}

/// How often the alarm may ring between two requests of a claim that all its arbiters have in their
/// queues: asking must not stop, since entries and permissions end after one lease, but need not be
/// often (arbiter spec C2).
fn longest_gap(seat: &Seat<'_, Arbiter>) -> u32 {
    if !seat.pool.leases_end() {
        return 1;
    }
    let rings = seat.pool.lease.length().as_nanos() / (3 * seat.pool.retry.as_nanos().max(1));
    u32::try_from(rings).unwrap_or(u32::MAX).max(1)
}

/// Repeats every request without a permission and, while it waits, renews every permission. Says
/// who has not answered for longer than the pool is patient.
fn ask_again(
    local: &mut Local,
    seat: &Seat<'_, Arbiter>,
    claim: ClaimId,
    post: &mut Post<'_>,
) -> NodeSet {
    let mut quiet = NodeSet::new();
    let mut messages = Vec::new();
    // What a client uses, it renews itself: it may be dead.
    let renews = !local.is_held() || broken!(seat, RenewForTheDead);
    for (&node, permit) in &local.enlisted {
        match permit.state {
            PermitState::Asked { .. } => {
                messages.push((node, local.request(claim, permit, seat.now)));
            }
            PermitState::Given { .. } | PermitState::Shown if renews => {
                messages.push((node, local.renew(claim, permit, seat.now)));
            }
            PermitState::Given { .. } | PermitState::Shown => {}
        }
    }
    for (node, message) in messages {
        post.send(node, message);
    }
    let answers = |permit: &Permit| !matches!(permit.state, PermitState::Asked { rings: 1.. });
    let answered = local.enlisted.values().all(answers);
    if let Phase::Waiting(Polls { gap, .. }) = &mut local.phase {
        *gap = if answered { gap.saturating_mul(2).min(longest_gap(seat)) } else { 1 };
    }
    let Some(patience) = seat.pool.patience else { return quiet };
    for (&node, permit) in &mut local.enlisted {
        if let PermitState::Asked { rings } = &mut permit.state {
            *rings = (*rings + 1).min(patience);
            if *rings == patience {
                quiet.insert(node);
            }
        }
    }
    quiet
}
