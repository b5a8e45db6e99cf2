//! What the allocator promises (labels spec 6.2), judged of every table that a section makes of the
//! one it found: from what claims ask for, and by a slow second implementation. Only
//! [audits](quorate_core::Protocol::audit) judge: a node in service neither waits for that nor
//! stops because of a table that a peer sent.
//!
//! * **A**: what the oldest lacks does not grow, once it is protected.
//! * **B**: it does not wait when all who held units in the table that was found have released.
//! * **M**: if holders and all who waited can be served together, nobody is left waiting.
//! * **W**: if all ask for one unit, nobody waits who could be served beside the holders.
//! * *decision*: those are granted whom the pass grants, as the specification prints it.
//!
//! **S** is asserted of every grant. L follows, and that everybody is served in the end is a law of
//! every simulated run.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use quorate_core::{ClaimId, Units};

use super::Seat;
use super::sheet::{Row, Sheet};
use crate::allocator::oracle::{Case, Demand, UNITS_MAX, decide, lack, rho};

/// Longer tables are not gone through again.
const ROWS_MAX: usize = 16;

/// The tables that sections found and made in the last step, unless they are long. Nothing depends
/// on it: two seats that differ in this only are equal.
#[derive(Clone, Default, Debug)]
pub(super) struct Changes(Vec<(Arc<Sheet>, Arc<Sheet>)>);

impl Changes {
    pub(super) fn note(&mut self, found: Arc<Sheet>, made: &Arc<Sheet>) {
        if found.rows.len().max(made.rows.len()) <= ROWS_MAX {
            self.0.push((found, Arc::clone(made)));
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn audit(&self, seat: &Seat<'_>) {
        for (found, made) in &self.0 {
            if let Err(broken) = judge(seat, found, made) {
                panic!("{broken}");
            }
        }
    }
}

impl PartialEq for Changes {
    fn eq(&self, _other: &Changes) -> bool {
        true
    }
}

impl Eq for Changes {}

impl Hash for Changes {
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}

/// Judges what a section did.
///
/// # Errors
/// The law that is broken, and how.
fn judge(seat: &Seat<'_>, found: &Sheet, made: &Sheet) -> Result<(), String> {
    if seat.pool.goods.units > UNITS_MAX {
        return Ok(());
    }
    let after = case(seat, made, |_| true);
    laws_a_and_b(seat, found, made, &after)?;
    // Before it granted anything: who is new among the holders waited.
    let pass = case(seat, made, |claim| found.rows.get(claim).is_some_and(is_holder));
    let granted: Vec<usize> = (0..pass.waiting.len())
        .filter(|index| made.rows.get(&pass.waiting[*index].0).is_some_and(is_holder))
        .collect();
    if granted.len() < pass.waiting.len() {
        pass.law_m()?;
    }
    after.law_w()?;
    let policy = seat.pool.goods.fairness.policy();
    let wants: Vec<Vec<Demand>> = pass.waiting.iter().map(|(_, wants)| wants.clone()).collect();
    let (expected, _) = decide(&pass.holders, &wants, policy.protect);
    // With patience it depends on who was passed before.
    if granted != expected && policy.patience == 0 {
        let waiting = &pass.waiting;
        return Err(format!("decision: {granted:?} instead of {expected:?} of {waiting:?}"));
    }
    Ok(())
}

fn laws_a_and_b(seat: &Seat<'_>, found: &Sheet, made: &Sheet, after: &Case) -> Result<(), String> {
    // Whoever came back into its turn may be older than the oldest that was found.
    let is_absent = |claim: &ClaimId| made.rows.get(claim).is_some_and(Row::is_absent);
    if found.rows.iter().any(|(claim, row)| row.is_absent() && !is_absent(claim)) {
        return Ok(());
    }
    let before = case(seat, found, |_| true);
    let (Some((oldest, wanted)), Some((claim, wants))) =
        (before.waiting.first(), after.waiting.first())
    else {
        return Ok(());
    };
    let waits = found.rows.values().filter(|row| !is_holder(row));
    let passed: u32 = waits.map(|row| row.passed).sum();
    // A client that asks again at another node may be allowed other units there.
    if (oldest, wanted) != (claim, wants) || passed < seat.pool.goods.fairness.policy().patience {
        return Ok(());
    }
    let (was, is) = (lack(&before.holders, wanted), lack(&after.holders, wants));
    if is > was {
        return Err(format!("law A: {claim}, the oldest, lacked {was}, and now {is}"));
    }
    let mut held = found.rows.iter().filter(|(_, row)| is_holder(row));
    if !held.any(|(claim, _)| made.rows.get(claim).is_some_and(is_holder)) {
        return Err(format!("law B: {claim} waits although all before it released"));
    }
    Ok(())
}

fn is_holder(row: &Row) -> bool {
    row.granted().is_some()
}

/// A table in which only these claims have what they hold. Nobody is moved here: a holder could
/// have what it has.
fn case(seat: &Seat<'_>, sheet: &Sheet, holds: impl Fn(&ClaimId) -> bool) -> Case {
    let goods = &seat.pool.goods;
    let wants = |row: &Row| -> Vec<Demand> {
        let wants = match &row.wanted.lines {
            None => vec![goods.any(row.node, row.wanted.units)],
            Some(lines) => goods.wants(row.node, lines),
        };
        let all = u32::MAX >> (UNITS_MAX - goods.units);
        let demand = |demand: Demand| Demand { alpha: demand.alpha & all, ..demand };
        wants.iter().map(Demand::from).map(demand).collect()
    };
    let (held, mut waiting): (Vec<_>, Vec<_>) =
        sheet.rows.iter().partition(|(claim, row)| is_holder(row) && holds(claim));
    // Who is out of its turn is as good as not there.
    waiting.retain(|(_, row)| !row.is_absent());
    let shares = held.iter().filter_map(|(_, row)| row.granted()).flat_map(|(shares, _)| shares);
    let holders = shares.map(|share| Demand { alpha: 1 << share.unit.0, units: 1 }).collect();
    waiting.sort_by_key(|(claim, row)| (row.age, **claim));
    // A claim whose node may now use too few units for it waits and blocks nobody.
    let possible =
        |wants: &[Demand]| rho(wants) == wants.iter().map(|want| want.units).sum::<u32>();
    let waiting = waiting.into_iter().map(|(claim, row)| (*claim, wants(row)));
    Case {
        holders,
        waiting: waiting.filter(|(_, wants)| possible(wants)).collect(),
        single: sheet.rows.values().all(|row| row.wanted.units == Units::ONE),
    }
}
