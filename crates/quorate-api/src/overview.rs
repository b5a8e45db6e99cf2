//! What an operator sees: all of a cluster that fits on a screen, and what happened lately.

use serde::{Deserialize, Serialize};

use crate::{ClaimId, GrantsView, HolderView, NodeView, PoolView, WaiterView};

/// Answer to `GET /v1/overview`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Overview {
    /// The node that answers.
    pub node: NodeView,
    /// Every member, as it says itself, in the order of the configuration.
    pub nodes: Vec<MemberView>,
    /// The pools of this page, by name.
    pub pools: Vec<PoolRow>,
    /// How many pools match.
    pub pools_found: u64,
    /// How many of those grant nothing, as some node sees it.
    #[serde(default)]
    pub pools_unavailable: u64,
    /// Patterns whose pools are made on demand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<PatternRow>,
    /// The pool that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolDetail>,
    /// What is worth knowing, the latest first.
    pub notable: Vec<HistoryEvent>,
    /// Whether revoking needs the administrator's token.
    pub guarded: bool,
}

/// A member of the cluster.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MemberView {
    /// Its name.
    pub name: String,
    /// Whether it answered; if not, the rest is not known.
    pub answers: bool,
    /// Whether it is ready for clients.
    pub ready: bool,
    /// How often it was started.
    pub boot: u32,
    /// For how long yet some pool of it waits until old promises are over.
    pub grace_ms: u64,
    /// Claims it answers for.
    pub claims: u64,
    /// Connections of clients.
    pub clients: u64,
    /// Clients that have claims here and no connection, by the names they gave: those that speak
    /// HTTP, and those that are away.
    #[serde(default)]
    pub unconnected: u64,
    /// How it sees each member, itself too, in the same order.
    pub sees: Vec<SightView>,
    /// Why it does not answer, as far as known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// How one member sees another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SightView {
    /// Whether there is a connection.
    pub connected: bool,
    /// Whether it is taken to have crashed.
    pub suspected: bool,
    /// How long a question and its answer took lately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<u64>,
}

/// A pool in a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PoolRow {
    /// Its name.
    pub name: String,
    /// How many units it has.
    pub units: u32,
    /// Units held by clients of nodes that answered.
    pub held: u64,
    /// Claims of such clients that wait.
    pub waiting: u64,
    /// How long the oldest of these has waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_ms: Option<u64>,
    /// The protocol that decides.
    pub protocol: String,
    /// Which claims can be granted with the nodes that are there.
    pub grants: GrantsView,
}

/// A pattern: pools whose name fits are made when somebody first asks for units of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PatternRow {
    /// The pattern, with one `*` for any text.
    pub pattern: String,
    /// How many units each of its pools has.
    pub units: u32,
    /// The protocol that decides.
    pub protocol: String,
}

/// One pool in full.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PoolDetail {
    /// The pool, with its counts.
    pub view: PoolView,
    /// Who holds units, the longest first: one page of those that match.
    pub holders: Vec<HolderView>,
    /// How many holders match.
    pub holders_found: u64,
    /// Who waits, the next one first: one page of those that match.
    pub queue: Vec<WaiterView>,
    /// How many that wait match.
    pub queue_found: u64,
    /// Claims that wait and are not in any list: nodes tell of the first thousand only.
    pub unlisted: u64,
    /// Units held and claims waiting of each member's clients, in the order of `nodes`.
    pub shares: Vec<ShareView>,
    /// How long those have waited that still wait, as far as their nodes answered.
    #[serde(default)]
    pub still: StillView,
    /// Units with the same labels, together: how many are held and wanted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<KindView>,
    /// How many more kinds there are than were listed.
    #[serde(default)]
    pub kinds_left_out: u64,
    /// Who holds which unit, of the first 256 that are held.
    pub cells: Vec<CellView>,
    /// The last minutes, ten seconds each, the oldest first.
    pub chart: Vec<ChartPoint>,
    /// What happened lately, the latest first.
    pub events: Vec<HistoryEvent>,
}

/// What clients of one member have of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ShareView {
    /// Units they hold.
    pub held: u64,
    /// Claims of theirs that wait.
    pub waiting: u64,
}

/// Those who wait now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StillView {
    /// How many.
    pub waiting: u64,
    /// How long they have waited on average.
    pub waited_ms: u64,
    /// How long the oldest has waited.
    pub waited_max_ms: u64,
}

/// Units with the same labels.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KindView {
    /// Their labels; none where units are alike.
    pub labels: std::collections::BTreeMap<String, String>,
    /// How many there are.
    pub units: u32,
    /// How many of them are held, where the pool says which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<u32>,
    /// Claims that wait and could use some of them, of all that nodes listed.
    pub wanted: u64,
}

/// A unit that is held.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CellView {
    /// Which, numbered from 0. Where a protocol only counts, several have one number.
    pub unit: u32,
    /// The node that answers for the claim.
    pub node: String,
    /// The claim.
    pub id: ClaimId,
}

/// Ten seconds of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChartPoint {
    /// When they began, in seconds since 1970.
    pub at_s: u64,
    /// Grants.
    pub granted: u32,
    /// How long these had waited on average.
    pub waited_ms: u64,
    /// How long the slowest of these had waited.
    pub waited_max_ms: u64,
    /// Grants that were released.
    pub released: u32,
    /// Grants that ended otherwise: expired or revoked.
    pub lost: u32,
}

/// Answer to `GET /v1/pools/{pool}/history`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HistoryView {
    /// What happened, the oldest first, as far as nodes remember: each keeps a bounded record in
    /// memory, and begins anew when it starts.
    pub events: Vec<HistoryEvent>,
    /// Nodes that did not answer: the list may be incomplete.
    pub silent: Vec<String>,
}

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HistoryEvent {
    /// When, in milliseconds since 1970 by the calendar of the node that tells it.
    pub at_ms: u64,
    /// What.
    pub what: HistoryKind,
    /// The node that tells it.
    pub node: String,
    /// The pool, if it happened in one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pool: String,
    /// The claim, if it happened to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<ClaimId>,
    /// How many units.
    pub units: u32,
    /// If granted: how long it had waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<u64>,
    /// If a grant ended: how long it was held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_ms: Option<u64>,
    /// The client, in its words; or the other node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub who: String,
    /// What for, or why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// How often the same happened, the last time then; 1 if left out.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub times: u32,
    /// To how many more pools the same happened at once.
    #[serde(default, skip_serializing_if = "is_none")]
    pub more_pools: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it so")]
fn is_none(count: &u32) -> bool {
    *count == 0
}

fn once() -> u32 {
    1
}

fn is_once(times: &u32) -> bool {
    *times == 1
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum HistoryKind {
    /// A client asked for units.
    Claimed,
    /// It got them.
    Granted,
    /// It gave them back.
    Released,
    /// It no longer wanted them, before it had them.
    Cancelled,
    /// Its lease ended without a renewal.
    Expired,
    /// An operator took the claim back.
    Revoked,
    /// The claim could not be accepted.
    Refused,
    /// As an arbiter, the node took units back from a holder that did not renew.
    Reclaimed,
    /// The node started.
    Started,
    /// The node met another.
    Met,
    /// The node lost sight of another.
    Missed,
    /// Another node was silent for too long, and is taken to have crashed...
    Suspected,
    /// ...and was heard again.
    Trusted,
    /// The pool stopped at the node, which found a contradiction in it.
    Stopped,
    /// The node tells of something in the pool that its operator should know...
    Warned,
    /// ...and that it is over.
    Cleared,
    /// Its turn came while nobody was there for it: it has none until its client asks again.
    Passed,
    /// Another node decides in the pool, or the same one in a new term.
    Seated,
    /// The pool was made, or became another.
    Amended,
    /// A member joined, left, drains, votes, or does so no more.
    Member,
}

impl HistoryKind {
    /// As in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            HistoryKind::Claimed => "claimed",
            HistoryKind::Granted => "granted",
            HistoryKind::Released => "released",
            HistoryKind::Cancelled => "cancelled",
            HistoryKind::Expired => "expired",
            HistoryKind::Revoked => "revoked",
            HistoryKind::Refused => "refused",
            HistoryKind::Reclaimed => "reclaimed",
            HistoryKind::Started => "started",
            HistoryKind::Met => "met",
            HistoryKind::Missed => "missed",
            HistoryKind::Suspected => "suspected",
            HistoryKind::Trusted => "trusted",
            HistoryKind::Stopped => "stopped",
            HistoryKind::Warned => "warned",
            HistoryKind::Cleared => "cleared",
            HistoryKind::Seated => "seated",
            HistoryKind::Amended => "amended",
            HistoryKind::Member => "member",
            HistoryKind::Passed => "passed",
        }
    }
}

/// Answer to `GET /v1/claims/{id}`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FoundView {
    /// The pools in which some node knows the claim.
    pub pools: Vec<String>,
    /// Nodes that did not answer: the list may be incomplete.
    pub silent: Vec<String>,
}
