//! Exact fractions, always reduced: the resiliency of a family is one.

use std::cmp::Ordering;
use std::fmt;

use crate::Natural;

/// A non-negative fraction in lowest terms.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ratio {
    over: Natural,
    under: Natural,
}

impl Ratio {
    /// `over / under`, reduced.
    pub fn new(over: Natural, under: Natural) -> Self {
        assert!(!under.is_zero(), "a fraction needs a denominator");
        let common = over.common_divisor(&under);
        Ratio { over: over.divided_by(&common), under: under.divided_by(&common) }
    }

    /// `over / under` of small numbers.
    pub fn of(over: usize, under: usize) -> Self {
        Ratio::new(Natural::from(over), Natural::from(under))
    }

    /// Product.
    pub fn times(&self, other: &Ratio) -> Ratio {
        Ratio::new(self.over.times(&other.over), self.under.times(&other.under))
    }

    /// This share of `whole`, rounded down.
    pub fn share_of(&self, whole: &Natural) -> Natural {
        whole.times(&self.over).divided_by(&self.under)
    }

    /// The nearest float.
    pub fn to_f64(&self) -> f64 {
        // 64 bits of quotient, whatever the sizes of the two numbers.
        let shift = (64 + self.under.bits()).saturating_sub(self.over.bits());
        let quotient = self.over.shifted_left(shift).divided_by(&self.under).to_f64();
        i32::try_from(shift).map_or(0.0, |shift| quotient * 2f64.powi(-shift))
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        self.over.times(&other.under).cmp(&other.over.times(&self.under))
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.under == Natural::one() {
            f.pad(&self.over.to_string())
        } else {
            f.pad(&format!("{}/{}", self.over, self.under))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_reduced_ordered_and_close_to_their_floats() {
        assert_eq!(Ratio::of(10, 15).to_string(), "2/3");
        assert_eq!(Ratio::of(4, 4).to_string(), "1");
        assert!(Ratio::of(3, 7) < Ratio::of(4, 9));
        assert!((Ratio::of(3, 7).to_f64() - 3.0 / 7.0).abs() < 1e-15);
        let tiny = Ratio::new(Natural::binomial(500, 2), Natural::binomial(500, 3));
        assert!((tiny.to_f64() - 3.0 / 498.0).abs() < 1e-15);
    }
}
