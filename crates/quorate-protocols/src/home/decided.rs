//! Homes under protocols in which one answer grants a claim: the arbiter's, or that of whichever
//! node changed the table.

use quorate_core::{Claim, ClaimId, Moment, Refusal, Shares, Units, Wanted};

use super::{Asks, Home, Phase, PoolOf, Post, Rule, Seat};
use crate::allocator::labels::Labels;
use crate::attempt::Attempt;
use crate::goods::Goods;

/// A local client's claim: `W` is known while it waits, `H` when it has its units.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Asked<W, H = ()> {
    pub(crate) wanted: Wanted,
    pub(crate) attempt: Attempt,
    pub(crate) phase: Phase<W>,
    pub(crate) holds: H,
}

/// What such a protocol supplies besides.
pub(crate) trait Decided:
    Asks<Local = Asked<<Self as Asks>::Wait, <Self as Decided>::Holds>>
{
    /// What is known of what a client has.
    type Holds: Default;

    /// What the pool lends.
    fn goods(pool: &PoolOf<Self>) -> &Goods;
    /// How a claim begins to wait.
    fn waiting() -> Self::Wait;
    /// What is known of a client that has these.
    fn holds(seat: &Seat<'_, Self>, shares: &Shares) -> Self::Holds;
    /// Asks for a claim that waits, in its current try.
    fn request(
        home: &mut Home<Self>,
        seat: &Seat<'_, Self>,
        claim: ClaimId,
        post: &mut Post<'_, Self>,
    );
    /// A claim is granted that nobody here waits for in this try, although this life of the home
    /// asked for it.
    fn decline(
        home: &mut Home<Self>,
        seat: &Seat<'_, Self>,
        about: (ClaimId, Attempt),
        shares: &Shares,
        post: &mut Post<'_, Self>,
    );
}

impl<A: Decided> Home<A> {
    /// A new claim, if it could ever be granted by these labels; without any, by whatever labels
    /// there will be.
    pub(crate) fn open(
        &mut self,
        seat: &Seat<'_, A>,
        claim: &Claim,
        labels: Option<&Labels>,
    ) -> Result<A::Local, Refusal> {
        if let Some(why) = A::goods(seat.pool).refusal(seat.me, &claim.wanted, labels) {
            return Err(why);
        }
        let (wanted, attempt) = (claim.wanted.clone(), self.next_attempt(seat));
        let (phase, holds) = (Phase::Waiting(A::waiting()), A::Holds::default());
        Ok(Asked { wanted, attempt, phase, holds })
    }

    /// What a client shows that outlived the home's last boot; those who decide know the rest.
    pub(crate) fn shown(&mut self, seat: &Seat<'_, A>, shares: &Shares) -> Option<A::Local> {
        let units = u32::try_from(shares.len()).unwrap_or(u32::MAX);
        let wanted = Wanted::any(Units::new(units, A::goods(seat.pool).most_shown()).ok()?);
        let (attempt, phase) = (self.next_attempt(seat), Phase::Held { told: None });
        Some(Asked { wanted, attempt, phase, holds: A::holds(seat, shares) })
    }

    /// Those who decide gave a claim these units.
    pub(crate) fn on_grant(
        &mut self,
        seat: &Seat<'_, A>,
        (claim, attempt): (ClaimId, Attempt),
        shares: Shares,
        until: Moment,
        post: &mut Post<'_, A>,
    ) {
        match self.claims.get_mut(&claim) {
            Some(local) if local.attempt == attempt => {
                if local.phase.is_held() {
                    return; // The same answer again.
                }
                let fits = A::goods(seat.pool).serves(&local.wanted, &shares);
                if !fits && !A::breaks(seat, Rule::Fits) {
                    self.claims.remove(&claim);
                    return post.out.refuse(claim, Refusal::NameTaken);
                }
                let until = local.wanted.lasts(until);
                if until <= seat.now {
                    return self.ask_anew(seat, claim, post); // And perhaps somebody else's by now.
                }
                local.holds = A::holds(seat, &shares);
                local.phase = Phase::Held { told: Some(until) };
                post.out.grant(claim, shares, until);
            }
            // What an earlier boot of ours asked for may be in use by its client (arbiter spec C3).
            _ if attempt.boot != seat.boot && !A::breaks(seat, Rule::EarlierBoots) => {}
            _ => A::decline(self, seat, (claim, attempt), &shares, post),
        }
    }

    /// Those who decide know of no units of a claim.
    pub(crate) fn on_lost(
        &mut self,
        seat: &Seat<'_, A>,
        (claim, attempt): (ClaimId, Attempt),
        post: &mut Post<'_, A>,
    ) {
        let known = self.claims.get(&claim).filter(|local| local.attempt == attempt);
        match known.map(|local| local.phase.is_held()) {
            Some(true) => self.forget(claim, post),
            // Granted, and over before we heard of it: our client still wants its units.
            Some(false) => self.ask_anew(seat, claim, post),
            None => {}
        }
    }

    /// The claim keeps its place, if it has one, and whatever answers older tries is stale from now
    /// on.
    pub(crate) fn ask_anew(&mut self, seat: &Seat<'_, A>, claim: ClaimId, post: &mut Post<'_, A>) {
        let attempt = self.next_attempt(seat);
        let local = self.claims.get_mut(&claim).expect("only a claim that waits here");
        assert!(!local.phase.is_held(), "what the client has is not asked for again");
        (local.attempt, local.phase) = (attempt, Phase::Waiting(A::waiting()));
        A::request(self, seat, claim, post);
        self.arm_retry(seat, post);
    }

    /// Whether any claim waits.
    pub(crate) fn has_waiting(&self) -> bool {
        self.claims.values().any(|local| !local.phase.is_held())
    }
}
