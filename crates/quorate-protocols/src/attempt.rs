//! One try of a node to get or keep a claim, told apart from its repetitions.

use std::fmt;

use quorate_core::NodeId;

/// One try of a node to get or keep a claim, unique among that node's tries: the paper's request
/// made distinguishable from its repetitions (arbiter spec 7.1, `e`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Attempt {
    /// The boot number of the requester.
    pub boot: u32,
    /// Its logical clock.
    pub clock: u64,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}", self.clock)?;
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
    /// Whether this is an older try of the same node. Tries of different nodes are not ordered: a
    /// client that moved asks through its new node, and the last to ask is answered.
    pub(crate) fn is_before(self, other: Asker) -> bool {
        self.node == other.node && self.attempt < other.attempt
    }
}
