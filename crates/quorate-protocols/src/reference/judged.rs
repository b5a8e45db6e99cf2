//! `central` under the eyes of its theorems, and with an operator who drains units, brings them
//! back and gives them other labels: for simulated runs. A broken theorem is a panic, which a
//! driver takes for a broken law.

use std::collections::BTreeMap;
use std::sync::Arc;

use quorate_core::{
    ClaimId, Dice, Entry, Event, EventOf, Fact, LeaseEnd, Line, NodeSet, Obeys, Order, Outbox,
    Protocol, Seat, Shortage, Start, Unit, Units,
};

use super::theorems::Theorems;
use crate::allocator::labels::Labels;
use crate::central::{Alarm, Central, Message, Pool, Record};

/// A seat of `central` that is judged after every step.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Judged {
    central: Central,
    theorems: Theorems,
    /// Steps so far, by which the operator acts.
    steps: u64,
}

/// Somebody who gives orders now and then, at the arbiter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operator {
    /// After so many steps of the arbiter.
    pub every: u64,
    /// From which the orders follow.
    pub seed: u64,
}

impl Operator {
    /// The order after so many steps. No more than half of the units are ever drained.
    fn order(self, steps: u64, pool: &Pool, drained: &[Unit]) -> Option<Order> {
        if self.every == 0 || !steps.is_multiple_of(self.every) {
            return None;
        }
        let mut dice = Dice::new(self.seed ^ steps.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut draw = |below: u64| dice.below(below);
        let unit = Unit(draw(u64::from(pool.goods.units)) as u32);
        Some(match draw(4) {
            0 if drained.len() < pool.goods.units as usize / 2 => Order::Drain(unit),
            0 | 1 => Order::Restore(drained.first().copied().unwrap_or(unit)),
            2 => Order::Relabel { unit, labels: None },
            // What another unit began with.
            _ => {
                let like = Unit(draw(u64::from(pool.goods.units)) as u32);
                let labels = pool.goods.labels.as_ref().and_then(|labels| labels.of(like)).cloned();
                Order::Relabel { unit, labels }
            }
        })
    }
}

fn inner<'a>(seat: &Seat<'a, Judged>) -> Seat<'a, Central> {
    Seat { me: seat.me, boot: seat.boot, now: seat.now, pool: &seat.pool.0 }
}

impl Judged {
    fn judge(&mut self, seat: &Seat<'_, Central>) {
        if let Some(arbiter) = &self.central.arbiter
            && let Err(broken) = self.theorems.judge(seat, arbiter)
        {
            panic!("{broken}");
        }
    }

    /// What the arbiter is about to be asked.
    fn overhear(&mut self, seat: &Seat<'_, Central>, event: &EventOf<Central>) {
        if self.central.arbiter.is_none() {
            return;
        }
        let (claim, asked) = match event {
            Event::Claim(claim) => (claim.id, (seat.me, claim.wanted.clone())),
            Event::Hear { from, message: Message::Request { claim, wanted, .. } } => {
                (*claim, (*from, wanted.clone()))
            }
            _ => return,
        };
        self.theorems.asks(claim, asked);
    }
}

impl Protocol for Judged {
    type Pool = (Pool, Operator);
    type Message = Message;
    type Alarm = Alarm;
    type Durable = Record;

    const NAME: &'static str = Central::NAME;
    const KINDS: &'static [&'static str] = Central::KINDS;

    fn boot(seat: &Seat<'_, Self>, start: Start<Record>, out: &mut Outbox<Self>) -> Self {
        let mut effects = Outbox::new();
        let central = Central::boot(&inner(seat), start, &mut effects);
        effects.drain().for_each(|effect| out.push(effect));
        Judged { central, theorems: Theorems::default(), steps: 0 }
    }

    fn step(&mut self, seat: &Seat<'_, Self>, event: EventOf<Self>, out: &mut Outbox<Self>) {
        let (operator, seat, mut effects) = (seat.pool.1, inner(seat), Outbox::new());
        self.overhear(&seat, &event);
        self.central.step(&seat, event, &mut effects);
        self.judge(&seat);
        self.steps += 1;
        let mut drained = Vec::new();
        self.central.drained(&mut |unit, _| drained.push(unit));
        if let Some(order) = operator.order(self.steps, seat.pool, &drained)
            && self.central.obey(&seat, order, &mut effects)
        {
            self.judge(&seat);
        }
        effects.drain().for_each(|effect| out.push(effect));
    }

    fn audit(&self, seat: &Seat<'_, Self>) {
        self.central.audit(&inner(seat));
    }

    fn ledger(&self, show: &mut dyn FnMut(Entry)) {
        self.central.ledger(show);
    }

    fn facts(&self, seat: &Seat<'_, Self>, show: &mut dyn FnMut(Fact)) {
        self.central.facts(&inner(seat), show);
    }

    fn explain(&self, seat: &Seat<'_, Self>, claim: ClaimId) -> Option<Shortage> {
        self.central.explain(&inner(seat), claim)
    }

    fn lease_end(alarm: &Alarm) -> LeaseEnd {
        Central::lease_end(alarm)
    }

    fn purpose(alarm: &Alarm) -> quorate_core::Purpose {
        Central::purpose(alarm)
    }

    fn kind(message: &Message) -> usize {
        Central::kind(message)
    }

    fn capacity(pool: &Self::Pool) -> u32 {
        Central::capacity(&pool.0)
    }

    fn overtakes_max(pool: &Self::Pool) -> Option<u32> {
        Central::overtakes_max(&pool.0)
    }

    fn can_lose(pool: &Self::Pool, dead: &NodeSet) -> bool {
        Central::can_lose(&pool.0, dead)
    }
}

/// What clients that ask for several units at once choose from, as counts and labels.
pub(crate) const BUNDLES: &[&[(u32, &str)]] = &[
    &[(1, "")],
    &[(1, "gpu=h100")],
    &[(2, "gpu=h100")],
    &[(2, "gpu=a100")],
    &[(1, "zone=us"), (1, "gpu=h100,zone=eu")],
    &[(1, "gpu=h100"), (2, "zone=eu"), (1, "gpu=a100")],
];

impl Operator {
    /// Units of four kinds: every third is an `h100` and the others are `a100`s, even ones are in
    /// the `eu` and odd ones in the `us`.
    pub fn labels(units: u32) -> Labels {
        let unit = |unit: u32| {
            let gpu = if unit.is_multiple_of(3) { "h100" } else { "a100" };
            let zone = if unit.is_multiple_of(2) { "eu" } else { "us" };
            let labels = [("gpu", gpu), ("zone", zone)].map(|(k, v)| (k.to_owned(), v.to_owned()));
            (format!("gpu{unit}"), BTreeMap::from(labels))
        };
        Labels::new((0..units).map(unit).collect())
    }

    /// What clients of such a pool ask for, by labels: bundles too, or one unit each. There are at
    /// least six units.
    pub fn choices(units: u32, bundles: bool) -> Vec<Arc<[Line]>> {
        const SINGLES: &[&[(u32, &str)]] =
            &[&[(1, "")], &[(1, "gpu=h100")], &[(1, "zone=us")], &[(1, "gpu=h100,zone=eu")]];
        let labels = Operator::labels(units);
        let line = |(count, selector): &(u32, &str)| {
            let wanted = labels_of(selector);
            let labels_wanted = (!wanted.is_empty()).then(|| Arc::new(wanted));
            let units = Units::new(*count, units).expect("there are six units at least");
            Line { labels: labels_wanted, ..Line::of(units, Arc::clone(labels.all())) }
        };
        let menu = if bundles { BUNDLES } else { SINGLES };
        menu.iter().map(|lines| lines.iter().map(line).collect()).collect()
    }
}

/// `gpu=h100,zone=eu` as labels.
fn labels_of(text: &str) -> BTreeMap<String, String> {
    let pair = |pair: &str| pair.split_once('=').map(|(key, value)| (key.into(), value.into()));
    text.split(',').filter_map(pair).collect()
}
