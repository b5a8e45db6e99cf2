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

use super::*;
use crate::reference::ring::*;

/// A generator of our own, so that a seed always means the same (SplitMix64).
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

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
        let mut chance = Chance(seed);
        let mut track = Track::scrambled(terms, wants.len(), 1, &mut |bound| chance.below(bound));
        track.settle(&mut |_| {});
        track
    });
    Atlas::explore(starts.collect(), wants, true, most).expect("it is small enough")
}
