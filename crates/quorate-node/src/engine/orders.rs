//! What operators order about units, and who must know of it.
//!
//! Labels begin as the configuration says. The node that decides over a pool keeps what an operator
//! changed since, and tells it to the others whenever they meet and whenever it changes. They show
//! it to people and programs; no decision of theirs rests on it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quorate_core::{ClaimId, NodeId, Order, Unit};
use quorate_protocols::allocator::labels::{Labels, is_label};
use quorate_wire::frame::{self, Frame};
use quorate_wire::survey::{Labelled, Outcome, Question, Survey};

use super::{Engine, Pool};
use crate::config::PoolDef;
use crate::selection::LABELS_MAX;

/// Most units whose labels differ from the configuration: all of them must fit in one frame.
pub(crate) const RELABELLED_MAX: usize = 512;

impl Engine {
    /// An operator orders something; what came of it, if this node decides over that.
    pub(super) fn order(&mut self, name: &str, order: Order) -> Survey {
        let (obeyed, objection) = match self.obey(name, order) {
            Ok(obeyed) => (obeyed, None),
            Err(objection) => (None, Some(objection)),
        };
        Survey { obeyed, objection, ..self.survey(name, None) }
    }

    fn obey(&mut self, name: &str, order: Order) -> Result<Option<Outcome>, String> {
        let Ok(seat) = self.seat(name) else { return Ok(None) };
        let relabels = matches!(order, Order::Relabel { .. });
        if let Order::Relabel { unit, labels: Some(labels) } = &order {
            self.accepts(seat, *unit, labels)?;
        }
        let waited = standings(&self.pools[seat]).0;
        let what = format!("{order:?}");
        let obeyed = self.act(seat, |seat, now, effects| seat.obey(now, order, effects));
        if !obeyed.unwrap_or(false) {
            return Ok(None);
        }
        tracing::info!(pool = name, what, "an administrator's order");
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
            let question = Question::Labels { pool: pool.name.to_string(), relabelled };
            let begun = bytes.len();
            // Nobody gathers answers under this number.
            frame::encode(&Frame::Ask(u64::MAX, question), &mut bytes);
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
        let waits = entry.standing == quorate_core::Standing::Waiting;
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
