//! The (k+1)-cube of RR-2523, section 4.2.3, for every number of nodes.
//!
//! As printed the general construction is unusable (its base ⌈ᵏ√n⌉+1 puts everybody into one plane,
//! and every quorum is the universe). Repaired: base a = ⌈n^(1/(k+1))⌉, node i at the k+1 digits of
//! i in base a, so that the planes X₁ = 0, …, c−1 are full (a^k nodes) and the plane X₁ = c holds
//! the r nodes left. The quorum of a node is everything that shares a digit with it. That is
//! [`cube_as_printed`], one quorum per node. Any k+1 of them meet, but theorem 4.4 fails: quorums
//! may contain each other (k = 1, n = 3), so that [`cube`] keeps the minimal ones. With few full
//! planes it tolerates no crash at all.

use std::collections::BTreeMap;

use quorate_core::{NodeId, NodeSet};

use super::brick::Brick;
use super::{FamilyError, universe};
use crate::rule::Rule;
use crate::{Domination, Explicit, Natural, Ratio, Reach, Symmetric};

/// The general cube, one quorum per node it keeps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cube {
    nodes: usize,
    units: usize,
    base: usize,
    /// Nodes in a full plane.
    plane: usize,
    /// Whether quorums that contain another are left out. Only with two full planes or more, where
    /// they are known without a search.
    minimal: bool,
}

/// The minimal cube: the sides given, or the repaired construction without what is not minimal.
pub fn cube(
    sides: &[usize],
    nodes: Option<usize>,
    units: usize,
) -> Result<Box<dyn Rule>, FamilyError> {
    if !sides.is_empty() {
        let built = sides.iter().try_fold(1usize, |product, side| product.checked_mul(*side));
        let limit = quorate_core::NODES_MAX as usize;
        let built = built.filter(|n| *n <= limit && sides.len() > 1);
        let problem = "at least two sides are expected, and not too many nodes: cube:3,3,4";
        super::agree("cube", nodes, built.ok_or_else(|| FamilyError::fit("cube", problem))?)?;
        return Ok(Brick::family(sides));
    }
    let nodes = nodes.ok_or_else(|| FamilyError::fit("cube", "say how many nodes there are"))?;
    let printed = cube_as_printed(nodes, units);
    let (full, rest) = (nodes / printed.plane, nodes % printed.plane);
    Ok(match (full, rest) {
        (0, _) | (1, 0) => Box::new(universe(nodes)),
        (_, 0) => {
            let mut sides = vec![printed.base; units + 1];
            sides[0] = full;
            Brick::family(&sides)
        }
        (1, _) => {
            let list = Explicit::new(nodes, printed.list()).expect("quorums of existing nodes");
            Box::new(list.minimalised())
        }
        _ => Box::new(Cube { minimal: true, ..printed }),
    })
}

/// The paper's construction for every n, repaired, with its repetitions and inclusions.
pub fn cube_as_printed(nodes: usize, units: usize) -> Cube {
    let base = base(nodes, units);
    let plane = base.checked_pow(units as u32).unwrap_or(usize::MAX);
    Cube { nodes, units, base, plane, minimal: false }
}

/// ⌈n^(1/(k+1))⌉.
pub fn base(nodes: usize, units: usize) -> usize {
    let fits = |a: usize| a.checked_pow(units as u32 + 1).is_none_or(|power| power >= nodes);
    (1..=nodes).find(|a| fits(*a)).expect("n itself is large enough")
}

impl Cube {
    fn full(&self) -> usize {
        self.nodes / self.plane
    }

    fn rest(&self) -> usize {
        self.nodes % self.plane
    }

    /// The digits after the first: where in its plane a node is.
    fn place(&self, node: usize) -> Vec<usize> {
        let mut left = node % self.plane;
        let mut digits = vec![0; self.units];
        for digit in digits.iter_mut().rev() {
            *digit = left % self.base;
            left /= self.base;
        }
        digits
    }

    fn shares(&self, a: usize, b: usize) -> bool {
        a / self.plane == b / self.plane
            || self.place(a).iter().zip(self.place(b)).any(|(x, y)| *x == y)
    }

    /// How many of the first `rest` places of a plane differ from `place` in every digit.
    fn strangers(&self, place: &[usize], rest: usize) -> usize {
        let mut weight = self.plane / self.base;
        let mut left = rest;
        let mut count = 0;
        for digit in place {
            let here = left / weight;
            let free = self.base - 1;
            let below = here - usize::from(*digit < here);
            let further: usize = match weight {
                1 => 1,
                _ => free.pow(weight.ilog(self.base)),
            };
            count += below * further;
            if *digit == here {
                return count;
            }
            left %= weight;
            weight = (weight / self.base).max(1);
            if left == 0 {
                return count;
            }
        }
        count
    }

    fn size(&self, node: usize) -> usize {
        if self.full() == 0 {
            return self.nodes;
        }
        let in_full = node / self.plane < self.full();
        let strangers_of_plane = (self.base - 1).pow(self.units as u32);
        let full = (self.full() - usize::from(in_full)) * strangers_of_plane;
        let rest = if in_full { self.strangers(&self.place(node), self.rest()) } else { 0 };
        self.nodes - full - rest
    }

    /// With two full planes or more a quorum contains another iff it belongs to a full plane, the
    /// last plane has a node at the same place, and all of the last plane shares a digit with it.
    fn contains_another(&self, node: usize) -> bool {
        let place = node % self.plane;
        node / self.plane < self.full()
            && place < self.rest()
            && self.strangers(&self.place(node), self.rest()) == 0
    }

    fn kept(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.nodes).filter(|node| !self.minimal || !self.contains_another(*node))
    }

    fn quorum(&self, node: usize) -> NodeSet {
        (0..self.nodes).filter(|other| self.shares(node, *other)).map(NodeId::from).collect()
    }

    fn list(&self) -> Vec<NodeSet> {
        self.kept().map(|node| self.quorum(node)).collect()
    }

    /// Sharing a digit is mutual: a node is in as many quorums as its own has members, less those
    /// left out.
    fn efforts(&self) -> Vec<usize> {
        let dropped: Vec<usize> = if self.minimal {
            (0..self.nodes).filter(|node| self.contains_another(*node)).collect()
        } else {
            Vec::new()
        };
        let lost = |node| dropped.iter().filter(|other| self.shares(node, **other)).count();
        (0..self.nodes).map(|node| self.size(node) - lost(node)).collect()
    }

    /// Whether one node in each of the full planes can meet every place of the last one: cut it in
    /// slabs by its first digit; c values of each digit are available.
    fn blocked(&self, rest: usize, digits: usize) -> bool {
        if rest == 0 || digits == 0 {
            return rest == 0;
        }
        let (full, slab) = (self.full(), self.base.pow(digits as u32 - 1));
        if rest.div_ceil(slab) <= full {
            return true;
        }
        let last = rest - full * slab;
        last < slab && self.blocked(last, digits - 1)
    }
}

impl Rule for Cube {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn contains_quorum(&self, alive: &NodeSet) -> bool {
        let directions = self.units + 1;
        let mut dead: Vec<Vec<bool>> =
            vec![vec![false; self.base.max(self.full() + 1)]; directions];
        for node in (0..self.nodes).filter(|node| !alive.contains(NodeId::from(*node))) {
            dead[0][node / self.plane] = true;
            for (direction, digit) in self.place(node).into_iter().enumerate() {
                dead[direction + 1][digit] = true;
            }
        }
        (0..self.nodes).any(|node| {
            !dead[0][node / self.plane]
                && self.place(node).iter().enumerate().all(|(d, digit)| !dead[d + 1][*digit])
        })
    }

    fn sizes(&self) -> Option<BTreeMap<usize, Natural>> {
        let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
        for node in self.kept() {
            *sizes.entry(self.size(node)).or_default() += 1;
        }
        Some(sizes.into_iter().map(|(size, count)| (size, Natural::from(count))).collect())
    }

    fn enumerate(&self, most: usize) -> Option<Vec<NodeSet>> {
        let fits = self.nodes.saturating_mul(self.nodes) <= most.saturating_mul(100);
        (self.nodes <= most && fits).then(|| self.list())
    }

    fn is_minimal(&self) -> Option<bool> {
        match self.full() {
            0 => Some(true),
            1 => None,
            _ => Some(self.minimal || !(0..self.nodes).any(|node| self.contains_another(node))),
        }
    }

    /// Any k+1 quorums meet: if one belongs to a full plane take its first digit and one more digit
    /// from each of the others, else the last plane is in all of them. With k+2 full planes a
    /// diagonal shows that k+2 need not.
    fn reach(&self) -> Option<Reach> {
        (self.full() >= self.units + 2).then_some(Reach::UpTo(self.units as i64))
    }

    fn survives(&self) -> Option<usize> {
        let full = self.full();
        Some(match full {
            0 => 0,
            _ if self.blocked(self.rest(), self.units) => full - 1,
            _ => full,
        })
    }

    fn resiliency(&self) -> Option<Ratio> {
        let most = self.efforts().into_iter().max()?;
        Some(Ratio::of(most, self.kept().count()))
    }

    fn symmetric(&self) -> Option<Option<Symmetric>> {
        let (efforts, sizes) = (self.efforts(), self.sizes()?);
        let even = sizes.len() == 1 && efforts.iter().all(|effort| *effort == efforts[0]);
        let size = *sizes.keys().next()?;
        Some(even.then(|| Symmetric { effort: Natural::from(efforts[0]), size }))
    }

    /// A full plane meets any k quorums at a common node, and with two full planes it contains no
    /// quorum.
    fn domination(&self, units: usize) -> Option<Domination> {
        let known = self.full() >= 2 && units <= self.units;
        known.then(|| Domination::Dominated(NodeSet::first(self.plane)))
    }
}
