//! The register of a node's grants: what it granted to its clients and what became of it, in order.

use serde::{Deserialize, Serialize};

use crate::{ClaimId, ClaimState};

/// Answer to `GET /v1/pools/{pool}/grants`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RegisterView {
    /// The node whose register it is: every node has its own, of its own clients.
    pub node: String,
    /// Whether it survives restarts of the node, as in pools that are durable. The last second
    /// before a crash may be missing.
    pub durable: bool,
    /// What happened, in order: a page of those with a larger number than was asked for.
    pub events: Vec<GrantEvent>,
}

/// A grant, or the end of one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GrantEvent {
    /// Its place in the register; grows by one, and after a restart from what is on disk. The
    /// oldest events are dropped.
    pub number: u64,
    /// When, in milliseconds since 1970 by the node's calendar, which may jump.
    pub at_ms: u64,
    /// How often the node had been started.
    pub boot: u32,
    /// Which grant of the pool at this node since that start; none if it was made elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<u64>,
    /// The claim.
    pub id: ClaimId,
    /// `granted`, or how it ended.
    pub state: ClaimState,
    /// What it has or had: unit and fence, of large grants the first hundred.
    pub shares: Vec<(u32, u64)>,
}
