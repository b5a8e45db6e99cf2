//! What became of the last requests, so that repeating one is harmless.
//!
//! Bounded: the outcome of a request is forgotten when [`REMEMBERED`] others came after it. Whoever
//! repeats one later than that has it done again, unless it was conditional (`if_generation`, a
//! term) or something that can be done once (a name that is taken).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{Change, Outcome, Refusal};
use crate::RequestId;
use crate::names::fnv;

/// How many requests are remembered.
pub const REMEMBERED: usize = 1024;

/// The last requests, the oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Memory(VecDeque<Remembered>);

/// One of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Remembered {
    id: RequestId,
    print: u64,
    outcome: Outcome,
}

impl Remembered {
    /// Whatever was asked for.
    pub(super) fn first_outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// The answer to whoever asks again under this id; not the answer to another question.
    pub(super) fn outcome(&self, id: RequestId, print: u64) -> Outcome {
        if self.print == print { self.outcome.clone() } else { Err(Refusal::IdReused(id).into()) }
    }
}

impl Memory {
    pub(super) fn recall(&self, id: RequestId) -> Option<&Remembered> {
        self.0.iter().rev().find(|remembered| remembered.id == id)
    }

    pub(super) fn keep(&mut self, id: RequestId, print: u64, outcome: Outcome) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(Remembered { id, print, outcome });
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Tells two lists of changes apart that were sent under one id by mistake.
pub(super) fn print(changes: &[Change]) -> u64 {
    fnv(&postcard::to_allocvec(changes).expect("plain data always encodes"))
}
