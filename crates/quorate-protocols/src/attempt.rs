//! One try of a node to get or keep a claim, told apart from its repetitions.

use std::fmt;

use quorate_core::{ClaimId, Clock, NodeId};

/// One try of a node to get or keep a claim, unique among that node's tries: the paper's request
/// made distinguishable from its repetitions (arbiter spec 7.1, `e`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Attempt {
    /// The boot number of the requester.
    pub boot: u32,
    /// Its logical clock.
    pub clock: u64,
}

impl Attempt {
    /// The next try of a node in this life of it.
    pub(crate) fn next(clock: &mut Clock, boot: u32) -> Attempt {
        Attempt { boot, clock: clock.tick() }
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}", self.clock)?;
        if self.boot > 0 { write!(f, "b{}", self.boot) } else { Ok(()) }
    }
}

/// One life of one home that asks for a claim: what an arbiter has an entry for.
///
/// A claim may be repeated at another home, because its client moved or somebody replays what it
/// said, or at the same home after a restart. Those are different bids, served like different
/// claims: what the first may be using stays counted until it is given back or its lease ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Bid {
    /// What is asked for.
    pub claim: ClaimId,
    /// The node that asks...
    pub node: NodeId,
    /// ...and its boot number.
    pub boot: u32,
}

impl Bid {
    /// Whether this is an earlier life of the same home: it is over, and waits for nothing.
    pub(crate) fn is_earlier_life_of(self, other: Bid) -> bool {
        (self.claim, self.node) == (other.claim, other.node) && self.boot < other.boot
    }
}

impl fmt::Display for Bid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.claim, self.node)?;
        if self.boot > 0 { write!(f, "b{}", self.boot) } else { Ok(()) }
    }
}

/// Who asked, and in which of its tries: where an arbiter's answer goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Asker {
    pub(crate) node: NodeId,
    pub(crate) attempt: Attempt,
}

impl Asker {
    /// What it asks for, as an arbiter books it.
    pub(crate) fn bid(self, claim: ClaimId) -> Bid {
        Bid { claim, node: self.node, boot: self.attempt.boot }
    }

    /// Whether this is an older try of the same node. Tries of different nodes are not ordered: a
    /// client that moved asks through its new node, and the last to ask is answered.
    pub(crate) fn is_before(self, other: Asker) -> bool {
        self.node == other.node && self.attempt < other.attempt
    }
}
