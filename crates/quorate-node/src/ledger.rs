//! The claims of this node's own clients, and who waits to hear of them.
//!
//! The ledger decides nothing. It remembers what clients asked and what the seat granted, so that
//! repeating a request is harmless, and wakes whoever waits. What it says of a grant is a span
//! counted from the receipt of the request that is answered ([`Waiter::received`]): along client,
//! node and arbiter remaining times only ever shrink.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use quorate_api::link::{Answer, FromNode, Reply};
use quorate_api::{ClaimState, Problem, Want};
use quorate_core::{ClaimId, Holding, Lease, Moment, Move, NodeId, Refusal, Shares, UnitsError};
use quorate_protocols::allocator::labels::Labels;
use tokio::sync::{mpsc, oneshot};

use crate::admission::Unfit;
use crate::answers::Answers;
use crate::config::PoolDef;
use crate::convert;
use crate::crowd::Place;
use crate::engine::Command;
use crate::presence::Presence;

/// Somebody who asked and waits for an answer.
#[derive(Debug)]
pub(crate) struct Waiter {
    /// When the request arrived here.
    pub(crate) received: Moment,
    /// Where the answer goes.
    pub(crate) to: Recipient,
}

/// Where an answer goes.
#[derive(Debug)]
pub(crate) enum Recipient {
    /// To a handler of an HTTP request.
    Http(Mailbox),
    /// To a client's connection, under a number. What is known of units that have names is said of
    /// all of them to whoever claims, and of new ones to whoever renews.
    Link { answers: Answers, number: u64, claims: bool },
}

/// Where a handler of an HTTP request waits for an answer.
#[derive(Debug)]
pub(crate) struct Mailbox {
    pub(crate) reply: oneshot::Sender<Envelope>,
    /// Who wants to know if a grant that is put in here is never taken out: nobody, in tests.
    pub(crate) sender: Option<(mpsc::WeakSender<Command>, String)>,
}

impl Mailbox {
    /// Puts an answer in; says whether anybody was there.
    fn put(self, answer: Result<Snapshot, Problem>) -> bool {
        let Mailbox { reply, sender } = self;
        let Err(mut returned) = reply.send(Envelope { answer: Some(answer), sender }) else {
            return true;
        };
        // Whoever sent it knows already.
        returned.sender = None;
        false
    }
}

/// An answer on its way to a handler. A client that hangs up takes its handler with it, and then
/// the envelope is dropped unopened: if it told of a grant, the engine hears that nobody was told.
#[derive(Debug)]
pub(crate) struct Envelope {
    answer: Option<Result<Snapshot, Problem>>,
    sender: Option<(mpsc::WeakSender<Command>, String)>,
}

impl Envelope {
    /// Reads it: from now on the client may know.
    pub(crate) fn read(mut self) -> Result<Snapshot, Problem> {
        self.sender = None;
        self.answer.take().expect("an envelope is opened once")
    }
}

impl Drop for Envelope {
    fn drop(&mut self) {
        let Some((engine, pool)) = self.sender.take() else { return };
        let Some(Ok(Snapshot { id, since: Some(since), .. })) = self.answer.take() else { return };
        let Some(engine) = engine.upgrade() else { return };
        let unread = Command::Unread { pool, id, since };
        // The queue may be full, and dropping cannot wait.
        if let Err(mpsc::error::TrySendError::Full(unread)) = engine.try_send(unread)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move { drop(engine.send(unread).await) });
        }
    }
}

/// What holds for all claims of a pool.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) lease: Lease,
    /// What is known of its units now, if they differ.
    pub(crate) labels: Option<Arc<Labels>>,
    /// What they are called, if they have names.
    pub(crate) about: Option<Arc<PoolDef>>,
    /// Which other node decides, and its name.
    pub(crate) decides: Option<(NodeId, Arc<str>)>,
}

impl Terms {
    /// Those of a pool, before any label changed.
    pub(crate) fn of(def: &Arc<PoolDef>) -> Terms {
        Terms {
            lease: def.lease,
            labels: def.labels().cloned(),
            about: (!def.unit_names.is_empty()).then(|| Arc::clone(def)),
            decides: None,
        }
    }
}

/// How a claim stands, as far as a client on a link is told. It borrows: most answers are these,
/// and are written at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing<'a> {
    pub(crate) state: ClaimState,
    pub(crate) shares: Option<&'a Shares>,
    pub(crate) moves: &'a [Move],
    pub(crate) labels: Option<&'a Labels>,
    pub(crate) counted: bool,
    /// As [`Snapshot::valid_for`].
    pub(crate) valid_for: Duration,
    pub(crate) lease: Duration,
    pub(crate) ended: Option<&'a str>,
    pub(crate) refusal: Option<Refusal>,
    pub(crate) lapsed: bool,
}

/// How a claim stands, at the moment of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Snapshot {
    pub(crate) id: ClaimId,
    pub(crate) state: ClaimState,
    pub(crate) want: Want,
    pub(crate) shares: Option<Shares>,
    /// If it is granted: since when.
    pub(crate) since: Option<Moment>,
    /// What is known of the pool's units, if they differ.
    pub(crate) labels: Option<Arc<Labels>>,
    /// What the client is asked to do and has not done.
    pub(crate) moves: Vec<Move>,
    pub(crate) counted: bool,
    /// How long the grant may be used, counted from the receipt of the request.
    pub(crate) valid_for: Duration,
    pub(crate) lease: Duration,
    /// Whether it has no lease.
    pub(crate) stands: bool,
    pub(crate) waited: Duration,
    pub(crate) ended: Option<String>,
    /// Why its pool would not take it, if that is how it ended.
    pub(crate) refusal: Option<Refusal>,
    /// As [`Claimed::grant`].
    pub(crate) grant: Option<u64>,
    /// If its client has just ended it: which nodes have not heard of that.
    pub(crate) unheard: Vec<NodeId>,
    /// The name of another node, if that decides.
    pub(crate) decides: Option<Arc<str>>,
    /// See [`Claimed::lapsed`].
    pub(crate) lapsed: bool,
    /// See [`Claimed::is_hearsay`].
    pub(crate) hearsay: bool,
}

impl Snapshot {
    fn standing(&self) -> Standing<'_> {
        Standing {
            state: self.state,
            shares: self.shares.as_ref(),
            moves: &self.moves,
            labels: self.labels.as_deref(),
            counted: self.counted,
            valid_for: self.valid_for,
            lease: self.lease,
            ended: self.ended.as_deref(),
            refusal: self.refusal,
            lapsed: self.lapsed,
        }
    }
}

/// A claim of one of our clients.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) want: Want,
    pub(crate) made: Moment,
    pub(crate) state: State,
    /// Who waits until it is granted, extended or over.
    pub(crate) waiters: Vec<Waiter>,
    /// Whether anybody is there for it.
    pub(crate) presence: Presence,
    /// The connection that made or renewed it last, to be told if it is lost.
    pub(crate) session: Option<Answers>,
    /// Whether what it wants is guessed, since the claim was not made here.
    pub(crate) assumed: bool,
    /// Whether the pool only counts units.
    pub(crate) counted: bool,
    /// What it had when it was revoked, and until when its client may use that: none once it has
    /// said that it stopped.
    pub(crate) left: Option<(Shares, Moment)>,
    /// Moves that its client has not answered; both units of each are among what it has.
    pub(crate) moves: Vec<Move>,
    /// Why its pool would not take it, if that is how it ended.
    pub(crate) refusal: Option<Refusal>,
    /// Which grant of its pool it was, of those made here since the node started, the first being
    /// 1. Nothing if it was not granted here: its client only keeps up what it got elsewhere.
    pub(crate) grant: Option<u64>,
    /// Whether it is lost by this node's clock alone: the deadline passed that this node knew of.
    /// Its client may have renewed it through another node, which then knows a later one.
    pub(crate) lapsed: bool,
    /// The longest time that its client was ever given here at once.
    pub(crate) span: Duration,
    /// Its place among those of its caller, as long as it is not over.
    pub(crate) place: Option<Place<String>>,
}

/// How a claim stands here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// In the queue.
    Waiting,
    /// The client says that it holds these, and the arbiter has been asked to renew them; if it has
    /// not by then, it never will.
    Shown { shares: Shares, until: Moment },
    /// The client may use these.
    Granted { shares: Shares, until: Moment, since: Moment },
    /// It is over.
    Over { state: ClaimState, why: Cow<'static, str>, since: Moment, waited: Duration },
}

/// The claims of one pool's clients.
#[derive(Default, Debug)]
pub(crate) struct Ledger {
    /// Those that are not over: few, and looked for again and again...
    live: BTreeMap<ClaimId, Box<Claimed>>,
    /// ...and those that are, which are only remembered. Boxed: a map moves its values about.
    past: BTreeMap<ClaimId, Box<Claimed>>,
    /// Those that wait, the oldest first.
    waiting: BTreeSet<(Moment, ClaimId)>,
    /// When those end that hold units, the first one first.
    ends: BTreeSet<(Moment, ClaimId)>,
    /// Grants made so far.
    granted: u64,
}

impl Claimed {
    pub(crate) fn new(want: Want, made: Moment, state: State) -> Self {
        Claimed {
            want,
            made,
            state,
            waiters: Vec::new(),
            presence: Presence::new(made),
            session: None,
            assumed: false,
            left: None,
            counted: false,
            moves: Vec::new(),
            refusal: None,
            grant: None,
            lapsed: false,
            span: Duration::ZERO,
            place: None,
        }
    }

    /// Its client may go on until then. Says whether that is worth a renewal: at least half of the
    /// longest time it was ever given here. Less is what a node that is cut off from those who
    /// decide can still scrape together from what it heard before, and says nothing new. What is
    /// longer than a lease was given before the pool had a shorter one.
    pub(crate) fn is_given(&mut self, until: Moment, now: Moment, lease: Duration) -> bool {
        let left = until.since(now).min(lease);
        self.span = self.span.max(left);
        left >= self.span / 2
    }

    /// Its client shows what it has: takes in what it left, and returns all that it may use. `None`
    /// if it has something else.
    pub(crate) fn shows(&mut self, shown: &Shares) -> Option<Shares> {
        let (State::Granted { shares, .. } | State::Shown { shares, .. }) = &mut self.state else {
            return None;
        };
        let mut held = Holding { shares: shares.clone(), moves: std::mem::take(&mut self.moves) };
        let fits = held.shown(shown).is_some();
        (*shares, self.moves) = (held.shares, held.moves);
        fits.then(|| shares.clone())
    }

    /// Whether it was neither claimed nor shown here: all that was heard of it is that it is over.
    pub(crate) fn is_hearsay(&self) -> bool {
        self.assumed && self.want.units() == 0
    }

    /// Whether somebody waits for it now.
    pub(crate) fn is_attended(&self) -> bool {
        self.waiters.iter().any(|waiter| !waiter.is_gone())
    }

    /// Whether somebody is there, or expected, who would take its units: always, once it was told
    /// that it has some.
    pub(crate) fn is_wanted(&self, now: Moment, lease: Duration) -> bool {
        let shown = matches!(self.state, State::Shown { .. });
        shown || self.is_attended() || self.presence.is_expected(now, lease)
    }

    /// Answers how it stands. If that tells of a grant, somebody may know of it from now on.
    pub(crate) fn answer(&mut self, id: ClaimId, terms: &Terms, waiter: Waiter, now: Moment) {
        let reached = match waiter.to {
            Recipient::Http(mailbox) => {
                mailbox.put(Ok(self.snapshot(id, terms, waiter.received, now)))
            }
            Recipient::Link { answers, number, claims } => {
                let standing = self.standing(terms, waiter.received);
                let reply = convert::reply(standing, terms.about.as_deref(), claims);
                answers.send(&FromNode::Answer(Answer { number, reply }))
            }
        };
        if reached && matches!(self.state, State::Granted { .. }) {
            self.presence.tell();
        }
    }

    /// How it stands, as an answer to a request received then.
    fn standing<'a>(&'a self, terms: &'a Terms, received: Moment) -> Standing<'a> {
        let mut standing = Standing {
            state: ClaimState::Waiting,
            shares: None,
            moves: &[],
            labels: terms.labels.as_deref(),
            counted: self.counted,
            valid_for: Duration::ZERO,
            lease: terms.lease.length(),
            ended: None,
            refusal: self.refusal,
            lapsed: self.lapsed,
        };
        match &self.state {
            State::Waiting | State::Shown { .. } => {}
            State::Granted { shares, until, .. } => {
                standing.state = ClaimState::Granted;
                standing.shares = Some(shares);
                standing.moves = &self.moves;
                standing.valid_for = shrink(&terms.lease, until.since(received));
            }
            State::Over { state, why, .. } => {
                standing.state = *state;
                standing.ended = Some(why);
            }
        }
        standing
    }

    /// The same with all that is known, to be kept.
    pub(crate) fn snapshot(
        &self,
        id: ClaimId,
        terms: &Terms,
        received: Moment,
        now: Moment,
    ) -> Snapshot {
        let standing = self.standing(terms, received);
        let endless = |until: &Moment| *until == Moment::NEVER;
        let stands = self.want.standing
            || matches!(&self.state, State::Granted { until, .. } if endless(until));
        let (since, waited) = match &self.state {
            State::Waiting | State::Shown { .. } => (None, now.since(self.made)),
            State::Granted { since, .. } => (Some(*since), since.since(self.made)),
            State::Over { waited, .. } => (None, *waited),
        };
        Snapshot {
            id,
            state: standing.state,
            want: self.want.clone(),
            shares: standing.shares.cloned(),
            since,
            labels: terms.labels.clone(),
            moves: standing.moves.to_vec(),
            counted: standing.counted,
            valid_for: standing.valid_for,
            lease: standing.lease,
            stands,
            waited,
            ended: standing.ended.map(str::to_owned),
            refusal: self.refusal,
            grant: self.grant,
            unheard: Vec::new(),
            decides: terms.decides.as_ref().map(|(_, name)| Arc::clone(name)),
            lapsed: self.lapsed,
            hearsay: self.is_hearsay(),
        }
    }
}

/// A span on our clock, as one on the client's that is surely no longer: the client's clock may run
/// slower than ours by the pool's drift.
pub(crate) fn shrink(lease: &Lease, span: Duration) -> Duration {
    // The lease's own arithmetic with a length of nothing: sent + span * (1 - rho) / (1 + rho).
    let none = Lease::new(Duration::ZERO, lease.drift_ppm());
    none.deadline(Moment::ZERO, span).since(Moment::ZERO)
}

/// Among whom a claim is counted.
#[derive(Clone, Copy, Default)]
struct Counts {
    waits: bool,
    active: bool,
    end: Option<Moment>,
}

impl Counts {
    fn of(state: &State) -> Counts {
        let (waits, over) = (matches!(state, State::Waiting), matches!(state, State::Over { .. }));
        let end = match state {
            State::Granted { until, .. } | State::Shown { until, .. } => Some(*until),
            State::Waiting | State::Over { .. } => None,
        };
        Counts { waits, active: !over, end }
    }
}

impl Ledger {
    pub(crate) fn get(&self, id: &ClaimId) -> Option<&Claimed> {
        self.live.get(id).or_else(|| self.past.get(id)).map(|claimed| &**claimed)
    }

    pub(crate) fn get_mut(&mut self, id: &ClaimId) -> Option<&mut Claimed> {
        self.live.get_mut(id).or_else(|| self.past.get_mut(id)).map(|claimed| &mut **claimed)
    }

    /// No client is given longer than this at once: what is worth a renewal is judged by that.
    pub(crate) fn shorten(&mut self, lease: Duration) {
        for claimed in self.live.values_mut() {
            claimed.span = claimed.span.min(lease);
        }
    }

    /// Those that are not over, and then those that are.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&ClaimId, &Claimed)> {
        self.live.iter().chain(&self.past).map(|(id, claimed)| (id, &**claimed))
    }

    /// Those that are not over.
    pub(crate) fn live(&self) -> impl Iterator<Item = &Claimed> {
        self.live.values().map(|claimed| &**claimed)
    }

    /// Claims that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// When those were made that wait, the oldest first.
    pub(crate) fn waiting_since(&self) -> impl Iterator<Item = Moment> {
        self.waiting.iter().map(|(made, _)| *made)
    }

    /// Units that clients may use now.
    pub(crate) fn units_held(&self) -> u64 {
        let held = |(_, id): &(Moment, ClaimId)| match &self.live.get(id)?.state {
            State::Granted { shares, .. } => Some(shares.len() as u64),
            State::Waiting | State::Shown { .. } | State::Over { .. } => None,
        };
        self.ends.iter().filter_map(held).sum()
    }

    /// Whether one that was made earlier than then waits.
    pub(crate) fn passes(&self, made: Moment) -> bool {
        self.waiting.first().is_some_and(|(oldest, _)| *oldest < made)
    }

    /// When the next grant ends, if it is not renewed.
    pub(crate) fn next_end(&self) -> Option<Moment> {
        self.ends.first().map(|(end, _)| *end)
    }

    /// A claim whose grant has ended by now.
    pub(crate) fn ended(&self, now: Moment) -> Option<ClaimId> {
        self.ends.first().filter(|(end, _)| *end <= now).map(|(_, id)| *id)
    }

    /// Claims that are not over.
    pub(crate) fn active(&self) -> usize {
        self.live.len()
    }

    /// Adds a claim, or replaces one that is over.
    pub(crate) fn insert(&mut self, id: ClaimId, claimed: Claimed) {
        let (made, is) = (claimed.made, Counts::of(&claimed.state));
        self.remove(&id);
        let shelf = if is.active { &mut self.live } else { &mut self.past };
        shelf.insert(id, Box::new(claimed));
        self.count(id, made, Counts::default(), is);
    }

    /// Gives back room that it does not need.
    pub(crate) fn rest(&mut self) {
        let Ledger { live, past, waiting, ends, .. } = self;
        for shelf in [live, past].into_iter().filter(|shelf| shelf.is_empty()) {
            *shelf = BTreeMap::new();
        }
        for order in [waiting, ends].into_iter().filter(|order| order.is_empty()) {
            *order = BTreeSet::new();
        }
    }

    /// Forgets a claim that is over.
    pub(crate) fn forget(&mut self, id: &ClaimId) {
        self.past.remove(id);
    }

    /// Forgets a claim whatever became of it: nobody here knows of it, or ever will.
    pub(crate) fn remove(&mut self, id: &ClaimId) {
        if let Some(old) = self.live.remove(id).or_else(|| self.past.remove(id)) {
            self.count(*id, old.made, Counts::of(&old.state), Counts::default());
        }
    }

    /// Those that wait, the oldest first.
    pub(crate) fn in_line(&self) -> impl Iterator<Item = ClaimId> {
        self.waiting.iter().map(|(_, id)| *id)
    }

    /// Changes how a claim stands, if it is known.
    pub(crate) fn change(&mut self, id: &ClaimId, state: State) {
        let Some(claimed) = self.get_mut(id) else { return };
        let (made, is) = (claimed.made, Counts::of(&state));
        let is_grant = matches!(state, State::Granted { .. });
        let was = Counts::of(&std::mem::replace(&mut claimed.state, state));
        if !is.active {
            claimed.place = None;
        }
        if is_grant && was.waits {
            self.granted += 1;
            let number = self.granted;
            self.live.entry(*id).and_modify(|claimed| claimed.grant = Some(number));
        }
        if was.active && !is.active {
            self.past.extend(self.live.remove_entry(id));
        } else if is.active && !was.active {
            self.live.extend(self.past.remove_entry(id));
        }
        self.count(*id, made, was, is);
    }

    fn count(&mut self, id: ClaimId, made: Moment, was: Counts, is: Counts) {
        if was.waits && !is.waits {
            self.waiting.remove(&(made, id));
        } else if is.waits && !was.waits {
            self.waiting.insert((made, id));
        }
        if was.end != is.end {
            was.end.map(|end| self.ends.remove(&(end, id)));
            is.end.map(|end| self.ends.insert((end, id)));
        }
    }

    /// Answers everybody who waits for this claim.
    pub(crate) fn wake(&mut self, id: &ClaimId, terms: &Terms, now: Moment) {
        let Some(claimed) = self.get_mut(id) else { return };
        for waiter in std::mem::take(&mut claimed.waiters) {
            claimed.answer(*id, terms, waiter, now);
        }
    }

    /// Tells everybody who waits for anything over HTTP that nothing more will be said: the node
    /// says goodbye to those on links, and where to go on.
    pub(crate) fn part(&mut self, problem: &Problem) {
        for claimed in self.live.values_mut().chain(self.past.values_mut()) {
            for waiter in std::mem::take(&mut claimed.waiters) {
                if !waiter.is_link() {
                    waiter.answer(Err(problem.clone()));
                }
            }
        }
    }

    /// Tells everybody who waits for anything that nothing more will be said.
    pub(crate) fn dismiss(&mut self, problem: &Problem) {
        for claimed in self.live.values_mut().chain(self.past.values_mut()) {
            for waiter in std::mem::take(&mut claimed.waiters) {
                waiter.answer(Err(problem.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests;
mod waiter;
