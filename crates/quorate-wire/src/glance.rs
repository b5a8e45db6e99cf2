//! What a node tells about itself and its recent past when an operator looks: how it is, whom it
//! sees, what its protocols show, what happened. No decision rests on any of it.

use serde::{Deserialize, Serialize};

use crate::survey::Survey;

/// What an operator wants to see of a node, beyond a pool's claims.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Wanted {
    /// The pool that is shown in full, if one is.
    pub pool: Option<String>,
    /// Pools of which the claims are counted.
    pub counted: Vec<String>,
    /// Most records of that pool.
    pub records_max: u32,
    /// Find the pools that know this claim.
    pub claim: Option<(u64, u64)>,
    /// List the pools in use whose name contains this.
    pub search: Option<String>,
}

/// How a node is, and what it remembers.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Glance {
    /// How often it was started.
    pub boot: u32,
    /// Whether it is ready for clients.
    pub ready: bool,
    /// For how long yet some pool of it waits until old promises are over.
    pub grace_micros: u64,
    /// Claims it answers for.
    pub claims: u64,
    /// Connections of clients.
    pub clients: u64,
    /// How it sees each member, in the order of the configuration; itself too.
    pub sees: Vec<Sight>,
    /// Of each pool that was asked about: units held and claims waiting of its own clients.
    pub counts: Vec<(u64, u64)>,
    /// What it knows of the pool that was asked about.
    pub survey: Survey,
    /// What happened in the pool, the oldest first.
    pub records: Vec<Record>,
    /// The pool's last minutes.
    pub buckets: Vec<Bucket>,
    /// What is worth knowing of all pools and of the node, the oldest first.
    pub notable: Vec<Record>,
    /// Pools that know the claim, or match the text, that was asked about: in order...
    pub found: Vec<String>,
    /// ...and how many there are in all.
    pub found_count: u64,
}

/// Most pools that are listed at once.
pub const FOUND_MAX: usize = 2000;

/// How a node sees another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Sight {
    /// Whether there is a connection.
    pub connected: bool,
    /// Whether it is taken to have crashed.
    pub suspected: bool,
    /// How long a question and its answer took lately; 0 if unknown.
    pub latency_micros: u64,
}

/// Something that happened at a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// When, in milliseconds since 1970 by the node's own calendar.
    pub at_ms: u64,
    /// What.
    pub what: What,
    /// In which pool; empty if it happened to the node.
    pub pool: String,
    /// The claim, or zeros.
    pub claim: (u64, u64),
    /// How many units.
    pub units: u32,
    /// How long it had waited, if granted; how long it had held, if that ended.
    pub took_ms: u64,
    /// Who; for what happens to nodes: the other node.
    pub who: String,
    /// Why, or what for.
    pub text: String,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum What {
    /// A client asked.
    Claimed,
    /// It was granted.
    Granted,
    /// Its client gave it back.
    Released,
    /// Its client no longer wanted it, before it was granted.
    Cancelled,
    /// Its lease ended without a renewal.
    Expired,
    /// An operator took it back.
    Revoked,
    /// It could not be accepted.
    Refused,
    /// As an arbiter, the node took units back.
    Reclaimed,
    /// The node started.
    Started,
    /// Another node was met.
    Met,
    /// Another node is out of reach.
    Missed,
    /// Another node has been silent for too long, and is taken to have crashed...
    Suspected,
    /// ...and was heard again.
    Trusted,
    /// A seat found a contradiction in itself.
    Stopped,
    /// A seat told of something that its operator should know...
    Warned,
    /// ...and that it is over.
    Cleared,
    /// A claim's turn came while nobody was there for it.
    Passed,
}

impl What {
    /// Whether an operator wants to know even without looking at the pool.
    pub fn is_notable(self) -> bool {
        use What::{Cancelled, Claimed, Granted, Passed, Released};
        !matches!(self, Claimed | Granted | Released | Cancelled | Passed)
    }
}

/// Ten seconds of a pool at one node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Bucket {
    /// Which ten seconds since 1970.
    pub number: u64,
    /// Grants.
    pub granted: u32,
    /// How long they had waited together, and at most, in milliseconds.
    pub waited_ms: (u64, u64),
    /// Grants that ended with a release.
    pub released: u32,
    /// Grants that ended otherwise.
    pub lost: u32,
}
