//! Every world found so far, how it was found, and where it leads.

use crate::hash::{Table, hash_of_words};

/// Worlds, numbered in the order in which they were found.
#[derive(Debug)]
pub(crate) struct Atlas {
    /// Words per world.
    stride: usize,
    /// Worlds one after the other, in pieces, so that growing never copies.
    pieces: Vec<Vec<u32>>,
    table: Table,
    parents: Vec<u32>,
    /// For each world that was left, where the list of worlds it leads to without a fault ends.
    ends: Vec<usize>,
    leads_to: Vec<u32>,
}

impl Atlas {
    const PER_PIECE: usize = 1 << 16;

    pub(crate) fn new(stride: usize) -> Self {
        Atlas {
            stride,
            pieces: Vec::new(),
            table: Table::new(),
            parents: Vec::new(),
            ends: Vec::new(),
            leads_to: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.parents.len()
    }

    /// How many of them were left: where they lead is known.
    pub(crate) fn left(&self) -> usize {
        self.ends.len()
    }

    /// The words of a world.
    pub(crate) fn world(&self, number: usize) -> &[u32] {
        world(&self.pieces, self.stride, number)
    }

    /// The world from which this one was first reached; the first world is its own.
    pub(crate) fn parent(&self, number: usize) -> usize {
        self.parents[number] as usize
    }

    /// The number of a world, which is added if it is new.
    pub(crate) fn find_or_add(&mut self, words: &[u32], parent: usize) -> usize {
        let hash = hash_of_words(words);
        if let Some(known) = self.table.find(hash, |n| self.world(n as usize) == words) {
            return known as usize;
        }
        let number = self.len();
        if number.is_multiple_of(Self::PER_PIECE) {
            self.pieces.push(Vec::with_capacity(Self::PER_PIECE * self.stride));
        }
        self.pieces[number / Self::PER_PIECE].extend_from_slice(words);
        self.parents.push(parent as u32);
        let (pieces, stride) = (&self.pieces, self.stride);
        let rehash = |n: u32| hash_of_words(world(pieces, stride, n as usize));
        self.table.add(hash, number as u32, rehash);
        number
    }

    /// The world being left leads to this one.
    pub(crate) fn lead_to(&mut self, number: usize) {
        self.leads_to.push(number as u32);
    }

    /// Everything the world being left leads to was named. Worlds are left in order.
    pub(crate) fn leave(&mut self) {
        self.ends.push(self.leads_to.len());
    }

    /// Where a world leads without a fault.
    pub(crate) fn leads_to(&self, number: usize) -> &[u32] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.leads_to[start..self.ends[number]]
    }
}

fn world(pieces: &[Vec<u32>], stride: usize, number: usize) -> &[u32] {
    let start = number % Atlas::PER_PIECE * stride;
    &pieces[number / Atlas::PER_PIECE][start..start + stride]
}
