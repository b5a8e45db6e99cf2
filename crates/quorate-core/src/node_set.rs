//! Sets of nodes: a bit per node, growing with the largest member, so that there is no ceiling. A
//! pool has rarely more than a hundred nodes: the first bits are in the set itself.

use std::cmp::Ordering;
use std::fmt;

use crate::NodeId;

const WORD: usize = u64::BITS as usize;
const LOW: usize = 2;

/// A set of nodes. Two sets with the same members are equal, hash alike and print alike.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct NodeSet {
    low: [u64; LOW],
    high: High,
}

/// The bits beyond the first ones. Few sets have any, so that they take one word where there are
/// none: participants keep many sets, and a simulation many participants.
///
/// Invariant: the last word is not zero, and there is a list only if there are words, so that equal
/// sets are equal.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
#[expect(clippy::box_collection, reason = "a list takes three words, a box one")]
struct High(Option<Box<Vec<u64>>>);

impl High {
    fn new(words: Vec<u64>) -> Self {
        let mut high = High((!words.is_empty()).then(|| Box::new(words)));
        high.trim();
        high
    }

    #[inline]
    fn words(&self) -> &[u64] {
        self.0.as_ref().map_or(&[], |words| words)
    }

    #[inline]
    fn words_mut(&mut self) -> &mut [u64] {
        self.0.as_mut().map_or(&mut [], |words| words)
    }

    /// One word, for a bit that is to be set in it.
    fn grown(&mut self, word: usize) -> &mut u64 {
        let words = self.0.get_or_insert_default();
        if words.len() <= word {
            words.resize(word + 1, 0);
        }
        &mut words[word]
    }

    #[inline]
    fn trim(&mut self) {
        if self.0.is_some() {
            self.trim_words();
        }
    }

    #[inline(never)]
    fn trim_words(&mut self) {
        let Some(words) = &mut self.0 else { return };
        while words.last() == Some(&0) {
            words.pop();
        }
        self.0.take_if(|words| words.is_empty());
    }
}

impl NodeSet {
    /// The empty set.
    pub const fn new() -> Self {
        NodeSet { low: [0; LOW], high: High(None) }
    }

    /// The nodes 0..n.
    pub fn first(n: usize) -> Self {
        let word = |index: usize| match n.saturating_sub(index * WORD) {
            bits if bits >= WORD => u64::MAX,
            bits => (1 << bits) - 1,
        };
        NodeSet {
            low: std::array::from_fn(word),
            high: High::new((LOW..n.div_ceil(WORD)).map(word).collect()),
        }
    }

    /// Number of members.
    #[inline]
    pub fn len(&self) -> usize {
        let count =
            |words: &[u64]| words.iter().map(|word| word.count_ones() as usize).sum::<usize>();
        count(&self.low) + count(self.high.words())
    }

    /// Whether it has no member.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.low == [0; LOW] && self.high.0.is_none()
    }

    /// Whether `node` is a member.
    #[inline]
    pub fn contains(&self, node: NodeId) -> bool {
        let (word, bit) = place(node);
        self.word(word).is_some_and(|word| word & bit != 0)
    }

    /// Adds `node`; says whether it was new.
    #[inline]
    pub fn insert(&mut self, node: NodeId) -> bool {
        let (word, bit) = place(node);
        let word = match word.checked_sub(LOW) {
            None => &mut self.low[word],
            Some(word) => self.high.grown(word),
        };
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Takes `node` out; says whether it was a member.
    #[inline]
    pub fn remove(&mut self, node: NodeId) -> bool {
        let (word, bit) = place(node);
        let word = match word.checked_sub(LOW) {
            None => &mut self.low[word],
            Some(word) => match self.high.words_mut().get_mut(word) {
                Some(word) => word,
                None => return false,
            },
        };
        let was = *word & bit != 0;
        *word &= !bit;
        self.high.trim();
        was
    }

    /// Members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + '_ {
        let (mut index, mut left) = (0, self.low[0]);
        std::iter::from_fn(move || {
            while left == 0 {
                index += 1;
                left = self.word(index)?;
            }
            let bit = left.trailing_zeros();
            left &= left - 1;
            Some(NodeId(index as u32 * u64::BITS + bit))
        })
    }

    /// The smallest member.
    pub fn smallest(&self) -> Option<NodeId> {
        self.iter().next()
    }

    /// Whether every member is in `other`.
    #[inline]
    pub fn is_subset(&self, other: &NodeSet) -> bool {
        let is_subset = |(a, b): (&u64, &u64)| a & !b == 0;
        self.low.iter().zip(&other.low).all(is_subset)
            && self.high.words().len() <= other.high.words().len()
            && self.high.words().iter().zip(other.high.words()).all(is_subset)
    }

    /// Whether no node is in both.
    pub fn is_disjoint(&self, other: &NodeSet) -> bool {
        self.words().zip(other.words()).all(|(a, b)| a & b == 0)
    }

    /// Nodes in both.
    pub fn intersection(&self, other: &NodeSet) -> NodeSet {
        let low = std::array::from_fn(|word| self.low[word] & other.low[word]);
        let high = self.high.words().iter().zip(other.high.words()).map(|(a, b)| a & b);
        NodeSet { low, high: High::new(high.collect()) }
    }

    /// Nodes in either.
    pub fn union(&self, other: &NodeSet) -> NodeSet {
        let is_longer = self.high.words().len() >= other.high.words().len();
        let (long, short) = if is_longer { (self, other) } else { (other, self) };
        let mut both = long.clone();
        for (word, more) in both.words_mut().zip(short.words()) {
            *word |= more;
        }
        both
    }

    /// Nodes in this set and not in `other`.
    pub fn difference(&self, other: &NodeSet) -> NodeSet {
        let mut left = self.clone();
        for (word, less) in left.words_mut().zip(other.words()) {
            *word &= !less;
        }
        left.high.trim();
        left
    }

    #[inline]
    fn word(&self, index: usize) -> Option<u64> {
        match index.checked_sub(LOW) {
            None => Some(self.low[index]),
            Some(index) => self.high.words().get(index).copied(),
        }
    }

    fn words(&self) -> impl Iterator<Item = u64> + '_ {
        self.low.iter().chain(self.high.words()).copied()
    }

    fn words_mut(&mut self) -> impl Iterator<Item = &mut u64> {
        self.low.iter_mut().chain(self.high.words_mut())
    }
}

#[inline]
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
