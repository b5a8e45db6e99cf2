//! What will happen, in order of time; at equal times in the order in which it was planned.
//!
//! A radix heap (Ahuja, Mehlhorn, Orlin and Tarjan 1990) whose digits have six bits: time never
//! goes back, so an entry lies in the bucket of the highest digit in which its time differs from a
//! recent one, and moves down only when that bucket's turn comes, which most entries do once or
//! twice. Most alarms are disarmed long before they would ring, and those are never touched again.
//! A bucket with few entries is not divided any further but sorted: it is the near future, from
//! which happenings are popped.
//!
//! Buckets hold small entries; the happenings themselves stay where they are in a slab, whose
//! places are used again, so that a long run allocates nothing, and are moved once, when they are
//! taken.

use std::cmp::Reverse;

/// Happenings by time.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// No entry is earlier than this.
    last: u64,
    /// All entries up to `near_end`, latest first.
    near: Vec<Place>,
    near_end: u64,
    /// All later ones: 64 buckets for each digit, by its value where it is the highest one that
    /// differs from `last`.
    buckets: Vec<Vec<Place>>,
    /// A bit for each bucket of a digit that is not empty, and for each digit that has such.
    filled: [u64; DIGITS],
    digits: u32,
    slab: Vec<Option<T>>,
    /// The sequence number of what is in each place of the slab, 0 if nothing is. Kept apart, so
    /// that looking whether an entry is void does not touch the happening.
    occupants: Vec<u64>,
    free: Vec<u32>,
    sequence: u64,
}

/// A bucket with no more entries than this is sorted instead of divided.
const SORTED_MAX: usize = 48;
/// A near future with more entries than this is given back in part.
const NEAR_MAX: usize = 4 * SORTED_MAX;
const DIGIT: u32 = 6;
const DIGITS: usize = u64::BITS.div_ceil(DIGIT) as usize;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    at: u64,
    ticket: Ticket,
}

impl Place {
    /// By time, and at equal times by when it was planned: in one number, which sorts faster.
    fn order(&self) -> u128 {
        u128::from(self.at) << u64::BITS | u128::from(self.ticket.sequence)
    }
}

/// The name of one planned happening.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Ticket {
    sequence: u64,
    index: u32,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue {
            last: 0,
            near: Vec::new(),
            near_end: 0,
            buckets: (0..DIGITS << DIGIT).map(|_| Vec::new()).collect(),
            filled: [0; DIGITS],
            digits: 0,
            slab: Vec::new(),
            occupants: Vec::new(),
            free: Vec::new(),
            sequence: 0,
        }
    }
}

impl<T> Queue<T> {
    /// Plans a happening.
    #[inline]
    pub(crate) fn push(&mut self, at: u64, happening: T) -> Ticket {
        self.sequence += 1;
        let sequence = self.sequence;
        let index = match self.free.pop() {
            Some(index) => {
                let place = &mut self.slab[index as usize];
                assert!(place.is_none(), "a free place is empty");
                *place = Some(happening);
                self.occupants[index as usize] = sequence;
                index
            }
            None => {
                self.slab.push(Some(happening));
                self.occupants.push(sequence);
                u32::try_from(self.slab.len() - 1).expect("fewer than 2^32 happenings at once")
            }
        };
        let ticket = Ticket { sequence, index };
        let place = Place { at, ticket };
        if at <= self.near_end {
            // The newest of its time is the last of its time.
            let position = self.near.partition_point(|other| other.at > at);
            self.near.insert(position, place);
            if self.near.len() > NEAR_MAX {
                self.give_back();
            }
        } else {
            self.put(place);
        }
        ticket
    }

    /// Takes a happening back, if it has not happened.
    pub(crate) fn cancel(&mut self, ticket: Ticket) {
        self.take(ticket);
    }

    /// When the next happening is and its ticket, unless it is later than `end`: to be taken.
    #[inline]
    pub(crate) fn pop(&mut self, end: u64) -> Option<(u64, Ticket)> {
        loop {
            while let Some(&Place { at, ticket }) = self.near.last() {
                if at > end {
                    return None;
                }
                self.near.pop();
                if self.is_planned(ticket) {
                    return Some((at, ticket));
                }
            }
            if !self.refill(end) {
                return None;
            }
        }
    }

    /// Takes a happening out, if it is still planned.
    #[inline]
    pub(crate) fn take(&mut self, ticket: Ticket) -> Option<T> {
        if !self.is_planned(ticket) {
            return None;
        }
        self.occupants[ticket.index as usize] = 0;
        self.free.push(ticket.index);
        self.slab[ticket.index as usize].take()
    }

    /// Everything planned, in order.
    pub(crate) fn planned(&self) -> impl Iterator<Item = &T> {
        let places = self.near.iter().chain(self.buckets.iter().flatten());
        let mut places: Vec<&Place> = places.filter(|p| self.is_planned(p.ticket)).collect();
        places.sort_unstable_by_key(|place| place.order());
        places.into_iter().filter_map(|place| self.slab[place.ticket.index as usize].as_ref())
    }

    /// Whether nothing is planned any more.
    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.slab.len()
    }

    /// Divides the lowest bucket or makes it the near future, unless all of it is later than `end`;
    /// says whether there may be more to pop.
    fn refill(&mut self, end: u64) -> bool {
        if self.digits == 0 {
            return false;
        }
        let digit = self.digits.trailing_zeros() as usize;
        let value = self.filled[digit].trailing_zeros() as usize;
        let lowest = digit << DIGIT | value;
        let mut bucket = std::mem::take(&mut self.buckets[lowest]);
        bucket.retain(|place| self.is_planned(place.ticket));
        let earliest = bucket.iter().map(|place| place.at).min();
        if earliest.is_some_and(|at| at > end) {
            self.buckets[lowest] = bucket;
            return false;
        }
        self.filled[digit] &= !(1 << value);
        if self.filled[digit] == 0 {
            self.digits &= !(1 << digit);
        }
        // Those of one time cannot be divided.
        if digit == 0 || bucket.len() <= SORTED_MAX {
            bucket.sort_unstable_by_key(|place| Reverse(place.order()));
            self.near.append(&mut bucket);
            // Earlier buckets are empty: whatever shares the higher digits with this one is in it.
            let shift = DIGIT * digit as u32;
            let above = self.last.checked_shr(shift + DIGIT).unwrap_or(0);
            let first = above.checked_shl(shift + DIGIT).unwrap_or(0) | (value as u64) << shift;
            self.near_end = first | ((1 << shift) - 1);
        } else {
            self.last = earliest.expect("a bucket that is not empty");
            for place in bucket.drain(..) {
                self.put(place);
            }
        }
        // Its room is used again.
        self.buckets[lowest] = bucket;
        true
    }

    /// Puts the later half of a crowded near future back into buckets.
    fn give_back(&mut self) {
        let (split, first) = (self.near[self.near.len() / 2].at, self.near[self.near.len() - 1].at);
        if split == first {
            return; // Many at one time: nothing to gain.
        }
        let kept = self.near.partition_point(|place| place.at >= split);
        // `last` stays: what is in buckets already was put there relative to it.
        self.near_end = split - 1;
        let mut near = std::mem::take(&mut self.near);
        // In the order in which they were planned, those of one time stay in order.
        for place in near.drain(..kept).rev() {
            self.put(place);
        }
        self.near = near;
    }

    #[inline]
    fn put(&mut self, place: Place) {
        assert!(place.at >= self.last, "nothing is planned for the past");
        let digit = (place.at ^ self.last | 1).ilog2() / DIGIT;
        let value = place.at >> (DIGIT * digit) & ((1 << DIGIT) - 1);
        self.buckets[(digit << DIGIT) as usize | value as usize].push(place);
        self.filled[digit as usize] |= 1 << value;
        self.digits |= 1 << digit;
    }

    #[inline]
    fn is_planned(&self, ticket: Ticket) -> bool {
        self.occupants[ticket.index as usize] == ticket.sequence
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    fn popped<T>(queue: &mut Queue<T>, end: u64) -> Option<(u64, T)> {
        let (at, ticket) = queue.pop(end)?;
        Some((at, queue.take(ticket).expect("what is popped is planned")))
    }

    #[test]
    fn earliest_first_and_in_the_order_planned_at_equal_times() {
        let mut queue = Queue::default();
        for (at, name) in [(5, 'c'), (1, 'a'), (5, 'd'), (1, 'b')] {
            queue.push(at, name);
        }
        let order: String =
            std::iter::from_fn(|| popped(&mut queue, u64::MAX).map(|(_, name)| name)).collect();
        assert_eq!(order, "abcd");
        assert!(queue.is_empty());
        queue.push(9, 'e');
        assert_eq!(queue.slab.len(), 4, "places are used again");
        assert_eq!(queue.pop(8), None);
        assert_eq!(popped(&mut queue, 9), Some((9, 'e')));
    }

    #[test]
    fn many_at_one_time_keep_their_order() {
        let mut queue = Queue::default();
        for number in 0..5 * NEAR_MAX {
            queue.push(1_000 + (number % 2) as u64, number);
        }
        let numbers = std::iter::from_fn(|| popped(&mut queue, u64::MAX).map(|(_, number)| number));
        let evens = (0..5 * NEAR_MAX).step_by(2);
        let odds = (1..5 * NEAR_MAX).step_by(2);
        assert!(numbers.eq(evens.chain(odds)));
    }

    /// Entries given back at two different times lie in buckets relative to one and the same time,
    /// even if a large power of two lies between the two.
    #[test]
    fn a_near_future_that_is_crowded_twice_stays_in_order() {
        let mut queue = Queue::default();
        let (start, middle, crowd) = (1 << 20, 3 << 19, NEAR_MAX as u64);
        queue.push(start, 0);
        popped(&mut queue, start).expect("one is planned");
        queue.push(middle - 10, 0);
        for number in 0..crowd {
            queue.push(middle + 1_000 + 10 * number, 0);
        }
        popped(&mut queue, middle).expect("one is planned before the middle");
        for number in 0..crowd {
            queue.push(middle + 100 + number, 0);
        }
        assert!(queue.near_end < middle + 1_000, "given back twice");
        queue.push(middle + 5_000, 0);
        let times: Vec<u64> =
            std::iter::from_fn(|| popped(&mut queue, u64::MAX).map(|(at, _)| at)).collect();
        assert_eq!(times.len(), 2 * NEAR_MAX + 1);
        assert!(times.is_sorted());
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
            // More and more is planned, then less and less: a near future that is crowded, too.
            let planning = if number < 10_000 { 4 } else { 1 };
            match rng.below(8) {
                choice if choice < planning => {
                    let range = 1 << rng.below(40);
                    let at = now + rng.below(range);
                    tickets.push((queue.push(at, number), number));
                    list.push((at, number));
                }
                4 if !tickets.is_empty() => {
                    let (ticket, number) = *rng.pick(&tickets);
                    queue.cancel(ticket);
                    list.retain(|(_, other)| *other != number);
                }
                _ => {
                    let range = 1 << rng.below(40);
                    let end = now + rng.below(range);
                    list.sort_unstable();
                    let wanted = list.first().copied().filter(|(at, _)| *at <= end);
                    let found = popped(&mut queue, end);
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
