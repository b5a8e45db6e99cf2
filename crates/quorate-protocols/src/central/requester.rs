//! The requester's half: what a node does for its own clients.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_core::{
    Claim, ClaimId, Clock, Holding, Moment, Move, Refusal, Seat, Shares, Units, Wanted,
};

use super::message::Message;
use super::pool::broken;
use super::{Alarm, Central, Post};
use crate::attempt::Attempt;

/// The claims of a node's own clients. Nothing here need survive a crash: clients ask again.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Requester {
    /// Counts attempts.
    clock: Clock,
    claims: BTreeMap<ClaimId, Local>,
    /// Whether the retry alarm is armed. It is left to ring rather than disarmed, so that claims
    /// that are served quickly do not touch it at all.
    retrying: bool,
}

/// A local client's claim.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Local {
    wanted: Wanted,
    attempt: Attempt,
    standing: Standing,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Standing {
    /// Asked since the retry alarm last rang.
    Fresh,
    /// Asked before that: the next ring asks again.
    Due,
    /// The client was told of its grant, and that it lasts until then; or it told us, and did not
    /// say until when.
    Held { until: Option<Moment>, moving: Option<Box<Moving>> },
}

/// What is known of a holder that may be asked to move: kept where units differ.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Moving {
    held: Holding,
    /// When it last got a unit more. What was renewed before that is not all it has.
    since: Option<Moment>,
}

impl Moving {
    fn new(seat: &Seat<'_, Central>, shares: &Shares) -> Option<Box<Moving>> {
        let moving = || Box::new(Moving { held: Holding::new(shares.clone()), since: None });
        seat.pool.goods.labels.is_some().then(moving)
    }
}

impl Requester {
    pub(super) fn on_claim(
        &mut self,
        seat: &Seat<'_, Central>,
        claim: &Claim,
        post: &mut Post<'_>,
    ) {
        // Labels are the arbiter's to know.
        if let Some(why) = seat.pool.goods.refusal(seat.me, claim, None) {
            return post.out.refuse(claim.id, why);
        }
        if self.claims.contains_key(&claim.id) {
            return; // A client that repeats itself changes nothing.
        }
        let attempt = self.next_attempt(seat);
        let local = Local { wanted: claim.wanted.clone(), attempt, standing: Standing::Fresh };
        post.send(seat.pool.arbiter, local.request(claim.id, seat.now));
        self.claims.insert(claim.id, local);
        self.arm_retry(seat, post);
    }

    pub(super) fn on_release(
        &mut self,
        seat: &Seat<'_, Central>,
        claim: ClaimId,
        post: &mut Post<'_>,
    ) {
        // Also for a claim that is not known here: its client may have outlived our last boot.
        self.claims.remove(&claim);
        post.send(seat.pool.arbiter, Message::Release { claim });
    }

    pub(super) fn on_cancel(
        &mut self,
        seat: &Seat<'_, Central>,
        claim: ClaimId,
        post: &mut Post<'_>,
    ) {
        if broken!(seat, ForgetCancel) {
            return post.out.refuse(claim, Refusal::Cancelled);
        }
        // A cancel that crosses its grant gives the units back, and a grant still on its way will
        // be declined.
        self.on_release(seat, claim, post);
        post.out.refuse(claim, Refusal::Cancelled);
    }

    pub(super) fn on_renew(
        &mut self,
        seat: &Seat<'_, Central>,
        claim: ClaimId,
        mut shares: Shares,
        post: &mut Post<'_>,
    ) {
        let attempt = match self.claims.get_mut(&claim) {
            Some(Local { attempt, standing: Standing::Held { moving, .. }, .. }) => {
                if let Some(moving) = moving
                    && moving.held.shown(&shares).is_some()
                {
                    // All that it may use, also what it has not heard of yet: an arbiter that
                    // forgot must learn of that too.
                    shares = moving.held.shares.clone();
                }
                *attempt
            }
            Some(_) => return, // It waits here, so it holds nothing that we could renew.
            None => {
                // The client outlived our last boot.
                let attempt = self.next_attempt(seat);
                let Ok(units) = Units::new(shares.len() as u32, seat.pool.goods.units) else {
                    return post.out.lose(claim);
                };
                let standing = Standing::Held { until: None, moving: Moving::new(seat, &shares) };
                let wanted = Wanted::any(units);
                self.claims.insert(claim, Local { wanted, attempt, standing });
                attempt
            }
        };
        post.send(seat.pool.arbiter, Message::Renew { claim, attempt, shares, sent: seat.now });
    }

    pub(super) fn on_ring_retry(&mut self, seat: &Seat<'_, Central>, post: &mut Post<'_>) {
        self.retrying = false;
        if broken!(seat, NeverRetry) {
            return;
        }
        let mut waiting = false;
        for (&claim, local) in &mut self.claims {
            match local.standing {
                Standing::Held { .. } => continue,
                Standing::Fresh => local.standing = Standing::Due,
                Standing::Due => post.send(seat.pool.arbiter, local.request(claim, seat.now)),
            }
            waiting = true;
        }
        if waiting {
            self.arm_retry(seat, post);
        }
    }

    pub(super) fn hear(&mut self, seat: &Seat<'_, Central>, message: Message, post: &mut Post<'_>) {
        match message {
            Message::Grant { claim, attempt, shares, sent, waited } => {
                let mut until = seat.pool.goods.lease.deadline(sent, waited);
                if broken!(seat, CountFromReceipt) {
                    until = seat.now.after(seat.pool.goods.lease.length());
                }
                if broken!(seat, IgnoreDrift) {
                    until = sent.after(waited.saturating_add(seat.pool.goods.lease.length()));
                }
                self.on_grant(seat, claim, attempt, shares, until, post);
            }
            Message::Renewed { claim, attempt, sent } => {
                self.on_renewed(seat, claim, attempt, sent, post);
            }
            Message::Lost { claim, attempt } => self.on_lost(seat, claim, attempt, post),
            Message::Move { claim, attempt, it } => self.on_move(seat, claim, attempt, it, post),
            Message::Refused { claim, attempt } => {
                let known = |l: &&Local| l.attempt == attempt && !l.is_held();
                if self.claims.get(&claim).filter(known).is_some() {
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

    fn on_grant(
        &mut self,
        seat: &Seat<'_, Central>,
        claim: ClaimId,
        attempt: Attempt,
        shares: Shares,
        until: Moment,
        post: &mut Post<'_>,
    ) {
        let arbiter = seat.pool.arbiter;
        let local = self.claims.get_mut(&claim);
        match local {
            Some(local) if local.attempt == attempt => {
                if local.is_held() {
                    return; // The same answer again.
                }
                let served = seat.pool.goods.serves(&local.wanted, &shares);
                if !served && !broken!(seat, IgnoreLines) {
                    // Somebody else's claim has this name, and may be using these units.
                    self.claims.remove(&claim);
                    return post.out.refuse(claim, Refusal::NameTaken);
                }
                if until <= seat.now {
                    // Too late to use, and perhaps somebody else's by now. A new attempt asks how
                    // the claim stands; to renew it would make an arbiter that forgot believe that
                    // we hold it.
                    if broken!(seat, RenewLateGrant) {
                        let renew = Message::Renew { claim, attempt, shares, sent: seat.now };
                        post.send(arbiter, renew);
                    }
                    return self.ask_anew(seat, claim, post);
                }
                let moving = Moving::new(seat, &shares);
                local.standing = Standing::Held { until: Some(until), moving };
                post.out.grant(claim, shares, until);
            }
            // What an earlier boot of ours asked for may be in use by its client (arbiter spec C3).
            _ if attempt.boot != seat.boot && !broken!(seat, DeclineForeignBoot) => {}
            _ => post.send(arbiter, Message::Decline { claim, attempt }),
        }
    }

    fn on_renewed(
        &mut self,
        seat: &Seat<'_, Central>,
        claim: ClaimId,
        attempt: Attempt,
        sent: Moment,
        post: &mut Post<'_>,
    ) {
        let local = self.claims.get_mut(&claim).filter(|l| l.attempt == attempt);
        let Some(Local { standing: Standing::Held { until: so_far, moving }, .. }) = local else {
            return; // Released meanwhile; the release is on its way.
        };
        // The arbiter may be one that forgot the move, and took into its books what was shown.
        let moved = moving.as_ref().and_then(|moving| moving.since);
        if moved.is_some_and(|since| sent <= since) && !broken!(seat, ExtendAfterMove) {
            return;
        }
        let until = seat.pool.goods.lease.deadline(sent, Duration::ZERO);
        // An answer that comes after the deadline revives nothing (arbiter spec C1: dead is for
        // good), and one that was overtaken by a later answer takes nothing back.
        let alive = so_far.is_none_or(|so_far| seat.now < so_far && so_far < until);
        if alive && seat.now < until {
            *so_far = Some(until);
            post.out.extend(claim, until);
        }
    }

    fn on_lost(
        &mut self,
        seat: &Seat<'_, Central>,
        claim: ClaimId,
        attempt: Attempt,
        post: &mut Post<'_>,
    ) {
        let Some(local) = self.claims.get(&claim).filter(|l| l.attempt == attempt) else { return };
        if local.is_held() {
            self.claims.remove(&claim);
            return post.out.lose(claim);
        }
        // Granted, and over before we heard of it: our client still wants its units.
        self.ask_anew(seat, claim, post);
    }

    /// A client of ours is to go to another unit.
    fn on_move(
        &mut self,
        seat: &Seat<'_, Central>,
        claim: ClaimId,
        attempt: Attempt,
        it: Move,
        post: &mut Post<'_>,
    ) {
        let local = self.claims.get_mut(&claim).filter(|l| l.attempt == attempt);
        let Some(Local { standing: Standing::Held { moving: Some(moving), .. }, .. }) = local
        else {
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

    /// What clients have who may be asked to move.
    pub(super) fn held_mut(&mut self) -> impl Iterator<Item = &mut Holding> {
        self.claims.values_mut().filter_map(|local| match &mut local.standing {
            Standing::Held { moving: Some(moving), .. } => Some(&mut moving.held),
            _ => None,
        })
    }

    /// The claim keeps its place, if it has one, and whatever answers older attempts is stale from
    /// now on.
    fn ask_anew(&mut self, seat: &Seat<'_, Central>, claim: ClaimId, post: &mut Post<'_>) {
        let attempt = self.next_attempt(seat);
        let local = self.claims.get_mut(&claim).expect("only a claim that waits here");
        assert!(!local.is_held(), "what the client has is not asked for again");
        local.attempt = attempt;
        local.standing = Standing::Fresh;
        post.send(seat.pool.arbiter, local.request(claim, seat.now));
        self.arm_retry(seat, post);
    }

    fn next_attempt(&mut self, seat: &Seat<'_, Central>) -> Attempt {
        Attempt { boot: seat.boot, clock: self.clock.tick() }
    }

    fn arm_retry(&mut self, seat: &Seat<'_, Central>, post: &mut Post<'_>) {
        if !self.retrying {
            self.retrying = true;
            post.out.arm(Alarm::Retry, seat.pool.goods.retry);
        }
    }
}

impl Local {
    fn is_held(&self) -> bool {
        matches!(self.standing, Standing::Held { .. })
    }

    fn request(&self, claim: ClaimId, sent: Moment) -> Message {
        Message::Request { claim, attempt: self.attempt, wanted: self.wanted.clone(), sent }
    }
}
