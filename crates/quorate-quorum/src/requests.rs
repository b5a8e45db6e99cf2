//! Requests of different sizes: a family per size (h-out-of-k).
//!
//! Safety asks that the holders of any conflicting set of requests (sizes adding up to more than k)
//! have a common node in their quorums. Only *minimal* conflicts matter: those that fit when their
//! smallest request is dropped. For threshold families what counts is how many nodes each quorum
//! leaves out: a conflict is safe iff together they leave out fewer than all.

use quorate_core::NodeSet;

use crate::{Effort, Explicit, Natural, TooLarge};

/// Members of a quorum for `claim` of `units` units: n − ⌊h(n−1)/(k+h)⌋.
pub fn quorum_size(nodes: usize, units: usize, claim: usize) -> usize {
    nodes - claim * (nodes - 1) / (units + claim)
}

/// The size that suggests itself, n − ⌊(n−1)/(⌊k/h⌋+1)⌋: right for equal claims, unsafe for mixed
/// ones.
pub fn naive_quorum_size(nodes: usize, units: usize, claim: usize) -> usize {
    nodes - (nodes - 1) / (units / claim + 1)
}

/// All sizes, for claims of 1, 2, …, k units.
pub fn quorum_sizes(nodes: usize, units: usize) -> Vec<usize> {
    (1..=units).map(|claim| quorum_size(nodes, units, claim)).collect()
}

/// How many minimal conflicts there are: multisets of sizes adding up to more than k that fit when
/// the smallest is dropped.
pub fn minimal_conflicts(units: usize) -> Natural {
    // ways[t]: multisets of sizes >= smallest with total t; sizes are added from the largest down.
    let mut ways = vec![Natural::zero(); units + 1];
    ways[0] = Natural::one();
    let mut conflicts = Natural::zero();
    for smallest in (1..=units).rev() {
        for total in smallest..=units {
            ways[total] = ways[total].plus(&ways[total - smallest]);
        }
        // The smallest goes on top of a multiset that fits and leaves no room for it.
        for others in &ways[units + 1 - smallest..] {
            conflicts = conflicts.plus(others);
        }
    }
    conflicts
}

/// A minimal conflict, largest request first, whose quorums may have nothing in common;
/// `sizes[h-1]` is the quorum size for claims of h units. `None` proves the sizes safe.
pub fn unsafe_conflict(nodes: usize, sizes: &[usize]) -> Option<Vec<usize>> {
    let units = sizes.len();
    // most[t]: how many nodes can be left out by claims >= smallest with total t, and by which.
    let mut most: Vec<Option<(usize, Vec<usize>)>> = vec![None; units + 1];
    most[0] = Some((0, Vec::new()));
    for smallest in (1..=units).rev() {
        let spared = nodes - sizes[smallest - 1];
        for total in smallest..=units {
            if let Some((left_out, claims)) = most[total - smallest].clone()
                && most[total].as_ref().is_none_or(|(known, _)| left_out + spared > *known)
            {
                most[total] = Some((left_out + spared, [claims, vec![smallest]].concat()));
            }
        }
        for (left_out, claims) in most[units + 1 - smallest..].iter().flatten() {
            if left_out + spared >= nodes {
                return Some([claims.clone(), vec![smallest]].concat());
            }
        }
    }
    None
}

/// For families written out, `families[h-1]` for claims of h units: a conflict and a quorum for
/// each of its requests with nothing in common. `None` proves the families safe together.
pub fn unsafe_quorums(
    families: &[Explicit],
    effort: &mut Effort<'_>,
) -> Result<Option<Vec<(usize, NodeSet)>>, TooLarge> {
    let units = families.len();
    let nodes = families.iter().map(Explicit::nodes).max().unwrap_or(0);
    // Claims are added from the largest down, so that the last one is the smallest.
    let mut open = vec![(0, NodeSet::first(nodes), Vec::<(usize, NodeSet)>::new())];
    while let Some((total, common, chosen)) = open.pop() {
        let largest = chosen.last().map_or(units, |(claim, _)| *claim);
        for claim in 1..=largest {
            for quorum in families[claim - 1].quorums() {
                effort.spend(1 + common.len() as u64 / 64)?;
                let left = common.intersection(quorum);
                let with = [chosen.clone(), vec![(claim, quorum.clone())]].concat();
                if total + claim <= units {
                    open.push((total + claim, left, with));
                } else if left.is_empty() {
                    return Ok(Some(with));
                }
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_obvious_sizes_fail_for_three_two_two_of_five() {
        let naive: Vec<usize> = (1..=5).map(|claim| naive_quorum_size(7, 5, claim)).collect();
        assert_eq!(unsafe_conflict(7, &naive), Some(vec![3, 2, 2]));
        assert_eq!(unsafe_conflict(7, &quorum_sizes(7, 5)), None);
        assert_eq!(minimal_conflicts(5), Natural::from(17usize));
    }
}
