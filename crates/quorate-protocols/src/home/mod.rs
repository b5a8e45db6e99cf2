//! The home of claims: what a node does for its own clients, whichever protocol decides.
//!
//! A [`Home`] knows the claims of its node's clients, how each stands with its client ([`Phase`]),
//! which try of it is current ([`Attempt`]) and until when a client was told that it may go on. A
//! protocol supplies what is sent and how answers are read ([`Asks`]). Where one answer grants a
//! claim (`central`, `table`) the reading is shared too ([`decided`]); where a quorum must have
//! answered (`arbiter`, `ticket`), whom to ask and for how long to rely on them is
//! [`crate::quorums::asking`].
//!
//! The rules, the same under every protocol:
//!
//! * *A claim that is known* is not asked for a second time, and not judged a second time either: a
//!   client that repeats itself changes nothing.
//! * *A release* is passed on whether or not the claim is known: its client may have outlived the
//!   home's last boot. So may one that renews: the home takes up what it shows, and those who
//!   decide say whether they know it. Nothing here need survive a crash.
//! * *A claim that nobody is here for any more* is given up as far as this home asked for it last:
//!   its client may have gone to another home, and what that one asked for goes on. What is
//!   granted and was asked for by two homes, each of which may have told a client, is given back by
//!   neither alone: only a client's word or the lease ends it.
//! * *A renewal past its deadline* is a loss, at once. The client was told that moment and has
//!   stopped (arbiter spec C1: dead is for good), so it has nothing that could be renewed, and
//!   nobody else uses its units: they are given back, and not waited for until the lease ends
//!   where they were granted. To pass the renewal on instead could only bring back a client that
//!   others may take for gone. Given back is what this home asked for: a client that renewed
//!   through another home meanwhile was told a later moment there.
//! * *An answer to a renewal* revives nothing whose deadline has passed, and takes nothing back of
//!   what a later answer said.
//! * *A grant that does not fit its claim* (other units than were asked for) belongs to another
//!   claim of the same name. The client is refused ([`Refusal::NameTaken`]), and nothing is given
//!   back: whoever made that claim may be using those units. It is not put down as a mistake of the
//!   peer, which said what it knows.
//! * *A grant that comes too late to be used* is not renewed, since those who decide might have
//!   forgotten it and would take up that it is in use: it is asked for in a new try. So it is in
//!   `table` if little of its lease is left: a client could not renew it in time.
//! * *What stands* has no deadline: nothing above that goes by time is about it, and a client that
//!   shows it after a restart is told what those who decide know of it.
//! * *What a client lost* while its deadline is not over stays taken until then: it may hear of the
//!   loss late or never.
//!
//! `broadcast` and `ring` have no home of this kind: there a node asks for its claims one after the
//! other in the order of their age, keeps their leases by alarms of its own, and nobody else could
//! be asked again how a claim stands.

mod decided;
#[cfg(test)]
mod hangup_tests;
#[cfg(test)]
mod recovery_tests;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::time::Duration;

use quorate_core::{Claim, ClaimId, Clock, Moment, NodeId, NodeSet, Protocol, Refusal, Shares};

use crate::attempt::Attempt;

pub(crate) use decided::{Asked, Decided};

/// What a protocol supplies: what a home sends, and what it remembers for that.
pub(crate) trait Asks: Clone + Eq + Hash + Debug + Default {
    /// Whose homes these are.
    type Protocol: Protocol;
    /// What is known of one claim.
    type Local: Clone + Eq + Hash + Debug;
    /// What is known of one that waits.
    type Wait;

    /// The alarm that reminds a home of what was not answered.
    const RETRY: <Self::Protocol as Protocol>::Alarm;

    /// After how long it rings.
    fn retry(pool: &PoolOf<Self>) -> Duration;
    /// How long anything may last that a client was told at most.
    fn longest(pool: &PoolOf<Self>) -> Duration;
    /// Whether a pool may be another from now on, so that what a client asks for need not be what
    /// there is.
    fn changes(_pool: &PoolOf<Self>) -> bool {
        false
    }
    /// How a claim stands.
    fn phase(local: &mut Self::Local) -> &mut Phase<Self::Wait>;

    /// Asks for a new claim, or says why it can never be granted.
    ///
    /// # Errors
    /// It cannot; nothing was sent.
    fn ask(
        home: &mut Home<Self>,
        seat: &Seat<'_, Self>,
        claim: &Claim,
        post: &mut Post<'_, Self>,
    ) -> Result<Self::Local, Refusal>;

    /// A claim is over: whoever was asked, or if it is not known here could have been, is told.
    fn end(
        home: &mut Home<Self>,
        seat: &Seat<'_, Self>,
        claim: ClaimId,
        local: Option<Self::Local>,
        post: &mut Post<'_, Self>,
    );

    /// A claim's client has stopped, as far as this home knows, and gave no word: what this home
    /// asked for is given back. What the client was given through another home is not, since it may
    /// be using that until a later moment.
    fn give_back(
        home: &mut Home<Self>,
        seat: &Seat<'_, Self>,
        claim: ClaimId,
        local: Self::Local,
        post: &mut Post<'_, Self>,
    ) {
        Self::end(home, seat, claim, Some(local), post);
    }

    /// A client that outlived the home's last boot shows what it has; `None` if no pool like this
    /// gave it that.
    fn take_over(
        home: &mut Home<Self>,
        seat: &Seat<'_, Self>,
        shares: &Shares,
    ) -> Option<Self::Local>;

    /// Asks for more time for what a client has and shows.
    fn renew(
        home: &mut Home<Self>,
        seat: &Seat<'_, Self>,
        claim: ClaimId,
        shares: Shares,
        post: &mut Post<'_, Self>,
    );

    /// Says again what was not answered, and whether the alarm may be needed again.
    fn remind(home: &mut Home<Self>, seat: &Seat<'_, Self>, post: &mut Post<'_, Self>) -> bool;

    /// Whether anything is under way of which the alarm would have to remind.
    fn is_busy(home: &Home<Self>) -> bool;

    /// Whether a rule is broken, for tests that the harness finds it.
    fn breaks(_seat: &Seat<'_, Self>, _rule: Rule) -> bool {
        false
    }
}

/// Where a home is, what its pool is, and where it sends, whatever its protocol.
pub(crate) type Seat<'a, A> = quorate_core::Seat<'a, <A as Asks>::Protocol>;
pub(crate) type PoolOf<A> = <<A as Asks>::Protocol as Protocol>::Pool;
pub(crate) type Post<'a, A> = crate::post::Post<'a, <A as Asks>::Protocol>;

/// Rules of every home that tests break.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// What is past its deadline is over.
    DeadIsForGood,
    /// What a client lost stays taken until it must have stopped.
    KeepWhatIsLost,
    /// A grant is for the units that were asked for.
    Fits,
    /// What an earlier life of the home asked for is not declined.
    EarlierBoots,
}

/// The claims of a node's own clients.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Home<A: Asks> {
    /// Counts attempts.
    pub(crate) clock: Clock,
    pub(crate) claims: BTreeMap<ClaimId, A::Local>,
    /// Nodes that the failure detector believes dead. Only progress depends on it.
    pub(crate) suspects: NodeSet,
    /// Whether the retry alarm is armed. It is left to ring rather than disarmed, so that claims
    /// that are served quickly do not touch it at all.
    retrying: bool,
    /// What only this protocol's homes remember.
    pub(crate) own: A,
}

impl<A: Asks> Default for Home<A> {
    fn default() -> Self {
        let (clock, claims, suspects) = Default::default();
        Home { clock, claims, suspects, retrying: false, own: A::default() }
    }
}

/// Which try of which claim a message is about, and who sent it.
#[derive(Clone, Copy)]
pub(crate) struct About {
    pub(crate) from: NodeId,
    pub(crate) claim: ClaimId,
    pub(crate) attempt: Attempt,
}

/// How a claim stands with its client; `W` is what the protocol knows of one that waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Phase<W> {
    /// Asked for.
    Waiting(W),
    /// The client was told of its grant, to last until then; `None` if that was in an earlier life
    /// of ours. It never yields what it uses.
    Held { told: Option<Moment> },
    /// The client was told that it has nothing any more, and may not hear it before then. Until it
    /// gives its units back, or that moment passes, they stay taken.
    Ending { until: Moment },
}

impl<W> Phase<W> {
    /// Whether its client may be using units.
    pub(crate) fn is_held(&self) -> bool {
        !matches!(self, Phase::Waiting(_))
    }

    /// Whether its client is told nothing any more and cannot be using anything.
    pub(crate) fn is_over(&self, now: Moment) -> bool {
        matches!(self, Phase::Ending { until } if *until <= now)
    }

    /// Whether its client must have stopped by itself.
    pub(crate) fn has_stopped(&self, now: Moment) -> bool {
        matches!(self, Phase::Held { told: Some(told) } if *told <= now)
    }
}

impl<A: Asks> Home<A> {
    /// Gives back room that it does not need while nothing happens. It is the same afterwards.
    pub(crate) fn rest(&mut self) {
        if self.claims.is_empty() {
            self.claims = BTreeMap::new();
        }
    }

    pub(crate) fn on_claim(&mut self, seat: &Seat<'_, A>, claim: &Claim, post: &mut Post<'_, A>) {
        let units = claim.wanted.units.get();
        let settled = units <= A::Protocol::capacity(seat.pool) || A::changes(seat.pool);
        assert!(settled, "h <= k was settled at the door");
        let stands = claim.wanted.standing.is_some();
        assert!(!stands || A::Protocol::stands(seat.pool), "and so was what may stand");
        if self.claims.contains_key(&claim.id) {
            return; // A client that repeats itself changes nothing.
        }
        match A::ask(self, seat, claim, post) {
            Ok(local) => {
                self.claims.insert(claim.id, local);
                self.arm_retry(seat, post);
            }
            Err(why) => post.out.refuse(claim.id, why),
        }
    }

    /// The client, or the home for it, gives back whatever it has or waits for.
    pub(crate) fn on_release(
        &mut self,
        seat: &Seat<'_, A>,
        claim: ClaimId,
        post: &mut Post<'_, A>,
    ) {
        let local = self.claims.remove(&claim);
        A::end(self, seat, claim, local, post);
    }

    /// A cancel that crosses its grant gives the units back; whatever is still on its way will be
    /// declined.
    pub(crate) fn on_cancel(&mut self, seat: &Seat<'_, A>, claim: ClaimId, post: &mut Post<'_, A>) {
        self.on_release(seat, claim, post);
        post.out.refuse(claim, Refusal::Cancelled);
    }

    /// Nobody is here for it any more. Its client may be at another home, which has asked for the
    /// same claim: that goes on. What is not known was not asked for here.
    pub(crate) fn on_withdraw(
        &mut self,
        seat: &Seat<'_, A>,
        claim: ClaimId,
        post: &mut Post<'_, A>,
    ) {
        if let Some(local) = self.claims.remove(&claim) {
            A::give_back(self, seat, claim, local, post);
        }
    }

    pub(crate) fn on_renew(
        &mut self,
        seat: &Seat<'_, A>,
        claim: ClaimId,
        shares: Shares,
        post: &mut Post<'_, A>,
    ) {
        if !self.claims.contains_key(&claim) {
            let taken_over = A::take_over(self, seat, &shares);
            let Some(local) = taken_over else { return post.out.lose(claim) };
            self.claims.insert(claim, local);
        }
        let local = self.claims.get_mut(&claim).expect("it is known by now");
        match A::phase(local) {
            Phase::Waiting(_) => {} // It waits here, so it holds nothing that could be renewed.
            Phase::Ending { .. } => post.out.lose(claim),
            phase if phase.has_stopped(seat.now) && !A::breaks(seat, Rule::DeadIsForGood) => {
                self.lose(seat, claim, post);
            }
            Phase::Held { .. } => A::renew(self, seat, claim, shares, post),
        }
    }

    pub(crate) fn on_ring_retry(&mut self, seat: &Seat<'_, A>, post: &mut Post<'_, A>) {
        self.retrying = false;
        if A::remind(self, seat, post) {
            self.arm_retry(seat, post);
        }
    }

    /// Ends what nobody else would: what a client lost and must know by now; and what is still
    /// asked for (`asks`) although its client has stopped and perhaps is dead. Says whether it did.
    pub(crate) fn ends(
        &mut self,
        seat: &Seat<'_, A>,
        claim: ClaimId,
        asks: bool,
        post: &mut Post<'_, A>,
    ) -> bool {
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        let phase = A::phase(local);
        let ends = phase.is_over(seat.now) || (asks && phase.has_stopped(seat.now));
        if ends {
            self.give_back(seat, claim, post);
        }
        ends
    }

    fn give_back(&mut self, seat: &Seat<'_, A>, claim: ClaimId, post: &mut Post<'_, A>) {
        if let Some(local) = self.claims.remove(&claim) {
            A::give_back(self, seat, claim, local, post);
        }
    }

    /// A claim that waited has these units until then, and its client is told.
    pub(crate) fn enter(
        &mut self,
        seat: &Seat<'_, A>,
        claim: ClaimId,
        (shares, until): (Shares, Moment),
        post: &mut Post<'_, A>,
    ) {
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        let phase = A::phase(local);
        assert!(!phase.is_held(), "only what waits is granted");
        assert!(until > seat.now, "L2: what a grant rests on has not ended");
        *phase = Phase::Held { told: Some(until) };
        post.out.grant(claim, shares, until);
    }

    /// What a client has lasts until then, so far as it has not stopped and was not told of a later
    /// moment. Says whether it is told.
    pub(crate) fn extend(
        &mut self,
        seat: &Seat<'_, A>,
        claim: ClaimId,
        until: Moment,
        post: &mut Post<'_, A>,
    ) -> bool {
        let Some(local) = self.claims.get_mut(&claim) else { return false };
        let phase = A::phase(local);
        let Phase::Held { told } = *phase else { return false };
        let stopped = phase.has_stopped(seat.now) && !A::breaks(seat, Rule::DeadIsForGood);
        // What stands is told again: whoever renews it waits for an answer.
        let no_later = |told: Moment| until <= told && until < Moment::NEVER;
        if stopped || until <= seat.now || told.is_some_and(no_later) {
            return false;
        }
        *phase = Phase::Held { told: Some(until) };
        post.out.extend(claim, until);
        true
    }

    /// The client has nothing any more, and is told so. It may hear that late or never, so what it
    /// had is given back when its deadline has passed and not before ([`quorate_core::Effect`]).
    pub(crate) fn lose(&mut self, seat: &Seat<'_, A>, claim: ClaimId, post: &mut Post<'_, A>) {
        let local = self.claims.get_mut(&claim).expect("only a known claim is lost");
        let phase = A::phase(local);
        let until = match phase {
            Phase::Waiting(_) => unreachable!("only what a client has is lost"),
            Phase::Ending { .. } => return, // It was told before.
            // Another life told it, at most one lease ago.
            Phase::Held { told } => told.unwrap_or(seat.now.after(A::longest(seat.pool))),
        };
        post.out.lose(claim);
        if until <= seat.now || A::breaks(seat, Rule::KeepWhatIsLost) {
            return self.give_back(seat, claim, post);
        }
        *phase = Phase::Ending { until };
        self.arm_retry(seat, post);
    }

    /// Those who decide say that the client has nothing any more: there is nothing to give back.
    pub(crate) fn forget(&mut self, claim: ClaimId, post: &mut Post<'_, A>) {
        self.claims.remove(&claim);
        post.out.lose(claim);
    }

    pub(crate) fn next_attempt(&mut self, seat: &Seat<'_, A>) -> Attempt {
        Attempt::next(&mut self.clock, seat.boot)
    }

    pub(crate) fn arm_retry(&mut self, seat: &Seat<'_, A>, post: &mut Post<'_, A>) {
        if !self.retrying && A::is_busy(self) {
            self.retrying = true;
            post.out.arm(A::RETRY, A::retry(seat.pool));
        }
    }
}
