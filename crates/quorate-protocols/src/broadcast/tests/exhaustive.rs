//! Section 5 of the specification: complete enumerations, and what is found when an assumption or a
//! correction is taken away.
//!
//! State counts are pinned: a changed number is a changed protocol. They differ from those of the
//! specification, whose explorer also clears variables that nobody reads any more.

use quorate_core::{NodeId, NodeSet};

use super::every::{Explored, Found, Scope, every_history};
use crate::broadcast::pool::Mutant;
use crate::broadcast::weighted::Standing;
use crate::broadcast::{Counted, Message, Pool, Raymond, Raynal, Reclaim, Rule, Weighted};

impl<R: Rule> Explored for Counted<R> {
    fn held(&self) -> u32 {
        self.units_held()
    }

    fn waits(&self) -> bool {
        self.asked.is_some() && self.units_held() == 0
    }

    fn is_quiet(&self) -> bool {
        self.is_settled()
    }
}

impl Explored for Weighted {
    fn held(&self) -> u32 {
        self.asked
            .iter()
            .filter(|asked| asked.standing.is_in_use())
            .map(|asked| asked.units.get())
            .sum()
    }

    fn waits(&self) -> bool {
        self.asked.iter().any(|asked| matches!(asked.standing, Standing::Waiting(_)))
    }

    fn is_dead_letter(&self, pool: &Pool, message: &Message) -> bool {
        let Message::Reply { request, query, known, .. } = message else { return false };
        if pool.mutant == Some(Mutant::UnmatchedReplies) {
            return false;
        }
        let waiting = |clock: &u64| {
            let asked = self.asked.iter().find(|asked| asked.clock == *clock);
            asked.is_some_and(|asked| matches!(asked.standing, Standing::Waiting(_)))
        };
        let wanted = request.as_ref().is_some_and(waiting)
            || query.is_some() && *query == self.detector.query
            || !known.crashed.keys().all(|&node| self.crashed().contains(node));
        !wanted
    }

    fn ends_query(&self, pool: &Pool, from: NodeId, message: &Message) -> Option<NodeSet> {
        let Message::Reply { query, .. } = message else { return None };
        if query.is_none() || *query != self.detector.query || self.detector.is_done() {
            return None;
        }
        let mut missing = self.detector.missing().clone();
        missing.remove(from);
        (missing.len() <= pool.crashes_max as usize).then_some(missing)
    }

    fn suspects(&self) -> NodeSet {
        self.crashed().clone()
    }

    fn reclaimed(&self) -> u32 {
        Weighted::reclaimed(self)
    }
}

/// Who hears whom in time: process i is always heard by i + 1 (a ring), or by i - 1.
fn ring(n: u32, step: u32) -> Vec<NodeSet> {
    (0..n).map(|node| [node, (node + step) % n].into_iter().collect()).collect()
}

fn timer_free(requests: &[Option<u8>]) -> Scope {
    let n = requests.len() as u32;
    Scope {
        pool: Pool::timer_free(n, 2, 1),
        requests: requests.to_vec(),
        weights: vec![1; n as usize],
        ordered: true,
        crashes: 1,
        crashing: None,
        heard_by: ring(n, 1),
        trail: false,
    }
}

/// Explores a scope in which everything must hold.
fn holds<P: Explored>(scope: &Scope) -> Found {
    let found = every_history::<P>(scope);
    assert!(found.violation.is_none(), "{}", told(&found));
    assert_eq!(found.false_suspicions, 0);
    found
}

/// Explores a scope in which something must be found; gives what and the number of steps to it.
fn finds<P: Explored>(scope: Scope) -> (String, usize) {
    let found = every_history::<P>(&Scope { trail: true, ..scope });
    let (what, lines) = found.violation.expect("something is wrong here");
    (what, lines.len() - 1)
}

fn told(found: &Found) -> String {
    found.violation.as_ref().map(|(_, lines)| lines.join("\n")).unwrap_or_default()
}

fn raymond(mutant: Option<Mutant>, requests: [u8; 3]) -> Scope {
    let pool = Pool { mutant, ..Pool::raymond(3, 2) };
    Scope { pool, ordered: false, heard_by: Vec::new(), ..timer_free(&requests.map(Some)) }
}

fn raynal(mutant: Option<Mutant>, weights: [u32; 3]) -> Scope {
    let pool = Pool { mutant, ..Pool::raynal(3, 3) };
    let weights = weights.to_vec();
    Scope { pool, weights, crashes: 0, ..raymond(None, [2, 2, 1]) }
}

/// Three processes, any one of which crashes at any point, responsiveness imposed. `reclaimed`
/// says how often a crash that is known let somebody in: where it is 0 nothing was recovered.
#[test]
fn three_processes_survive_a_crash_at_any_point() {
    let one_each = timer_free(&[Some(1); 3]);
    assert_eq!(holds::<Weighted>(&one_each).states, 103_300);
    for (heard_by, states, reclaimed) in
        [(ring(3, 1), 788_244, 2_942), (ring(3, 2), 816_213, 2_928)]
    {
        let scope = Scope { heard_by, ..timer_free(&[Some(2), Some(1), Some(1)]) };
        let found = holds::<Weighted>(&scope);
        assert_eq!((found.states, found.reclaimed), (states, reclaimed));
    }
}

#[test]
#[cfg(feature = "long-checks")]
fn three_processes_and_five_requests_survive_a_crash_at_any_point() {
    let found = holds::<Weighted>(&timer_free(&[Some(2), Some(2), Some(1)]));
    assert_eq!((found.states, found.reclaimed), (6_481_472, 34_249));
}

#[test]
fn the_order_of_messages_does_not_matter() {
    let scope = Scope { ordered: false, ..timer_free(&[Some(2), Some(2), Some(0)]) };
    let found = holds::<Weighted>(&scope);
    assert_eq!((found.states, found.reclaimed), (398_899, 2_351));
}

#[test]
#[cfg(feature = "long-checks")]
fn the_order_of_messages_does_not_matter_to_five_requests() {
    let scope = Scope { ordered: false, ..timer_free(&[Some(3), Some(2), Some(0)]) };
    let found = holds::<Weighted>(&scope);
    assert_eq!((found.states, found.reclaimed), (2_490_969, 29_817));
}

/// Nobody asks often enough that a crash becomes known here: this is about permissions. That units
/// come back among four is explored by `the_units_of_the_dead_come_back`.
#[test]
fn four_processes_survive_a_crash_at_any_point() {
    let found = holds::<Weighted>(&timer_free(&[Some(2), Some(1), Some(0), Some(0)]));
    assert_eq!((found.states, found.reclaimed), (158_464, 0));
}

#[test]
#[cfg(feature = "long-checks")]
fn four_processes_and_three_requests_survive_a_crash_at_any_point() {
    let found = holds::<Weighted>(&timer_free(&[Some(1), Some(1), Some(1), Some(0)]));
    assert_eq!((found.states, found.reclaimed), (5_462_813, 0));
}

/// One is dead from the start, so that responsiveness holds by itself where n = 4.
#[test]
fn the_units_of_the_dead_come_back() {
    let dead_one = [[None, Some(3), Some(3)], [Some(3), None, Some(3)], [Some(3), Some(3), None]];
    for requests in dead_one {
        let found = holds::<Weighted>(&Scope { crashes: 0, ..timer_free(&requests) });
        assert_eq!((found.states, found.reclaimed), (2_893, 673));
    }
    for (requests, ordered, states, reclaimed) in [
        ([Some(3), Some(2), Some(1), None], true, 824_282, 128_245),
        ([None, Some(2), Some(2), Some(1)], true, 310_725, 22_944),
        #[cfg(feature = "long-checks")]
        ([Some(2), Some(1), Some(1), None], false, 1_655_582, 81_592),
    ] {
        let base = timer_free(&requests);
        let scope = Scope { crashes: 0, ordered, heard_by: Vec::new(), ..base };
        let found = holds::<Weighted>(&scope);
        assert_eq!((found.states, found.reclaimed), (states, reclaimed), "{requests:?}");
    }
}

/// Two units per node of four: a crash is survived without being known, since 1 * 2 + 2 <= 4 (L1).
#[test]
fn weighted_requests_survive_a_crash_at_any_point() {
    let pool = Pool { node_units_max: 2, ..Pool::timer_free(3, 4, 1) };
    let scope = Scope { pool, weights: vec![2, 1, 2], ..timer_free(&[Some(2), Some(1), Some(1)]) };
    let found = holds::<Weighted>(&scope);
    assert_eq!((found.states, found.reclaimed), (788_244, 2_942));
}

#[test]
fn raymond_and_raynal_keep_their_laws() {
    assert_eq!(holds::<Raymond>(&raymond(None, [2, 1, 1])).states, 170_508);
    let weights = [[1, 2, 1], [2, 2, 1], [3, 1, 2]];
    let states = weights.map(|weights| holds::<Raynal>(&raynal(None, weights)).states);
    assert_eq!(states, [757_699, 394_467, 84_354]);
}

#[test]
fn errors_of_the_printed_protocols_are_found_by_the_shortest_way() {
    let timer_free = |mutant, requests: [u8; 3]| {
        let base = timer_free(&requests.map(Some));
        Scope { crashes: 0, pool: Pool { mutant: Some(mutant), ..base.pool.clone() }, ..base }
    };
    let found = finds::<Weighted>(timer_free(Mutant::TieBreakByIdentity, [1, 1, 1]));
    assert_eq!(found, ("3 units in use of 2".into(), 12));
    let found = finds::<Weighted>(timer_free(Mutant::UnmatchedReplies, [2, 2, 2]));
    assert_eq!(found, ("3 units in use of 2".into(), 13));
    let found = finds::<Weighted>(timer_free(Mutant::DropDeferred, [1, 1, 1]));
    assert_eq!(found, ("n2 waits for ever".into(), 17));
    let ordered = |scope| Scope { ordered: true, crashes: 0, ..scope };
    let found = finds::<Raynal>(ordered(raynal(Some(Mutant::AssignUsed), [1, 2, 1])));
    assert_eq!(found, ("4 units in use of 3".into(), 27));
    let found = finds::<Raynal>(ordered(raynal(Some(Mutant::DeferOnce), [1, 2, 1])));
    assert_eq!(found.0, "n1 is owed something for ever");
    let found = finds::<Raymond>(ordered(raymond(Some(Mutant::LoseCount), [2, 2, 1])));
    assert_eq!(found.0, "n0 is owed something for ever");
}

/// A known limit: without responsiveness a process that is merely slow is suspected, and a unit too
/// many is handed out. Nothing inside the protocol prevents it; `reclaim` decides who relies on it.
#[test]
fn without_responsiveness_a_unit_too_many_is_handed_out() {
    let requests = [Some(2), Some(2), Some(1)];
    let scope = Scope { heard_by: Vec::new(), crashes: 0, trail: true, ..timer_free(&requests) };
    let found = every_history::<Weighted>(&scope);
    let transcript = include_str!("../../../testdata/broadcast/without_responsiveness.txt");
    assert_eq!(told(&found), transcript.trim_end());
    // The same world where suspects are never counted out.
    let pool = Pool { reclaim: Reclaim::Never, ..scope.pool.clone() };
    let requests = vec![Some(2), Some(1), Some(1)];
    let found = every_history::<Weighted>(&Scope { pool, requests, trail: false, ..scope });
    assert!(found.violation.is_none() && found.false_suspicions > 0, "{}", told(&found));
}
