//! What operators order: units taken out of service and brought back, and units that get other
//! labels.
//!
//! The labels of the pool are those it began with; an arbiter keeps what was changed since. Claims
//! come with the labels they ask for, not with a list of units, so that whoever decides can look
//! again: those that wait keep their age, those that can never be granted now are refused, and
//! holders keep what they have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quorate_core::{Fence, NodeId, Order, Relabelled, Unit, Wanted};

use super::arbiter::Arbiter;
use super::booked::{Booked, State};
use super::message::Message;
use super::pool::broken;
use super::{Post, Seat};
use crate::allocator::Ticket;
use crate::allocator::labels::Labels;

/// The labels of units as they are now.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Tags {
    changed: BTreeMap<Unit, BTreeMap<String, String>>,
    /// The pool's with those changed; none if nothing is.
    now: Option<Arc<Labels>>,
}

impl Tags {
    /// The pool's labels with these changed.
    pub(crate) fn new(seat: &Seat<'_>, changed: BTreeMap<Unit, BTreeMap<String, String>>) -> Self {
        let begun = seat.pool.goods.labels.as_deref().filter(|_| !changed.is_empty());
        let now = begun.map(|begun| Arc::new(begun.clone().with(&changed)));
        Tags { changed, now }
    }

    pub(crate) fn changed(&self) -> Relabelled<'_> {
        &self.changed
    }

    /// What is known of the units, if they differ.
    pub(crate) fn labels<'a>(&'a self, seat: &Seat<'a>) -> Option<&'a Labels> {
        self.now.as_deref().or(seat.pool.goods.labels.as_deref())
    }
}

impl Arbiter {
    /// Does what an operator orders; the unit is one of the pool's.
    pub(crate) fn obey(&mut self, seat: &Seat<'_>, order: Order, post: &mut Post<'_>) {
        match order {
            Order::Drain(unit) => {
                let over = self.allocator.drain(unit);
                self.refuse(over, post);
            }
            Order::Restore(unit) => {
                let in_use = self.entries.values().any(|booked| holds(booked, unit));
                self.allocator.restore(unit, in_use);
            }
            Order::Relabel { unit, labels } => {
                let mut changed = std::mem::take(&mut self.tags).changed;
                let begun = seat.pool.goods.labels.as_ref().and_then(|begun| begun.of(unit));
                match labels.filter(|labels| Some(labels) != begun) {
                    Some(labels) => changed.insert(unit, labels),
                    None => changed.remove(&unit),
                };
                self.tags = Tags::new(seat, changed);
                self.choose_again(seat, post);
            }
        }
        self.write_down(seat, post.out);
        self.schedule(seat, post);
    }

    /// The pool is another from now on. Units that it has no more, or that are drained, are granted
    /// no more, and those who have them keep them; claims that wait choose by the labels of now;
    /// those that can never be granted now are refused.
    pub(crate) fn amend(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        let goods = &seat.pool.goods;
        let held: BTreeSet<Unit> = self
            .entries
            .values()
            .filter_map(|booked| match &booked.state {
                State::Granted { held, .. } => Some(held),
                State::Waiting | State::Absent => None,
            })
            .flat_map(|held| held.shares.iter().map(|share| share.unit))
            .collect();
        let lends = |unit| goods.lends(unit) || broken!(seat, GrantRemoved);
        self.allocator.follow(goods.fairness.policy());
        let over = self.allocator.amend(goods.most(), lends, |unit| held.contains(&unit));
        if !broken!(seat, WaitForNothing) {
            self.refuse(over, post);
        }
        if goods.labels.is_some() && !broken!(seat, ChooseByOldLabels) {
            self.choose_again(seat, post);
        }
        if broken!(seat, FencesAnew) {
            self.fence = Fence::floor(seat.boot);
        }
        self.schedule(seat, post);
    }

    /// Looks again at what will do for every claim that chooses by labels, and, where the pool is
    /// another, for every one that waits.
    fn choose_again(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        self.allocator.call_off();
        let goods = &seat.pool.goods;
        let all = goods.ever.is_some();
        let looks = |booked: &Booked| {
            booked.wanted.lines.is_some() || all && booked.state == State::Waiting
        };
        let choosy: Vec<(Ticket, NodeId, Wanted)> = self
            .entries
            .iter()
            .filter(|(_, booked)| looks(booked))
            .map(|(claim, booked)| {
                (booked.ticket(*claim), booked.asker.node, booked.wanted.clone())
            })
            .collect();
        let mut over = Vec::new();
        for (ticket, node, wanted) in choosy {
            let wants = match &wanted.lines {
                Some(lines) => goods.wants_by(self.tags.labels(seat), node, lines),
                None => vec![goods.any(node, wanted.units)],
            };
            if self.allocator.reselect(ticket, &wants).is_err() {
                self.allocator.cancel(ticket);
                over.push(ticket);
            }
        }
        self.refuse(over, post);
    }

    /// Claims that are in the queue no more, since nobody could ever grant them: they would block
    /// others for ever (labels spec 6.6.7).
    fn refuse(&mut self, over: Vec<Ticket>, post: &mut Post<'_>) {
        for ticket in over {
            let gone = self.entries.remove(&ticket.claim).expect("whoever waits is booked");
            let (claim, attempt) = (ticket.claim, gone.asker.attempt);
            post.send(gone.asker.node, Message::Refused { claim, attempt });
        }
    }
}

pub(crate) fn holds(booked: &Booked, unit: Unit) -> bool {
    match &booked.state {
        State::Granted { held, .. } => held.shares.iter().any(|share| share.unit == unit),
        State::Waiting | State::Absent => false,
    }
}
