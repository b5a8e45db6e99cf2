//! What a node tells about itself and its recent past when an operator looks: how it is, whom it
//! sees, what its protocols show, what happened. No decision rests on any of it.

use serde::{Deserialize, Serialize};

use crate::outlook::OutlookLine;
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
    /// List the pools in use whose name contains this...
    pub search: Option<String>,
    /// ...in this order...
    pub order: Order,
    /// ...and only these.
    pub only: Only,
}

/// In which order pools are listed; those that are alike, by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// By name.
    #[default]
    Name,
    /// Where most claims wait first.
    Waiting,
    /// Where the largest share of the units is held first.
    Held,
    /// Where somebody has waited longest first.
    Oldest,
    /// Those that grant nothing first.
    Unavailable,
}

/// Which pools are listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Only {
    /// All.
    #[default]
    All,
    /// Where somebody waits.
    Waiting,
    /// Where somebody holds units.
    Held,
    /// Those that grant nothing.
    Unavailable,
}

/// What clients of a node have of a pool, and want of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Count {
    /// Units they hold.
    pub held: u64,
    /// Claims of theirs that wait.
    pub waiting: u64,
    /// How long these have waited together...
    pub waited_ms: u64,
    /// ...and the oldest of them.
    pub oldest_ms: u64,
    /// How many nodes last saw that no claim can be granted.
    pub unavailable: u32,
}

impl Count {
    /// What the clients of both have.
    #[must_use]
    pub fn plus(self, other: Count) -> Count {
        Count {
            held: self.held.saturating_add(other.held),
            waiting: self.waiting.saturating_add(other.waiting),
            waited_ms: self.waited_ms.saturating_add(other.waited_ms),
            oldest_ms: self.oldest_ms.max(other.oldest_ms),
            unavailable: self.unavailable.saturating_add(other.unavailable),
        }
    }
}

impl Only {
    /// Whether a pool of which a node's clients have this is listed.
    pub fn takes(self, count: &Count) -> bool {
        match self {
            Only::All => true,
            Only::Waiting => count.waiting > 0,
            Only::Held => count.held > 0,
            Only::Unavailable => count.unavailable > 0,
        }
    }
}

impl Order {
    /// What is listed first has more of this; 0 where names decide.
    pub fn rank(self, count: &Count, units: u32) -> u64 {
        match self {
            Order::Name => 0,
            Order::Waiting => count.waiting,
            Order::Held => count.held.saturating_mul(1_000_000) / u64::from(units.max(1)),
            Order::Oldest => count.oldest_ms,
            Order::Unavailable => u64::from(count.unavailable > 0),
        }
    }
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
    /// Clients that have claims and no connection, by the names they gave.
    pub unconnected: u64,
    /// How it sees each member, in the order of the configuration; itself too.
    pub sees: Vec<Sight>,
    /// Of each pool that was asked about: what its own clients have.
    pub counts: Vec<Count>,
    /// Of each of these: which claims it believes can be granted, as [`Survey::outlook`].
    pub outlooks: Vec<Option<OutlookLine>>,
    /// What it knows of the pool that was asked about.
    pub survey: Survey,
    /// What happened in the pool, the oldest first.
    pub records: Vec<Record>,
    /// The pool's last minutes.
    pub buckets: Vec<Bucket>,
    /// What is worth knowing of all pools and of the node, the oldest first.
    pub notable: Vec<Record>,
    /// Pools that know the claim, or match the text, that was asked about: in order...
    pub found: Vec<(String, Count)>,
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
    /// How often the same happened, if that was counted: this is the last time.
    pub times: u32,
    /// To how many more pools the same happened at once...
    pub more_pools: u32,
    /// ...and to which, as far as there is room: who may not see the first is told of these.
    pub others: Vec<String>,
}

impl Record {
    /// Whether people would read the same twice.
    pub fn is_like(&self, other: &Record) -> bool {
        let words = |one: &Record| (one.what, one.units, one.more_pools);
        let same = self.pool == other.pool && self.who == other.who && self.text == other.text;
        same && words(self) == words(other)
    }
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
    /// Another node decides, or the same one anew.
    Seated,
    /// The pool was made, or became another.
    Amended,
    /// A member joined, left, drains, votes, or does so no more.
    Member,
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
