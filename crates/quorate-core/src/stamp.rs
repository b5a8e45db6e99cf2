//! Lamport stamps: the total order in which claims are older or younger.

use std::fmt;

use crate::NodeId;

/// A node's logical clock (Lamport 1978). It grows with every stamp it gives and with every message
/// it hears, so that a claim made after hearing of another is younger than it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Clock(pub u64);

impl Clock {
    /// Counts one: no two stamps given by one node are equal.
    pub fn tick(&mut self) -> u64 {
        self.0 = self.0.saturating_add(1);
        self.0
    }

    /// Catches up with a reading heard from a peer.
    pub fn hear(&mut self, reading: u64) {
        self.0 = self.0.max(reading);
    }
}

/// When a claim was made, in a total order that every node agrees on. Smaller is older.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Stamp {
    /// The logical clock of the node that gave the stamp.
    pub clock: u64,
    /// That node; it breaks ties.
    pub node: NodeId,
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}{}", self.clock, self.node)
    }
}

impl fmt::Debug for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_made_after_hearing_of_another_is_younger() {
        let mut here = Clock::default();
        let older = Stamp { clock: 7, node: NodeId(9) };
        here.hear(older.clock);
        let younger = Stamp { clock: here.tick(), node: NodeId(0) };
        assert!(older < younger);
        assert!(Stamp { clock: 7, node: NodeId(0) } < older, "ties are broken by node");
    }
}
