//! Rows of nodes, one of them taken strongly and every lower one weakly: the common shape of walls
//! and cohorts. A quorum takes `primary` members of one row and `support` members of every row
//! below it.
//!
//! If a row's support is as large as its primary, a quorum that reaches down to it contains one
//! that starts there, so the rows above it are useless and dropped; what remains is minimal.

use std::collections::BTreeMap;

use quorate_core::{NodeId, NodeSet};

use crate::rule::{Chances, Rule, shuffle};
use crate::sampling::{Draws, binomial_weights};
use crate::{Natural, Ratio, Reach, Symmetric};

/// One row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// Its first node; the others follow.
    pub first: usize,
    /// Its nodes.
    pub width: usize,
    /// How many of them when the row is taken strongly.
    pub primary: usize,
    /// How many of them when it supports a row above.
    pub support: usize,
}

/// Rows from top to bottom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layers {
    nodes: usize,
    rows: Vec<Row>,
}

impl Layers {
    /// From widths, with what each row needs as (primary, support).
    pub fn new(widths: &[usize], needs: impl Fn(usize, usize) -> (usize, usize)) -> Self {
        let mut rows = Vec::new();
        let mut first = 0;
        for (index, width) in widths.iter().enumerate() {
            let (primary, support) = needs(index, *width);
            assert!((1..=*width).contains(&primary), "a primary fits in its row");
            assert!((1..=*width).contains(&support), "a support fits in its row");
            rows.push(Row { first, width: *width, primary, support });
            first += width;
        }
        let top = rows.iter().rposition(|row| row.support >= row.primary).unwrap_or(0);
        Layers { nodes: first, rows: rows.split_off(top) }
    }

    /// The same over more nodes, the additional ones in no quorum.
    pub fn padded(self, nodes: usize) -> Self {
        Layers { nodes: self.nodes.max(nodes), ..self }
    }

    /// The rows that matter.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    fn alive_in(row: &Row, alive: &NodeSet) -> usize {
        nodes_of(row).filter(|node| alive.contains(*node)).count()
    }

    /// Quorums that start at each row, from the bottom up: the ways to support a row grow by one
    /// binomial from row to row.
    fn counts(&self) -> Vec<Natural> {
        let mut below = Natural::one();
        let mut counts = Vec::with_capacity(self.rows.len());
        for row in self.rows.iter().rev() {
            counts.push(Natural::binomial(row.width, row.primary).times(&below));
            below = below.times(&Natural::binomial(row.width, row.support));
        }
        counts.reverse();
        counts
    }

    /// Quorums each node of each row is in.
    fn efforts(&self) -> Vec<Natural> {
        let counts = self.counts();
        let mut above = Natural::zero();
        let mut efforts = Vec::new();
        for (row, count) in self.rows.iter().zip(counts) {
            let strong = Ratio::of(row.primary, row.width).share_of(&count);
            let weak = Ratio::of(row.support, row.width).share_of(&above);
            efforts.push(strong.plus(&weak));
            above = above.plus(&count);
        }
        efforts
    }

    fn total(&self) -> Natural {
        self.counts().iter().fold(Natural::zero(), |sum, count| sum.plus(count))
    }
}

fn nodes_of(row: &Row) -> impl Iterator<Item = NodeId> + use<> {
    (row.first..row.first + row.width).map(NodeId::from)
}

impl Rule for Layers {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn contains_quorum(&self, alive: &NodeSet) -> bool {
        for row in self.rows.iter().rev() {
            let living = Self::alive_in(row, alive);
            if living >= row.primary {
                return true;
            }
            if living < row.support {
                return false;
            }
        }
        false
    }

    fn sizes(&self) -> Option<BTreeMap<usize, Natural>> {
        let mut sizes: BTreeMap<usize, Natural> = BTreeMap::new();
        for (index, count) in self.counts().into_iter().enumerate() {
            let below: usize = self.rows[index + 1..].iter().map(|row| row.support).sum();
            let entry = sizes.entry(self.rows[index].primary + below).or_default();
            *entry = entry.plus(&count);
        }
        Some(sizes)
    }

    fn enumerate(&self, most: usize) -> Option<Vec<NodeSet>> {
        if self.total() > Natural::from(most) {
            return None;
        }
        let mut below = vec![NodeSet::new()];
        let mut quorums = Vec::new();
        let join = |sets: &[NodeSet], parts: &[NodeSet]| -> Vec<NodeSet> {
            sets.iter().flat_map(|set| parts.iter().map(|part| set.union(part))).collect()
        };
        for row in self.rows.iter().rev() {
            quorums.extend(join(&below, &subsets(row, row.primary)));
            if row.first != self.rows[0].first {
                below = join(&below, &subsets(row, row.support));
            }
        }
        quorums.sort();
        Some(quorums)
    }

    fn pick(&self, alive: &NodeSet, draws: &mut Draws) -> Option<NodeSet> {
        let reachable = self.rows.iter().rposition(|row| Self::alive_in(row, alive) < row.support);
        let strong: Vec<usize> = (reachable.unwrap_or(0)..self.rows.len())
            .filter(|index| Self::alive_in(&self.rows[*index], alive) >= self.rows[*index].primary)
            .collect();
        let chosen = *strong.get(draws.below(strong.len().max(1)))?;
        let mut quorum = Vec::new();
        for (index, row) in self.rows.iter().enumerate().skip(chosen) {
            let mut living: Vec<NodeId> = nodes_of(row).filter(|n| alive.contains(*n)).collect();
            shuffle(&mut living, draws);
            let need = if index == chosen { row.primary } else { row.support };
            quorum.extend(living.into_iter().take(need));
        }
        Some(quorum.into_iter().collect())
    }

    /// Fewest quorums with nothing in common. Let the lowest start among j of them be row L: rows
    /// above are empty at once; row L is emptied by j−1 supports and a primary (at the top by j
    /// primaries); every row below by j supports.
    fn reach(&self) -> Option<Reach> {
        let times = |row: &Row, spared: usize| (spared > 0).then(|| row.width.div_ceil(spared));
        let mut below = Some(1);
        let mut fewest: Option<usize> = None;
        for (index, row) in self.rows.iter().enumerate().rev() {
            let spared = row.width - row.support;
            let here = match index {
                0 => times(row, row.width - row.primary),
                _ => (spared > 0).then(|| 1 + row.primary.div_ceil(spared)),
            };
            if let (Some(here), Some(below)) = (here, below) {
                let count = here.max(below);
                fewest = Some(fewest.map_or(count, |known| known.min(count)));
            }
            below = below.and_then(|below| Some(times(row, spared)?.max(below)));
        }
        Some(Reach::from_fewest(fewest))
    }

    /// Stop every start: by its own row, or by the support of one row for all rows above it.
    fn survives(&self) -> Option<usize> {
        let strong = |row: &Row| row.width - row.primary + 1;
        let mut least: usize = self.rows.iter().map(strong).sum();
        for (index, row) in self.rows.iter().enumerate().skip(1) {
            let below: usize = self.rows[index + 1..].iter().map(strong).sum();
            least = least.min(row.width - row.support + 1 + below);
        }
        Some(least - 1)
    }

    /// By symmetry inside rows only matters how often quorums start in each row. Scaled as in
    /// [`load()`](crate::load()): rates at which no node is asked more than once, their sum as
    /// large as possible. Let y be the sum of the rates of the rows from the top down to one. The
    /// nodes of the next row, at rate x, allow `primary * x + support * y <= width`. Since its
    /// support is smaller than its primary, it is best to have as much as possible above it, up
    /// to what it and every lower row can support.
    fn load(&self, capacities: &[f64]) -> Option<f64> {
        if capacities.windows(2).any(|pair| pair[0] != pair[1]) {
            return None;
        }
        let supported = |row: &Row| row.width as f64 / row.support as f64;
        let mut sum = 0.0;
        for (index, row) in self.rows.iter().enumerate() {
            let more = (row.width as f64 - row.support as f64 * sum) / row.primary as f64;
            let most = self.rows[index + 1..].iter().map(supported).fold(f64::INFINITY, f64::min);
            sum = (sum + more).min(most);
        }
        Some(1.0 / sum / capacities[0])
    }

    fn resiliency(&self) -> Option<Ratio> {
        let most = self.efforts().into_iter().max()?;
        Some(Ratio::new(most, self.total()))
    }

    fn symmetric(&self) -> Option<Option<Symmetric>> {
        let (efforts, sizes) = (self.efforts(), self.sizes()?);
        let named: usize = self.rows.iter().map(|row| row.width).sum();
        let even = named == self.nodes
            && sizes.len() == 1
            && efforts.windows(2).all(|pair| pair[0] == pair[1]);
        let size = *sizes.keys().next()?;
        Some(even.then(|| Symmetric { effort: efforts[0].clone(), size }))
    }

    /// From the bottom up: a row with its primary alive ends the matter, one with less than its
    /// support does too.
    fn chances(&self, up: &[f64]) -> Option<Chances> {
        let (mut alive, mut dead, mut undecided) = (0.0, 0.0, 1.0);
        for row in self.rows.iter().rev() {
            let living = living(row, up);
            let support = row.support.min(row.primary);
            alive += undecided * living[row.primary..].iter().sum::<f64>();
            dead += undecided * living[..support].iter().sum::<f64>();
            undecided *= living[support..row.primary].iter().sum::<f64>();
        }
        Some(Chances { alive, dead: dead + undecided })
    }
}

/// The probability of each number of living nodes in a row.
fn living(row: &Row, up: &[f64]) -> Vec<f64> {
    let chances = &up[row.first..row.first + row.width];
    if chances.windows(2).all(|pair| pair[0] == pair[1]) {
        return binomial_weights(row.width, chances[0]);
    }
    let mut weights = vec![0.0; row.width + 1];
    weights[0] = 1.0;
    for chance in chances {
        for count in (0..=row.width).rev() {
            let before = if count > 0 { weights[count - 1] * chance } else { 0.0 };
            weights[count] = weights[count] * (1.0 - chance) + before;
        }
    }
    weights
}

/// All subsets of a row of one size.
fn subsets(row: &Row, size: usize) -> Vec<NodeSet> {
    let mut sets = vec![Vec::new()];
    for (position, node) in nodes_of(row).enumerate() {
        let left = row.width - position - 1;
        let with: Vec<Vec<NodeId>> = sets
            .iter()
            .filter(|set| set.len() < size)
            .map(|set| set.iter().copied().chain([node]).collect())
            .collect();
        sets.retain(|set| set.len() + left >= size);
        sets.extend(with.into_iter().filter(|set| set.len() + left >= size));
    }
    sets.into_iter().map(|set| set.into_iter().collect()).collect()
}
