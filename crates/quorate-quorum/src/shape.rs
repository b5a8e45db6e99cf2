//! Counting the quorums of nested thresholds without listing them.
//!
//! The generating function of quorum sizes of "need of these parts" is an elementary symmetric
//! polynomial in those of the parts; parts that look alike are counted by binomials, so that a
//! threshold of 10,000 nodes costs one binomial.

use std::collections::BTreeMap;

use crate::expr::Expr;
use crate::{Natural, Ratio};

/// How many quorums of each size: a polynomial.
type Sizes = BTreeMap<usize, Natural>;

/// What counting needs to know about an expression in which no node is named twice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    /// Nodes named.
    pub(crate) nodes: usize,
    /// Quorums by size; `None` if there are too many sizes to work out.
    pub(crate) sizes: Option<Sizes>,
    /// Quorums in all.
    pub(crate) count: Natural,
    /// Smallest and largest share of quorums that a node named is in.
    pub(crate) share_min: Ratio,
    /// See `share_min`.
    pub(crate) share_max: Ratio,
}

impl Shape {
    pub(crate) fn of(expr: &Expr) -> Shape {
        let (need, of) = match expr {
            Expr::Node(_) => return Shape::node(),
            Expr::Choose { need, of } => (*need, of),
            Expr::Weighted { .. } => unreachable!("plain formulas have thresholds only"),
        };
        let mut groups: Vec<(usize, Shape)> = Vec::new();
        for part in of {
            let shape = Shape::of(part);
            match groups.iter_mut().find(|(_, known)| *known == shape) {
                Some((copies, _)) => *copies += 1,
                None => groups.push((1, shape)),
            }
        }
        let sizes = chosen(&groups, need, |shape| shape.sizes.clone());
        let count = match &sizes {
            Some(sizes) => sizes.values().fold(Natural::zero(), |sum, count| sum.plus(count)),
            None => counted(&groups, need),
        };
        let shares: Vec<Ratio> =
            (0..groups.len()).map(|index| share(&groups, index, need, &count)).collect();
        let within = |pick: fn(&Shape) -> &Ratio| {
            groups.iter().zip(&shares).map(move |((_, shape), share)| share.times(pick(shape)))
        };
        Shape {
            nodes: groups.iter().map(|(copies, shape)| copies * shape.nodes).sum(),
            share_min: within(|shape| &shape.share_min).min().expect("a threshold has parts"),
            share_max: within(|shape| &shape.share_max).max().expect("a threshold has parts"),
            sizes,
            count,
        }
    }

    fn node() -> Shape {
        Shape {
            nodes: 1,
            sizes: Some(BTreeMap::from([(1, Natural::one())])),
            count: Natural::one(),
            share_min: Ratio::of(1, 1),
            share_max: Ratio::of(1, 1),
        }
    }
}

/// The share of quorums that use one part of the group `index`.
fn share(groups: &[(usize, Shape)], index: usize, need: usize, count: &Natural) -> Ratio {
    if let [(copies, _)] = groups {
        return Ratio::of(need, *copies);
    }
    let mut others = groups.to_vec();
    others[index].0 -= 1;
    let rest = counted(&others, need - 1);
    Ratio::new(groups[index].1.count.times(&rest), count.clone())
}

/// Ways to choose exactly `need` of the parts and a quorum of each.
fn counted(groups: &[(usize, Shape)], need: usize) -> Natural {
    let counts = |shape: &Shape| Some(BTreeMap::from([(0, shape.count.clone())]));
    chosen(groups, need, counts).and_then(|mut counts| counts.remove(&0)).unwrap_or_default()
}

/// Largest product of polynomials worked out, in multiplications of machine words.
const WORK_MAX: usize = 400_000_000;

/// The polynomial of choosing exactly `need` of the parts.
fn chosen(
    groups: &[(usize, Shape)],
    need: usize,
    of: impl Fn(&Shape) -> Option<Sizes>,
) -> Option<Sizes> {
    let mut left: usize = groups.iter().map(|(copies, _)| copies).sum();
    let mut so_far: BTreeMap<usize, Sizes> =
        BTreeMap::from([(0, BTreeMap::from([(0, Natural::one())]))]);
    for (copies, shape) in groups {
        left -= copies;
        let base = of(shape)?;
        let mut next: BTreeMap<usize, Sizes> = BTreeMap::new();
        for (taken, sizes) in &so_far {
            // At least what later groups cannot supply, at most what is still needed.
            let least = (need - taken).saturating_sub(left);
            for more in least..=(*copies).min(need - taken) {
                let ways = Natural::binomial(*copies, more);
                let grown = product(sizes, &power(&base, more)?)?;
                let sum = next.entry(taken + more).or_default();
                for (size, count) in grown {
                    let entry = sum.entry(size).or_default();
                    *entry = entry.plus(&count.times(&ways));
                }
            }
        }
        so_far = next;
    }
    Some(so_far.remove(&need).unwrap_or_default())
}

fn power(base: &Sizes, exponent: usize) -> Option<Sizes> {
    if let [(size, count)] = base.iter().collect::<Vec<_>>()[..] {
        return Some(BTreeMap::from([(size * exponent, count.power(exponent))]));
    }
    let one = BTreeMap::from([(0, Natural::one())]);
    (0..exponent).try_fold(one, |value, _| product(&value, base))
}

fn product(a: &Sizes, b: &Sizes) -> Option<Sizes> {
    let words = |sizes: &Sizes| sizes.values().map(|count| count.bits() / 64 + 1).sum::<usize>();
    if words(a).saturating_mul(words(b)) > WORK_MAX {
        return None;
    }
    let mut result = Sizes::new();
    for (x, p) in a {
        for (y, q) in b {
            let entry = result.entry(x + y).or_default();
            *entry = entry.plus(&p.times(q));
        }
    }
    Some(result)
}
