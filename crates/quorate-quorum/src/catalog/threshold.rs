//! Quorums by request size: the idea is Manabe and Tajima's (h-out-of-k, a family per h); the sizes
//! q_h = n − ⌊h(n−1)/(k+h)⌋ are ours. What a conflicting set of requests leaves out together is
//! less than everything: h_i/(k+h_i) <= h_i/(k+min h), and these add up to at most 1 over a minimal
//! conflict. The obvious ⌊(n−1)/(⌊k/h⌋+1)⌋ is right for equal sizes and unsafe for mixed ones (see
//! [`crate::requests`]).

use super::FamilyError;
use crate::{Expr, Formula, requests};

/// The family of requests for h units; h is the first parameter, 1 if there is none.
pub fn threshold(params: &[usize], nodes: usize, units: usize) -> Result<Formula, FamilyError> {
    let claim = params.first().copied().unwrap_or(1);
    if params.len() > 1 || claim > units {
        let problem = format!("one request size from 1 to {units} is expected: threshold:1");
        return Err(FamilyError::fit("threshold", problem));
    }
    let size = requests::quorum_size(nodes, units, claim);
    Ok(Formula::new(nodes, Expr::threshold(size, 0, nodes)))
}
