//! Every size and placement of a number of claims, up to renaming.

use std::collections::BTreeSet;

use anyhow::ensure;
use quorate_core::{NodeId, Units};

/// A claim of so many units at this node.
pub(super) type Want = (NodeId, u32);

/// What is fixed, and what is to be enumerated.
#[derive(Debug)]
pub(super) struct Choice<'a> {
    pub(super) nodes: usize,
    pub(super) units: u32,
    pub(super) claims: usize,
    /// The size of each claim; any, if empty.
    pub(super) want: &'a [u32],
    /// The home of each claim; any, if empty.
    pub(super) home: &'a [u32],
    /// Nodes that differ from the others, because they decide or may crash. All others are alike.
    pub(super) special: &'a [NodeId],
}

/// Most worlds to enumerate: more could not be explored in a day.
const WORLDS_MAX: usize = 100_000;

/// All worlds that differ in more than the names of claims and of nodes that are alike.
///
/// # Errors
/// There are too many, or the pool has no units.
pub(super) fn family(choice: &Choice<'_>) -> anyhow::Result<Vec<Vec<Want>>> {
    Units::new(1, choice.units)?;
    let mut worlds: Vec<Vec<Want>> = vec![Vec::new()];
    for position in 0..choice.claims {
        let homes: Vec<u32> = match choice.home.get(position) {
            Some(&home) => vec![home],
            None => (0..choice.nodes as u32).collect(),
        };
        let sizes: Vec<u32> = match choice.want.get(position) {
            Some(&h) => vec![h],
            None => (1..=choice.units.min(WORLDS_MAX as u32)).collect(),
        };
        let longer = |world: &Vec<Want>| {
            let mut grown = Vec::new();
            for &home in &homes {
                for &h in &sizes {
                    grown.push([&world[..], &[(NodeId(home), h)]].concat());
                }
            }
            grown
        };
        let grown = worlds.len().saturating_mul(homes.len()).saturating_mul(sizes.len());
        ensure!(grown <= WORLDS_MAX, "too many worlds: give --want or --home");
        worlds = worlds.iter().flat_map(longer).collect();
    }
    let mut seen = BTreeSet::new();
    worlds.retain(|world| seen.insert(canonical(choice, world)));
    Ok(worlds)
}

/// What clients draw. Those that have so many choices take each of them, in a world of its own;
/// without that they draw different numbers, so that they ask different quorums.
///
/// # Errors
/// There are too many.
pub(super) fn draws(choices: &[Option<u64>]) -> anyhow::Result<Vec<Vec<u64>>> {
    let mut all: Vec<Vec<u64>> = vec![Vec::new()];
    for (client, choices) in choices.iter().enumerate() {
        let own = match choices {
            Some(choices) => 0..*choices,
            None => client as u64..client as u64 + 1,
        };
        let count = (own.end - own.start).saturating_mul(all.len() as u64);
        ensure!(count <= WORLDS_MAX as u64, "too many choices of quorums: have fewer claims");
        let longer = |draws: &Vec<u64>| {
            let draws = draws.clone();
            own.clone().map(move |draw| draws.iter().copied().chain([draw]).collect())
        };
        all = all.iter().flat_map(longer).collect();
    }
    Ok(all)
}

/// The smallest world that is the same up to names: claims sorted, nodes that are alike numbered by
/// what is claimed at them.
fn canonical(choice: &Choice<'_>, world: &[Want]) -> Vec<Vec<u32>> {
    let mut at: Vec<Vec<u32>> = vec![Vec::new(); choice.nodes];
    for &(home, h) in world {
        // A home that does not exist is refused later, with a clear word.
        if let Some(sizes) = at.get_mut(home.index()) {
            sizes.push(h);
        }
    }
    at.iter_mut().for_each(|sizes| sizes.sort_unstable());
    let special: Vec<usize> =
        (0..choice.nodes).filter(|&node| choice.special.contains(&NodeId::from(node))).collect();
    let mut alike: Vec<Vec<u32>> = Vec::new();
    let mut fixed: Vec<Vec<u32>> = Vec::new();
    for (node, sizes) in at.into_iter().enumerate() {
        if special.contains(&node) { fixed.push(sizes) } else { alike.push(sizes) }
    }
    alike.sort_unstable();
    [fixed, alike].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(nodes: usize, units: u32, claims: usize, want: &[u32]) -> usize {
        let special = [NodeId(0)];
        family(&Choice { nodes, units, claims, want, home: &[], special: &special }).unwrap().len()
    }

    #[test]
    fn worlds_that_differ_only_in_names_are_one_world() {
        // One claim: at the arbiter or elsewhere, for one unit or two.
        assert_eq!(count(3, 2, 1, &[]), 4);
        assert_eq!(count(9, 2, 1, &[]), 4);
        // Two claims for one unit each: both at the arbiter, one there, both at one other node, or
        // at two others.
        assert_eq!(count(3, 1, 2, &[]), 4);
        assert_eq!(count(3, 2, 2, &[1, 1]), 4);
        assert_eq!(count(2, 1, 2, &[]), 3);
    }

    #[test]
    fn every_choice_is_taken_where_choices_are_looked_at() {
        assert_eq!(draws(&[None, None]).unwrap(), [[0, 1]]);
        assert_eq!(
            draws(&[Some(2), None, Some(2)]).unwrap(),
            [[0, 1, 0], [0, 1, 1], [1, 1, 0], [1, 1, 1]]
        );
        assert!(draws(&[Some(1 << 40), Some(1 << 40)]).is_err());
    }
}
