//! What `central` and `table` are told about the units that they choose among.

use quorate_core::Unit;
use quorate_protocols::Goods;

use crate::config::{Basis, Options, Past};

/// What there is, for whom, and who may pass whom.
pub(super) fn read(basis: &Basis<'_>, options: &mut Options) -> Result<Goods, String> {
    let mut goods = Goods::new(basis.units);
    goods.lease = basis.lease;
    goods.ever = basis.past.as_ref().map(|past| past.units.max(basis.units));
    goods.lease_ever = basis.past.as_ref().and_then(Past::lease_ever);
    if let Some(past) = &basis.past {
        goods.drained = past.drained.iter().copied().map(Unit).collect();
    }
    if basis.past.as_ref().is_some_and(|past| past.deleted) {
        goods.units = 0;
    }
    goods.labels = basis.labels.clone();
    goods.eligible = basis.eligible();
    goods.fairness = options.fairness()?;
    goods.durable = options.take("durable")?.unwrap_or(false);
    goods.retry = options.span("retry")?.unwrap_or(goods.retry);
    Ok(goods)
}

/// The same, as every member must know it.
pub(super) fn agreed(goods: &Goods) -> String {
    let passes = goods.fairness.overtakes_max();
    let labels = goods.labels.as_ref().map(|labels| format!(" {labels:?}")).unwrap_or_default();
    format!("passes {passes} durable {}{labels}", goods.durable)
}
