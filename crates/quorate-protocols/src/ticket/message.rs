//! What seats of a `ticket` pool tell each other.

use std::fmt;
use std::sync::Arc;

use quorate_core::{ClaimId, Fence, Moment, Units};

use crate::attempt::{Attempt, Bid};

/// A claim that is, or may be, older than another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rival {
    /// Whose.
    pub bid: Bid,
    /// How many units it wants or has.
    pub units: Units,
}

/// How a claim that has its ticket stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Standing {
    /// It waits.
    Waiting,
    /// Its client says that it uses its units, to a home that cannot know whether this member was
    /// relied on for that all the time.
    Shown,
    /// It uses its units, and this member was relied on for that from the beginning.
    Held,
    /// It uses its units by the word of others, and this member is to know of it from now on.
    Joins,
}

/// See the table in [the module's documentation](super).
///
/// `attempt` is the requester's try, the same at all members of its quorum; `sent` its clock, to be
/// echoed; `mark` the member's, above that of whatever it said before somebody joined.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs, reason = "the fields are described once, here and below")]
pub enum Message {
    /// `above`: the ticket of its earlier try, which the new one must exceed.
    Register { claim: ClaimId, attempt: Attempt, units: Units, above: Fence, sent: Moment },
    /// `ticket`: the claim's ticket will not be smaller.
    Propose { claim: ClaimId, attempt: Attempt, ticket: Fence },
    /// `seen`: the largest mark that was heard from this member; nothing older is relied on.
    Settle {
        claim: ClaimId,
        attempt: Attempt,
        units: Units,
        ticket: Fence,
        standing: Standing,
        seen: Fence,
        sent: Moment,
    },
    /// `rivals`: all that are or may be older, in the order of their tickets.
    View { claim: ClaimId, attempt: Attempt, rivals: Arc<[Rival]>, mark: Fence, sent: Moment },
    /// The answer to a poll while too many are older, and what whoever has a view is told when a
    /// holder joins that it does not have: views with a smaller mark are void.
    Queued { claim: ClaimId, attempt: Attempt, mark: Fence },
    /// The answer to a holder.
    Renewed { claim: ClaimId, attempt: Attempt, sent: Moment },
    /// The member has no such entry, or no longer.
    Lost { claim: ClaimId, attempt: Attempt },
    /// The try is over. `whole`: so is the claim, by its client's word, and with it whatever
    /// earlier lives of the requester had for it.
    Release { claim: ClaimId, attempt: Attempt, whole: bool },
}

impl Message {
    pub(super) const KINDS: &'static [&'static str] =
        &["register", "propose", "settle", "view", "queued", "renewed", "lost", "release"];

    pub(super) fn kind(&self) -> usize {
        match self {
            Message::Register { .. } => 0,
            Message::Propose { .. } => 1,
            Message::Settle { .. } => 2,
            Message::View { .. } => 3,
            Message::Queued { .. } => 4,
            Message::Renewed { .. } => 5,
            Message::Lost { .. } => 6,
            Message::Release { .. } => 7,
        }
    }

    pub(super) fn is_for_member(&self) -> bool {
        matches!(self, Message::Register { .. } | Message::Settle { .. } | Message::Release { .. })
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::KINDS[self.kind()])?;
        match self {
            Message::Register { claim, attempt, units, .. } => {
                write!(f, " {claim} h{units} {attempt}")
            }
            Message::Propose { claim, attempt, ticket } => write!(f, " {claim} {attempt} {ticket}"),
            Message::Settle { claim, attempt, ticket, standing, .. } => {
                write!(f, " {claim} {attempt} {ticket}")?;
                f.write_str(match standing {
                    Standing::Waiting => "",
                    Standing::Shown => " shown",
                    Standing::Held => " held",
                    Standing::Joins => " joins",
                })
            }
            Message::View { claim, attempt, rivals, .. } => {
                write!(f, " {claim} {attempt} after")?;
                rivals.iter().try_for_each(|rival| write!(f, " {}", rival.bid.claim))
            }
            Message::Queued { claim, attempt, .. }
            | Message::Renewed { claim, attempt, .. }
            | Message::Lost { claim, attempt }
            | Message::Release { claim, attempt, .. } => write!(f, " {claim} {attempt}"),
        }
    }
}
