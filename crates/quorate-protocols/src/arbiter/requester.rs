//! The requester's half, as its clients and its alarm see it: claims, releases, renewals, retries,
//! and whom to ask instead of nodes that seem dead (arbiter spec 7.4, C2, C4, C5). What arbiters
//! answer is heard in [`super::hearing`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quorate_core::{
    Claim, ClaimId, Clock, Fact, Fence, Moment, NodeId, NodeSet, Refusal, Shares, Stamp, Wanted,
};

use super::choice::{choose, wish_of};
use super::local::{Local, Permit, PermitState, Phase, Polls};
use super::message::{End, Message, Pick};
use super::pool::{Mode, Pool, broken};
use super::{Alarm, Arbiter, Post, Seat};
use crate::attempt::Attempt;
use crate::count::Count;
use crate::home::{Asks, Home, Rule};
use crate::quorums::asking::{self, covering, first_choice, replacement};

/// The claims of a node's own clients.
pub(super) type Requester = Home<Permissions>;

/// What the homes of `arbiter` remember beside their claims.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Permissions {
    /// The largest fence this node has heard of. Counted up for each claim, it is a logical clock
    /// for fences: mostly no arbiter objects to what it says.
    pub(super) fence: Fence,
    /// How often what is held moved to other arbiters.
    pub(super) migrations: Count,
    /// How often the retry alarm made a claim ask again.
    polls: Count,
}

impl Asks for Permissions {
    type Protocol = Arbiter;
    type Local = Local;
    type Wait = Polls;

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
        let taken: BTreeSet<_> = home
            .claims
            .values()
            .flat_map(|local| local.wish.names.iter().flat_map(|names| names.iter().copied()))
            .collect();
        let wish = choose(seat.pool, claim, &taken).ok_or(match seat.pool.mode {
            Mode::Count { .. } => Refusal::NotByName,
            Mode::Named => Refusal::NeverEnough,
        })?;
        let attempt = home.next_attempt(seat);
        let mut local = Local {
            wanted: claim.wanted.clone(),
            wish,
            stamp: Stamp { clock: attempt.clock, node: seat.me },
            draw: claim.draw,
            token: home.next_token(seat),
            enlisted: BTreeMap::new(),
            phase: Phase::Waiting(Polls::FIRST),
            moves: 0,
            pick: None,
            taken: BTreeMap::new(),
            shown: None,
            lacks: false,
            #[cfg(test)]
            failed: false,
        };
        let (quorums, units) = (&seat.pool.quorums, claim.wanted.units);
        let by = (seat.me, claim.draw);
        let first = first_choice(quorums, units, by, &home.suspects, seat.pool.hedge);
        for node in first.iter() {
            enlist(&mut local, seat, claim.id, node, attempt, post);
        }
        Ok(local)
    }

    fn end(
        home: &mut Requester,
        seat: &Seat<'_>,
        claim: ClaimId,
        local: Option<Local>,
        post: &mut Post<'_>,
    ) {
        match local {
            Some(local) => release_all(&local, claim, post),
            None => {
                // We do not know whom it asked.
                let attempt = home.next_attempt(seat);
                for node in seat.pool.quorums.members().iter() {
                    post.send(node, Message::Release { claim, attempt, end: End::Over });
                }
            }
        }
    }

    /// All arbiters are shown what the client has, and some will know it.
    fn take_over(home: &mut Requester, seat: &Seat<'_>, shares: &Shares) -> Option<Local> {
        let mut wish = wish_of(seat.pool, shares)?;
        let attempt = home.next_attempt(seat);
        let pick = match seat.pool.picks_units() {
            true => wish.names.take().map(|names| Pick { round: attempt.clock, names }),
            false => None,
        };
        let token = shares.iter().map(|share| share.fence).max().unwrap_or_default();
        let shown = Permit { state: PermitState::Shown, ..Permit::asked(attempt, token) };
        Some(Local {
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
            shown: Some(seat.now),
            lacks: false,
            #[cfg(test)]
            failed: false,
        })
    }

    fn renew(
        home: &mut Requester,
        seat: &Seat<'_>,
        claim: ClaimId,
        _shares: Shares,
        post: &mut Post<'_>,
    ) {
        home.ask_where_over(seat, claim, post);
        let local = &home.claims[&claim];
        for (&node, permit) in &local.enlisted {
            if permit.is_given() || permit.state == PermitState::Shown {
                post.send(node, local.renew(claim, permit, seat.now));
            }
        }
        if local.is_unconfirmed() {
            home.arm_retry(seat, post); // It must not wait for ever for those that are dead.
        }
        home.reach_out(seat, claim, post);
    }

    /// Asks again for what waits, and keeps what was given meanwhile (arbiter spec C2).
    fn remind(home: &mut Requester, seat: &Seat<'_>, post: &mut Post<'_>) -> bool {
        #[cfg(test)]
        if seat.pool.once {
            return false;
        }
        let claims: Vec<ClaimId> = home.claims.keys().copied().collect();
        let mut again = false;
        for claim in claims {
            let local = &home.claims[&claim];
            let asks = local.enlisted.values().any(|permit| {
                matches!(permit.state, PermitState::Asked { .. })
                    || (permit.is_given() && local.is_held() && !local.counts(permit))
            });
            if home.ends(seat, claim, asks && !broken!(seat, RenewForTheDead), post)
                || home.ends_unconfirmed(seat, claim, post)
            {
                continue;
            }
            let local = home.claims.get_mut(&claim).expect("it was found here");
            match &mut local.phase {
                Phase::Held { told: None } if !asks => {}
                Phase::Held { .. } if !asks => continue,
                Phase::Ending { .. } => {}
                Phase::Waiting(Polls { rest, .. }) if *rest > 0 => *rest -= 1,
                _ => home.poll(seat, claim, post),
            }
            again = true;
        }
        again
    }

    fn is_busy(home: &Requester) -> bool {
        !home.claims.is_empty()
    }

    fn breaks(seat: &Seat<'_>, rule: Rule) -> bool {
        match rule {
            Rule::DeadIsForGood => broken!(seat, L6ReviveDead),
            Rule::KeepWhatIsLost => broken!(seat, GiveBackWhatIsLost),
            Rule::Fits | Rule::EarlierBoots => false,
        }
    }
}

impl Requester {
    /// Asks all that have not answered, and others instead of those that are quiet for long.
    fn poll(&mut self, seat: &Seat<'_>, claim: ClaimId, post: &mut Post<'_>) {
        self.own.polls.add();
        self.ask_where_over(seat, claim, post);
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
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

    /// Enlists others beside arbiters that do not answer. Those stay enlisted: whoever answers
    /// first counts, and nothing churns if they were only slow.
    fn ask_others(
        &mut self,
        seat: &Seat<'_>,
        claim: ClaimId,
        quiet: &NodeSet,
        post: &mut Post<'_>,
    ) {
        let avoid = self.suspects.union(quiet);
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        let Some(instead) = instead_of(&avoid, local, seat) else { return };
        let attempt = Attempt::next(&mut self.clock, seat.boot);
        for node in instead.difference(&local.enlisted()).iter() {
            enlist(local, seat, claim, node, attempt, post);
        }
    }

    /// The failure detector believes a node dead. Who waits for it asks others instead; who holds
    /// its permission asks others as well, to be independent of it before its lease ends (arbiter
    /// spec C4, C5).
    pub(super) fn on_suspect(&mut self, seat: &Seat<'_>, node: NodeId, post: &mut Post<'_>) {
        self.suspects.insert(node);
        let unknown =
            |local: &Local| local.is_unconfirmed() && !local.may_be_known(seat, &self.suspects);
        let unknown: Vec<ClaimId> =
            self.claims.iter().filter(|(_, local)| unknown(local)).map(|(&id, _)| id).collect();
        unknown.into_iter().for_each(|claim| self.lose(seat, claim, post));
        let touched: Vec<ClaimId> = self
            .claims
            .iter()
            .filter(|(_, local)| !matches!(local.phase, Phase::Ending { .. }))
            .filter(|(_, local)| local.enlisted.contains_key(&node))
            .map(|(&claim, _)| claim)
            .collect();
        for claim in touched {
            let local = self.claims.get_mut(&claim).expect("it was found here");
            let Some(instead) = instead_of(&self.suspects, local, seat) else { continue };
            let attempt = reselection_attempt(&mut self.clock, seat, local);
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

    /// Asks further arbiters for what a client uses, so that it outlives the crash of those that
    /// gave it their permission, its home among them: before they fail and not after, when others
    /// may have given theirs to claims whose homes are gone too (arbiter spec C5).
    ///
    /// What a client shows is not asked for by its word alone: some arbiter must know it. Where
    /// permissions never end, none need be outlived.
    pub(super) fn reach_out(&mut self, seat: &Seat<'_>, claim: ClaimId, post: &mut Post<'_>) {
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        let Phase::Held { told } = local.phase else { return };
        let confirmed = told.is_some() || !local.given().is_empty();
        let stopped = local.phase.has_stopped(seat.now);
        let outlives = seat.pool.leases_end() && !broken!(seat, RestOnOneQuorum);
        if stopped || !confirmed || !outlives {
            return;
        }
        let (quorums, units) = (&seat.pool.quorums, local.wish.units);
        let wanted = covering(quorums, units, &local.enlisted(), &self.suspects);
        let new = wanted.difference(&local.enlisted());
        if new.is_empty() {
            return;
        }
        let attempt = reselection_attempt(&mut self.clock, seat, local);
        local.stamp.clock = 0; // As in `on_suspect`: whoever waits can give way.
        for node in new.iter() {
            enlist(local, seat, claim, node, attempt, post);
        }
        self.arm_retry(seat, post);
    }

    /// Permissions that are over are not renewed: an arbiter that forgot would take them up
    /// although it may have ended them, and given them to others, before it forgot (arbiter spec
    /// C3). They are asked for anew, at the age of the claim.
    fn ask_where_over(&mut self, seat: &Seat<'_>, claim: ClaimId, post: &mut Post<'_>) {
        let is_over = |permit: &Permit| permit.until().is_some_and(|until| until <= seat.now);
        let enlisted = self.claims[&claim].enlisted.iter();
        let over: Vec<NodeId> =
            enlisted.filter(|(_, permit)| is_over(permit)).map(|(&node, _)| node).collect();
        for node in over {
            if !broken!(seat, ReviveWhatEnded) {
                self.ask_anew(seat, claim, node, post);
            }
        }
    }

    /// Asks an arbiter in a new try, whatever it said in the last one.
    pub(super) fn ask_anew(
        &mut self,
        seat: &Seat<'_>,
        claim: ClaimId,
        node: NodeId,
        post: &mut Post<'_>,
    ) {
        let attempt = Attempt::next(&mut self.clock, seat.boot);
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        if local.is_held() {
            local.stamp.clock = 0; // As in `on_suspect`: whoever waits can give way.
        }
        enlist(local, seat, claim, node, attempt, post);
        self.arm_retry(seat, post);
    }

    /// Ends what a client showed and too few arbiters confirmed for a whole lease: whoever told the
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

    fn next_token(&mut self, seat: &Seat<'_>) -> Fence {
        if !seat.pool.names_units() {
            return Fence::default().next(); // Fences mean nothing where units have no names.
        }
        self.own.fence = self.own.fence.next();
        self.own.fence
    }

    pub(super) fn facts(&self, show: &mut dyn FnMut(Fact)) {
        let asked = self.claims.values().flat_map(|local| local.enlisted.keys().copied());
        asking::facts(&self.suspects, asked, show);
        show(Fact::counter("migrations", self.own.migrations.get()));
        show(Fact::counter("polls", self.own.polls.get()));
    }

    pub(super) fn audit(&self, seat: &Seat<'_>) {
        if [broken!(seat, M4HolderYields), broken!(seat, L4WaitedOnResetStamp)].contains(&true) {
            return; // A test broke a rule on purpose: the laws must find it, not this assertion.
        }
        for local in self.claims.values() {
            // What a client shows rests on what another home was given; what is over, on nothing.
            if !matches!(local.phase, Phase::Held { told: Some(told) } if told > seat.now) {
                continue;
            }
            let enough = seat.pool.quorums.contains_quorum(local.wish.units, &local.counted_on());
            assert!(enough || local.lacks, "I3: who holds units has permissions from a quorum");
        }
    }
}

/// Asks an arbiter that does not know of the claim, or no longer.
pub(super) fn enlist(
    local: &mut Local,
    seat: &Seat<'_>,
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
fn reselection_attempt(clock: &mut Clock, seat: &Seat<'_>, local: &Local) -> Attempt {
    match broken!(seat, M14NoAttempts) {
        true => Attempt { boot: seat.boot, clock: local.stamp.clock },
        false => Attempt::next(clock, seat.boot),
    }
}

/// A quorum without any of these, with as many as possible of those that are enlisted.
fn instead_of(avoid: &NodeSet, local: &Local, seat: &Seat<'_>) -> Option<NodeSet> {
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
fn longest_gap(seat: &Seat<'_>) -> u32 {
    if !seat.pool.leases_end() {
        return 1;
    }
    let rings = seat.pool.lease.length().as_nanos() / (3 * seat.pool.retry.as_nanos().max(1));
    u32::try_from(rings).unwrap_or(u32::MAX).max(1)
}

/// Repeats every request without a permission and, while it waits, renews every permission. Says
/// who has not answered for longer than the pool is patient.
fn ask_again(local: &mut Local, seat: &Seat<'_>, claim: ClaimId, post: &mut Post<'_>) -> NodeSet {
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
