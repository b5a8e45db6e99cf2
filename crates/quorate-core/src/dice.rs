//! Chance that a seed repeats.

use std::time::Duration;

/// Numbers that follow from a seed, for ever: a seed is an interface, which people write down
/// (SplitMix64: Steele, Lea, Flood 2014).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Those of a seed.
    pub const fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// The next 64 bits.
    #[inline]
    pub const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    #[inline]
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound
    }

    /// A place in something of this length; 0 where there is none.
    #[inline]
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length.max(1) as u64) as usize
    }

    /// Whether one of so many sides comes up.
    pub const fn one_in(&mut self, sides: u64) -> bool {
        self.below(sides) == 0
    }

    /// A span up to this long.
    pub const fn span(&mut self, most: Duration) -> Duration {
        Duration::from_micros(self.below(most.as_micros() as u64 + 1))
    }

    /// One of these, of which there are some.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The outputs that the authors' own program prints for this seed.
    #[test]
    fn a_seed_means_the_same_for_ever() {
        let mut dice = Dice::new(1_234_567);
        assert_eq!(dice.draw(), 6_457_827_717_110_365_317);
        assert_eq!(dice.draw(), 3_203_168_211_198_807_973);
        assert_eq!(dice.draw(), 9_817_491_932_198_370_423);
        assert_eq!((dice.index(0), dice.index(1)), (0, 0));
    }
}
