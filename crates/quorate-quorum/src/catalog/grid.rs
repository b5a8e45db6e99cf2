//! A row and a column of a grid (Maekawa 1985; RR-2523, section 2.3.2, and its (k+1)-cube for k =
//! 1). The paper gives 2√n for effort and size; the crossing counts once, so it is 2√n − 1.

use super::FamilyError;
use super::brick::Brick;
use crate::rule::Rule;

/// Rows and columns as given, or a square.
pub fn grid(params: &[usize], nodes: Option<usize>) -> Result<Box<dyn Rule>, FamilyError> {
    let sides = match (params, nodes) {
        ([rows, columns], _) => [*rows, *columns],
        ([], Some(nodes)) if nodes.isqrt().pow(2) == nodes => [nodes.isqrt(); 2],
        ([], _) => {
            let problem = "a square number of nodes fits, or say rows and columns: grid:3,4";
            return Err(FamilyError::fit("grid", problem));
        }
        _ => return Err(FamilyError::fit("grid", "two numbers are expected: grid:3,4")),
    };
    super::agree("grid", nodes, sides[0] * sides[1])?;
    Ok(Brick::family(&sides))
}
