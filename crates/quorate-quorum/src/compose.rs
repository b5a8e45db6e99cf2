//! New families from old ones: joins, sums and products, written out.
//!
//! *join* puts a family in the place of one node: a k-arbiter if both are, non-dominated iff both
//! are (for k = 1 Neilsen and Mizuno, 1992). *or-product* of an i- and a j-arbiter is an
//! (i+j+1)-arbiter; the cube is the or-product of k+1 partitions. *sum* and *product* are those of
//! k-coteries (Miyamoto, Kakugawa, Yamashita, construction and lemma 1): sums add the k's, products
//! take the smaller.

use quorate_core::{NodeId, NodeSet};

use crate::Explicit;

/// `outer` with its node `place` replaced by `inner`: the other nodes close ranks, those of `inner`
/// follow.
pub fn join(outer: &Explicit, place: usize, inner: &Explicit) -> Explicit {
    assert!(place < outer.nodes(), "the node to be replaced exists");
    let kept = |node: NodeId| node.index() - usize::from(node.index() > place);
    let mut quorums = Vec::new();
    for quorum in outer.quorums() {
        let rest: NodeSet = quorum
            .iter()
            .filter(|node| node.index() != place)
            .map(|node| NodeId::from(kept(node)))
            .collect();
        if quorum.contains(NodeId::from(place)) {
            quorums
                .extend(inner.quorums().iter().map(|q| rest.union(&moved(q, outer.nodes() - 1))));
        } else {
            quorums.push(rest);
        }
    }
    family(outer.nodes() - 1 + inner.nodes(), quorums)
}

/// Nodes (x, y), numbered x·|B| + y; for each pair of quorums everything with x in the one or y in
/// the other.
pub fn or_product(a: &Explicit, b: &Explicit) -> Explicit {
    let pairs = a.quorums().iter().flat_map(|p| b.quorums().iter().map(move |q| (p, q)));
    let quorum = |(p, q): (&NodeSet, &NodeSet)| -> NodeSet {
        let inside = |node: &usize| {
            p.contains(NodeId::from(node / b.nodes())) || q.contains(NodeId::from(node % b.nodes()))
        };
        (0..a.nodes() * b.nodes()).filter(inside).map(NodeId::from).collect()
    };
    family(a.nodes() * b.nodes(), pairs.map(quorum).collect())
}

/// Quorums of either, the nodes of `b` after those of `a`.
pub fn sum(a: &Explicit, b: &Explicit) -> Explicit {
    let of_b = b.quorums().iter().map(|quorum| moved(quorum, a.nodes()));
    family(a.nodes() + b.nodes(), a.quorums().iter().cloned().chain(of_b).collect())
}

/// A quorum of each together, the nodes of `b` after those of `a`.
pub fn product(a: &Explicit, b: &Explicit) -> Explicit {
    let of_b: Vec<NodeSet> = b.quorums().iter().map(|quorum| moved(quorum, a.nodes())).collect();
    let pairs = a.quorums().iter().flat_map(|p| of_b.iter().map(move |q| p.union(q)));
    family(a.nodes() + b.nodes(), pairs.collect())
}

/// Repeats "add a smallest witness" until the `units`-arbiter is non-dominated. For at most 22
/// nodes, since every round asks the table; `None` if there are more, or too many rounds.
pub fn made_nondominated(family: &Explicit, units: usize) -> Option<Explicit> {
    const ROUNDS_MAX: usize = 10_000;
    let mut better = family.minimalised();
    if family.nodes() > crate::Table::NODES_MAX {
        return None;
    }
    for _ in 0..ROUNDS_MAX {
        let mut effort = crate::Effort::new(u64::MAX);
        match crate::Table::new(&better).dominating_witness(units, &mut effort).ok()? {
            None => return Some(better),
            Some(witness) => better = better.dominated_by(&witness),
        }
    }
    None
}

fn moved(set: &NodeSet, by: usize) -> NodeSet {
    set.iter().map(|node| NodeId::from(node.index() + by)).collect()
}

fn family(nodes: usize, quorums: Vec<NodeSet>) -> Explicit {
    Explicit::new(nodes, quorums).expect("made from proper families")
}
