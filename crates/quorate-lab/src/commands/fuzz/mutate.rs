//! Inputs that are nearly right: what a decoder took before, with a few bytes changed.

use quorate_core::Dice;

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
    pub(super) fn keep(&mut self, input: &[u8], dice: &mut Dice) {
        match self.kept.len() < self.examples + FOUND_MAX {
            true => self.kept.push(input.to_vec()),
            false => {
                let place = self.examples + dice.index(FOUND_MAX);
                input.clone_into(&mut self.kept[place]);
            }
        }
    }

    /// The next input, into `out`.
    pub(super) fn make(&self, out: &mut Vec<u8>, dice: &mut Dice) {
        out.clear();
        if self.kept.is_empty() || dice.index(16) == 0 {
            let length = dice.index(self.longest);
            out.extend((0..length).map(|_| dice.draw() as u8));
            return;
        }
        out.extend_from_slice(&self.kept[dice.index(self.kept.len())]);
        let mut changes = 1;
        while changes < 8 && dice.index(2) == 0 {
            changes += 1;
        }
        for _ in 0..changes {
            self.change(out, dice);
        }
        out.truncate(self.longest);
    }

    fn change(&self, out: &mut Vec<u8>, dice: &mut Dice) {
        let at = dice.index(out.len());
        if out.is_empty() {
            return out.push(dice.draw() as u8);
        }
        match dice.index(9) {
            0 => out[at] ^= 1 << dice.index(8),
            1 => out[at] = dice.draw() as u8,
            2 => out[at] = EDGES[dice.index(EDGES.len())],
            3 => out[at] = out[at].wrapping_add(if dice.index(2) == 0 { 1 } else { 255 }),
            4 => out.insert(at, EDGES[dice.index(EDGES.len())]),
            5 => drop(out.remove(at)),
            6 => out.truncate(at),
            7 => {
                // A piece of its own, once more.
                let end = at + dice.index((out.len() - at).min(64));
                let piece = out[at..end].to_vec();
                let place = dice.index(out.len());
                out.splice(place..place, piece);
            }
            _ => {
                // A piece of another.
                let other = &self.kept[dice.index(self.kept.len())];
                let from = dice.index(other.len());
                let end = from + dice.index((other.len() - from).min(64));
                let gone = at + dice.index((out.len() - at).min(64));
                out.splice(at..gone, other[from..end].iter().copied());
            }
        }
    }
}
