//! Lines of a finite projective plane: Maekawa's coterie (1985; RR-2523, section 2.3.1). n = q²+q+1
//! nodes, quorums of q+1, one of the smallest coteries in which all nodes do the same work. The
//! paper says that planes exist *only if* q is a prime power, which is open, and that the coterie
//! is non-dominated, which is true for q = 2 only; see [`super::Space`] for the witness.

use super::FamilyError;
use super::space::{Space, points};

/// The plane of the order given, or of the order that fits the nodes.
pub fn plane(params: &[usize], nodes: Option<usize>) -> Result<Space, FamilyError> {
    let order = match (params, nodes) {
        ([order], _) => *order,
        ([], Some(nodes)) => {
            let order = (2..nodes.max(3)).find(|q| points(2, *q) >= Some(nodes));
            order.filter(|q| points(2, *q) == Some(nodes)).ok_or_else(|| {
                FamilyError::fit("plane", "it has 7, 13, 21, 31, 57, 73, 91, 133, … nodes")
            })?
        }
        _ => return Err(FamilyError::fit("plane", "one number is expected, the order: plane:2")),
    };
    let plane = Space::new(2, order).map_err(|error| match error {
        FamilyError::Fit { problem, .. } => FamilyError::fit("plane", problem),
        other => other,
    })?;
    super::agree("plane", nodes, points(2, order).expect("the plane was built"))?;
    Ok(plane)
}
