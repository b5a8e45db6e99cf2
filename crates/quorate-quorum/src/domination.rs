//! Is there a better family? RR-2523, theorem 4.5, corrected.
//!
//! A k-arbiter C is dominated iff some H contains no quorum of C (the paper prints the inclusion
//! the other way round) and meets the intersection of any k quorums, repetition allowed. Up to 22
//! nodes the [`Table`] decides and gives a smallest H. Beyond, sets are proposed by a SAT solver
//! (`proposals.rs`).

use quorate_core::NodeSet;

use crate::explicit::minimal;
use crate::intersect::emptying;
use crate::proposals;
use crate::set::{SMALL, Set};
use crate::table::Table;
use crate::{Effort, Explicit, TooLarge};

/// What is known about domination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Domination {
    /// No k-arbiter is better.
    Nondominated,
    /// Adding this set, and dropping its supersets, gives a better one.
    Dominated(NodeSet),
}

impl Domination {
    /// The witness, if dominated.
    pub fn witness(&self) -> Option<&NodeSet> {
        match self {
            Domination::Nondominated => None,
            Domination::Dominated(witness) => Some(witness),
        }
    }
}

/// Decides whether the family, taken as a `units`-arbiter, is dominated. The caller has made sure
/// that any `units` + 1 quorums meet.
pub fn domination(
    family: &Explicit,
    units: usize,
    effort: &mut Effort<'_>,
) -> Result<Domination, TooLarge> {
    let decided = if family.nodes() <= Table::NODES_MAX {
        let witness = Table::new(family).dominating_witness(units, effort)?;
        witness.map_or(Domination::Nondominated, Domination::Dominated)
    } else if family.nodes() <= SMALL {
        proposals::decide::<u128>(family, units, effort)?
    } else {
        proposals::decide::<NodeSet>(family, units, effort)?
    };
    if let (Domination::Dominated(witness), true) = (&decided, family.quorums().len() <= 1000) {
        let mut check = Effort::default();
        assert!(
            is_witness(family, units, witness, &mut check) != Ok(false),
            "a witness is verified before it is shown"
        );
    }
    Ok(decided)
}

/// Whether `witness` contains no quorum and meets every intersection of `units` quorums.
pub fn is_witness(
    family: &Explicit,
    units: usize,
    witness: &NodeSet,
    effort: &mut Effort<'_>,
) -> Result<bool, TooLarge> {
    if family.contains_quorum(witness) {
        return Ok(false);
    }
    let missed = if family.nodes() <= SMALL {
        let sets = minimal(family.sets::<u128>());
        emptying(&u128::from_nodes(witness), &sets, units, effort)?.is_some()
    } else {
        emptying(witness, &minimal(family.sets::<NodeSet>()), units, effort)?.is_some()
    };
    Ok(!missed)
}
