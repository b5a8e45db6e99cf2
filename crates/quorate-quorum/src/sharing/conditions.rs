//! The conditions C, C- and C+ decided by looking through all families of disjoint quorums.
//!
//! Arbiters that can be exchanged without changing any group's quorums (all those of a block, say)
//! are *twins*. Two families whose unions differ only by twins have the same future, so only one of
//! them is followed: that makes products of hundreds of quorums a matter of milliseconds.

use std::collections::{BTreeMap, BTreeSet};

use quorate_core::NodeSet;

use super::construction::Verdicts;
use super::structure::{Groups, Structure, members};
use crate::set::{SMALL, Set};
use crate::{Effort, TooLarge};

/// Steps it takes to join a quorum to others and to look whether they were seen before.
const REMEMBER: u64 = 16;

/// Why quorums cannot be examined. Nothing was built.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AssignmentError {
    /// A list of quorums for every group, and no other.
    #[error("{given} lists of quorums for {groups} groups")]
    Groups {
        /// Lists given.
        given: usize,
        /// Groups there are.
        groups: usize,
    },
    /// An arbiter beyond those that fit.
    #[error("arbiter {0}: quorums are examined for arbiters 0 to {max}", max = SMALL - 1)]
    Arbiter(u32),
    /// Too many quorums to write out.
    #[error("too many quorums to write out")]
    TooMany,
}

/// Quorums for every group, written out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assignment {
    quorums: Vec<Vec<u128>>,
    /// For every arbiter all its twins, itself included.
    twins: Vec<u128>,
}

/// A set of groups whose quorums are no k(S)-coterie, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failing {
    /// The set S.
    pub groups: Groups,
    /// Fewer than k(S) disjoint quorums that leave no room for another.
    pub stuck: Option<Vec<NodeSet>>,
    /// More than k(S) disjoint quorums.
    pub too_many: Option<Vec<NodeSet>>,
    /// A quorum inside another.
    pub inclusion: Option<(NodeSet, NodeSet)>,
    /// An empty quorum.
    pub empty: bool,
}

/// Disjoint quorums with the groups that locked them.
pub type Locked = Vec<(usize, NodeSet)>;

/// A group that cannot lock a quorum although the counts allow it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stuck {
    /// Who is stuck.
    pub group: usize,
    /// What is locked.
    pub locked: Locked,
}

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Examined {
    /// Every set of groups that breaks condition C.
    pub failing: Vec<Failing>,
    /// Disjoint quorums whose counts cannot be served. `None` is Hall-safe.
    pub unsafe_locks: Option<Locked>,
    /// A group that is stuck. `None` is Hall-complete.
    pub stuck: Option<Stuck>,
}

impl Examined {
    /// The three conditions.
    pub fn verdicts(&self) -> Verdicts {
        let broken = |failing: &Failing| {
            failing.stuck.is_some() || failing.too_many.is_some() || failing.empty
        };
        Verdicts {
            c: self.failing.is_empty(),
            c_minus: !self.failing.iter().any(broken),
            c_plus: self.unsafe_locks.is_none() && self.stuck.is_none(),
        }
    }
}

impl Assignment {
    /// These quorums, a list per group.
    ///
    /// # Errors
    /// Too few or too many lists, or an arbiter that does not fit.
    pub fn new(structure: &Structure, quorums: Vec<Vec<NodeSet>>) -> Result<Self, AssignmentError> {
        let groups = structure.groups().len();
        if quorums.len() != groups {
            return Err(AssignmentError::Groups { given: quorums.len(), groups });
        }
        let highest = quorums.iter().flatten().flat_map(NodeSet::iter).max();
        let arbiters = match highest {
            Some(far) if far.index() >= SMALL => return Err(AssignmentError::Arbiter(far.0)),
            Some(last) => last.index() + 1,
            None => 0,
        };
        let mut lists: Vec<Vec<u128>> =
            quorums.iter().map(|list| list.iter().map(u128::from_nodes).collect()).collect();
        for list in &mut lists {
            list.sort_unstable();
            list.dedup();
        }
        let twins = twins(&lists, arbiters);
        Ok(Assignment { quorums: lists, twins })
    }

    /// The quorums of every group.
    pub fn quorums(&self) -> impl Iterator<Item = Vec<NodeSet>> + '_ {
        self.quorums.iter().map(|list| list.iter().map(u128::to_nodes).collect())
    }

    /// How many arbiters there are.
    pub fn arbiters(&self) -> usize {
        self.twins.len()
    }

    /// Decides the conditions, with a counterexample for each that fails.
    pub fn examine(
        &self,
        structure: &Structure,
        effort: &mut Effort<'_>,
    ) -> Result<Examined, TooLarge> {
        let mut failing = Vec::new();
        for groups in structure.group_sets() {
            failing.extend(self.coterie(groups, structure.k(groups) as usize, effort)?);
        }
        let (unsafe_locks, stuck) = self.complete(structure, effort)?;
        Ok(Examined { failing, unsafe_locks, stuck })
    }

    /// What keeps the quorums of `groups` from being a k-coterie.
    fn coterie(
        &self,
        groups: Groups,
        k: usize,
        effort: &mut Effort<'_>,
    ) -> Result<Option<Failing>, TooLarge> {
        let mut sets: Vec<u128> =
            members(groups).flat_map(|group| self.quorums[group].iter().copied()).collect();
        sets.sort_unstable();
        sets.dedup();
        effort.spend((sets.len() * sets.len()) as u64 / 16)?;
        let inside =
            |one: &u128| sets.iter().find(|other| *one != **other && one & **other == *one);
        let inclusion =
            sets.iter().find_map(|one| inside(one).map(|other| (one.to_nodes(), other.to_nodes())));
        let mut failing =
            Failing { groups, stuck: None, too_many: None, inclusion, empty: sets.contains(&0) };
        let mut layer: Vec<(u128, Vec<u128>)> = vec![(0, Vec::new())];
        for count in 0..=k {
            let mut seen = BTreeSet::new();
            let mut next = Vec::new();
            for (union, chosen) in &layer {
                effort.spend(REMEMBER * sets.len() as u64)?;
                let mut free = false;
                for set in sets.iter().filter(|set| *set & union == 0 && !chosen.contains(set)) {
                    free = true;
                    if seen.insert(self.canonical(union | set)) {
                        next.push((union | set, chosen.iter().copied().chain([*set]).collect()));
                    }
                }
                if !free && count < k && failing.stuck.is_none() {
                    failing.stuck = Some(chosen.iter().map(u128::to_nodes).collect());
                }
            }
            layer = next;
        }
        failing.too_many =
            layer.first().map(|(_, chosen)| chosen.iter().map(u128::to_nodes).collect());
        let fails = failing.stuck.is_some()
            || failing.too_many.is_some()
            || failing.inclusion.is_some()
            || failing.empty;
        Ok(fails.then_some(failing))
    }

    /// Follows every family of disjoint quorums with the groups that lock them, as long as its
    /// counts can be served.
    fn complete(
        &self,
        structure: &Structure,
        effort: &mut Effort<'_>,
    ) -> Result<(Option<Locked>, Option<Stuck>), TooLarge> {
        let total: usize = self.quorums.iter().map(Vec::len).sum();
        let (mut unsafe_locks, mut stuck) = (None, None);
        let mut seen = BTreeSet::new();
        // Many families have the same counts, and each question costs a look at every set of
        // groups.
        let mut halls: BTreeMap<Vec<u32>, bool> = BTreeMap::new();
        let hall_cost = u64::from(structure.everyone()) / 2;
        // The union of what is locked, how many quorums each group has, and which.
        let mut open = vec![(0, vec![0u32; self.quorums.len()], Vec::<(usize, u128)>::new())];
        let show = |locked: &[(usize, u128)]| -> Locked {
            locked.iter().map(|(group, set)| (*group, set.to_nodes())).collect()
        };
        while let Some((union, counts, locked)) = open.pop() {
            effort.spend(REMEMBER * total as u64)?;
            for (group, quorums) in self.quorums.iter().enumerate() {
                let mut more = counts.clone();
                more[group] += 1;
                let hall = match halls.get(&more) {
                    Some(hall) => *hall,
                    None => {
                        effort.spend(hall_cost)?;
                        let hall = structure.is_hall(&more);
                        halls.insert(more.clone(), hall);
                        hall
                    }
                };
                let mut free = false;
                for set in quorums.iter().filter(|set| *set & union == 0) {
                    if locked.iter().any(|(_, other)| other == set) {
                        continue; // The empty quorum, once.
                    }
                    free = true;
                    let larger = || {
                        let mut locked = locked.clone();
                        locked.push((group, *set));
                        locked
                    };
                    if !hall {
                        unsafe_locks.get_or_insert_with(|| show(&larger()));
                    } else if seen.insert((self.canonical(union | set), more.clone())) {
                        open.push((union | set, more.clone(), larger()));
                    }
                }
                if hall && !free && stuck.is_none() {
                    stuck = Some(Stuck { group, locked: show(&locked) });
                }
            }
        }
        Ok((unsafe_locks, stuck))
    }

    /// The same for all unions that differ by twins only: of every class of twins the lowest.
    fn canonical(&self, union: u128) -> u128 {
        let mut canonical = 0;
        let mut left = union;
        while left != 0 {
            let class = self.twins[left.trailing_zeros() as usize];
            let mut used = (union & class).count_ones();
            left &= !class;
            let mut places = class;
            while used > 0 {
                canonical |= places & places.wrapping_neg();
                places &= places - 1;
                used -= 1;
            }
        }
        canonical
    }
}

/// Which arbiters can be exchanged. Only the first of a class is compared: exchanges compose.
fn twins(quorums: &[Vec<u128>], arbiters: usize) -> Vec<u128> {
    let mut classes: Vec<u128> = Vec::new();
    for arbiter in 0..arbiters {
        let same = |class: &&mut u128| {
            let first = class.trailing_zeros() as usize;
            quorums.iter().all(|list| {
                let exchanged = |set: &u128| {
                    let differ = (set >> first ^ set >> arbiter) & 1;
                    set ^ (differ << first | differ << arbiter)
                };
                list.iter().all(|set| list.binary_search(&exchanged(set)).is_ok())
            })
        };
        match classes.iter_mut().find(same) {
            Some(class) => *class |= 1 << arbiter,
            None => classes.push(1 << arbiter),
        }
    }
    (0..arbiters)
        .map(|arbiter| *classes.iter().find(|c| **c >> arbiter & 1 == 1).expect("each is in one"))
        .collect()
}
