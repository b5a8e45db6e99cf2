//! What a set of processes can hold at once: matchings, and flows when one asks for several units.

use super::structure::{Structure, UnitSet};

/// So many of these units, all or nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Demand {
    /// The units that will do.
    pub alpha: UnitSet,
    /// How many.
    pub units: u32,
}

/// Most units that can be handed out to these demands together, at most what each asks for: unit
/// after unit, each found a place by an augmenting path.
pub fn max_flow(demands: &[Demand]) -> u32 {
    let mut owner = [None; Structure::UNITS_MAX];
    let mut flow = 0;
    for (index, demand) in demands.iter().enumerate() {
        for _ in 0..demand.units {
            if !place(demands, index, &mut owner, &mut 0) {
                break;
            }
            flow += 1;
        }
    }
    flow
}

fn place(
    demands: &[Demand],
    index: usize,
    owner: &mut [Option<usize>; Structure::UNITS_MAX],
    seen: &mut UnitSet,
) -> bool {
    let mut left = demands[index].alpha & !*seen;
    while left != 0 {
        let unit = left.trailing_zeros() as usize;
        *seen |= 1 << unit;
        let makes_room = match owner[unit] {
            None => true,
            Some(other) => place(demands, other, owner, seen),
        };
        if makes_room {
            owner[unit] = Some(index);
            return true;
        }
        left &= !*seen;
    }
    false
}

/// Most of these processes that can hold one unit each at the same time.
pub fn most_holders(structure: &Structure, processes: &[usize]) -> u32 {
    let demands: Vec<Demand> = processes
        .iter()
        .map(|process| Demand { alpha: structure.alpha(*process), units: 1 })
        .collect();
    max_flow(&demands)
}

/// As few demands as possible that ask for more than they may use together, the first such set in
/// the order of their positions. `None` is a proof that all can be served.
pub fn smallest_violating(demands: &[Demand]) -> Option<Vec<usize>> {
    if max_flow(demands) == demands.iter().map(|demand| demand.units).sum() {
        return None;
    }
    (1..=demands.len()).find_map(|size| violating_of_size(demands, size, 0, &mut Vec::new()))
}

fn violating_of_size(
    demands: &[Demand],
    size: usize,
    from: usize,
    chosen: &mut Vec<usize>,
) -> Option<Vec<usize>> {
    if chosen.len() == size {
        let asked: u32 = chosen.iter().map(|index| demands[*index].units).sum();
        let union = chosen.iter().fold(0, |union: UnitSet, index| union | demands[*index].alpha);
        return (asked > union.count_ones()).then(|| chosen.clone());
    }
    for index in from..demands.len() {
        chosen.push(index);
        if let Some(found) = violating_of_size(demands, size, index + 1, chosen) {
            return Some(found);
        }
        chosen.pop();
    }
    None
}
