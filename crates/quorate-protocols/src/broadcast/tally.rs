//! What everybody else may use ahead of one request, and the sum of it.

use quorate_core::{NodeId, NodeSet};

/// Units by node, with their sum kept beside them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Tally {
    used: Vec<u32>,
    total: u64,
}

impl Tally {
    /// Before anybody has answered: everybody else may use as much as a node can.
    pub(super) fn new(nodes: u32, me: NodeId, node_units_max: u32) -> Self {
        let mut used = vec![node_units_max; nodes as usize];
        used[me.index()] = 0;
        Tally { used, total: u64::from(nodes - 1) * u64::from(node_units_max) }
    }

    /// An answer: the smallest one is right, since what a node may use ahead of a fixed request
    /// never grows.
    pub(super) fn lower(&mut self, node: NodeId, used: u32) {
        let before = &mut self.used[node.index()];
        if used < *before {
            self.total -= u64::from(*before - used);
            *before = used;
        }
    }

    pub(super) fn used(&self, node: NodeId) -> u32 {
        self.used[node.index()]
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// The sum without some nodes.
    #[inline]
    pub(super) fn total_without(&self, out: &NodeSet) -> u64 {
        if out.is_empty() {
            return self.total;
        }
        self.total - out.iter().map(|node| u64::from(self.used(node))).sum::<u64>()
    }

    pub(super) fn audit(&self) {
        assert_eq!(self.total, self.used.iter().map(|&used| u64::from(used)).sum::<u64>());
    }
}
