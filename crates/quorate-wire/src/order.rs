//! What an operator orders, and what nodes say came of it.
//!
//! Orders travel on the lasting link ([`crate::link`]), so that a connection that breaks loses
//! none, and each is acknowledged for itself: a message's number only says that it arrived. An
//! order has an id, and is carried out once however often it is repeated, through whichever nodes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// An operator's order to a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Order {
    /// Its name: a node that has carried it out says again what came of it.
    pub id: u128,
    /// Who gave it, for the log.
    pub by: String,
    /// About which pool.
    pub pool: String,
    /// What is to be done.
    pub what: Ordered,
}

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Ordered {
    /// Take a claim back: stop answering for it.
    Revoke {
        /// The claim: origin and serial.
        claim: (u64, u64),
        /// Why.
        reason: String,
    },
    /// Take a unit out of service...
    Drain {
        /// The unit.
        unit: u32,
    },
    /// ...and bring it back: whoever decides over it.
    Restore {
        /// The unit.
        unit: u32,
    },
    /// Give a unit other labels: whoever decides over it.
    Relabel {
        /// The unit.
        unit: u32,
        /// All its labels; nothing for those of the configuration.
        labels: Option<BTreeMap<String, String>>,
    },
}

/// The acknowledgement of an order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Receipt {
    /// The order's id.
    pub id: u128,
    /// What came of it.
    pub done: Done,
}

/// What came of an order at one node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Done {
    /// It is not this node that could carry it out.
    NotHere,
    /// It was carried out.
    Obeyed(Outcome),
    /// This node decides over that, and would not: why. Nothing changed.
    Objected(String),
}

/// What came of an order for claims that waited.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Claims that were granted: origin and serial.
    pub granted: Vec<(u64, u64)>,
    /// Claims that can never be granted now, and were refused.
    pub refused: Vec<(u64, u64)>,
}
