//! What no family can beat, by numbers of nodes and units alone.

/// No k-arbiter on n nodes survives more crashes: k+1 disjoint sets of f nodes must not cover all,
/// so n >= (k+1)f + 1. Uniform quorums attain it.
pub fn survives_max(nodes: usize, units: usize) -> usize {
    nodes.div_ceil(units + 1) - 1
}

/// Fewest nodes on which a k-arbiter survives `crashes`.
pub fn nodes_for(crashes: usize, units: usize) -> usize {
    (units + 1) * crashes + 1
}

/// In a symmetric k-arbiter on at least two nodes quorums have more than n^(k/(k+1)) members
/// (RR-2523, section 4.4, with the exponent as it must be).
pub fn symmetric_size_min(nodes: usize, units: usize) -> f64 {
    (nodes as f64).powf(units as f64 / (units as f64 + 1.0))
}

/// No strategy of a k-arbiter whose smallest quorum has `smallest` members has a smaller load: draw
/// k+1 quorums, and by Hölder 1 <= n·L^(k+1); fix the smallest quorum and 1 <= c·L^k; and c/n
/// anyway.
pub fn load_min(nodes: usize, units: usize, smallest: usize) -> f64 {
    let (n, k, c) = (nodes as f64, units as f64, smallest.max(1) as f64);
    (c / n).max(c.powf(-1.0 / k)).max(n.powf(-1.0 / (k + 1.0))).min(1.0)
}

/// Messages for one grant when nobody else wants anything: request, grant and release with each
/// member of the quorum (RR-2523, section 3.2); three of them stay at home if the node is in its
/// own quorum.
pub fn messages(quorum: usize) -> usize {
    3 * quorum
}
