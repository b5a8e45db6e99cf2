//! Whose permissions suffice: the narrow seam to families of quorums.
//!
//! A requester needs three things of a family: a quorum to ask, drawn by a number and around nodes
//! it suspects; whether the permissions it has contain a quorum; and which. Nothing here checks
//! that a family is a k-arbiter: [`family`] does, before there is a pool.
//!
//! Thresholds and nested thresholds are never written out: uniform quorums of a thousand nodes cost
//! as little to hold as those of three.

pub(crate) mod asking;
pub mod family;

use std::sync::Arc;

use quorate_core::{Hurdle, NodeId, NodeSet, Outlook, Units};
use quorate_quorum::sampling::Draws;
use quorate_quorum::{Expr, Rule};

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
    /// (arbiter spec R1).
    BySize {
        /// How many nodes vote; the others only request.
        members: u32,
        /// The size of a quorum for claims of 1, 2, ... units.
        sizes: Arc<[u32]>,
    },
    /// Exactly these sets.
    Explicit(Arc<[NodeSet]>),
    /// Whatever makes an expression hold: hierarchies, trees, weighted votes, and anything else
    /// that can be written down in the laboratory's algebra.
    Nested(Arc<Nested>),
}

/// An expression and the nodes it names.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Nested {
    expr: Expr,
    members: NodeSet,
}

/// Most quorums that are written out for a family that is neither a threshold nor an expression.
const LISTED_MAX: usize = 20_000;

impl Quorums {
    /// A family of the laboratory; `None` if it can neither be written as an expression nor be
    /// listed.
    pub fn of(rule: &dyn Rule) -> Option<Quorums> {
        let Some(expr) = rule.as_expr() else {
            return Some(Quorums::Explicit(rule.enumerate(LISTED_MAX)?.into()));
        };
        Some(threshold(expr).unwrap_or_else(|| {
            let members = expr.named().into_iter().collect();
            Quorums::Nested(Arc::new(Nested { expr: expr.clone(), members }))
        }))
    }

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
    /// claims that exceed k together share one (arbiter spec R1).
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
            Quorums::Nested(nested) => nested.members.clone(),
        }
    }

    /// Whether this node votes.
    pub fn is_member(&self, node: NodeId) -> bool {
        match self {
            Quorums::Threshold { members, .. } | Quorums::BySize { members, .. } => {
                node.0 < *members
            }
            Quorums::Explicit(quorums) => quorums.iter().any(|quorum| quorum.contains(node)),
            Quorums::Nested(nested) => nested.members.contains(node),
        }
    }

    /// How many voters are a quorum for `units`, where any so many are.
    fn size(&self, units: Units) -> Option<usize> {
        match self {
            Quorums::Threshold { size, .. } => Some(*size as usize),
            Quorums::BySize { sizes, .. } => Some(sizes[units.get() as usize - 1] as usize),
            Quorums::Explicit(_) | Quorums::Nested(_) => None,
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
            Quorums::Nested(nested) => {
                let usable = nested.members.difference(avoid);
                return nested.pick(&usable, &|node| node == me, &mut Draws::new(draw));
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
                let inside = quorums.iter().filter(|quorum| quorum.is_subset(have));
                let strangers =
                    |quorum: &&NodeSet| quorum.iter().filter(|&node| !prefer(node)).count();
                return inside.min_by_key(strangers).cloned();
            }
            Quorums::Nested(nested) => {
                return nested.pick(have, &prefer, &mut Draws::new(0));
            }
            Quorums::Threshold { members, size } => (*members, *size as usize),
            Quorums::BySize { members, sizes } => {
                (*members, sizes[units.get() as usize - 1] as usize)
            }
        };
        if have.len() < size {
            return None; // Most calls end here: one permission more, and not yet enough.
        }
        let votes = || have.iter().filter(|node| node.0 < members);
        let first = votes().filter(|&node| prefer(node));
        let then = votes().filter(|&node| !prefer(node));
        let chosen: NodeSet = first.chain(then).take(size).collect();
        (chosen.len() == size).then_some(chosen)
    }

    /// Which claims, of a pool of so many units, find a quorum while these nodes are away.
    pub(crate) fn outlook(&self, units: u32, away: &NodeSet) -> Outlook {
        let members = self.members();
        let here = members.difference(away);
        let least = match self {
            // The smallest claims have the largest quorums.
            Quorums::BySize { sizes, .. } => {
                sizes.partition_point(|size| *size as usize > here.len()) as u32 + 1
            }
            _ if self.contains_quorum(Units::ONE, &here) => 1,
            _ => units.saturating_add(1),
        };
        Outlook::all(units).from(least, || Hurdle::NoQuorum {
            away: members.intersection(away),
            voters: members.len() as u32,
            needed: match self {
                Quorums::Threshold { size, .. } => Some(*size),
                Quorums::BySize { sizes, .. } => sizes.first().copied(),
                Quorums::Explicit(_) | Quorums::Nested(_) => None,
            },
        })
    }

    /// Whether `have` contains a quorum for `units`.
    pub fn contains_quorum(&self, units: Units, have: &NodeSet) -> bool {
        match self {
            Quorums::Explicit(quorums) => quorums.iter().any(|quorum| quorum.is_subset(have)),
            Quorums::Nested(nested) => nested.expr.holds(have),
            Quorums::Threshold { .. } | Quorums::BySize { .. } => {
                self.within(units, have, |_| true).is_some()
            }
        }
    }
}

/// "So many of the first so many", if the expression says no more than that.
fn threshold(expr: &Expr) -> Option<Quorums> {
    let Expr::Choose { need, of } = expr else { return None };
    let in_order = of.iter().enumerate().all(|(place, part)| *part == Expr::node(place));
    let (members, size) = (u32::try_from(of.len()).ok()?, u32::try_from(*need).ok()?);
    in_order.then_some(Quorums::Threshold { members, size })
}

/// A set that makes a part of an expression hold: how many of it are not preferred, how many there
/// are, and which.
type Pick = (usize, usize, Vec<NodeId>);

impl Nested {
    /// A quorum among `have` with as few as possible that are not preferred; draws choose among
    /// equals.
    fn pick(
        &self,
        have: &NodeSet,
        prefer: &dyn Fn(NodeId) -> bool,
        draws: &mut Draws,
    ) -> Option<NodeSet> {
        if !self.expr.holds(have) {
            return None;
        }
        let (_, _, picked) = pick(&self.expr, have, prefer, draws)?;
        Some(picked.into_iter().collect())
    }
}

fn pick(
    expr: &Expr,
    have: &NodeSet,
    prefer: &dyn Fn(NodeId) -> bool,
    draws: &mut Draws,
) -> Option<Pick> {
    let (need, parts): (u64, Vec<(u64, &Expr)>) = match expr {
        Expr::Node(node) => {
            return have.contains(*node).then(|| (usize::from(!prefer(*node)), 1, vec![*node]));
        }
        Expr::Choose { need, of } => (*need as u64, of.iter().map(|part| (1, part)).collect()),
        Expr::Weighted { need, of } => (*need, of.iter().map(|(w, part)| (*w, part)).collect()),
    };
    let start = draws.below(parts.len());
    let around = parts[start..].iter().chain(&parts[..start]);
    let mut found: Vec<(u64, Pick)> = around
        .filter_map(|(weight, part)| Some((*weight, pick(part, have, prefer, draws)?)))
        .collect();
    // Cheapest for its weight first. The sort is stable: equals stay in the order of the draw.
    let cost = |cost: usize, weight: u64| cost as u128 * u128::from(weight);
    found.sort_by(|(v, (a, m, _)), (w, (b, n, _))| {
        (cost(*a, *w), cost(*m, *w)).cmp(&(cost(*b, *v), cost(*n, *v)))
    });
    let mut sum: Pick = (0, 0, Vec::new());
    let mut weight = 0;
    for (more, (strangers, count, nodes)) in found {
        if weight >= need {
            break;
        }
        weight += more;
        sum.0 += strangers;
        sum.1 += count;
        sum.2.extend(nodes);
    }
    (weight >= need).then_some(sum)
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
        let of = |spec: &str, n| Quorums::of(&*quorate_quorum::build(spec, n, 2).unwrap().rule);
        let families = [
            Quorums::uniform(7, 2),
            Quorums::majority(5),
            Quorums::by_size(7, 5),
            of("hierarchy:4,4", None).unwrap(),
            of("tree", Some(13)).unwrap(),
            of("space:3,2", None).unwrap(),
            of("cube", Some(27)).unwrap(),
            of("wall", Some(9)).unwrap(),
            of("weighted:3,2,1,1,1,1,1,1", None).unwrap(),
            of("expr:choose(2, all(0, 1), all(2, 3), any(0, 3))", None).unwrap(),
        ];
        for quorums in families {
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
                    assert!(drawn.is_subset(&quorums.members()));
                    let have = drawn.union(&set(&[me]));
                    let asked = |node| assert!(have.contains(node), "it asks about strangers");
                    let within = quorums.within(units(1), &have, |node| {
                        asked(node);
                        node.0 % 2 == 0
                    });
                    assert!(within.unwrap().is_subset(&have));
                    let thresholds =
                        matches!(quorums, Quorums::Threshold { .. } | Quorums::BySize { .. });
                    if thresholds {
                        assert_eq!(drawn.contains(NodeId(me)), quorums.is_member(NodeId(me)));
                    }
                }
            }
        }
    }

    /// The same as asking for every size, and no claim of more than that is promised.
    #[test]
    fn what_can_be_granted_is_what_finds_a_quorum() {
        let of = |spec: &str, n| Quorums::of(&*quorate_quorum::build(spec, n, 2).unwrap().rule);
        let families = [
            Quorums::majority(5),
            Quorums::uniform(5, 3),
            Quorums::by_size(5, 4),
            of("tree", Some(4)).unwrap(),
            of("wall", Some(6)).unwrap(),
        ];
        for quorums in families {
            for bits in 0u32..1 << 7 {
                let away: NodeSet = (0..7).filter(|node| bits & 1 << node != 0).collect();
                let rest = quorums.members().difference(&away);
                let outlook = quorums.outlook(4, &away);
                for h in 1..=4 {
                    let found = quorums.contains_quorum(units(h), &rest);
                    assert_eq!(outlook.allows(h), found, "{quorums:?} without {away}: {h}");
                }
                assert!(!outlook.allows(5));
                assert_eq!(outlook.hurdle.is_some(), outlook.sizes != Some((1, 4)));
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

    /// Arbiter spec H-1: with the sizes ⌊kn/(k+h)⌋+1, claims that together exceed k share an
    /// arbiter; with the tempting ⌈..⌉ of equal sizes (k=5, n=7, claims of 3, 2 and 2) they need
    /// not.
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
