//! Arbiters that count instead of locking (labels spec 4.5 and 4.7).

use quorate_core::NodeSet;

use super::circuits::{Circuit, reduced_family};
use super::structure::{Groups, Structure};
use crate::{Effort, Explicit, TooLarge, fewest_apart};

/// The Hall semaphores: one counter per union of a circuit, with its capacity. A claim of h units
/// by group G takes h permits from every counter whose set contains G, in ascending order.
pub fn hall_semaphores(structure: &Structure, circuits: &[Circuit]) -> Vec<(Groups, u32)> {
    let family = reduced_family(structure, circuits);
    family.into_iter().map(|set| (set, structure.k(set))).collect()
}

/// Whether one family of quorums serves all groups, if every arbiter grants whatever keeps its own
/// grants a Hall vector.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HallArbiters {
    /// Any as many quorums as the largest circuit asks for have a common member.
    Safe,
    /// A circuit, and a quorum for each unit it asks for (the last one for all the rest), with no
    /// common member: every arbiter sees a part of the circuit, and grants it.
    Unsafe {
        /// What would be granted together.
        circuit: Circuit,
        /// Through these quorums.
        quorums: Vec<NodeSet>,
    },
}

/// Decides it: safe iff any cmax quorums meet. For one group that is the paper's k-arbiter.
pub fn hall_arbiters(
    circuits: &[Circuit],
    family: &Explicit,
    effort: &mut Effort<'_>,
) -> Result<HallArbiters, TooLarge> {
    let Some(largest) = circuits.iter().max_by_key(|circuit| circuit.size) else {
        return Ok(HallArbiters::Safe);
    };
    let apart = fewest_apart(family, largest.size as usize, effort)?;
    Ok(match apart {
        None => HallArbiters::Safe,
        Some(quorums) => HallArbiters::Unsafe { circuit: largest.clone(), quorums },
    })
}
