//! A node, its peers, and what changes at it.

use serde::{Deserialize, Serialize};

use crate::{ClaimId, ClaimState};

/// Answer to `GET /v1/node`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NodeView {
    /// Its name.
    pub name: String,
    /// The cluster it belongs to.
    pub cluster: String,
    /// The epoch of the cluster's configuration.
    pub epoch: u64,
    /// How often it has been started; grows.
    pub boot: u32,
    /// The version of its program.
    pub version: String,
    /// Whether it is ready for clients: the same as `/readyz`.
    pub ready: bool,
    /// What `/readyz?verbose` lists.
    pub checks: Vec<Check>,
    /// The other members.
    pub peers: Vec<PeerView>,
    /// Claims that this node answers for and that are not over.
    pub claims: u64,
    /// Connections of clients.
    pub clients: u64,
    /// How the charter stands, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charter: Option<CharterView>,
}

/// The replicated document that says who decides, as one node knows it.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CharterView {
    /// Grows with every change; 0 if this node knows nothing of it yet.
    pub version: u64,
    /// Who leads it, if somebody does.
    pub leader: Option<String>,
    /// Who belongs to it.
    pub members: Vec<CharterMember>,
    /// What is the matter, if anything is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A member of the charter.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CharterMember {
    /// Its name.
    pub name: String,
    /// Whether it votes over the charter.
    pub votes: bool,
    /// Whether it gives away what it decides.
    pub draining: bool,
    /// For how many of the 256 groups of pools it decides.
    pub groups: u32,
    /// For how many of these another member would decide at once without it.
    #[serde(default)]
    pub shadowed: u32,
    /// How long ago the node that was asked heard it; nothing of itself, or if it does not listen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_ms: Option<u64>,
}

/// One thing that readiness looks at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Check {
    /// Its name.
    pub name: String,
    /// Whether it is fine.
    pub ok: bool,
    /// More about it, in a sentence.
    pub detail: String,
}

/// Another member of the cluster, as a node sees it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PeerView {
    /// Its name.
    pub name: String,
    /// Whether there is a connection.
    pub connected: bool,
    /// How often it has been started, if it has been heard from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<u32>,
    /// How long a question and its answer took lately, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<u64>,
    /// Whether it has been silent for so long that it is taken to have crashed.
    pub suspected: bool,
    /// Why there is no connection, as far as known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// One event of `GET /v1/watch` and `GET /v1/pools/{pool}/watch`: what changed at this node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Change {
    /// The pool.
    pub pool: String,
    /// The claim.
    pub id: ClaimId,
    /// What happened.
    pub kind: ChangeKind,
    /// How the claim stands now.
    pub state: ClaimState,
    /// How many units it asks for or has.
    pub units: u32,
}

/// What happened to a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// A client of this node made it.
    Claimed,
    /// It was granted.
    Granted,
    /// Its lease was extended.
    Renewed,
    /// It was asked to go to another unit.
    Moving,
    /// It is over.
    Ended,
    /// As the arbiter, this node took units back from a holder that did not renew.
    Reclaimed,
}

/// How often a node was started, in words. One that keeps no count, or lost it, goes on from the
/// minutes since 2026, which are more than any count.
pub fn told_start(number: u32) -> String {
    match number {
        ..COUNTS => format!("start {number}"),
        _ => format!("start number {number} by the clock, as no count is kept"),
    }
}

const COUNTS: u32 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_no_count_says_so() {
        assert_eq!(told_start(2), "start 2");
        assert!(told_start(460_157).contains("460157 by the clock"));
    }
}
