//! Coteries and k-coteries.
//!
//! A coterie is a k-arbiter for k = 1. A k-coterie (Kakugawa, Fujita, Yamashita, Ae; restated in
//! Miyamoto, Kakugawa, Yamashita, "Extended distributed k-mutual exclusion", introduction) asks for
//! something else: among any k+1 quorums two meet, and any h < k pairwise disjoint quorums leave
//! room for one more. We read the second condition "for all"; the printed "there exist" would admit
//! {0,1}, {2,3}, {1,2} for k = 2.

use std::collections::BTreeSet;

use quorate_core::NodeSet;

use crate::set::{SMALL, Set};
use crate::{Effort, Explicit, TooLarge};

/// The conditions of a k-coterie, each with its counterexample if it fails.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KCoterie {
    /// Fewer than k pairwise disjoint quorums that no further quorum is disjoint from.
    pub stuck: Option<Vec<NodeSet>>,
    /// k+1 pairwise disjoint quorums.
    pub too_many: Option<Vec<NodeSet>>,
    /// A quorum inside another.
    pub inclusion: Option<(NodeSet, NodeSet)>,
    /// An empty quorum.
    pub empty: bool,
}

impl KCoterie {
    /// Whether the family is a k-coterie.
    pub fn holds(&self) -> bool {
        self.stuck.is_none() && self.too_many.is_none() && self.inclusion.is_none() && !self.empty
    }
}

/// Examines the conditions of a k-coterie for k = `units`.
pub fn k_coterie(
    family: &Explicit,
    units: usize,
    effort: &mut Effort<'_>,
) -> Result<KCoterie, TooLarge> {
    let (stuck, too_many) = if family.nodes() <= SMALL {
        packings::<u128>(family, units, effort)?
    } else {
        packings::<NodeSet>(family, units, effort)?
    };
    Ok(KCoterie {
        stuck,
        too_many,
        inclusion: family.inclusion(),
        empty: family.quorums().iter().any(NodeSet::is_empty),
    })
}

type Packing = Option<Vec<NodeSet>>;

/// Looks through all families of pairwise disjoint quorums. Two families with the same union and
/// the same number of members have the same future, so only one of them is followed.
fn packings<S: Set>(
    family: &Explicit,
    units: usize,
    effort: &mut Effort<'_>,
) -> Result<(Packing, Packing), TooLarge> {
    let mut sets = family.sets::<S>();
    sets.sort();
    sets.dedup();
    let (mut stuck, mut too_many) = (None, None);
    // k+1 disjoint quorums need room; if there is none, a stuck packing settles the matter.
    let least = sets.iter().map(S::size).min().unwrap_or(0);
    let crowded = (units + 1).saturating_mul(least) > family.nodes();
    let mut layer = vec![(S::empty(), Vec::new())];
    for count in 0..=units {
        let mut seen = BTreeSet::new();
        let mut next: Vec<(S, Vec<usize>)> = Vec::new();
        for (union, chosen) in &layer {
            effort.spend(sets.len() as u64 * (1 + count as u64 / 8))?;
            let mut free = false;
            for (index, set) in sets.iter().enumerate() {
                if !set.apart(union) || chosen.contains(&index) {
                    continue;
                }
                free = true;
                let larger = union.or(set);
                if seen.insert(larger.clone()) {
                    next.push((larger, chosen.iter().copied().chain([index]).collect()));
                }
            }
            if !free && count < units && stuck.is_none() {
                stuck = Some(chosen.iter().map(|index| sets[*index].to_nodes()).collect());
                if crowded {
                    return Ok((stuck, None));
                }
            }
        }
        if count == units {
            too_many = next
                .first()
                .map(|(_, chosen)| chosen.iter().map(|index| sets[*index].to_nodes()).collect());
        }
        layer = next;
    }
    Ok((stuck, too_many))
}
