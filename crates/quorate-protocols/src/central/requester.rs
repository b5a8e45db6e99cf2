//! The requester's half: what a node tells the arbiter for its own clients, and what it hears.

use std::time::Duration;

use quorate_core::{
    Claim, ClaimId, Fence, Holding, Lease, Moment, Move, Number, Numbers, Refusal, Shares,
};

use super::message::Message;
use super::pool::{Pool, broken};
use super::{Alarm, Central, Post, Seat};
use crate::attempt::Attempt;
use crate::goods::Goods;
use crate::home::{Asked, Asks, Decided, Home, Phase, Rule};

/// The claims of a node's own clients.
pub(super) type Requester = Home<Requests>;

/// What the homes of `central` send: requests to the arbiter. They remember nothing of their own.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Requests;

/// Whether a claim that waits is asked for again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Wait {
    /// Asked since the retry alarm last rang.
    Fresh,
    /// Asked before that: the next ring asks again.
    Due,
}

/// What is known of what a client has.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) enum Has {
    #[default]
    Nothing,
    /// The newest fence of its grant: what ends another ends not this one.
    Only(Fence),
    /// All of it, where it may be asked to move or the seat may.
    All(Box<Movable>),
}

impl Has {
    fn newest(&self) -> Option<Fence> {
        match self {
            Has::Nothing => None,
            Has::Only(fence) => Some(*fence),
            Has::All(movable) => movable.held.before_moves().newest(),
        }
    }

    fn all(&self) -> Option<&Movable> {
        let Has::All(movable) = self else { return None };
        Some(movable)
    }

    fn all_mut(&mut self) -> Option<&mut Movable> {
        let Has::All(movable) = self else { return None };
        Some(movable)
    }
}

/// What is known of a holder that may be asked to move.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Movable {
    held: Holding,
    /// When it last got a unit more. What was renewed before that is not all it has.
    since: Option<Moment>,
}

impl Asks for Requests {
    type Protocol = Central;
    type Local = Asked<Wait, Has>;
    type Wait = Wait;

    const RETRY: Alarm = Alarm::Retry;

    fn retry(pool: &Pool) -> Duration {
        pool.goods.retry
    }

    fn longest(pool: &Pool) -> Duration {
        pool.goods.longest()
    }

    fn phase(local: &mut Self::Local) -> &mut Phase<Wait> {
        &mut local.phase
    }

    fn ask(
        home: &mut Requester,
        seat: &Seat<'_>,
        claim: &Claim,
        post: &mut Post<'_>,
    ) -> Result<Self::Local, Refusal> {
        // Labels are the arbiter's to know, unless they are part of what the pool is.
        let labels = seat.pool.goods.labels.as_deref().filter(|_| seat.pool.goods.ever.is_some());
        let local = home.open(seat, claim, labels)?;
        post.send(seat.pool.arbiter, local.request(claim.id, seat.now));
        Ok(local)
    }

    fn end(
        _home: &mut Requester,
        seat: &Seat<'_>,
        claim: ClaimId,
        _local: Option<Self::Local>,
        post: &mut Post<'_>,
    ) {
        post.send(seat.pool.arbiter, Message::Release { claim });
    }

    /// A decline counts against the try and the grant that it names, and a release against any.
    fn give_back(
        _home: &mut Requester,
        seat: &Seat<'_>,
        claim: ClaimId,
        local: Self::Local,
        post: &mut Post<'_>,
    ) {
        let (attempt, fence) = (local.attempt, local.holds.newest());
        post.send(seat.pool.arbiter, Message::Decline { claim, attempt, fence });
    }

    fn take_over(home: &mut Requester, seat: &Seat<'_>, shares: &Shares) -> Option<Self::Local> {
        home.shown(seat, shares)
    }

    fn renew(
        home: &mut Requester,
        seat: &Seat<'_>,
        claim: ClaimId,
        mut shares: Shares,
        post: &mut Post<'_>,
    ) {
        let local = home.claims.get_mut(&claim).expect("the home has looked it up");
        if let Some(moving) = local.holds.all_mut()
            && moving.held.shown(&shares).is_some()
        {
            // All that it may use, also what it has not heard of yet: an arbiter that forgot must
            // learn of that too.
            shares = moving.held.shares.clone();
        }
        let attempt = local.attempt;
        post.send(seat.pool.arbiter, Message::Renew { claim, attempt, shares, sent: seat.now });
    }

    fn remind(home: &mut Requester, seat: &Seat<'_>, post: &mut Post<'_>) -> bool {
        if broken!(seat, NeverRetry) {
            return false;
        }
        let mut waiting = false;
        for (&claim, local) in &mut home.claims {
            match &mut local.phase {
                Phase::Waiting(wait @ Wait::Fresh) => *wait = Wait::Due,
                Phase::Waiting(Wait::Due) => {
                    post.send(seat.pool.arbiter, local.request(claim, seat.now));
                }
                Phase::Held { .. } | Phase::Ending { .. } => continue,
            }
            waiting = true;
        }
        waiting
    }

    fn is_busy(home: &Requester) -> bool {
        home.has_waiting()
    }

    fn changes(pool: &Pool) -> bool {
        pool.goods.ever.is_some()
    }

    fn breaks(seat: &Seat<'_>, rule: Rule) -> bool {
        match rule {
            Rule::Fits => broken!(seat, IgnoreLines),
            Rule::EarlierBoots => broken!(seat, DeclineForeignBoot),
            Rule::DeadIsForGood | Rule::KeepWhatIsLost => false,
        }
    }
}

impl Decided for Requests {
    type Holds = Has;

    fn goods(pool: &Pool) -> &Goods {
        &pool.goods
    }

    fn waiting() -> Wait {
        Wait::Fresh
    }

    fn holds(seat: &Seat<'_>, shares: &Shares) -> Has {
        if seat.pool.goods.labels.is_some() || seat.pool.moves {
            return Has::All(Box::new(Movable { held: Holding::new(shares.clone()), since: None }));
        }
        shares.newest().map_or(Has::Nothing, Has::Only)
    }

    fn request(home: &mut Requester, seat: &Seat<'_>, claim: ClaimId, post: &mut Post<'_>) {
        post.send(seat.pool.arbiter, home.claims[&claim].request(claim, seat.now));
    }

    fn decline(
        _home: &mut Requester,
        seat: &Seat<'_>,
        (claim, attempt): (ClaimId, Attempt),
        shares: &Shares,
        post: &mut Post<'_>,
    ) {
        let fence = Some(shares.newest().unwrap_or_default());
        post.send(seat.pool.arbiter, Message::Decline { claim, attempt, fence });
    }
}

impl Requester {
    /// What promises something counts by the lease that is said with it, if one is.
    pub(super) fn hear(
        &mut self,
        seat: &Seat<'_>,
        said: Option<Lease>,
        message: Message,
        post: &mut Post<'_>,
    ) {
        let lease = said.as_ref().unwrap_or(&seat.pool.goods.lease);
        match message {
            Message::Grant { claim, attempt, shares, sent, waited } => {
                let mut until = lease.deadline(sent, waited);
                if broken!(seat, CountFromReceipt) {
                    until = seat.now.after(lease.length());
                }
                if broken!(seat, IgnoreDrift) {
                    until = sent.after(waited.saturating_add(lease.length()));
                }
                if broken!(seat, RenewLateGrant)
                    && until <= seat.now
                    && self.find(claim, attempt).is_some_and(|local| !local.phase.is_held())
                {
                    let (shares, sent) = (shares.clone(), seat.now);
                    let renew = Message::Renew { claim, attempt, shares, sent };
                    post.send(seat.pool.arbiter, renew);
                }
                self.on_grant(seat, (claim, attempt), shares, until, post);
            }
            Message::Renewed { claim, attempt, sent } => {
                let until = lease.deadline(sent, Duration::ZERO);
                self.on_renewed(seat, (claim, attempt), sent, (until, said.is_some()), post);
            }
            Message::Lost { claim, attempt, fence } => {
                // Of one that waits it has nothing, and asks anew either way.
                let has = self.find(claim, attempt).and_then(|local| local.holds.newest());
                if has <= Some(fence) || broken!(seat, EndByTry) {
                    self.on_lost(seat, (claim, attempt), post);
                }
            }
            Message::Move { claim, attempt, it } => self.on_move(seat, claim, attempt, it, post),
            Message::Refused { claim, attempt } => {
                if self.find(claim, attempt).is_some_and(|local| !local.phase.is_held()) {
                    self.claims.remove(&claim);
                    post.out.refuse(claim, Refusal::NeverEnough);
                }
            }
            Message::Request { .. }
            | Message::Release { .. }
            | Message::Decline { .. }
            | Message::Renew { .. } => unreachable!("messages for the arbiter go to the arbiter"),
        }
    }

    fn on_renewed(
        &mut self,
        seat: &Seat<'_>,
        (claim, attempt): (ClaimId, Attempt),
        sent: Moment,
        (until, may_be_shorter): (Moment, bool),
        post: &mut Post<'_>,
    ) {
        let Some(local) = self.find(claim, attempt) else {
            return; // Released meanwhile; the release is on its way.
        };
        // The arbiter may be one that forgot the move, and took into its books what was shown.
        let moved = local.holds.all().and_then(|moving| moving.since);
        if moved.is_some_and(|since| sent <= since) && !broken!(seat, ExtendAfterMove) {
            return;
        }
        match local.phase {
            // Another home, or another life of this one, may have told it a later moment by a
            // longer lease: it has stopped when it says so, or when those who decide do.
            Phase::Held { told: None } if may_be_shorter && until > seat.now => {
                post.out.extend(claim, until);
            }
            // It was told a later moment by a longer lease, which stays; it waits for an answer.
            Phase::Held { told: Some(told) } if may_be_shorter && until <= told => {
                if told > seat.now {
                    post.out.extend(claim, told);
                }
            }
            _ => drop(self.extend(seat, claim, until, post)),
        }
    }

    /// A client of ours is to go to another unit.
    fn on_move(
        &mut self,
        seat: &Seat<'_>,
        claim: ClaimId,
        attempt: Attempt,
        it: Move,
        post: &mut Post<'_>,
    ) {
        let local = self.claims.get_mut(&claim).filter(|local| local.attempt == attempt);
        let Some(moving) = local.and_then(|local| local.holds.all_mut()) else {
            return; // Its grant is on its way: the arbiter says this again when it is renewed.
        };
        if it.to.unit.0 >= seat.pool.goods.units || it.to.unit == it.from.unit {
            return post.out.anomaly(seat.pool.arbiter, "a move to where nobody can go");
        }
        let news = !moving.held.shares.contains(it.to);
        if moving.held.begin(it) {
            moving.since = if news { Some(seat.now) } else { moving.since };
            post.out.ask_to_move(claim, moving.held.shares.clone(), it.from, it.to);
        }
    }

    /// The pool is another from now on: what it can never grant is refused, by name, whatever
    /// whoever decides may know of that yet.
    pub(super) fn amend(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        if broken!(seat, WaitForNothing) {
            return;
        }
        let why = |(&id, local): (&ClaimId, &Asked<Wait, Has>)| {
            let goods = &seat.pool.goods;
            let why = || goods.refusal(seat.me, &local.wanted, goods.labels.as_deref());
            (!local.phase.is_held()).then(why).flatten().map(|why| (id, why))
        };
        let over: Vec<(ClaimId, Refusal)> = self.claims.iter().filter_map(why).collect();
        for (claim, why) in over {
            let local = self.claims.remove(&claim).expect("it was just seen");
            Requests::give_back(self, seat, claim, local, post);
            post.out.refuse(claim, why);
        }
    }

    /// The arbiter is heard again. What was said to it may be lost, and if it could not hear us
    /// either, claims of ours may be out of their turn.
    pub(super) fn ask_all_again(&self, seat: &Seat<'_>, post: &mut Post<'_>) {
        for (&claim, local) in self.claims.iter().filter(|(_, local)| !local.phase.is_held()) {
            post.send(seat.pool.arbiter, local.request(claim, seat.now));
        }
    }

    fn find(&self, claim: ClaimId, attempt: Attempt) -> Option<&Asked<Wait, Has>> {
        self.claims.get(&claim).filter(|local| local.attempt == attempt)
    }

    /// What clients may be using, and in which try it was got or is kept.
    pub(super) fn listed(
        &self,
        now: Moment,
    ) -> impl Iterator<Item = (ClaimId, Attempt, Shares)> + '_ {
        self.claims.iter().filter_map(move |(&claim, local)| {
            let phase = &local.phase;
            let over = !phase.is_held() || phase.has_stopped(now) || phase.is_over(now);
            let holds = local.holds.all().filter(|_| !over)?;
            Some((claim, local.attempt, holds.held.shares.clone()))
        })
    }

    /// What clients have.
    pub(super) fn holds_mut(&mut self) -> impl Iterator<Item = &mut Has> {
        self.claims.values_mut().map(|local| &mut local.holds)
    }
}

impl Numbers for Has {
    fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>)) {
        match self {
            Has::Nothing => {}
            Has::Only(fence) => fence.numbers(see),
            Has::All(movable) => movable.held.numbers(see),
        }
    }
}

impl<H> Asked<Wait, H> {
    fn request(&self, claim: ClaimId, sent: Moment) -> Message {
        Message::Request { claim, attempt: self.attempt, wanted: self.wanted.clone(), sent }
    }
}
