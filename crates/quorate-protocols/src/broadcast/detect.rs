//! Who has crashed, without timers.
//!
//! The query mechanism of Mostefaoui, Mourgaya and Raynal 2003 as Bouillaguet, Arantes and Sens
//! 2009 use it: a query ends when all but f have answered. A node that has not answered is
//! *unheard*, which is no accusation, since somebody must be last. But every answer carries the
//! unheard of its sender, and a node that everybody who answered did not hear, nor the asker in its
//! previous query, is taken for crashed. Under the responsiveness property (broadcast spec 4) that
//! is always right: each live node has f+1 nodes that always hear it in time, and one of them is
//! among the n-f who answered.
//!
//! Differences from the paper: a query is not tied to a request and lasts until it is answered;
//! answers count for the query they name and for no other (broadcast spec E5 and E3); what is known
//! of crashes travels on every message, not on requests only.

use std::collections::BTreeMap;

use quorate_core::{Moment, NodeId, NodeSet};

use super::deaths::Deaths;
use super::message::{Knowledge, Known, Life, NOTHING};

/// One node's queries and what they taught it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Detector {
    /// What this node lets others know.
    pub(super) known: Knowledge,
    /// The life of each node as far as it joined here, if that is not its first.
    lives: BTreeMap<NodeId, Life>,
    /// Whose life of those is believed to be over; under leases also who has not begun to take
    /// part.
    crashed: NodeSet,
    /// The latest query; `None` before the first.
    pub(super) query: Option<u64>,
    /// When it was sent. Read by leases only.
    pub(super) sent: Moment,
    /// Who has not answered it.
    missing: NodeSet,
    /// How many of them have to before the next may start: it ends without the last few.
    awaited: u32,
    /// What this node's unheard were before it: the paper's own tuple, the *previous* set on
    /// purpose (broadcast spec E14), so that nobody is accused who missed only one query.
    before: NodeSet,
    /// Who has answered it and was not welcomed in a new life since.
    answered: NodeSet,
    /// What those of them who knew anything said in their last answer, ascending.
    said: Vec<(NodeId, Knowledge)>,
    /// All nodes of the pool, to recognise strangers.
    everybody: NodeSet,
}

impl Detector {
    pub(super) fn new(nodes: u32) -> Self {
        Detector {
            known: Knowledge::default(),
            lives: BTreeMap::new(),
            crashed: NodeSet::new(),
            query: None,
            sent: Moment::ZERO,
            missing: NodeSet::new(),
            awaited: 0,
            before: NodeSet::new(),
            answered: NodeSet::new(),
            said: Vec::new(),
            everybody: NodeSet::first(nodes as usize),
        }
    }

    /// Whether a belief is about nodes of this pool only.
    pub(super) fn is_sound(&self, known: &Knowledge) -> bool {
        if known.is_nothing() {
            return true;
        }
        known.crashed.is_within(&self.everybody) && known.unheard.is_subset(&self.everybody)
    }

    /// Whether enough have answered the last query, so that the next may start.
    pub(super) fn is_done(&self) -> bool {
        self.awaited == 0
    }

    /// Takes a node off the missing; says whether it was one of them.
    fn strike(&mut self, node: NodeId) -> bool {
        let was_missing = self.missing.remove(node);
        if was_missing {
            self.awaited = self.awaited.saturating_sub(1);
        }
        was_missing
    }

    pub(super) fn crashed(&self) -> &NodeSet {
        &self.crashed
    }

    #[inline]
    pub(super) fn life(&self, node: NodeId) -> Life {
        if self.lives.is_empty() {
            return 0; // In most pools no node has ever come back.
        }
        self.lives.get(&node).copied().unwrap_or(0)
    }

    fn set_life(&mut self, node: NodeId, life: Life) {
        if life == 0 {
            self.lives.remove(&node);
        } else {
            self.lives.insert(node, life);
        }
    }

    /// Whether somebody who said this believes that the life of a node, as it joined here, is over.
    pub(super) fn is_named(&self, node: NodeId, said: &Known) -> bool {
        said.crashed.get(node).is_some_and(|over| over >= self.life(node))
    }

    /// The life of a node, itself included, in which it is believed to have died last.
    pub(super) fn last_death(&self, node: NodeId) -> Option<Life> {
        self.known.crashed.get(node)
    }

    /// Who has not answered the latest query.
    pub(super) fn missing(&self) -> &NodeSet {
        &self.missing
    }

    /// What a node said in its last answer to the latest query.
    pub(super) fn answer(&self, node: NodeId) -> Option<&Known> {
        self.answered.contains(node).then(|| {
            let said = self.place_of(node).ok().map(|place| &*self.said[place].1);
            said.unwrap_or(&NOTHING)
        })
    }

    fn place_of(&self, node: NodeId) -> Result<usize, usize> {
        self.said.binary_search_by_key(&node, |(other, _)| *other)
    }

    fn set_answer(&mut self, node: NodeId, said: Knowledge) {
        self.answered.insert(node);
        match self.place_of(node) {
            Ok(place) if said.is_nothing() => _ = self.said.remove(place),
            Ok(place) => self.said[place].1 = said,
            Err(_) if said.is_nothing() => {}
            Err(place) => self.said.insert(place, (node, said)),
        }
    }

    fn forget_answers(&mut self) {
        self.answered = NodeSet::new();
        self.said.clear();
    }

    fn forget_answer(&mut self, node: NodeId) {
        self.answered.remove(node);
        self.said.retain(|(other, _)| *other != node);
    }

    /// Starts a query, which `late_max` nodes need not answer.
    pub(super) fn start(&mut self, query: u64, sent: Moment, me: NodeId, late_max: u32) {
        self.query = Some(query);
        self.sent = sent;
        self.missing.clone_from(&self.everybody);
        self.missing.remove(me);
        self.before.clone_from(&self.known.unheard);
        self.forget_answers();
        self.awaited = (self.missing.len() as u32).saturating_sub(late_max);
    }

    /// Takes an answer to the latest query and says who is found to have crashed, if anybody can
    /// be.
    pub(super) fn on_answer(&mut self, from: NodeId, said: Knowledge) -> Option<NodeSet> {
        let is_first = self.strike(from);
        self.set_answer(from, said);
        if !self.is_done() {
            return None;
        }
        if is_first && self.known.unheard != self.missing {
            self.known.change(|known| known.unheard.clone_from(&self.missing));
        }
        if self.before.is_empty() || self.said.len() < self.answered.len() {
            return None; // A node that reports nobody unheard has heard everybody.
        }
        // Nobody ever hears the dead again, so nodes already known to be dead are not looked for.
        if self.lives.is_empty() && self.before.is_subset(self.known.crashed.first()) {
            return None;
        }
        let unheard_by_all =
            |node: NodeId| self.said.iter().all(|(_, said)| said.unheard.contains(node));
        let is_found = |&node: &NodeId| !self.is_dead(node) && unheard_by_all(node);
        Some(self.before.iter().filter(is_found).collect())
    }

    /// Takes over what somebody knows; says whether it was news about a life that counts here.
    pub(super) fn learn(&mut self, crashed: &Deaths) -> bool {
        if *crashed == self.known.crashed {
            return false;
        }
        let mut news = false;
        for (node, life) in crashed.iter() {
            if self.last_death(node).is_none_or(|known| known < life) {
                self.known.change(|known| known.crashed.insert(node, life));
                news |= life >= self.life(node) && self.crashed.insert(node);
            }
        }
        news
    }

    /// This node begins a life.
    pub(super) fn begin(&mut self, me: NodeId, life: Life) {
        self.set_life(me, life);
        self.crashed.remove(me);
        self.known.change(|known| known.life = life);
        // What is still answered was asked in another life.
        (self.query, self.awaited) = (None, 0);
        self.missing = NodeSet::new();
        self.forget_answers();
    }

    /// Whether the life of a node, as it joined here, is believed to be over.
    pub(super) fn is_dead(&self, node: NodeId) -> bool {
        self.is_named(node, &self.known)
    }

    /// A node is there in a new life. It has answered nobody's query yet, and cannot be blamed for
    /// those of the time when it was away. `is_relied_on`: from now on, and not only when it takes
    /// part.
    pub(super) fn welcome(&mut self, node: NodeId, life: Life, is_relied_on: bool) {
        self.set_life(node, life);
        self.forget_answer(node);
        if is_relied_on && !self.is_dead(node) {
            self.crashed.remove(node);
        } else {
            self.crashed.insert(node);
        }
        self.before.remove(node);
        let was_done = self.is_done();
        self.strike(node);
        if self.known.unheard.contains(node) {
            self.known.change(|known| _ = known.unheard.remove(node));
        }
        if !was_done && self.is_done() {
            self.known.change(|known| known.unheard.clone_from(&self.missing));
        }
    }

    /// A node that was welcomed takes part.
    pub(super) fn rely_on(&mut self, node: NodeId) {
        if !self.is_dead(node) {
            self.crashed.remove(node);
        }
    }

    /// Renames query numbers, for a checker.
    pub(super) fn clocks(&mut self, see: &mut dyn FnMut(&mut u64)) {
        if let Some(query) = &mut self.query {
            see(query);
        }
    }
}

#[cfg(test)]
impl Detector {
    /// Forgets what no later step reads, for an explorer. `silent`: who will never answer.
    pub(super) fn forget_unread(&mut self, silent: &NodeSet) {
        // A node known to have crashed is not found a second time. A node whose previous query left
        // nobody unheard reads of an answer only that it came.
        self.before = self.before.difference(&self.crashed);
        if self.before.is_empty() {
            self.forget_answers();
        }
        for (_, said) in &mut self.said {
            let unheard = said.unheard.intersection(&self.before);
            *said = Knowledge::from(Known { unheard, ..Known::default() });
        }
        self.said.retain(|(_, said)| !said.is_nothing());
        if self.is_done() && self.missing.is_subset(silent) {
            self.missing = NodeSet::new();
            self.query.take_if(|_| self.before.is_empty());
        }
    }

    /// Whether an answer of a node to the latest query is read, and what of those whom it did not
    /// hear.
    pub(super) fn reads(&self, from: NodeId, unheard: &NodeSet) -> (bool, NodeSet) {
        let is_read = self.missing.contains(from) || !self.before.is_empty();
        (is_read, unheard.intersection(&self.before))
    }
}
