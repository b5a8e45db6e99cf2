//! Families written out: a list of quorums as bit sets.
//!
//! Baldoni, Manabe, Raynal, Aoyagi, "k-Arbiter" (INRIA RR-2523), section 4.1, define a k-arbiter as
//! a *set* of quorums; a construction such as their general cube gives a *list*, one quorum per
//! node, with possible repetitions and inclusions. We keep the list, since the paper's R counts it,
//! and decide inclusion between the sets in it.

use std::collections::BTreeMap;

use quorate_core::{NodeId, NodeSet};

use crate::set::{SMALL, Set};
use crate::{Natural, Ratio};

/// Why a list of sets is not a family.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ExplicitError {
    /// There is no quorum at all.
    #[error("a family needs at least one quorum")]
    NoQuorum,
    /// A quorum names a node that does not exist.
    #[error("quorum {quorum} names node {node}, but the nodes are 0 to {last}", last = nodes - 1)]
    NoSuchNode {
        /// Position of the quorum in the list.
        quorum: usize,
        /// The node it names.
        node: u32,
        /// How many nodes there are.
        nodes: usize,
    },
    /// There are no nodes.
    #[error("a family needs at least one node")]
    NoNode,
}

/// A family of quorums, written out. An empty quorum is let in, so that the questions can say what
/// is wrong with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explicit {
    nodes: usize,
    quorums: Vec<NodeSet>,
}

/// A family in which every node is in as many quorums as any other (the effort) and every quorum
/// has the same size: the paper's beta and gamma.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Symmetric {
    /// Quorums each node belongs to.
    pub effort: Natural,
    /// Members of each quorum.
    pub size: usize,
}

impl Explicit {
    /// A family over nodes 0..`nodes`. On error nothing is built.
    pub fn new(nodes: usize, quorums: Vec<NodeSet>) -> Result<Self, ExplicitError> {
        if nodes == 0 {
            return Err(ExplicitError::NoNode);
        }
        if quorums.is_empty() {
            return Err(ExplicitError::NoQuorum);
        }
        for (quorum, set) in quorums.iter().enumerate() {
            if let Some(stranger) = set.iter().find(|node| node.index() >= nodes) {
                return Err(ExplicitError::NoSuchNode { quorum, node: stranger.0, nodes });
            }
        }
        Ok(Explicit { nodes, quorums })
    }

    /// From lists of node numbers.
    pub fn from_lists(nodes: usize, lists: &[Vec<u32>]) -> Result<Self, ExplicitError> {
        Self::new(nodes, lists.iter().map(|list| list.iter().copied().collect()).collect())
    }

    /// How many nodes there are, whether or not a quorum names them.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The quorums, in the order given.
    pub fn quorums(&self) -> &[NodeSet] {
        &self.quorums
    }

    /// Whether `alive` contains a quorum.
    pub fn contains_quorum(&self, alive: &NodeSet) -> bool {
        self.quorums.iter().any(|quorum| quorum.is_subset(alive))
    }

    /// How many quorums there are of each size.
    pub fn sizes(&self) -> BTreeMap<usize, Natural> {
        let mut sizes = BTreeMap::new();
        for quorum in &self.quorums {
            *sizes.entry(quorum.len()).or_insert(0usize) += 1;
        }
        sizes.into_iter().map(|(size, count)| (size, Natural::from(count))).collect()
    }

    /// How many quorums each node is in: the paper's beta_i.
    pub fn efforts(&self) -> Vec<usize> {
        let mut efforts = vec![0; self.nodes];
        for node in self.quorums.iter().flat_map(NodeSet::iter) {
            efforts[node.index()] += 1;
        }
        efforts
    }

    /// Whether all nodes have one effort and all quorums one size (section 4.4).
    pub fn symmetric(&self) -> Option<Symmetric> {
        let efforts = self.efforts();
        let size = self.quorums[0].len();
        let even = efforts.iter().all(|effort| *effort == efforts[0])
            && self.quorums.iter().all(|quorum| quorum.len() == size);
        even.then(|| Symmetric { effort: Natural::from(efforts[0]), size })
    }

    /// R = the largest effort over the number of quorums (section 4.5), the load of choosing
    /// quorums evenly.
    pub fn resiliency(&self) -> Ratio {
        let most = self.efforts().into_iter().max().unwrap_or(0);
        Ratio::of(most, self.quorums.len())
    }

    /// Two different quorums, the first inside the second, if there are any.
    pub fn inclusion(&self) -> Option<(NodeSet, NodeSet)> {
        if self.nodes <= SMALL {
            self.inclusion_in::<u128>()
        } else {
            self.inclusion_in::<NodeSet>()
        }
    }

    /// Without repetitions and without quorums that contain another.
    pub fn minimalised(&self) -> Explicit {
        let quorums = if self.nodes <= SMALL {
            to_nodes(minimal(self.sets::<u128>()))
        } else {
            to_nodes(minimal(self.sets::<NodeSet>()))
        };
        Explicit { nodes: self.nodes, quorums }
    }

    /// This family without the supersets of `witness`, and with it: what dominates the family if
    /// the witness is one (theorem 4.5).
    pub fn dominated_by(&self, witness: &NodeSet) -> Explicit {
        let mut quorums: Vec<NodeSet> =
            self.quorums.iter().filter(|quorum| !witness.is_subset(quorum)).cloned().collect();
        quorums.push(witness.clone());
        Explicit { nodes: self.nodes, quorums }
    }

    /// Nodes that are in every quorum.
    pub fn common(&self) -> NodeSet {
        let (first, rest) = self.quorums.split_first().expect("a family has a quorum");
        rest.iter().fold(first.clone(), |common, quorum| common.intersection(quorum))
    }

    pub(crate) fn sets<S: Set>(&self) -> Vec<S> {
        self.quorums.iter().map(S::from_nodes).collect()
    }

    fn inclusion_in<S: Set>(&self) -> Option<(NodeSet, NodeSet)> {
        let mut sets = self.sets::<S>();
        sets.sort_by_cached_key(S::size);
        sets.iter().enumerate().find_map(|(index, large)| {
            let small =
                sets[..index].iter().find(|small| small.within(large) && *small != large)?;
            Some((small.to_nodes(), large.to_nodes()))
        })
    }
}

fn to_nodes<S: Set>(sets: Vec<S>) -> Vec<NodeSet> {
    sets.iter().map(S::to_nodes).collect()
}

/// The minimal sets among `sets`, smallest first, each once.
pub(crate) fn minimal<S: Set>(mut sets: Vec<S>) -> Vec<S> {
    sets.sort_by_cached_key(|set| (set.size(), set.members().collect::<Vec<_>>()));
    sets.dedup();
    let mut kept: Vec<S> = Vec::with_capacity(sets.len());
    // Sets of one size cannot contain each other: compare only with what was smaller.
    let (mut smaller, mut size) = (0, 0);
    for set in sets {
        if set.size() > size {
            (smaller, size) = (kept.len(), set.size());
        }
        if !kept[..smaller].iter().any(|small| small.within(&set)) {
            kept.push(set);
        }
    }
    kept
}

/// All nodes with these numbers, for short tests and constructions.
pub fn nodes_of(numbers: impl IntoIterator<Item = usize>) -> NodeSet {
    numbers.into_iter().map(NodeId::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(nodes: usize, lists: &[&[u32]]) -> Explicit {
        let lists: Vec<Vec<u32>> = lists.iter().map(|list| list.to_vec()).collect();
        Explicit::from_lists(nodes, &lists).expect("a proper list")
    }

    #[test]
    fn lists_that_are_no_families_are_refused_with_the_reason() {
        assert_eq!(Explicit::new(3, vec![]), Err(ExplicitError::NoQuorum));
        assert_eq!(Explicit::from_lists(0, &[vec![]]), Err(ExplicitError::NoNode));
        let error = Explicit::from_lists(3, &[vec![0], vec![1, 3]]).unwrap_err();
        assert_eq!(error.to_string(), "quorum 1 names node 3, but the nodes are 0 to 2");
    }

    #[test]
    fn minimalising_keeps_exactly_the_minimal_sets_once() {
        let family = family(4, &[&[0, 1, 2], &[0, 1], &[2, 3], &[0, 1], &[1, 2, 3]]);
        assert_eq!(family.minimalised().quorums(), [nodes_of([0, 1]), nodes_of([2, 3])]);
        assert_eq!(family.inclusion(), Some((nodes_of([0, 1]), nodes_of([0, 1, 2]))));
        assert_eq!(family.minimalised().inclusion(), None);
        assert_eq!(family.resiliency().to_string(), "4/5");
    }
}
