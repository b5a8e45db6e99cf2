//! Cohorts (Huang, Jiang, Kuo 1993; Jiang, Huang, Kuo 1997), a k-coterie: disjoint cohorts C_1, …,
//! C_m, the first of k nodes, every other of more than 2k−2 (more than 1 if k = 1). A quorum takes
//! all but k−1 nodes of one cohort and one node of every later cohort. Stated here in other words
//! than the papers'; tests check the k-coterie property.

use super::FamilyError;
use super::layers::Layers;

/// The cohorts given, or k nodes and then cohorts of 2k−1 (2 if k = 1), the rest in the last one.
pub fn cohorts(
    params: &[usize],
    nodes: Option<usize>,
    units: usize,
) -> Result<Layers, FamilyError> {
    let least = (2 * units - 1).max(2);
    let widths = match (params, nodes) {
        ([], Some(nodes)) => cohort_widths(nodes, units).ok_or_else(|| {
            let problem = format!("{units} units need at least {units} nodes, not {nodes}");
            FamilyError::fit("cohorts", problem)
        })?,
        ([], None) => return Err(FamilyError::fit("cohorts", "say how many nodes there are")),
        (widths, _) => widths.to_vec(),
    };
    if widths[0] != units || widths[1..].iter().any(|width| *width < least) {
        let problem = format!("the first must have {units} nodes, every other at least {least}");
        return Err(FamilyError::fit("cohorts", problem));
    }
    let named: usize = widths.iter().sum();
    if params.is_empty() {
        // Nodes left over between one cohort and two stay outside.
        return Ok(rows(&widths, units).padded(nodes.unwrap_or(named)));
    }
    super::agree("cohorts", nodes, named)?;
    Ok(rows(&widths, units))
}

fn rows(widths: &[usize], units: usize) -> Layers {
    Layers::new(widths, |_, width| (width - (units - 1), 1))
}

/// The cohorts of which only the number of nodes is given; `None` if there are fewer nodes than
/// units.
pub fn cohort_widths(nodes: usize, units: usize) -> Option<Vec<usize>> {
    let least = (2 * units - 1).max(2);
    let mut left = nodes.checked_sub(units)?;
    let mut widths = vec![units];
    while left >= least {
        let width = if left >= 2 * least { least } else { left };
        widths.push(width);
        left -= width;
    }
    Some(widths)
}
