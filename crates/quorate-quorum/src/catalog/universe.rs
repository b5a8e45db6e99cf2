//! All nodes decide together: {U}, the other extreme of RR-2523 (section 2.3). An arbiter for every
//! k, dominated by any singleton as soon as there are two nodes (the paper forgets n = 1).

use crate::{Expr, Formula};

/// {{0, …, n-1}}.
pub fn universe(nodes: usize) -> Formula {
    Formula::new(nodes, Expr::threshold(nodes, 0, nodes))
}
