//! Asynchronous runs: closure, convergence, and timeouts that come too early (ring spec 5.3).

use super::*;

const RINGS: [(u32, u32, usize); 6] =
    [(1, 1, 1), (2, 2, 2), (2, 2, 3), (4, 3, 6), (3, 3, 3), (8, 2, 12)];

/// Runs the legitimate start of every ring with every seed.
fn from_the_start<M: Stabilizing>(seeds: u64, premature: u64, check: impl Fn(&Track<M>)) {
    for (units, claim_max, size) in RINGS {
        for seed in 0..seeds {
            let mut dice = Dice::new(seed);
            let mut draw = |bound| dice.below(bound);
            let track = Track::started(terms(units, claim_max, size), size);
            let mut wander = Wander::new(track, &mut draw);
            wander.premature = premature;
            for _ in 0..2000 {
                wander.step();
                check(&wander.track);
                assert!(wander.track.in_use() <= u64::from(units), "{units} {size} seed {seed}");
            }
            assert!(wander.everyone_is_served(), "{units} {size} seed {seed}");
            assert!(wander.grants > 0);
        }
    }
}

fn closure<M: Stabilizing>(seeds: u64) {
    from_the_start::<M>(seeds, 0, |track| assert!(M::is_legitimate(track), "{track:#?}"));
}

fn convergence<M: Stabilizing>(seeds: u64) {
    for (units, claim_max, size) in RINGS {
        let terms = terms(units, claim_max, size);
        for seed in 0..seeds {
            let mut dice = Dice::new(seed);
            let mut draw = |bound| dice.below(bound);
            let track = Track::<M>::scrambled(terms, size, 4, &mut draw);
            let end = Wander::new(track, &mut draw).to_the_end();
            assert!(matches!(end, Wandered::Right { .. }), "{units} {size} seed {seed}: {end:?}");
        }
    }
}

#[test]
fn from_a_legitimate_ring_only_legitimate_rings_follow() {
    closure::<Core<Count>>(20);
    closure::<Core<Named>>(10);
    closure::<train::Train<Count>>(20);
    closure::<train::Train<Named>>(10);
}

#[test]
fn from_any_ring_a_legitimate_one_follows_and_everyone_is_served() {
    convergence::<Core<Count>>(40);
    convergence::<Core<Named>>(20);
    convergence::<train::Train<Count>>(40);
    convergence::<train::Train<Named>>(20);
}

/// A timeout that comes too early costs messages, never safety or service.
#[test]
fn an_early_timeout_is_harmless() {
    from_the_start::<Core<Count>>(20, 200, |_| ());
    from_the_start::<train::Train<Count>>(20, 200, |_| ());
    from_the_start::<train::Train<Named>>(20, 200, |_| ());
}
