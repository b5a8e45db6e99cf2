//! One copy of every distinct value, known by a small number.
//!
//! Millions of worlds are built from a few thousand distinct participants, messages and queues.
//! Each of those is kept once, with a card of what was found out about it, and a world is a short
//! list of numbers: cheap to copy, to compare and to keep.

use std::hash::Hash;

use crate::hash::{Table, hash_of};

/// Distinct values of one type, and a card for each.
#[derive(Debug)]
pub struct Shelf<T, C> {
    items: Vec<(T, C)>,
    table: Table,
}

impl<T: Eq + Hash, C> Shelf<T, C> {
    /// An empty one.
    #[allow(clippy::new_without_default, reason = "one way to begin")]
    pub fn new() -> Self {
        Shelf { items: Vec::new(), table: Table::new() }
    }

    /// The number of a value, if it is here.
    pub(crate) fn find(&self, value: &T) -> Option<u32> {
        self.table.find(hash_of(value), |number| self.items[number as usize].0 == *value)
    }

    /// The number of a value, which is shelved if it is new.
    pub fn put(&mut self, value: T, card: impl FnOnce(&T) -> C) -> u32 {
        let hash = hash_of(&value);
        if let Some(number) = self.table.find(hash, |n| self.items[n as usize].0 == value) {
            return number;
        }
        let number = u32::try_from(self.items.len()).expect("fewer than 2^32 distinct values");
        self.table.add(hash, number, |n| hash_of(&self.items[n as usize].0));
        let card = card(&value);
        self.items.push((value, card));
        number
    }

    /// The value of this number.
    pub fn get(&self, number: u32) -> &T {
        &self.items[number as usize].0
    }

    pub(crate) fn card(&self, number: u32) -> &C {
        &self.items[number as usize].1
    }
}

impl<T: Eq + Hash> Shelf<T, ()> {
    /// The number of a value of which nothing else is to be known.
    pub fn keep(&mut self, value: T) -> u32 {
        self.put(value, |_| ())
    }
}
