//! One claim is one claim, at whichever nodes it was asked for.
//!
//! A client that goes to another node leaves a copy of its claim behind. Where protocols book a
//! claim once for all nodes that is one claim; where each node asks for itself both copies stand in
//! line, and both would be granted. So nodes tell each other ([`Tidings`]):
//!
//! * *its client waits here*, once, of a claim that has waited for a moment: claims that are
//!   granted quickly cost nothing. A copy at which nobody waits, and of whose grant nobody was
//!   told, then gives way at once. If somebody waits there too, both stay, until one of them has
//!   gone: only clients know whether they are the same. What was told as granted stays with whoever
//!   was told, until it is released or its lease ends;
//! * *its client ended it*. Whoever has a copy ends it too, and everybody remembers the name for as
//!   long as names are remembered, so that it is not granted again wherever it is repeated. A node
//!   that is met anew is told again.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use quorate_api::ClaimState;
use quorate_core::{ClaimId, Event, Moment, NodeId};
use quorate_wire::Delivery;
use quorate_wire::frame::{self, Load};
use quorate_wire::tidings::{CLAIMS_MAX, Heard, OfPool, Tidings};

use super::Engine;
use super::links::Letter;
use crate::alarms::Due;
use crate::clock;
use crate::ledger::{Claimed, State, Waiter};

/// How long a claim has waited before other nodes hear where its client is.
const A_MOMENT: Duration = Duration::from_millis(50);
/// How long other nodes have to acknowledge that a claim is over, before its client is told who has
/// not.
const PATIENCE: Duration = Duration::from_millis(500);

/// What this node has to tell, and has heard, of claims of which there may be copies.
#[derive(Default)]
pub(super) struct Copies {
    /// Claims that began to wait, the oldest first; and whether an alarm is set for them.
    fresh: VecDeque<(Moment, usize, ClaimId)>,
    alarmed: bool,
    /// Claims that have just ended here by their clients' words, and who waits until all know.
    ends: Vec<(usize, ClaimId)>,
    waiters: Vec<(usize, ClaimId, Waiter)>,
    /// All that ended here so, for nodes that are met anew, the oldest first.
    ended: VecDeque<(Moment, usize, ClaimId)>,
    /// Tidings that are not acknowledged by all.
    told: BTreeMap<u64, Telling>,
    next: u64,
    /// Claims that ended elsewhere and are not known here.
    heard: Obituaries,
}

/// Tidings that are not acknowledged by all.
struct Telling {
    /// Who has not acknowledged them...
    missing: BTreeSet<NodeId>,
    /// ...and who could not be told, or is not expected to answer soon.
    absent: Vec<NodeId>,
    waiters: Vec<(usize, ClaimId, Waiter)>,
}

/// Names of claims that ended elsewhere and were never asked for here.
#[derive(Default)]
struct Obituaries {
    pools: HashMap<ClaimId, Vec<Arc<str>>>,
    order: VecDeque<(Moment, ClaimId)>,
}

impl Obituaries {
    fn note(&mut self, pool: &str, id: ClaimId, now: Moment, most: usize) {
        let pools = self.pools.entry(id).or_default();
        if pools.iter().any(|known| **known == *pool) {
            return;
        }
        pools.push(Arc::from(pool));
        self.order.push_back((now, id));
        while self.order.len() > most {
            self.forget_first();
        }
    }

    /// Takes it out, if it is there.
    fn take(&mut self, pool: &str, id: ClaimId) -> bool {
        if self.pools.is_empty() {
            return false;
        }
        let Some(pools) = self.pools.get_mut(&id) else { return false };
        let Some(at) = pools.iter().position(|known| **known == *pool) else { return false };
        pools.remove(at);
        true
    }

    /// Its name in every pool: nobody uses one name in two pools for long.
    fn forget_first(&mut self) {
        if let Some((_, id)) = self.order.pop_front() {
            self.pools.remove(&id);
        }
    }

    fn forget_old(&mut self, now: Moment, keep: Duration) {
        while self.order.front().is_some_and(|(since, _)| now.since(*since) > keep) {
            self.forget_first();
        }
    }
}

impl Engine {
    /// A client begins to wait here for a claim.
    pub(super) fn begins_to_wait(&mut self, seat: usize, id: ClaimId, now: Moment) {
        if self.config.members.len() > 1 {
            self.copies.fresh.push_back((now, seat, id));
            self.remind_of_copies();
        }
    }

    fn remind_of_copies(&mut self) {
        if let Some((since, ..)) = self.copies.fresh.front()
            && !std::mem::replace(&mut self.copies.alarmed, true)
        {
            self.alarms.set(since.after(A_MOMENT), Due::Copies);
        }
    }

    /// Tells all others of claims that have waited here for a moment, and still do.
    pub(super) fn tell_who_waits(&mut self, now: Moment) {
        self.copies.alarmed = false;
        let mut here = Vec::new();
        while let Some(&(since, seat, id)) = self.copies.fresh.front()
            && now.since(since) >= A_MOMENT
        {
            self.copies.fresh.pop_front();
            let Some(claimed) = self.pools[seat].ledger.get_mut(&id) else { continue };
            let waits = claimed.state == State::Waiting && claimed.is_attended();
            if waits && !std::mem::replace(&mut claimed.presence.announced, true) {
                here.push((seat, id));
            }
        }
        self.remind_of_copies();
        let me = self.config.me;
        for claims in here.chunks(CLAIMS_MAX) {
            let packed = frame::seal(&self.tidings(None, claims, true));
            for peer in (0..self.config.members.len()).map(NodeId::from) {
                if peer != me {
                    self.tell(peer, packed.clone());
                }
            }
        }
    }

    pub(super) fn tell(&mut self, peer: NodeId, packed: Box<[u8]>) -> bool {
        let (load, delivery) = (Load::Tidings, Delivery::Resumed);
        self.send(peer, Letter { load, delivery, packed })
    }

    fn tidings(&self, number: Option<u64>, claims: &[(usize, ClaimId)], here: bool) -> Tidings {
        let mut pools: BTreeMap<usize, Vec<(u64, u64)>> = BTreeMap::new();
        for (seat, id) in claims {
            pools.entry(*seat).or_default().push((id.origin, id.serial));
        }
        let of = |(seat, claims): (usize, Vec<(u64, u64)>)| {
            let pool = self.pools[seat].name.to_string();
            let (here, over) = if here { (claims, Vec::new()) } else { (Vec::new(), claims) };
            OfPool { pool, here, over, ..OfPool::default() }
        };
        Tidings { number, pools: pools.into_iter().map(of).collect() }
    }

    /// A client of ours ended a claim. If the waiter is given, it is answered when all have heard.
    pub(super) fn tell_end(&mut self, seat: usize, id: ClaimId, waiter: Option<Waiter>) {
        self.copies.ends.push((seat, id));
        self.copies.waiters.extend(waiter.map(|waiter| (seat, id, waiter)));
        self.copies.ended.push_back((clock::now(), seat, id));
        if self.copies.ended.len() > self.config.limits.remembered {
            self.copies.ended.pop_front();
        }
    }

    /// Tells all others of the claims that ended here since this was last done.
    pub(super) fn tell_ends(&mut self) {
        if self.copies.ends.is_empty() {
            return;
        }
        let ends = std::mem::take(&mut self.copies.ends);
        let waiters = std::mem::take(&mut self.copies.waiters);
        let me = self.config.me;
        let (mut missing, mut absent) = (BTreeSet::new(), Vec::new());
        let number = self.copies.next;
        self.copies.next += 1;
        let mut chunks = ends.chunks(CLAIMS_MAX).peekable();
        while let Some(claims) = chunks.next() {
            // Tidings arrive in order: who has heard the last has heard all.
            let last = chunks.peek().is_none();
            let packed = frame::seal(&self.tidings(last.then_some(number), claims, false));
            for peer in (0..self.config.members.len()).map(NodeId::from) {
                if peer == me {
                    continue;
                }
                let taken = self.tell(peer, packed.clone());
                if last && taken && self.answers_soon(peer) {
                    missing.insert(peer);
                } else if last {
                    absent.push(peer);
                }
            }
        }
        let everybody = missing.is_empty();
        self.copies.told.insert(number, Telling { missing, absent, waiters });
        if everybody {
            return self.all_have_heard(number);
        }
        self.alarms.set(clock::now().after(PATIENCE), Due::Heard(number));
    }

    /// A peer has heard.
    pub(super) fn on_heard(&mut self, peer: NodeId, heard: &Heard) {
        let Some(telling) = self.copies.told.get_mut(&heard.number) else { return };
        if telling.missing.remove(&peer) && telling.missing.is_empty() {
            self.all_have_heard(heard.number);
        }
    }

    /// Whoever ended these claims is answered, with who has not heard of it by now.
    pub(super) fn all_have_heard(&mut self, number: u64) {
        let Some(mut telling) = self.copies.told.remove(&number) else { return };
        telling.absent.extend(telling.missing);
        telling.absent.sort_unstable();
        let now = clock::now();
        for (seat, id, waiter) in telling.waiters {
            let pool = &mut self.pools[seat];
            let Some(claimed) = pool.ledger.get_mut(&id) else {
                waiter.answer(Err(crate::admission::unknown_claim()));
                continue;
            };
            let mut snapshot = claimed.snapshot(id, &pool.terms, waiter.received, now);
            snapshot.unheard.clone_from(&telling.absent);
            waiter.answer(Ok(snapshot));
        }
    }

    /// A peer that is met anew knows nothing of what was said before.
    pub(super) fn tell_anew(&mut self, peer: NodeId) {
        let ended: Vec<_> = self.copies.ended.iter().map(|(_, seat, id)| (*seat, *id)).collect();
        for claims in ended.chunks(CLAIMS_MAX) {
            let packed = frame::seal(&self.tidings(None, claims, false));
            self.tell(peer, packed);
        }
        let mut here = Vec::new();
        for &seat in &self.lines {
            let ledger = &self.pools[seat].ledger;
            let told = |id: &ClaimId| ledger.get(id).is_some_and(|c| c.presence.announced);
            here.extend(ledger.in_line().filter(told).map(|id| (seat, id)));
        }
        for claims in here.chunks(CLAIMS_MAX) {
            let packed = frame::seal(&self.tidings(None, claims, true));
            self.tell(peer, packed);
        }
    }

    /// A peer tells of claims.
    pub(super) fn on_tidings(&mut self, peer: NodeId, tidings: Tidings) {
        for OfPool { pool, here, over, owned, left } in tidings.pools {
            self.on_owners(peer, &pool, owned, left);
            let id = |(origin, serial)| ClaimId { origin, serial };
            if let Some(&seat) = self.by_name.get(pool.as_str()) {
                here.into_iter().for_each(|claim| self.on_elsewhere(seat, id(claim)));
            }
            over.into_iter().for_each(|claim| self.on_ended(peer, &pool, id(claim)));
        }
        if let Some(number) = tidings.number {
            let packed = frame::seal(&Heard { number });
            let (load, delivery) = (Load::Heard, Delivery::Resumed);
            self.send(peer, Letter { load, delivery, packed });
        }
    }

    /// The client of a claim waits at another node.
    fn on_elsewhere(&mut self, seat: usize, id: ClaimId) {
        let Some(claimed) = self.pools[seat].ledger.get_mut(&id) else { return };
        match claimed.state {
            State::Waiting => {}
            State::Granted { .. } if !claimed.presence.is_told() => {}
            State::Granted { .. } | State::Shown { .. } | State::Over { .. } => return,
        }
        if claimed.is_attended() {
            // Perhaps it has hung up, and this node has not noticed: seen when its turn comes.
            claimed.presence.elsewhere = true;
            return;
        }
        self.give_way(seat, id);
    }

    /// A client ended a claim at another node, and is using nothing of it.
    fn on_ended(&mut self, peer: NodeId, pool: &str, id: ClaimId) {
        let now = clock::now();
        let seat = self.by_name.get(pool).copied();
        let known = seat.and_then(|seat| self.pools[seat].ledger.get_mut(&id));
        let (Some(seat), Some(claimed)) = (seat, known) else {
            let most = self.config.limits.remembered;
            if self.config.names(pool) {
                self.copies.heard.note(pool, id, now, most);
            }
            return;
        };
        match claimed.state {
            State::Granted { .. } => {
                let why = format!("the client released it at {}", self.name_of(peer));
                self.step(seat, Event::Release(id));
                self.over(seat, id, ClaimState::Released, why, now);
            }
            State::Waiting | State::Shown { .. } => {
                let why = format!("the client ended it at {}", self.name_of(peer));
                self.over(seat, id, ClaimState::Cancelled, why, now);
                self.step(seat, Event::Cancel(id));
            }
            State::Over { state: ClaimState::Lost | ClaimState::Revoked, .. } => {
                claimed.left = None;
                self.step(seat, Event::Release(id));
            }
            State::Over { .. } => {}
        }
    }

    /// Takes up that a claim ended elsewhere, which is asked for here for the first time.
    pub(super) fn recall_end(&mut self, seat: usize, id: ClaimId, now: Moment) {
        let pool = &self.pools[seat];
        if !self.copies.heard.take(&pool.name, id) {
            return;
        }
        let mut claimed = Claimed::new(0.into(), now, State::Waiting);
        claimed.assumed = true;
        self.insert(seat, id, claimed);
        let why = "the client ended it at another node";
        self.over(seat, id, ClaimState::Cancelled, why, now);
    }

    /// Forgets names that have been over for long enough.
    pub(super) fn forget_ends(&mut self, now: Moment, keep: Duration) {
        self.copies.heard.forget_old(now, keep);
        let ended = &mut self.copies.ended;
        while ended.front().is_some_and(|(since, ..)| now.since(*since) > keep) {
            ended.pop_front();
        }
    }

    /// Nobody waits any longer.
    pub(super) fn stop_telling(&mut self) {
        self.tell_ends();
        for number in self.copies.told.keys().copied().collect::<Vec<_>>() {
            self.all_have_heard(number);
        }
    }
}
