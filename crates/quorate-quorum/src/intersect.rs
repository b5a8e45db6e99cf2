//! How few quorums have an empty intersection.
//!
//! A family is a k-arbiter iff any k+1 of its quorums, repetition allowed, have a common member
//! (RR-2523, definition 4.1; the paper leaves open whether repetition is allowed, and without it
//! {{0},{1}} would pass as a 2-arbiter). So everything follows from the least number of quorums
//! with nothing in common. That is an exact set cover by complements: branch on the node that the
//! fewest quorums avoid, try only the quorums that cut deepest, deepen one quorum at a time.

use quorate_core::NodeSet;

use crate::explicit::minimal;
use crate::set::{SMALL, Set};
use crate::table::Table;
use crate::{Effort, Explicit, TooLarge};

/// The largest k for which any k+1 quorums meet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reach {
    /// Up to this k. 0 means that two quorums are disjoint, -1 that one is empty.
    UpTo(i64),
    /// Every k: some node is in all quorums.
    Every,
}

impl Reach {
    /// Whether any `units` + 1 quorums meet.
    pub fn covers(self, units: usize) -> bool {
        match self {
            Reach::Every => true,
            Reach::UpTo(k) => i64::try_from(units).is_ok_and(|units| units <= k),
        }
    }

    pub(crate) fn from_fewest(fewest: Option<usize>) -> Reach {
        fewest.map_or(Reach::Every, |count| {
            Reach::UpTo(i64::try_from(count).expect("a count of quorums") - 2)
        })
    }
}

/// The largest k for which the family has the intersection property.
pub fn largest_k(family: &Explicit, effort: &mut Effort<'_>) -> Result<Reach, TooLarge> {
    if !family.common().is_empty() {
        return Ok(Reach::Every);
    }
    match fewest_apart(family, family.quorums().len(), effort) {
        Ok(found) => Ok(Reach::from_fewest(found.map(|sets| sets.len()))),
        Err(_) if family.nodes() <= Table::NODES_MAX => {
            effort.renew();
            let table = Table::new(family);
            Ok(Reach::from_fewest(table.fewest_covering(effort)?))
        }
        Err(too_large) => Err(too_large),
    }
}

/// At most `most` quorums with nothing in common, as few as possible: the counterexample to "any
/// `most` quorums meet". `None` is a proof that there is none.
pub fn fewest_apart(
    family: &Explicit,
    most: usize,
    effort: &mut Effort<'_>,
) -> Result<Option<Vec<NodeSet>>, TooLarge> {
    if family.nodes() <= SMALL {
        apart_in::<u128>(family, most, effort)
    } else {
        apart_in::<NodeSet>(family, most, effort)
    }
}

fn apart_in<S: Set>(
    family: &Explicit,
    most: usize,
    effort: &mut Effort<'_>,
) -> Result<Option<Vec<NodeSet>>, TooLarge> {
    let sets = minimal(family.sets::<S>());
    let everyone = S::from_nodes(&NodeSet::first(family.nodes()));
    let found = emptying(&everyone, &sets, most, effort)?;
    if let Some(found) = &found {
        assert!(
            found.iter().fold(everyone, |left, set| left.and(set)).none(),
            "a counterexample is one"
        );
    }
    Ok(found.map(|sets| sets.iter().map(S::to_nodes).collect()))
}

/// As few sets as possible, at most `most`, whose intersection with `start` is empty.
pub(crate) fn emptying<S: Set>(
    start: &S,
    family: &[S],
    most: usize,
    effort: &mut Effort<'_>,
) -> Result<Option<Vec<S>>, TooLarge> {
    if start.none() {
        return Ok(Some(Vec::new()));
    }
    let common = family.iter().fold(start.clone(), |left, set| left.and(set));
    if !common.none() {
        return Ok(None);
    }
    for depth in 1..=most {
        let mut chosen = Vec::new();
        if dive(start, family, depth, &mut chosen, effort)? {
            return Ok(Some(chosen));
        }
    }
    Ok(None)
}

fn dive<S: Set>(
    left: &S,
    family: &[S],
    depth: usize,
    chosen: &mut Vec<S>,
    effort: &mut Effort<'_>,
) -> Result<bool, TooLarge> {
    effort.spend(family.len() as u64)?;
    if depth == 1 {
        let last = family.iter().find(|set| set.apart(left));
        chosen.extend(last.cloned());
        return Ok(last.is_some());
    }
    let most_removed = family.iter().map(|set| left.minus(set).size()).max().unwrap_or(0);
    if most_removed * depth < left.size() {
        return Ok(false);
    }
    // Some chosen set must avoid each node that is left: branch on the one with the fewest to try.
    effort.spend((family.len() * left.size()) as u64 / 4)?;
    let avoiding = |node: usize| family.iter().filter(|set| !set.has(node)).count();
    let Some(hardest) = left.members().min_by_key(|node| avoiding(*node)) else {
        return Ok(true);
    };
    let mut tried: Vec<(S, &S)> =
        family.iter().filter(|set| !set.has(hardest)).map(|set| (left.and(set), set)).collect();
    tried.sort_by_cached_key(|(rest, _)| rest.size());
    let mut kept: Vec<S> = Vec::new();
    for (rest, set) in tried {
        effort.spend(kept.len() as u64 / 4)?;
        // A choice that leaves a superset of what another leaves cannot do better.
        if kept.iter().any(|less| less.within(&rest)) {
            continue;
        }
        chosen.push(set.clone());
        if rest.none() || dive(&rest, family, depth - 1, chosen, effort)? {
            return Ok(true);
        }
        chosen.pop();
        kept.push(rest);
    }
    Ok(false)
}

/// The same by another road, for small families and as a check on the search: fold the minimal
/// intersections of 1, 2, 3, … quorums until the empty set appears.
pub fn fewest_apart_by_folding(family: &Explicit) -> Option<usize> {
    if !family.common().is_empty() {
        return None;
    }
    let sets = minimal(family.sets::<NodeSet>());
    let mut folded = sets.clone();
    let mut count = 1;
    while !folded.iter().any(NodeSet::is_empty) {
        let met = folded.iter().flat_map(|a| sets.iter().map(|b| a.intersection(b))).collect();
        folded = minimal(met);
        count += 1;
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetition_counts_so_two_disjoint_quorums_are_no_arbiter_for_any_k() {
        let apart = Explicit::from_lists(2, &[vec![0], vec![1]]).expect("a list");
        assert_eq!(largest_k(&apart, &mut Effort::default()), Ok(Reach::UpTo(0)));
        let single = Explicit::from_lists(2, &[vec![0]]).expect("a list");
        assert_eq!(largest_k(&single, &mut Effort::default()), Ok(Reach::Every));
        let empty = Explicit::from_lists(1, &[vec![], vec![0]]).expect("a list");
        assert_eq!(largest_k(&empty, &mut Effort::default()), Ok(Reach::UpTo(-1)));
    }

    #[test]
    fn a_search_without_effort_says_so() {
        let lists: Vec<Vec<u32>> = (0..6).map(|i| (0..6).filter(|j| *j != i).collect()).collect();
        let family = Explicit::from_lists(6, &lists).expect("a list");
        let answer = fewest_apart(&family, 6, &mut Effort::new(3));
        assert_eq!(answer, Err(TooLarge { limit: 3 }));
    }
}
