//! Who watches a run: all laws, or only those that cost next to nothing.
//!
//! Strict runs ask the whole statute book. Others ask for capacity, exclusivity and fence order;
//! the world knows its clients and sees by itself whether a grant answers a claim that waits.

use quorate_core::{ClaimId, Entry, NodeId, Protocol, Unit};
use quorate_laws::{
    Breach, Capacity, EveryoneServed, Exclusivity, FenceOrder, Observation, StatuteBook,
    no_lost_units,
};

#[derive(Debug)]
pub(crate) enum Judge {
    Strict(StatuteBook),
    Quick {
        capacity: Capacity,
        named: Option<(Exclusivity, FenceOrder)>,
    },
    /// Nobody, while a pool that began in any state is not yet right.
    Nobody,
}

impl Judge {
    pub(crate) fn new<P: Protocol>(pool: &P::Pool, strict: bool) -> Self {
        let (k, named) = (P::capacity(pool), P::names_units(pool));
        if strict {
            let book = StatuteBook::new(k, P::overtakes_max(pool));
            return Judge::Strict(if named { book } else { book.anonymous() });
        }
        let named = named.then(|| (Exclusivity::new(k), FenceOrder::new(k)));
        Judge::Quick { capacity: Capacity::new(k), named }
    }

    #[inline]
    pub(crate) fn see(&mut self, seen: Observation<'_>) -> Result<(), Breach> {
        match self {
            Judge::Strict(book) => book.see(seen),
            // That somebody asks breaks none of the quick laws.
            Judge::Quick { .. } if matches!(seen, Observation::Claimed { .. }) => Ok(()),
            Judge::Nobody => Ok(()),
            Judge::Quick { capacity, named } => {
                capacity.see(seen)?;
                if let Some((exclusivity, fence_order)) = named {
                    exclusivity.see(seen)?;
                    fence_order.see(seen)?;
                }
                Ok(())
            }
        }
    }

    /// The pool has so many units from now on...
    pub(crate) fn amended(&mut self, units: u32, drained: &[Unit]) {
        if let Judge::Strict(book) = self {
            book.amended(units, drained);
        }
    }

    /// ...and nobody decides any more by how it was before it was changed so often.
    pub(crate) fn applied(&mut self, edition: usize) {
        if let Judge::Strict(book) = self {
            book.applied(edition);
        }
    }

    /// A client that claims asks for a hold without a lease.
    pub(crate) fn stands(&mut self, claim: ClaimId) {
        if let Judge::Strict(book) = self {
            book.stands(claim);
        }
    }

    pub(crate) fn see_books(&mut self, arbiter: NodeId, entries: &[Entry]) -> Result<(), Breach> {
        match self {
            Judge::Strict(book) => book.see_books(arbiter, entries),
            Judge::Quick { .. } | Judge::Nobody => Ok(()),
        }
    }

    pub(crate) fn see_restart(&mut self, arbiter: NodeId) {
        if let Judge::Strict(book) = self {
            book.see_restart(arbiter);
        }
    }

    /// Who waits comes first: what a claim that waits has gathered is not lost.
    pub(crate) fn at_rest<'a>(
        &self,
        waiting: &EveryoneServed,
        books: impl IntoIterator<Item = (NodeId, &'a [Entry])>,
    ) -> Result<(), Breach> {
        match self {
            Judge::Strict(book) => book.at_rest(books),
            Judge::Quick { .. } => {
                waiting.at_rest()?;
                no_lost_units(books)
            }
            Judge::Nobody => Err(Breach {
                law: "convergence",
                what: "the pool did not become legitimate".into(),
            }),
        }
    }

    pub(crate) fn is_strict(&self) -> bool {
        matches!(self, Judge::Strict(_))
    }

    /// Units in use now.
    pub(crate) fn in_use(&self) -> u64 {
        match self {
            Judge::Strict(book) => book.in_use(),
            Judge::Quick { capacity, .. } => capacity.in_use(),
            Judge::Nobody => 0,
        }
    }

    /// How often any claim was overtaken, as the books have it.
    pub(crate) fn overtakes(&self) -> Option<u64> {
        match self {
            Judge::Strict(book) => Some(book.overtakes()),
            Judge::Quick { .. } | Judge::Nobody => None,
        }
    }
}
