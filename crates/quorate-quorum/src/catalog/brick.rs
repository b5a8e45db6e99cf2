//! Boxes a_1 × … × a_d: the exact (k+1)-cube of RR-2523, section 4.2.3, with sides of any length
//! and d = k+1. The quorum of a node is everything that shares a coordinate with it: one hyperplane
//! in each direction. Nodes are numbered by their coordinates, the last one fastest.
//!
//! The size is N − Π(a_d − 1); the paper's alternating sum for it has the wrong signs, its effort
//! (k+1)n^(k/(k+1)) is an upper bound only, and its R is wrong (here it is size/N). A quorum is
//! alive iff every direction has a hyperplane that is entirely alive. Always dominated: one
//! hyperplane is a witness.

use std::collections::BTreeMap;

use quorate_core::{NodeId, NodeSet};

use super::universe;
use crate::rule::{Chances, Rule};
use crate::sampling::Draws;
use crate::{Domination, Natural, Ratio, Reach, Symmetric};

/// A box with at least two directions and at least two nodes in each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Brick {
    sides: Vec<usize>,
    nodes: usize,
}

impl Brick {
    /// The family of a box. A side of one makes every quorum the universe.
    pub fn family(sides: &[usize]) -> Box<dyn Rule> {
        let nodes = sides.iter().product();
        if sides.contains(&1) {
            return Box::new(universe(nodes));
        }
        Box::new(Brick { sides: sides.to_vec(), nodes })
    }

    /// The lengths of its sides.
    pub fn sides(&self) -> &[usize] {
        &self.sides
    }

    fn size(&self) -> usize {
        self.nodes - self.sides.iter().map(|side| side - 1).product::<usize>()
    }

    fn coordinates(&self, node: usize) -> Vec<usize> {
        let mut left = node;
        let mut coordinates: Vec<usize> = self
            .sides
            .iter()
            .rev()
            .map(|side| {
                let coordinate = left % side;
                left /= side;
                coordinate
            })
            .collect();
        coordinates.reverse();
        coordinates
    }

    /// For each direction, the hyperplanes that are entirely alive.
    fn whole(&self, alive: &NodeSet) -> Vec<Vec<usize>> {
        let mut living: Vec<Vec<usize>> = self.sides.iter().map(|side| vec![0; *side]).collect();
        for node in alive.iter().filter(|node| node.index() < self.nodes) {
            for (direction, at) in self.coordinates(node.index()).into_iter().enumerate() {
                living[direction][at] += 1;
            }
        }
        let full = |(direction, counts): (usize, &Vec<usize>)| {
            let hyperplane = self.nodes / self.sides[direction];
            (0..counts.len()).filter(|at| counts[*at] == hyperplane).collect()
        };
        living.iter().enumerate().map(full).collect()
    }

    fn quorum_at(&self, corner: &[usize]) -> NodeSet {
        let shares = |node: &usize| {
            self.coordinates(*node).iter().zip(corner).any(|(mine, its)| mine == its)
        };
        (0..self.nodes).filter(shares).map(NodeId::from).collect()
    }
}

impl Rule for Brick {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn contains_quorum(&self, alive: &NodeSet) -> bool {
        self.whole(alive).iter().all(|hyperplanes| !hyperplanes.is_empty())
    }

    fn sizes(&self) -> Option<BTreeMap<usize, Natural>> {
        Some(BTreeMap::from([(self.size(), Natural::from(self.nodes))]))
    }

    fn enumerate(&self, most: usize) -> Option<Vec<NodeSet>> {
        // Members of all quorums together stay below a hundred times the limit.
        if self.nodes > most || self.nodes.saturating_mul(self.nodes) > most.saturating_mul(100) {
            return None;
        }
        Some((0..self.nodes).map(|node| self.quorum_at(&self.coordinates(node))).collect())
    }

    fn pick(&self, alive: &NodeSet, draws: &mut Draws) -> Option<NodeSet> {
        let corner: Vec<usize> = self
            .whole(alive)
            .iter()
            .map(|hyperplanes| hyperplanes.get(draws.below(hyperplanes.len().max(1))).copied())
            .collect::<Option<_>>()?;
        Some(self.quorum_at(&corner))
    }

    /// With sides of at least d+1 the d+1 nodes of a diagonal have quorums with nothing in common:
    /// a node shares its d coordinates with at most d of them. In a box with a side of 2 … d it
    /// takes a search.
    fn reach(&self) -> Option<Reach> {
        let directions = self.sides.len();
        let wide = self.sides.iter().all(|side| *side > directions);
        wide.then(|| Reach::UpTo(directions as i64 - 1))
    }

    fn survives(&self) -> Option<usize> {
        self.sides.iter().min().map(|side| side - 1)
    }

    fn load(&self, capacities: &[f64]) -> Option<f64> {
        let even = capacities.windows(2).all(|pair| pair[0] == pair[1]);
        even.then(|| self.size() as f64 / self.nodes as f64 / capacities[0])
    }

    fn resiliency(&self) -> Option<Ratio> {
        Some(Ratio::of(self.size(), self.nodes))
    }

    fn symmetric(&self) -> Option<Option<Symmetric>> {
        let size = self.size();
        Some(Some(Symmetric { effort: Natural::from(size), size }))
    }

    fn domination(&self, units: usize) -> Option<Domination> {
        if units >= self.sides.len() {
            return None;
        }
        // A hyperplane of the longest direction has the fewest nodes.
        let longest = *self.sides.iter().max()?;
        let direction = self.sides.iter().position(|side| *side == longest)?;
        let hyperplane = (0..self.nodes).filter(|node| self.coordinates(*node)[direction] == 0);
        Some(Domination::Dominated(hyperplane.map(NodeId::from).collect()))
    }

    /// Inclusion and exclusion over the hyperplanes that are alive, j_d of them in direction d: Σ Π
    /// (−1)^(j_d+1) C(a_d, j_d) · p^(N − Π(a_d − j_d)). The terms are as large as 2^Σa_d and
    /// cancel, so the sum is formed in fixed point with that many bits to spare.
    fn chances(&self, up: &[f64]) -> Option<Chances> {
        const TERMS_MAX: usize = 300_000;
        const BITS_SHOWN: usize = 128;
        let even = up.windows(2).all(|pair| pair[0] == pair[1]);
        let bits = self.sides.iter().sum::<usize>() + BITS_SHOWN;
        if !even || self.nodes > TERMS_MAX || bits > 4000 {
            return None;
        }
        let p = fixed(up[0], bits);
        let (mut plus, mut minus) = (Natural::zero(), Natural::zero());
        for term in 0..self.nodes {
            // The coordinates of a node, plus one, run through all (j_1, …, j_d).
            let taken: Vec<usize> = self.coordinates(term).iter().map(|x| x + 1).collect();
            let untouched: usize =
                self.sides.iter().zip(&taken).map(|(side, j)| side - j).product();
            let ways =
                self.sides.iter().zip(&taken).fold(Natural::one(), |ways, (side, j)| {
                    ways.times(&Natural::binomial(*side, *j))
                });
            let value = ways.times(&power(&p, self.nodes - untouched, bits));
            let odd = taken.iter().map(|j| j + 1).sum::<usize>() % 2 == 1;
            let sum = if odd { &mut minus } else { &mut plus };
            *sum = sum.plus(&value);
        }
        let one = Natural::one().shifted_left(bits);
        let alive = plus.minus(&minus).unwrap_or_else(Natural::zero);
        let dead = one.minus(&alive).unwrap_or_else(Natural::zero);
        let share = |value: Natural| Ratio::new(value, one.clone()).to_f64();
        Some(Chances { alive: share(alive), dead: share(dead) }.clamped())
    }
}

/// A probability with `bits` binary places.
fn fixed(value: f64, bits: usize) -> Natural {
    // The 64 leading places of a float between 0 and 1 hold all of it that matters here.
    let scaled = value.clamp(0.0, 1.0) * 2f64.powi(64);
    Natural::from(scaled as u128).shifted_left(bits - 64)
}

fn power(base: &Natural, exponent: usize, bits: usize) -> Natural {
    let mut value = Natural::one().shifted_left(bits);
    let (mut square, mut left) = (base.clone(), exponent);
    while left > 0 {
        if left & 1 == 1 {
            value = value.times(&square).shifted_right(bits);
        }
        square = square.times(&square).shifted_right(bits);
        left >>= 1;
    }
    value
}
