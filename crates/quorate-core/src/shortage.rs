//! Units that differ: why a claim waits for them, and what operators do with them.

use std::collections::BTreeMap;

use crate::{ClaimId, Outbox, Protocol, Seat, Unit};

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

/// A protocol whose participants do what operators order.
pub trait Obeys: Protocol {
    /// Does what an operator orders, if this participant decides over that. Says whether it does;
    /// if not, nothing happened.
    fn obey(&mut self, seat: &Seat<'_, Self>, order: Order, out: &mut Outbox<Self>) -> bool;

    /// Shows the units that this participant, since an operator ordered it, grants no more, and of
    /// each whether somebody still has it.
    fn drained(&self, show: &mut dyn FnMut(Unit, bool));

    /// If this participant decides by labels: which units have others than the pool began with,
    /// since an operator ordered it, ascending.
    fn relabelled(&self) -> Option<Relabelled<'_>>;
}

/// Units whose labels an operator changed, see [`Obeys::relabelled`].
pub type Relabelled<'a> = &'a BTreeMap<Unit, BTreeMap<String, String>>;
