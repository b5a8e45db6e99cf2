//! What the control plane tells a participant whose seat may move.
//!
//! The *charter* is a replicated document outside of every protocol (`docs/specs/charter.md`). Of
//! all that is in it a participant hears who decides for its pool, that it may, and who shadows it.
//! A protocol whose deciders are settled for good leaves all of that alone.

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

impl Tenure {
    /// The term of a node that decides because files say so, and not the charter (charter spec
    /// S18). Terms of the charter are greater; to fences this one is the boot number of that node.
    pub const PINNED: u32 = 0;
}

/// Who is told every grant before the client is (charter spec S13), and in which of its lives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Shadow {
    /// The node that shadows...
    pub node: NodeId,
    /// ...and its boot number when it was named: another life of it knows nothing.
    pub boot: u32,
    /// Grows with every shadow that is named for this pool. The same life may be named again, and
    /// what was true of it before need not be (charter spec S16).
    pub naming: u64,
    /// Whether it knows everything that is in force.
    pub whole: bool,
}

/// Word from the control plane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Charter {
    /// This node has applied an entry of the seat table. A driver tells every life of a participant
    /// the newest one that its node has applied, and then each later one or what replaced it.
    ///
    /// That of [`Tenure::PINNED`] is no entry: a driver tells it to a life of the node that files
    /// name, if that has never given the pool up, and names that life.
    Applied(Tenure),
    /// The same, of an entry at whose commit the life that it names was the whole shadow of the
    /// term before (charter spec S17), and as whom: what it was told under an earlier naming may
    /// lack what was granted in between.
    Inherited(Tenure, u64),
    /// This node has applied who shadows the seat of this term, which it has applied before:
    /// `None` if the one that did was struck. A driver tells these in the order of the charter, or
    /// only the last of several.
    Shadowed {
        /// The term.
        term: u32,
        /// Who does.
        shadow: Option<Shadow>,
    },
    /// An answer to [`crate::Effect::AskLicence`]: a majority confirmed, in a round begun after it
    /// was asked, that in the state at that round's read index this node decides in this term. A
    /// driver passes it on when the node has applied that index (charter spec S1, S2).
    Licensed {
        /// The term that was asked about.
        term: u32,
        /// The reading that the question carried, or that of another question, if the round began
        /// after that too.
        asked: Moment,
    },
    /// This node has applied another definition of the pool: from this event on it is what the seat
    /// says ([`crate::Seat::pool`]). A driver tells no later entry about who decides before this,
    /// and may tell this before an earlier one (charter spec 3).
    Amended {
        /// How many changes of the pool this node has applied since it was made.
        edition: u32,
    },
    /// This node, which decides because files say so, gives that up for good: it decides nothing
    /// from now on. A driver writes that down before it lets the charter say who decides (charter
    /// spec S18).
    Unpinned,
}

numbers!(plain Tenure, Shadow, Charter);
