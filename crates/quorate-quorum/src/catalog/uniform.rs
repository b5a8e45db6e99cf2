//! The uniform k-arbiter: RR-2523, section 4.2.2. Any ⌊kn/(k+1)⌋+1 nodes; the paper prints Q ⊂ U,
//! which must allow Q = U (that happens iff n <= k+1). It tolerates as many crashes as any
//! k-arbiter can, and is non-dominated iff n ≡ 1 mod (k+1) (the paper proves one direction, theorem
//! 4.6).

use crate::{Expr, Formula};

/// Members of a uniform quorum: n − ⌊(n−1)/(k+1)⌋.
pub fn uniform_size(nodes: usize, units: usize) -> usize {
    nodes - (nodes - 1) / (units + 1)
}

/// All sets of [`uniform_size`] nodes.
pub fn uniform(nodes: usize, units: usize) -> Formula {
    Formula::new(nodes, Expr::threshold(uniform_size(nodes, units), 0, nodes))
}
