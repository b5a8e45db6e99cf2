//! Inputs that are nearly right: what a decoder took before, with a few bytes changed.

/// SplitMix64: a seed means the same forever.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// What was taken so far, from which the next inputs are made.
pub(super) struct Corpus {
    kept: Vec<Vec<u8>>,
    /// Examples stay; what was found gives way to what is found later.
    examples: usize,
    longest: usize,
}

/// So many are kept beside the examples.
const FOUND_MAX: usize = 512;
/// Bytes at which numbers, lengths and letters turn into others.
const EDGES: [u8; 12] = [0, 1, 2, 0x7f, 0x80, 0x81, 0xfe, 0xff, b'"', b'\n', b'*', b'='];

impl Corpus {
    /// Of these examples; inputs are not much longer than the longest of them.
    pub(super) fn new(examples: Vec<Vec<u8>>) -> Corpus {
        let longest = examples.iter().map(Vec::len).max().unwrap_or(0).max(32) * 3 / 2;
        Corpus { examples: examples.len(), kept: examples, longest }
    }

    /// Keeps an input that was taken.
    pub(super) fn keep(&mut self, input: &[u8], chance: &mut Chance) {
        match self.kept.len() < self.examples + FOUND_MAX {
            true => self.kept.push(input.to_vec()),
            false => {
                let place = self.examples + chance.below(FOUND_MAX);
                input.clone_into(&mut self.kept[place]);
            }
        }
    }

    /// The next input, into `out`.
    pub(super) fn make(&self, out: &mut Vec<u8>, chance: &mut Chance) {
        out.clear();
        if self.kept.is_empty() || chance.below(16) == 0 {
            let length = chance.below(self.longest);
            out.extend((0..length).map(|_| chance.next() as u8));
            return;
        }
        out.extend_from_slice(&self.kept[chance.below(self.kept.len())]);
        let mut changes = 1;
        while changes < 8 && chance.below(2) == 0 {
            changes += 1;
        }
        for _ in 0..changes {
            self.change(out, chance);
        }
        out.truncate(self.longest);
    }

    fn change(&self, out: &mut Vec<u8>, chance: &mut Chance) {
        let at = chance.below(out.len());
        if out.is_empty() {
            return out.push(chance.next() as u8);
        }
        match chance.below(9) {
            0 => out[at] ^= 1 << chance.below(8),
            1 => out[at] = chance.next() as u8,
            2 => out[at] = EDGES[chance.below(EDGES.len())],
            3 => out[at] = out[at].wrapping_add(if chance.below(2) == 0 { 1 } else { 255 }),
            4 => out.insert(at, EDGES[chance.below(EDGES.len())]),
            5 => drop(out.remove(at)),
            6 => out.truncate(at),
            7 => {
                // A piece of its own, once more.
                let end = at + chance.below((out.len() - at).min(64));
                let piece = out[at..end].to_vec();
                let place = chance.below(out.len());
                out.splice(place..place, piece);
            }
            _ => {
                // A piece of another.
                let other = &self.kept[chance.below(self.kept.len())];
                let from = chance.below(other.len());
                let end = from + chance.below((other.len() - from).min(64));
                let gone = at + chance.below((out.len() - at).min(64));
                out.splice(at..gone, other[from..end].iter().copied());
            }
        }
    }
}
