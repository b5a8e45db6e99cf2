//! A hash table that is looked up and never walked, so that its order cannot matter.

use std::hash::{BuildHasherDefault, Hasher};

/// Keys to values, by a fast hash that is the same in every run.
#[expect(clippy::disallowed_types, reason = "only looked up, never iterated")]
pub(crate) type Table<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<Mixer>>;

/// Multiplies and rotates, one word at a time: keys come from ourselves, nobody floods us.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Mixer(u64);

impl Mixer {
    fn mix(&mut self, word: u64) {
        const ODD: u64 = 0x517c_c1b7_2722_0a95;
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(ODD);
    }
}

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        // The table takes its bits from both ends.
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.mix(u64::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.mix(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.mix(word as u64);
    }
}
