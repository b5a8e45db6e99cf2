//! A record as plain data, for drivers that put it on a disk. What is written down, and when, is
//! the arbiter's matter.

use std::collections::BTreeSet;
use std::time::Duration;

use quorate_core::{ClaimId, Fence, Moment, NodeId, Share, Shares, Stamp};

use super::Pool;
use super::floors::Floors;
use super::grantor::{Booked, State, are_units};
use super::message::{GrantNumber, Pick, Wish};
use super::naming::{PickState, Picked};
use super::pool::Mode;
use super::recovery::Record;
use crate::attempt::{Asker, Attempt, Bid};

/// All that a [`Record`] says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordLines {
    /// Whether promises or fences older than it may have been forgotten.
    pub unsure: bool,
    /// Below it no fence is known.
    pub base: Fence,
    /// The largest fence of each unit that has ended.
    pub floors: Shares,
    /// Permissions in force, ascending by age.
    pub lines: Vec<RecordLine>,
}

/// One permission.
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
    /// What it is for.
    pub wish: Wish,
    /// The fence that its holder has or will have.
    pub token: Fence,
    /// How often a younger claim passed it.
    pub overtaken: u32,
    /// The asker's clock when it sent the message that counts.
    pub sent: Moment,
    /// The arbiter's when that message arrived.
    pub arrived: Moment,
    /// The number of the permission.
    pub grant: GrantNumber,
    /// Whether it was asked back.
    pub inquired: bool,
    /// How long the claim had waited.
    pub waited: Duration,
    /// Whether it was promised in a life before the one that wrote the record.
    pub adopted: bool,
    /// Whether two nodes may rely on it.
    pub shared: bool,
    /// The units it picked, if units are counted and named.
    pub pick: Option<Pick>,
}

impl Record {
    /// The record as plain data.
    pub fn lines(&self) -> RecordLines {
        let floors: Vec<Share> =
            self.floors.units.iter().map(|(&unit, &fence)| Share { unit, fence }).collect();
        let lines = self.grants.iter().map(|(claim, booked)| {
            let State::Granted { grant, inquired, waited, adopted } = booked.state else {
                unreachable!("only permissions are written down");
            };
            RecordLine {
                claim: *claim,
                node: booked.asker.node,
                attempt: booked.asker.attempt,
                stamp: booked.stamp,
                wish: booked.wish.clone(),
                token: booked.token,
                overtaken: booked.overtaken,
                sent: booked.sent,
                arrived: booked.arrived,
                grant,
                inquired,
                waited,
                adopted,
                shared: booked.shared,
                pick: booked.picked.as_ref().filter(|_| booked.round() > 0).map(|p| p.pick.clone()),
            }
        });
        RecordLines {
            unsure: self.unsure,
            base: self.floors.base,
            floors: Shares::new(&floors),
            lines: lines.collect(),
        }
    }

    /// The record with these lines.
    ///
    /// # Errors
    /// No arbiter of this pool could have written it; the text says what is wrong. Nothing else
    /// happened.
    pub fn from_lines(pool: &Pool, from: RecordLines) -> Result<Record, String> {
        let (mut bids, mut taken, mut used) = (BTreeSet::new(), BTreeSet::new(), 0u32);
        let mut grants: Vec<(ClaimId, Booked)> = Vec::with_capacity(from.lines.len());
        for line in from.lines {
            let claim = line.claim;
            let asker = Asker { node: line.node, attempt: line.attempt };
            let bid = asker.bid(claim);
            let older = |(before, booked): &(ClaimId, Booked)| {
                let before: Bid = booked.asker.bid(*before);
                (booked.stamp, before) < (line.stamp, bid)
            };
            if !bids.insert(bid) || !grants.last().is_none_or(older) {
                return Err(format!("claim {claim} is out of order"));
            }
            used = used.saturating_add(line.wish.units.get());
            let fits = line.pick.as_ref().is_none_or(|pick| {
                pool.picks_units() && are_units(pool, line.wish.units, &pick.names)
            });
            match (&pool.mode, &line.wish.names) {
                (Mode::Count { .. }, None) if used > pool.units => {
                    return Err("more units than there are".into());
                }
                (Mode::Count { .. }, None) | (Mode::Named, Some(_)) if fits => {}
                _ => return Err(format!("claim {claim} is of another kind of pool")),
            }
            let picked = line.pick.iter().map(|pick| &pick.names);
            for unit in line.wish.names.iter().chain(picked).flat_map(|names| names.iter()) {
                if unit.0 >= pool.units {
                    return Err(format!("{unit} in a pool of {} units", pool.units));
                }
                if !taken.insert(*unit) {
                    return Err(format!("{unit} is granted twice"));
                }
            }
            let RecordLine { grant, inquired, waited, adopted, .. } = line;
            let booked = Booked {
                asker,
                stamp: line.stamp,
                wish: line.wish,
                token: line.token,
                overtaken: line.overtaken,
                sent: line.sent,
                arrived: line.arrived,
                state: State::Granted { grant, inquired, waited, adopted },
                shared: line.shared,
                offered: None,
                picked: line.pick.map(|pick| Picked {
                    pick,
                    state: PickState::Locked,
                    used: false,
                    asked: false,
                }),
            };
            grants.push((claim, booked));
        }
        let units = from.floors.iter().map(|share| (share.unit, share.fence)).collect();
        let floors = Floors { base: from.base, units };
        Ok(Record { grants, floors, unsure: from.unsure })
    }
}
