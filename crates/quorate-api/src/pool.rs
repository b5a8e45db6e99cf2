//! Pools, who holds their units and who waits.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ClaimId, GrantsView, Line, ShortageView, UnitView};

/// Answer to `GET /v1/pools`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PoolsView {
    /// The pools, by name. Pools that are made on demand appear once they have been used.
    pub pools: Vec<PoolView>,
    /// Patterns whose pools are made on demand.
    pub patterns: Vec<String>,
    /// How many more there are than were listed.
    pub left_out: u64,
}

/// One pool, as in `GET /v1/pools/{pool}`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PoolView {
    /// Its name.
    pub name: String,
    /// How many units it has.
    pub units: u32,
    /// Their names, if they have names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unit_names: Vec<String>,
    /// Their labels in the same order, if they have labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unit_labels: Vec<BTreeMap<String, String>>,
    /// The protocol that decides.
    pub protocol: String,
    /// Its options as far as they decide what crashes cost, in words, if it has such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<String>,
    /// Where a grant is renewed at one node only: what becomes of it without that node, in a
    /// sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<String>,
    /// How long a grant lasts without renewal.
    pub lease_ms: u64,
    /// How far clocks may run apart, in millionths. Already taken off all that nodes promise.
    pub drift_ppm: u32,
    /// Whether a grant says which units it has. If not, units are only counted: their numbers and
    /// fences mean nothing beyond the grant itself.
    pub names_units: bool,
    /// How often a waiting claim may be overtaken, if there is a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overtakes_max: Option<u32>,
    /// How many nodes, whichever they are, may stay away without stopping the others.
    pub survives: u32,
    /// Its quorums, if quorums decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorums: Option<QuorumsView>,
    /// Which claims can be granted with the nodes that are there: as all nodes together see it if
    /// the pool was asked about by name, else as this node does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grants: Option<GrantsView>,
    /// Without whom nothing is granted; none where the pool was not asked about by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// What a claim waits for that has no place in a queue, after "it waits for".
    #[serde(default)]
    pub awaits: String,
    /// Who decides and who would without it, where the charter says that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seat: Option<SeatView>,
    /// Whether grants survive a restart of every node.
    pub durable: bool,
    /// Whether claims may ask for holds without a lease.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub standing: bool,
    /// After how long such a hold is overdue, if the node that answers says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overdue_ms: Option<u64>,
    /// Units granted, as far as the nodes that answered know; none where the pool was not asked
    /// about by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<u32>,
    /// Units that claims could have now, likewise: those that nobody has, that are not drained and
    /// not lost, and none while nothing can be granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<u32>,
    /// Claims that wait, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u32>,
    /// Units that an operator took out of service, by name or number. Holders keep theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drained: Vec<String>,
    /// Units to which an operator gave other labels than the configuration does, likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relabelled: Vec<String>,
    /// What came of the order that this answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<OrderOutcome>,
    /// Where units differ and claims wait: what is short. Only the oldest claims are looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shortages: Vec<ShortageView>,
    /// If a node restarted and waits until old promises are over: for how long yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
    /// What is the matter with it now, a sentence each; where the protocol can tell. What needs an
    /// operator begins with `ALARM`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub troubles: Vec<String>,
    /// What the nodes tell about themselves that only the pool's protocol has a word for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<FactView>,
    /// Nodes that did not answer: what is said here may be incomplete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<String>,
}

/// Who decides over a pool, where the charter says that, as far as one node knows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SeatView {
    /// The node that decides.
    pub node: String,
    /// In which term; it grows with every move.
    pub term: u32,
    /// The node that is told every grant before its client is, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow: Option<String>,
    /// Whether that knows all grants, and would decide at once.
    pub whole: bool,
    /// How long nobody new would be granted anything if the node that decides crashed now, in
    /// milliseconds, besides a few round trips.
    pub crash_ms: u64,
}

/// Request to `PUT /v1/pools/{pool}/units/{unit}/labels`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RelabelRequest {
    /// All labels of the unit from now on.
    pub labels: BTreeMap<String, String>,
}

/// What came of an operator's order, for claims that waited. Holders keep what they have.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OrderOutcome {
    /// Claims that were granted by it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub granted: Vec<ClaimId>,
    /// Claims that can never be granted now, and were refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<ClaimId>,
}

/// The quorums of a pool, and what they are worth.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuorumsView {
    /// What they do: `arbiter` (permissions for units that are counted), `named` (for units that
    /// have names) or `ticket`.
    pub mode: String,
    /// The family, as `quorate-lab quorum report --family` takes it, or `threshold`: one for each
    /// size of claim.
    pub family: String,
    /// Whether grants name their units although permissions only count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub naming: bool,
    /// How many nodes vote.
    pub voters: u32,
    /// Members of the smallest quorum...
    pub smallest: u32,
    /// ...and of the largest.
    pub largest: u32,
    /// Crashes always survived.
    pub survives: u32,
    /// How likely a quorum is alive when each node is with probability 0.99.
    pub availability: f64,
    /// The share of all claims that the busiest node takes part in, at best.
    pub load: f64,
    /// Messages for one grant when nobody else wants anything and nobody is in its own quorum.
    pub messages: f64,
}

/// One thing that a node tells about its part in a pool; docs/protocols describes them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FactView {
    /// The node that tells it.
    pub node: String,
    /// What it is.
    pub name: String,
    /// The node it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// How much; 0 or 1 for no and yes.
    pub value: u64,
    /// Whether it only grows while the node runs.
    pub grows: bool,
}

/// Answer to `GET /v1/pools/{pool}/holders`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HoldersView {
    /// Who holds units, the longest first.
    pub holders: Vec<HolderView>,
    /// Nodes that did not answer: the list may be incomplete.
    pub silent: Vec<String>,
}

/// Somebody who holds units.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HolderView {
    /// The claim.
    pub id: ClaimId,
    /// How many units.
    pub count: u32,
    /// Which units; empty if the claim's node did not say.
    pub units: Vec<UnitView>,
    /// The node that answers for the claim; empty if none does (its node restarted).
    pub node: String,
    /// How often that node has been started, and which of its grants this is: as in an answer
    /// about the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<u32>,
    /// See `boot`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<u64>,
    /// Who, in the client's words.
    pub client: String,
    /// What for, in the client's words.
    pub reason: String,
    /// For how long it has held them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_ms: Option<u64>,
    /// How long until its lease ends, unless it renews.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
    /// Whether it has no lease: it lasts until it is released or revoked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub standing: bool,
    /// Whether it has lasted for longer than the pool says such holds should.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overdue: bool,
    /// What was written down with it, if it has no lease.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Answer to `GET /v1/pools/{pool}/queue`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueView {
    /// Who waits, the next one first.
    pub waiting: Vec<WaiterView>,
    /// If the pool's arbiter restarted and waits until old promises are over: for how long yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
    /// Nodes that did not answer: the list may be incomplete.
    pub silent: Vec<String>,
}

/// Somebody who waits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WaiterView {
    /// The claim.
    pub id: ClaimId,
    /// Its place, 1 for the next; none if nobody has it in its books, or there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// How many units it asks for.
    pub count: u32,
    /// Which, if not any and if the claim's node said so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<Line>,
    /// The node that answers for the claim; empty if none does.
    pub node: String,
    /// Who, in the client's words.
    pub client: String,
    /// What for, in the client's words.
    pub reason: String,
    /// For how long it has waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_ms: Option<u64>,
}
