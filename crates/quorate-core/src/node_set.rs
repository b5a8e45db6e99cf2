//! Sets of nodes: a bit per node, growing with the largest member, so that there is no ceiling.

use std::cmp::Ordering;
use std::fmt;

use crate::NodeId;

const WORD: usize = u64::BITS as usize;

/// A set of nodes. Two sets with the same members are equal, hash alike and print alike.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct NodeSet {
    /// Invariant: the last word is not zero, so that equal sets have equal words.
    words: Vec<u64>,
}

impl NodeSet {
    /// The empty set.
    pub const fn new() -> Self {
        NodeSet { words: Vec::new() }
    }

    /// The nodes 0..n.
    pub fn first(n: usize) -> Self {
        let mut words = vec![u64::MAX; n / WORD];
        if !n.is_multiple_of(WORD) {
            words.push((1 << (n % WORD)) - 1);
        }
        NodeSet { words }
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether it has no member.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether `node` is a member.
    pub fn contains(&self, node: NodeId) -> bool {
        let (word, bit) = place(node);
        self.words.get(word).is_some_and(|w| w & bit != 0)
    }

    /// Adds `node`; says whether it was new.
    pub fn insert(&mut self, node: NodeId) -> bool {
        let (word, bit) = place(node);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        new
    }

    /// Takes `node` out; says whether it was a member.
    pub fn remove(&mut self, node: NodeId) -> bool {
        let (word, bit) = place(node);
        let Some(w) = self.words.get_mut(word) else { return false };
        let was = *w & bit != 0;
        *w &= !bit;
        self.trim();
        was
    }

    /// Members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                (left != 0).then(|| {
                    let bit = left.trailing_zeros();
                    left &= left - 1;
                    NodeId(index as u32 * u64::BITS + bit)
                })
            })
        })
    }

    /// The smallest member.
    pub fn smallest(&self) -> Option<NodeId> {
        self.iter().next()
    }

    /// Whether every member is in `other`.
    pub fn is_subset(&self, other: &NodeSet) -> bool {
        self.words.len() <= other.words.len()
            && self.words.iter().zip(&other.words).all(|(a, b)| a & !b == 0)
    }

    /// Whether no node is in both.
    pub fn is_disjoint(&self, other: &NodeSet) -> bool {
        self.words.iter().zip(&other.words).all(|(a, b)| a & b == 0)
    }

    /// Nodes in both.
    pub fn intersection(&self, other: &NodeSet) -> NodeSet {
        NodeSet::trimmed(self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect())
    }

    /// Nodes in either.
    pub fn union(&self, other: &NodeSet) -> NodeSet {
        let (long, short) =
            if self.words.len() >= other.words.len() { (self, other) } else { (other, self) };
        let mut words = long.words.clone();
        for (word, more) in words.iter_mut().zip(&short.words) {
            *word |= more;
        }
        NodeSet { words }
    }

    /// Nodes in this set and not in `other`.
    pub fn difference(&self, other: &NodeSet) -> NodeSet {
        let mut words = self.words.clone();
        for (word, less) in words.iter_mut().zip(&other.words) {
            *word &= !less;
        }
        NodeSet::trimmed(words)
    }

    fn trimmed(words: Vec<u64>) -> NodeSet {
        let mut set = NodeSet { words };
        set.trim();
        set
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }
}

fn place(node: NodeId) -> (usize, u64) {
    (node.index() / WORD, 1 << (node.index() % WORD))
}

impl FromIterator<NodeId> for NodeSet {
    fn from_iter<I: IntoIterator<Item = NodeId>>(nodes: I) -> Self {
        let mut set = NodeSet::new();
        for node in nodes {
            set.insert(node);
        }
        set
    }
}

impl FromIterator<u32> for NodeSet {
    fn from_iter<I: IntoIterator<Item = u32>>(nodes: I) -> Self {
        nodes.into_iter().map(NodeId).collect()
    }
}

/// Lexicographic by members, so that sorted families read naturally.
impl Ord for NodeSet {
    fn cmp(&self, other: &Self) -> Ordering {
        self.iter().cmp(other.iter())
    }
}

impl PartialOrd for NodeSet {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (position, node) in self.iter().enumerate() {
            if position > 0 {
                f.write_str(",")?;
            }
            write!(f, "{}", node.0)?;
        }
        f.write_str("}")
    }
}

impl fmt::Debug for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(nodes: &[u32]) -> NodeSet {
        nodes.iter().copied().collect()
    }

    #[test]
    fn equal_members_mean_equal_sets_however_they_came_about() {
        let mut shrunk = set(&[1, 700]);
        assert!(shrunk.remove(NodeId(700)));
        assert_eq!(shrunk, set(&[1]));
        assert_eq!(set(&[5, 900]).intersection(&set(&[5, 100])), set(&[5]));
        assert_eq!(set(&[5, 900]).difference(&set(&[900])), set(&[5]));
        assert_eq!(NodeSet::first(130), (0..130).collect::<NodeSet>());
        assert_eq!(NodeSet::first(128).len(), 128);
    }

    #[test]
    fn sets_reach_beyond_any_machine_word() {
        let set = set(&[0, 63, 64, 1_000_000]);
        assert_eq!(set.iter().map(|n| n.0).collect::<Vec<_>>(), [0, 63, 64, 1_000_000]);
        assert!(set.contains(NodeId(1_000_000)));
        assert!(!set.contains(NodeId(999_999)));
        assert_eq!(set.to_string(), "{0,63,64,1000000}");
        assert!(NodeSet::new().is_empty());
    }

    #[test]
    fn algebra_agrees_with_membership_on_every_pair_of_small_sets() {
        let all = |bits: u32| (0..4).filter(|i| bits >> i & 1 == 1).collect::<NodeSet>();
        for a in 0..16 {
            for b in 0..16 {
                let (x, y) = (all(a), all(b));
                assert_eq!(x.union(&y), all(a | b));
                assert_eq!(x.intersection(&y), all(a & b));
                assert_eq!(x.difference(&y), all(a & !b));
                assert_eq!(x.is_subset(&y), a & !b == 0);
                assert_eq!(x.is_disjoint(&y), a & b == 0);
            }
        }
    }
}
