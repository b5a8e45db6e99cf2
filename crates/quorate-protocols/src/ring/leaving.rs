//! Nodes come and go: how a seat keeps to the rules of [`super::tether`].
//!
//! The root leaves out whomever it suspects, takes in whomever it trusts again, and begins a new
//! epoch each time, with a quarantine if somebody is left out. Nobody else decides anything: where
//! a frame goes is in the frame.

use std::cmp::Ordering;

use quorate_core::{NodeId, NodeSet, Outbox, Seat};

use super::message::Message;
use super::place::Place;
use super::pool::{Mutant, Variant};
use super::tether::{Epoch, Parcel, Tether};
use super::{Alarm, Ring};

impl Ring {
    /// A message arrives. Only what is of our ring gets to a station.
    pub(super) fn on_parcel(
        &mut self,
        seat: &Seat<'_, Ring>,
        from: NodeId,
        parcel: Parcel,
        out: &mut Outbox<Ring>,
    ) {
        let frame = matches!(parcel.message, Message::Frame(_));
        let order = match self.tether.epoch {
            Some(ours) => parcel.epoch.cmp(&ours),
            None => Ordering::Greater,
        };
        let skipped = match order {
            Ordering::Greater => &parcel.skipped,
            Ordering::Less | Ordering::Equal => &self.tether.skipped,
        };
        let visit = seat.pool.visit_from(seat.me, from, skipped);
        match (order, visit) {
            _ if parcel.message == Message::Wake => self.on_wake(seat, visit, parcel, out),
            (Ordering::Equal, Some(visit)) => self.take(seat, visit, parcel, out),
            (Ordering::Less, _) => self.on_late(seat, parcel, out),
            // The root begins epochs; what it did not begin is left of a fault.
            (Ordering::Greater, _) if self.watch.is_some() || !frame => {}
            (Ordering::Greater, Some(visit)) => {
                self.enter(seat, &parcel, out);
                self.take(seat, visit, parcel, out);
            }
            (_, None) => {
                out.anomaly(from, "a message from a node that is not the left neighbour");
            }
        }
    }

    /// A wake carries no tokens, and the node that waits may not have heard of the new epoch. A
    /// wake of a *later* epoch comes from a node that a fault put there: that node hears nobody
    /// until the root's epoch is beyond its own.
    fn on_wake(
        &mut self,
        seat: &Seat<'_, Ring>,
        visit: Option<usize>,
        parcel: Parcel,
        out: &mut Outbox<Ring>,
    ) {
        let visit = visit.unwrap_or(0);
        match self.tether.epoch.filter(|&ours| parcel.epoch > ours) {
            None => self.pass(seat, visit, Message::Wake, out),
            Some(ours) if parcel.epoch.config != ours.config => {}
            Some(_) if self.watch.is_some() => {
                let skipped = self.tether.skipped.clone();
                self.begin_epoch(seat, parcel.epoch, &skipped, out);
            }
            Some(_) => self.forward(seat, visit, parcel, out),
        }
    }

    /// A message of our ring gets to our places.
    fn take(
        &mut self,
        seat: &Seat<'_, Ring>,
        visit: usize,
        parcel: Parcel,
        out: &mut Outbox<Ring>,
    ) {
        if let Message::Frame(frame) = &parcel.message {
            if self.watch.is_none() {
                let proven = self.tether.pass(frame.seq, parcel.back, seat.now);
                if let Some(since) = proven {
                    let until = seat.pool.ttl.deadline(since, std::time::Duration::ZERO);
                    self.tether.until = Some(until);
                    self.bar(false);
                    out.arm(Alarm::Fence, until.since(seat.now));
                }
            } else if visit == 0 && self.places[0].awaited() == Some(frame.seq) {
                self.tether.back = Some(frame.seq);
            }
        }
        self.pass(seat, visit, parcel.message, out);
    }

    /// A message of an older epoch. While the root makes no tokens, tokens that come back late are
    /// as good as any; otherwise the root may have made them anew.
    fn on_late(&mut self, seat: &Seat<'_, Ring>, parcel: Parcel, out: &mut Outbox<Ring>) {
        if seat.pool.breaks(Mutant::AnyEpoch) {
            return self.pass(seat, 0, parcel.message, out);
        }
        let Some(ours) = self.tether.epoch else { return };
        let Some(watch) = &self.watch else {
            if matches!(parcel.message, Message::Frame(_)) {
                // Either the frame is late, and the root ignores the wake, or a fault put this
                // node's epoch ahead of the root's.
                let visit = seat.pool.visits(seat.me) - 1;
                self.forward(seat, visit, self.tether.parcel(Message::Wake), out);
            }
            return;
        };
        let late = parcel.epoch;
        let same_boot = (late.config, late.boot) == (ours.config, ours.boot);
        if same_boot && watch.settling && late.change >= watch.sure {
            self.pass(seat, 0, Message::Token(parcel.message.into_tokens()), out);
        }
    }

    /// A frame says that there is a new epoch.
    fn enter(&mut self, seat: &Seat<'_, Ring>, parcel: &Parcel, out: &mut Outbox<Ring>) {
        if self.tether.until.is_none() && !seat.pool.breaks(Mutant::NoFence) {
            // The root may have made this node's tokens anew.
            self.places.iter_mut().for_each(Place::forget_tokens);
            // Armed even if this node never gets a licence: an epoch that a fault left behind must
            // be forgotten.
            out.arm(Alarm::Fence, seat.pool.ttl.length());
        }
        self.tether.enter(parcel.epoch, &parcel.skipped);
        self.await_count();
    }

    /// Makes sure that the next traversal counts this node: no traversal has the number set here.
    /// Where numbers come round again, the first traversal of an epoch could have the number of the
    /// last that passed.
    pub(super) fn await_count(&mut self) {
        for place in self.places.iter_mut().filter(|place| !place.is_root()) {
            place.station_mut().seq = u64::MAX;
        }
    }

    /// A licence may have ended while we could not look.
    pub(super) fn look_at_the_clock(&mut self, seat: &Seat<'_, Ring>, out: &mut Outbox<Ring>) {
        if self.tether.until.is_some_and(|until| until <= seat.now) {
            self.fence(seat, out);
        }
    }

    /// No news from the root for too long: clients stop, and what was here is forgotten.
    pub(super) fn fence(&mut self, seat: &Seat<'_, Ring>, out: &mut Outbox<Ring>) {
        if seat.pool.breaks(Mutant::NoFence) {
            return;
        }
        out.disarm(Alarm::Fence);
        self.tether = Tether::default();
        for claim in self.places.iter_mut().filter_map(Place::fence) {
            out.disarm(Alarm::LeaseEnd(claim));
            out.lose(claim);
        }
        self.serve(seat, out);
    }

    /// Without a licence nothing is granted.
    pub(super) fn bar(&mut self, barred: bool) {
        self.places.iter_mut().for_each(|place| place.set_barred(barred));
    }

    /// The failure detector changed its mind about a node. Only the root's counts.
    pub(super) fn on_opinion(
        &mut self,
        seat: &Seat<'_, Ring>,
        about: NodeId,
        suspected: bool,
        out: &mut Outbox<Ring>,
    ) {
        if self.watch.is_none() {
            if !suspected {
                self.wake_again(seat, about, out);
            }
            return;
        }
        if !seat.pool.can_skip(about) {
            return;
        }
        let mut skipped = self.tether.skipped.clone();
        let changed = if suspected { skipped.insert(about) } else { skipped.remove(about) };
        let (Some(epoch), true) = (self.tether.epoch, changed) else { return };
        let watch = self.watch.as_mut().expect("this is the root");
        if suspected && !seat.pool.breaks(Mutant::NoQuarantine) {
            watch.settling = true;
            self.places[0].set_blind(true);
            out.arm(Alarm::Quarantine, seat.pool.ttl.length());
        }
        self.begin_epoch(seat, epoch, &skipped, out);
    }

    /// The right neighbour is there again. A wake that was sent while it was away is lost, and so
    /// is what the last frame said of claims that wait, if that is the root and it restarted: a
    /// root that has never heard of the pool sends no frames by itself.
    fn wake_again(&mut self, seat: &Seat<'_, Ring>, about: NodeId, out: &mut Outbox<Ring>) {
        let visit = seat.pool.visits(seat.me) - 1;
        let right = seat.pool.right_of(seat.me, visit, &self.tether.skipped);
        let asked = self.tether.until.is_none() || self.places.iter().any(Place::hears_of_claims);
        if right == about && asked && seat.pool.variant == Variant::Train {
            out.tell(right, self.tether.parcel(Message::Wake));
        }
    }

    /// The root begins an epoch after this one. Unless somebody is left out that needs no
    /// quarantine: the first count passes everybody who has anything.
    fn begin_epoch(
        &mut self,
        seat: &Seat<'_, Ring>,
        last: Epoch,
        skipped: &NodeSet,
        out: &mut Outbox<Ring>,
    ) {
        let change = last.change.saturating_add(1);
        self.tether.enter(Epoch { change, ..last }, skipped);
        let watch = self.watch.as_mut().expect("only the root begins epochs");
        if !watch.settling {
            watch.sure = change;
        }
        // What is under way is of the old epoch and will not come back as a count.
        (watch.armed, watch.misses) = (None, 0);
        self.act(seat, 0, out, Place::timeout);
        self.act(seat, 0, out, Place::launch);
        self.serve(seat, out);
    }

    /// Whoever was left out has stopped.
    pub(super) fn on_ring_quarantine(&mut self) {
        let watch = self.watch.as_mut().expect("only the root arms this alarm");
        watch.settling = false;
        watch.sure = self.tether.epoch.map_or(0, |epoch| epoch.change);
        self.places[0].set_blind(self.blind);
    }

    /// A fault on purpose: every variable of the ring at this node becomes anything that it can be.
    /// What clients asked for and what they use stays.
    pub(super) fn scramble(
        &mut self,
        seat: &Seat<'_, Ring>,
        draw: &mut dyn FnMut(u64) -> u64,
        out: &mut Outbox<Ring>,
    ) {
        if seat.pool.variant == Variant::Train {
            self.tether.scramble(seat.pool.epoch, draw);
            if self.watch.is_none() {
                out.arm(Alarm::Fence, seat.pool.ttl.length());
            }
        }
        for at in 0..self.places.len() {
            self.places[at].scramble(seat.pool, draw);
            self.act(seat, at, out, Place::settle);
        }
        self.serve(seat, out);
    }
}
