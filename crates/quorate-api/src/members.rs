//! Who belongs to a cluster.

use serde::{Deserialize, Serialize};

/// The answer to `GET /v1/members`, and to whoever changed something about a member.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MembersView {
    /// The version of the charter; nothing where there is none, and members are those of the
    /// configuration file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Who leads the charter, if somebody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
    /// What is the matter with the charter, if anything is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Everybody, in the order of the file.
    pub members: Vec<MemberRow>,
}

/// The answer to `GET /v1/charter/backup`: the charter, for whoever loses it. It has no grants, and
/// of tokens only digests.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BackupView {
    /// The version of the charter.
    pub version: u64,
    /// Which life of the cluster it is of.
    pub incarnation: u64,
    /// The names of its members.
    pub members: Vec<String>,
    /// How many pools it names.
    pub pools: u64,
    /// All of it, for `quorate cluster restore`.
    pub charter: String,
}

/// A member, as the node that was asked sees it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MemberRow {
    /// Its name.
    pub name: String,
    /// Where the other members reach it.
    pub address: String,
    /// What it is in the charter.
    pub role: MemberRole,
    /// Its number in the charter, which no other member ever has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// Whether it is to give away what it decides.
    pub draining: bool,
    /// Whether it is about to be removed.
    pub leaving: bool,
    /// For how many of the 256 groups of pools it decides.
    pub groups: u32,
    /// Whether it is the node that was asked, or there is a connection to it.
    pub connected: bool,
}

/// What a member is in the charter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MemberRole {
    /// It votes.
    Voter,
    /// It follows.
    Learner,
    /// It is in the configuration file, and has not been let in yet.
    Absent,
    /// It was removed, and is cut off.
    Removed,
    /// There is no charter: it is in the configuration file.
    Listed,
}

impl MemberRole {
    /// As people read it.
    pub fn word(self) -> &'static str {
        match self {
            MemberRole::Voter => "votes",
            MemberRole::Learner => "follows",
            MemberRole::Absent => "not in yet",
            MemberRole::Removed => "removed",
            MemberRole::Listed => "in the file",
        }
    }
}

/// The body of `POST /v1/members/{name}/remove`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct RemoveRequest {
    /// It is gone for good: it is not waited for.
    pub dead: bool,
    /// Also if that costs what the refusal says.
    pub force: bool,
}
