//! `ring`: tokens go round.

use quorate_core::{Corruptible, Lease, Protocol};
use quorate_protocols::ring::{Pool, Ring};

use super::{About, ProtocolDef, Read, Registered};
use crate::config::{Basis, Options};
use crate::seat::{Corrupt, Runs};

pub(super) const RING: Registered = Registered {
    name: Ring::NAME,
    options: &["allow_corruption", "grants_max", "idle", "timeout", "ttl"],
    chooses: false,
    no_standing: Some("what a node holds is known to that node alone"),
    read,
};

impl Runs for Ring {
    const CORRUPT: Option<Corrupt<Ring>> = Some(<Ring as Corruptible>::corrupt);
}

fn read(basis: &Basis<'_>, options: &mut Options) -> Result<Read, String> {
    let mut pool = Pool::new(basis.units, basis.nodes());
    (pool.lease, pool.epoch) = (basis.lease, basis.epoch);
    let ttl = options.span("ttl")?.unwrap_or(basis.lease.length());
    pool.ttl = Lease::new(ttl, basis.lease.drift_ppm());
    if let Some(timeout) = options.span("timeout")? {
        pool.timeout = timeout;
    }
    if let Some(idle) = options.span("idle")? {
        pool.idle = idle;
    }
    if let Some(most) = options.number("grants_max", (1, 100_000))? {
        pool.grants_max = most as usize;
    }
    let about = About {
        canonical: format!("ring train ttl {}", pool.ttl.length().as_nanos()),
        awaits: "enough free tokens to come round to its node",
        bound: Some(
            "each grant belongs to the node where it was made: if that stops or crashes and is not \
             back within the lease, its clients lose what they have",
        ),
        ..About::default()
    };
    Ok((ProtocolDef::new::<Ring>(about, pool), None))
}
