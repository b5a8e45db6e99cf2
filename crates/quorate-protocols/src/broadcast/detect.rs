//! Who has crashed, without timers.
//!
//! The query mechanism of Mostefaoui, Mourgaya and Raynal 2003 as Bouillaguet, Arantes and Sens
//! 2009 use it: a query ends when all but f have answered. Who has not is *unheard*, which is no
//! accusation, since somebody must be last. But every answer carries the unheard of its sender, and
//! who is unheard by everybody who answered, the asker's previous query included, is taken for
//! crashed. Under the responsiveness property (spec 4) that is always right: each live node has f+1
//! nodes that always hear it in time, and one of them is among the n-f who answered.
//!
//! Differences from the paper: a query is not tied to a request and lasts until it is answered
//! (E5); answers count for the query they name and for no other (E3); what is known of crashes
//! travels on every message, not on requests only.

use std::sync::Arc;

use quorate_core::{Moment, NodeId, NodeSet};

use super::message::Known;

/// One node's queries and what they taught it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Detector {
    /// What this node lets others know.
    pub(super) known: Arc<Known>,
    /// The latest query; `None` before the first.
    pub(super) query: Option<u64>,
    /// When it was sent. Read by leases only.
    pub(super) sent: Moment,
    /// Who has not answered it.
    missing: NodeSet,
    /// What this node's unheard were before it: the paper's own tuple, the *previous* set on
    /// purpose (E14), so that nobody is accused who missed only one query.
    before: NodeSet,
    /// What each node said in its last answer to this query.
    answers: Vec<Option<Arc<Known>>>,
    done: bool,
    /// All nodes of the pool, to recognise strangers.
    everybody: NodeSet,
}

impl Detector {
    pub(super) fn new(nodes: u32) -> Self {
        Detector {
            known: Arc::default(),
            query: None,
            sent: Moment::ZERO,
            missing: NodeSet::new(),
            before: NodeSet::new(),
            answers: vec![None; nodes as usize],
            done: true,
            everybody: NodeSet::first(nodes as usize),
        }
    }

    /// Whether a belief is about nodes of this pool only.
    pub(super) fn is_sound(&self, known: &Known) -> bool {
        known.crashed.is_subset(&self.everybody) && known.unheard.is_subset(&self.everybody)
    }

    /// Whether enough have answered the last query, so that the next may start.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    pub(super) fn crashed(&self) -> &NodeSet {
        &self.known.crashed
    }

    /// Who has not answered the latest query.
    pub(super) fn missing(&self) -> &NodeSet {
        &self.missing
    }

    /// What a node said in its last answer to the latest query.
    pub(super) fn answer(&self, node: NodeId) -> Option<&Known> {
        self.answers[node.index()].as_deref()
    }

    /// Starts a query among `nodes` nodes, `late_max` of whom need not answer.
    pub(super) fn start(&mut self, query: u64, sent: Moment, me: NodeId, late_max: u32) {
        assert!(self.done, "a query starts when the one before it has ended (E5)");
        let nodes = self.answers.len();
        self.query = Some(query);
        self.sent = sent;
        self.missing = NodeSet::first(nodes);
        self.missing.remove(me);
        self.before.clone_from(&self.known.unheard);
        self.answers.fill(None);
        self.done = nodes - 1 <= late_max as usize;
    }

    /// Takes an answer to the latest query and says who is found to have crashed.
    pub(super) fn on_answer(&mut self, from: NodeId, said: Arc<Known>, late_max: u32) -> NodeSet {
        let is_first = self.missing.remove(from);
        self.answers[from.index()] = Some(said);
        if !self.done && self.missing.len() > late_max as usize {
            return NodeSet::new();
        }
        if is_first || !self.done {
            Arc::make_mut(&mut self.known).unheard.clone_from(&self.missing);
        }
        self.done = true;
        let unheard_by_all =
            |&node: &NodeId| self.answers.iter().flatten().all(|said| said.unheard.contains(node));
        self.before.iter().filter(unheard_by_all).collect()
    }

    /// Takes over what somebody knows; says whether it was news.
    pub(super) fn learn(&mut self, crashed: &NodeSet) -> bool {
        let news = !crashed.is_subset(&self.known.crashed);
        if news {
            let known = Arc::make_mut(&mut self.known);
            known.crashed = known.crashed.union(crashed);
        }
        news
    }

    /// Renames query numbers, for a checker.
    pub(super) fn clocks(&mut self, see: &mut dyn FnMut(&mut u64)) {
        if let Some(query) = &mut self.query {
            see(query);
        }
    }
}
