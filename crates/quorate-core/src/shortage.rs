//! Units that differ: why a claim waits for them, and what operators do with them.

use std::collections::BTreeMap;

use crate::{ClaimId, Unit};

/// Units that are full, and who competes for them: the minimum cut that separates a claim from what
/// it asks for. However holders that can be moved are shifted, those who compete can use nothing
/// else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shortage {
    /// The units, ascending.
    pub units: Vec<Unit>,
    /// How many of them are free: too few, or kept for older claims.
    pub free: u32,
    /// Claims that hold some of them.
    pub holders: Vec<ClaimId>,
    /// Claims that wait for some of them, this one among them, oldest first.
    pub waiting: Vec<ClaimId>,
}

/// What an operator orders.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// A unit is granted no more. Whoever holds it keeps it until it is done.
    Drain(Unit),
    /// A drained unit is back.
    Restore(Unit),
    /// A unit has other labels from now on; `None` means those that the pool began with. Whoever
    /// holds it keeps it, and claims that wait are looked at again.
    Relabel {
        /// Which.
        unit: Unit,
        /// All its labels.
        labels: Option<BTreeMap<String, String>>,
    },
}

impl Order {
    /// The unit it is about.
    pub fn unit(&self) -> Unit {
        match self {
            Order::Drain(unit) | Order::Restore(unit) | Order::Relabel { unit, .. } => *unit,
        }
    }
}
