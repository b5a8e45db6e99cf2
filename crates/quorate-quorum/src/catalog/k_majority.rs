//! k-majority (Fujita, Yamashita, Ae 1991; RR-2523, section 2): any ⌈(n+1)/(k+1)⌉ nodes. It is
//! offered as a k-coterie and is one only if k⌈(n+1)/(k+1)⌉ <= n (Yuan and Chang): otherwise k
//! quorums do not fit side by side, first at n = 3, k = 2.

use crate::{Expr, Formula};

/// All sets of ⌈(n+1)/(k+1)⌉ nodes, whether or not they are a k-coterie.
pub fn k_majority(nodes: usize, units: usize) -> Formula {
    Formula::new(nodes, Expr::threshold((nodes + 1).div_ceil(units + 1), 0, nodes))
}

/// Whether k-majority is a k-coterie.
pub fn k_majority_is_k_coterie(nodes: usize, units: usize) -> bool {
    units * (nodes + 1).div_ceil(units + 1) <= nodes
}
