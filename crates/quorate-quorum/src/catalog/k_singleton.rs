//! k nodes, each a quorum by itself: the smallest k-coterie (Kakugawa, Fujita, Yamashita, Ae). Good
//! for k holders of one unit each; not a k-arbiter for k > 1, since its quorums are disjoint.

use super::FamilyError;
use crate::{Expr, Formula};

/// {{0}, …, {k-1}}.
pub fn k_singleton(nodes: usize, units: usize) -> Result<Formula, FamilyError> {
    if units > nodes {
        let problem = format!("{units} units need at least {units} nodes, not {nodes}");
        return Err(FamilyError::fit("k-singleton", problem));
    }
    Ok(Formula::new(nodes, Expr::threshold(1, 0, units)))
}
