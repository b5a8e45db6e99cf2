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

/// The largest sum of non-negative variables with every weighted row at most one, proved by its
/// dual (prices of the rows) to nine digits; `None` if the solver cannot prove it.
pub(crate) fn packing(variables: usize, rows: &[Vec<(usize, f64)>]) -> Option<f64> {
    let mut problem = Problem::new(OptimizationDirection::Maximize);
    let vars: Vec<_> = (0..variables).map(|_| problem.add_var(1.0, (0.0, f64::INFINITY))).collect();
    for row in rows {
        let row: Vec<_> = row.iter().map(|(index, factor)| (vars[*index], *factor)).collect();
        problem.add_constraint(row.as_slice(), ComparisonOp::Le, 1.0);
    }
    let solution = problem.solve().ok()?.into_solution().ok()?;
    let rates: Vec<f64> = vars.iter().map(|var| solution.var_value(*var).max(0.0)).collect();
    let busiest = rows.iter().map(|row| row.iter().map(|(i, f)| f * rates[*i]).sum::<f64>());
    let least = rates.iter().sum::<f64>() / busiest.fold(0.0, f64::max);

    let mut dual = Problem::new(OptimizationDirection::Minimize);
    let prices: Vec<_> = rows.iter().map(|_| dual.add_var(1.0, (0.0, f64::INFINITY))).collect();
    let mut columns = vec![Vec::new(); variables];
    for (row, price) in rows.iter().zip(&prices) {
        for (index, factor) in row {
            columns[*index].push((*price, *factor));
        }
    }
    for column in &columns {
        dual.add_constraint(column.as_slice(), ComparisonOp::Ge, 1.0);
    }
    let solution = dual.solve().ok()?.into_solution().ok()?;
    let price = |var| f64::max(solution.var_value(var), 0.0);
    let cheapest = columns.iter().map(|c| c.iter().map(|(v, f)| f * price(*v)).sum::<f64>());
    let most =
        prices.iter().map(|var| price(*var)).sum::<f64>() / cheapest.fold(f64::MAX, f64::min);
    (most - least <= 1e-9 * most).then_some(least)
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
