//! What members say to each other beside the council's own questions, which are bytes here.

use quorate_charter::{Birth, ClusterId, MemberId};
use serde::{Deserialize, Serialize};

/// A question.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Word {
    /// Are you there, and in which life?
    Life,
    /// Let me in, with a store of this birth.
    Join { birth: Birth, address: String },
    /// A question of the council, from this member.
    Council { member: MemberId, question: Vec<u8> },
    /// Am I, who joined as this member, still one?
    Belongs { member: MemberId },
    /// Give up what files let you decide, for good, if I am `sure`; else say that you could.
    /// Answered by who you are.
    Unpin { sure: bool },
}

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Said {
    /// I am; and if I am in, as which member.
    Life { member: Option<MemberId>, boot: u32 },
    /// You are in.
    Joined(ClusterId, MemberId),
    /// The council's answer.
    Council(Vec<u8>),
    /// Not now, and why; ask again.
    NotYet(String),
    /// No, and why; nothing was changed.
    Refused(String),
    /// The member that asks is none any more, for good.
    Removed,
}
