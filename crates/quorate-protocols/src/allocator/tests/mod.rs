//! The theorems of labels spec 6.2 as laws, and what breaks them.

mod exhaustive;
mod explained;
mod first_fit;
mod laws;
mod stories;

use quorate_core::Dice;

use super::Mutant;
use super::oracle::{self, Demand};
use laws::{Client, Watch};

use super::Policy;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Pinned,
    Movable,
    Mixed,
}

/// Some clients that can be served alone.
fn clients(dice: &mut Dice, units: u32, kind: Kind, lines: u64, wide: bool) -> Vec<Client> {
    (0..2 + dice.below(4))
        .map(|_| {
            loop {
                let wants: Vec<Demand> = (0..1 + dice.below(lines))
                    .map(|_| {
                        let alpha = 1 + dice.below((1 << units) - 1) as u32;
                        let most = if wide { u64::from(alpha.count_ones()) } else { 1 };
                        Demand { alpha, units: 1 + dice.below(most) as u32 }
                    })
                    .collect();
                if oracle::rho(&wants) == wants.iter().map(|want| want.units).sum::<u32>() {
                    let movable = match kind {
                        Kind::Pinned => false,
                        Kind::Movable => true,
                        Kind::Mixed => dice.below(2) == 0,
                    };
                    break Client { wants, movable };
                }
            }
        })
        .collect()
}

/// A random system, run for some steps under the laws. Says which law it breaks.
fn run(seed: u64, policy: Policy, kind: Kind, mutant: Option<Mutant>) -> Result<u32, String> {
    let dice = &mut Dice::new(seed);
    let units = 1 + dice.below(4) as u32;
    let (lines, wide) = match seed % 4 {
        0 => (1, false),
        1 | 2 => (1, true),
        _ => (3, true),
    };
    let clients = clients(dice, units, kind, lines, wide);
    let mut watch = Watch::new(units, clients, policy, mutant);
    for step in 0..60 {
        watch.step(dice).map_err(|law| format!("seed {seed} step {step}: {law}"))?;
    }
    Ok(watch.moves)
}

const POLICIES: [Policy; 3] =
    [Policy { protect: 1, patience: 0 }, Policy { protect: 2, patience: 0 }, Policy::STRICT];

#[test]
fn every_pass_of_every_run_keeps_the_laws() {
    let mut moves = 0;
    for seed in 0..4000 {
        let policy = POLICIES[(seed / 4 % 3) as usize];
        let kind = [Kind::Pinned, Kind::Movable, Kind::Mixed][(seed / 12 % 3) as usize];
        moves += run(seed, policy, kind, None).unwrap_or_else(|law| panic!("{law}"));
    }
    assert!(moves > 1000, "holders do move: {moves}");
}

/// How many of some seeds break a law.
fn caught(policy: Policy, kind: Kind, mutant: Option<Mutant>, law: &str) -> usize {
    (0..400)
        .filter(|seed| match run(*seed, policy, kind, mutant) {
            Ok(_) => false,
            Err(broken) => broken.contains(law),
        })
        .count()
}

/// The control group (labels spec 7): each broken variant breaks the law that it
/// should.
#[test]
fn the_laws_catch_every_broken_variant() {
    let one = POLICIES[0];
    let greedy = Policy { protect: 0, patience: 0 };
    for (policy, kind, mutant, law) in [
        (greedy, Kind::Pinned, None, "law B"),
        (one, Kind::Pinned, Some(Mutant::StrictFifo), "law W"),
        (one, Kind::Pinned, Some(Mutant::BindEarly), "law M"),
        (one, Kind::Movable, Some(Mutant::HandOverEarly), "law S"),
        (one, Kind::Movable, Some(Mutant::CountOnly), "law S"),
    ] {
        let found = caught(policy, kind, mutant, law);
        assert!(found > 0, "{mutant:?} with {policy:?} must break {law}");
    }
}
