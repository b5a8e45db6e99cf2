//! Each repair taken out: the harness must find what the specification says must happen then
//! (ring spec 4, X1 to X7 and X9). With all repairs in, the same search finds nothing.

use super::*;
use crate::reference::ring::{Erratum, Fixes};

type Core = crate::reference::ring::Core<Count>;

fn without(terms: Terms, erratum: Erratum) -> Terms {
    terms.with_fixes(Fixes::ALL.without(erratum))
}

/// Everything that can follow from one state when nobody asks.
fn idle(terms: Terms, size: usize, change: impl Fn(&mut Track<Core>)) -> Atlas<Core> {
    let mut start = Track::<Core>::started(terms, size);
    change(&mut start);
    let wants = vec![Vec::new(); size];
    Atlas::explore(vec![start], &wants, false, 100_000).expect("it is small enough")
}

/// Ring spec X5: one free token too many, and nobody asks.
fn surplus(track: &mut Track<Core>) {
    track.links[1].push_back(Message::Token(Count(1)));
}

#[test]
fn without_e2_a_surplus_of_free_tokens_is_never_seen() {
    let terms = tiny(1, 1, 4);
    assert!(idle(without(terms, Erratum::E2), 2, surplus).never_converges());
    assert!(!idle(terms, 2, surplus).never_converges());
}

#[test]
fn without_e6_a_surplus_of_free_tokens_survives_every_disable() {
    let terms = tiny(1, 1, 4);
    assert!(idle(without(terms, Erratum::E6), 2, surplus).never_converges());
    assert!(!idle(terms, 2, surplus).never_converges());
}

/// Ring spec X6: tokens and controller token are lost, and a station already has the current
/// number.
#[test]
fn without_e12_a_lost_controller_token_is_never_replaced() {
    let terms = tiny(1, 1, 4);
    let lost = |track: &mut Track<Core>| {
        track.links[0].clear();
        track.stations[1].station.seq = track.stations[0].station.seq;
    };
    assert!(idle(without(terms, Erratum::E12), 2, lost).never_converges());
    assert!(!idle(terms, 2, lost).never_converges());
}

/// Ring spec X2, X2b: from the legitimate start.
#[test]
fn without_e3_more_units_are_used_than_there_are() {
    let (terms, needs) = (tiny(2, 2, 2), [1, 2, 0]);
    let atlas = from_start::<Core>(without(terms, Erratum::E3), &needs, 400_000);
    assert!(!atlas.all_good());
    assert!(atlas.in_use_max() > 2);
    let atlas = from_start::<Core>(terms, &needs, 400_000);
    assert!(atlas.all_good());
    assert_eq!(atlas.in_use_max(), 2);
}

/// Ring spec X1: both wait with T_h = NEED and T_d > 0, for ever.
#[test]
fn without_e4_two_nodes_deadlock() {
    let (terms, needs) = (tiny(2, 2, 2), [2, 2]);
    let atlas = from_start::<Core>(without(terms, Erratum::E4), &needs, 400_000);
    assert!(atlas.all_good(), "it is safe");
    assert!(atlas.starves().is_some());
    assert_eq!(from_start::<Core>(terms, &needs, 400_000).starves(), None);
    // If nobody withdraws there is no way out at all.
    let stuck = |terms: Terms| {
        let (start, wants) = (Track::<Core>::started(terms, 2), [vec![2], vec![2]]);
        let atlas = Atlas::explore(vec![start], &wants, false, 400_000);
        atlas.expect("it is small enough").trap()
    };
    assert!(stuck(without(terms, Erratum::E4)).is_some());
    assert_eq!(stuck(terms), None);
}

/// Ring spec X3: safe, since the root makes them again, but not exactly l tokens.
#[test]
fn without_e5_tokens_are_lost() {
    let (terms, needs) = (tiny(3, 3, 2), [3, 3]);
    let atlas = from_start::<Core>(without(terms, Erratum::E5), &needs, 400_000);
    assert!(!atlas.all_good());
    assert_eq!(atlas.in_use_max(), 3);
    assert!(atlas.starves().is_some(), "withdrawals starve somebody besides");
    let atlas = from_start::<Core>(terms, &needs, 400_000);
    assert!(atlas.all_good());
    assert_eq!(atlas.starves(), None);
}

/// Ring spec X4: one harmless surplus token while all units are in use.
#[test]
fn without_e7_a_surplus_token_becomes_an_over_allocation() {
    let most_used = |terms: Terms| {
        let mut start = Track::<Core>::started(terms, 3);
        start.step(1, |machine, terms, out| machine.request(terms, 2, out));
        (0..3).for_each(|_| start.round(&mut |_| {}));
        assert_eq!(start.in_use(), 2);
        start.links[1].push_back(Message::Token(Count(1)));
        let wants = [vec![], vec![], vec![2]];
        let atlas = Atlas::explore(vec![start], &wants, false, 400_000);
        atlas.expect("it is small enough").in_use_max()
    };
    let terms = tiny(2, 2, 4);
    assert_eq!(most_used(without(terms, Erratum::E7)), 4);
    assert_eq!(most_used(terms), 2);
}

/// Ring spec X7: others ask and withdraw again and again.
#[test]
fn without_e13_withdrawals_starve_a_node() {
    let (terms, needs) = (tiny(2, 2, 2), [2, 2, 2]);
    let atlas = from_start::<Core>(without(terms, Erratum::E13), &needs, 1_000_000);
    assert!(atlas.all_good(), "it is safe");
    assert!(atlas.starves().is_some());
    assert_eq!(from_start::<Core>(terms, &needs, 1_000_000).starves(), None);
}

/// Ring spec X9 and E19: as many numbers as controller tokens suffice, one fewer never converges.
#[test]
fn with_fewer_numbers_than_controller_tokens_there_is_never_only_one() {
    for (seqs, tokens) in [(2, 3), (3, 4), (2, 2), (3, 3), (4, 3)] {
        let mut track = Track::<Core>::new(tiny(1, 1, seqs), 5);
        for i in 0..tokens {
            // The next one to reach the root has the number that the root expects next.
            track.links[4 - i].push_back(Message::Controller(i as u64 % seqs));
        }
        for _ in 0..500 {
            track.round(&mut |_| {});
        }
        let under_way = track.links.iter().flatten();
        let left = under_way.filter(|m| matches!(m, Message::Controller(_))).count();
        assert_eq!(left == 1, seqs >= tokens as u64, "{seqs} numbers, {tokens} tokens: {left}");
    }
}
