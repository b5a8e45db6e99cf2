//! Whose permissions suffice: the narrow seam to families of quorums.
//!
//! A requester needs three things of a family: a quorum to ask, drawn by a number and around nodes
//! it suspects; whether the permissions it has contain a quorum; and which. Nothing here checks
//! that a family is a k-arbiter: whoever makes the pool does, before there is one.

use std::sync::Arc;

use quorate_core::{NodeId, NodeSet, Units};

/// A family of quorums over the nodes `0..n`, possibly another one for each size of claim.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Quorums {
    /// Any `size` of the first `members` nodes. Uniform k-arbiters and majorities.
    Threshold {
        /// How many nodes vote; the others only request.
        members: u32,
        /// How many of them are a quorum.
        size: u32,
    },
    /// Any `sizes[h - 1]` of the first `members` nodes, for a claim of h units: an (h,k)-arbiter
    /// (spec R1).
    BySize {
        /// How many nodes vote; the others only request.
        members: u32,
        /// The size of a quorum for claims of 1, 2, ... units.
        sizes: Arc<[u32]>,
    },
    /// Exactly these sets.
    Explicit(Arc<[NodeSet]>),
}

impl Quorums {
    /// The uniform k-arbiter: any ⌊kn/(k+1)⌋+1 of n nodes, so that any k+1 quorums share one.
    pub fn uniform(members: u32, k: u32) -> Quorums {
        let size = u64::from(members) * u64::from(k) / (u64::from(k) + 1) + 1;
        Quorums::Threshold { members, size: (size as u32).min(members) }
    }

    /// Majorities: the uniform 1-arbiter.
    pub fn majority(members: u32) -> Quorums {
        Quorums::uniform(members, 1)
    }

    /// The uniform (h,k)-arbiter: any ⌊kn/(k+h)⌋+1 of n nodes for a claim of h units, so that
    /// claims that exceed k together share one (spec R1).
    pub fn by_size(members: u32, k: u32) -> Quorums {
        let size = |h: u32| u64::from(members) * u64::from(k) / (u64::from(k) + u64::from(h)) + 1;
        let sizes = (1..=k).map(|h| (size(h) as u32).min(members)).collect();
        Quorums::BySize { members, sizes }
    }

    /// The nodes that vote.
    pub fn members(&self) -> NodeSet {
        match self {
            Quorums::Threshold { members, .. } | Quorums::BySize { members, .. } => {
                NodeSet::first(*members as usize)
            }
            Quorums::Explicit(quorums) => {
                quorums.iter().fold(NodeSet::new(), |all, quorum| all.union(quorum))
            }
        }
    }

    /// Whether this node votes.
    pub fn is_member(&self, node: NodeId) -> bool {
        match self {
            Quorums::Threshold { members, .. } | Quorums::BySize { members, .. } => {
                node.0 < *members
            }
            Quorums::Explicit(quorums) => quorums.iter().any(|quorum| quorum.contains(node)),
        }
    }

    /// A quorum for `units`, drawn by `draw`: one with `me` if there is one, since asking oneself
    /// costs nothing, and without any of `avoid`; `None` if every quorum has one of those.
    pub fn draw(&self, units: Units, me: NodeId, draw: u64, avoid: &NodeSet) -> Option<NodeSet> {
        let (members, size) = match self {
            Quorums::Explicit(quorums) => {
                let usable = |quorum: &&NodeSet| quorum.is_disjoint(avoid);
                let own: Vec<&NodeSet> =
                    quorums.iter().filter(usable).filter(|q| q.contains(me)).collect();
                let pick = |of: &[&NodeSet]| {
                    (!of.is_empty()).then(|| of[(draw % of.len() as u64) as usize].clone())
                };
                return pick(&own)
                    .or_else(|| pick(&quorums.iter().filter(usable).collect::<Vec<_>>()));
            }
            Quorums::Threshold { members, size } => (*members, *size),
            Quorums::BySize { members, sizes } => (*members, sizes[units.get() as usize - 1]),
        };
        let start = (draw % u64::from(members)) as u32;
        let around = (start..members).chain(0..start).map(NodeId).filter(|&node| node != me);
        let mine = (me.0 < members).then_some(me);
        let chosen: NodeSet = mine
            .into_iter()
            .chain(around)
            .filter(|&node| !avoid.contains(node))
            .take(size as usize)
            .collect();
        (chosen.len() == size as usize).then_some(chosen)
    }

    /// A quorum for `units` within `have`, and no more than a quorum: `prefer` goes first.
    pub fn within(
        &self,
        units: Units,
        have: &NodeSet,
        prefer: impl Fn(NodeId) -> bool,
    ) -> Option<NodeSet> {
        let (members, size) = match self {
            Quorums::Explicit(quorums) => {
                return quorums.iter().find(|quorum| quorum.is_subset(have)).cloned();
            }
            Quorums::Threshold { members, size } => (*members, *size as usize),
            Quorums::BySize { members, sizes } => {
                (*members, sizes[units.get() as usize - 1] as usize)
            }
        };
        let votes = || have.iter().filter(|node| node.0 < members);
        let first = votes().filter(|&node| prefer(node));
        let then = votes().filter(|&node| !prefer(node));
        let chosen: NodeSet = first.chain(then).take(size).collect();
        (chosen.len() == size).then_some(chosen)
    }

    /// Whether `have` contains a quorum for `units`.
    pub fn contains_quorum(&self, units: Units, have: &NodeSet) -> bool {
        self.within(units, have, |_| true).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(h: u32) -> Units {
        Units::new(h, 100).unwrap()
    }

    fn set(nodes: &[u32]) -> NodeSet {
        nodes.iter().copied().collect()
    }

    #[test]
    fn a_drawn_quorum_is_one_has_its_requester_and_avoids_the_suspected() {
        for quorums in [Quorums::uniform(7, 2), Quorums::majority(5), Quorums::by_size(7, 5)] {
            for draw in 0..20 {
                for me in 0..9 {
                    let avoid = set(&[(me + 1) % 5]);
                    let drawn = quorums.draw(units(1), NodeId(me), draw, &avoid);
                    let Some(drawn) = drawn else {
                        let rest = quorums.members().difference(&avoid);
                        assert!(!quorums.contains_quorum(units(1), &rest));
                        continue;
                    };
                    assert!(quorums.contains_quorum(units(1), &drawn));
                    assert!(drawn.is_disjoint(&avoid));
                    assert_eq!(drawn.contains(NodeId(me)), quorums.is_member(NodeId(me)));
                }
            }
        }
    }

    #[test]
    fn explicit_quorums_are_taken_as_they_are() {
        let quorums = Quorums::Explicit([set(&[0, 1]), set(&[1, 2]), set(&[0, 2])].into());
        let nobody = NodeSet::new();
        assert_eq!(quorums.draw(units(1), NodeId(2), 0, &nobody), Some(set(&[1, 2])));
        assert_eq!(quorums.draw(units(1), NodeId(2), 1, &nobody), Some(set(&[0, 2])));
        assert_eq!(quorums.draw(units(1), NodeId(9), 0, &set(&[0])), Some(set(&[1, 2])));
        assert_eq!(quorums.draw(units(1), NodeId(9), 0, &set(&[0, 1])), None);
        assert_eq!(quorums.within(units(1), &set(&[0, 2, 5]), |_| true), Some(set(&[0, 2])));
        assert_eq!(quorums.within(units(1), &set(&[2, 5]), |_| true), None);
        assert_eq!(quorums.members(), set(&[0, 1, 2]));
    }

    /// Spec H-1: with the sizes ⌊kn/(k+h)⌋+1, claims that together exceed k share an arbiter; with
    /// the tempting ⌈..⌉ of equal sizes (k=5, n=7, claims of 3, 2 and 2) they need not.
    #[test]
    fn h_1_quorums_by_size_meet_wherever_claims_exceed_the_pool() {
        let meets = |sizes: &dyn Fn(u32) -> u32, n: u32, claims: &[u32]| {
            claims.iter().map(|&h| n - sizes(h)).sum::<u32>() < n
        };
        for k in 1..=8 {
            for n in 1..=12 {
                let Quorums::BySize { sizes, .. } = Quorums::by_size(n, k) else { unreachable!() };
                for claims in minimal_conflicts(k) {
                    let right = |h: u32| sizes[h as usize - 1];
                    assert!(meets(&right, n, &claims), "k={k} n={n} {claims:?}");
                }
            }
        }
        let naive = |h: u32| 7 - 6 / (5 / h + 1);
        assert!(!meets(&naive, 7, &[3, 2, 2]), "the mistake is one");
    }

    /// Multisets of claims that exceed k, and do not without the smallest of them.
    fn minimal_conflicts(k: u32) -> Vec<Vec<u32>> {
        fn extend(k: u32, sofar: &mut Vec<u32>, found: &mut Vec<Vec<u32>>) {
            let sum: u32 = sofar.iter().sum();
            if sum > k {
                found.push(sofar.clone());
                return;
            }
            for h in 1..=sofar.last().copied().unwrap_or(k) {
                sofar.push(h);
                extend(k, sofar, found);
                sofar.pop();
            }
        }
        let mut found = Vec::new();
        extend(k, &mut Vec::new(), &mut found);
        found
    }
}
