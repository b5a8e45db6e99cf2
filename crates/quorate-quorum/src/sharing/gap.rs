//! The gap between counts and concrete units (labels spec 5), and the corrected theorem 1.

use std::collections::BTreeMap;

use super::demands::most_holders;
use super::structure::Structure;
use crate::{Effort, TooLarge};

/// Whether an allocator that names units when it grants and never moves a holder can serve every
/// request that counts admit, if each group may ask as often as it likes (theorem D).
pub fn never_moving_suffices(structure: &Structure) -> bool {
    structure.shape().disjoint
}

/// The same if each process holds at most one unit: a game between requests and the allocator,
/// solved by taking away positions from which the allocator can be forced into a corner.
///
/// Two cases need no game: different alphas that are disjoint, and as many units as processes, each
/// of which gets its own.
pub fn never_moving_suffices_for_each(
    structure: &Structure,
    effort: &mut Effort<'_>,
) -> Result<bool, TooLarge> {
    let processes = structure.processes().len();
    let everyone: Vec<usize> = (0..processes).collect();
    if structure.shape().disjoint || most_holders(structure, &everyone) as usize == processes {
        return Ok(true);
    }
    let mut game = Game { structure, positions: BTreeMap::new(), lost: Vec::new() };
    game.explore(effort)?;
    game.solve(effort)
}

/// A position: the unit of every process, or none.
type Position = Vec<Option<u8>>;

struct Game<'a> {
    structure: &'a Structure,
    positions: BTreeMap<Position, usize>,
    lost: Vec<bool>,
}

impl Game<'_> {
    fn explore(&mut self, effort: &mut Effort<'_>) -> Result<(), TooLarge> {
        let start = vec![None; self.structure.processes().len()];
        let mut open = vec![start.clone()];
        self.positions.insert(start, 0);
        while let Some(position) = open.pop() {
            effort.spend(position.len() as u64 * 4)?;
            for process in 0..position.len() {
                for next in self.grants(&position, process) {
                    if !self.positions.contains_key(&next) {
                        self.positions.insert(next.clone(), self.positions.len());
                        open.push(next);
                    }
                }
            }
        }
        self.lost = vec![false; self.positions.len()];
        Ok(())
    }

    /// Where a request of `process` can lead; nowhere if it holds a unit or finds none free.
    fn grants(&self, position: &Position, process: usize) -> Vec<Position> {
        if position[process].is_some() {
            return Vec::new();
        }
        let taken = position.iter().flatten().fold(0u128, |taken, unit| taken | 1 << unit);
        let free = self.structure.alpha(process) & !taken;
        let units = (0..u128::BITS as u8).filter(|unit| free >> unit & 1 == 1);
        units
            .map(|unit| {
                let mut next = position.clone();
                next[process] = Some(unit);
                next
            })
            .collect()
    }

    fn admissible(&self, position: &Position, process: usize) -> bool {
        let mut holders: Vec<usize> =
            (0..position.len()).filter(|holder| position[*holder].is_some()).collect();
        holders.push(process);
        most_holders(self.structure, &holders) as usize == holders.len()
    }

    fn solve(&mut self, effort: &mut Effort<'_>) -> Result<bool, TooLarge> {
        loop {
            let mut changed = false;
            for (position, &index) in &self.positions {
                effort.spend(position.len() as u64 * 8)?;
                if !self.lost[index] && self.is_cornered(position) {
                    self.lost[index] = true;
                    changed = true;
                }
            }
            if !changed {
                let start = vec![None; self.structure.processes().len()];
                return Ok(!self.lost[self.positions[&start]]);
            }
        }
    }

    /// Whether a release leads to a lost position, or a request that counts admit to nothing else.
    fn is_cornered(&self, position: &Position) -> bool {
        (0..position.len()).any(|process| {
            if position[process].is_some() {
                let mut after = position.clone();
                after[process] = None;
                return self.lost[self.positions[&after]];
            }
            let mut ways = self.grants(position, process).into_iter();
            ways.all(|next| self.lost[self.positions[&next]]) && self.admissible(position, process)
        })
    }
}

/// Whether all processes can use the same quorums if each holds at most one unit: theorem 1 of the
/// paper, corrected. It needs every set of processes that outnumbers its units to have as many of
/// them as can be held at all.
pub fn common_quorums_suffice(structure: &Structure) -> bool {
    let everyone: Vec<usize> = (0..structure.processes().len()).collect();
    let most = most_holders(structure, &everyone);
    structure.group_sets().all(|s| {
        let members: usize =
            super::structure::members(s).map(|group| structure.groups()[group].members.len()).sum();
        members <= structure.k(s) as usize || structure.k(s) >= most
    })
}
