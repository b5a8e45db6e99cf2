//! How many crashes a family always survives: one fewer than a smallest set of nodes that meets
//! every quorum. Branch and bound on a smallest quorum not yet met, pruned by two lower bounds:
//! quorums that are pairwise disjoint need a node each, and a node meets only so many.

use quorate_core::NodeSet;

use crate::explicit::minimal;
use crate::set::{SMALL, Set};
use crate::{Effort, Explicit, TooLarge};

/// A smallest set of nodes that meets every quorum. `None` if a quorum is empty.
pub fn smallest_hitting(
    family: &Explicit,
    effort: &mut Effort<'_>,
) -> Result<Option<NodeSet>, TooLarge> {
    if family.nodes() <= SMALL {
        smallest_in::<u128>(family, effort)
    } else {
        smallest_in::<NodeSet>(family, effort)
    }
}

/// Bounds on the size of a smallest hitting set, without search: a packing of disjoint quorums
/// from below, a greedy choice from above.
pub fn hitting_bounds(family: &Explicit) -> (usize, usize) {
    let sets = minimal(family.sets::<NodeSet>());
    let refs: Vec<&NodeSet> = sets.iter().collect();
    (lower_bound(&refs, family.nodes()), greedy(&refs, family.nodes()).len())
}

fn smallest_in<S: Set>(
    family: &Explicit,
    effort: &mut Effort<'_>,
) -> Result<Option<NodeSet>, TooLarge> {
    let sets = minimal(family.sets::<S>());
    if sets[0].none() {
        return Ok(None);
    }
    let unmet: Vec<&S> = sets.iter().collect();
    let mut best = greedy(&unmet, family.nodes());
    let least = lower_bound(&unmet, family.nodes());
    // A target from below: most families of the literature meet the bound or just miss it.
    for target in least..best.len() {
        let mut chosen = Vec::new();
        if dive(&unmet, family.nodes(), target, &mut chosen, effort)? {
            best = chosen;
            break;
        }
    }
    let hitting: NodeSet = crate::explicit::nodes_of(best);
    assert!(
        family.quorums().iter().all(|quorum| !quorum.is_disjoint(&hitting)),
        "a hitting set meets every quorum"
    );
    Ok(Some(hitting))
}

fn dive<S: Set>(
    unmet: &[&S],
    nodes: usize,
    left: usize,
    chosen: &mut Vec<usize>,
    effort: &mut Effort<'_>,
) -> Result<bool, TooLarge> {
    effort.spend(unmet.len() as u64 + 1)?;
    let Some(smallest) = unmet.iter().min_by_key(|set| set.size()) else { return Ok(true) };
    if left == 0 || lower_bound(unmet, nodes) > left {
        return Ok(false);
    }
    effort.spend(4 * unmet.len() as u64)?;
    let degrees = degrees(unmet, nodes);
    let mut candidates: Vec<usize> = smallest.members().collect();
    candidates.sort_by_key(|node| std::cmp::Reverse(degrees[*node]));
    let mut refused = S::empty();
    for node in candidates {
        let rest: Vec<&S> = unmet.iter().filter(|set| !set.has(node)).copied().collect();
        chosen.push(node);
        // Nodes tried before are not tried again below: every hitting set with them was covered.
        let narrowed: Vec<S> = rest.iter().map(|set| set.minus(&refused)).collect();
        if narrowed.iter().all(|set| !set.none())
            && dive(&narrowed.iter().collect::<Vec<_>>(), nodes, left - 1, chosen, effort)?
        {
            return Ok(true);
        }
        chosen.pop();
        refused.put(node);
    }
    Ok(false)
}

fn degrees<S: Set>(sets: &[&S], nodes: usize) -> Vec<usize> {
    let mut degrees = vec![0; nodes];
    for node in sets.iter().flat_map(|set| set.members()) {
        degrees[node] += 1;
    }
    degrees
}

fn lower_bound<S: Set>(unmet: &[&S], nodes: usize) -> usize {
    let mut packed = S::empty();
    let mut disjoint = 0;
    for set in unmet {
        if set.apart(&packed) {
            packed = packed.or(set);
            disjoint += 1;
        }
    }
    let most = degrees(unmet, nodes).into_iter().max().unwrap_or(0).max(1);
    disjoint.max(unmet.len().div_ceil(most))
}

fn greedy<S: Set>(sets: &[&S], nodes: usize) -> Vec<usize> {
    let mut unmet = sets.to_vec();
    let mut chosen = Vec::new();
    while !unmet.is_empty() {
        let degrees = degrees(&unmet, nodes);
        let node = (0..nodes).max_by_key(|node| (degrees[*node], std::cmp::Reverse(*node)));
        let node = node.expect("a family has nodes");
        if degrees[node] == 0 {
            break;
        }
        unmet.retain(|set| !set.has(node));
        chosen.push(node);
    }
    chosen
}
