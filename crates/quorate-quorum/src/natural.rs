//! Natural numbers without a ceiling: families on thousands of nodes have more quorums than any
//! machine word can count. Only what counting needs is here.

use std::cmp::Ordering;
use std::fmt;

/// A natural number of any size.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Natural {
    /// Little-endian. Invariant: the last limb is not zero.
    limbs: Vec<u64>,
}

impl Natural {
    /// Zero.
    pub const fn zero() -> Self {
        Natural { limbs: Vec::new() }
    }

    /// One.
    pub fn one() -> Self {
        Natural::from(1usize)
    }

    /// How many ways there are to choose `k` of `n`.
    pub fn binomial(n: usize, k: usize) -> Self {
        if k > n {
            return Natural::zero();
        }
        let k = k.min(n - k);
        let (mut value, mut over, mut under) = (Natural::one(), 1u64, 1u64);
        // Any number of factors at a time: after each, binomial(n-k+i, i) is a whole number.
        let fold = |value: &Natural, over: u64, under: u64| {
            value.times(&Natural::from(u128::from(over))).divided_by_word(under).0
        };
        for i in 1..=k as u64 {
            let next = (n - k) as u64 + i;
            (over, under) = match (over.checked_mul(next), under.checked_mul(i)) {
                (Some(over), Some(under)) => (over, under),
                _ => {
                    value = fold(&value, over, under);
                    (next, i)
                }
            };
        }
        fold(&value, over, under)
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.limbs.is_empty()
    }

    /// Number of bits, without leading zeros.
    pub fn bits(&self) -> usize {
        self.limbs.last().map_or(0, |top| self.limbs.len() * 64 - top.leading_zeros() as usize)
    }

    /// The number, if it fits.
    pub fn to_u64(&self) -> Option<u64> {
        match self.limbs.as_slice() {
            [] => Some(0),
            [word] => Some(*word),
            _ => None,
        }
    }

    /// The nearest float, infinite beyond its range.
    pub fn to_f64(&self) -> f64 {
        let shift = self.bits().saturating_sub(64);
        let top = self.shifted_right(shift).to_u64().unwrap_or(0);
        i32::try_from(shift).map_or(f64::INFINITY, |shift| top as f64 * 2f64.powi(shift))
    }

    /// Sum.
    pub fn plus(&self, other: &Natural) -> Natural {
        let mut limbs = Vec::with_capacity(self.limbs.len().max(other.limbs.len()) + 1);
        let mut carry = false;
        for i in 0..self.limbs.len().max(other.limbs.len()) {
            let (sum, over) = self.limb(i).overflowing_add(other.limb(i));
            let (sum, more) = sum.overflowing_add(u64::from(carry));
            limbs.push(sum);
            carry = over || more;
        }
        limbs.push(u64::from(carry));
        Natural::trimmed(limbs)
    }

    /// Difference; `None` if it would be negative.
    pub fn minus(&self, other: &Natural) -> Option<Natural> {
        if *self < *other {
            return None;
        }
        let mut limbs = Vec::with_capacity(self.limbs.len());
        let mut borrow = false;
        for i in 0..self.limbs.len() {
            let (rest, under) = self.limbs[i].overflowing_sub(other.limb(i));
            let (rest, more) = rest.overflowing_sub(u64::from(borrow));
            limbs.push(rest);
            borrow = under || more;
        }
        Some(Natural::trimmed(limbs))
    }

    /// Product.
    pub fn times(&self, other: &Natural) -> Natural {
        let mut limbs = vec![0u64; self.limbs.len() + other.limbs.len()];
        for (i, &a) in self.limbs.iter().enumerate() {
            let mut carry = 0u128;
            for (j, &b) in other.limbs.iter().enumerate() {
                let sum = u128::from(a) * u128::from(b) + u128::from(limbs[i + j]) + carry;
                limbs[i + j] = sum as u64;
                carry = sum >> 64;
            }
            limbs[i + other.limbs.len()] = carry as u64;
        }
        Natural::trimmed(limbs)
    }

    /// Power.
    pub fn power(&self, exponent: usize) -> Natural {
        let (mut value, mut base, mut left) = (Natural::one(), self.clone(), exponent);
        while left > 0 {
            if left & 1 == 1 {
                value = value.times(&base);
            }
            left >>= 1;
            if left > 0 {
                base = base.times(&base);
            }
        }
        value
    }

    /// Quotient and remainder by one word.
    pub fn divided_by_word(&self, by: u64) -> (Natural, u64) {
        assert!(by > 0, "division by zero");
        let mut limbs = vec![0; self.limbs.len()];
        let mut rest = 0u128;
        for i in (0..self.limbs.len()).rev() {
            let part = rest << 64 | u128::from(self.limbs[i]);
            limbs[i] = (part / u128::from(by)) as u64;
            rest = part % u128::from(by);
        }
        (Natural::trimmed(limbs), rest as u64)
    }

    /// Quotient, rounded down, by shifting and subtracting: slow and plain, for reducing fractions.
    pub fn divided_by(&self, by: &Natural) -> Natural {
        assert!(!by.is_zero(), "division by zero");
        if let Some(word) = by.to_u64() {
            return self.divided_by_word(word).0;
        }
        let mut rest = self.clone();
        let mut quotient = Natural::zero();
        for shift in (0..=self.bits().saturating_sub(by.bits())).rev() {
            if let Some(less) = rest.minus(&by.shifted_left(shift)) {
                rest = less;
                quotient = quotient.plus(&Natural::one().shifted_left(shift));
            }
        }
        quotient
    }

    /// Greatest common divisor, by halving.
    pub fn common_divisor(&self, other: &Natural) -> Natural {
        if self.is_zero() || other.is_zero() {
            return self.plus(other);
        }
        let twos = self.trailing_zeros().min(other.trailing_zeros());
        let mut a = self.shifted_right(self.trailing_zeros());
        let mut b = other.shifted_right(other.trailing_zeros());
        while a != b {
            if a < b {
                std::mem::swap(&mut a, &mut b);
            }
            let difference = a.minus(&b).expect("a is the larger one");
            a = difference.shifted_right(difference.trailing_zeros());
        }
        a.shifted_left(twos)
    }

    /// Multiplied by a power of two.
    pub fn shifted_left(&self, by: usize) -> Natural {
        let mut limbs = vec![0; by / 64];
        let within = by % 64;
        let mut carry = 0;
        for &limb in &self.limbs {
            limbs.push(limb << within | carry);
            carry = if within == 0 { 0 } else { limb >> (64 - within) };
        }
        limbs.push(carry);
        Natural::trimmed(limbs)
    }

    /// Divided by a power of two, rounded down.
    pub fn shifted_right(&self, by: usize) -> Natural {
        let (skip, within) = (by / 64, by % 64);
        let count = self.limbs.len().saturating_sub(skip);
        let limbs = (skip..skip + count).map(|i| {
            let high = if within == 0 { 0 } else { self.limb(i + 1) << (64 - within) };
            self.limb(i) >> within | high
        });
        Natural::trimmed(limbs.collect())
    }

    fn trailing_zeros(&self) -> usize {
        let skip = self.limbs.iter().take_while(|&&limb| limb == 0).count();
        skip * 64 + self.limb(skip).trailing_zeros() as usize
    }

    fn limb(&self, index: usize) -> u64 {
        self.limbs.get(index).copied().unwrap_or(0)
    }

    fn trimmed(mut limbs: Vec<u64>) -> Natural {
        while limbs.last() == Some(&0) {
            limbs.pop();
        }
        Natural { limbs }
    }
}

impl From<usize> for Natural {
    fn from(value: usize) -> Self {
        Natural::trimmed(vec![value as u64])
    }
}

impl From<u128> for Natural {
    fn from(value: u128) -> Self {
        Natural::trimmed(vec![value as u64, (value >> 64) as u64])
    }
}

impl Ord for Natural {
    fn cmp(&self, other: &Self) -> Ordering {
        let lengths = self.limbs.len().cmp(&other.limbs.len());
        lengths.then_with(|| self.limbs.iter().rev().cmp(other.limbs.iter().rev()))
    }
}

impl PartialOrd for Natural {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Natural {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const GROUP: u64 = 10_000_000_000_000_000_000;
        let mut groups = Vec::new();
        let mut left = self.clone();
        while !left.is_zero() {
            let (rest, group) = left.divided_by_word(GROUP);
            groups.push(group);
            left = rest;
        }
        let mut text = groups.pop().unwrap_or(0).to_string();
        for group in groups.iter().rev() {
            text.push_str(&format!("{group:019}"));
        }
        f.pad(&text)
    }
}

impl fmt::Debug for Natural {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_agrees_with_machine_words() {
        let samples =
            [0u128, 1, 2, 9, 63, 64, u128::from(u64::MAX), 1 << 64, 12_345_678_901_234_567];
        for a in samples {
            for b in samples {
                let (x, y) = (Natural::from(a), Natural::from(b));
                assert_eq!(x.plus(&y), Natural::from(a + b));
                assert_eq!(x.minus(&y), a.checked_sub(b).map(Natural::from));
                if let Some(product) = a.checked_mul(b) {
                    assert_eq!(x.times(&y), Natural::from(product));
                }
                if let Some(quotient) = a.checked_div(b) {
                    assert_eq!(x.divided_by(&y), Natural::from(quotient));
                }
            }
            assert_eq!(Natural::from(a).to_string(), a.to_string());
        }
        assert_eq!(
            Natural::from(6usize * 35).common_divisor(&Natural::from(4usize * 35)),
            Natural::from(70usize)
        );
    }

    #[test]
    fn binomials_obey_pascal_far_beyond_a_word() {
        let sum = Natural::binomial(399, 199).plus(&Natural::binomial(399, 200));
        assert_eq!(Natural::binomial(400, 200), sum);
        assert!(sum.bits() > 128);
        assert_eq!(Natural::from(10usize).power(30).to_string(), format!("1{}", "0".repeat(30)));
    }
}
