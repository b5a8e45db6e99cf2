//! All alarms of all seats in one heap: what a pool costs does not depend on how many there are.
//!
//! Entries are never taken out early. Whoever is rung checks whether it still wants to be: a seat
//! by its token, a grant by its deadline.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use quorate_core::{ClaimId, Moment};

use crate::seat::Token;

/// What is due at some moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Due {
    /// A seat's alarm.
    Alarm {
        /// Whose.
        seat: usize,
        /// Which.
        token: Token,
    },
    /// The deadline of a grant that a client of ours has.
    GrantEnd {
        /// In which pool.
        seat: usize,
        /// Which.
        claim: ClaimId,
    },
    /// Nodes that have not answered this question by now are silent.
    Gathering(u64),
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

    /// Takes out one thing that is due.
    pub(crate) fn take(&mut self, now: Moment) -> Option<Due> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, due))| due)
    }
}
