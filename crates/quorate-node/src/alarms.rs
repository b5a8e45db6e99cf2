//! When which pool wants to be looked at, and what else is due, in one heap.
//!
//! Alarms themselves are kept where they can be disarmed, with their seats and claims; here is only
//! the next moment of each pool. So the heap has about one entry for every pool in which something
//! is going on, however many claims come and go, and what a pool costs does not depend on how many
//! there are. An entry is not taken out early: whoever is rung looks whether it is still meant.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use quorate_core::Moment;

/// What is due at some moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Due {
    /// An alarm of this pool's seat, or the deadline of a grant that a client of ours has.
    Pool(usize),
    /// Nodes that have not answered this question by now are silent.
    Gathering(u64),
    /// Nodes that have not acknowledged this order by now may or may not carry it out.
    Order(u64),
    /// The next licence is asked for.
    Licence,
    /// More pools are counted.
    Reading,
    /// Other nodes hear of claims that wait here.
    Copies,
    /// Whoever waits until all have heard these tidings is told who has not.
    Heard(u64),
    /// Somebody who hung up had until now to come for a grant of this pool.
    Absent(usize),
    /// Time to show the peers that we live.
    Heartbeat,
}

/// What is due, and when.
#[derive(Default, Debug)]
pub(crate) struct Alarms {
    heap: BinaryHeap<Reverse<(Moment, Due)>>,
}

impl Alarms {
    /// Something is due then.
    pub(crate) fn set(&mut self, at: Moment, due: Due) {
        self.heap.push(Reverse((at, due)));
    }

    /// When the next thing is due.
    pub(crate) fn next(&self) -> Option<Moment> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes out one thing that is due, and since when it is.
    pub(crate) fn take(&mut self, now: Moment) -> Option<(Moment, Due)> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(due)| due)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }
}
