//! A hash that is the same in every run, and the one kind of hash table this crate uses.
//!
//! Nothing here decides whether two values are equal: every table compares values after it compared
//! hashes, so a collision costs a little time and never a state. [`fingerprint`] is for explorers
//! that keep no values, and has twice as many bits.

use std::hash::{BuildHasherDefault, Hash, Hasher};

/// An odd number without a pattern (the fraction of the golden ratio).
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hasher: folded multiplication: the two halves of a 128-bit product, mixed.
#[derive(Clone, Copy, Debug)]
pub struct Folded(u64);

impl Default for Folded {
    fn default() -> Self {
        Folded(SEED)
    }
}

impl Folded {
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word).wrapping_mul(u128::from(SEED));
        self.0 = ((product as u64) ^ ((product >> 64) as u64)).wrapping_add(SEED);
    }
}

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
        self.mix(bytes.len() as u64);
    }

    fn write_u8(&mut self, n: u8) {
        self.mix(u64::from(n));
    }

    fn write_u32(&mut self, n: u32) {
        self.mix(u64::from(n));
    }

    fn write_u64(&mut self, n: u64) {
        self.mix(n);
    }

    fn write_u128(&mut self, n: u128) {
        self.mix(n as u64);
        self.mix((n >> 64) as u64);
    }

    fn write_usize(&mut self, n: usize) {
        self.mix(n as u64);
    }

    fn finish(&self) -> u64 {
        // The product leaves its last word weakly mixed, and tables use the low bits.
        let product = u128::from(self.0).wrapping_mul(u128::from(SEED.rotate_left(32) | 1));
        (product as u64) ^ ((product >> 64) as u64)
    }
}

/// The hash of one value.
pub(crate) fn hash_of<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = Folded::default();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Two hashes of one value: with a million values, two are taken for one with a chance of 10^-26.
pub fn fingerprint<T: Hash + ?Sized>(value: &T) -> u128 {
    let half = |seed: u64| {
        let mut hasher = Folded(seed);
        value.hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(SEED) << 64 | half(!SEED)
}

/// The hash of a world: its words, two at a time.
pub(crate) fn hash_of_words(words: &[u32]) -> u64 {
    let mut hasher = Folded::default();
    let mut pairs = words.chunks_exact(2);
    for pair in &mut pairs {
        hasher.mix(u64::from(pair[0]) << 32 | u64::from(pair[1]));
    }
    if let [last] = pairs.remainder() {
        hasher.mix(u64::from(*last));
    }
    hasher.finish()
}

/// A map for looking up what was computed before.
#[expect(clippy::disallowed_types, reason = "looked up by key, never iterated")]
pub type Lookup<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<Folded>>;

/// Which of many values kept elsewhere are equal to a given one: an open-addressing table of their
/// numbers. A number needs as many bits as the table has places, at most; the rest of its word is
/// for a piece of its hash, so that hardly ever a value is looked at that is another.
#[derive(Debug)]
pub(crate) struct Table {
    /// A piece of a hash above the number; [`Table::FREE`] where there is none.
    slots: Vec<u32>,
    len: usize,
}

impl Table {
    const FREE: u32 = u32::MAX;

    pub(crate) fn new() -> Self {
        Table { slots: vec![Self::FREE; 64], len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.slots[..])
    }

    /// Which bits of a slot are the number.
    fn mask(&self) -> u32 {
        (self.slots.len() - 1) as u32
    }

    /// The piece of a hash that goes above a number: from the half that does not say the place.
    fn piece(&self, hash: u64) -> u32 {
        (hash >> 32) as u32 & !self.mask()
    }

    /// The number of a value with this hash that `is_it`.
    pub(crate) fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let (mask, piece) = (self.mask(), self.piece(hash));
        let mut place = hash as u32 & mask;
        loop {
            let slot = self.slots[place as usize];
            if slot == Self::FREE {
                return None;
            }
            if slot & !mask == piece && is_it(slot & mask) {
                return Some(slot & mask);
            }
            place = (place + 1) & mask;
        }
    }

    /// Adds a value that is not there, with the next number. `rehash` gives the hash of one that
    /// is.
    pub(crate) fn add(&mut self, hash: u64, number: u32, rehash: impl Fn(u32) -> u64) {
        assert_eq!(number as usize, self.len, "values are numbered as they come");
        if (self.len + 1) * 8 > self.slots.len() * 5 {
            assert!(self.slots.len() < 1 << 31, "fewer than 2^30 values, of which each has room");
            self.slots = vec![Self::FREE; self.slots.len() * 2];
            (0..number).for_each(|number| self.place(rehash(number), number));
        }
        self.place(hash, number);
        self.len += 1;
    }

    fn place(&mut self, hash: u64, number: u32) {
        let mask = self.mask();
        let mut place = hash as u32 & mask;
        while self.slots[place as usize] != Self::FREE {
            place = (place + 1) & mask;
        }
        // Fewer values than places: a number is never all ones, and so no slot is.
        self.slots[place as usize] = self.piece(hash) | number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_finds_what_was_added_and_nothing_else() {
        let values: Vec<u64> = (0..10_000).map(|n| n * n).collect();
        let mut table = Table::new();
        for (number, value) in values.iter().enumerate() {
            assert_eq!(table.find(hash_of(value), |n| values[n as usize] == *value), None);
            table.add(hash_of(value), number as u32, |n| hash_of(&values[n as usize]));
        }
        for (number, value) in values.iter().enumerate() {
            let found = table.find(hash_of(value), |n| values[n as usize] == *value);
            assert_eq!(found, Some(number as u32));
        }
    }

    #[test]
    fn small_differences_spread_over_the_low_bits() {
        let mut low: Vec<u64> = (0..4096u32).map(|n| hash_of_words(&[7, n, 0]) % 4096).collect();
        low.sort_unstable();
        low.dedup();
        // A perfect random function would hit about 63 of 100 places.
        assert!(low.len() > 2400, "{}", low.len());
    }
}
