//! What seats of a `central` pool tell each other.

use std::fmt;
use std::time::Duration;

use quorate_core::{ClaimId, Moment, NodeId, Shares, Stamp, Units};

/// One try of a node to get or keep a claim, unique among that node's tries: the paper's request
/// made distinguishable from its repetitions (spec 7.1, `e`).
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

/// See the table in [the module's documentation](super).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs, reason = "the fields are described once, below")]
pub enum Message {
    /// `stamp`: how old the claim is. `sent`: the requester's clock, to be echoed.
    Request { claim: ClaimId, attempt: Attempt, stamp: Stamp, units: Units, sent: Moment },
    /// `sent`: echo of the request that put the claim in the queue. `waited`: for how long it has
    /// been there, by the arbiter's clock. `clock`: the arbiter's logical clock.
    Grant {
        claim: ClaimId,
        attempt: Attempt,
        shares: Shares,
        sent: Moment,
        waited: Duration,
        clock: u64,
    },
    /// Unconditional, since a claim's name is never used again.
    Release { claim: ClaimId },
    /// Counts only if the arbiter knows the claim by this attempt of this requester.
    Decline { claim: ClaimId, attempt: Attempt },
    /// `shares`: what the holder has, so that an arbiter that forgot can take it into its books.
    Renew { claim: ClaimId, attempt: Attempt, shares: Shares, sent: Moment },
    /// `sent`: echo of the renewal.
    Renewed { claim: ClaimId, attempt: Attempt, sent: Moment, clock: u64 },
    /// The claim has no units here.
    Lost { claim: ClaimId, attempt: Attempt, clock: u64 },
}

impl Message {
    pub(super) const KINDS: &'static [&'static str] =
        &["request", "grant", "release", "decline", "renew", "renewed", "lost"];

    pub(super) fn kind(&self) -> usize {
        match self {
            Message::Request { .. } => 0,
            Message::Grant { .. } => 1,
            Message::Release { .. } => 2,
            Message::Decline { .. } => 3,
            Message::Renew { .. } => 4,
            Message::Renewed { .. } => 5,
            Message::Lost { .. } => 6,
        }
    }

    pub(super) fn is_for_arbiter(&self) -> bool {
        match self {
            Message::Request { .. }
            | Message::Release { .. }
            | Message::Decline { .. }
            | Message::Renew { .. } => true,
            Message::Grant { .. } | Message::Renewed { .. } | Message::Lost { .. } => false,
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::KINDS[self.kind()])?;
        match self {
            Message::Request { claim, attempt, stamp, units, .. } => {
                write!(f, " {claim} h{units} {stamp} {attempt}")
            }
            Message::Grant { claim, attempt, shares, .. }
            | Message::Renew { claim, attempt, shares, .. } => {
                write!(f, " {claim} {shares} {attempt}")
            }
            Message::Release { claim } => write!(f, " {claim}"),
            Message::Decline { claim, attempt }
            | Message::Renewed { claim, attempt, .. }
            | Message::Lost { claim, attempt, .. } => write!(f, " {claim} {attempt}"),
        }
    }
}

/// Who asked, and in which of its tries: where an arbiter's answer goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Asker {
    pub(super) node: NodeId,
    pub(super) attempt: Attempt,
}

impl Asker {
    /// Whether this is an older try of the same node. Tries of different nodes are not ordered: a
    /// client that moved asks through its new node, and the last to ask is answered.
    pub(super) fn is_before(self, other: Asker) -> bool {
        self.node == other.node && self.attempt < other.attempt
    }
}
