//! Which claims a pool can grant with the nodes that are there: one answer, wherever it is asked.

use serde::{Deserialize, Serialize};

/// Which claims a pool can grant with the nodes that are there. Who holds units does not matter
/// here: a claim that must only wait for holders can be granted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GrantsView {
    /// Units of the smallest claim that can be granted; 0 if none can.
    pub smallest: u32,
    /// Units of the largest; 0 if none can.
    pub largest: u32,
    /// What is in the way of all others, if something is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hindrance: Option<Hindrance>,
}

/// Why a pool cannot grant some claims, or any.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Hindrance {
    /// What it is.
    pub kind: HindranceKind,
    /// In one sentence.
    pub summary: String,
    /// The nodes that it is about: who is away, in grace, awaited, or taken to use units.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// If no quorum answers: how many nodes vote...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voters: Option<u32>,
    /// ...and how many of them would do for any claim, where any so many do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed: Option<u32>,
    /// Units that nobody can have at present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units_lost: Option<u32>,
    /// How long it lasts yet, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ms: Option<u64>,
}

/// What kind of thing is in the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum HindranceKind {
    /// No quorum is among the voters that are there.
    NoQuorum,
    /// A node is away without which nothing is granted.
    NodeAway,
    /// Nodes that restarted promise nothing until what they promised before is over.
    Grace,
    /// The node does not take part yet.
    Joining,
    /// More nodes are away than the pool allows for.
    TooManyCrashed,
    /// Nodes that do not answer are taken to use units, or units have to be made anew.
    UnitsLost,
    /// The node has not heard of the one on whom all depend for too long.
    CutOff,
    /// No node decides yet, where the charter says which one does.
    NoSeat,
    /// The node that decides hears no majority of the charter.
    NoMajority,
    /// The node has not heard who decides now, where the charter says it: others have.
    Behind,
    /// The pool found a contradiction in itself at this node, and stopped.
    Stopped,
}

impl GrantsView {
    /// Whether some claim can be granted.
    pub fn grants(&self) -> bool {
        self.largest > 0
    }

    /// Whether a claim of so many units can be granted.
    pub fn allows(&self, units: u32) -> bool {
        self.grants() && (self.smallest..=self.largest).contains(&units)
    }
}
