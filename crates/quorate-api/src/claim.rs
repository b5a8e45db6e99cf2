//! Claims: what a client asks, and how its claim stands.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ClaimId, Hindrance};

/// What a claim asks for, in its client's words: the body of `PUT /v1/pools/{pool}/claims/{id}`,
/// and what a claim on the client link says. Said again under the same id, it must ask for the
/// same.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Want {
    /// How many units, all at once: 1 to what the pool has. Left out it is 1, or as many as `lines`
    /// ask for, which is all it may be where there are lines.
    #[serde(deserialize_with = "crate::units::maybe")]
    pub units: Option<u32>,
    /// Which units, where the pool's units have labels: several lines are granted together or not
    /// at all. None means any.
    pub lines: Vec<Line>,
    /// Whether the client can be asked to go to another unit, so that somebody else can be served:
    /// see `moves` of the answer. Only where the pool's units have labels.
    pub movable: bool,
    /// Whether to have the units without a lease, until they are released or revoked: only in pools
    /// with `standing = true`, and not on the client link. Nobody renews them, and they outlive the
    /// restart of every node. Wait with `detach`, or somebody who hangs up is passed over.
    pub standing: bool,
    /// With `standing`: what a program wants to find again with the hold, up to 2 KiB; listed with
    /// its holder.
    pub note: String,
    /// What for, in the client's words; shown to whoever waits behind it.
    pub reason: String,
    /// Who asks, in the client's words. On the client link, what it said at first counts instead.
    pub client: String,
}

impl Want {
    /// So many units that have all of these labels.
    ///
    /// ```
    /// use quorate_api::Want;
    ///
    /// let gpus = Want::with(2, [("gpu", "h100"), ("zone", "eu")]);
    /// let gpus_and_a_nic = gpus.and(1, [("kind", "nic")]);
    /// assert_eq!(gpus_and_a_nic.units(), 3);
    /// ```
    pub fn with<K: Into<String>, V: Into<String>>(
        units: u32,
        labels: impl IntoIterator<Item = (K, V)>,
    ) -> Want {
        Want::default().and(units, labels)
    }

    /// And so many that have these, granted together with the others or not at all. After a plain
    /// number of units, those are any units.
    #[must_use]
    pub fn and<K: Into<String>, V: Into<String>>(
        mut self,
        units: u32,
        labels: impl IntoIterator<Item = (K, V)>,
    ) -> Want {
        if let Some(units) = self.units.take()
            && units > 0
            && self.lines.is_empty()
        {
            self.lines.push(Line { units, labels: BTreeMap::new() });
        }
        let labels = labels.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        self.lines.push(Line { units, labels });
        self
    }

    /// The same, and the holder can be asked to go to other units that will do.
    #[must_use]
    pub fn movable(self) -> Want {
        Want { movable: true, ..self }
    }

    /// How many units in all.
    pub fn units(&self) -> u32 {
        let lines = || self.lines.iter().map(|line| line.units).reduce(u32::saturating_add);
        self.units.or_else(lines).unwrap_or(1)
    }

    /// Whether it asks for the same. Who asks and what for are words for people: whoever knows a
    /// claim's id may repeat it, also as another process.
    pub fn asks_as(&self, other: &Want) -> bool {
        let asked = |want: &Want| Want {
            units: Some(want.units()),
            reason: String::new(),
            client: String::new(),
            note: String::new(),
            ..want.clone()
        };
        asked(self) == asked(other)
    }
}

/// So many units, whichever.
impl From<u32> for Want {
    fn from(units: u32) -> Want {
        Want { units: Some(units), ..Want::default() }
    }
}

/// One line of a claim: so many units with these labels.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// The labels that a unit must have, all of them. None means any unit.
    #[serde(rename = "where", default)]
    pub labels: BTreeMap<String, String>,
    /// How many units.
    #[serde(default = "one", deserialize_with = "crate::units::some")]
    pub units: u32,
}

fn one() -> u32 {
    1
}

/// What it asks for, as people write it: `2 with gpu=h100,zone=eu`.
impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.units)?;
        for (position, (key, value)) in self.labels.iter().enumerate() {
            f.write_str(if position == 0 { " with " } else { "," })?;
            write!(f, "{key}={value}")?;
        }
        Ok(())
    }
}

/// Body of `POST /v1/pools/{pool}/claims/{id}/renew`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RenewRequest {
    /// The units with their fences as they were granted, so that a node that does not know the
    /// claim (it restarted, or the client moved) can still renew it. May be left out where the
    /// node knows the claim.
    #[serde(default)]
    pub units: Vec<UnitView>,
}

/// Body of `POST /v1/pools/{pool}/claims/{id}/revoke`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RevokeRequest {
    /// Why; shown to the client that loses its units.
    pub reason: String,
}

/// One unit of a grant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UnitView {
    /// Which unit, numbered from 0.
    #[serde(deserialize_with = "crate::units::unit")]
    pub unit: u32,
    /// Its name, if the pool's units have names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What is known of it, if the pool's units have labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Grows from holder to holder of this unit: what is protected should refuse smaller ones than
    /// the largest it has seen.
    #[serde(deserialize_with = "crate::units::fence")]
    pub fence: u64,
}

/// A unit that a holder is asked to leave for another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MoveView {
    /// The unit to leave...
    pub from: UnitView,
    /// ...and the one it has instead.
    pub to: UnitView,
}

/// How a claim stands. The states below `granted` are final: nothing will change them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ClaimState {
    /// In the queue.
    Waiting,
    /// The client may use its units until `expires_in_ms` after it asked.
    Granted,
    /// The client gave its units back.
    Released,
    /// The client no longer wanted it. It will never be granted.
    Cancelled,
    /// The lease ended without a renewal, or the units went to somebody else. The client must not
    /// use them.
    Lost,
    /// It could not be accepted. It will never be granted.
    Refused,
    /// An operator took it back. The client must stop using its units and release the claim.
    Revoked,
}

impl ClaimState {
    /// Whether nothing more will happen to the claim.
    pub fn is_over(self) -> bool {
        !matches!(self, ClaimState::Waiting | ClaimState::Granted)
    }

    /// As in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            ClaimState::Waiting => "waiting",
            ClaimState::Granted => "granted",
            ClaimState::Released => "released",
            ClaimState::Cancelled => "cancelled",
            ClaimState::Lost => "lost",
            ClaimState::Refused => "refused",
            ClaimState::Revoked => "revoked",
        }
    }
}

/// How one claim stands, as answered to `PUT`, `GET`, `DELETE`, renew and revoke.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClaimStatus {
    /// The claim.
    pub id: ClaimId,
    /// The pool.
    pub pool: String,
    /// How it stands.
    pub state: ClaimState,
    /// How many units it asks for.
    pub asked: u32,
    /// Which units, if not any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<Line>,
    /// What it was granted; empty unless `state` is `granted`.
    #[serde(default)]
    pub units: Vec<UnitView>,
    /// If it is asked to move: which units to leave, and for which. It has both until it renews
    /// without the one it left, and nobody else gets that before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<MoveView>,
    /// Whether the pool only counts units: the numbers and fences in `units` are then the grant's
    /// receipt, to be shown when it is renewed, and mean nothing to whatever the units protect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counted: bool,
    /// If granted: how long the units may be used, **counted from the node's receipt of the request
    /// that this answers**. Add it to a reading of your clock from before you sent the request.
    /// Nothing needs to be subtracted for drift.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
    /// Whether it has no lease: it lasts until it is released or revoked, and nobody renews it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub standing: bool,
    /// How long it waited, or has waited so far.
    pub waited_ms: u64,
    /// The node at which the claim was made, and which answers for it.
    pub node: String,
    /// How often that node has been started; none if no node answers for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<u32>,
    /// The name of another node, if that one decides over the pool: the next claims take a message
    /// less each way if they are made there. A hint; this claim stays where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decides: Option<String>,
    /// If it was granted there: which grant of the pool at that node since that start, the first
    /// being 1. With node and start it tells a grant from any other. None for a claim that waits,
    /// and where its client keeps up what it was granted at another node or before a restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<u64>,
    /// Who asked, in the client's words.
    #[serde(default)]
    pub client: String,
    /// What for, in the client's words.
    #[serde(default)]
    pub reason: String,
    /// If it is over: why, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// If it waits, and `?why=true` was asked: for what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// In answer to `DELETE`: nodes that have not heard that it is over. One that is cut off hears
    /// it when it is back; until then, the same id could be granted there if it is claimed there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unheard: Vec<String>,
    /// In answer to `DELETE`: no node that answers knew the claim. It is remembered as cancelled
    /// all the same, since its request may be on its way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unknown: bool,
}

/// Why a claim waits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Why {
    /// In one sentence.
    pub summary: String,
    /// Its place in the queue, 1 for the next; none if nobody has it in its books, or there are
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// If no claim of its size can be granted with the nodes that are there: why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hindrance: Option<Hindrance>,
    /// Units that it could have now: that nobody holds, none if it cannot be granted.
    pub free: u32,
    /// Units that are missing for this claim alone, were it next.
    pub missing: u32,
    /// Where units differ: which of them are short, and how many compete for those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortage: Option<ShortageView>,
    /// If the pool's arbiter restarted and waits until old promises are over: for how long yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
    /// Who holds units that it could use: where units differ, how many of those.
    pub holders: Vec<Obstacle>,
    /// Who is ahead in the queue and could use the same units, the next one first.
    pub ahead: Vec<Obstacle>,
    /// When it may start, guessed from how long units were held lately; none if too little is
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// What would let it start now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
    /// Nodes that did not answer: what is said here may be incomplete.
    pub silent: Vec<String>,
}

/// Units that are full however holders are shifted, and who competes for them: the minimum cut.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ShortageView {
    /// In one sentence.
    pub summary: String,
    /// The units, the first thousand: their names, or numbers where they have none.
    pub units: Vec<String>,
    /// How many of them are free: too few, or kept for older claims.
    pub free: u32,
    /// How many claims hold some of them...
    pub holders: u32,
    /// ...and how many wait for them.
    pub waiting: u32,
}

/// When a claim may start: played many times with holds drawn from the past.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Estimate {
    /// In one of ten cases it starts sooner than this...
    pub soon_ms: u64,
    /// ...in half of them sooner than this...
    pub likely_ms: u64,
    /// ...and in nine of ten sooner than this.
    pub late_ms: u64,
    /// From how many past holds this was guessed.
    pub holds: u32,
}

/// What would let a claim start at once. Nothing of it happens by itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Remedy {
    /// Grants that would have to be released...
    pub release: Vec<ClaimId>,
    /// ...and claims ahead that would have to be cancelled.
    pub cancel: Vec<ClaimId>,
}

/// Somebody in the way of a claim.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Obstacle {
    /// Its claim.
    pub id: ClaimId,
    /// How many units it holds or asks for.
    pub units: u32,
    /// Who, in the client's words; empty if its node did not say.
    pub client: String,
    /// What for, in the client's words; empty if its node did not say.
    pub reason: String,
    /// For how long it has held or waited; none if its node did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// If it holds: how long until its lease ends, unless it renews.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
}
