//! Convergence from arbitrary states in unit-delay rounds (ring spec 5.1).

use super::*;

fn run<M: Stabilizing>(units: u32, claim_max: u32, size: usize, load: Load, starts: u64) {
    let terms = terms(units, claim_max, size);
    for seed in 0..starts {
        let mut dice = Dice::new(seed);
        let mut draw = |bound| dice.below(bound);
        let track = Track::<M>::scrambled(terms, size, 4, &mut draw);
        let measured = stabilize(track, RingTrial::new(size, load), &mut draw);
        assert!(!measured.has_failed(), "{units} {size} {load:?} seed {seed}: {measured:?}");
    }
}

fn all_loads<M: Stabilizing>(starts: u64) {
    for (units, claim_max, size) in [(1, 1, 2), (4, 2, 5), (8, 3, 10), (16, 8, 3), (3, 3, 1)] {
        for load in [Load::Idle, Load::Heavy { uses: 0 }, Load::Heavy { uses: 10 }] {
            run::<M>(units, claim_max, size, load, starts);
        }
    }
}

#[test]
fn core_converges_from_anywhere() {
    all_loads::<Core<Count>>(60);
}

#[test]
fn core_converges_from_anywhere_with_units_by_name() {
    all_loads::<Core<Named>>(30);
}

#[test]
fn train_converges_from_anywhere() {
    all_loads::<train::Train<Count>>(60);
}

#[test]
fn train_converges_from_anywhere_with_units_by_name() {
    all_loads::<train::Train<Named>>(30);
}
