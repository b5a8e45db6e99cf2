//! How much a participant knows.

use std::hash::Hasher;

use quorate_core::Protocol;

/// How many bytes a participant would be if its fields were written one behind the other: what it
/// knows, without what memory adds to that.
pub(crate) fn bytes<P: Protocol>(participant: &P) -> u64 {
    let mut counter = Counter(0);
    participant.hash(&mut counter);
    counter.finish()
}

struct Counter(u64);

impl Hasher for Counter {
    fn write(&mut self, bytes: &[u8]) {
        self.0 += bytes.len() as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
