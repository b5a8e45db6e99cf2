//! The engine does what seats want done, in order, behind two barriers. What follows a record is
//! held back until the record is on disk. And a client that is told to stop may hear it late or
//! never, so whatever its seat says because the client has nothing any more is held back until the
//! client's own deadline.

use quorate_api::link::FromNode;
use quorate_api::{Change, ChangeKind, ClaimState};
use quorate_core::{ClaimId, Effect, Moment, Move, Refusal, Shares};
use quorate_wire::frame::Load;
use quorate_wire::glance::What;

use super::Engine;
use super::links::Letter;
use crate::clock;
use crate::convert;
use crate::journal::Written;
use crate::ledger::State;
use crate::protocols::Books;
use crate::seat::{Parcel, SeatEffect};
use crate::selection;

impl Engine {
    pub(super) fn perform(&mut self, seat: usize, effect: SeatEffect, now: Moment) {
        match effect {
            Effect::Persist(record) => {
                let pool = &mut self.pools[seat];
                pool.barrier = pool.barrier.max(self.journal.submit(&pool.name, record));
            }
            effect => {
                let pool = &mut self.pools[seat];
                if pool.barrier <= self.durable && pool.held.is_empty() {
                    return self.show(seat, effect, now);
                }
                if pool.held.is_empty() {
                    self.behind.push(seat);
                }
                pool.held.push_back((pool.barrier, effect));
            }
        }
    }

    pub(super) fn on_written(&mut self, written: Written) {
        match written {
            Written::UpTo(number, took) => {
                self.durable = number;
                self.metrics.fsync.observe(took.as_secs_f64());
                let now = clock::now();
                for seat in std::mem::take(&mut self.behind) {
                    self.catch_up(seat, now);
                    self.schedule(seat);
                }
                self.acknowledge_written();
                self.give_back();
            }
            Written::Failed(why) => {
                // What waits for the disk waits for ever: a node that cannot remember must not
                // promise. The node stops.
                tracing::error!(%why, "the journal failed: this node stops");
                let _ = self.fatal.send(format!("the journal failed: {why}"));
                self.journal_failed = Some(why);
            }
        }
    }

    fn catch_up(&mut self, seat: usize, now: Moment) {
        loop {
            let pool = &mut self.pools[seat];
            match pool.held.front() {
                None => return,
                Some((number, _)) if *number > self.durable => return self.behind.push(seat),
                Some(_) => {}
            }
            if let Some((_, effect)) = pool.held.pop_front() {
                self.show(seat, effect, now);
            }
        }
    }

    /// Does what somebody else will see.
    fn show(&mut self, seat: usize, effect: SeatEffect, now: Moment) {
        match effect {
            Effect::Tell { to, message: Parcel { kind, delivery, packed } } => {
                if let Some(counter) = self.pools[seat].meters.messages.get(kind) {
                    counter.inc();
                }
                self.send(to, Letter { load: Load::Message, delivery, packed });
            }
            Effect::Grant { claim, shares, until } => self.grant(seat, claim, shares, until, now),
            Effect::Extend { claim, until } => self.extend(seat, claim, until, now),
            Effect::Move { claim, shares, it } => self.ask_to_move(seat, claim, shares, *it),
            Effect::Refuse { claim, why } => self.refuse(seat, claim, why, now),
            Effect::Lose { claim } => {
                let pool = &mut self.pools[seat];
                // Where several have to agree, the seat speaks of those that it asked itself: the
                // client may have renewed through another node, and by others.
                let advised = pool.def.protocol.about.books == Books::Advise;
                let Some(claimed) = pool.ledger.get_mut(&claim) else { return };
                let why = match &claimed.state {
                    // Those who decide say so too: it was renewed nowhere.
                    State::Over { .. } => return claimed.lapsed &= advised,
                    State::Granted { until, .. } if *until > now => {
                        "those who decide do not know it any more: it was ended through another \
                         node, or they restarted and forgot it"
                    }
                    // Its client showed it, and only the client knows how long it may last.
                    State::Shown { .. } => {
                        "those who decide know of no such grant: its lease ended, it was ended \
                         through another node, or they restarted and forgot it"
                    }
                    _ => "the units were taken back, since the lease had ended",
                };
                self.over(seat, claim, ClaimState::Lost, why, now);
            }
            Effect::Reclaim { claim, shares } => {
                let pool = &self.pools[seat];
                let id = convert::api_id(claim);
                tracing::info!(pool = %pool.name, claim = %id, %shares, "not renewed: taken back");
                self.note_reclaim(seat, claim, shares.len());
                self.tell_change(
                    seat,
                    claim,
                    ChangeKind::Reclaimed,
                    ClaimState::Lost,
                    shares.len(),
                );
            }
            // The node asks for all of its seats: `licences`.
            Effect::AskLicence { .. } => {}
            Effect::Vouch { term, naming } => self.vouch(seat, term, naming),
            Effect::Anomaly { peer, what } => self.anomaly(peer, what),
            Effect::Persist(_) => unreachable!("performed at once"),
            Effect::Arm { alarm, .. } | Effect::Disarm(alarm) => match alarm {},
        }
    }

    fn grant(&mut self, seat: usize, claim: ClaimId, shares: Shares, until: Moment, now: Moment) {
        if self.planted.refuses(claim) {
            return self.over(seat, claim, ClaimState::Cancelled, "it is over", now);
        }
        let shares = self.planted.shares(shares);
        let pool = &mut self.pools[seat];
        let until = self.planted.deadline(until, pool.def.lease.length());
        let Some(claimed) = pool.ledger.get(&claim) else { return };
        match &claimed.state {
            State::Waiting | State::Shown { .. } => {}
            // Only a client's word ends a claim, and then the seat has heard it too; what is over
            // by its deadline stays over.
            State::Granted { .. } | State::Over { .. } => return,
        }
        if !claimed.is_wanted(now, pool.def.lease.length()) {
            return self.unwanted.push((seat, claim));
        }
        pool.meters.granted.inc();
        let waited = now.since(claimed.made);
        pool.meters.granted_after.observe(waited.as_secs_f64());
        let made = claimed.made;
        pool.ledger.change(&claim, State::Granted { shares, until, since: now });
        if let Some(claimed) = pool.ledger.get_mut(&claim) {
            claimed.is_given(until, now, pool.def.lease.length());
        }
        if pool.ledger.passes(made) {
            pool.meters.overtakes.inc();
        }
        pool.ledger.wake(&claim, &pool.terms, now);
        if pool.ledger.get(&claim).is_some_and(|claimed| !claimed.presence.is_told()) {
            self.keep_for(seat, claim);
        }
        self.changed(seat, claim, ChangeKind::Granted);
        self.note(seat, claim, What::Granted, waited);
    }

    fn extend(&mut self, seat: usize, claim: ClaimId, until: Moment, now: Moment) {
        if self.planted.ends(claim) {
            return self.over(seat, claim, ClaimState::Lost, "it is over", now);
        }
        let pool = &mut self.pools[seat];
        let until = self.planted.deadline(until, pool.def.lease.length());
        let Some(claimed) = pool.ledger.get_mut(&claim) else { return };
        let (shares, until, since) = match &claimed.state {
            State::Granted { shares, until: before, since } => (shares, until.max(*before), *since),
            State::Shown { shares, .. } => (shares, until, now),
            State::Waiting | State::Over { .. } => return,
        };
        let new = State::Granted { shares: shares.clone(), until, since };
        let renewed = claimed.is_given(until, now, pool.def.lease.length());
        pool.ledger.change(&claim, new);
        if !renewed {
            return; // Whoever asked for it waits on, and hears that it is unknown if no more comes.
        }
        pool.meters.renewed.inc();
        pool.ledger.wake(&claim, &pool.terms, now);
        self.changed(seat, claim, ChangeKind::Renewed);
    }

    /// A client of ours may use one unit more, and is asked to leave another.
    fn ask_to_move(&mut self, seat: usize, claim: ClaimId, shares: Shares, it: Move) {
        let pool = &mut self.pools[seat];
        let Some(claimed) = pool.ledger.get_mut(&claim) else { return };
        let (State::Granted { shares: held, .. } | State::Shown { shares: held, .. }) =
            &mut claimed.state
        else {
            return;
        };
        *held = shares;
        if !claimed.moves.contains(&it) {
            claimed.moves.push(it);
        }
        if let Some(session) = &claimed.session {
            let (name, id) = (pool.name.to_string(), convert::api_id(claim));
            let it = convert::link_move(it, Some(&pool.def), pool.terms.labels.as_deref());
            // If the connection is gone, the client hears of it when it renews.
            session.send(&FromNode::Move { pool: name, id, it });
        }
        self.changed(seat, claim, ChangeKind::Moving);
    }

    fn refuse(&mut self, seat: usize, claim: ClaimId, why: Refusal, now: Moment) {
        let active = self.pools[seat].ledger.get(&claim);
        if !active.is_some_and(|c| !matches!(c.state, State::Over { .. })) {
            return; // The acknowledgement of a cancellation that we answered already.
        }
        let state = match why {
            Refusal::Cancelled => ClaimState::Cancelled,
            Refusal::NotByName
            | Refusal::NameTaken
            | Refusal::TooManyForOneNode
            | Refusal::NeverEnough => ClaimState::Refused,
        };
        // By the labels of now, if this node has just changed them.
        self.learn_own_labels(seat);
        let pool = &self.pools[seat];
        let want = pool.ledger.get(&claim).map(|claimed| &claimed.want);
        let short = want.filter(|_| why == Refusal::NeverEnough).and_then(|want| {
            selection::why_never(&pool.def, pool.terms.labels.as_deref(), self.config.me, want)
        });
        if let Some(claimed) = self.pools[seat].ledger.get_mut(&claim) {
            claimed.refusal = Some(why);
        }
        self.over(seat, claim, state, short.unwrap_or_else(|| why.to_string()), now);
    }

    /// Tells whoever watches how a claim of ours stands now.
    pub(super) fn changed(&mut self, seat: usize, claim: ClaimId, kind: ChangeKind) {
        if self.changes.receiver_count() == 0 {
            return;
        }
        let Some(claimed) = self.pools[seat].ledger.get(&claim) else { return };
        let state = match &claimed.state {
            State::Waiting | State::Shown { .. } => ClaimState::Waiting,
            State::Granted { .. } => ClaimState::Granted,
            State::Over { state, .. } => *state,
        };
        let units = claimed.want.units() as usize;
        self.tell_change(seat, claim, kind, state, units);
    }

    fn tell_change(
        &self,
        seat: usize,
        claim: ClaimId,
        kind: ChangeKind,
        state: ClaimState,
        units: usize,
    ) {
        let pool = self.pools[seat].name.to_string();
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        // There may be no watcher, and then nobody is told.
        let _ = self.changes.send(Change { pool, id: convert::api_id(claim), kind, state, units });
    }
}
