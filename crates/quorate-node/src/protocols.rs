//! Which protocols there are. The only file of the node that names one.

use quorate_core::NodeId;
use quorate_protocols::central::{self, Central};

use crate::config::{PoolDef, ProtocolDef};
use crate::seat::{AnySeat, Deed, Driver, Origin, Place, SeatError};

/// Takes a seat in the pool, among so many members.
pub(crate) fn take_seat(
    place: Place,
    def: &PoolDef,
    members: usize,
    origin: Origin,
    deeds: &mut Vec<Deed>,
) -> Result<Box<dyn AnySeat>, SeatError> {
    match &def.protocol {
        ProtocolDef::Central { arbiter, retry } => {
            let mut pool = central::Pool::new(def.units);
            pool.arbiter = arbiter.node(&place.name, members);
            pool.lease = def.lease;
            pool.retry = *retry;
            pool.fairness = def.fairness;
            pool.durable = def.durable;
            Ok(Box::new(Driver::<Central>::boot(place, pool, origin, deeds)?))
        }
    }
}

/// Whether this node alone decides over the pool.
pub(crate) fn decides(def: &PoolDef, pool: &str, me: NodeId, members: usize) -> bool {
    match &def.protocol {
        ProtocolDef::Central { arbiter, .. } => arbiter.node(pool, members) == me,
    }
}
