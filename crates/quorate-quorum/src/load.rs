//! Load, capacity and the strategy that attains them (Naor and Wool, "The load, capacity and
//! availability of quorum systems", 1998).
//!
//! A strategy chooses quorums at random with fixed probabilities. The load of a node is how often
//! it is chosen; the load of a family is that of its busiest node under the best strategy. With
//! capacities c_u (requests per second node u can answer), the family's capacity is the largest
//! total rate.
//!
//! # The program, on a 2×2 grid
//!
//! Nodes 0 1 / 2 3, quorums a row and a column: A = {0,1,2}, B = {0,1,3}, C = {0,2,3}, D = {1,2,3}.
//! Let a, b, c, d be the rates at which they are used. Node 0 is in A, B, C, so a+b+c <= c_0, and
//! so on for the other three; the total a+b+c+d is to be largest. With all capacities 1 the best is
//! 1/3 each, total 4/3: that is the capacity, the strategy is 1/4 each, and the load is 1/(4/3) =
//! 3/4.
//!
//! The dual prices the nodes: y_0 + y_1 + y_2 >= 1 for A, and so on, the total price Σ c_u·y_u
//! smallest. Prices 1/3 each cost 4/3, so no strategy can do better. Any feasible pair proves an
//! interval, whoever found it; both sides are recomputed here from the solutions, and the interval
//! is what is reported.

use crate::explicit::minimal;
use crate::solver;
use crate::{Explicit, TooLarge};
use quorate_core::NodeSet;

/// A strategy, the load it proves from above, and the prices that prove the load from below.
#[derive(Clone, PartialEq, Debug)]
pub struct Load {
    /// No strategy has a smaller load: proved by [`Load::prices`].
    pub low: f64,
    /// The load of [`Load::strategy`].
    pub high: f64,
    /// Quorums and the probability of each; zero ones are left out.
    pub strategy: Vec<(NodeSet, f64)>,
    /// Price of each node.
    pub prices: Vec<f64>,
}

impl Load {
    /// Whether the two bounds agree to nine digits.
    pub fn is_exact(&self) -> bool {
        self.high - self.low <= 1e-9 * self.high.max(1e-9)
    }

    /// Most requests per second the family can answer.
    pub fn capacity(&self) -> f64 {
        1.0 / self.high
    }
}

/// Largest program tried: members of all quorums together.
const MEMBERS_MAX: usize = 2_000_000;

/// The load of a family whose nodes are alike.
pub fn load(family: &Explicit) -> Result<Load, TooLarge> {
    load_with_capacities(family, &vec![1.0; family.nodes()])
}

/// The load of a family whose node u can answer `capacities[u]` requests per second; the load of a
/// node is then its share of its own capacity.
pub fn load_with_capacities(family: &Explicit, capacities: &[f64]) -> Result<Load, TooLarge> {
    assert_eq!(capacities.len(), family.nodes(), "one capacity per node");
    assert!(capacities.iter().all(|c| *c > 0.0), "capacities are positive");
    let quorums = minimal(family.sets::<NodeSet>());
    let members: usize = quorums.iter().map(NodeSet::len).sum();
    if members > MEMBERS_MAX {
        return Err(TooLarge { limit: MEMBERS_MAX as u64 });
    }
    let mut of_node: Vec<(Vec<usize>, f64)> = capacities.iter().map(|c| (vec![], *c)).collect();
    let mut of_quorum = Vec::with_capacity(quorums.len());
    for (index, quorum) in quorums.iter().enumerate() {
        let nodes: Vec<usize> = quorum.iter().map(|node| node.index()).collect();
        for node in &nodes {
            of_node[*node].0.push(index);
        }
        of_quorum.push(nodes);
    }
    if of_quorum[0].is_empty() {
        // An empty quorum costs nobody anything.
        let prices = vec![0.0; family.nodes()];
        return Ok(Load { low: 0.0, high: 0.0, strategy: vec![(NodeSet::new(), 1.0)], prices });
    }
    // Where all nodes do the same work, even rates and even prices prove each other right.
    let even = vec![1.0; quorums.len()];
    let guess = certify(&quorums, capacities, &even, vec![1.0; family.nodes()]);
    if guess.is_exact() {
        return Ok(guess);
    }
    of_node.retain(|(quorums, _)| !quorums.is_empty());
    let rates = solver::pack(quorums.len(), &of_node).unwrap_or(even);
    let prices = solver::cover(capacities, &of_quorum).unwrap_or(vec![1.0; family.nodes()]);
    Ok(certify(&quorums, capacities, &rates, prices))
}

/// Recomputes both bounds from the solutions, whatever the solver claims.
fn certify(quorums: &[NodeSet], capacities: &[f64], rates: &[f64], prices: Vec<f64>) -> Load {
    let total: f64 = rates.iter().sum();
    let strategy: Vec<(NodeSet, f64)> = quorums
        .iter()
        .zip(rates)
        .filter(|(_, rate)| **rate > 0.0)
        .map(|(quorum, rate)| (quorum.clone(), rate / total))
        .collect();
    let mut loads = vec![0.0; capacities.len()];
    for (quorum, share) in &strategy {
        for node in quorum.iter() {
            loads[node.index()] += share / capacities[node.index()];
        }
    }
    let high = loads.into_iter().fold(0.0, f64::max);
    let price_of = |quorum: &NodeSet| quorum.iter().map(|node| prices[node.index()]).sum::<f64>();
    let cheapest = quorums.iter().map(price_of).fold(f64::INFINITY, f64::min);
    let cost: f64 = prices.iter().zip(capacities).map(|(price, c)| price * c).sum();
    let low = if cost > 0.0 { (cheapest / cost).min(high) } else { 0.0 };
    Load { low, high, strategy, prices }
}
