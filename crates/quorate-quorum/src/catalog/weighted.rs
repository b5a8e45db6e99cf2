//! Weighted voting (Gifford, "Weighted voting for replicated data", 1979), for k units: more than
//! k/(k+1) of all votes, so that what k+1 quorums leave out together is less than everything. For
//! k = 1 this is more than half.

use super::FamilyError;
use crate::{Expr, Formula};

/// Sets with more than k/(k+1) of the votes.
pub fn weighted(
    votes: &[usize],
    nodes: Option<usize>,
    units: usize,
) -> Result<Formula, FamilyError> {
    if votes.is_empty() {
        return Err(FamilyError::fit("weighted", "say the votes of each node: weighted:3,1,1"));
    }
    super::agree("weighted", nodes, votes.len())?;
    let total: usize = votes.iter().sum();
    let need = units * total / (units + 1) + 1;
    let parts = votes.iter().enumerate().map(|(node, votes)| (*votes as u64, Expr::node(node)));
    let expr = Expr::weighted(need as u64, parts.collect()).expect("need is from 1 to all votes");
    Ok(Formula::new(votes.len(), expr))
}
