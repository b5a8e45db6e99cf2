//! Constructions: which arbiters there are, and whose permission a group needs.

use super::circuits::{Circuit, hall_exact, reduced_family, tight_sets};
use super::conditions::{Assignment, AssignmentError};
use super::structure::{Groups, Structure};
use crate::{Natural, nodes_of};

/// How to make quorums for every group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Construction {
    /// The paper's: a block for every set of groups.
    Product,
    /// A block for every facet.
    Tight,
    /// A block for every union of a circuit: the fewest.
    Reduced,
    /// The same, and a private block where quorums of one group would contain those of another.
    ReducedPrivate,
    /// One arbiter per unit.
    Named,
}

impl Construction {
    /// All of them.
    pub const ALL: [Construction; 5] = [
        Construction::Product,
        Construction::Tight,
        Construction::Reduced,
        Construction::ReducedPrivate,
        Construction::Named,
    ];
}

/// The blocks of a product: each a k(F)-coterie on arbiters of its own, here k(F) single ones, the
/// fewest. A quorum of group G joins one of every block whose set F contains G.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blocks {
    /// The sets of groups, ascending.
    pub family: Vec<Groups>,
    /// How many arbiters each block has: k(F).
    pub sizes: Vec<u32>,
}

/// What a construction takes and gives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blueprint {
    /// Which construction.
    pub construction: Construction,
    /// Its blocks; none for the named sum, whose blocks are the units.
    pub blocks: Option<Blocks>,
    /// How many arbiters it needs.
    pub arbiters: u64,
    /// Members of a quorum, group by group.
    pub quorum_size: Vec<u32>,
    /// Number of quorums, group by group.
    pub quorum_count: Vec<Natural>,
    /// What holds.
    pub verdicts: Verdicts,
}

/// The three conditions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verdicts {
    /// Condition C: for every set S of groups the quorums of S form a k(S)-coterie.
    pub c: bool,
    /// C without minimality, which nothing needs.
    pub c_minus: bool,
    /// C+, Hall-complete: a group can lock a quorum exactly when the counts allow it.
    pub c_plus: bool,
}

/// Carries out a construction. The verdicts follow from theorem B for products and from 4.2 for the
/// named sum; [`Assignment::examine`] decides them by looking through all families of disjoint
/// quorums.
pub fn plan(structure: &Structure, construction: Construction, circuits: &[Circuit]) -> Blueprint {
    let family = match construction {
        Construction::Named => return named(structure),
        Construction::Product => structure.group_sets().collect(),
        Construction::Tight => tight_sets(structure),
        Construction::Reduced => reduced_family(structure, circuits),
        Construction::ReducedPrivate => {
            let mut family = reduced_family(structure, circuits);
            let private = contained(structure, &family).map(|group| 1 << group);
            let private: Vec<Groups> = private.collect();
            family.extend(private);
            family.sort_unstable();
            family
        }
    };
    let exact = hall_exact(structure, &family, circuits).is_none();
    let minimal = contained(structure, &family).next().is_none();
    let sizes: Vec<u32> = family.iter().map(|set| structure.k(*set)).collect();
    let of = |group: usize| {
        let with = move |(set, _): &(&Groups, &u32)| **set >> group & 1 == 1;
        family.iter().zip(&sizes).filter(with).map(|(_, size)| *size)
    };
    let groups = 0..structure.groups().len();
    Blueprint {
        construction,
        arbiters: sizes.iter().map(|size| u64::from(*size)).sum(),
        quorum_size: groups.clone().map(|group| of(group).count() as u32).collect(),
        quorum_count: groups
            .map(|group| {
                of(group)
                    .fold(Natural::one(), |count, size| count.times(&Natural::from(size as usize)))
            })
            .collect(),
        verdicts: Verdicts { c: exact && minimal, c_minus: exact, c_plus: exact },
        blocks: Some(Blocks { family, sizes }),
    }
}

fn named(structure: &Structure) -> Blueprint {
    let groups = structure.groups();
    Blueprint {
        construction: Construction::Named,
        blocks: None,
        arbiters: u64::from(structure.k(structure.everyone())),
        quorum_size: vec![1; groups.len()],
        quorum_count: groups
            .iter()
            .map(|group| Natural::from(group.alpha.count_ones() as usize))
            .collect(),
        verdicts: Verdicts { c: true, c_minus: true, c_plus: structure.shape().disjoint },
    }
}

/// Groups whose blocks are all blocks of another group as well: their quorums lie inside quorums of
/// that group, or are the same.
fn contained(structure: &Structure, family: &[Groups]) -> impl Iterator<Item = usize> {
    let blocks = |group: usize| family.iter().map(move |set| set >> group & 1 == 1);
    let count = structure.groups().len();
    (0..count).filter(move |one| {
        (0..count).any(|other| {
            other != *one && blocks(*one).zip(blocks(other)).all(|(mine, theirs)| !mine || theirs)
        })
    })
}

impl Blueprint {
    /// The quorums written out, if no group has more than `most`.
    ///
    /// # Errors
    /// There are more, or more arbiters than fit.
    pub fn quorums(&self, structure: &Structure, most: u64) -> Result<Assignment, AssignmentError> {
        let few = |count: &Natural| count.to_u64().is_some_and(|count| count <= most);
        if !self.quorum_count.iter().all(few) {
            return Err(AssignmentError::TooMany);
        }
        let Some(blocks) = &self.blocks else {
            let used = structure.union(structure.everyone());
            let arbiter = |unit: u32| (used & ((1 << unit) - 1)).count_ones() as usize;
            let quorums = structure.groups().iter().map(|group| {
                let units = (0..u128::BITS).filter(|unit| group.alpha >> unit & 1 == 1);
                units.map(|unit| nodes_of([arbiter(unit)])).collect()
            });
            return Assignment::new(structure, quorums.collect());
        };
        let mut first = 0;
        let mut starts = Vec::with_capacity(blocks.sizes.len());
        for size in &blocks.sizes {
            starts.push(first);
            first += *size as usize;
        }
        let quorums = (0..structure.groups().len()).map(|group| {
            let mut lists: Vec<Vec<usize>> = vec![Vec::new()];
            for (block, set) in blocks.family.iter().enumerate() {
                if set >> group & 1 == 1 {
                    let arbiters = starts[block]..starts[block] + blocks.sizes[block] as usize;
                    let join = |list: Vec<usize>| {
                        let join = move |arbiter| list.iter().copied().chain([arbiter]).collect();
                        arbiters.clone().map(join)
                    };
                    lists = lists.into_iter().flat_map(join).collect();
                }
            }
            lists.into_iter().map(nodes_of).collect()
        });
        Assignment::new(structure, quorums.collect())
    }

    /// How many blocks there are; a unit is a block of the named sum.
    pub fn block_count(&self) -> u64 {
        self.blocks.as_ref().map_or(self.arbiters, |blocks| blocks.family.len() as u64)
    }
}
