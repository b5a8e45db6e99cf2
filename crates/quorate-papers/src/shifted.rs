//! Families that stand for all others where only sizes count: shifted ones.
//!
//! Shifting replaces node j by an earlier node i in every set of a family where that gives a set
//! that is not there yet. It changes no set's size, sets that contain one of the family stay such
//! sets, and if any r of them had a common member they still have one (P. Erdos, C. Ko, R. Rado
//! 1961; P. Frankl 1987, for any r). Done for as long as it changes something, it ends in a
//! *shifted* family. How many crashes a family survives and how likely it is available depend on
//! how many sets of each size contain a quorum and on nothing else, so the best of all k-arbiters
//! is among those that shifted families make: 1,173 for 6 nodes and 44,315 for 7, instead of
//! millions and millions of millions.

use crate::brute::{Masks, survives};

/// All sets of `nodes` nodes that contain a quorum, as bits.
pub(crate) type UpSet = Vec<bool>;

/// The sets that contain a quorum of a family.
pub(crate) fn above(nodes: usize, family: &[u32]) -> UpSet {
    (0..1u32 << nodes).map(|alive| survives(family, alive)).collect()
}

/// The smallest sets: the quorums.
pub(crate) fn quorums(nodes: usize, all: &UpSet) -> Masks {
    let least =
        |set: u32| (0..nodes).all(|i| set >> i & 1 == 0 || !all[(set & !(1 << i)) as usize]);
    (0..1u32 << nodes).filter(|set| all[*set as usize] && least(*set)).collect()
}

/// How many sets there are of each size.
pub(crate) fn profile(nodes: usize, all: &UpSet) -> Vec<u32> {
    let mut counts = vec![0; nodes + 1];
    for (set, _) in all.iter().enumerate().filter(|(_, is)| **is) {
        counts[set.count_ones() as usize] += 1;
    }
    counts
}

/// Replaces node `from` by node `to` wherever that gives a new set.
fn shift(all: &UpSet, from: usize, to: usize) -> UpSet {
    let mut next = all.clone();
    for set in 0..all.len() {
        let other = set & !(1 << from) | 1 << to;
        if all[set] && set >> from & 1 == 1 && set >> to & 1 == 0 && !all[other] {
            (next[set], next[other]) = (false, true);
        }
    }
    next
}

/// The shifted family that a family becomes.
pub(crate) fn shifted(nodes: usize, all: &UpSet) -> UpSet {
    let mut now = all.clone();
    loop {
        let before = now.clone();
        for to in 0..nodes {
            for from in to + 1..nodes {
                now = shift(&now, from, to);
            }
        }
        if now == before {
            return now;
        }
    }
}

/// Every k-arbiter whose sets that contain a quorum are a shifted family, by its quorums.
pub(crate) fn shifted_arbiters(nodes: usize, units: usize) -> Vec<Masks> {
    let mut order: Vec<u32> = (1..1u32 << nodes).collect();
    // Whatever a set needs comes before it: larger sets, and of one size those of earlier nodes.
    order.sort_by_key(|set| (std::cmp::Reverse(set.count_ones()), *set));
    let none = Grown { all: vec![false; 1 << nodes], common: vec![Vec::new(); units + 1] };
    let mut found = Vec::new();
    grow(nodes, &order, none, &mut found);
    found
}

/// A shifted family on its way.
#[derive(Clone)]
struct Grown {
    all: UpSet,
    /// What so many of its sets have in common, plus one: each once.
    common: Vec<Masks>,
}

impl Grown {
    /// With one set more; `None` if then some have nothing in common.
    fn with(&self, set: u32) -> Option<Grown> {
        let Grown { mut all, mut common } = self.clone();
        all[set as usize] = true;
        let mut fewer = vec![u32::MAX];
        for common in &mut common {
            let mut more: Masks = fewer.iter().map(|it| it & set).collect();
            more.append(common);
            more.sort_unstable();
            more.dedup();
            if more[0] == 0 {
                return None;
            }
            common.clone_from(&more);
            fewer = more;
        }
        Some(Grown { all, common })
    }

    fn may_have(&self, nodes: usize, set: u32) -> bool {
        let has = |set: u32| self.all[set as usize];
        let larger = (0..nodes).all(|i| set >> i & 1 == 1 || has(set | 1 << i));
        let next = |i: &usize| set >> i & 1 == 0 && set >> (i + 1) & 1 == 1;
        larger && (0..nodes - 1).filter(next).all(|i| has(set & !(2 << i) | 1 << i))
    }
}

/// Goes on with the next set that may be in it, with it and without it.
fn grow(nodes: usize, order: &[u32], now: Grown, found: &mut Vec<Masks>) {
    let Some(at) = order.iter().position(|set| now.may_have(nodes, *set)) else {
        if now.all.contains(&true) {
            found.push(quorums(nodes, &now.all));
        }
        return;
    };
    let (set, rest) = (order[at], &order[at + 1..]);
    if let Some(with) = now.with(set) {
        grow(nodes, rest, with, found);
    }
    grow(nodes, rest, now, found);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regular Boolean functions, as they are counted elsewhere (OEIS A132183), without the two
    /// that are constant: no bound on what must meet.
    #[test]
    fn as_many_as_there_are() {
        let all = |nodes: usize| {
            // One quorum always meets itself.
            shifted_arbiters(nodes, 0).len()
        };
        assert_eq!((1..=6).map(all).collect::<Vec<_>>(), [1, 3, 8, 25, 117, 1171]);
    }
}
