//! How a member of quorums that forgot its promises takes part again (arbiter spec C3 and C6).
//!
//! *Grace*: for one lease it promises nothing. Whatever it promised before is then over, or was
//! renewed with a quorum that does not need it. *Survey*: what follows must have larger fences than
//! anything it ever knew, and it may be the only one that two quorums have in common. So it asks
//! the others, *after* grace: until then somebody could still rely on its earlier life. It is
//! enough to hear from members of which every quorum has one. If too many forgot at once, it waits
//! for all, and starts above everything they could have known.
//!
//! To make this rare, members write down in large blocks how far fences have come: one record in a
//! million grants, which is no cost, and which is why a restart with its disk needs no survey.

use std::collections::BTreeMap;

use quorate_core::{Fence, NodeId, NodeSet, Units, numbers};

use crate::quorums::Quorums;

/// How many fences one record covers.
pub(crate) const BLOCK: u64 = 1 << 20;

/// How far a member is on its way to promising something.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Opening {
    /// Promises of an earlier life may still be in force. `sure`: it knows all fences.
    Grace { sure: bool },
    /// It asks the others.
    Survey { reports: BTreeMap<NodeId, Report> },
    /// It promises.
    Open,
}

/// What another member knows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Report {
    /// Its rounds, where there are any, are not above this...
    pub(crate) round: Fence,
    /// ...and its fences not above this.
    pub(crate) fence: Fence,
    /// How often it was restarted.
    pub(crate) boot: u32,
    /// Whether it has forgotten nothing.
    pub(crate) sure: bool,
}

numbers!(enum Opening { Grace { sure }, Survey { reports }, Open });
numbers!(Report { round, fence, boot, sure });

impl Opening {
    pub(crate) fn is_open(&self) -> bool {
        *self == Opening::Open
    }

    /// Whether it knows all fences.
    pub(crate) fn is_sure(&self) -> bool {
        matches!(self, Opening::Open | Opening::Grace { sure: true })
    }

    /// Grace is over. Says whether that is all; else a survey begins.
    pub(crate) fn end_grace(&mut self) -> bool {
        let Opening::Grace { sure } = *self else { unreachable!("grace ends once") };
        if !sure {
            *self = Opening::Survey { reports: BTreeMap::new() };
        }
        sure
    }

    /// Who is still to be asked, if this is a survey.
    pub(crate) fn unheard(&self, quorums: &Quorums, me: NodeId) -> Option<NodeSet> {
        let Opening::Survey { reports } = self else { return None };
        Some(others(quorums, me).filter(|node| !reports.contains_key(node)).collect())
    }

    pub(crate) fn hear(&mut self, from: NodeId, report: Report) {
        if let Opening::Survey { reports } = self {
            reports.insert(from, report);
        }
    }

    /// The largest round and fence there can have been, once enough has been heard. `units`: what
    /// the smallest quorums are for.
    pub(crate) fn learned(
        &self,
        quorums: &Quorums,
        units: Units,
        (me, boot): (NodeId, u32),
    ) -> Option<(Fence, Fence)> {
        let Opening::Survey { reports } = self else { return None };
        let sure: NodeSet = reports.iter().filter(|(_, r)| r.sure).map(|(&node, _)| node).collect();
        let fence = reports.values().map(|report| report.fence).max().unwrap_or_default();
        let round = reports.values().map(|report| report.round).max().unwrap_or_default();
        let everybody = others(quorums, me).all(|node| reports.contains_key(&node));
        let rest = quorums.members().difference(&sure);
        let enough = !quorums.contains_quorum(units, &rest);
        match (enough, everybody) {
            (true, _) => Some((round, fence)),
            (false, true) => {
                let mut boots: Vec<u32> = reports.values().map(|report| report.boot).collect();
                boots.push(boot);
                Some((round, fence.max(Fence::floor_of_all(&boots))))
            }
            (false, false) => None,
        }
    }
}

fn others(quorums: &Quorums, me: NodeId) -> impl Iterator<Item = NodeId> {
    let others: Vec<NodeId> = quorums.members().iter().filter(|&node| node != me).collect();
    others.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All members forgot and have said so. Their boot numbers may be minutes since 2026, counted
    /// up to a year far ahead.
    #[test]
    fn members_that_all_forgot_start_above_what_they_gave_and_below_what_cannot_be() {
        for members in [3, 5, 7, 9, 33] {
            let learned = |boot, last| {
                let report = |boot| Report { round: Fence(0), fence: Fence(0), boot, sure: false };
                let reports = (1..members).map(|node| (NodeId(node), report(boot))).collect();
                let (quorums, me) = (Quorums::majority(members), (NodeId(0), last));
                let (_, fence) = Opening::Survey { reports }.learned(&quorums, Units::ONE, me)?;
                Some(fence)
            };
            for boot in [1, 2_100_000, Fence::BOOTS - 2] {
                let (before, after) =
                    (learned(boot, boot).unwrap(), learned(boot, boot + 1).unwrap());
                assert!(before.0 + (1 << 30) < after.0 && after < Fence::END, "{members} {boot}");
            }
        }
    }
}
