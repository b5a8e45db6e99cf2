//! `table`: quorums keep a table of all claims.

use quorate_core::Protocol;
use quorate_protocols::table::Table;
use quorate_protocols::voting::{self, Mode, Settled};

use super::{About, Books, ProtocolDef, Read, Registered, goods, quorums};
use crate::config::{Basis, Options};
use crate::seat::Runs;

pub(super) const TABLE: Registered = Registered {
    name: Table::NAME,
    options: &["durable", "fairness", "family", "patience", "retry", "survive", "voters"],
    chooses: true,
    no_standing: None,
    read,
};

impl Runs for Table {}

fn read(basis: &Basis<'_>, options: &mut Options) -> Result<Read, String> {
    let Settled { pool, worth } = quorums::settle(Mode::Table, basis, options)?;
    let voting::Pool::Table(mut pool) = pool else { unreachable!("a table was chosen") };
    pool.patience = quorums::patience(options)?.or(pool.patience);
    pool.goods = goods::read(basis, options)?;
    pool.goods.standing = basis.standing;
    if basis.standing && !pool.goods.durable {
        return Err("standing: say durable = true, since a hold without a lease must be on the \
                    disks of a quorum before anybody is told of it"
            .into());
    }
    let quorums = quorums::agreed(&pool.quorums);
    let about = About {
        canonical: format!("table quorums {quorums} {}", goods::agreed(&pool.goods)),
        durable: pool.goods.durable,
        // It writes fences down even where it forgets the rest, and says what it lacks.
        reads_records: true,
        forgets_fences: true,
        labels: pool.goods.labels.clone(),
        books: Books::Copy,
        awaits: "its node's turn to write it into the table",
        ..About::default()
    };
    Ok((ProtocolDef::new::<Table>(about, pool), Some(worth)))
}
