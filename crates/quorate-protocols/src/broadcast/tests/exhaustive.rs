//! Broadcast spec 5: complete enumerations, and what is found when an assumption or a
//! correction is taken away.
//!
//! State counts are pinned: a changed number is a changed protocol. They are smaller than those of
//! the specification, whose explorer clears less (`reduced.rs`).

use std::time::Duration;

use quorate_core::NodeSet;

use super::every::{Explored, Found, Scope, every_history};
use crate::broadcast::pool::Mutant;
use crate::broadcast::{Pool, Reclaim, Weighted};
use crate::reference::{Raymond, Raynal};

/// Who always hears whom in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Heard {
    /// Process i is heard by i + 1.
    Ring,
    /// By i - 1.
    RingBack,
    /// Processes 0 and 1 hear each other, and 2 and 3.
    #[cfg_attr(not(feature = "long-checks"), allow(dead_code, reason = "long rows have it"))]
    Pairs,
    /// Nothing is imposed: with one of four dead the others are always heard.
    Itself,
}

impl Heard {
    fn by(self, n: u32) -> Vec<NodeSet> {
        let by = |node: u32| match self {
            Heard::Ring => (node + 1) % n,
            Heard::RingBack => (node + n - 1) % n,
            Heard::Pairs => node ^ 1,
            Heard::Itself => node,
        };
        match self {
            Heard::Itself => Vec::new(),
            _ => (0..n).map(|node| [node, by(node)].into_iter().collect()).collect(),
        }
    }
}

/// Requests of each process, as digits; `x` is dead from the start.
fn timer_free(requests: &str) -> Scope {
    let requests: Vec<Option<u8>> =
        requests.chars().map(|digit| digit.to_digit(10).map(|digit| digit as u8)).collect();
    let n = requests.len() as u32;
    Scope {
        pool: Pool::timer_free(n, 2, 1),
        weights: vec![1; n as usize],
        ordered: true,
        crashes: u8::from(!requests.contains(&None)),
        crashing: None,
        probes: 0,
        heard_by: Heard::Ring.by(n),
        reduced: true,
        views: false,
        requests,
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
    let found = every_history::<P>(&scope);
    let (what, lines) = found.violation.expect("something is wrong here");
    (what, lines.len() - 1)
}

fn told(found: &Found) -> String {
    found.violation.as_ref().map(|(_, lines)| lines.join("\n")).unwrap_or_default()
}

fn raymond(mutant: Option<Mutant>, requests: &str) -> Scope {
    let base = timer_free(requests);
    Scope { pool: Pool { mutant, ..Pool::raymond(base.pool.nodes, 2) }, ordered: false, ..base }
}

fn raynal(mutant: Option<Mutant>, weights: [u32; 3]) -> Scope {
    let pool = Pool { mutant, ..Pool::raynal(3, 3) };
    let weights = weights.to_vec();
    Scope { pool, weights, crashes: 0, ..raymond(None, "221") }
}

/// One row of the table in `docs/protocols/broadcast.md`: requests, whether links keep the order,
/// states, and how often a crash that is known let somebody in: where it is 0 nothing was
/// recovered, and the row is about permissions only.
type Row = (&'static str, bool, Heard, usize, u64);

const ORDERED: bool = true;
const ANY: bool = false;

fn all_hold(rows: &[Row]) {
    let explored = rows.iter().map(|&(requests, ordered, heard, ..)| {
        let base = timer_free(requests);
        let heard_by = heard.by(base.pool.nodes);
        let found = holds::<Weighted>(&Scope { ordered, heard_by, ..base });
        (requests, ordered, heard, found.states, found.reclaimed)
    });
    assert_eq!(explored.collect::<Vec<Row>>(), rows);
}

/// Any one process crashes at any point, responsiveness imposed; or one is dead from the start.
#[test]
fn everybody_survives_a_crash() {
    all_hold(&[
        ("111", ORDERED, Heard::Ring, 20_206, 0),
        ("211", ORDERED, Heard::Ring, 112_464, 575),
        ("211", ORDERED, Heard::RingBack, 116_633, 588),
        ("320", ANY, Heard::Ring, 181_128, 5_597),
        ("1110", ORDERED, Heard::Ring, 325_852, 0),
        ("x33", ORDERED, Heard::Ring, 1_712, 452),
        ("3x3", ORDERED, Heard::Ring, 1_712, 452),
        ("33x", ORDERED, Heard::Ring, 1_712, 452),
        ("211x", ANY, Heard::Itself, 98_239, 1_446),
        ("321x", ORDERED, Heard::Itself, 280_931, 25_251),
        ("x221", ORDERED, Heard::Itself, 121_356, 5_483),
    ]);
}

#[test]
#[cfg(feature = "long-checks")]
fn everybody_survives_a_crash_in_longer_histories() {
    all_hold(&[
        ("221", ORDERED, Heard::Ring, 690_067, 4_821),
        ("221", ORDERED, Heard::RingBack, 709_403, 5_314),
        ("222", ORDERED, Heard::Ring, 4_781_479, 26_261),
        ("211", ANY, Heard::Ring, 482_066, 1_614),
        ("211", ANY, Heard::RingBack, 504_491, 1_651),
        ("221", ANY, Heard::Ring, 6_952_238, 32_884),
        ("320", ANY, Heard::RingBack, 124_447, 5_276),
        ("230", ANY, Heard::Ring, 118_631, 4_843),
        ("230", ANY, Heard::RingBack, 184_215, 5_443),
        ("222x", ORDERED, Heard::Itself, 704_399, 179_377),
        ("221x", ANY, Heard::Itself, 830_049, 88_593),
    ]);
}

#[test]
#[cfg(feature = "long-checks")]
fn four_processes_survive_a_crash_at_any_point() {
    all_hold(&[
        ("2110", ORDERED, Heard::Ring, 3_533_778, 2_206),
        ("2110", ORDERED, Heard::Pairs, 3_840_766, 4_386),
        ("1110", ORDERED, Heard::Pairs, 336_969, 0),
        ("1110", ANY, Heard::Ring, 696_755, 0),
        ("1110", ANY, Heard::Pairs, 698_558, 0),
        ("2200", ANY, Heard::Ring, 613_193, 0),
        ("2200", ANY, Heard::Pairs, 552_371, 0),
        ("0320", ORDERED, Heard::Ring, 394_031, 0),
        ("0320", ORDERED, Heard::Pairs, 386_371, 0),
        ("3300", ORDERED, Heard::Ring, 985_711, 0),
        ("3300", ORDERED, Heard::Pairs, 953_429, 0),
    ]);
}

/// Two units per node of four: a crash is survived without being known, since 1 * 2 + 2 <= 4
/// (broadcast spec L1).
fn two_of_four(requests: &str, weights: [u32; 3]) -> Scope {
    let pool = Pool { node_units_max: 2, ..Pool::timer_free(3, 4, 1) };
    Scope { pool, weights: weights.to_vec(), ..timer_free(requests) }
}

#[test]
fn weighted_requests_survive_a_crash_at_any_point() {
    let found = [[2, 2, 1], [2, 1, 2]].map(|weights| {
        let found = holds::<Weighted>(&two_of_four("211", weights));
        (found.states, found.reclaimed)
    });
    assert_eq!(found, [(112_464, 575); 2]);
}

/// Units that undetected dead may use leave no room for a request (broadcast spec L2): it waits
/// until everybody has made queries of its own, which find the dead.
#[test]
fn what_the_dead_may_use_comes_back_after_queries() {
    let scope = |weights: [u32; 3], probes| {
        let largest = weights.into_iter().max().unwrap();
        let probe = Some(Duration::from_secs(1));
        let pool = Pool { node_units_max: largest, probe, ..Pool::timer_free(3, 3, 1) };
        Scope { pool, weights: weights.to_vec(), probes, ..timer_free("111") }
    };
    let weights = [[2, 1, 1], [2, 2, 2], [3, 1, 2]];
    let found = weights.map(|weights| {
        let found = holds::<Weighted>(&scope(weights, 3));
        assert!(found.reclaimed > 0);
        found.states
    });
    assert_eq!(found, [28_674, 19_751, 20_148]);
    let blocked = every_history::<Weighted>(&scope(weights[1], 1));
    assert!(blocked.violation.is_some_and(|(what, _)| what.ends_with("waits for ever")));
}

#[test]
fn raymond_and_raynal_keep_their_laws() {
    let raymond = ["211", "1110"].map(|requests| holds::<Raymond>(&raymond(None, requests)).states);
    assert_eq!(raymond, [64_706, 114_277]);
    let weights = [[2, 2, 1], [3, 1, 2]];
    let states = weights.map(|weights| holds::<Raynal>(&raynal(None, weights)).states);
    assert_eq!(states, [341_412, 74_346]);
}

#[test]
#[cfg(feature = "long-checks")]
fn raymond_and_raynal_keep_their_laws_in_longer_histories() {
    assert_eq!(holds::<Raymond>(&raymond(None, "221")).states, 523_506);
    let weights = [[1, 1, 1], [1, 2, 1]];
    let states = weights.map(|weights| holds::<Raynal>(&raynal(None, weights)).states);
    assert_eq!(states, [1_007_645, 642_829]);
}

/// What can be seen of a world does not depend on what its explorer remembers of it.
#[test]
fn fewer_states_show_the_same() {
    fn is_alike<P: Explored>(scope: Scope) {
        let [full, reduced] = [false, true].map(|reduced| {
            let found = every_history::<P>(&Scope { reduced, views: true, ..scope.clone() });
            assert!(found.violation.is_none(), "{}", told(&found));
            found
        });
        assert!(reduced.states < full.states, "{} {}", reduced.states, full.states);
        assert_eq!(full.views, reduced.views);
        assert_eq!(full.reclaimed > 0, reduced.reclaimed > 0);
    }
    is_alike::<Weighted>(timer_free("111"));
    is_alike::<Weighted>(timer_free("211"));
    is_alike::<Weighted>(timer_free("2100"));
    is_alike::<Weighted>(Scope { ordered: false, ..timer_free("210") });
    is_alike::<Weighted>(Scope { heard_by: Vec::new(), ..timer_free("221x") });
    is_alike::<Weighted>(two_of_four("111", [2, 1, 2]));
    is_alike::<Raymond>(raymond(None, "111"));
    is_alike::<Raynal>(raynal(None, [3, 1, 2]));
}

/// Nobody crashes, and a printed error is put back.
fn broken(mutant: Mutant, requests: &str) -> Scope {
    let base = timer_free(requests);
    Scope { crashes: 0, pool: Pool { mutant: Some(mutant), ..base.pool.clone() }, ..base }
}

#[test]
fn errors_of_the_printed_protocols_are_found_by_the_shortest_way() {
    let full = |scope| Scope { reduced: false, ..scope };
    let found = finds::<Weighted>(full(broken(Mutant::TieBreakByIdentity, "111")));
    assert_eq!(found, ("3 units in use of 2".into(), 12));
    let found = finds::<Weighted>(full(broken(Mutant::UnmatchedReplies, "222")));
    assert_eq!(found, ("3 units in use of 2".into(), 13));
    let found = finds::<Weighted>(full(broken(Mutant::DropDeferred, "111")));
    assert_eq!(found, ("n2 waits for ever".into(), 17));
    let ordered = |scope| Scope { ordered: true, crashes: 0, ..full(scope) };
    let found = finds::<Raynal>(ordered(raynal(Some(Mutant::AssignUsed), [1, 2, 1])));
    assert_eq!(found, ("4 units in use of 3".into(), 27));
    let found = finds::<Raynal>(ordered(raynal(Some(Mutant::DeferOnce), [1, 2, 1])));
    assert_eq!(found.0, "n1 is owed something for ever");
    let found = finds::<Raymond>(ordered(raymond(Some(Mutant::LoseCount), "221")));
    assert_eq!(found.0, "n0 is owed something for ever");
}

/// Fewer states hide no error that they are meant for: those that leave answers matched to what
/// they answer, on which it rests that an answer to what is over is never read.
#[test]
fn errors_are_found_in_fewer_states() {
    let found = finds::<Weighted>(broken(Mutant::TieBreakByIdentity, "111"));
    assert_eq!(found.0, "3 units in use of 2");
    let found = finds::<Weighted>(broken(Mutant::DropDeferred, "111"));
    assert!(found.0.ends_with("waits for ever"), "{}", found.0);
    let ordered = |scope| Scope { ordered: true, ..scope };
    let found = finds::<Raynal>(ordered(raynal(Some(Mutant::AssignUsed), [1, 2, 1])));
    assert_eq!(found.0, "4 units in use of 3");
    let found = finds::<Raynal>(ordered(raynal(Some(Mutant::DeferOnce), [1, 2, 1])));
    assert!(found.0.ends_with("is owed something for ever"), "{}", found.0);
    let scope = Scope { heard_by: Vec::new(), crashes: 0, ..timer_free("221") };
    assert_eq!(finds::<Weighted>(scope), ("3 units in use of 2".into(), 13));
}

/// A known limit: without responsiveness a process that is merely slow is suspected, and a unit too
/// many is handed out. Nothing inside the protocol prevents it; `reclaim` decides who relies on it.
#[test]
fn without_responsiveness_a_unit_too_many_is_handed_out() {
    let scope = Scope { heard_by: Vec::new(), crashes: 0, ..timer_free("221") };
    let found = every_history::<Weighted>(&Scope { reduced: false, ..scope.clone() });
    let transcript = include_str!("../../../testdata/broadcast/without_responsiveness.txt");
    assert_eq!(told(&found), transcript.trim_end());
    // The same world where suspects are never counted out.
    let never = Scope { requests: timer_free("211").requests, ..scope };
    let pool = Pool { reclaim: Reclaim::Never, ..never.pool.clone() };
    let found = every_history::<Weighted>(&Scope { pool, ..never });
    assert!(found.violation.is_none() && found.false_suspicions > 0, "{}", told(&found));
}
