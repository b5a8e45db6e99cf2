//! The definitions, word for word, without a single clever step: what the library is compared with.
//! Sets are bit masks over at most 16 nodes; a family is a list of masks.

#![allow(dead_code, reason = "each test file uses its own part")]

use quorate_quorum::{Explicit, build, nodes_of};

/// A family as masks.
pub(crate) type Masks = Vec<u32>;

/// All subsets of the nodes, the empty one included.
pub(crate) fn subsets(nodes: usize) -> impl Iterator<Item = u32> + Clone {
    0..1 << nodes
}

/// Our type from masks.
pub(crate) fn explicit(nodes: usize, masks: &[u32]) -> Explicit {
    let sets = masks.iter().map(|m| nodes_of((0..nodes).filter(|i| m >> i & 1 == 1))).collect();
    Explicit::new(nodes, sets).expect("a proper family")
}

/// Masks from our type.
pub(crate) fn masks(family: &Explicit) -> Masks {
    let mask = |set: &quorate_core::NodeSet| set.iter().map(|node| 1 << node.0).sum();
    family.quorums().iter().map(mask).collect()
}

/// A family of the catalogue, written out.
pub(crate) fn listed(spec: &str, nodes: usize, units: usize) -> Explicit {
    let family = build(spec, Some(nodes), units).expect("the catalogue has it");
    Explicit::new(nodes, family.rule.enumerate(1_000_000).expect("few enough")).expect("a family")
}

/// Definition 4.1, intersection: any `count` quorums, repetition allowed, have a common member.
pub(crate) fn any_meet(family: &[u32], count: usize) -> bool {
    fn go(family: &[u32], left: usize, common: u32) -> bool {
        common != 0 && (left == 0 || family.iter().all(|q| go(family, left - 1, common & q)))
    }
    go(family, count, u32::MAX)
}

/// Minimality: no quorum inside another.
pub(crate) fn is_minimal(family: &[u32]) -> bool {
    let pairs = family.iter().flat_map(|a| family.iter().map(move |b| (a, b)));
    pairs.filter(|(a, b)| a != b).all(|(a, b)| a & b != *a)
}

/// Definition 4.1.
pub(crate) fn is_arbiter(family: &[u32], units: usize) -> bool {
    !family.is_empty() && !family.contains(&0) && any_meet(family, units + 1) && is_minimal(family)
}

/// Definition 4.2: `better` dominates `worse`.
pub(crate) fn dominates(better: &[u32], worse: &[u32]) -> bool {
    let (mut a, mut b) = (better.to_vec(), worse.to_vec());
    a.sort_unstable();
    b.sort_unstable();
    a != b && worse.iter().all(|q| better.iter().any(|p| p & q == *p))
}

/// Every antichain of non-empty subsets of up to four nodes.
pub(crate) fn antichains(nodes: usize) -> Vec<Masks> {
    let mut found = vec![Vec::new()];
    for set in subsets(nodes).skip(1) {
        let comparable = |other: &u32| other & set == set || other & set == *other;
        let with: Vec<Masks> = found
            .iter()
            .filter(|family: &&Masks| !family.iter().any(comparable))
            .map(|family| family.iter().copied().chain([set]).collect())
            .collect();
        found.extend(with);
    }
    found.retain(|family| !family.is_empty());
    found
}

/// Every k-arbiter on that many nodes.
pub(crate) fn arbiters(nodes: usize, units: usize) -> Vec<Masks> {
    antichains(nodes).into_iter().filter(|family| is_arbiter(family, units)).collect()
}

/// Theorem 4.5 as it must read: some H contains no quorum and meets any k quorums together.
pub(crate) fn has_witness(nodes: usize, family: &[u32], units: usize) -> bool {
    subsets(nodes).any(|h| is_witness(family, units, h))
}

/// Whether H is such a witness.
pub(crate) fn is_witness(family: &[u32], units: usize, h: u32) -> bool {
    fn meets(family: &[u32], left: usize, common: u32) -> bool {
        common != 0 && (left == 0 || family.iter().all(|q| meets(family, left - 1, common & q)))
    }
    family.iter().all(|q| q & h != *q) && meets(family, units, h)
}

/// Whether `alive` contains a quorum.
pub(crate) fn survives(family: &[u32], alive: u32) -> bool {
    family.iter().any(|q| q & alive == *q)
}

/// Most crashes that are always survived.
pub(crate) fn crashes_survived(nodes: usize, family: &[u32]) -> usize {
    let all = (1u32 << nodes) - 1;
    let fatal = subsets(nodes).filter(|dead| !survives(family, all & !dead));
    fatal.map(|dead| dead.count_ones() as usize).min().map_or(nodes, |least| least - 1)
}

/// The probability that a quorum is alive.
pub(crate) fn availability(family: &[u32], up: &[f64]) -> f64 {
    let chance = |alive: u32| -> f64 {
        (0..up.len()).map(|i| if alive >> i & 1 == 1 { up[i] } else { 1.0 - up[i] }).product()
    };
    subsets(up.len()).filter(|alive| survives(family, *alive)).map(chance).sum()
}

/// Definition 2.5, condition by condition: non-intersection (for all), intersection, minimality.
pub(crate) fn k_coterie(family: &[u32], units: usize) -> [bool; 3] {
    fn packings(family: &[u32], count: usize) -> Vec<Vec<usize>> {
        if count == 0 {
            return vec![Vec::new()];
        }
        let mut found = Vec::new();
        for packing in packings(family, count - 1) {
            for next in packing.last().map_or(0, |last| last + 1)..family.len() {
                if packing.iter().all(|index| family[*index] & family[next] == 0) {
                    found.push(packing.iter().copied().chain([next]).collect());
                }
            }
        }
        found
    }
    let extends = |packing: &Vec<usize>| {
        (0..family.len()).any(|next| {
            !packing.contains(&next) && packing.iter().all(|i| family[*i] & family[next] == 0)
        })
    };
    let room = (0..units).all(|count| packings(family, count).iter().all(extends));
    [room, packings(family, units + 1).is_empty(), is_minimal(family)]
}
