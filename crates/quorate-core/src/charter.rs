//! What the control plane tells a participant whose seat may move.
//!
//! The *charter* is a replicated document outside of every protocol (`docs/specs/charter.md`). Of
//! all that is in it a participant hears two things: who decides for its pool, and that it may. A
//! protocol whose deciders are settled for good leaves both alone.

use crate::{Moment, NodeId, numbers};

/// An entry of the charter's seat table: who decides, and in which of its lives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Tenure {
    /// Grows with every entry, and is a boot number to fences ([`crate::Fence::floor`]).
    pub term: u32,
    /// The term that this one ended; `None` if nobody ever decided before.
    pub after: Option<u32>,
    /// The node that decides...
    pub node: NodeId,
    /// ...and its boot number when the entry was made: no other life of it does.
    pub boot: u32,
}

/// Word from the control plane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Charter {
    /// This node has applied an entry of the seat table. A driver tells every life of a participant
    /// the newest one that its node has applied, and then each later one or what replaced it.
    Applied(Tenure),
    /// An answer to [`crate::Effect::AskLicence`]: a majority confirmed, in a round begun after it
    /// was asked, that in the state at that round's read index this node decides in this term. A
    /// driver passes it on when the node has applied that index (charter spec S1, S2).
    Licensed {
        /// The term that was asked about.
        term: u32,
        /// The reading that the question carried, or an earlier one at which the driver asked.
        asked: Moment,
    },
}

numbers!(plain Tenure, Charter);
