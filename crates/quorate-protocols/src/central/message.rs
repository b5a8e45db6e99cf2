//! What seats of a `central` pool tell each other.

use std::fmt;
use std::time::Duration;

use quorate_core::{ClaimId, Fence, Moment, Move, Shares, Wanted};

use crate::attempt::Attempt;

/// See the table in [the module's documentation](super).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs, reason = "the fields are described once, below")]
pub enum Message {
    /// `sent`: the requester's clock, to be echoed.
    Request { claim: ClaimId, attempt: Attempt, wanted: Wanted, sent: Moment },
    /// `sent`: echo of the request that put the claim in the queue. `waited`: for how long it has
    /// been there, by the arbiter's clock.
    Grant { claim: ClaimId, attempt: Attempt, shares: Shares, sent: Moment, waited: Duration },
    /// Unconditional, since a claim's name is never used again.
    Release { claim: ClaimId },
    /// Counts only if the arbiter knows the claim by this attempt of this requester, and gave it
    /// nothing newer than `fence`: one try may be granted twice, if the first grant was over before
    /// it was heard of. `None`: no client was told of anything that this try got, nor will be.
    Decline { claim: ClaimId, attempt: Attempt, fence: Option<Fence> },
    /// `shares`: what the holder has, so that an arbiter that forgot can take it into its books.
    Renew { claim: ClaimId, attempt: Attempt, shares: Shares, sent: Moment },
    /// `sent`: echo of the renewal.
    Renewed { claim: ClaimId, attempt: Attempt, sent: Moment },
    /// What the claim had with this fence, the newest of its grant, or an earlier one is over.
    Lost { claim: ClaimId, attempt: Attempt, fence: Fence },
    /// The holder has a unit more, and is to leave another; it answers by a renewal without that.
    Move { claim: ClaimId, attempt: Attempt, it: Move },
    /// As units are drained and labelled now, nobody can ever be granted this.
    Refused { claim: ClaimId, attempt: Attempt },
}

impl Message {
    pub(super) const KINDS: &'static [&'static str] =
        &["request", "grant", "release", "decline", "renew", "renewed", "lost", "move", "refused"];

    pub(super) fn kind(&self) -> usize {
        match self {
            Message::Request { .. } => 0,
            Message::Grant { .. } => 1,
            Message::Release { .. } => 2,
            Message::Decline { .. } => 3,
            Message::Renew { .. } => 4,
            Message::Renewed { .. } => 5,
            Message::Lost { .. } => 6,
            Message::Move { .. } => 7,
            Message::Refused { .. } => 8,
        }
    }

    /// Whether it sets the deadline of a holder.
    pub(super) fn promises(&self) -> bool {
        matches!(self, Message::Grant { .. } | Message::Renewed { .. })
    }

    pub(super) fn is_for_arbiter(&self) -> bool {
        match self {
            Message::Request { .. }
            | Message::Release { .. }
            | Message::Decline { .. }
            | Message::Renew { .. } => true,
            Message::Grant { .. }
            | Message::Renewed { .. }
            | Message::Lost { .. }
            | Message::Move { .. }
            | Message::Refused { .. } => false,
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::KINDS[self.kind()])?;
        match self {
            Message::Request { claim, attempt, wanted, .. } => {
                write!(f, " {claim} h{}", wanted.units)?;
                for line in wanted.lines.iter().flat_map(|lines| lines.iter()) {
                    write!(f, " {} of {}", line.units, line.among.len())?;
                }
                write!(f, " {attempt}")
            }
            Message::Grant { claim, attempt, shares, .. }
            | Message::Renew { claim, attempt, shares, .. } => {
                write!(f, " {claim} {shares} {attempt}")
            }
            Message::Move { claim, attempt, it } => {
                write!(f, " {claim} {} to {} {attempt}", it.from.unit, it.to.unit)
            }
            Message::Release { claim } => write!(f, " {claim}"),
            Message::Decline { claim, attempt, fence: Some(fence) }
            | Message::Lost { claim, attempt, fence } => write!(f, " {claim} {fence} {attempt}"),
            Message::Decline { claim, attempt, fence: None }
            | Message::Renewed { claim, attempt, .. }
            | Message::Refused { claim, attempt } => write!(f, " {claim} {attempt}"),
        }
    }
}
