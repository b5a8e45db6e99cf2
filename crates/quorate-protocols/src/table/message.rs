//! What seats of a `table` pool tell each other.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quorate_core::{ClaimId, Fence, Moment, Shares};

use super::sheet::{NUMBER_MAX, Sheet, Version};
use crate::attempt::Attempt;
use crate::goods::Goods;

/// See the table in [the module's documentation](super).
///
/// `section`: one try of a node to change the table. `attempt`: one try of a node to get a claim.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs, reason = "the fields are described once, here and below")]
pub enum Message {
    /// `round`: no version of the section will be of a later one.
    Lock { section: Attempt, round: Fence },
    /// The member knows the section, and another one has its lock.
    Queued { section: Attempt },
    /// `sheet`: the table as the member knows it, for so long. `overdue`: the grants in it that
    /// were not renewed in time. `floor`: all fences that it may have forgotten are below.
    Locked {
        section: Attempt,
        sheet: Arc<Sheet>,
        known_for: Duration,
        overdue: Arc<[(ClaimId, Version)]>,
        floor: Fence,
    },
    /// The section does not have, or no longer has, the member's lock. `round`: the least that it
    /// would give it to. `closed`: it gives it to nobody yet, since it forgot.
    Refused { section: Attempt, round: Fence, closed: bool },
    /// The new table; the section needs the lock no more.
    Store { section: Attempt, sheet: Arc<Sheet> },
    /// The member has it.
    Stored { section: Attempt },
    /// The section is over. `clean`: it has stored nothing anywhere.
    Unlock { section: Attempt, clean: bool },
    /// Is the section still going on?
    Probe { section: Attempt },
    /// It is.
    Busy { section: Attempt },
    /// `sent`: the clock of the claim's home when it asked. `waited`: for how long the claim has
    /// been in the table since, by the clocks of members.
    Notify { claim: ClaimId, attempt: Attempt, shares: Shares, sent: Moment, waited: Duration },
    /// The claim's lease is over.
    Lost { claim: ClaimId, attempt: Attempt },
    /// Does the claim still wait, in its turn?
    Ask { claim: ClaimId, attempt: Attempt },
    /// So far as the member knows.
    Told { claim: ClaimId, attempt: Attempt, waits: bool },
    /// I forgot: which rounds and fences were there?
    Survey,
    /// None above these. `sure`: I forgot nothing. `sheet`: the table as I know it, where claims
    /// may stand: what stands is not over when a lease is.
    Report { round: Fence, fence: Fence, boot: u32, sure: bool, sheet: Option<Arc<Sheet>> },
}

impl Message {
    pub(super) const KINDS: &'static [&'static str] = &[
        "lock", "queued", "locked", "refused", "store", "stored", "unlock", "probe", "busy",
        "notify", "lost", "ask", "told", "survey", "report",
    ];

    pub(super) fn kind(&self) -> usize {
        match self {
            Message::Lock { .. } => 0,
            Message::Queued { .. } => 1,
            Message::Locked { .. } => 2,
            Message::Refused { .. } => 3,
            Message::Store { .. } => 4,
            Message::Stored { .. } => 5,
            Message::Unlock { .. } => 6,
            Message::Probe { .. } => 7,
            Message::Busy { .. } => 8,
            Message::Notify { .. } => 9,
            Message::Lost { .. } => 10,
            Message::Ask { .. } => 11,
            Message::Told { .. } => 12,
            Message::Survey => 13,
            Message::Report { .. } => 14,
        }
    }

    pub(super) fn is_for_member(&self) -> bool {
        matches!(
            self,
            Message::Lock { .. }
                | Message::Store { .. }
                | Message::Unlock { .. }
                | Message::Busy { .. }
                | Message::Ask { .. }
                | Message::Survey
                | Message::Report { .. }
        )
    }

    /// Whether a node of this pool can have sent it.
    pub(super) fn is_sound(&self, goods: &Goods) -> bool {
        let small = |number: &Fence| number.0 < NUMBER_MAX;
        match self {
            Message::Lock { round, .. } | Message::Refused { round, .. } => small(round),
            Message::Locked { sheet, floor, .. } => small(floor) && sheet.is_sound(goods),
            Message::Store { sheet, .. } => sheet.is_sound(goods),
            Message::Report { round, fence, sheet, .. } => {
                let sound = sheet.as_ref().is_none_or(|sheet| sheet.is_sound(goods));
                small(round) && small(fence) && sound
            }
            _ => true,
        }
    }

    /// Whether only a member can have sent it.
    pub(super) fn is_from_member(&self) -> bool {
        matches!(
            self,
            Message::Queued { .. }
                | Message::Locked { .. }
                | Message::Refused { .. }
                | Message::Stored { .. }
                | Message::Probe { .. }
                | Message::Told { .. }
                | Message::Survey
                | Message::Report { .. }
        )
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::KINDS[self.kind()])?;
        match self {
            Message::Lock { section, .. }
            | Message::Queued { section }
            | Message::Refused { section, .. }
            | Message::Stored { section }
            | Message::Unlock { section, .. }
            | Message::Probe { section }
            | Message::Busy { section } => write!(f, " {section}"),
            Message::Locked { section, sheet, .. } | Message::Store { section, sheet } => {
                write!(f, " {section} {sheet}")
            }
            Message::Notify { claim, shares, .. } => write!(f, " {claim} {shares}"),
            Message::Lost { claim, .. } | Message::Ask { claim, .. } => write!(f, " {claim}"),
            Message::Told { claim, waits, .. } => {
                write!(f, " {claim}{}", if *waits { " waits" } else { "" })
            }
            Message::Survey => Ok(()),
            Message::Report { fence, .. } => write!(f, " {fence}"),
        }
    }
}
