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
    /// When it joined by invitation, by the calendar of the member that let it in, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<String>,
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

/// The body of `POST /v1/members/{name}/invite`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct InviteRequest {
    /// For how many seconds it is good.
    pub expires_s: u64,
}

impl Default for InviteRequest {
    fn default() -> Self {
        InviteRequest { expires_s: 3600 }
    }
}

/// That a machine may join.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct InviteView {
    /// Under which name.
    pub name: String,
    /// What it is given: good once, and shown nowhere again.
    pub invitation: String,
    /// For how many seconds it is good.
    pub expires_s: u64,
}

impl std::fmt::Debug for InviteView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InviteView").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The body of `POST /v1/join`, by which a machine that was invited becomes a member.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct JoinRequest {
    /// Under which name.
    pub name: String,
    /// The secret of the invitation.
    pub secret: String,
    /// The public half of the key that it made, in hexadecimal digits.
    pub key: String,
    /// 128 bits that it drew for its store, likewise.
    pub birth: String,
    /// Where the other members reach it...
    pub peers: String,
    /// ...and where clients do.
    pub clients: String,
}

impl std::fmt::Debug for JoinRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinRequest").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What a machine is told that becomes a member: for itself alone.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JoinView {
    /// The cluster.
    pub cluster: String,
    /// Its number in the charter...
    pub member: u64,
    /// ...and the number of the charter, in hexadecimal digits.
    pub charter: String,
    /// The epoch of the files of all members.
    pub epoch: u64,
    /// How the charter goes, as files have it.
    pub pace: String,
    /// Everybody who is a member or was one, in this order, and itself last or later.
    pub members: Vec<JoinMember>,
    /// Who may do what, as files have it.
    pub rights: String,
    /// The certificates of the authority, as PEM.
    pub ca: String,
    /// Its own certificate, and the authority's.
    pub certificate: String,
    /// The key of the authority.
    pub authority: String,
}

impl std::fmt::Debug for JoinView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinView").field("member", &self.member).finish_non_exhaustive()
    }
}

/// A member, as a file has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JoinMember {
    /// Its name.
    pub name: String,
    /// Where the other members reach it.
    pub peers: String,
}
