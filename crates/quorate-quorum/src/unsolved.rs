//! In place of `solver` and `proposals` where the solvers are left out, as in a node, which shows
//! bounds of what the laboratory computes.

use crate::set::Set;
use crate::{Domination, Effort, Explicit, TooLarge};

/// No strategy but the even one is known.
pub(crate) fn pack(_variables: usize, _constraints: &[(Vec<usize>, f64)]) -> Option<Vec<f64>> {
    None
}

/// No prices but the even ones are known.
pub(crate) fn cover(_costs: &[f64], _constraints: &[Vec<usize>]) -> Option<Vec<f64>> {
    None
}

/// No strategy is known.
pub(crate) fn mix(_costs: &[f64], _rows: &[(Vec<(usize, f64)>, f64)]) -> Option<Vec<f64>> {
    None
}

/// Too large to be decided without a solver.
pub(crate) fn decide<S: Set>(
    _family: &Explicit,
    _units: usize,
    effort: &mut Effort<'_>,
) -> Result<Domination, TooLarge> {
    Err(TooLarge { limit: effort.limit() })
}
