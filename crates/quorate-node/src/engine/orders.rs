//! What operators order, and who must know of it.
//!
//! An order goes to every node over the lasting link, under an id. Each carries it out once,
//! however often it hears of it, and acknowledges it. An operator is told what those say who
//! acknowledged in time; of the others nothing is known: the order may be on its way, and take
//! effect later. Where books are on disk, nobody acknowledges what a crash would undo.
//!
//! Labels begin as the configuration says. The node that decides over a pool keeps what an operator
//! changed since, and tells it to the others whenever they meet and whenever it changes. They show
//! it to people and programs; no decision of theirs rests on it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use quorate_api::{ClaimState, Problem, ProblemKind};
use quorate_core::{ClaimId, Dice, NodeId, Order as CoreOrder, Unit};
use quorate_protocols::allocator::labels::{Labels, is_label};
use quorate_wire::Delivery;
use quorate_wire::frame::{self, Frame, Load};
use quorate_wire::order::{Done, Order, Ordered, Outcome, Receipt};
use quorate_wire::survey::Labelled;
use tokio::sync::oneshot;

use super::gather::{Gathered, Gathering, PATIENCE};
use super::links::Letter;
use super::{Engine, Pool, stopping};
use crate::admission;
use crate::alarms::Due;
use crate::caller::Caller;
use crate::clock;
use crate::config::PoolDef;
use crate::ledger::State;
use crate::protocols::{self, REGISTRY};
use crate::selection::LABELS_MAX;

/// Most units whose labels differ from the configuration: all of them must fit in one frame.
pub(crate) const RELABELLED_MAX: usize = 512;

/// Orders whose outcome is remembered, in case they are repeated.
const REMEMBERED: usize = 1024;

/// The orders of which this node knows.
#[derive(Default)]
pub(super) struct Orders {
    /// What came of those that were carried out here, the oldest first.
    done: VecDeque<(u128, Outcome)>,
    /// Those that were given here and that others have not acknowledged.
    given: BTreeMap<u64, (u128, Gathering<Done>)>,
    /// What is to be acknowledged, and to whom, once so many records are on disk.
    unwritten: Vec<(u64, NodeId, Receipt)>,
    next: u64,
}

impl Orders {
    /// Nobody waits any longer.
    pub(super) fn finish_all(&mut self) {
        std::mem::take(&mut self.given).into_values().for_each(|(_, given)| given.finish());
    }
}

impl Engine {
    /// A client of ours gives an order: to everybody, ourselves included.
    pub(super) fn give_order(
        &mut self,
        caller: &Caller,
        (pool, what, id): (String, Ordered, Option<u128>),
        reply: oneshot::Sender<Result<Gathered<Done>, Problem>>,
    ) {
        if self.stopping {
            let _ = reply.send(Err(stopping()));
            return;
        }
        let number = self.orders.next;
        self.orders.next += 1;
        // Chance alone would not do: nodes that start at once may draw the same.
        let place = u64::from(self.config.me.0) << 48 | number & 0xffff_ffff_ffff;
        let id = id.unwrap_or_else(|| u128::from(self.draw()) << 64 | u128::from(place));
        let order = Order { id, by: caller.to_string(), pool, what };
        let receipt = Receipt { id, done: self.carry_out(&order) };
        let packed = frame::seal(&order);
        let (mut missing, mut absent) = (BTreeSet::new(), Vec::new());
        let (me, others) = (self.config.me, (0..self.config.members.len()).map(NodeId::from));
        let said = match self.unwritten(&order.pool) {
            None => vec![(me, receipt.done)],
            Some(record) => {
                missing.insert(me);
                self.orders.unwritten.push((record, me, receipt));
                Vec::new()
            }
        };
        for peer in others.filter(|peer| *peer != me) {
            let (load, delivery) = (Load::Order, Delivery::Resumed);
            match self.send(peer, Letter { load, delivery, packed: packed.clone() }) {
                true => drop(missing.insert(peer)),
                false => absent.push(peer),
            }
        }
        let everybody = missing.is_empty();
        self.orders.given.insert(number, (id, Gathering { said, missing, absent, reply }));
        if everybody {
            return self.finish_order(number);
        }
        self.alarms.set(clock::now().after(PATIENCE), Due::Order(number));
    }

    /// A peer passes an order on.
    pub(super) fn on_order(&mut self, peer: NodeId, order: &Order) {
        let receipt = Receipt { id: order.id, done: self.carry_out(order) };
        match self.unwritten(&order.pool) {
            None => self.acknowledge(peer, receipt),
            Some(record) => self.orders.unwritten.push((record, peer, receipt)),
        }
    }

    /// The last record of a pool, if it is not on disk yet.
    fn unwritten(&self, pool: &str) -> Option<u64> {
        let seat = self.by_name.get(pool)?;
        Some(self.pools[*seat].barrier).filter(|record| *record > self.durable)
    }

    /// What is on disk by now is acknowledged.
    pub(super) fn acknowledge_written(&mut self) {
        let durable = self.durable;
        for (record, whom, receipt) in std::mem::take(&mut self.orders.unwritten) {
            match record <= durable {
                true => self.acknowledge(whom, receipt),
                false => self.orders.unwritten.push((record, whom, receipt)),
            }
        }
    }

    fn acknowledge(&mut self, whom: NodeId, receipt: Receipt) {
        if whom == self.config.me {
            return self.on_receipt(whom, receipt);
        }
        let (load, delivery, packed) = (Load::Receipt, Delivery::Resumed, frame::seal(&receipt));
        self.send(whom, Letter { load, delivery, packed });
    }

    pub(super) fn on_receipt(&mut self, peer: NodeId, receipt: Receipt) {
        let mut complete = Vec::new();
        for (number, (id, given)) in &mut self.orders.given {
            if *id == receipt.id && given.hear(peer, receipt.done.clone()) {
                complete.push(*number);
            }
        }
        complete.into_iter().for_each(|number| self.finish_order(number));
    }

    pub(super) fn finish_order(&mut self, number: u64) {
        if let Some((_, given)) = self.orders.given.remove(&number) {
            given.finish();
        }
    }

    /// Does what is ordered, if it can be done here and has not been done yet.
    fn carry_out(&mut self, order: &Order) -> Done {
        let Order { id, by, pool, what } = order;
        if let Some((_, outcome)) = self.orders.done.iter().find(|(known, _)| known == id) {
            return Done::Obeyed(outcome.clone());
        }
        let done = match what {
            Ordered::Revoke { claim: (origin, serial), reason } => {
                let claim = ClaimId { origin: *origin, serial: *serial };
                Ok(self.take_back(pool, claim, reason).then(Outcome::default))
            }
            Ordered::Drain { unit } => self.obey(pool, CoreOrder::Drain(Unit(*unit))),
            Ordered::Restore { unit } => self.obey(pool, CoreOrder::Restore(Unit(*unit))),
            Ordered::Relabel { unit, labels } => {
                let (unit, labels) = (Unit(*unit), labels.clone());
                self.obey(pool, CoreOrder::Relabel { unit, labels })
            }
        };
        match done {
            Ok(None) => Done::NotHere,
            Err(objection) => Done::Objected(objection),
            Ok(Some(outcome)) => {
                tracing::info!(pool, by, ?what, "an order was carried out");
                if self.orders.done.len() >= REMEMBERED {
                    self.orders.done.pop_front();
                }
                self.orders.done.push_back((*id, outcome.clone()));
                Done::Obeyed(outcome)
            }
        }
    }

    /// Takes a claim back, and says whether it was known here. If it was not, it will not be
    /// renewed through this node either.
    fn take_back(&mut self, pool: &str, claim: ClaimId, reason: &str) -> bool {
        let fine = admission::text(&self.config.limits, "reason", reason).is_ok();
        let Some(seat) = self.seat(pool).ok().filter(|_| fine) else { return false };
        let known = self.pools[seat].ledger.get(&claim).is_some_and(|known| match known.state {
            State::Waiting | State::Shown { .. } | State::Granted { .. } => true,
            // Unless it is known by name only, from an order like this: then it asks for nothing.
            State::Over { state: ClaimState::Revoked, .. } => known.want.units() > 0,
            State::Over { .. } => false,
        });
        let stands = self.stands(seat, claim);
        self.revoke(seat, claim, reason);
        known || stands
    }

    /// A fault on purpose in this node's seat.
    pub(super) fn corrupt(&mut self, caller: &Caller, name: &str) -> Result<(), Problem> {
        let seat = self.seat(name)?;
        if let Some(problem) = self.pools[seat].stopped() {
            return Err(problem);
        }
        if !self.pools[seat].def.allow_corruption {
            let owners = protocols::owners(REGISTRY, "allow_corruption").join(", ");
            let text = format!(
                "the state of a pool is scrambled on purpose only in tests; nothing changed. A \
                 pool of protocol {owners} allows it by allow_corruption = true"
            );
            return Err(Problem::new(ProblemKind::Forbidden, text));
        }
        let mut dice = Dice::new(self.draw());
        let draw = &mut |bound| dice.below(bound);
        let healing = self
            .act(seat, |seat, now, effects| seat.corrupt(now, draw, effects))
            .map_err(|error| Problem::new(ProblemKind::SeatStopped, error.to_string()))?;
        if !healing {
            let text = "this pool's protocol heals from no such thing; nothing changed";
            return Err(Problem::new(ProblemKind::BadRequest, text));
        }
        tracing::warn!(pool = name, %caller, "this seat was scrambled on purpose");
        Ok(())
    }

    /// What came of an order about units, if this node decides over them.
    fn obey(&mut self, name: &str, order: CoreOrder) -> Result<Option<Outcome>, String> {
        let Ok(seat) = self.seat(name) else { return Ok(None) };
        let relabels = matches!(order, CoreOrder::Relabel { .. });
        if let CoreOrder::Relabel { unit, labels: Some(labels) } = &order {
            self.accepts(seat, *unit, labels)?;
        }
        let waited = standings(&self.pools[seat]).0;
        let obeyed = self.act(seat, |seat, now, effects| seat.obey(now, order, effects));
        if !obeyed.unwrap_or(false) {
            return Ok(None);
        }
        let (waits, holds) = standings(&self.pools[seat]);
        let ids = |claims: BTreeSet<ClaimId>| {
            claims.into_iter().map(|claim| (claim.origin, claim.serial)).collect()
        };
        let granted = waited.intersection(&holds).copied().collect();
        let refused = waited.difference(&waits).filter(|claim| !holds.contains(claim)).copied();
        let outcome = Outcome { granted: ids(granted), refused: ids(refused.collect()) };
        if relabels {
            self.learn_own_labels(seat);
            for peer in 0..self.config.members.len() {
                self.tell_labels(NodeId::from(peer), Some(seat));
            }
        }
        Ok(Some(outcome))
    }

    /// Whether a unit may have these labels, if this node decides over it.
    fn accepts(
        &self,
        seat: usize,
        unit: Unit,
        labels: &BTreeMap<String, String>,
    ) -> Result<(), String> {
        let Some(changed) = own_labels(&self.pools[seat]) else { return Ok(()) };
        check_labels(labels)?;
        if changed.len() >= RELABELLED_MAX && !changed.iter().any(|(known, _)| *known == unit.0) {
            return Err(format!(
                "{RELABELLED_MAX} units have other labels than the configuration says, and more \
                 cannot: change the configuration"
            ));
        }
        Ok(())
    }

    /// Takes in what our own seat has decided about labels.
    pub(super) fn learn_own_labels(&mut self, seat: usize) {
        if let Some(changed) = own_labels(&self.pools[seat]) {
            self.pools[seat].learn_labels(&changed);
        }
    }

    /// Tells a peer which units have other labels than the configuration says, in the pools over
    /// which this node decides, or in one of them.
    pub(super) fn tell_labels(&mut self, peer: NodeId, only: Option<usize>) {
        let wanted = |(seat, _): &(usize, &Pool)| only.is_none_or(|only| only == *seat);
        let mut bytes = Vec::new();
        for (_, pool) in self.pools.iter().enumerate().filter(wanted) {
            let Some(relabelled) = own_labels(pool) else { continue };
            let begun = bytes.len();
            frame::encode(&Frame::Labels(pool.name.to_string(), relabelled), &mut bytes);
            if bytes.len() - begun > frame::HEADER + frame::BODY_MAX {
                // It would break the link, and nobody decides by it.
                tracing::warn!(pool = &*pool.name, "too many labels changed to tell others");
                bytes.truncate(begun);
            }
        }
        if !bytes.is_empty() {
            self.peers.write(peer, bytes);
        }
    }

    /// A peer tells which units have other labels: believed if it decides over the pool.
    pub(super) fn on_labels(&mut self, peer: NodeId, name: &str, relabelled: &Labelled) {
        let Ok(seat) = self.seat(name) else { return };
        let pool = &mut self.pools[seat];
        let needs = pool.def.protocol.rules.needs(name, self.config.members.len());
        let sound = relabelled.len() <= RELABELLED_MAX
            && relabelled.iter().all(|(_, labels)| check_labels(labels).is_ok());
        if needs.iter().eq([peer]) && sound {
            pool.learn_labels(relabelled);
        }
    }
}

impl Pool {
    fn learn_labels(&mut self, changed: &Labelled) {
        self.terms.labels = current(&self.def, changed);
        self.relabelled.clone_from(changed);
    }
}

/// The labels of a pool's units, with these changed since.
pub(crate) fn current(def: &PoolDef, changed: &Labelled) -> Option<Arc<Labels>> {
    let begun = def.labels()?;
    if changed.is_empty() {
        return Some(Arc::clone(begun));
    }
    let changed = changed.iter().map(|(unit, labels)| (Unit(*unit), labels.clone())).collect();
    Some(Arc::new(Labels::clone(begun).with(&changed)))
}

/// What our own seat has changed, if it decides by labels.
pub(super) fn own_labels(pool: &Pool) -> Option<Labelled> {
    pool.def.labels()?;
    pool.seat.relabelled()
}

/// Who waits and who holds, by the books of this node.
fn standings(pool: &Pool) -> (BTreeSet<ClaimId>, BTreeSet<ClaimId>) {
    let (mut waiting, mut holding) = (BTreeSet::new(), BTreeSet::new());
    pool.seat.ledger(&mut |entry| {
        let waits = entry.standing.waits();
        if waits { &mut waiting } else { &mut holding }.insert(entry.claim);
    });
    (waiting, holding)
}

/// Whether a unit may have these labels.
///
/// # Errors
/// It may not; the text says why.
pub(crate) fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), String> {
    if labels.len() > LABELS_MAX {
        return Err(format!("{} labels: at most {LABELS_MAX} are possible", labels.len()));
    }
    let words = labels.iter().flat_map(|(key, value)| [key, value]);
    match words.into_iter().find(|text| !is_label(text)) {
        None => Ok(()),
        Some(wrong) => {
            let wrong: String = wrong.chars().take(64).collect();
            Err(format!("{wrong:?} is no label: use 1 to 64 letters, digits, '.', '_', '-'"))
        }
    }
}
