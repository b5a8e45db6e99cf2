//! How long a quorum takes to answer, given a matrix of delays.
//!
//! A requester hears from a quorum when it has heard from its slowest member. Without a limit on
//! load the best strategy of a node is its nearest quorum, found by waiting longer and longer: the
//! least t such that the nodes within t contain a quorum. With a limit it is a linear program over
//! the quorums: the least mean latency, all requesters asking equally often and following one
//! strategy, such that no node is chosen more often than the limit allows.

use quorate_core::{NodeId, NodeSet};

use crate::explicit::minimal;
use crate::rule::Rule;
use crate::{Explicit, solver};

/// Delays between nodes: row i is what node i waits for an answer from each node.
pub type Delays = [Vec<f64>];

/// For each node, how long its nearest quorum takes. `None` where no quorum can ever answer.
pub fn nearest(rule: &dyn Rule, delays: &Delays) -> Vec<Option<f64>> {
    let nearest_of = |row: &Vec<f64>| {
        let mut order: Vec<usize> = (0..row.len()).collect();
        order.sort_by(|a, b| row[*a].total_cmp(&row[*b]));
        // The answer grows with the nodes heard from: look for the turning point by halving.
        let heard = |count: usize| -> NodeSet {
            order[..count].iter().copied().map(NodeId::from).collect()
        };
        if !rule.contains_quorum(&heard(order.len())) {
            return None;
        }
        let (mut too_few, mut enough) = (0, order.len());
        while enough - too_few > 1 {
            let middle = (too_few + enough) / 2;
            if rule.contains_quorum(&heard(middle)) {
                enough = middle;
            } else {
                too_few = middle;
            }
        }
        Some(row[order[enough - 1]])
    };
    delays.iter().map(nearest_of).collect()
}

/// The mean of [`nearest`]; `None` if some node can never be served.
pub fn mean_nearest(rule: &dyn Rule, delays: &Delays) -> Option<f64> {
    let waits = nearest(rule, delays).into_iter().collect::<Option<Vec<f64>>>()?;
    Some(waits.iter().sum::<f64>() / waits.len().max(1) as f64)
}

/// A strategy with its mean latency.
#[derive(Clone, PartialEq, Debug)]
pub struct Paced {
    /// Mean latency over all nodes.
    pub latency: f64,
    /// Its load.
    pub load: f64,
    /// Quorums and how often each is chosen.
    pub strategy: Vec<(NodeSet, f64)>,
}

/// The least mean latency of a strategy whose load is at most `load_limit`; `None` if there is none
/// or the solver cannot find it. What is returned has been evaluated, not believed.
pub fn under_load(family: &Explicit, delays: &Delays, load_limit: f64) -> Option<Paced> {
    let quorums = minimal(family.sets::<NodeSet>());
    let wait = |quorum: &NodeSet| -> f64 {
        let slowest =
            |row: &Vec<f64>| quorum.iter().map(|node| row[node.index()]).fold(0.0, f64::max);
        delays.iter().map(slowest).sum::<f64>() / delays.len().max(1) as f64
    };
    let waits: Vec<f64> = quorums.iter().map(wait).collect();
    let rows: Vec<(Vec<(usize, f64)>, f64)> = (0..family.nodes())
        .map(|node| {
            let with = quorums.iter().enumerate().filter(|(_, q)| q.contains(NodeId::from(node)));
            (with.map(|(index, _)| (index, 1.0)).collect(), load_limit)
        })
        .collect();
    let shares = solver::mix(&waits, &rows)?;
    let total: f64 = shares.iter().sum();
    let busiest = rows
        .iter()
        .map(|(row, _)| row.iter().map(|(index, _)| shares[*index] / total).sum::<f64>())
        .fold(0.0, f64::max);
    if busiest > load_limit * (1.0 + 1e-7) {
        return None;
    }
    let latency = shares.iter().zip(&waits).map(|(share, wait)| share / total * wait).sum();
    let used = quorums.into_iter().zip(shares).filter(|(_, share)| *share > 0.0);
    let strategy = used.map(|(quorum, share)| (quorum, share / total)).collect();
    Some(Paced { latency, load: busiest, strategy })
}
