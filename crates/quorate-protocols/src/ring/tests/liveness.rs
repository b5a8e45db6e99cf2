//! (k,l)-liveness (Datta, Hadid, Villain 2002, definition 2(b); ring spec 4.3, E18 and X8).
//!
//! As printed: while some use units for ever and alpha are free, somebody whose claim fits into
//! alpha is served, whoever else waits. That contradicts fairness, whatever the algorithm. As it
//! holds: if *every* waiting claim fits into alpha, every one is served.

use super::*;

type Core = crate::reference::ring::Core<Count>;
type Train = super::train::Train<Count>;

/// A station that can wait for ever while station 0 uses one unit of three for ever: two are free.
fn starves<M: Stabilizing>(needs: [u32; 2]) -> Option<usize> {
    let start = Track::<M>::started(tiny(3, 3, 2), 3);
    let wants = [vec![1], vec![needs[0]], vec![needs[1]]];
    let freedom = Freedom { forever: Some(0), ..Freedom::default() };
    let atlas = Atlas::explore_with(vec![start], &wants, freedom, 2_000_000);
    let atlas = atlas.expect("it is small enough");
    assert!(atlas.all_good());
    atlas.starves()
}

#[test]
fn whoever_fits_into_what_is_free_is_served_if_everyone_waiting_does() {
    assert_eq!(starves::<Core>([2, 2]), None);
    assert_eq!(starves::<Core>([1, 2]), None);
    assert_eq!(starves::<Train>([2, 2]), None);
    assert_eq!(starves::<Train>([1, 2]), None);
}

#[test]
fn whoever_fits_may_wait_for_ever_behind_one_that_does_not() {
    assert!(starves::<Core>([3, 2]).is_some());
    assert!(starves::<Train>([3, 2]).is_some());
}

const UNITS: u32 = 3;

/// Three claims at a pool of three units. The large one wants all; each of the small ones wants one
/// and, when the adversary has ended its use, asks again.
trait Algorithm {
    /// A small client asks.
    fn ask(&mut self, small: usize);
    /// A small client is made to end its use.
    fn end(&mut self, small: usize);
    /// Lets the algorithm do everything that it does without further asking and ending.
    fn go_on(&mut self);
    fn uses(&self, small: usize) -> bool;
    fn serves_the_large_one(&self) -> bool;
}

/// The adversary: one small client uses its unit until the other has been served, and no longer if
/// it never is. Every use is finite. Returns whether the large claim was served in time, and how
/// often a small one was.
fn adversary(algorithm: &mut impl Algorithm) -> (bool, u32) {
    let mut served = 0;
    algorithm.go_on();
    assert!(algorithm.uses(0), "it asked first");
    for turn in 0..20 {
        let (using, other) = (turn % 2, (turn + 1) % 2);
        algorithm.ask(other);
        algorithm.go_on();
        served += u32::from(algorithm.uses(other));
        algorithm.end(using);
        algorithm.go_on();
        if algorithm.serves_the_large_one() {
            return (true, served);
        }
        assert!(algorithm.uses(other));
    }
    (false, served)
}

/// Definition 2(b) to the letter, and nothing else: whoever fits into what is free is served.
struct AsPrinted {
    small: [StationClaim<Count>; 2],
    large: bool,
}

impl Algorithm for AsPrinted {
    fn ask(&mut self, small: usize) {
        self.small[small] = StationClaim::Requesting { need: 1 };
    }

    fn end(&mut self, small: usize) {
        self.small[small] = StationClaim::Out;
    }

    fn go_on(&mut self) {
        for small in &mut self.small {
            if !self.large && matches!(small, StationClaim::Requesting { .. }) {
                *small = StationClaim::Using { units: Count(1) };
            }
        }
        self.large |= !self.small.iter().any(|small| matches!(small, StationClaim::Using { .. }));
    }

    fn uses(&self, small: usize) -> bool {
        matches!(self.small[small], StationClaim::Using { .. })
    }

    fn serves_the_large_one(&self) -> bool {
        self.large
    }
}

#[test]
fn an_algorithm_with_the_printed_liveness_lets_a_large_claim_wait_for_ever() {
    let small = [StationClaim::Requesting { need: 1 }, StationClaim::Out];
    let mut printed = AsPrinted { small, large: false };
    assert_eq!(adversary(&mut printed), (false, 20), "every turn ends as it began");
}

/// The ring: station 0 and 2 are small, station 1 is large.
impl<M: Stabilizing> Algorithm for Track<M> {
    fn ask(&mut self, small: usize) {
        self.step(2 * small, |machine, terms, out| machine.request(terms, 1, out));
    }

    fn end(&mut self, small: usize) {
        self.step(2 * small, M::leave);
    }

    /// Far more rounds than anything takes that is going to happen at all.
    fn go_on(&mut self) {
        for _ in 0..100 * self.size() {
            self.round(&mut |_| {});
            (0..self.size()).for_each(|station| _ = self.step(station, M::nudge));
        }
    }

    fn uses(&self, small: usize) -> bool {
        self.stations[2 * small].station().in_use() > 0
    }

    fn serves_the_large_one(&self) -> bool {
        self.stations[1].station().in_use() == UNITS
    }
}

fn is_fair_to_the_large_one<M: Stabilizing>() {
    let mut ring = Track::<M>::started(tiny(UNITS, UNITS, 64), 3);
    ring.ask(0);
    ring.go_on();
    ring.step(1, |machine, terms, out| machine.request(terms, UNITS, out));
    let (large, small) = adversary(&mut ring);
    assert!(large, "the ring is fair");
    assert!(small < 20, "so it cannot have the printed liveness");
}

#[test]
fn the_ring_serves_the_large_claim_and_makes_a_small_one_wait_instead() {
    is_fair_to_the_large_one::<Core>();
    is_fair_to_the_large_one::<Train>();
}
