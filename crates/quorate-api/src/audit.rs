//! What administrators look up: who did or wanted what, and from where.

use serde::{Deserialize, Serialize};

/// What a node remembers of administrative acts, refusals and first uses of tokens, the oldest
/// first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditView {
    /// What happened.
    pub events: Vec<AuditEvent>,
    /// How many refusals were left out since the start: too many at once.
    pub left_out: u64,
}

/// One of them: a line of the audit file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditEvent {
    /// When, in milliseconds since 1970 by the calendar of the node.
    pub at_ms: u64,
    /// The node.
    pub node: String,
    /// What kind of thing.
    pub kind: AuditKind,
    /// Who: the name of a token or a certificate, `administrator`, `anonymous`, or `stranger` for
    /// whoever showed a token that is not known.
    pub who: String,
    /// From where: an address, or a user of the node's machine.
    pub from: String,
    /// What was done or wanted.
    pub what: String,
    /// In which pool, if in one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pool: String,
    /// To what in it: a claim, a unit, a node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// What came of it.
    pub result: String,
    /// How many refusals before this one were left out: too many at once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

/// What kind of thing it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum AuditKind {
    /// Something that administrators do.
    Act,
    /// Somebody was not let do something.
    Refusal,
    /// A token was used for the first time from an address, as far as the node remembers.
    FirstUse,
}

impl AuditKind {
    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            AuditKind::Act => "act",
            AuditKind::Refusal => "refusal",
            AuditKind::FirstUse => "first use",
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
