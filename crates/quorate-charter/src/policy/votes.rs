//! Who should vote.
//!
//! 1. The number is odd: the largest that is neither above what is wanted (5 by default, 7 at most)
//!    nor above the members that can vote. From 1 to 3 to 5 in one step each: two or four voters
//!    survive no more losses than one or three, and there are never that many.
//! 2. A member follows first. It can vote once it has the log and is heard.
//! 3. Nobody loses its vote for being silent, unless somebody takes its place: a smaller list would
//!    make each further loss worse. Whoever is leaving does.
//! 4. Votes are spread over zones as evenly as they can be.
//! 5. Otherwise things stay as they are: what this gives, given back to it, stays.
//! 6. A list without a living majority is never wanted.

use std::collections::{BTreeMap, BTreeSet};

use crate::{MemberId, VOTERS_MAX};

/// How many vote unless somebody wants it otherwise.
pub const VOTERS_WANTED: usize = 5;

/// What is known of a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Who.
    pub member: MemberId,
    /// Where, if that is said.
    pub zone: Option<String>,
    /// Whether it votes now.
    pub votes: bool,
    /// Whether it was heard lately.
    pub heard: bool,
    /// Whether it has the log, or nearly.
    pub ready: bool,
    /// Whether it is to be removed.
    pub leaving: bool,
}

/// The list of voters that should be, if it is another than the one that is.
pub fn wanted(candidates: &[Candidate], wanted: usize) -> Option<BTreeSet<MemberId>> {
    let can = |c: &&Candidate| !c.leaving && (c.votes || (c.heard && c.ready));
    let mut left: Vec<&Candidate> = candidates.iter().filter(can).collect();
    let number = odd(left.len().min(wanted.min(VOTERS_MAX)))?;
    let mut chosen: Vec<&Candidate> = Vec::new();
    let mut zones: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    while chosen.len() < number {
        let merit = |c: &Candidate| {
            let crowd = zones.get(&c.zone.as_deref()).copied().unwrap_or(0);
            (!c.heard, crowd, !c.votes, c.member)
        };
        let best = (0..left.len()).min_by_key(|at| merit(left[*at]))?;
        let best = left.swap_remove(best);
        *zones.entry(best.zone.as_deref()).or_default() += 1;
        chosen.push(best);
    }
    let alive = chosen.iter().filter(|candidate| candidate.heard).count();
    let chosen: BTreeSet<MemberId> = chosen.iter().map(|candidate| candidate.member).collect();
    let now = candidates.iter().filter(|candidate| candidate.votes);
    let now: BTreeSet<MemberId> = now.map(|candidate| candidate.member).collect();
    (alive * 2 > number && chosen != now).then_some(chosen)
}

/// The largest odd number that is not above.
fn odd(number: usize) -> Option<usize> {
    number.checked_sub(1).map(|less| less / 2 * 2 + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn member(id: u64, votes: bool) -> Candidate {
        Candidate {
            member: MemberId(id),
            zone: None,
            votes,
            heard: true,
            ready: true,
            leaving: false,
        }
    }

    fn cluster(voters: u64, learners: u64) -> Vec<Candidate> {
        (0..voters + learners).map(|id| member(id, id < voters)).collect()
    }

    fn ids(chosen: Option<BTreeSet<MemberId>>) -> Vec<u64> {
        chosen.into_iter().flatten().map(|id| id.0).collect()
    }

    #[test]
    fn one_three_five_and_no_more() {
        let grown = |members: u64| ids(wanted(&cluster(1, members - 1), VOTERS_WANTED)).len();
        assert_eq!([1, 2, 3, 4, 5, 6, 9].map(grown), [0, 0, 3, 3, 5, 5, 5]);
        assert_eq!(ids(wanted(&cluster(5, 9), 99)).len(), VOTERS_MAX);
    }

    #[test]
    fn whoever_has_no_log_yet_or_is_silent_is_given_no_vote() {
        let mut cluster = cluster(1, 2);
        cluster[2].ready = false;
        assert_eq!(wanted(&cluster, 5), None);
        (cluster[2].ready, cluster[2].heard) = (true, false);
        assert_eq!(wanted(&cluster, 5), None);
        cluster[2].heard = true;
        assert_eq!(ids(wanted(&cluster, 5)), [0, 1, 2]);
    }

    #[test]
    fn a_silent_voter_is_replaced_and_never_just_dropped() {
        let mut small = cluster(3, 0);
        small[1].heard = false;
        assert_eq!(wanted(&small, 5), None);
        let mut larger = cluster(3, 1);
        larger[1].heard = false;
        assert_eq!(ids(wanted(&larger, 5)), [0, 2, 3]);
        // When it comes back it has lost nothing but its vote.
        let mut back = cluster(4, 0);
        back[1].votes = false;
        assert_eq!(wanted(&back, 5), None);
    }

    #[test]
    fn without_a_living_majority_nothing_is_wanted() {
        let mut cluster = cluster(3, 1);
        for silent in [0, 1, 2] {
            cluster[silent].heard = false;
        }
        assert_eq!(wanted(&cluster, 5), None);
    }

    #[test]
    fn whoever_leaves_goes_and_the_number_stays_odd() {
        let mut cluster = cluster(3, 0);
        cluster[0].leaving = true;
        assert_eq!(ids(wanted(&cluster, 5)), [1]);
        let mut cluster = super::tests::cluster(5, 1);
        cluster[0].leaving = true;
        assert_eq!(ids(wanted(&cluster, 5)), [1, 2, 3, 4, 5]);
        cluster[1].leaving = true;
        assert_eq!(ids(wanted(&cluster, 5)).len(), 3);
        assert_eq!(wanted(&[], 5), None);
    }

    #[test]
    fn zones_share_the_votes() {
        let mut cluster = cluster(3, 4);
        for (candidate, zone) in cluster.iter_mut().zip(["a", "a", "a", "a", "b", "b", "c"]) {
            candidate.zone = Some(zone.into());
        }
        assert_eq!(ids(wanted(&cluster, 3)), [0, 4, 6]);
        assert_eq!(ids(wanted(&cluster, 5)), [0, 1, 4, 5, 6]);
    }

    proptest! {
        #[test]
        fn any_cluster(
            drawn in proptest::collection::vec((0..4u8, any::<[bool; 4]>()), 0..12),
            number in 0..9usize,
        ) {
            let mut cluster: Vec<Candidate> = drawn
                .iter()
                .zip(0..)
                .map(|((zone, [votes, heard, ready, leaving]), id)| Candidate {
                    member: MemberId(id),
                    zone: (*zone > 0).then(|| zone.to_string()),
                    votes: *votes,
                    heard: *heard,
                    ready: *ready,
                    leaving: *leaving,
                })
                .collect();
            let Some(chosen) = wanted(&cluster, number) else { return Ok(()) };
            prop_assert!(chosen.len() % 2 == 1 && chosen.len() <= number.min(VOTERS_MAX));
            let of = |id: &MemberId| cluster.iter().find(|c| c.member == *id).expect("a member");
            prop_assert!(chosen.iter().all(|id| !of(id).leaving));
            prop_assert!(chosen.iter().all(|id| of(id).votes || (of(id).heard && of(id).ready)));
            let heard = chosen.iter().filter(|id| of(id).heard).count();
            prop_assert!(heard * 2 > chosen.len());
            // Fewer only if fewer can, or are wanted.
            let can = cluster.iter().filter(|c| !c.leaving && (c.votes || (c.heard && c.ready)));
            prop_assert!(chosen.len() + 2 > can.count().min(number).min(VOTERS_MAX));
            // Once it is so it stays so.
            for candidate in &mut cluster {
                candidate.votes = chosen.contains(&candidate.member);
            }
            prop_assert_eq!(wanted(&cluster, number), None);
        }
    }
}
