//! What explorers remember: things by number, and which states they have seen.

#[allow(clippy::disallowed_types, reason = "looked up only, never iterated over")]
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// What was worked out before, to be looked up.
#[allow(clippy::disallowed_types, reason = "looked up only, never iterated over")]
pub(super) type Lookup<K, V> = HashMap<K, V, BuildHasherDefault<Mixer>>;

/// Things by number, each once.
pub(super) struct Shelf<T> {
    things: Vec<T>,
    numbers: Lookup<u64, Vec<u32>>,
}

impl<T: Eq + Hash> Shelf<T> {
    pub(super) fn new() -> Self {
        Shelf { things: Vec::new(), numbers: Lookup::default() }
    }

    pub(super) fn put(&mut self, thing: T) -> u32 {
        let numbers = self.numbers.entry(hash(&thing)).or_default();
        if let Some(&number) = numbers.iter().find(|&&number| self.things[number as usize] == thing)
        {
            return number;
        }
        let number = u32::try_from(self.things.len()).unwrap();
        self.things.push(thing);
        numbers.push(number);
        number
    }

    pub(super) fn get(&self, number: u32) -> &T {
        &self.things[number as usize]
    }
}

/// A quick hash of 64 bits. At 10^7 states two of them collide with a chance of about 10^-5.
pub(super) struct Mixer(u64);

impl Default for Mixer {
    fn default() -> Self {
        Mixer(0x5eed)
    }
}

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(word.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_u64(&mut self, word: u64) {
        let mixed = u128::from(self.0.rotate_left(23) ^ word) * 0x9e37_79b9_7f4a_7c15;
        self.0 = ((mixed >> 64) as u64 ^ mixed as u64).wrapping_add(0x1234_5678_9abc_def1);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

pub(super) fn hash(thing: &impl Hash) -> u64 {
    let mut mixer = Mixer::default();
    thing.hash(&mut mixer);
    mixer.write_u64(0x5eed);
    mixer.finish()
}

/// Hashes that were seen: open addressing, since millions of them are kept.
pub(super) struct Seen {
    slots: Vec<u64>,
    pub(super) count: usize,
}

impl Seen {
    pub(super) fn new() -> Self {
        Seen { slots: vec![0; 1 << 12], count: 0 }
    }

    /// Whether it is new.
    pub(super) fn insert(&mut self, hash: u64) -> bool {
        let hash = hash.max(1);
        if 2 * self.count >= self.slots.len() {
            let bigger = vec![0; 2 * self.slots.len()];
            let old = std::mem::replace(&mut self.slots, bigger);
            for hash in old.into_iter().filter(|&hash| hash != 0) {
                let slot = self.slot(hash);
                self.slots[slot] = hash;
            }
        }
        let slot = self.slot(hash);
        let new = self.slots[slot] == 0;
        self.slots[slot] = hash;
        self.count += usize::from(new);
        new
    }

    fn slot(&self, hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        while self.slots[slot] != 0 && self.slots[slot] != hash {
            slot = (slot + 1) & mask;
        }
        slot
    }
}
