//! More than half of the nodes (Thomas 1979; RR-2523, section 2.3): the uniform family for k = 1.

use crate::{Expr, Formula};

/// All sets of ⌊n/2⌋+1 nodes.
pub fn majority(nodes: usize) -> Formula {
    Formula::new(nodes, Expr::threshold(nodes / 2 + 1, 0, nodes))
}
