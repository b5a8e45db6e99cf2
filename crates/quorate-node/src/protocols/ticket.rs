//! `ticket`: quorums give tickets. A configuration asks for it as a mode of `arbiter`.

use quorate_protocols::ticket::Ticket;
use quorate_protocols::voting::{self, Settled};

use super::{About, ProtocolDef, Read, quorums};
use crate::config::{Basis, Options};
use crate::seat::Runs;

impl Runs for Ticket {}

/// The pool whose quorums were settled, with the rest of its options.
pub(super) fn read(
    settled: Settled,
    basis: &Basis<'_>,
    options: &mut Options,
) -> Result<Read, String> {
    // All of them, so that whoever holds units outlives whatever the quorums do.
    let spares = options.number("spares", (0, basis.nodes()))?.unwrap_or(basis.nodes());
    let Settled { pool, worth } = settled.with_spares(spares);
    let voting::Pool::Ticket(mut pool) = pool else { unreachable!("tickets were chosen") };
    pool.patience = quorums::patience(options)?.or(pool.patience);
    pool.lease = basis.lease;
    pool.retry = options.span("retry")?.unwrap_or(pool.retry);
    let about = About {
        // How many spares a node asks is its own matter.
        canonical: format!("ticket quorums {}", quorums::agreed(&pool.quorums)),
        spares: Some(pool.spares),
        awaits: "older tickets to leave room at its quorum",
        ..About::default()
    };
    Ok((ProtocolDef::new::<Ticket>(about, pool), Some(worth)))
}
