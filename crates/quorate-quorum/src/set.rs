//! One interface to small and large sets of nodes, so that every search is written once: 128 nodes
//! fit in a machine register pair, more take a [`NodeSet`].

use quorate_core::{NodeId, NodeSet};

/// Universes up to this size use the fast representation.
pub(crate) const SMALL: usize = 128;

/// What the searches need from a set of nodes.
pub(crate) trait Set: Clone + Ord {
    fn empty() -> Self;
    fn has(&self, node: usize) -> bool;
    fn put(&mut self, node: usize);
    fn and(&self, other: &Self) -> Self;
    fn or(&self, other: &Self) -> Self;
    fn minus(&self, other: &Self) -> Self;
    fn within(&self, other: &Self) -> bool;
    fn apart(&self, other: &Self) -> bool;
    fn size(&self) -> usize;
    fn none(&self) -> bool;
    fn members(&self) -> impl Iterator<Item = usize>;

    fn from_nodes(nodes: &NodeSet) -> Self {
        let mut set = Self::empty();
        for node in nodes.iter() {
            set.put(node.index());
        }
        set
    }

    fn to_nodes(&self) -> NodeSet {
        self.members().map(NodeId::from).collect()
    }
}

impl Set for u128 {
    fn empty() -> Self {
        0
    }
    fn has(&self, node: usize) -> bool {
        self >> node & 1 == 1
    }
    fn put(&mut self, node: usize) {
        *self |= 1 << node;
    }
    fn and(&self, other: &Self) -> Self {
        self & other
    }
    fn or(&self, other: &Self) -> Self {
        self | other
    }
    fn minus(&self, other: &Self) -> Self {
        self & !other
    }
    fn within(&self, other: &Self) -> bool {
        self & !other == 0
    }
    fn apart(&self, other: &Self) -> bool {
        self & other == 0
    }
    fn size(&self) -> usize {
        self.count_ones() as usize
    }
    fn none(&self) -> bool {
        *self == 0
    }
    fn members(&self) -> impl Iterator<Item = usize> {
        let mut left = *self;
        std::iter::from_fn(move || {
            (left != 0).then(|| {
                let node = left.trailing_zeros() as usize;
                left &= left - 1;
                node
            })
        })
    }
}

impl Set for NodeSet {
    fn empty() -> Self {
        NodeSet::new()
    }
    fn has(&self, node: usize) -> bool {
        self.contains(NodeId::from(node))
    }
    fn put(&mut self, node: usize) {
        self.insert(NodeId::from(node));
    }
    fn and(&self, other: &Self) -> Self {
        self.intersection(other)
    }
    fn or(&self, other: &Self) -> Self {
        self.union(other)
    }
    fn minus(&self, other: &Self) -> Self {
        self.difference(other)
    }
    fn within(&self, other: &Self) -> bool {
        self.is_subset(other)
    }
    fn apart(&self, other: &Self) -> bool {
        self.is_disjoint(other)
    }
    fn size(&self) -> usize {
        self.len()
    }
    fn none(&self) -> bool {
        self.is_empty()
    }
    fn members(&self) -> impl Iterator<Item = usize> {
        self.iter().map(NodeId::index)
    }
}
