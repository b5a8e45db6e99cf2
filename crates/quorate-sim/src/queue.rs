//! What will happen, in order of time; at equal times in the order in which it was planned.
//!
//! The heap moves small entries around and the happenings themselves stay where they are in a slab,
//! whose places are used again, so that a long run allocates nothing.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Happenings by time.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    heap: BinaryHeap<Place>,
    slab: Vec<Option<T>>,
    free: Vec<u32>,
    sequence: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    at: u64,
    sequence: u64,
    index: u32,
}

/// The standard heap gives the greatest first, so the earliest is the greatest.
impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue { heap: BinaryHeap::new(), slab: Vec::new(), free: Vec::new(), sequence: 0 }
    }
}

impl<T> Queue<T> {
    /// Plans a happening; gives its number.
    pub(crate) fn push(&mut self, at: u64, happening: T) -> u64 {
        let index = match self.free.pop() {
            Some(index) => {
                self.slab[index as usize] = Some(happening);
                index
            }
            None => {
                let index = u32::try_from(self.slab.len()).expect("fewer than 2^32 happenings");
                self.slab.push(Some(happening));
                index
            }
        };
        self.sequence += 1;
        self.heap.push(Place { at, sequence: self.sequence, index });
        self.sequence
    }

    /// When the next one is.
    pub(crate) fn next_at(&self) -> Option<u64> {
        self.heap.peek().map(|place| place.at)
    }

    /// The next one: when, its number, and what.
    pub(crate) fn pop(&mut self) -> Option<(u64, u64, T)> {
        let Place { at, sequence, index } = self.heap.pop()?;
        self.free.push(index);
        let happening = self.slab[index as usize].take();
        Some((at, sequence, happening.expect("a place in the heap has a happening in the slab")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earliest_first_and_in_the_order_planned_at_equal_times() {
        let mut queue = Queue::default();
        for (at, name) in [(5, 'c'), (1, 'a'), (5, 'd'), (1, 'b')] {
            queue.push(at, name);
        }
        assert_eq!(queue.next_at(), Some(1));
        let order: String = std::iter::from_fn(|| queue.pop().map(|(_, _, name)| name)).collect();
        assert_eq!(order, "abcd");
        queue.push(9, 'e');
        assert_eq!(queue.slab.len(), 4, "places are used again");
    }
}
