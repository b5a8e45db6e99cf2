//! How long promises last, where a pool has another lease from some change on (charter spec 3).
//!
//! Not as durations but by their order: of two promises that are made at once, the longer one is
//! over last, and an alarm that is armed then ends those that last no longer than it waits. Longer
//! ones it says nothing of. How much longer they are, and so how many shorter ones may follow each
//! other meanwhile, is left open.

use std::time::Duration;

use quorate_core::{Explorable, Moment, Protocol};

use crate::model::Model;
use crate::parts::Parcel;
use crate::scope::Scope;
use crate::world::World;

/// Most different leases that a pool of a scope may have.
pub(crate) const SPANS_MAX: usize = 2;

/// Since when the promises count by which a client uses units: the last one of each length.
pub(crate) type Promises = [Option<u8>; SPANS_MAX];

/// Clocks show how many renewals there were: less than this.
const TICKS: u64 = 256;

impl<P: Protocol> Scope<P> {
    /// The leases that the pool ever has, the shortest first; none if it has but one.
    fn spans(&self) -> Vec<Duration> {
        let mut all = self.leases.clone();
        all.sort_unstable();
        all.dedup();
        assert!(all.len() <= SPANS_MAX, "a scope has at most {SPANS_MAX} leases");
        all
    }

    /// Which of them lasts at least so long.
    pub(crate) fn span(&self, lasts: Duration) -> u8 {
        let spans = self.spans();
        let shorter = spans.iter().filter(|span| **span < lasts).count();
        shorter.min(spans.len().saturating_sub(1)) as u8
    }

    /// Which of them a deadline is by, that counts from some renewal on.
    pub(crate) fn span_until(&self, until: Moment) -> u8 {
        self.span(Duration::from_nanos(until.0.saturating_sub(TICKS)))
    }

    /// Which of them the pool has after so many changes.
    pub(crate) fn span_of(&self, edition: u8) -> u8 {
        self.leases.get(usize::from(edition)).map_or(0, |lease| self.span(*lease))
    }

    /// How many of them, the shortest first, an alarm ends that waits so long.
    pub(crate) fn spans_within(&self, after: Duration) -> u8 {
        match self.leases.is_empty() {
            true => SPANS_MAX as u8,
            false => self.spans().iter().filter(|span| **span <= after).count() as u8,
        }
    }
}

/// A promise on its way: since when it counts, and how long it lasts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carried {
    pub(crate) born: u8,
    pub(crate) span: u8,
}

impl<P: Explorable> Model<'_, P> {
    /// Whether some arbiter counts units as this client's, or a message on its way gives it some.
    pub(crate) fn is_promised(&self, world: &World, client: usize) -> bool {
        let books = world.nodes().filter_map(|node| world.participant(node));
        let mut on_the_way = world.queues().iter().flat_map(|&queue| self.parts.queues.get(queue));
        books.into_iter().any(|p| self.parts.participants.card(p).holders & 1 << client != 0)
            || on_the_way.any(|p| self.parts.messages.card(p.message).promise == Some(client))
    }

    /// How long what a parcel promises lasts, among the leases of the scope.
    pub(crate) fn span_of(&self, parcel: &Parcel) -> u8 {
        self.parts.messages.card(parcel.message).span
    }
}

/// Notes one more promise. A longer one that was made later makes a shorter one say nothing.
pub(crate) fn noted(promises: &mut Promises, span: u8, born: u8) {
    let last = &mut promises[usize::from(span)];
    *last = (*last).max(Some(born));
    for longer in 1..SPANS_MAX {
        let least = promises[longer];
        for shorter in &mut promises[..longer] {
            *shorter = shorter.filter(|it| Some(*it) > least);
        }
    }
}

/// Whether any of these goes on when an alarm rings that was armed then, and ends so many lengths.
pub(crate) fn outlives(promises: &Promises, born: u8, within: u8) -> bool {
    (0..).zip(promises).any(|(span, last)| last.is_some_and(|it| it > born || span >= within))
}

/// Those that do.
pub(crate) fn left(promises: &Promises, born: u8, within: u8) -> Promises {
    let mut left = *promises;
    for (span, last) in (0..).zip(&mut left) {
        *last = last.filter(|it| *it > born || span >= within);
    }
    left
}
