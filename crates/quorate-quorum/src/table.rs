//! One bit for every set of nodes: for up to 22 nodes the plainest way is also the fastest.
//!
//! The table marks the sets that contain a quorum. A set is *dispensable* if its complement is
//! marked; with N_k the unions of k dispensable sets, a family is a k-arbiter iff the whole
//! universe is not in N_(k+1), and it is non-dominated iff every set is either marked or in N_k
//! (the restatement of RR-2523's theorem 4.5 with the inclusion the right way round). Unions of two
//! families of sets are found by counting pairs: sum over subsets, multiply, take differences back.

use quorate_core::NodeSet;

use crate::explicit::nodes_of;
use crate::{Effort, Explicit, TooLarge};

/// Which sets of nodes contain a quorum.
#[derive(Clone, Debug)]
pub struct Table {
    nodes: usize,
    marked: Vec<bool>,
}

impl Table {
    /// Largest universe a table is made for: 4 million sets.
    pub const NODES_MAX: usize = 22;

    /// The table of a family on at most [`Table::NODES_MAX`] nodes.
    pub fn new(family: &Explicit) -> Self {
        assert!(family.nodes() <= Self::NODES_MAX, "the table would not fit");
        let mut marked = vec![false; 1 << family.nodes()];
        for quorum in family.quorums() {
            marked[quorum.iter().map(|node| 1usize << node.0).sum::<usize>()] = true;
        }
        for node in 0..family.nodes() {
            for_pairs(&mut marked, node, |without, with| *with |= *without);
        }
        Table { nodes: family.nodes(), marked }
    }

    /// How many sets of each size contain a quorum: the survivors polynomial.
    pub fn survivors(&self) -> Vec<u64> {
        let mut survivors = vec![0; self.nodes + 1];
        for (set, marked) in self.marked.iter().enumerate() {
            survivors[set.count_ones() as usize] += u64::from(*marked);
        }
        survivors
    }

    /// Size of a smallest set that meets every quorum; `None` if a quorum is empty.
    pub fn smallest_hitting(&self) -> Option<usize> {
        let survivors = self.survivors();
        (0..=self.nodes).find(|dead| {
            let all = crate::Natural::binomial(self.nodes, *dead);
            crate::Natural::from(u128::from(survivors[self.nodes - dead])) < all
        })
    }

    /// Fewest quorums with nothing in common; `None` if a node is in all of them.
    pub fn fewest_covering(&self, effort: &mut Effort<'_>) -> Result<Option<usize>, TooLarge> {
        let everyone = self.marked.len() - 1;
        let mut unions = self.dispensable();
        let mut count = 1;
        while !unions[everyone] {
            let more = self.unions_with_dispensable(&unions, effort)?;
            if more == unions {
                return Ok(None);
            }
            unions = more;
            count += 1;
        }
        Ok(Some(count))
    }

    /// A smallest witness that the family is dominated as a `units`-arbiter: it contains no quorum
    /// and meets every intersection of `units` of them. `None` proves that there is none.
    pub fn dominating_witness(
        &self,
        units: usize,
        effort: &mut Effort<'_>,
    ) -> Result<Option<NodeSet>, TooLarge> {
        assert!(units >= 1, "domination is about at least one unit");
        let mut unions = self.dispensable();
        for _ in 1..units {
            let more = self.unions_with_dispensable(&unions, effort)?;
            if more == unions {
                break;
            }
            unions = more;
        }
        let members = |set: usize| (0..self.nodes).filter(move |node| set >> node & 1 == 1);
        let smallest = (0..self.marked.len())
            .filter(|set| !self.marked[*set] && !unions[*set])
            .map(|set| (set.count_ones(), std::cmp::Reverse(reversed(set)), set))
            .min();
        Ok(smallest.map(|(_, _, set)| nodes_of(members(set))))
    }

    /// Sets whose complement contains a quorum.
    fn dispensable(&self) -> Vec<bool> {
        self.marked.iter().rev().copied().collect()
    }

    fn unions_with_dispensable(
        &self,
        sets: &[bool],
        effort: &mut Effort<'_>,
    ) -> Result<Vec<bool>, TooLarge> {
        effort.spend(self.nodes as u64 * self.marked.len() as u64 / 8)?;
        let count = |sets: &[bool]| -> Vec<u64> {
            let mut counts: Vec<u64> = sets.iter().map(|set| u64::from(*set)).collect();
            for node in 0..self.nodes {
                for_pairs(&mut counts, node, |without, with| *with += *without);
            }
            counts
        };
        let mut pairs = count(sets);
        for (pair, more) in pairs.iter_mut().zip(count(&self.dispensable())) {
            // At most 4^22 pairs: no overflow.
            *pair *= more;
        }
        for node in 0..self.nodes {
            for_pairs(&mut pairs, node, |without, with| *with -= *without);
        }
        Ok(pairs.into_iter().map(|count| count > 0).collect())
    }
}

/// Visits every pair of entries that differ in `node` only.
fn for_pairs<T>(table: &mut [T], node: usize, mut visit: impl FnMut(&T, &mut T)) {
    for block in table.chunks_exact_mut(2 << node) {
        let (without, with) = block.split_at_mut(1 << node);
        for (a, b) in without.iter().zip(with) {
            visit(a, b);
        }
    }
}

/// Among sets of one size, the one with the smaller members first has the larger reversal.
fn reversed(set: usize) -> usize {
    set.reverse_bits()
}
