//! The k-tree: the root and quorums of k of its k+1 subtrees, or quorums of all k+1. For k = 1 this
//! is Agrawal and El Abbadi's tree (1991); the generalisation answers RR-2523's closing question.
//! It is a threshold of thresholds (k+1 of the root and the k+1 subtrees), hence a non-dominated
//! k-arbiter by the join theorem. n = ((k+1)^(d+1)−1)/k nodes; it survives d crashes; load
//! (k+1)/(k+1+d).

use super::FamilyError;
use crate::{Expr, Formula};

/// The tree of the depth given, or of the depth that fits the nodes.
pub fn tree(params: &[usize], nodes: Option<usize>, units: usize) -> Result<Formula, FamilyError> {
    let depth = match (params, nodes) {
        ([depth], _) => *depth,
        ([], Some(nodes)) => {
            let fitting = (0..64).find(|depth| size(units, *depth).is_none_or(|n| n >= nodes));
            let depth = fitting.unwrap_or(64);
            if size(units, depth) != Some(nodes) {
                let sizes: Vec<String> =
                    (0..4).filter_map(|d| size(units, d)).map(|n| n.to_string()).collect();
                let problem = format!("for k = {units} it has {}, … nodes", sizes.join(", "));
                return Err(FamilyError::fit("tree", problem));
            }
            depth
        }
        _ => return Err(FamilyError::fit("tree", "one number is expected, the depth: tree:2")),
    };
    let limit = quorate_core::NODES_MAX as usize;
    let built = size(units, depth).filter(|n| *n <= limit);
    let built = built.ok_or_else(|| FamilyError::fit("tree", "it would have too many nodes"))?;
    super::agree("tree", nodes, built)?;
    Ok(Formula::new(built, subtree(units, depth, 0)))
}

/// Nodes in level order: the children of i are (k+1)i+1, …, (k+1)i+k+1.
fn subtree(units: usize, depth: usize, root: usize) -> Expr {
    if depth == 0 {
        return Expr::node(root);
    }
    let child = |index| subtree(units, depth - 1, (units + 1) * root + index);
    let of = std::iter::once(Expr::node(root)).chain((1..=units + 1).map(child)).collect();
    Expr::Choose { need: units + 1, of }
}

fn size(units: usize, depth: usize) -> Option<usize> {
    (0..depth).try_fold(1usize, |nodes, _| nodes.checked_mul(units + 1)?.checked_add(1))
}
