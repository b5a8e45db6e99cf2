//! What nodes tell each other of claims beside the protocols: where the client of a claim waits,
//! that a claim is over, and whose claims are. No unit changes hands by it that anybody was told
//! of, except by its client's own words.
//!
//! Tidings travel on the lasting link ([`crate::link`]), many claims in one.

use serde::{Deserialize, Serialize};

/// Most claims in one.
pub const CLAIMS_MAX: usize = 4096;

/// Tidings of claims.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Tidings {
    /// Under which number they are to be acknowledged, if at all.
    pub number: Option<u64>,
    /// Pool by pool.
    pub pools: Vec<OfPool>,
}

/// Tidings of the claims of one pool: origin and serial of each.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct OfPool {
    /// The pool.
    pub pool: String,
    /// Claims whose clients wait at the node that says so.
    pub here: Vec<(u64, u64)>,
    /// Claims that their clients have ended.
    pub over: Vec<(u64, u64)>,
    /// Whose claims of that node are.
    pub owned: Vec<Owned>,
    /// Claims that are over at that node. They may go on at another, to which their clients moved.
    pub left: Vec<(u64, u64)>,
}

/// The claims of one client.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Owned {
    /// What the client is called.
    pub client: String,
    /// Origin and serial of each.
    pub claims: Vec<(u64, u64)>,
}

/// Tidings were heard.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Heard {
    /// Their number.
    pub number: u64,
}
