//! What will happen, in order of time; at equal times in the order in which it was planned.
//!
//! A radix heap (Ahuja, Mehlhorn, Orlin and Tarjan 1990) whose digits have eight bits: time never
//! goes back, so a happening lies in the bucket of the highest digit in which its time differs from
//! a recent one, and moves down only when that bucket's turn comes, which most do once at most. A
//! bucket with few happenings is not divided any further but sorted: it is the near future, from
//! which happenings are taken.
//!
//! Happenings lie in the buckets themselves, one behind the other: what is planned is written to
//! the end of a short list, and what is near is read from a short stretch of memory, so that a
//! processor finds both where it has just been. Of the near future only times and places are
//! sorted. Lists that became empty are used again, the last one first and with their places, so
//! that a long run allocates nothing and a happening is written where it stays.
//!
//! Nothing is taken back. Whoever planned a happening knows its [`Ticket`] and whether it is still
//! meant: it is asked when a bucket is divided, and has to look when the time has come. Most alarms
//! are disarmed long before they would ring; they are moved no further, and swept out now and then.

use std::cmp::Reverse;

/// Happenings by time.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// Nothing is earlier than this.
    last: u64,
    /// Everything up to `near_end`, latest first.
    near: Vec<Near>,
    near_end: u64,
    /// What `near` stands for, and places of what was taken since.
    items: List<T>,
    /// Everything later: 256 buckets for each digit, by its value where it is the highest one that
    /// differs from `last`.
    buckets: Box<[List<T>; DIGITS * VALUES]>,
    /// A bit for each bucket of a digit that is not empty, and for each digit that has such.
    filled: [[u64; VALUES / WORD]; DIGITS],
    digits: u32,
    /// Lists with places and nothing in them, by digit: those of one digit are about equally long.
    /// How many places are used is wrong.
    spare: [Vec<List<T>>; DIGITS],
    /// Which digit `items` is of.
    near_digit: usize,
    /// How much was planned so far.
    planned: u64,
}

/// A bucket with no more happenings than this is sorted instead of divided.
const SORTED_MAX: usize = 64;
/// A near future with more happenings than this is given back in part.
const NEAR_MAX: usize = 4 * SORTED_MAX;
/// Buckets of lower digits than this are short enough in time to be sorted by [`rank`].
const RANKED_DIGITS: usize = 4;
/// A list with more places than this gives them back.
const SPARE_MAX: usize = 1 << 14;
/// A list with more places than this grows by less than what it has.
const LONG: usize = 1 << 14;
const DIGIT: u32 = u8::BITS;
const DIGITS: usize = (u64::BITS / DIGIT) as usize;
const VALUES: usize = 1 << DIGIT;
const WORD: usize = u64::BITS as usize;

/// Happenings in the order in which they were planned.
#[derive(Debug)]
struct List<T> {
    places: Vec<Place<T>>,
    /// How many of the places are used; there is nothing in the others.
    used: usize,
}

/// A place for something planned. If there is nothing in it, it was taken.
#[derive(Debug)]
struct Place<T> {
    at: u64,
    ticket: Ticket,
    what: Option<T>,
}

impl<T> List<T> {
    const EMPTY: Self = List { places: Vec::new(), used: 0 };

    /// A place at the end.
    #[inline(always)]
    fn add(&mut self, at: u64, ticket: Ticket) -> &mut Option<T> {
        if self.used == self.places.len() {
            self.grow();
        }
        let place = &mut self.places[self.used];
        self.used += 1;
        (place.at, place.ticket) = (at, ticket);
        &mut place.what
    }

    #[cold]
    fn grow(&mut self) {
        // Places that nothing ever lay in are memory all the same.
        let more = if self.used < LONG { self.used.max(4) } else { self.used / 8 };
        self.places.resize_with(self.used + more, || Place {
            at: 0,
            ticket: Ticket(0),
            what: None,
        });
    }

    fn places(&self) -> &[Place<T>] {
        &self.places[..self.used]
    }
}

/// Where something of the near future lies.
#[derive(Clone, Copy, Debug)]
struct Near {
    at: u64,
    due: Due,
}

/// What is next, to be taken before anything else is done to the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Due(u32);

/// The name of something planned: how much was planned before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Ticket(u64);

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue {
            last: 0,
            near: Vec::new(),
            near_end: 0,
            items: List::EMPTY,
            buckets: Box::new([const { List::EMPTY }; DIGITS * VALUES]),
            filled: [[0; VALUES / WORD]; DIGITS],
            digits: 0,
            spare: [const { Vec::new() }; DIGITS],
            near_digit: 0,
            planned: 0,
        }
    }
}

impl<T> Queue<T> {
    /// Plans a happening.
    pub(crate) fn push(&mut self, at: u64, what: T) -> Ticket {
        let ticket = self.next_ticket();
        *self.plan(at) = Some(what);
        ticket
    }

    /// The ticket of what is planned next.
    pub(crate) fn next_ticket(&self) -> Ticket {
        Ticket(self.planned)
    }

    /// Plans a happening that the caller puts into its place: an empty one.
    #[inline(always)]
    pub(crate) fn plan(&mut self, at: u64) -> &mut Option<T> {
        let ticket = self.next_ticket();
        self.planned += 1;
        let list = if at > self.near_end { self.bucket(at) } else { self.near_list(at) };
        list.add(at, ticket)
    }

    /// The list for something at a time that is not near.
    #[inline(always)]
    fn bucket(&mut self, at: u64) -> &mut List<T> {
        assert!(at >= self.last, "nothing is planned for the past");
        let digit = (at ^ self.last | 1).ilog2() / DIGIT;
        let value = at >> (DIGIT * digit) & (VALUES as u64 - 1);
        let (digit, value) = (digit as usize, value as usize);
        if self.buckets[digit * VALUES + value].used == 0 {
            self.begin(digit, value);
        }
        &mut self.buckets[digit * VALUES + value]
    }

    /// An empty bucket gets its first happening.
    #[inline(never)]
    fn begin(&mut self, digit: usize, value: usize) {
        self.filled[digit][value / WORD] |= 1 << (value % WORD);
        self.digits |= 1 << digit;
        let bucket = &mut self.buckets[digit * VALUES + value];
        if bucket.places.is_empty()
            && let Some(spare) = self.spare[digit].pop()
        {
            *bucket = spare;
            bucket.used = 0;
        }
    }

    /// The list for something of the near future, to whose end it must go.
    fn near_list(&mut self, at: u64) -> &mut List<T> {
        if self.near.len() > NEAR_MAX {
            self.give_back();
            if at > self.near_end {
                return self.bucket(at);
            }
        }
        if self.items.used > 2 * NEAR_MAX.max(self.near.len()) {
            self.close_up();
        }
        // The newest of its time is the last of its time.
        let position = self.near.partition_point(|other| other.at > at);
        self.near.insert(position, Near { at, due: Due::new(self.items.used) });
        &mut self.items
    }

    /// When the next happening is, unless it is later than `end`. `is_meant`: whether something
    /// planned was not taken back.
    #[inline(always)]
    pub(crate) fn next(
        &mut self,
        end: u64,
        is_meant: impl Fn(&T, Ticket) -> bool,
    ) -> Option<(u64, Due)> {
        loop {
            if let Some(&Near { at, due }) = self.near.last() {
                if at > end {
                    return None;
                }
                self.near.pop();
                return Some((at, due));
            }
            if !self.refill(end, &is_meant) {
                return None;
            }
        }
    }

    /// Takes what is next, and its ticket.
    pub(crate) fn take(&mut self, due: Due) -> Option<(T, Ticket)> {
        let Place { ticket, what, .. } = &mut self.items.places[due.index()];
        what.take().map(|what| (what, *ticket))
    }

    /// The place of what is next, for whoever looks at it before it is taken.
    #[inline(always)]
    pub(crate) fn place(&mut self, due: Due) -> &mut Option<T> {
        &mut self.items.places[due.index()].what
    }

    /// Everything planned of which `pick` makes something, in order.
    pub(crate) fn planned<'a, U>(&'a self, pick: impl Fn(&'a T, Ticket) -> Option<U>) -> Vec<U> {
        let mut picked = Vec::new();
        let mut look = |list: &'a List<T>| {
            for Place { at, ticket, what } in list.places() {
                let it = what.as_ref().and_then(|what| pick(what, *ticket));
                picked.extend(it.map(|it| (*at, *ticket, it)));
            }
        };
        look(&self.items);
        for (digit, words) in self.filled.iter().enumerate() {
            for (index, word) in words.iter().enumerate() {
                let mut left = *word;
                while left != 0 {
                    let value = index * WORD + left.trailing_zeros() as usize;
                    look(&self.buckets[digit * VALUES + value]);
                    left &= left - 1;
                }
            }
        }
        picked.sort_unstable_by_key(|(at, ticket, _)| (*at, *ticket));
        picked.into_iter().map(|(_, _, it)| it).collect()
    }

    /// Takes out what somebody who interferes means, if it is planned: nothing else is ever taken
    /// back.
    pub(crate) fn withdraw(&mut self, is_it: impl Fn(&T, Ticket) -> bool) -> Option<(Ticket, T)> {
        let lists = std::iter::once(&mut self.items).chain(self.buckets.iter_mut());
        let mut places = lists.flat_map(|list| &mut list.places[..list.used]);
        let found = places
            .find(|place| place.what.as_ref().is_some_and(|what| is_it(what, place.ticket)))?;
        found.what.take().map(|what| (found.ticket, what))
    }

    /// Divides the lowest bucket, unless all of it is later than `end`, or makes it the near
    /// future; says whether there may be more to come.
    fn refill(&mut self, end: u64, is_meant: impl Fn(&T, Ticket) -> bool) -> bool {
        if self.digits == 0 {
            return false;
        }
        let digit = self.digits.trailing_zeros() as usize;
        let words = &mut self.filled[digit];
        let word = words.iter().position(|word| *word != 0).expect("a digit with a bucket");
        let value = word * WORD + words[word].trailing_zeros() as usize;
        let lowest = digit * VALUES + value;
        let mut bucket = std::mem::replace(&mut self.buckets[lowest], List::EMPTY);
        // Those of one time cannot be divided.
        let is_near = digit == 0 || bucket.used <= SORTED_MAX;
        let earliest = if is_near { 0 } else { earliest(bucket.places()) };
        if earliest > end {
            self.buckets[lowest] = bucket;
            return false;
        }
        words[word] &= words[word] - 1;
        if words[word..].iter().all(|word| *word == 0) {
            self.digits &= !(1 << digit);
        }
        let mut emptied = digit;
        if is_near {
            // Earlier buckets are empty: whatever shares the higher digits with this one is in it.
            let shift = DIGIT * digit as u32;
            let above = self.last.checked_shr(shift + DIGIT).unwrap_or(0);
            let first = above.checked_shl(shift + DIGIT).unwrap_or(0) | (value as u64) << shift;
            self.near_end = first | ((1 << shift) - 1);
            assert!(self.near.is_empty(), "the near future is over");
            if digit < RANKED_DIGITS && bucket.used <= SORTED_MAX {
                rank(bucket.places(), first, &mut self.near);
            } else {
                // Backwards, and then stably: of one time the first to be planned is the last.
                let near = |(index, place): (usize, &Place<T>)| Near {
                    at: place.at,
                    due: Due::new(index),
                };
                self.near.extend(bucket.places().iter().enumerate().rev().map(near));
                self.near.sort_by_key(|near| Reverse(near.at));
            }
            std::mem::swap(&mut self.items, &mut bucket);
            emptied = std::mem::replace(&mut self.near_digit, digit);
        } else {
            self.last = earliest;
            for Place { at, ticket, what } in &mut bucket.places[..bucket.used] {
                if what.as_ref().is_some_and(|what| is_meant(what, *ticket)) {
                    *self.bucket(*at).add(*at, *ticket) = what.take();
                } else {
                    *what = None;
                }
            }
        }
        if bucket.places.len() <= SPARE_MAX {
            self.spare[emptied].push(bucket);
        }
        true
    }

    /// Forgets what is no longer meant, except what is near, and gives its room back.
    pub(crate) fn sweep(&mut self, is_meant: impl Fn(&T, Ticket) -> bool) {
        for (index, bucket) in self.buckets.iter_mut().enumerate() {
            bucket.places.retain(|Place { ticket, what, .. }| {
                what.as_ref().is_some_and(|what| is_meant(what, *ticket))
            });
            bucket.places.shrink_to_fit();
            bucket.used = bucket.places.len();
            if bucket.used == 0 {
                let (digit, value) = (index / VALUES, index % VALUES);
                self.filled[digit][value / WORD] &= !(1 << (value % WORD));
            }
        }
        for (digit, words) in self.filled.iter().enumerate() {
            if words.iter().all(|word| *word == 0) {
                self.digits &= !(1 << digit);
            }
        }
    }

    /// Puts the later half of a crowded near future back into buckets.
    fn give_back(&mut self) {
        let (split, first) = (self.near[self.near.len() / 2].at, self.near[self.near.len() - 1].at);
        if split == first {
            return; // Many at one time: nothing to gain.
        }
        let kept = self.near.partition_point(|near| near.at >= split);
        // `last` stays: what is in buckets already was put there relative to it.
        self.near_end = split - 1;
        let mut near = std::mem::take(&mut self.near);
        // In the order in which they were planned, those of one time stay in order.
        for Near { at, due } in near.drain(..kept).rev() {
            let Place { ticket, what, .. } = &mut self.items.places[due.index()];
            let (ticket, what) = (*ticket, what.take());
            *self.bucket(at).add(at, ticket) = what;
        }
        self.near = near;
    }

    /// Leaves out the places of what was taken.
    fn close_up(&mut self) {
        let mut items = self.spare[self.near_digit].pop().unwrap_or(List::EMPTY);
        items.used = 0;
        for Near { at, due } in &mut self.near {
            let Place { ticket, what, .. } = &mut self.items.places[due.index()];
            *due = Due::new(items.used);
            *items.add(*at, *ticket) = what.take();
        }
        std::mem::swap(&mut self.items, &mut items);
        self.spare[self.near_digit].push(items);
    }
}

impl Ticket {
    /// The number by which people call what it is for.
    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

impl Due {
    fn new(index: usize) -> Self {
        Due(u32::try_from(index).expect("fewer than 2^32 happenings at once"))
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// Sorts few happenings of a short time, the latest first and of one time the last to be planned
/// first, by counting how many come before each: no branch depends on the times, which by chance
/// are in no order that a processor could foresee.
fn rank<T>(places: &[Place<T>], first: u64, sorted: &mut Vec<Near>) {
    // Time since the first and position in one number; what is not there comes before nothing.
    let mut keys = [-1; SORTED_MAX];
    for (position, (key, place)) in keys.iter_mut().zip(places).enumerate() {
        *key = ((place.at - first) as i32) << POSITION_BITS | position as i32;
    }
    let keys = &keys[..places.len().next_multiple_of(KEYS_AT_ONCE)];
    sorted.resize(places.len(), Near { at: 0, due: Due(0) });
    for (position, key) in keys[..places.len()].iter().enumerate() {
        let before =
            keys.iter().fold(0, |before: i32, other| before.wrapping_add((other > key).into()));
        let at = first + (*key as u64 >> POSITION_BITS);
        sorted[before as usize] = Near { at, due: Due(position as u32) };
    }
}

/// How much of a key is for the position, and how many keys are compared at once.
const POSITION_BITS: u32 = 6;
const KEYS_AT_ONCE: usize = 8;
const _: () = assert!(SORTED_MAX <= 1 << POSITION_BITS && SORTED_MAX.is_multiple_of(KEYS_AT_ONCE));
const _: () = assert!(DIGIT * (RANKED_DIGITS as u32 - 1) + POSITION_BITS < i32::BITS);

fn earliest<T>(places: &[Place<T>]) -> u64 {
    places.iter().map(|place| place.at).min().expect("a bucket that is not empty")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    fn popped<T>(queue: &mut Queue<T>, end: u64) -> Option<(u64, T)> {
        let (at, due) = queue.next(end, |_, _| true)?;
        Some((at, queue.take(due).expect("what is next is planned").0))
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
        assert!(queue.planned(|name, _| Some(*name)).is_empty());
        let ticket = queue.push(9, 'e');
        assert_eq!(queue.planned(|name, ticket| Some((*name, ticket))), [('e', ticket)]);
        assert_eq!(queue.next(8, |_, _| true), None);
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

    /// Whoever plans something for a moment later again and again needs no more room for it.
    #[test]
    fn a_near_future_without_end_needs_little_room() {
        let mut queue = Queue::default();
        queue.push(1 << 40, 0);
        for now in 1..100 * NEAR_MAX as u64 {
            queue.push((1 << 40) + now, now);
            popped(&mut queue, u64::MAX).expect("one is planned");
        }
        assert!(queue.near_end > 1 << 40, "all of it was near");
        assert!(queue.items.used <= 2 * NEAR_MAX + 1, "{}", queue.items.used);
    }

    /// A million alarms take what they take, and little besides.
    #[test]
    fn a_long_list_has_few_places_that_nothing_ever_lay_in() {
        let mut queue = Queue::default();
        for number in 0..10 * LONG {
            queue.push(1 << 40, number);
        }
        let longest = queue.buckets.iter().max_by_key(|list| list.used).expect("many");
        assert_eq!(longest.used, 10 * LONG);
        assert!(longest.places.len() <= longest.used * 9 / 8, "{}", longest.places.len());
    }

    /// Against a sorted list, the slow and obvious way.
    #[test]
    fn it_agrees_with_a_sorted_list() {
        let mut rng = Rng::new(1);
        let mut queue = Queue::default();
        let mut list: Vec<(u64, u64)> = Vec::new();
        let mut now = 0;
        for number in 0..20_000 {
            // More and more is planned, then less and less: a near future that is crowded, too.
            let planning = if number < 10_000 { 4 } else { 1 };
            match rng.below(8) {
                choice if choice < planning => {
                    let range = 1 << rng.below(40);
                    let at = now + rng.below(range);
                    queue.push(at, number);
                    list.push((at, number));
                }
                6 if number % 32 == 0 => {
                    // What is near is not swept out: it must not be looked for.
                    let (near_end, odd) = (queue.near_end, rng.below(7));
                    queue.sweep(|other, _| other % 7 != odd);
                    list.retain(|&(at, other)| at <= near_end || other % 7 != odd);
                }
                7 if number % 64 == 0 => {
                    list.sort_unstable();
                    let planned = queue.planned(|number, _| Some(*number));
                    assert!(planned.iter().eq(list.iter().map(|(_, number)| number)));
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
