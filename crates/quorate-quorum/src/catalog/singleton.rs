//! One node decides everything: RR-2523, section 4.2.1. An arbiter for every k, never dominated,
//! and gone with its node.

use crate::{Expr, Formula};

/// {{0}} over `nodes` nodes.
pub fn singleton(nodes: usize) -> Formula {
    Formula::new(nodes, Expr::node(0))
}
