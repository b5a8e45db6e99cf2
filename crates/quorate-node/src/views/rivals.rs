//! Who is in the way of a claim: where units differ, only those who have, or want before it, some
//! of the units that it could use.

use std::collections::BTreeSet;

use quorate_api::{Line as ApiLine, Obstacle};
use quorate_core::ClaimId;
use quorate_wire::survey::ShortLine;

use super::{Line, Picture};
use crate::convert;
use crate::forecast::Contest;

impl Line {
    /// The same of somebody who holds some of these units, and how many of them. If nobody knows
    /// which it holds, it may be any.
    pub(super) fn in_the_way(
        &self,
        id: ClaimId,
        useful: Option<&BTreeSet<u32>>,
    ) -> Option<Obstacle> {
        let mut obstacle = self.obstacle(id);
        let shares = self.home.as_ref().and_then(|(_, home)| home.shares.as_ref());
        if let (Some(useful), Some(shares)) = (useful, shares) {
            let own = shares.iter().filter(|(unit, _)| useful.contains(unit)).count();
            obstacle.units = u32::try_from(own).unwrap_or(u32::MAX);
        }
        (obstacle.units > 0).then_some(obstacle)
    }
}

impl Picture {
    /// The units that a claim could use, where units differ: those that are short, or all that have
    /// the labels it asks for. `None` if any will do.
    pub(super) fn useful(&self, id: ClaimId, cut: Option<&ShortLine>) -> Option<BTreeSet<u32>> {
        if let Some(cut) = cut {
            return Some(cut.units.iter().copied().collect());
        }
        let (labels, lines) = (self.labels.as_ref()?, self.lines.get(&id)?.lines());
        (!lines.is_empty()).then(|| {
            let units = lines.iter().map(|line| labels.having(&line.labels));
            units.flat_map(|units| units.iter().map(|unit| unit.0).collect::<Vec<_>>()).collect()
        })
    }

    /// Whether a claim could use some of these units.
    pub(super) fn rivals(&self, line: &Line, useful: Option<&BTreeSet<u32>>) -> bool {
        let (Some(useful), Some(labels)) = (useful, &self.labels) else { return true };
        let lines = line.lines();
        let some =
            |one: &ApiLine| labels.having(&one.labels).iter().any(|unit| useful.contains(&unit.0));
        lines.is_empty() || lines.iter().any(some)
    }

    /// Who is in the way of a claim where units differ: those who have, or want before it, some of
    /// the units that are short. What else they have does not matter.
    pub(super) fn contest_for(&self, cut: &ShortLine, id: ClaimId) -> Contest {
        let inside = |unit: &u32| cut.units.binary_search(unit).is_ok();
        let has = |line: &Line| {
            let shares = line.home.as_ref().and_then(|(_, home)| home.shares.as_ref());
            let own = shares.into_iter().flatten().filter(|(unit, _)| inside(unit)).count();
            u32::try_from(own).unwrap_or(u32::MAX)
        };
        // Lines that can be served by nothing else.
        let wants = |line: &Line| {
            let only = |one: &ApiLine| {
                let units = self.labels.as_ref().map(|labels| labels.having(&one.labels));
                units.is_none_or(|units| units.iter().all(|unit| inside(&unit.0)))
            };
            let lines = line.lines();
            let some = lines.iter().filter(|one| only(one)).map(|one| one.units);
            match some.fold(0, u32::saturating_add) {
                0 => line.units().min(cut.units.len() as u32),
                units => units,
            }
        };
        let api = |id: &ClaimId| convert::api_id(*id);
        let rivals = cut.rivals.iter().map(|(origin, serial)| {
            let (origin, serial) = (*origin, *serial);
            ClaimId { origin, serial }
        });
        let ahead = rivals.take_while(|rival| *rival != id);
        Contest {
            capacity: cut.units.len() as u32,
            holders: self
                .held()
                .map(|(id, line)| (api(id), has(line), line.since_ms()))
                .filter(|(_, units, _)| *units > 0)
                .collect(),
            ahead: ahead
                .filter_map(|rival| Some((api(&rival), wants(self.lines.get(&rival)?))))
                .collect(),
            asked: self.lines.get(&id).map_or(1, wants),
        }
    }
}
