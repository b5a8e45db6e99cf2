//! Chance, reproducibly: xoshiro256++ seeded by [`Dice`].
//!
//! A seed is an interface: people write it down, and it must mean the same tomorrow. So the
//! generator is our own, its first outputs are pinned below, and nothing here calls a function of
//! the platform's mathematics library, whose last digits differ between machines.

use quorate_core::Dice;

/// One stream of pseudo-random numbers (Blackman and Vigna 2019).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        let mut mixed = Dice::new(seed);
        Rng { state: std::array::from_fn(|_| mixed.draw()) }
    }

    /// A stream of its own for one purpose, so that drawing more for one does not shift the others.
    pub fn fork(&mut self) -> Rng {
        Rng::new(self.draw())
    }

    /// The next 64 bits.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// A number in `0..n`; 0 if there is none.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        // The high half of a product: its bias, at most n / 2^64, is far below what anyone can
        // measure.
        ((u128::from(self.draw()) * u128::from(n)) >> 64) as u64
    }

    /// A number in `low..=high`.
    #[inline]
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        debug_assert!(low <= high, "{low}..={high}");
        low + self.below((high - low).saturating_add(1))
    }

    /// True in so many of a million cases.
    #[inline]
    pub fn chance(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.below(1_000_000) < u64::from(ppm)
    }

    /// One of several.
    ///
    /// # Panics
    /// If there are none.
    pub fn pick<'a, T>(&mut self, among: &'a [T]) -> &'a T {
        &among[self.below(among.len() as u64) as usize]
    }

    /// A real number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.draw() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Exponentially distributed with this mean.
    #[inline(never)]
    pub fn exponential(&mut self, mean: u64) -> u64 {
        (-ln(1.0 - self.unit()) * mean as f64) as u64
    }

    /// Normally distributed, cut at 0 (Marsaglia's polar method).
    #[inline(never)]
    pub fn normal(&mut self, mean: u64, deviation: u64) -> u64 {
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                let standard = x * (-2.0 * ln(square) / square).sqrt();
                return (mean as f64 + standard * deviation as f64).max(0.0) as u64;
            }
        }
    }
}

/// 1/19, 1/17, ..., 1/1: the coefficients of the series below, the last one first.
const RECIPROCALS: [f64; 10] = {
    let mut reciprocals = [0.0; 10];
    let mut index = 0;
    while index < 10 {
        reciprocals[index] = 1.0 / (19 - 2 * index) as f64;
        index += 1;
    }
    reciprocals
};

/// Natural logarithm of a positive normal number, from operations that IEEE 754 defines to the last
/// bit.
fn ln(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut mantissa = f64::from_bits((bits & MANTISSA) | (1023 << 52));
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh s with s = (m - 1)/(m + 1), and |s| < 0.172.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let mut series = 0.0;
    for reciprocal in RECIPROCALS {
        series = series * square + reciprocal;
    }
    2.0 * s * series + exponent as f64 * std::f64::consts::LN_2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_means_the_same_forever() {
        let mut rng = Rng::new(0x5eed);
        let first: [u64; 4] = std::array::from_fn(|_| rng.draw());
        assert_eq!(first, PINNED);
        let mut fork = Rng::new(0x5eed).fork();
        assert_ne!(fork.draw(), first[1]);
    }

    const PINNED: [u64; 4] =
        [10282429449889516544, 18289893575130937175, 1677040964159157043, 8068187894902567183];

    /// The generator's reference outputs for the state 1, 2, 3, 4.
    #[test]
    fn the_generator_is_the_published_one() {
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let first: [u64; 4] = std::array::from_fn(|_| rng.draw());
        assert_eq!(first, [41943041, 58720359, 3588806011781223, 3591011842654386]);
    }

    #[test]
    fn our_logarithm_agrees_with_the_platform_s() {
        let mut rng = Rng::new(1);
        for _ in 0..10_000 {
            let x = 1.0 - rng.unit();
            assert!((ln(x) - x.ln()).abs() <= 1e-13 * x.ln().abs().max(1.0), "{x}");
        }
    }

    #[test]
    fn draws_stay_in_their_range_and_reach_its_ends() {
        let mut rng = Rng::new(2);
        let drawn: Vec<u64> = (0..1000).map(|_| rng.between(3, 6)).collect();
        assert_eq!(drawn.iter().min(), Some(&3));
        assert_eq!(drawn.iter().max(), Some(&6));
        let hits = (0..100_000).filter(|_| rng.chance(250_000)).count();
        assert!((24_000..26_000).contains(&hits), "{hits}");
        assert_eq!((0..1000).filter(|_| rng.chance(0)).count(), 0);
    }
}
