//! Whole rings under test: convergence and closure, the ablations, every interleaving of small
//! rings, scale.

mod chaos;
mod checked;
mod cluster;
mod instances;
mod leaving;
mod liveness;
mod mutants;
mod scale;
mod simulated;
mod stabilization;

use quorate_core::Dice;

use super::*;
use crate::reference::ring::*;

/// Terms with few enough sequence numbers that garbage often matches, and enough to converge.
pub(super) fn terms(units: u32, claim_max: u32, size: usize) -> Terms {
    let mut terms = Terms::new(units, claim_max);
    terms.seqs = 8 * size as u64 + 16;
    terms
}

/// From many corrupted states.
pub(super) fn from_anywhere<M: Stabilizing>(
    terms: Terms,
    wants: &[Vec<u32>],
    starts: u64,
    most: usize,
) -> Atlas<M> {
    let starts = (0..starts).map(|seed| {
        let mut dice = Dice::new(seed);
        let mut track = Track::scrambled(terms, wants.len(), 1, &mut |bound| dice.below(bound));
        track.settle(&mut |_| {});
        track
    });
    Atlas::explore(starts.collect(), wants, true, most).expect("it is small enough")
}
