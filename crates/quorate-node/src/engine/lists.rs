//! Pools in use at this node, as lists have them: a part at a time, however many there are.

use std::ops::Bound;

use quorate_api::PoolView;
use quorate_core::NodeSet;

use super::Engine;
use super::pools::{Pool, pool_view};
use crate::clock;

/// Most pools in one list, and most that are counted for whoever wants to know how many more there
/// are.
pub(crate) const POOLS_LISTED: usize = 1000;
const POOLS_COUNTED: usize = 100_000;

/// Pools in use at this node, in the order of names.
#[derive(Debug)]
pub(crate) struct Used {
    pub(crate) pools: Vec<PoolView>,
    /// How many there are that the charter does not name, those of the list too; at least.
    pub(crate) of_files: u64,
    /// Whom this node misses.
    pub(crate) away: NodeSet,
}

impl Engine {
    /// The pools in use here with names after this one, as far as one list goes.
    pub(super) fn list_used(&self, after: &str) -> Used {
        let (away, now) = (self.suspects(), clock::now());
        let view = |pool: &Pool| PoolView {
            grants: Some(self.grants_view(pool, &away, now)),
            seat: self.seat_view(pool),
            ..pool_view(&pool.name, &pool.def, pool.terms.labels.as_deref(), self.members())
        };
        let later = (Bound::Excluded(after), Bound::Unbounded);
        let later = self.in_order.range::<str, _>(later).map(|(_, seat)| &self.pools[*seat]);
        let here = later.clone().filter(|pool| !pool.is_gone()).take(POOLS_LISTED);
        let of_files = later.take(POOLS_COUNTED).filter(|pool| pool.def.ever.is_none()).count();
        Used { pools: here.map(view).collect(), of_files: of_files as u64, away }
    }
}
