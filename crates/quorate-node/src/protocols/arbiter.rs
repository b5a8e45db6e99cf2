//! `arbiter`: quorums give permissions; in mode `ticket`, and where mode `auto` finds that better,
//! they give tickets, which is a protocol of its own.

use quorate_core::Protocol;
use quorate_protocols::arbiter::{Arbiter, Mode, Pool};
use quorate_protocols::voting;

use super::{About, Books, ProtocolDef, Read, Registered, quorums, ticket};
use crate::config::{Basis, Options};
use crate::seat::Runs;

pub(super) const ARBITER: Registered = Registered {
    name: Arbiter::NAME,
    options: &[
        "durable",
        "fairness",
        "family",
        "hedge",
        "max_holders",
        "mode",
        "naming",
        "patience",
        "retry",
        "spares",
        "survive",
        "voters",
    ],
    chooses: false,
    no_standing: Some("a home that crashed leaves permissions behind that only their lease ends"),
    read,
};

impl Runs for Arbiter {}

fn read(basis: &Basis<'_>, options: &mut Options) -> Result<Read, String> {
    let mode = options.take("mode")?.unwrap_or_else(|| "named".to_owned()).parse()?;
    let settled = quorums::settle(mode, basis, options)?;
    let worth = settled.worth.clone();
    match settled.pool {
        voting::Pool::Arbiter(pool) => Ok((permissions(pool, basis, options)?, Some(worth))),
        voting::Pool::Ticket(_) => ticket::read(settled, basis, options),
        voting::Pool::Table(_) => unreachable!("no mode of an arbiter keeps a table"),
    }
}

fn permissions(
    mut pool: Pool,
    basis: &Basis<'_>,
    options: &mut Options,
) -> Result<ProtocolDef, String> {
    pool.patience = quorums::patience(options)?.or(pool.patience);
    pool.lease = basis.lease;
    pool.retry = options.span("retry")?.unwrap_or(pool.retry);
    pool.durable = options.take("durable")?.unwrap_or(false);
    pool.hedge = options.number("hedge", (0, basis.nodes()))?.unwrap_or(0);
    if let Mode::Count { backfill, .. } = &mut pool.mode {
        *backfill = options.fairness()?.overtakes_max();
    }
    let mode = match pool.mode {
        Mode::Count { holders_max, backfill } => {
            let naming = if pool.naming { " naming" } else { "" };
            format!("count holders {holders_max} passes {backfill}{naming}")
        }
        Mode::Named => "named".to_owned(),
    };
    let quorums = quorums::agreed(&pool.quorums);
    let about = About {
        canonical: format!("arbiter {mode} quorums {quorums} durable {}", pool.durable),
        durable: pool.durable,
        // It writes fences down even where it forgets the rest, and says what it lacks.
        reads_records: true,
        forgets_fences: true,
        spares: Some(0),
        books: Books::Advise,
        awaits: "its quorum to book it",
        ..About::default()
    };
    Ok(ProtocolDef::new::<Arbiter>(about, pool))
}
