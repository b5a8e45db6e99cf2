//! How a member that forgot becomes one again (arbiter spec, C2 and C6).
//!
//! *Grace*: for one lease it gives no lock. Whatever it promised before is then over, or was
//! renewed with a quorum that does not need it. *Survey*: what follows must have later rounds and
//! larger fences than anything it ever knew, and it may be the only one that two quorums have in
//! common. So it asks the others; whoever answers takes its own lock away first, since a section
//! that has it may be storing what the one who asks has forgotten. It is enough to hear from
//! members of which every quorum has one. If too many forgot at once, it waits for all, and starts
//! above every fence they could have known.

use std::collections::BTreeMap;

use quorate_core::{Fence, NodeId, NodeSet, Seat, Units};

use super::member::Member;
use super::message::Message;
use super::{Alarm, Post, Table};

/// How far a member is on its way to giving its lock.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Opening {
    /// Promises of an earlier life may still be in force. `sure`: it knows all rounds and fences.
    Grace { sure: bool },
    /// It asks the others.
    Survey { reports: BTreeMap<NodeId, Report> },
    /// It gives its lock.
    Open,
}

/// What another member knows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Report {
    pub(super) round: Fence,
    pub(super) fence: Fence,
    boot: u32,
    sure: bool,
}

impl Member {
    pub(super) fn is_open(&self) -> bool {
        self.opening == Opening::Open
    }

    pub(super) fn is_sure(&self) -> bool {
        matches!(self.opening, Opening::Open | Opening::Grace { sure: true })
    }

    pub(super) fn on_ring_grace(&mut self, seat: &Seat<'_, Table>, post: &mut Post<'_>) {
        let Opening::Grace { sure } = self.opening else { unreachable!("grace ends once") };
        if sure {
            return self.open(seat, post);
        }
        self.opening = Opening::Survey { reports: BTreeMap::new() };
        self.on_ring_survey(seat, post);
    }

    /// Asks whoever has not answered yet.
    pub(super) fn on_ring_survey(&mut self, seat: &Seat<'_, Table>, post: &mut Post<'_>) {
        let Opening::Survey { reports } = &self.opening else { return };
        for node in others(seat).iter().filter(|node| !reports.contains_key(node)) {
            post.send(node, Message::Survey);
        }
        post.out.arm(Alarm::Survey, seat.pool.goods.retry);
        self.conclude(seat, post);
    }

    pub(super) fn on_survey(&mut self, seat: &Seat<'_, Table>, from: NodeId, post: &mut Post<'_>) {
        self.take_lock_away(seat);
        let (round, fence, boot) = (self.promised, self.highest(), seat.boot);
        self.write_down(seat, post.out);
        post.send(from, Message::Report { round, fence, boot, sure: self.is_sure() });
        self.advance(seat, post);
    }

    pub(super) fn on_report(
        &mut self,
        seat: &Seat<'_, Table>,
        from: NodeId,
        (round, fence, boot, sure): (Fence, Fence, u32, bool),
        post: &mut Post<'_>,
    ) {
        if let Opening::Survey { reports } = &mut self.opening {
            reports.insert(from, Report { round, fence, boot, sure });
            self.conclude(seat, post);
        }
    }

    fn conclude(&mut self, seat: &Seat<'_, Table>, post: &mut Post<'_>) {
        let Opening::Survey { reports } = &self.opening else { return };
        let sure: NodeSet = reports.iter().filter(|(_, r)| r.sure).map(|(&node, _)| node).collect();
        let fence = reports.values().map(|report| report.fence).max().unwrap_or_default();
        let round = reports.values().map(|report| report.round).max().unwrap_or_default();
        let everybody = others(seat).iter().all(|node| reports.contains_key(&node));
        let boots = reports.values().fold(seat.boot, |sum, report| sum.saturating_add(report.boot));
        let rest = seat.pool.quorums.members().difference(&sure);
        let enough = !seat.pool.quorums.contains_quorum(Units::ONE, &rest);
        let floor = match (enough, everybody) {
            (true, _) => fence,
            (false, true) => fence.max(Fence::floor(boots)),
            (false, false) => return,
        };
        self.floor = self.highest().max(floor);
        self.promised = self.promised.max(round.next());
        post.out.disarm(Alarm::Survey);
        self.open(seat, post);
    }

    fn open(&mut self, seat: &Seat<'_, Table>, post: &mut Post<'_>) {
        self.opening = Opening::Open;
        self.write_down(seat, post.out);
    }
}

fn others(seat: &Seat<'_, Table>) -> NodeSet {
    seat.pool.quorums.members().iter().filter(|&node| node != seat.me).collect()
}
