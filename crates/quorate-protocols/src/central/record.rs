//! A record as plain data, for drivers that put it on a disk. What is written down, and when, is
//! the arbiter's matter.

use std::collections::BTreeSet;
use std::time::Duration;

use quorate_core::{ClaimId, Moment, NodeId, Shares, Stamp, Units};

use super::Pool;
use super::arbiter::{Booked, Record, State};
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
    /// What it got.
    pub shares: Shares,
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

    /// The grants, ascending by claim.
    pub fn lines(&self) -> impl Iterator<Item = RecordLine> + '_ {
        self.grants.iter().map(|(claim, booked)| {
            let State::Granted { shares, waited, adopted } = &booked.state else {
                unreachable!("only grants are written down");
            };
            RecordLine {
                claim: *claim,
                node: booked.asker.node,
                attempt: booked.asker.attempt,
                stamp: booked.stamp,
                shares: shares.clone(),
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
    pub fn from_lines(pool: &Pool, grace: bool, lines: Vec<RecordLine>) -> Result<Record, String> {
        let mut taken = BTreeSet::new();
        let mut grants = Vec::with_capacity(lines.len());
        for line in lines {
            let claim = line.claim;
            if grants.last().is_some_and(|(before, _)| *before >= claim) {
                return Err(format!("claim {claim} is out of order"));
            }
            for share in &line.shares {
                if share.unit.0 >= pool.units {
                    return Err(format!("{} in a pool of {} units", share.unit, pool.units));
                }
                if !taken.insert(share.unit) {
                    return Err(format!("{} is granted twice", share.unit));
                }
            }
            let h = u32::try_from(line.shares.len()).unwrap_or(u32::MAX);
            let units = Units::new(h, pool.units).map_err(|error| error.to_string())?;
            let asker = Asker { node: line.node, attempt: line.attempt };
            let (shares, waited, adopted) = (line.shares, line.waited, line.adopted);
            let state = State::Granted { shares, waited, adopted };
            let (stamp, sent, arrived) = (line.stamp, line.sent, line.arrived);
            grants.push((claim, Booked { asker, stamp, units, sent, arrived, state }));
        }
        Ok(Record { grants, grace })
    }
}
