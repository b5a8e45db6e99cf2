//! Requests of peers that are behind requests of this node. The peers are answered again when this
//! node uses less ahead of them.
//!
//! They are kept oldest first, since a new one is mostly the youngest and goes to the end. The set
//! of their senders is kept beside them, so that a peer without a request here needs no search.

use quorate_core::{NodeId, NodeSet, Stamp, numbers};

/// A peer's request that is behind a request of this node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Deferred {
    pub(super) node: NodeId,
    pub(super) clock: u64,
    pub(super) query: Option<u64>,
    /// The peer's oldest waiting request when it sent this one.
    pub(super) oldest: u64,
    /// What it was last told.
    pub(super) told: u32,
}

numbers!(Deferred { node, clock: clock, query: clocks, oldest: clock, told });

impl Deferred {
    pub(super) fn stamp(&self) -> Stamp {
        Stamp { clock: self.clock, node: self.node }
    }
}

/// All of them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Deferrals {
    /// By stamp.
    requests: Vec<Deferred>,
    /// Whose they are.
    nodes: NodeSet,
}

numbers!(Deferrals { requests, nodes });

impl Deferrals {
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub(super) fn clear(&mut self) {
        *self = Deferrals::default();
    }

    /// Takes one in, unless it is over: a younger request of the same node, heard earlier, said so
    /// (broadcast spec E3b). One that is repeated takes its own place.
    pub(super) fn insert(&mut self, new: Deferred) {
        let theirs = new.stamp();
        let is_known = self.nodes.contains(new.node);
        let ends_it =
            |it: &Deferred| it.node == new.node && it.stamp() > theirs && it.oldest > new.clock;
        if is_known && self.requests.iter().any(ends_it) {
            return;
        }
        self.nodes.insert(new.node);
        let is_older = |it: &Deferred| it.stamp() <= theirs;
        let place = self.requests.iter().rposition(is_older).map_or(0, |older| older + 1);
        match self.requests[..place].last_mut() {
            Some(again) if again.stamp() == theirs => *again = new,
            _ => self.requests.insert(place, new),
        }
    }

    /// Forgets requests of a node that are older than its oldest that waits: they are over, and
    /// need no answer.
    pub(super) fn forget_before(&mut self, node: NodeId, oldest: u64) {
        if self.nodes.contains(node) {
            self.requests.retain(|it| it.node != node || it.clock >= oldest);
            self.look_for(node);
        }
    }

    /// Forgets all requests of a node.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.forget_before(node, u64::MAX);
    }

    fn look_for(&mut self, node: NodeId) {
        if !self.requests.iter().any(|it| it.node == node) {
            self.nodes.remove(node);
        }
    }

    /// Looks at each, oldest first, and keeps those that `keep` says.
    pub(super) fn retain(&mut self, keep: impl FnMut(&mut Deferred) -> bool) {
        self.requests.retain_mut(keep);
        self.nodes = self.requests.iter().map(|it| it.node).collect();
    }

    pub(super) fn audit(&self) {
        assert!(self.requests.is_sorted_by_key(Deferred::stamp));
        assert_eq!(self.nodes, self.requests.iter().map(|it| it.node).collect());
    }
}
