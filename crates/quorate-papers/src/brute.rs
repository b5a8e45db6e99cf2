//! The definitions, word for word, without a clever step. Sets are bit masks over few nodes; a
//! family is a list of masks.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use quorate_core::NodeSet;
use quorate_quorum::{Domination, Effort, Explicit, build, domination, nodes_of};

/// A family as masks.
pub(crate) type Masks = Vec<u32>;

/// Our type from masks.
pub(crate) fn explicit(nodes: usize, masks: &[u32]) -> Explicit {
    let sets = masks.iter().map(|m| nodes_of((0..nodes).filter(|i| m >> i & 1 == 1))).collect();
    Explicit::new(nodes, sets).expect("a proper family")
}

/// Masks from our type.
pub(crate) fn masks(family: &Explicit) -> Masks {
    let mask = |set: &NodeSet| set.iter().map(|node| 1 << node.0).sum();
    family.quorums().iter().map(mask).collect()
}

/// A family of the catalogue, written out.
pub(crate) fn listed(spec: &str, nodes: usize, units: usize) -> Explicit {
    let family = build(spec, Some(nodes), units).expect("the catalogue has it");
    Explicit::new(nodes, family.rule.enumerate(1_000_000).expect("few enough")).expect("a family")
}

/// The same, of what needs no number of nodes.
pub(crate) fn space(dimension: usize, order: usize) -> Explicit {
    let rule = build(&format!("space:{dimension},{order}"), None, 1).expect("a space").rule;
    Explicit::new(rule.nodes(), rule.enumerate(1_000_000).expect("few enough")).expect("a family")
}

/// Any `count` quorums, repetition allowed, have a common member.
pub(crate) fn any_meet(family: &[u32], count: usize) -> bool {
    let mut common: BTreeSet<u32> = family.iter().copied().collect();
    for _ in 1..count {
        let next = common.iter().flat_map(|a| family.iter().map(move |q| a & q)).collect();
        common = next;
        if common.contains(&0) {
            return false;
        }
    }
    !common.contains(&0)
}

/// Any `count` *different* quorums have a common member.
pub(crate) fn any_distinct_meet(family: &[u32], count: usize) -> bool {
    fn go(family: &[u32], left: usize, common: u32) -> bool {
        if left == 0 {
            return common != 0;
        }
        let rest = |at: usize| go(&family[at + 1..], left - 1, common & family[at]);
        (0..family.len()).all(rest)
    }
    go(family, count, u32::MAX)
}

/// No quorum inside another.
pub(crate) fn is_minimal(family: &[u32]) -> bool {
    let pairs = family.iter().flat_map(|a| family.iter().map(move |b| (a, b)));
    pairs.filter(|(a, b)| a != b).all(|(a, b)| a & b != *a)
}

/// Definition 4.1 of the k-arbiter paper, with repetition.
pub(crate) fn is_arbiter(family: &[u32], units: usize) -> bool {
    !family.is_empty() && !family.contains(&0) && is_minimal(family) && any_meet(family, units + 1)
}

/// Definition 4.2: `better` dominates `worse`.
pub(crate) fn dominates(better: &[u32], worse: &[u32]) -> bool {
    let (mut a, mut b) = (better.to_vec(), worse.to_vec());
    a.sort_unstable();
    b.sort_unstable();
    a != b && worse.iter().all(|q| better.iter().any(|p| p & q == *p))
}

fn all_antichains(nodes: usize) -> Vec<Masks> {
    let mut found = vec![Vec::new()];
    for set in 1u32..1 << nodes {
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

/// Every antichain of non-empty subsets of one to five nodes: 1, 4, 18, 166, 7,579.
pub(crate) fn antichains(nodes: usize) -> &'static [Masks] {
    static FOUND: [LazyLock<Vec<Masks>>; 5] = [
        LazyLock::new(|| all_antichains(1)),
        LazyLock::new(|| all_antichains(2)),
        LazyLock::new(|| all_antichains(3)),
        LazyLock::new(|| all_antichains(4)),
        LazyLock::new(|| all_antichains(5)),
    ];
    &FOUND[nodes - 1]
}

/// Every k-arbiter on that many nodes.
pub(crate) fn arbiters(nodes: usize, units: usize) -> Vec<&'static Masks> {
    antichains(nodes).iter().filter(|family| is_arbiter(family, units)).collect()
}

/// Theorem 4.5 as it must read: H contains no quorum and meets any k quorums together.
pub(crate) fn is_witness(family: &[u32], units: usize, h: u32) -> bool {
    family.iter().all(|q| q & h != *q) && meets_any(family, units, h)
}

/// H meets the intersection of any `count` quorums, repetition allowed.
pub(crate) fn meets_any(family: &[u32], count: usize, h: u32) -> bool {
    let mut common = BTreeSet::from([h]);
    for _ in 0..count {
        common = common.iter().flat_map(|a| family.iter().map(move |q| a & q)).collect();
    }
    !common.contains(&0)
}

/// Whether `alive` contains a quorum.
pub(crate) fn survives(family: &[u32], alive: u32) -> bool {
    family.iter().any(|q| q & alive == *q)
}

/// Most crashes that are always survived.
pub(crate) fn crashes_survived(nodes: usize, family: &[u32]) -> u32 {
    let all = (1u32 << nodes) - 1;
    let fatal = (0..=all).filter(|dead| !survives(family, all & !dead));
    fatal.map(u32::count_ones).min().map_or(nodes as u32, |least| least - 1)
}

/// The probability that a quorum is alive, if each node is with this one.
pub(crate) fn availability(nodes: usize, family: &[u32], up: f64) -> f64 {
    let chance = |alive: u32| {
        let alive = alive.count_ones() as i32;
        up.powi(alive) * (1.0 - up).powi(nodes as i32 - alive)
    };
    (0..1u32 << nodes).filter(|alive| survives(family, *alive)).map(chance).sum()
}

/// How many quorums each node is in, and how many members each has, if these are all equal.
pub(crate) fn symmetric(nodes: usize, family: &[u32]) -> Option<(usize, usize)> {
    let effort = |i: usize| family.iter().filter(|q| **q >> i & 1 == 1).count();
    let (beta, gamma) = (effort(0), family[0].count_ones());
    let even = (0..nodes).all(|i| effort(i) == beta);
    (even && family.iter().all(|q| q.count_ones() == gamma)).then_some((beta, gamma as usize))
}

/// Families of pairwise disjoint quorums, by how many they are: indices in ascending order.
pub(crate) fn packings(family: &[u32], count: usize) -> Vec<Vec<usize>> {
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

/// Fewer than `units` disjoint quorums always leave room for one more.
pub(crate) fn has_room(family: &[u32], units: usize) -> bool {
    let extends = |packing: &Vec<usize>| {
        (0..family.len()).any(|next| {
            !packing.contains(&next) && packing.iter().all(|i| family[*i] & family[next] == 0)
        })
    };
    (0..units).all(|count| packings(family, count).iter().all(extends))
}

/// Definition 2.5: a k-coterie.
pub(crate) fn is_k_coterie(family: &[u32], units: usize) -> bool {
    is_minimal(family) && packings(family, units + 1).is_empty() && has_room(family, units)
}

/// Whether the library finds a family dominated, which tests hold against the definition.
pub(crate) fn dominated(family: &Explicit, units: usize) -> bool {
    domination(family, units, &mut Effort::default()).expect("small") != Domination::Nondominated
}

/// A set as people write it, from 1.
pub(crate) fn set(mask: u32) -> String {
    let members = (0..32).filter(|i| mask >> i & 1 == 1).map(|i| (i + 1).to_string());
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// A family as people write it, from 1.
pub(crate) fn family(masks: &[u32]) -> String {
    masks.iter().map(|mask| set(*mask)).collect::<Vec<_>>().join(" ")
}

/// n over k.
pub(crate) fn choose(n: u64, k: u64) -> u64 {
    if k > n { 0 } else { (0..k).fold(1, |value, i| value * (n - i) / (i + 1)) }
}
