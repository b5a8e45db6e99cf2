//! Circuits: the smallest counts that cannot be served, and the families of group sets that tell
//! them from the counts that can (labels spec 4.3).

use std::collections::{BTreeMap, BTreeSet};

use super::structure::{Groups, Structure, UnitSet, members};
use crate::{Effort, TooLarge};

/// A minimal infeasible vector of counts: as it stands it cannot be served, one less of anything in
/// it can.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Circuit {
    /// Units asked for by each group.
    pub counts: Vec<u32>,
    /// The groups that ask for something.
    pub support: Groups,
    /// Units asked for in all: one more than the groups of the support may use.
    pub size: u32,
}

/// All circuits.
///
/// A vector on a support S is one iff it asks for k(S)+1 and no proper part of S asks for more than
/// it may use: the set that is violated contains the support, or else a smaller vector would be
/// infeasible.
pub fn circuits(structure: &Structure, effort: &mut Effort<'_>) -> Result<Vec<Circuit>, TooLarge> {
    let mut found = Vec::new();
    for support in structure.group_sets() {
        let groups: Vec<usize> = members(support).collect();
        let size = structure.k(support) + 1;
        if groups.len() as u32 > size || !structure.is_connected(support) {
            continue;
        }
        let mut search = Search { structure, groups: &groups, size, found: &mut found };
        search.extend(&mut vec![0; groups.len()], &[(0, 0)], 0, effort)?;
    }
    Ok(found)
}

struct Search<'a> {
    structure: &'a Structure,
    groups: &'a [usize],
    size: u32,
    found: &'a mut Vec<Circuit>,
}

impl Search<'_> {
    /// Gives a count to one more group. `parts`: every part of the groups that have one, with what
    /// it asks for.
    fn extend(
        &mut self,
        counts: &mut Vec<u32>,
        parts: &[(Groups, u32)],
        at: usize,
        effort: &mut Effort<'_>,
    ) -> Result<(), TooLarge> {
        effort.spend(parts.len() as u64)?;
        let asked: u32 = counts[..at].iter().sum();
        let last = at + 1 == self.groups.len();
        let bit = 1 << self.groups[at];
        // What is still left for this group, so that every part stays feasible.
        let room = parts
            .iter()
            .filter(|(part, _)| !last || part.count_ones() as usize != at)
            .map(|(part, asks)| self.structure.k(part | bit).saturating_sub(*asks))
            .min()
            .unwrap_or(u32::MAX);
        let (least, most) = if last {
            (self.size - asked, self.size - asked)
        } else {
            (1, (self.size - asked).saturating_sub((self.groups.len() - at - 1) as u32))
        };
        for count in least.max(1)..=most.min(room) {
            counts[at] = count;
            if last {
                self.found.push(self.circuit(counts));
                continue;
            }
            let with = parts.iter().map(|(part, asks)| (part | bit, asks + count));
            let larger: Vec<(Groups, u32)> = parts.iter().copied().chain(with).collect();
            self.extend(counts, &larger, at + 1, effort)?;
        }
        Ok(())
    }

    fn circuit(&self, counts: &[u32]) -> Circuit {
        let mut all = vec![0; self.structure.groups().len()];
        let mut support = 0;
        for (group, count) in self.groups.iter().zip(counts) {
            all[*group] = *count;
            support |= 1 << group;
        }
        Circuit { counts: all, support, size: self.size }
    }
}

/// One block per distinct union of a circuit, made of all supports with that union: the fewest
/// blocks that make a product Hall-complete (theorem C).
pub fn reduced_family(structure: &Structure, circuits: &[Circuit]) -> Vec<Groups> {
    let mut by_union: BTreeMap<UnitSet, Groups> = BTreeMap::new();
    for circuit in circuits {
        *by_union.entry(structure.union(circuit.support)).or_default() |= circuit.support;
    }
    let mut family: Vec<Groups> = by_union.into_values().collect();
    family.sort_unstable();
    family
}

/// One set per distinct union: all groups inside it.
pub fn closed_sets(structure: &Structure) -> Vec<Groups> {
    let unions: BTreeSet<UnitSet> = structure.group_sets().map(|s| structure.union(s)).collect();
    let mut closed: Vec<Groups> = unions
        .into_iter()
        .map(|union| {
            (0..structure.groups().len())
                .filter(|group| structure.groups()[*group].alpha & !union == 0)
                .fold(0, |set, group| set | 1 << group)
        })
        .collect();
    closed.sort_unstable();
    closed
}

/// The closed sets that do not fall apart: the facets of the polymatroid (Edmonds).
pub fn tight_sets(structure: &Structure) -> Vec<Groups> {
    let closed = closed_sets(structure);
    closed.into_iter().filter(|set| structure.is_connected(*set)).collect()
}

/// The first circuit that a family of group sets lets through: no set of the family asks for more
/// than it may use, yet the counts cannot be served. `None` is a proof that the family's
/// inequalities have the same solutions as Hall's.
///
/// A circuit asks a set F for more than k(F) iff F contains its support and may use no more than it
/// (proof of theorem C), so circuits with the same support stand or fall together.
pub fn hall_exact<'c>(
    structure: &Structure,
    family: &[Groups],
    circuits: &'c [Circuit],
) -> Option<&'c Circuit> {
    let mut stopped = BTreeSet::new();
    circuits.iter().find(|circuit| {
        let support = circuit.support;
        if stopped.contains(&support) {
            return false;
        }
        let stops =
            |set: &Groups| set & support == support && structure.k(*set) == structure.k(support);
        if !family.contains(&support) && !family.iter().any(stops) {
            return true;
        }
        stopped.insert(support);
        false
    })
}
