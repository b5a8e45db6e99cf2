//! Hierarchical uniform quorums: a uniform k-arbiter of groups, in each of them a uniform k-arbiter
//! of its members, and so on (Kumar's hierarchical quorum consensus, 1991, for k units;
//! compositions of k-arbiters are k-arbiters, and non-dominated iff all parts are). Fits zones and
//! racks: the groups are consecutive nodes.

use super::{FamilyError, uniform_size};
use crate::{Expr, Formula};

/// Levels from the outermost inwards, or a split of the nodes into two levels that are
/// non-dominated if such a split exists.
pub fn hierarchy(
    params: &[usize],
    nodes: Option<usize>,
    units: usize,
) -> Result<Formula, FamilyError> {
    let levels = match (params, nodes) {
        ([], Some(nodes)) => split(nodes, units),
        ([], None) => return Err(FamilyError::fit("hierarchy", "say how many nodes there are")),
        (levels, _) => levels.to_vec(),
    };
    let limit = quorate_core::NODES_MAX as usize;
    let built = levels.iter().try_fold(1usize, |product, level| product.checked_mul(*level));
    let built = built.filter(|built| *built <= limit);
    let built =
        built.ok_or_else(|| FamilyError::fit("hierarchy", "it would have too many nodes"))?;
    super::agree("hierarchy", nodes, built)?;
    Ok(Formula::new(built, level(&levels, units, 0)))
}

fn level(levels: &[usize], units: usize, first: usize) -> Expr {
    let Some((groups, inner)) = levels.split_first() else { return Expr::node(first) };
    let width: usize = inner.iter().product();
    let of = (0..*groups).map(|group| level(inner, units, first + group * width)).collect();
    Expr::Choose { need: uniform_size(*groups, units), of }
}

/// Two factors, as equal as possible, both ≡ 1 mod (k+1) if some are.
fn split(nodes: usize, units: usize) -> Vec<usize> {
    let fits = |factor: &usize| factor % (units + 1) == 1;
    let factors = || (2..nodes).filter(|f| nodes.is_multiple_of(*f) && f * f <= nodes);
    let best = factors().filter(|f| fits(f) && fits(&(nodes / f))).max().or(factors().max());
    best.map_or(vec![nodes], |factor| vec![factor, nodes / factor])
}
