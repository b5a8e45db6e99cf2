//! Which units of a class are free.

const WORD: u32 = u64::BITS;

/// A set of small numbers that gives out its lowest: a bit each, and a bit per word of them, so
/// that finding one does not take longer in a large pool.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct FreeSet {
    words: Vec<u64>,
    /// A bit per word, set if the word is not zero.
    summary: Vec<u64>,
    count: u32,
}

impl FreeSet {
    /// No number below `size`.
    pub(super) fn empty(size: u32) -> Self {
        let words = size.div_ceil(WORD);
        let summary = words.div_ceil(WORD);
        FreeSet { words: vec![0; words as usize], summary: vec![0; summary as usize], count: 0 }
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn contains(&self, number: u32) -> bool {
        self.words.get((number / WORD) as usize).is_some_and(|w| w >> (number % WORD) & 1 == 1)
    }

    pub(super) fn insert(&mut self, number: u32) {
        assert!(!self.contains(number), "a unit comes back once");
        let word = number / WORD;
        self.words[word as usize] |= 1 << (number % WORD);
        self.summary[(word / WORD) as usize] |= 1 << (word % WORD);
        self.count += 1;
    }

    pub(super) fn remove(&mut self, number: u32) {
        assert!(self.contains(number), "exclusivity: the caller has made sure of it");
        let word = number / WORD;
        self.words[word as usize] &= !(1 << (number % WORD));
        if self.words[word as usize] == 0 {
            self.summary[(word / WORD) as usize] &= !(1 << (word % WORD));
        }
        self.count -= 1;
    }

    /// Takes the lowest out.
    pub(super) fn take_lowest(&mut self) -> u32 {
        assert!(self.count > 0, "capacity: the caller has made sure of room");
        let first = |bits: &[u64]| {
            let word = bits.iter().position(|word| *word != 0).expect("one is not empty");
            word as u32 * WORD + bits[word].trailing_zeros()
        };
        let word = first(&self.summary);
        let number = word * WORD + self.words[word as usize].trailing_zeros();
        self.remove(number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_comes_out_first_and_once() {
        for size in [1, 2, 63, 64, 65, 130, 5000] {
            let mut set = FreeSet::empty(size);
            for number in (0..size).rev() {
                set.insert(number);
            }
            assert!(!set.contains(size), "there is nothing beyond the last");
            let taken: Vec<u32> = (0..size).map(|_| set.take_lowest()).collect();
            assert_eq!(taken, (0..size).collect::<Vec<_>>());
            assert_eq!(set, FreeSet::empty(size));
        }
    }
}
