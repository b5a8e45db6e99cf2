//! Walls: a full row and, in every lower row, a quorum of the uniform (k−1)-arbiter of that row.
//! For k = 1 these are the crumbling walls of Peleg and Wool (1997). k+1 quorums meet: the k others
//! all reach into the lowest full row, where k quorums of a (k−1)-arbiter have a common node.
//! Minimal by construction here; dominated in general for k >= 2.

use super::layers::Layers;
use super::{FamilyError, uniform_size};

/// Rows from top to bottom; if none are given 1, k+1, 2k+1, … nodes, the rest in the last row
/// (widths ≡ 1 mod k make each row's arbiter non-dominated).
pub fn wall(params: &[usize], nodes: Option<usize>, units: usize) -> Result<Layers, FamilyError> {
    let widths = match (params, nodes) {
        ([], Some(nodes)) => wall_widths(nodes, units),
        ([], None) => return Err(FamilyError::fit("wall", "say how many nodes there are")),
        (widths, _) => widths.to_vec(),
    };
    super::agree("wall", nodes, widths.iter().sum())?;
    let support = |width: usize| if units == 1 { 1 } else { uniform_size(width, units - 1) };
    Ok(Layers::new(&widths, |_, width| (width, support(width))))
}

/// The rows of a wall of which only the number of nodes is given.
pub fn wall_widths(nodes: usize, units: usize) -> Vec<usize> {
    let mut widths = Vec::new();
    let (mut left, mut next) = (nodes, 1);
    while left >= next + next + units {
        widths.push(next);
        left -= next;
        next += units;
    }
    widths.push(left);
    widths
}
