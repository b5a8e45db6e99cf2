//! What will happen, in order of time; at equal times in the order in which it was planned.
//!
//! A radix heap (Ahuja, Mehlhorn, Orlin and Tarjan 1990): time never goes back, so an entry lies in
//! the bucket of the highest bit in which its time differs from the last one popped, and moves down
//! only when that bucket's turn comes. Most alarms are disarmed long before they would ring, and
//! those are never touched again. All entries of one time are always in one bucket, in the order in
//! which they came.
//!
//! Buckets hold small entries; the happenings themselves stay where they are in a slab, whose
//! places are used again, so that a long run allocates nothing.

/// Happenings by time.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// No entry is earlier than this.
    last: u64,
    /// Bucket 0 has the entries at `last`, bucket b those that differ from it first in bit b - 1.
    buckets: [Vec<Place>; BUCKETS],
    /// A bit for each bucket that is not empty.
    filled: u128,
    /// How many entries of bucket 0 were popped.
    popped: usize,
    slab: Vec<Slot<T>>,
    free: Vec<u32>,
    sequence: u64,
}

const BUCKETS: usize = u64::BITS as usize + 1;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    at: u64,
    ticket: Ticket,
}

/// The name of one planned happening.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticket {
    sequence: u64,
    index: u32,
}

#[derive(Debug)]
struct Slot<T> {
    sequence: u64,
    happening: Option<T>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue {
            last: 0,
            buckets: [const { Vec::new() }; BUCKETS],
            filled: 0,
            popped: 0,
            slab: Vec::new(),
            free: Vec::new(),
            sequence: 0,
        }
    }
}

impl<T> Queue<T> {
    /// Plans a happening.
    pub(crate) fn push(&mut self, at: u64, happening: T) -> Ticket {
        assert!(at >= self.last, "nothing is planned for the past");
        self.sequence += 1;
        let sequence = self.sequence;
        let slot = Slot { sequence, happening: Some(happening) };
        let index = match self.free.pop() {
            Some(index) => {
                self.slab[index as usize] = slot;
                index
            }
            None => {
                self.slab.push(slot);
                u32::try_from(self.slab.len() - 1).expect("fewer than 2^32 happenings at once")
            }
        };
        let ticket = Ticket { sequence, index };
        self.put(Place { at, ticket });
        ticket
    }

    /// Takes a happening back, if it has not happened.
    pub(crate) fn cancel(&mut self, ticket: Ticket) {
        self.take(ticket);
    }

    /// The next happening, unless it is later than `end`.
    pub(crate) fn pop(&mut self, end: u64) -> Option<(u64, Ticket, T)> {
        loop {
            while let Some(&Place { at, ticket }) = self.buckets[0].get(self.popped) {
                if at > end {
                    return None;
                }
                self.popped += 1;
                if let Some(happening) = self.take(ticket) {
                    return Some((at, ticket, happening));
                }
            }
            self.buckets[0].clear();
            self.popped = 0;
            self.filled &= !1;
            if !self.refill(end) {
                return None;
            }
        }
    }

    /// Whether nothing is planned any more.
    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.slab.len()
    }

    /// Moves the entries of the lowest bucket down, unless all of them are later than `end`; says
    /// whether there may be more to pop.
    fn refill(&mut self, end: u64) -> bool {
        if self.filled == 0 {
            return false;
        }
        let lowest = self.filled.trailing_zeros() as usize;
        let mut bucket = std::mem::take(&mut self.buckets[lowest]);
        bucket.retain(|place| self.is_planned(place.ticket));
        let earliest = bucket.iter().map(|place| place.at).min();
        match earliest {
            Some(at) if at > end => {
                self.buckets[lowest] = bucket;
                return false;
            }
            Some(at) => self.last = at,
            None => {}
        }
        self.filled &= !(1 << lowest);
        for place in bucket.drain(..) {
            self.put(place);
        }
        // Its room is used again.
        self.buckets[lowest] = bucket;
        true
    }

    fn put(&mut self, place: Place) {
        let bucket = (u64::BITS - (place.at ^ self.last).leading_zeros()) as usize;
        self.buckets[bucket].push(place);
        self.filled |= 1 << bucket;
    }

    fn is_planned(&self, ticket: Ticket) -> bool {
        let slot = &self.slab[ticket.index as usize];
        slot.sequence == ticket.sequence && slot.happening.is_some()
    }

    fn take(&mut self, ticket: Ticket) -> Option<T> {
        let slot = &mut self.slab[ticket.index as usize];
        if slot.sequence != ticket.sequence {
            return None;
        }
        let happening = slot.happening.take()?;
        self.free.push(ticket.index);
        Some(happening)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    #[test]
    fn earliest_first_and_in_the_order_planned_at_equal_times() {
        let mut queue = Queue::default();
        for (at, name) in [(5, 'c'), (1, 'a'), (5, 'd'), (1, 'b')] {
            queue.push(at, name);
        }
        let order: String =
            std::iter::from_fn(|| queue.pop(u64::MAX).map(|(_, _, name)| name)).collect();
        assert_eq!(order, "abcd");
        assert!(queue.is_empty());
        queue.push(9, 'e');
        assert_eq!(queue.slab.len(), 4, "places are used again");
        assert_eq!(queue.pop(8), None);
        assert_eq!(queue.pop(9).map(|(_, _, name)| name), Some('e'));
    }

    /// Against a sorted list, the slow and obvious way.
    #[test]
    fn it_agrees_with_a_sorted_list() {
        let mut rng = Rng::new(1);
        let mut queue = Queue::default();
        let mut list: Vec<(u64, u64)> = Vec::new();
        let mut tickets = Vec::new();
        let mut now = 0;
        for number in 0..20_000 {
            match rng.below(5) {
                0 | 1 => {
                    let range = 1 << rng.below(40);
                    let at = now + rng.below(range);
                    tickets.push((queue.push(at, number), number));
                    list.push((at, number));
                }
                2 if !tickets.is_empty() => {
                    let (ticket, number) = *rng.pick(&tickets);
                    queue.cancel(ticket);
                    list.retain(|(_, other)| *other != number);
                }
                _ => {
                    let range = 1 << rng.below(40);
                    let end = now + rng.below(range);
                    list.sort_unstable();
                    let wanted = list.first().copied().filter(|(at, _)| *at <= end);
                    let found = queue.pop(end).map(|(at, _, number)| (at, number));
                    assert_eq!(found, wanted);
                    match found {
                        Some((at, _)) => {
                            list.remove(0);
                            now = at;
                        }
                        None => now = end,
                    }
                }
            }
        }
        assert!(now > 0);
    }
}
