//! A record as plain data, for drivers that put it on a disk. What is written down, and when, is
//! the arbiter's matter.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quorate_core::{
    ClaimId, Holding, Moment, Move, NodeId, Relabelled, Shares, Stamp, Unit, Units, Wanted,
};

use super::Pool;
use super::arbiter::Record;
use super::booked::{Booked, State};
use crate::attempt::{Asker, Attempt};

/// One grant of a [`Record`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordLine {
    /// Whose.
    pub claim: ClaimId,
    /// The node that asked last...
    pub node: NodeId,
    /// ...and in which of its tries.
    pub attempt: Attempt,
    /// How old the claim is.
    pub stamp: Stamp,
    /// What it has.
    pub shares: Shares,
    /// The moves it has not answered.
    pub moves: Vec<Move>,
    /// The asker's clock when it sent the request that counts.
    pub sent: Moment,
    /// The arbiter's when that request arrived.
    pub arrived: Moment,
    /// How long it waited.
    pub waited: Duration,
    /// Whether it was promised in a life before the one that wrote the record.
    pub adopted: bool,
}

impl Record {
    /// Whether promises older than this record may still be in force.
    pub fn grace(&self) -> bool {
        self.grace
    }

    /// The units that are not to be granted, ascending.
    pub fn drained(&self) -> &[Unit] {
        &self.drained
    }

    /// Units that have other labels than the pool began with, since an operator said so.
    pub fn relabelled(&self) -> Relabelled<'_> {
        &self.relabelled
    }

    /// The grants, ascending by claim.
    pub fn lines(&self) -> impl Iterator<Item = RecordLine> + '_ {
        self.grants.iter().map(|(claim, booked)| {
            let State::Granted { held, waited, adopted } = &booked.state else {
                unreachable!("only grants are written down");
            };
            RecordLine {
                claim: *claim,
                node: booked.asker.node,
                attempt: booked.asker.attempt,
                stamp: booked.stamp,
                shares: held.shares.clone(),
                moves: held.moves.clone(),
                sent: booked.sent,
                arrived: booked.arrived,
                waited: *waited,
                adopted: *adopted,
            }
        })
    }

    /// The record with these lines.
    ///
    /// # Errors
    /// No arbiter of this pool could have written it; the text says what is wrong. Nothing else
    /// happened.
    pub fn from_lines(
        pool: &Pool,
        grace: bool,
        lines: Vec<RecordLine>,
        drained: Vec<Unit>,
        relabelled: BTreeMap<Unit, BTreeMap<String, String>>,
    ) -> Result<Record, String> {
        let mut taken = BTreeSet::new();
        let mut grants = Vec::with_capacity(lines.len());
        for line in lines {
            let claim = line.claim;
            if grants.last().is_some_and(|(before, _)| *before >= claim) {
                return Err(format!("claim {claim} is out of order"));
            }
            for share in &line.shares {
                if share.unit.0 >= pool.goods.units {
                    return Err(format!("{} in a pool of {} units", share.unit, pool.goods.units));
                }
                if !taken.insert(share.unit) {
                    return Err(format!("{} is granted twice", share.unit));
                }
            }
            for it in &line.moves {
                if !line.shares.contains(it.from) || !line.shares.contains(it.to) {
                    return Err(format!("claim {claim} moves to or from what it does not have"));
                }
            }
            let h = line.shares.len().saturating_sub(line.moves.len());
            let h = u32::try_from(h).unwrap_or(u32::MAX);
            let units = Units::new(h, pool.goods.units).map_err(|error| error.to_string())?;
            let asker = Asker { node: line.node, attempt: line.attempt };
            let held = Holding { shares: line.shares, moves: line.moves };
            let (waited, adopted) = (line.waited, line.adopted);
            let state = State::Granted { held, waited, adopted };
            let (stamp, sent, arrived) = (line.stamp, line.sent, line.arrived);
            let wanted = Wanted::any(units);
            let others = Vec::new(); // All of them are taken up as if there were some.
            grants.push((claim, Booked { asker, stamp, wanted, sent, arrived, others, state }));
        }
        let ascending = drained.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascending || drained.last().is_some_and(|unit| unit.0 >= pool.goods.units) {
            return Err("drained units that the pool cannot have".into());
        }
        let last = relabelled.last_key_value();
        if last.is_some_and(|(unit, _)| unit.0 >= pool.goods.units || pool.goods.labels.is_none()) {
            return Err("labels of units that the pool cannot have".into());
        }
        Ok(Record { grants, grace, drained, relabelled })
    }
}
