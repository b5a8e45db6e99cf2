//! The only file that names the linear-program crate.
//!
//! microlp disclaims guaranteed optimality and gives no dual values, so nothing here is believed:
//! the callers solve the dual as a second program and recompute both objectives from the solutions.

use microlp::{ComparisonOp, OptimizationDirection, Problem};

/// Maximise the sum of the variables, each constraint (a set of variables) at most its limit.
/// Returns the variables, clipped to be non-negative.
pub(crate) fn pack(variables: usize, constraints: &[(Vec<usize>, f64)]) -> Option<Vec<f64>> {
    let mut problem = Problem::new(OptimizationDirection::Maximize);
    let vars: Vec<_> = (0..variables).map(|_| problem.add_var(1.0, (0.0, f64::INFINITY))).collect();
    for (members, limit) in constraints {
        let row: Vec<_> = members.iter().map(|index| (vars[*index], 1.0)).collect();
        problem.add_constraint(row.as_slice(), ComparisonOp::Le, *limit);
    }
    let solution = problem.solve().ok()?.into_solution().ok()?;
    Some(vars.iter().map(|var| solution.var_value(*var).max(0.0)).collect())
}

/// Minimise the weighted sum of the variables, each constraint (a set of variables) summing to at
/// least one.
pub(crate) fn cover(costs: &[f64], constraints: &[Vec<usize>]) -> Option<Vec<f64>> {
    let mut problem = Problem::new(OptimizationDirection::Minimize);
    let vars: Vec<_> = costs.iter().map(|c| problem.add_var(*c, (0.0, f64::INFINITY))).collect();
    for members in constraints {
        let row: Vec<_> = members.iter().map(|index| (vars[*index], 1.0)).collect();
        problem.add_constraint(row.as_slice(), ComparisonOp::Ge, 1.0);
    }
    let solution = problem.solve().ok()?.into_solution().ok()?;
    Some(vars.iter().map(|var| solution.var_value(*var).max(0.0)).collect())
}

/// Minimise `costs`·x subject to rows·x <= limits, x >= 0 and the sum of x equal to one.
pub(crate) fn mix(costs: &[f64], rows: &[(Vec<(usize, f64)>, f64)]) -> Option<Vec<f64>> {
    let mut problem = Problem::new(OptimizationDirection::Minimize);
    let vars: Vec<_> = costs.iter().map(|c| problem.add_var(*c, (0.0, 1.0))).collect();
    for (members, limit) in rows {
        let row: Vec<_> = members.iter().map(|(index, factor)| (vars[*index], *factor)).collect();
        problem.add_constraint(row.as_slice(), ComparisonOp::Le, *limit);
    }
    let one: Vec<_> = vars.iter().map(|var| (*var, 1.0)).collect();
    problem.add_constraint(one.as_slice(), ComparisonOp::Eq, 1.0);
    let solution = problem.solve().ok()?.into_solution().ok()?;
    Some(vars.iter().map(|var| solution.var_value(*var).max(0.0)).collect())
}
