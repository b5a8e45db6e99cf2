//! A node's seat: its places on the ring, and its clients' claims.
//!
//! Claims of one node are served one at a time, oldest first: only one of them asks the ring at any
//! moment, so that younger ones cannot pass it at home. Those that were granted stay at places of
//! their own until they are over.
//!
//! A grant's lease is between a client and its own node, which is the one that reports the units as
//! used. A node that is restarted has forgotten that, and is *blind* for one lease: what it counts
//! may be too little, and no tokens are made while it does.

use std::collections::VecDeque;
use std::time::Duration;

use quorate_core::{
    Claim, ClaimId, Moment, NodeId, NodeSet, Outbox, Refusal, Seat, Shares, Start, Units,
};

use super::machine::Role;
use super::message::Message;
use super::place::{Job, Place, Seated};
use super::pool::{Mutant, Pool, Variant};
use super::station::Post;
use super::tether::{Epoch, Parcel, Tether};
use super::tokens::Named;
use super::{Alarm, Ring};

/// The root's node.
pub(super) const ROOT: NodeId = NodeId(0);

/// Doublings of the root's patience before it stays as it is (ring spec 7).
const MISSES_MAX: u32 = 4;

/// What the root waits for.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Watch {
    /// What the armed alarm is about: a traversal under way, or the parked train (`None`). Nothing
    /// is armed yet while this is `None` altogether.
    pub(super) armed: Option<Option<u64>>,
    /// Traversals missed in a row.
    pub(super) misses: u32,
    /// Whether a node was left out less than a ttl ago, so that no tokens are made.
    pub(super) settling: bool,
    /// The epoch's change when tokens could last be made: what is of an earlier one may have been
    /// made anew.
    pub(super) sure: u32,
    healed: Healed,
}

/// What the root had to repair, for whoever watches a pool. Anything here that no restart or lost
/// message explains was a fault.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Healed {
    /// Tokens made because they were missing.
    pub made: u64,
    /// How often all tokens were destroyed because there were too many.
    pub kills: u64,
    /// What it counted in the last traversal; `None` before the end of the first.
    pub counted: Option<u32>,
}

impl Watch {
    pub(super) fn healed(&self) -> Healed {
        self.healed
    }

    pub(super) fn forget_totals(&mut self) {
        self.healed = Healed::default();
    }
}

impl Ring {
    pub(super) fn begin(seat: &Seat<'_, Ring>, start: &Start<()>, out: &mut Outbox<Ring>) -> Self {
        let root = seat.me == ROOT;
        let role = |visit: usize| match root && visit == 0 {
            true => Role::Root { boot: seat.boot },
            false => Role::Other,
        };
        let places = (0..seat.pool.visits(seat.me)).map(|v| Place::new(seat.pool, v, role(v)));
        let mut ring = Ring {
            places: places.collect(),
            waiting: VecDeque::new(),
            own: VecDeque::new(),
            blind: *start != Start::First,
            tether: Tether::default(),
            destroyed: 0,
            watch: root.then(Box::default),
        };
        match seat.pool.variant {
            // `core` has one epoch: it leaves nobody out.
            Variant::Core => {
                let epoch = Epoch { config: seat.pool.epoch, ..Epoch::default() };
                ring.tether.enter(epoch, &NodeSet::new());
            }
            Variant::Train if root => {
                let epoch = Epoch { config: seat.pool.epoch, boot: seat.boot, change: 0 };
                ring.tether.enter(epoch, &NodeSet::new());
            }
            Variant::Train => ring.bar(!seat.pool.breaks(Mutant::NoFence)),
        }
        ring.await_count();
        if ring.blind {
            ring.places.iter_mut().for_each(|place| place.set_blind(true));
            // The root's is also for nodes that an earlier boot left out.
            out.arm(Alarm::Grace, seat.pool.lease.length().max(seat.pool.ttl.length()));
        }
        if root && ring.blind {
            // Above all numbers of earlier boots, so that what is left of them is stale.
            let seqs = seat.pool.terms().seqs;
            ring.places[0].station_mut().seq = (u64::from(seat.boot) << 32) % seqs;
            ring.act(seat, 0, out, Place::timeout);
        } else if root {
            ring.act(seat, 0, out, Place::first_start);
        }
        ring.watch_over(seat, out);
        ring
    }

    pub(super) fn on_claim(
        &mut self,
        seat: &Seat<'_, Ring>,
        claim: &Claim,
        out: &mut Outbox<Ring>,
    ) {
        if claim.wanted.lines.is_some() {
            return out.refuse(claim.id, Refusal::NotByName);
        }
        let known = self.waiting.iter().any(|(id, _)| *id == claim.id);
        if !known && self.place_of(claim.id).is_none() {
            self.waiting.push_back((claim.id, claim.wanted.units));
            self.serve(seat, out);
        }
    }

    /// The claim is over, whatever became of it.
    pub(super) fn on_end(&mut self, seat: &Seat<'_, Ring>, claim: ClaimId, out: &mut Outbox<Ring>) {
        self.waiting.retain(|(id, _)| *id != claim);
        let Some(at) = self.place_of(claim) else { return };
        if matches!(self.places[at].job, Job::Granted { .. }) {
            out.disarm(Alarm::LeaseEnd(claim));
        }
        self.act(seat, at, out, Place::leave);
        self.serve(seat, out);
    }

    pub(super) fn on_renew(
        &mut self,
        seat: &Seat<'_, Ring>,
        claim: ClaimId,
        shares: &Shares,
        out: &mut Outbox<Ring>,
    ) {
        match self.place_of(claim).map(|at| &self.places[at].job) {
            Some(Job::Granted { shares: ours, .. }) if ours == shares => {}
            Some(Job::Granted { .. }) => return out.lose(claim),
            Some(_) => return, // It waits here, so it holds nothing that we could renew.
            None if self.waiting.iter().any(|(id, _)| *id == claim) => return,
            // Without a licence too, so that it is counted; but then it gets no more time.
            None if self.blind && self.could_have_granted(seat, shares) => {
                let at = self.add_place(seat);
                self.places[at].adopt(claim, shares);
            }
            None => return out.lose(claim),
        }
        match self.promise(seat) {
            Some((until, over)) => {
                out.arm(Alarm::LeaseEnd(claim), over);
                out.extend(claim, until);
            }
            None => out.arm(Alarm::LeaseEnd(claim), seat.pool.lease.length()),
        }
    }

    /// Whether an earlier boot of ours could have granted this, and nobody else here has shown it.
    fn could_have_granted(&self, seat: &Seat<'_, Ring>, shares: &Shares) -> bool {
        let all = shares.as_slice();
        Units::new(all.len() as u32, seat.pool.terms().units).is_ok()
            && all.windows(2).all(|pair| pair[0].unit < pair[1].unit)
            && all.iter().all(|share| {
                let known = self.places.iter().any(|place| match &place.job {
                    Job::Granted { shares, .. } => shares.iter().any(|s| s.unit == share.unit),
                    _ => false,
                });
                share.unit.0 < seat.pool.terms().units && !known
            })
    }

    /// A message comes to a node's places at one of its visits.
    pub(super) fn pass(
        &mut self,
        seat: &Seat<'_, Ring>,
        visit: usize,
        message: Message<Named>,
        out: &mut Outbox<Ring>,
    ) {
        // `core` has no word for a blind count, so a blind station lets none be finished.
        let core = matches!(self.places[0].seated, Seated::Core(_));
        if core && self.blind && matches!(message, Message::Controller(_)) {
            return;
        }
        let first = self.places.partition_point(|place| place.visit < visit);
        self.flow(seat, first, vec![message], out);
        self.serve(seat, out);
    }

    /// A ring of one node: what it sent to itself arrives.
    pub(super) fn on_ring_hop(&mut self, seat: &Seat<'_, Ring>, out: &mut Outbox<Ring>) {
        if let Some(parcel) = self.own.pop_front() {
            self.on_parcel(seat, seat.me, parcel, out);
        }
        if !self.own.is_empty() {
            out.arm(Alarm::Hop, seat.pool.hop());
        }
    }

    pub(super) fn on_ring_lease_end(
        &mut self,
        seat: &Seat<'_, Ring>,
        claim: ClaimId,
        out: &mut Outbox<Ring>,
    ) {
        // Gone if the licence ended in the same moment.
        let Some(at) = self.place_of(claim) else { return };
        let Job::Granted { shares, .. } = &self.places[at].job else {
            unreachable!("a lease is armed for grants only");
        };
        out.reclaim(claim, shares.clone());
        out.lose(claim);
        self.act(seat, at, out, Place::leave);
        self.serve(seat, out);
    }

    pub(super) fn on_ring_grace(&mut self, seat: &Seat<'_, Ring>, out: &mut Outbox<Ring>) {
        assert!(self.blind, "grace ends once");
        self.blind = false;
        let settling = self.watch.as_ref().is_some_and(|watch| watch.settling);
        self.places.iter_mut().for_each(|place| place.set_blind(false));
        self.places[0].set_blind(settling);
        self.serve(seat, out);
    }

    pub(super) fn on_ring_timeout(&mut self, seat: &Seat<'_, Ring>, out: &mut Outbox<Ring>) {
        let watch = self.watch.as_mut().expect("only the root arms this alarm");
        watch.misses = (watch.misses + 1).min(MISSES_MAX);
        watch.armed = None; // A new number is not yet a traversal: patience stays.
        self.act(seat, 0, out, Place::timeout);
        self.serve(seat, out);
    }

    pub(super) fn on_ring_idle(&mut self, seat: &Seat<'_, Ring>, out: &mut Outbox<Ring>) {
        self.act(seat, 0, out, Place::launch);
        self.serve(seat, out);
    }

    /// Which place works for a claim.
    pub(super) fn place_of(&self, claim: ClaimId) -> Option<usize> {
        self.places.iter().position(|place| place.claim() == Some(claim))
    }

    /// One place does something; what it sends passes the places to its right.
    pub(super) fn act(
        &mut self,
        seat: &Seat<'_, Ring>,
        at: usize,
        out: &mut Outbox<Ring>,
        act: impl FnOnce(&mut Place, &Pool, &mut Post<Named>),
    ) {
        let mut post = Post::default();
        act(&mut self.places[at], seat.pool, &mut post);
        self.note(&post);
        self.on_entered(seat, at, post.entered, out);
        let visit = self.places[at].visit;
        if self.places.get(at + 1).is_some_and(|next| next.visit == visit) {
            self.flow(seat, at + 1, post.right, out);
        } else {
            self.tell(seat, visit, post.right, out);
        }
    }

    /// Messages pass the places of one visit from `first` on, in order.
    fn flow(
        &mut self,
        seat: &Seat<'_, Ring>,
        first: usize,
        mut batch: Vec<Message<Named>>,
        out: &mut Outbox<Ring>,
    ) {
        let visit = self.places[first].visit;
        for at in first..self.places.len() {
            if self.places[at].visit != visit || batch.is_empty() {
                break;
            }
            let mut post = Post::default();
            for message in batch {
                self.places[at].hear(seat.pool, message, &mut post);
            }
            self.note(&post);
            batch = post.right;
            self.on_entered(seat, at, post.entered, out);
        }
        self.tell(seat, visit, batch, out);
    }

    fn note(&mut self, post: &Post<Named>) {
        self.destroyed = self.destroyed.wrapping_add(post.destroyed);
        if let Some(watch) = &mut self.watch {
            watch.healed.made += u64::from(post.made);
            watch.healed.kills += u64::from(post.killed);
            watch.healed.counted = post.counted.or(watch.healed.counted);
        }
    }

    /// When a client that is granted or renewed something now must stop, at the end of its lease or
    /// of its node's licence, and after how long it has. `None` without a licence.
    fn promise(&self, seat: &Seat<'_, Ring>) -> Option<(Moment, Duration)> {
        let Pool { lease, ttl, .. } = seat.pool;
        let lease = (lease.deadline(seat.now, Duration::ZERO), lease.length());
        let free = self.watch.is_some()
            || seat.pool.variant == Variant::Core
            || seat.pool.breaks(Mutant::NoFence);
        if free {
            return Some(lease);
        }
        let until = self.tether.until?;
        // What was taken off the licence for clocks that run apart.
        let margin = ttl.length() - ttl.deadline(Moment::ZERO, Duration::ZERO).since(Moment::ZERO);
        Some(lease.min((until, until.since(seat.now) + margin)))
    }

    /// What the root had to repair since it booted; `None` at other nodes.
    pub fn healed(&self) -> Option<Healed> {
        self.watch.as_ref().map(|watch| watch.healed)
    }

    fn tell(
        &mut self,
        seat: &Seat<'_, Ring>,
        visit: usize,
        batch: Vec<Message<Named>>,
        out: &mut Outbox<Ring>,
    ) {
        for message in batch {
            self.forward(seat, visit, self.tether.parcel(message), out);
        }
    }

    /// A parcel goes to the right neighbour.
    pub(super) fn forward(
        &mut self,
        seat: &Seat<'_, Ring>,
        visit: usize,
        parcel: Parcel,
        out: &mut Outbox<Ring>,
    ) {
        let right = seat.pool.right_of(seat.me, visit, &self.tether.skipped);
        if right != seat.me {
            return out.tell(right, parcel);
        }
        if self.own.is_empty() {
            out.arm(Alarm::Hop, seat.pool.hop());
        }
        self.own.push_back(parcel);
    }

    fn on_entered(
        &mut self,
        seat: &Seat<'_, Ring>,
        at: usize,
        entered: bool,
        out: &mut Outbox<Ring>,
    ) {
        if !entered {
            return;
        }
        let place = &mut self.places[at];
        let Job::Waiting { claim, .. } = place.job else {
            unreachable!("the ring grants only what was asked for");
        };
        let super::StationClaim::Using { units } = &place.station().standing else {
            unreachable!("whoever entered uses its units");
        };
        let shares = units.shares();
        place.job = Job::Granted { claim, shares: shares.clone() };
        let (until, over) = self.promise(seat).expect("nothing is granted without a licence");
        out.arm(Alarm::LeaseEnd(claim), over);
        out.grant(claim, shares, until);
    }

    /// The oldest waiting claim takes a place, if none is asking; then whatever may be done to make
    /// waiting short.
    pub(super) fn serve(&mut self, seat: &Seat<'_, Ring>, out: &mut Outbox<Ring>) {
        while let Some(&(claim, units)) = self.waiting.front() {
            let asking = self.places.iter().any(|p| matches!(p.job, Job::Waiting { .. }));
            let granted = self.places.iter().filter(|p| p.job != Job::Free).count();
            if asking || granted >= seat.pool.grants_max {
                break;
            }
            self.waiting.pop_front();
            let at = self.free_place().unwrap_or_else(|| self.add_place(seat));
            self.act(seat, at, out, |place, pool, post| place.request(pool, claim, units, post));
        }
        self.trim();
        for at in 0..self.places.len() {
            self.act(seat, at, out, Place::nudge);
        }
        self.watch_over(seat, out);
    }

    /// A free place of the first visit, best one that kept tokens.
    fn free_place(&self) -> Option<usize> {
        (0..self.places.len())
            .filter(|&at| self.places[at].visit == 0 && self.places[at].job == Job::Free)
            .max_by_key(|&at| (self.places[at].kept(), std::cmp::Reverse(at)))
    }

    /// A new place beside the last one of the first visit.
    fn add_place(&mut self, seat: &Seat<'_, Ring>) -> usize {
        let at = self.places.partition_point(|place| place.visit == 0);
        let place = self.places[at - 1].beside(seat.pool);
        self.places.insert(at, place);
        at
    }

    /// Gives up places that nobody needs.
    fn trim(&mut self) {
        let mut at = self.places.partition_point(|place| place.visit == 0);
        while at > 1 && self.places[at - 1].is_bare() {
            at -= 1;
            self.places.remove(at);
        }
    }

    /// Keeps the root's alarm on what it waits for now.
    fn watch_over(&mut self, seat: &Seat<'_, Ring>, out: &mut Outbox<Ring>) {
        let Some(watch) = &mut self.watch else { return };
        let awaited = self.places[0].awaited();
        if watch.armed == Some(awaited) {
            return;
        }
        if watch.armed.is_some() {
            watch.misses = 0; // Something came back.
        }
        watch.armed = Some(awaited);
        match awaited {
            Some(_) => {
                out.disarm(Alarm::Idle);
                out.arm(Alarm::Timeout, seat.pool.timeout * (1 << watch.misses));
            }
            None => {
                out.disarm(Alarm::Timeout);
                out.arm(Alarm::Idle, seat.pool.idle);
            }
        }
    }

    pub(super) fn check(&self, seat: &Seat<'_, Ring>) {
        assert_eq!(self.places[0].is_root(), seat.me == ROOT);
        assert!(self.places.is_sorted_by_key(|place| place.visit));
        for place in &self.places {
            assert!(place.agrees(), "the ring and the application agree: {place:?}");
            assert!(place.visit == 0 || place.job == Job::Free, "claims ask at the first visit");
        }
        let asking = self.places.iter().filter(|p| matches!(p.job, Job::Waiting { .. }));
        assert!(asking.count() <= 1, "one claim of a node asks at a time");
    }
}
