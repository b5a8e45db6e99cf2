//! Who is believed to have crashed, and in which life.

use std::collections::BTreeMap;

use quorate_core::{NodeId, NodeSet};

use super::message::Life;

/// The last death of each node. Nearly every node that dies does so in its first life, and deaths
/// are compared with every message, so deaths in a first life are kept as a set.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Deaths {
    /// Who died in its first life.
    first: NodeSet,
    /// Who died in a later one. Invariant: not the first one, so that equal deaths are equal.
    later: BTreeMap<NodeId, Life>,
}

impl Deaths {
    /// Nobody died.
    pub(super) const NONE: Self = Deaths { first: NodeSet::new(), later: BTreeMap::new() };

    /// Whether nobody died.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_empty() && self.later.is_empty()
    }

    /// In which life a node died.
    #[inline]
    pub fn get(&self, node: NodeId) -> Option<Life> {
        if self.first.contains(node) { Some(0) } else { self.later.get(&node).copied() }
    }

    /// Replaces what is known of a node.
    pub fn insert(&mut self, node: NodeId, life: Life) {
        if life == 0 {
            self.later.remove(&node);
            self.first.insert(node);
        } else {
            self.first.remove(node);
            self.later.insert(node, life);
        }
    }

    /// Whom it is about.
    pub fn nodes(&self) -> NodeSet {
        self.later.keys().fold(self.first.clone(), |mut nodes, node| {
            nodes.insert(*node);
            nodes
        })
    }

    /// Whether all of them are among some nodes.
    pub(super) fn is_within(&self, nodes: &NodeSet) -> bool {
        self.first.is_subset(nodes) && self.later.keys().all(|node| nodes.contains(*node))
    }

    /// Everybody who died in its first life.
    #[inline]
    pub(super) fn first(&self) -> &NodeSet {
        &self.first
    }

    /// All of them, in the order of nodes.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, Life)> {
        let all: Vec<NodeId> = self.nodes().iter().collect();
        all.into_iter().filter_map(|node| Some((node, self.get(node)?)))
    }
}

impl FromIterator<(NodeId, Life)> for Deaths {
    fn from_iter<I: IntoIterator<Item = (NodeId, Life)>>(all: I) -> Self {
        let mut deaths = Deaths::NONE;
        for (node, life) in all {
            deaths.insert(node, life);
        }
        deaths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Equal if the deaths are, in whatever order they were learned: as a table of nodes would be.
    #[test]
    fn the_last_word_about_a_node_counts() {
        let told = [(3, 0), (1, 7), (3, 2), (2, 0), (1, 0), (2, 0)].map(|(n, l)| (NodeId(n), l));
        let deaths: Deaths = told.into_iter().collect();
        let table: BTreeMap<NodeId, Life> = told.into_iter().collect();
        assert!(deaths.iter().eq(table.clone()));
        assert_eq!(deaths, table.into_iter().collect());
        assert_eq!(deaths.nodes(), [1, 2, 3].into_iter().collect());
        assert_eq!((deaths.get(NodeId(3)), deaths.get(NodeId(4))), (Some(2), None));
        let (four, three) = (NodeSet::first(4), NodeSet::first(3));
        assert!(deaths.is_within(&four) && !deaths.is_within(&three));
        assert!(!deaths.is_empty() && Deaths::NONE.is_empty());
    }
}
