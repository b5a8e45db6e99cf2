//! Every world found so far, how it was found, and where it leads.

use crate::tree::Tree;

/// Worlds, numbered in the order in which they were found.
#[derive(Debug)]
pub(crate) struct Atlas {
    worlds: Tree,
    /// For each world that was left, how many were known then. Worlds are left in the order in
    /// which they were found, so this also says from where each was found.
    known: Vec<u32>,
    /// Where the world being left leads to without a fault.
    leading: Vec<u32>,
    ways: Ways,
}

/// For each world that was left, the worlds it leads to without a fault: as distances back from
/// the last that was known then, since most are near it, in as few bytes as each needs.
#[derive(Debug, Default)]
struct Ways {
    bytes: Vec<u8>,
    /// Where the list of every world ends, counted from where its block of worlds begins.
    ends: Vec<u32>,
    blocks: Vec<usize>,
}

impl Atlas {
    pub(crate) fn new(words: usize) -> Self {
        Atlas {
            worlds: Tree::new(words),
            known: Vec::new(),
            leading: Vec::new(),
            ways: Ways::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.worlds.len()
    }

    /// How many of them were left: where they lead is known.
    pub(crate) fn left(&self) -> usize {
        self.known.len()
    }

    /// How many bytes all of it takes, without room for more.
    pub(crate) fn bytes(&self) -> usize {
        let Ways { bytes, ends, blocks } = &self.ways;
        let ways = bytes.len() + size_of_val(&ends[..]) + size_of_val(&blocks[..]);
        self.worlds.bytes() + size_of_val(&self.known[..]) + ways
    }

    /// The words of a world.
    pub(crate) fn read(&self, number: usize, words: &mut Vec<u32>) {
        self.worlds.read(number, words);
    }

    /// The words of a world that is to be left: finding those beside it is faster then.
    pub(crate) fn go_to(&mut self, number: usize, words: &mut Vec<u32>) {
        self.worlds.go_to(number, words);
    }

    /// The world from which this one was first reached, which has been left; not of the first.
    pub(crate) fn parent(&self, number: usize) -> usize {
        self.known.partition_point(|known| *known as usize <= number)
    }

    /// The number of a world, which is added if it is new.
    pub(crate) fn find_or_add(&mut self, words: &[u32]) -> usize {
        self.worlds.find_or_add(words)
    }

    /// The world being left leads to this one.
    pub(crate) fn lead_to(&mut self, number: usize) {
        self.leading.push(number as u32);
    }

    /// Everything the world being left leads to was named. Worlds are left in order.
    pub(crate) fn leave(&mut self) {
        let known = self.len() as u32;
        self.known.push(known);
        self.ways.add(self.leading.drain(..).map(|next| known - next));
    }

    /// Where a world leads without a fault.
    pub(crate) fn leads_to(&self, number: usize) -> impl Iterator<Item = usize> + '_ {
        let known = self.known[number];
        self.ways.of(number).map(move |back| (known - back) as usize)
    }
}

impl Ways {
    /// Worlds per block.
    const BLOCK: usize = 1 << 12;

    fn add(&mut self, numbers: impl Iterator<Item = u32>) {
        if self.ends.len().is_multiple_of(Self::BLOCK) {
            self.blocks.push(self.bytes.len());
        }
        for mut number in numbers {
            while number >= 1 << 7 {
                self.bytes.push(number as u8 | 1 << 7);
                number >>= 7;
            }
            self.bytes.push(number as u8);
        }
        let begin = self.blocks[self.ends.len() / Self::BLOCK];
        let end = u32::try_from(self.bytes.len() - begin).expect("a block of a few megabytes");
        self.ends.push(end);
    }

    fn end(&self, number: usize) -> usize {
        self.blocks[number / Self::BLOCK] + self.ends[number] as usize
    }

    fn of(&self, number: usize) -> impl Iterator<Item = u32> + '_ {
        let start = number.checked_sub(1).map_or(0, |before| self.end(before));
        let mut bytes = self.bytes[start..self.end(number)].iter();
        std::iter::from_fn(move || {
            let (mut value, mut shift) = (0, 0);
            loop {
                let byte = bytes.next()?;
                value |= u32::from(byte & 0x7f) << shift;
                if byte >> 7 == 0 {
                    return Some(value);
                }
                shift += 7;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More worlds than a block has, with ways of every length.
    #[test]
    fn ways_and_parents_are_as_they_were_told() {
        let mut atlas = Atlas::new(5);
        atlas.find_or_add(&[0; 5]);
        let (mut ways, mut parents) = (Vec::new(), vec![0]);
        for number in 0..2 * Ways::BLOCK as u32 + 5 {
            let mut to = Vec::new();
            for next in [2 * number + 1, 2 * number + 2, number / 3] {
                let found = atlas.find_or_add(&[next, 0, 0, 0, next]);
                if found == parents.len() {
                    parents.push(number as usize);
                }
                if next % 5 != 0 {
                    atlas.lead_to(found);
                    to.push(found);
                }
            }
            atlas.leave();
            ways.push(to);
        }
        for (number, to) in ways.iter().enumerate() {
            assert!(atlas.leads_to(number).eq(to.iter().copied()), "of {number}");
        }
        for (number, parent) in parents.iter().enumerate().take(atlas.len()).skip(1) {
            assert_eq!(atlas.parent(number), *parent, "of {number}");
        }
    }
}
