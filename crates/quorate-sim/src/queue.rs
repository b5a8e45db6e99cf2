//! What will happen, in order of time; at equal times in the order in which it was planned.
//!
//! A radix heap (Ahuja, Mehlhorn, Orlin and Tarjan 1990) whose digits have eight bits: time never
//! goes back, so an entry lies in the bucket of the highest digit in which its time differs from a
//! recent one, and moves down only when that bucket's turn comes, which most entries do once at
//! most. Most alarms are disarmed long before they would ring, and those are never touched again. A
//! bucket with few entries is not divided any further but sorted: it is the near future, from which
//! happenings are popped.
//!
//! Buckets hold small entries; the happenings themselves stay where they are in a slab, whose
//! places are used again, so that a long run allocates nothing, and are moved once, when they are
//! popped. Entries of one time are always in one bucket, in the order in which they were planned,
//! so that sorting need only be stable.

use std::cmp::Reverse;

/// Happenings by time.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// No entry is earlier than this.
    last: u64,
    /// All entries up to `near_end`, latest first.
    near: Vec<Entry>,
    near_end: u64,
    /// All later ones: 256 buckets for each digit, by its value where it is the highest one that
    /// differs from `last`.
    buckets: Box<[Vec<Entry>; DIGITS * VALUES]>,
    /// A bit for each bucket of a digit that is not empty, and for each digit that has such.
    filled: [[u64; VALUES / WORD]; DIGITS],
    digits: u32,
    slab: Vec<Place<T>>,
    /// Places of the slab that are free.
    free: Vec<u32>,
}

/// A bucket with no more entries than this is sorted instead of divided.
const SORTED_MAX: usize = 48;
/// A near future with more entries than this is given back in part.
const NEAR_MAX: usize = 4 * SORTED_MAX;
/// Buckets of lower digits than this are short enough in time to be sorted by [`rank`].
const RANKED_DIGITS: usize = 4;
const DIGIT: u32 = u8::BITS;
const DIGITS: usize = (u64::BITS / DIGIT) as usize;
const VALUES: usize = 1 << DIGIT;
const WORD: usize = u64::BITS as usize;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    at: u64,
    ticket: Ticket,
}

/// A place for a happening. How often it was left stands first, so that looking whether an entry is
/// void brings along the beginning of the happening, which is needed soon.
#[derive(Debug)]
#[repr(C)]
struct Place<T> {
    /// How often it was left.
    left: u32,
    happening: Option<T>,
}

/// The name of one planned happening: its place in the slab, and how often that was left before. In
/// one number, so that an entry is two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Ticket(u64);

impl Ticket {
    fn new(index: u32, left: u32) -> Self {
        Ticket(u64::from(left) << u32::BITS | u64::from(index))
    }

    fn index(self) -> u32 {
        self.0 as u32
    }

    fn left(self) -> u32 {
        (self.0 >> u32::BITS) as u32
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue {
            last: 0,
            near: Vec::new(),
            near_end: 0,
            buckets: Box::new([const { Vec::new() }; DIGITS * VALUES]),
            filled: [[0; VALUES / WORD]; DIGITS],
            digits: 0,
            slab: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Queue<T> {
    /// Plans a happening.
    pub(crate) fn push(&mut self, at: u64, happening: T) -> Ticket {
        let (ticket, place) = self.plan(at);
        *place = Some(happening);
        ticket
    }

    /// Plans a happening that the caller puts into its place: an empty one.
    #[inline(always)]
    pub(crate) fn plan(&mut self, at: u64) -> (Ticket, &mut Option<T>) {
        let index = self.free.pop().unwrap_or_else(|| self.add_place());
        let ticket = Ticket::new(index, self.slab[index as usize].left);
        let entry = Entry { at, ticket };
        if at > self.near_end {
            self.put(entry);
        } else {
            self.push_near(entry);
        }
        let place = &mut self.slab[index as usize].happening;
        assert!(place.is_none(), "a free place is empty");
        (ticket, place)
    }

    #[cold]
    fn add_place(&mut self) -> u32 {
        let index = u32::try_from(self.slab.len()).expect("fewer than 2^32 happenings at once");
        self.slab.push(Place { left: 0, happening: None });
        index
    }

    fn push_near(&mut self, entry: Entry) {
        // The newest of its time is the last of its time.
        let position = self.near.partition_point(|other| other.at > entry.at);
        self.near.insert(position, entry);
        if self.near.len() > NEAR_MAX {
            self.give_back();
        }
    }

    /// Takes a happening back, if it has not happened.
    pub(crate) fn cancel(&mut self, ticket: Ticket) {
        self.take(ticket);
    }

    /// When the next happening is and its ticket, unless it is later than `end`: to be taken.
    #[inline(always)]
    pub(crate) fn next(&mut self, end: u64) -> Option<(u64, Ticket)> {
        loop {
            while let Some(&Entry { at, ticket }) = self.near.last() {
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

    /// What a ticket stands for, if it is still planned.
    #[inline(always)]
    pub(crate) fn planned_as(&self, ticket: Ticket) -> Option<&T> {
        let place = &self.slab[ticket.index() as usize];
        place.happening.as_ref().filter(|_| place.left == ticket.left())
    }

    /// Takes a happening out, if it is still planned.
    #[inline(always)]
    pub(crate) fn take(&mut self, ticket: Ticket) -> Option<T> {
        let place = &mut self.slab[ticket.index() as usize];
        if place.left != ticket.left() {
            return None;
        }
        place.left += 1;
        // A place that was left too often to be counted is not used again.
        if place.left < u32::MAX {
            self.free.push(ticket.index());
        }
        place.happening.take()
    }

    /// Everything planned, in order.
    pub(crate) fn planned(&self) -> impl Iterator<Item = &T> {
        let entries = self.near.iter().rev().chain(self.buckets.iter().flatten());
        let mut entries: Vec<&Entry> = entries.filter(|e| self.is_planned(e.ticket)).collect();
        entries.sort_by_key(|entry| entry.at);
        let happening = |entry: &Entry| self.slab[entry.ticket.index() as usize].happening.as_ref();
        entries.into_iter().filter_map(happening)
    }

    /// Whether nothing is planned any more.
    pub(crate) fn is_empty(&self) -> bool {
        self.slab.iter().all(|place| place.happening.is_none())
    }

    /// Divides the lowest bucket, unless all of it is later than `end`, or makes it the near
    /// future; says whether there may be more to come.
    fn refill(&mut self, end: u64) -> bool {
        if self.digits == 0 {
            return false;
        }
        let digit = self.digits.trailing_zeros() as usize;
        let words = &mut self.filled[digit];
        let word = words.iter().position(|word| *word != 0).expect("a digit with a bucket");
        let value = word * WORD + words[word].trailing_zeros() as usize;
        let lowest = digit * VALUES + value;
        let mut bucket = std::mem::take(&mut self.buckets[lowest]);
        bucket.retain(|entry| self.is_planned(entry.ticket));
        // Those of one time cannot be divided.
        let is_near = digit == 0 || bucket.len() <= SORTED_MAX;
        let earliest = if is_near { 0 } else { earliest(&bucket) };
        if earliest > end {
            self.buckets[lowest] = bucket;
            return false;
        }
        let words = &mut self.filled[digit];
        words[word] &= words[word] - 1;
        if *words == [0; VALUES / WORD] {
            self.digits &= !(1 << digit);
        }
        if is_near {
            // Earlier buckets are empty: whatever shares the higher digits with this one is in it.
            let shift = DIGIT * digit as u32;
            let above = self.last.checked_shr(shift + DIGIT).unwrap_or(0);
            let first = above.checked_shl(shift + DIGIT).unwrap_or(0) | (value as u64) << shift;
            self.near_end = first | ((1 << shift) - 1);
            assert!(self.near.is_empty(), "the near future is over");
            if digit < RANKED_DIGITS && bucket.len() <= SORTED_MAX {
                rank(&bucket, first, &mut self.near);
                bucket.clear();
            } else {
                // Backwards, and then stably: of one time the first to be planned is the last.
                bucket.reverse();
                bucket.sort_by_key(|entry| Reverse(entry.at));
                std::mem::swap(&mut self.near, &mut bucket);
            }
        } else {
            self.last = earliest;
            for entry in bucket.drain(..) {
                self.put(entry);
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
        let kept = self.near.partition_point(|entry| entry.at >= split);
        // `last` stays: what is in buckets already was put there relative to it.
        self.near_end = split - 1;
        let mut near = std::mem::take(&mut self.near);
        // In the order in which they were planned, those of one time stay in order.
        for entry in near.drain(..kept).rev() {
            self.put(entry);
        }
        self.near = near;
    }

    #[inline]
    fn put(&mut self, entry: Entry) {
        assert!(entry.at >= self.last, "nothing is planned for the past");
        let digit = (entry.at ^ self.last | 1).ilog2() / DIGIT;
        let value = entry.at >> (DIGIT * digit) & (VALUES as u64 - 1);
        let (digit, value) = (digit as usize, value as usize);
        self.buckets[digit * VALUES + value].push(entry);
        self.filled[digit][value / WORD] |= 1 << (value % WORD);
        self.digits |= 1 << digit;
    }

    #[inline]
    fn is_planned(&self, ticket: Ticket) -> bool {
        self.slab[ticket.index() as usize].left == ticket.left()
    }
}

/// Sorts few entries of a short time, the latest first and of one time the last to be planned
/// first, by counting how many come before each: no branch depends on the times, which by chance
/// are in no order that a processor could foresee.
fn rank(entries: &[Entry], first: u64, sorted: &mut Vec<Entry>) {
    // Time since the first and position in one number; what is not there comes before nothing.
    let mut keys = [-1; SORTED_MAX];
    for (position, (key, entry)) in keys.iter_mut().zip(entries).enumerate() {
        *key = ((entry.at - first) as i32) << POSITION_BITS | position as i32;
    }
    let keys = &keys[..entries.len().next_multiple_of(KEYS_AT_ONCE)];
    sorted.extend_from_slice(entries);
    for (entry, key) in entries.iter().zip(keys) {
        let before =
            keys.iter().fold(0, |before: i32, other| before.wrapping_add((other > key).into()));
        sorted[before as usize] = *entry;
    }
}

/// How much of a key is for the position, and how many keys are compared at once.
const POSITION_BITS: u32 = 6;
const KEYS_AT_ONCE: usize = 8;
const _: () = assert!(SORTED_MAX <= 1 << POSITION_BITS && SORTED_MAX.is_multiple_of(KEYS_AT_ONCE));
const _: () = assert!(DIGIT * (RANKED_DIGITS as u32 - 1) + POSITION_BITS < i32::BITS);

fn earliest(entries: &[Entry]) -> u64 {
    entries.iter().map(|entry| entry.at).min().expect("a bucket that is not empty")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    fn popped<T>(queue: &mut Queue<T>, end: u64) -> Option<(u64, T)> {
        let (at, ticket) = queue.next(end)?;
        Some((at, queue.take(ticket).expect("what is next is planned")))
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
        assert_eq!(queue.next(8), None);
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
