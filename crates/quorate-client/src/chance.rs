//! Chance, in two kinds: names that nobody else chooses, and jitter that a seed repeats.

use std::hash::{BuildHasher, RandomState};

/// 64 bits from the operating system's entropy, by way of the standard library's hash keys.
pub(crate) fn entropy() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// A small seeded generator (splitmix64): jitter only, so that tests can repeat a run.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Chance(seed)
    }

    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound
    }
}
