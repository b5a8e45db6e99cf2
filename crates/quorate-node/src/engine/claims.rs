//! What clients ask about claims.
//!
//! What a client has been told that it holds ends by its own words or with the lease. What nobody
//! was told, and nobody is there for, a node gives up by itself (`presence`): only as far as this
//! node asked for it, since the claim's name may be in use at another to which its client moved.

use std::borrow::Cow;
use std::time::Duration;

use quorate_api::link::FromNode;
use quorate_api::{ChangeKind, ClaimState, Problem, Want};
use quorate_core::{ClaimId, Event, Moment, Shares};
use quorate_wire::glance::What;

use super::{Ask, Engine, REMEMBER, stopping};
use crate::admission::{self, Unfit};
use crate::caller::Caller;
use crate::clock;
use crate::convert;
use crate::crowd::{Place, Room};
use crate::ledger::{Claimed, State, Waiter};
use crate::protocols::Books;

/// Waiters of one claim among which those that have gone away are tolerated...
const WAITERS_KEPT: usize = 8;
/// ...and most that there can be: who repeats itself more often than that is answered in the order
/// in which it asked.
const WAITERS_MAX: usize = 64;

/// Why a claim is over that its client no longer wanted.
pub(super) const CANCELLED: &str = "the client cancelled it";

impl Engine {
    pub(super) fn on_client(
        &mut self,
        caller: &Caller,
        (pool, id): (&str, ClaimId),
        ask: Ask,
        waiter: Waiter,
    ) {
        if self.stopping {
            return waiter.answer(Err(stopping()));
        }
        // A question leaves nothing behind: no seat is made for it, and a pool without a seat knows
        // no claim.
        let looks = matches!(ask, Ask::Status { .. } | Ask::Renew { shown: None, .. });
        if looks && !self.by_name.contains_key(pool) && self.config.names(pool) {
            return waiter.answer(Err(admission::unknown_claim()));
        }
        let seat = match self.seat(pool) {
            Ok(seat) => seat,
            Err(problem) => return waiter.answer(Err(problem)),
        };
        if let Some(problem) = self.pools[seat].stopped() {
            return waiter.answer(Err(problem));
        }
        let now = self.now();
        match self.pools[seat].ledger.get(&id).map(|claimed| &claimed.state) {
            // A grant whose deadline has passed is over, whether or not its alarm has rung yet.
            Some(State::Granted { until, .. }) if *until <= now => self.on_grant_end(seat, id, now),
            Some(_) => {}
            None => self.recall_end(seat, id, now),
        }
        match ask {
            Ask::Claim { want, wait, keep } => {
                self.on_claim(caller, (seat, id), want, wait, waiter);
                self.detach(seat, id, keep);
            }
            Ask::Renew { shown, client } => self.on_renew(client, (seat, id), shown, waiter, now),
            Ask::End => self.on_end(seat, id, waiter, now),
            Ask::Status { wait } => {
                self.attend(seat, id, now);
                self.answer(seat, id, wait, waiter, now);
            }
        }
    }

    fn on_claim(
        &mut self,
        caller: &Caller,
        (seat, id): (usize, ClaimId),
        want: Want,
        wait: bool,
        waiter: Waiter,
    ) {
        let now = self.now();
        if want.standing && waiter.is_link() {
            return waiter.answer(Err(admission::standing_on_link()));
        }
        let session = waiter.session();
        if let Some(connection) = &session {
            self.hint(seat, connection);
        }
        let pool = &mut self.pools[seat];
        let abandoned = pool.ledger.get(&id).map(|claimed| claimed.presence.abandoned);
        if abandoned == Some(true) {
            pool.ledger.forget(&id); // Its client is back after all.
        }
        if let Some(claimed) = abandoned.and_then(|_| pool.ledger.get_mut(&id)) {
            if !matches!(claimed.state, State::Over { .. }) {
                let same_units = claimed.want.units() == want.units();
                let same = claimed.want.asks_as(&want) || (claimed.assumed && same_units);
                if !same {
                    return waiter.answer(Err(admission::different()));
                }
                if let Err(problem) = admission::texts(&self.config.limits, &want) {
                    return waiter.answer(Err(problem));
                }
                let renamed = claimed.want.client != want.client;
                claimed.want = want;
                claimed.assumed = false;
                claimed.session = session;
                if renamed {
                    self.owner_news(seat, id);
                }
                self.attend(seat, id, now);
            }
            return self.answer(seat, id, wait, waiter, now);
        }
        let draw = self.draw();
        let place = self.place(caller);
        let pool = &mut self.pools[seat];
        let admitted = admission::room(&self.config.limits, self.active, pool.ledger.waiting())
            .and(place)
            .map_err(Unfit::from)
            .and_then(|place| {
                let known = pool.known();
                let claim = admission::claim(&pool.def, &known, &self.config, id, &want, draw)?;
                Ok((self.planted.claim(claim), place))
            });
        let (claim, place) = match admitted {
            Ok(admitted) => admitted,
            Err(unfit) => {
                pool.meters.refused.inc();
                return waiter.refuse(unfit);
            }
        };
        let mut claimed = Claimed::new(want, now, State::Waiting);
        (claimed.session, claimed.place) = (session, place);
        self.insert(seat, id, claimed);
        self.changed(seat, id, ChangeKind::Claimed);
        self.note(seat, id, What::Claimed, Duration::ZERO);
        self.step(seat, Event::Claim(claim));
        // It may be granted already, if this node decides.
        self.answer(seat, id, wait, waiter, now);
    }

    /// A place among the claims of a caller that is known by a token or a certificate. What it
    /// holds already and takes along from another node has room in any case.
    fn place(&self, caller: &Caller) -> Result<Option<Place<String>>, Problem> {
        let Caller::Holder(permit) = caller else { return Ok(None) };
        let each = self.config.limits.claims_per_caller;
        let place = self.claimants.enter(&permit.name, Room { all: usize::MAX, each });
        place.map(Some).map_err(|_| {
            let what = "claims of one token or certificate that wait or hold at this node";
            admission::limit("claims_per_caller", each, what)
        })
    }

    fn on_renew(
        &mut self,
        client: String,
        (seat, id): (usize, ClaimId),
        shown: Option<Shares>,
        waiter: Waiter,
        now: Moment,
    ) {
        let pool = &mut self.pools[seat];
        let shown = match shown.map(|shares| admission::shown(&pool.def, Some(shares))) {
            Some(Err(problem)) => return waiter.answer(Err(problem)),
            Some(Ok(shares)) => Some(shares),
            None => None,
        };
        let session = waiter.session();
        // A copy that its client left here says nothing of what it was granted elsewhere.
        if shown.is_some() && pool.ledger.get(&id).is_some_and(|it| it.presence.abandoned) {
            pool.ledger.forget(&id);
        }
        let state = pool.ledger.get(&id).map(|claimed| &claimed.state);
        let shares = match (state, shown) {
            // It has no lease: there is nothing to extend.
            (Some(State::Granted { until: Moment::NEVER, .. }), None) => {
                return self.answer(seat, id, false, waiter, now);
            }
            (Some(State::Granted { shares, .. } | State::Shown { shares, .. }), None) => {
                shares.clone()
            }
            (Some(State::Granted { .. } | State::Shown { .. }), Some(shown)) => {
                let Some(shares) = pool.ledger.get_mut(&id).and_then(|c| c.shows(&shown)) else {
                    pool.meters.fence_rejections.inc();
                    return waiter.answer(Err(admission::other_units()));
                };
                shares
            }
            // It waits here, and holds nothing that could be renewed; if it does elsewhere, the
            // grant is found as soon as the arbiter answers.
            (Some(State::Waiting), _) => return self.answer(seat, id, true, waiter, now),
            (None, Some(shown)) => {
                if let Err(problem) = self.adopt(client, (seat, id), &shown, now) {
                    return waiter.answer(Err(problem));
                }
                shown
            }
            // Here its deadline passed, and dead is for good. Whether the client renewed it through
            // another node since is for whoever is answered to find out.
            (Some(State::Over { .. }), _) => return self.answer(seat, id, false, waiter, now),
            (None, None) => return waiter.answer(Err(admission::unknown_claim())),
        };
        if let Some(claimed) = self.pools[seat].ledger.get_mut(&id) {
            if session.is_some() {
                claimed.session = session;
            }
            // Whoever renews knows of its grant, perhaps from another node: whatever becomes of
            // this answer, the units may be in use.
            claimed.presence.tell();
            push_waiter(&mut claimed.waiters, waiter);
        }
        self.step(seat, Event::Renew { claim: id, shares });
    }

    /// A claim of which only its client knows: this node restarted, or the client moved here.
    fn adopt(
        &mut self,
        client: String,
        (seat, id): (usize, ClaimId),
        shown: &Shares,
        now: Moment,
    ) -> Result<(), Problem> {
        let limits = &self.config.limits;
        admission::room(limits, self.active, self.pools[seat].ledger.waiting())?;
        let units = u32::try_from(shown.len()).unwrap_or(u32::MAX);
        let until = now.after(self.pools[seat].def.lease.length());
        let shown = State::Shown { shares: shown.clone(), until };
        let mut claimed = Claimed::new(units.into(), now, shown);
        claimed.assumed = true;
        // From now on it is known here, and whose.
        claimed.want.client = client;
        self.insert(seat, id, claimed);
        Ok(())
    }

    /// Whether a claim was made or shown here. Asking leaves it as it is: nobody is there for it
    /// because of that.
    pub(super) fn has_seen(&self, pool: &str, id: ClaimId) -> bool {
        let seat = self.by_name.get(pool);
        let claimed = seat.and_then(|seat| self.pools[*seat].ledger.get(&id));
        claimed.is_some_and(|claimed| !claimed.is_hearsay())
    }

    fn on_end(&mut self, seat: usize, id: ClaimId, waiter: Waiter, now: Moment) {
        let pool = &mut self.pools[seat];
        if let (Some(claimed), Some(session)) = (pool.ledger.get_mut(&id), waiter.session())
            && claimed.session.as_ref().is_some_and(|own| own.same_as(&session))
        {
            // Whoever ends it is answered, and need not be told as well.
            claimed.session = None;
        }
        let state = pool.ledger.get(&id).map(|claimed| &claimed.state);
        let holds = matches!(state, Some(State::Granted { .. }));
        match state {
            Some(State::Granted { .. }) => {
                self.step(seat, Event::Release(id));
                self.over(seat, id, ClaimState::Released, "the client released it", now);
            }
            Some(State::Waiting | State::Shown { .. }) => {
                // First, so that the seat's acknowledgement finds it over and is no second end.
                self.over(seat, id, ClaimState::Cancelled, CANCELLED, now);
                self.step(seat, Event::Cancel(id));
            }
            // Also for a claim that is not known here: its client may have outlived our last start,
            // or its cancellation may have overtaken it.
            None => {
                self.step(seat, Event::Cancel(id));
                let mut claimed = Claimed::new(0.into(), now, State::Waiting);
                claimed.assumed = true;
                self.insert(seat, id, claimed);
                let why = "its client ended it, at a node where it was not made";
                self.over(seat, id, ClaimState::Cancelled, why, now);
            }
            // The client may hold it through another node; its word counts. A client whose claim
            // was revoked says that it has stopped.
            Some(State::Over { state: ClaimState::Lost | ClaimState::Revoked, .. }) => {
                if let Some(claimed) = pool.ledger.get_mut(&id) {
                    (claimed.left, claimed.lapsed) = (None, false);
                }
                self.step(seat, Event::Release(id));
            }
            Some(State::Over { .. }) => {}
        }
        // A client on a link releases where it holds, and says so twice if it was at another node
        // before; whoever else ends a claim may hold it, or have left a copy of it, anywhere, and
        // wants to know that it is over everywhere.
        let alone = self.config.members.len() == 1;
        if !waiter.is_link() && !alone {
            return self.tell_end(seat, id, Some(waiter));
        }
        self.answer(seat, id, false, waiter, now);
        if !holds && !alone {
            self.tell_end(seat, id, None);
        }
    }

    /// An operator takes a claim back. If it waits, it is cancelled. If it is granted, its client
    /// is told, and this node renews it no more; the arbiter is *not* told before the client has
    /// released it, since the client may use its units until it has heard of it. So they return
    /// when the client says so, or with the lease. What has no lease has only this end: its units
    /// return at once, and the fence is what keeps a client out that goes on.
    pub(super) fn revoke(&mut self, seat: usize, id: ClaimId, reason: &str) {
        let now = clock::now();
        let state = self.pools[seat].ledger.get(&id).map(|claimed| &claimed.state);
        match state {
            Some(State::Waiting) => {
                // Over first: its client is to hear that it was revoked, not that it cancelled.
                self.over(seat, id, ClaimState::Revoked, reason.to_owned(), now);
                return self.step(seat, Event::Cancel(id));
            }
            Some(State::Granted { .. } | State::Shown { .. }) => {}
            Some(State::Over { state: ClaimState::Lost, .. }) => {}
            Some(State::Over { .. }) => return,
            // Remembered, so that it is not renewed through this node either.
            None => {
                let mut claimed = Claimed::new(0.into(), now, State::Waiting);
                claimed.assumed = true;
                self.insert(seat, id, claimed);
            }
        }
        let stands = self.stands(seat, id);
        self.over(seat, id, ClaimState::Revoked, reason.to_owned(), now);
        if stands {
            self.step(seat, Event::Release(id));
        }
    }

    /// Whether a claim has no lease, as far as this node knows: from its client, or from its books.
    pub(super) fn stands(&self, seat: usize, id: ClaimId) -> bool {
        let pool = &self.pools[seat];
        let held = |claimed: &Claimed| {
            matches!(claimed.state, State::Granted { until: Moment::NEVER, .. })
        };
        let mut stands = pool.ledger.get(&id).is_some_and(held);
        if pool.def.standing && !stands {
            pool.seat.ledger(&mut |entry| stands |= entry.claim == id && entry.kept.is_some());
        }
        stands
    }

    /// Says how a claim stands: now, or when it no longer waits.
    pub(super) fn answer(
        &mut self,
        seat: usize,
        id: ClaimId,
        wait: bool,
        waiter: Waiter,
        now: Moment,
    ) {
        let pool = &mut self.pools[seat];
        let Some(claimed) = pool.ledger.get_mut(&id) else {
            return waiter.answer(Err(admission::unknown_claim()));
        };
        let news = claimed.state == State::Waiting && !claimed.presence.announced;
        if wait && matches!(claimed.state, State::Waiting | State::Shown { .. }) {
            push_waiter(&mut claimed.waiters, waiter);
            claimed.presence.stays(now);
            if news {
                self.begins_to_wait(seat, id, now);
            }
        } else {
            claimed.answer(id, &pool.terms, waiter, now);
            claimed.presence.answered(now);
            if claimed.presence.is_told() && !pool.untold.is_empty() {
                pool.untold.remove(&id);
            }
        }
    }

    /// A grant's deadline has come, as far as this node knows.
    pub(super) fn on_grant_end(&mut self, seat: usize, claim: ClaimId, now: Moment) {
        let pool = &mut self.pools[seat];
        let Some(claimed) = pool.ledger.get_mut(&claim) else { return };
        // Where no books are kept, a grant is renewed at its own node and nowhere else.
        claimed.lapsed = pool.def.protocol.about.books != Books::None;
        let why = match matches!(claimed.state, State::Shown { .. }) {
            true => "no arbiter confirmed the renewal",
            false => "the lease ended without a renewal",
        };
        self.over(seat, claim, ClaimState::Lost, why, now);
    }

    pub(super) fn insert(&mut self, seat: usize, id: ClaimId, mut claimed: Claimed) {
        claimed.counted = !self.pools[seat].def.promises.names_units;
        let ledger = &mut self.pools[seat].ledger;
        let before = ledger.active();
        ledger.insert(id, claimed);
        self.active = self.active + ledger.active() - before;
        self.lines.insert(seat);
        self.owner_news(seat, id);
    }

    /// A claim is over: whoever waits for it is answered, its connection told, and it is remembered
    /// for a while.
    pub(super) fn over(
        &mut self,
        seat: usize,
        id: ClaimId,
        state: ClaimState,
        why: impl Into<Cow<'static, str>>,
        now: Moment,
    ) {
        let why = why.into();
        self.note_end(seat, id, state, &why, now);
        let pool = &mut self.pools[seat];
        let Some(claimed) = pool.ledger.get_mut(&id) else { return };
        let waited = match &claimed.state {
            State::Granted { since, shares, until } => {
                if state == ClaimState::Revoked && *until < Moment::NEVER {
                    claimed.left = Some((shares.clone(), *until));
                }
                pool.meters.held_for.observe(now.since(*since).as_secs_f64());
                match state {
                    ClaimState::Released => pool.meters.released.inc(),
                    ClaimState::Revoked => pool.meters.revoked.inc(),
                    _ => pool.meters.expired.inc(),
                };
                since.since(claimed.made)
            }
            // Nobody claimed it here.
            State::Waiting if claimed.assumed => Duration::ZERO,
            State::Waiting => {
                let waited = now.since(claimed.made);
                pool.meters.cancelled.inc();
                pool.meters.cancelled_after.observe(waited.as_secs_f64());
                waited
            }
            State::Shown { .. } => {
                pool.meters.not_renewed.inc();
                Duration::ZERO
            }
            State::Over { waited, .. } => *waited,
        };
        if let Some(session) = claimed.session.take()
            && matches!(claimed.state, State::Granted { .. } | State::Shown { .. })
        {
            // If the connection is gone, the client asks again.
            session.send(&FromNode::Over {
                pool: pool.name.to_string(),
                id: convert::api_id(id),
                state,
                why: why.to_string(),
            });
        }
        let before = pool.ledger.active();
        pool.ledger.change(&id, State::Over { state, why, since: now, waited });
        self.active = self.active + pool.ledger.active() - before;
        pool.ledger.wake(&id, &pool.terms, now);
        self.owner_news(seat, id);
        self.changed(seat, id, ChangeKind::Ended);
        self.over.push_back((now, seat, id));
        if self.over.len() > self.config.limits.remembered {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some((since, seat, id)) = self.over.pop_front() {
            let ledger = &mut self.pools[seat].ledger;
            // It may have come back to life since, and ended again.
            let same = ledger.get(&id).is_some_and(
                |claimed| matches!(claimed.state, State::Over { since: s, .. } if s == since),
            );
            if same {
                ledger.forget(&id);
            }
        }
    }

    /// Forgets what has been over for long enough: longer than any lease.
    pub(super) fn forget_old(&mut self, now: Moment) {
        let keep = REMEMBER.max(self.config.lease_max() * 2);
        while self.over.front().is_some_and(|(since, ..)| now.since(*since) > keep) {
            self.forget_first();
        }
        self.forget_ends(now, keep);
        self.forget_owners(now, keep);
    }
}

fn push_waiter(waiters: &mut Vec<Waiter>, waiter: Waiter) {
    if waiters.len() >= WAITERS_KEPT {
        waiters.retain(|waiter| !waiter.is_gone());
    }
    if waiters.len() >= WAITERS_MAX {
        let what = "requests that wait for one claim";
        waiters.remove(0).answer(Err(admission::limit("waiters", WAITERS_MAX, what)));
    }
    waiters.push(waiter);
}
