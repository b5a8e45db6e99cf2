//! Worlds, each kept in a few words.
//!
//! A world is a list of words, and from one world to the next few of them change. So four words
//! that stand beside each other are kept once, wherever they occur, and known by a number; four of
//! these numbers likewise, and so on, until a world is no more than its last two to four numbers.
//! (Laarman, van de Pol and Weber 2011, "Parallel recursive state compression for free", with four
//! branches instead of two: fewer look-ups, and a little more to keep.) Nothing is lost by it:
//! equal numbers are equal words.

use crate::hash::{Table, hash_of_words};

/// How many words become one.
const WIDTH: usize = 4;
/// A world of so few words is kept as it is.
const ROOT_MAX: usize = 4;

/// Distinct worlds, numbered in the order in which they were added.
#[derive(Debug)]
pub(crate) struct Tree {
    levels: Vec<Level>,
    roots: Kept,
    /// Words of a world, while they become fewer.
    given: Vec<u32>,
}

/// Lists of words become shorter here, and long again.
#[derive(Debug)]
struct Level {
    kept: Kept,
    /// How many words come in.
    words: usize,
    /// What came in for the world that we are at, and what became of it: the worlds that it leads
    /// to are mostly the same.
    here: Vec<u32>,
    numbers: Vec<u32>,
}

impl Tree {
    /// No world yet; each will have so many words.
    pub(crate) fn new(words: usize) -> Self {
        let (mut levels, mut left) = (Vec::new(), words);
        while left > ROOT_MAX {
            let level = Level {
                kept: Kept::new(WIDTH),
                words: left,
                here: Vec::new(),
                numbers: Vec::new(),
            };
            levels.push(level);
            left = left.div_ceil(WIDTH);
        }
        Tree { levels, roots: Kept::new(left), given: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.roots.len()
    }

    /// Goes to a world, and gives its words.
    pub(crate) fn go_to(&mut self, number: usize, words: &mut Vec<u32>) {
        words.clear();
        words.extend_from_slice(self.roots.get(number as u32));
        for level in self.levels.iter_mut().rev() {
            level.numbers.clone_from(words);
            level.kept.expand(&level.numbers, &mut level.here);
            words.clone_from(&level.here);
            words.truncate(level.words);
        }
    }

    /// The words of a world.
    pub(crate) fn read(&self, number: usize, words: &mut Vec<u32>) {
        words.clear();
        words.extend_from_slice(self.roots.get(number as u32));
        let mut longer = Vec::new();
        for level in self.levels.iter().rev() {
            level.kept.expand(words, &mut longer);
            longer.truncate(level.words);
            std::mem::swap(words, &mut longer);
        }
    }

    /// The number of a world, which is added if it is new.
    pub(crate) fn find_or_add(&mut self, words: &[u32]) -> usize {
        let Tree { levels, roots, given } = self;
        given.clear();
        given.extend_from_slice(words);
        for level in levels {
            level.shorten(given);
        }
        roots.find_or_add(given) as usize
    }

    /// How many bytes all of them take.
    pub(crate) fn bytes(&self) -> usize {
        self.roots.bytes() + self.levels.iter().map(|level| level.kept.bytes()).sum::<usize>()
    }
}

impl Level {
    fn shorten(&mut self, words: &mut Vec<u32>) {
        let count = words.len().div_ceil(WIDTH);
        words.resize(count * WIDTH, 0);
        for place in 0..count {
            let from = place * WIDTH;
            let four = &words[from..from + WIDTH];
            let number = match self.here.get(from..from + WIDTH) {
                Some(here) if here == four => self.numbers[place],
                _ => self.kept.find_or_add(four),
            };
            words[place] = number;
        }
        words.truncate(count);
    }
}

/// One copy of every distinct list of so many words.
#[derive(Debug)]
struct Kept {
    stride: usize,
    /// One after the other, in pieces, so that growing never copies.
    pieces: Vec<Vec<u32>>,
    table: Table,
}

impl Kept {
    const PER_PIECE: usize = 1 << 16;

    fn new(stride: usize) -> Self {
        Kept { stride, pieces: Vec::new(), table: Table::new() }
    }

    fn len(&self) -> usize {
        self.table.len()
    }

    fn get(&self, number: u32) -> &[u32] {
        get(&self.pieces, self.stride, number)
    }

    fn expand(&self, numbers: &[u32], into: &mut Vec<u32>) {
        into.clear();
        numbers.iter().for_each(|number| into.extend_from_slice(self.get(*number)));
    }

    fn find_or_add(&mut self, words: &[u32]) -> u32 {
        let Kept { stride, pieces, table } = self;
        let hash = hash_of_words(words);
        if let Some(known) = table.find(hash, |number| get(pieces, *stride, number) == words) {
            return known;
        }
        let number = table.len();
        if number.is_multiple_of(Self::PER_PIECE) {
            pieces.push(Vec::with_capacity(Self::PER_PIECE * *stride));
        }
        pieces[number / Self::PER_PIECE].extend_from_slice(words);
        table.add(hash, number as u32, |number| hash_of_words(get(pieces, *stride, number)));
        number as u32
    }

    fn bytes(&self) -> usize {
        self.len() * self.stride * size_of::<u32>() + self.table.bytes()
    }
}

fn get(pieces: &[Vec<u32>], stride: usize, number: u32) -> &[u32] {
    let number = number as usize;
    let start = number % Kept::PER_PIECE * stride;
    &pieces[number / Kept::PER_PIECE][start..start + stride]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks through worlds of any width, in which a word or two change at a time, and compares
    /// with a plain list of them.
    #[test]
    fn worlds_come_back_as_they_went_in_and_equal_ones_have_one_number() {
        for width in [1, 4, 5, 16, 17, 29, 64, 65] {
            let (mut tree, mut list) = (Tree::new(width), Vec::<Vec<u32>>::new());
            let (mut world, mut chance) = (vec![0_u32; width], 1_u64);
            for _ in 0..3_000 {
                chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                world[(chance >> 33) as usize % width] = (chance >> 60) as u32 % 3;
                let number = tree.find_or_add(&world);
                match list.iter().position(|known| *known == world) {
                    Some(known) => assert_eq!(number, known),
                    None => {
                        assert_eq!(number, list.len());
                        list.push(world.clone());
                    }
                }
                // Being somewhere else changes nothing but how fast it goes.
                let mut words = Vec::new();
                tree.go_to((chance >> 40) as usize % list.len(), &mut words);
            }
            assert_eq!(tree.len(), list.len());
            let mut words = Vec::new();
            for (number, known) in list.iter().enumerate() {
                tree.read(number, &mut words);
                assert_eq!(words, *known);
            }
        }
    }

    #[test]
    fn words_that_stay_take_no_room() {
        let mut tree = Tree::new(64);
        let mut world = vec![0; 64];
        for number in 0..100_000 {
            (world[0], world[63]) = (number % 400, number / 400);
            tree.find_or_add(&world);
        }
        assert_eq!(tree.len(), 100_000);
        assert!(tree.bytes() < 100_000 * 32, "{} bytes, and not 256 each", tree.bytes());
    }
}
