//! How an arbiter that lost its disk learns what fences there were (spec C6).
//!
//! Grace makes it wait until everything it promised is over. But a client that comes after that
//! must get a larger fence than any before it on the same units, and the arbiter may be the only
//! one the two have in common. So it asks the others, *after* grace: until then somebody could
//! still enter with a permission from its earlier life. Whoever shared a quorum with it knew the
//! fence before the client used it. It is enough to hear from arbiters of which every quorum has
//! one. If too many forgot at once, it waits for all, and starts above everything they could have
//! known.
//!
//! To make this rare, arbiters write down in large blocks how far fences have come: one record in a
//! million grants, which is no cost, and which is why a restart with its disk needs no survey.

use std::collections::BTreeMap;

use quorate_core::{Fence, NodeId, NodeSet, Outbox, Seat, Units};

use super::grantor::Grantor;
use super::message::Message;
use super::recovery::Record;
use super::{Alarm, Arbiter, Post};

/// How far an arbiter is on its way to giving permissions.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Opening {
    /// Promises of an earlier life may still be in force. `sure`: it knows all fences.
    Grace { sure: bool },
    /// It asks the others about fences.
    Survey { reports: BTreeMap<NodeId, Report> },
    /// It gives permissions.
    Open,
}

/// What another arbiter knows about fences.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Report {
    pub(super) highest: Fence,
    /// How often it was restarted.
    boot: u32,
    /// Whether it has forgotten nothing.
    sure: bool,
}

/// How many fences one record covers.
const BLOCK: u64 = 1 << 20;

impl Grantor {
    pub(super) fn is_open(&self) -> bool {
        self.opening == Opening::Open
    }

    pub(super) fn is_sure(&self) -> bool {
        matches!(self.opening, Opening::Open | Opening::Grace { sure: true })
    }

    pub(super) fn on_ring_grace(&mut self, seat: &Seat<'_, Arbiter>, post: &mut Post<'_>) {
        let Opening::Grace { sure } = self.opening else { unreachable!("grace ends once") };
        if sure {
            return self.open(seat, post);
        }
        self.opening = Opening::Survey { reports: BTreeMap::new() };
        self.on_ring_survey(seat, post);
    }

    /// Asks whoever has not answered yet.
    pub(super) fn on_ring_survey(&mut self, seat: &Seat<'_, Arbiter>, post: &mut Post<'_>) {
        let Opening::Survey { reports } = &self.opening else {
            return; // The last answer came while the alarm rang.
        };
        for node in others(seat).iter().filter(|node| !reports.contains_key(node)) {
            post.send(node, Message::Survey { clock: self.clock.0 });
        }
        post.out.arm(Alarm::Survey, seat.pool.retry);
        self.conclude(seat, post);
    }

    pub(super) fn on_survey(
        &mut self,
        seat: &Seat<'_, Arbiter>,
        from: NodeId,
        post: &mut Post<'_>,
    ) {
        let (highest, boot) = (self.highest(), seat.boot);
        let (sure, clock) = (self.is_sure(), self.clock.0);
        post.send(from, Message::Report { highest, boot, sure, clock });
    }

    pub(super) fn on_report(
        &mut self,
        seat: &Seat<'_, Arbiter>,
        from: NodeId,
        (highest, boot, sure): (Fence, u32, bool),
        post: &mut Post<'_>,
    ) {
        if let Opening::Survey { reports } = &mut self.opening {
            reports.insert(from, Report { highest, boot, sure });
            self.conclude(seat, post);
        }
    }

    /// The largest fence that was or may be in use with this arbiter's permission.
    fn highest(&self) -> Fence {
        let ended = self.floors.units.values().copied().max().unwrap_or_default();
        ended.max(self.floors.base).max(self.top)
    }

    fn conclude(&mut self, seat: &Seat<'_, Arbiter>, post: &mut Post<'_>) {
        let Opening::Survey { reports } = &self.opening else { return };
        let sure: NodeSet = reports.iter().filter(|(_, r)| r.sure).map(|(&node, _)| node).collect();
        let highest = reports.values().map(|report| report.highest).max().unwrap_or_default();
        let highest = highest.max(self.highest());
        let everybody = others(seat).iter().all(|node| reports.contains_key(&node));
        let boots = reports.values().fold(seat.boot, |sum, report| sum.saturating_add(report.boot));
        // The largest claims have the smallest quorums.
        let all = Units::new(seat.pool.units, seat.pool.units).expect("a pool has units");
        let rest = seat.pool.quorums.members().difference(&sure);
        let enough = !seat.pool.quorums.contains_quorum(all, &rest);
        self.floors.base = match (enough, everybody) {
            (true, _) => highest,
            (false, true) => highest.max(Fence::floor(boots)),
            (false, false) => return,
        };
        post.out.disarm(Alarm::Survey);
        self.open(seat, post);
    }

    fn open(&mut self, seat: &Seat<'_, Arbiter>, post: &mut Post<'_>) {
        self.opening = Opening::Open;
        self.write_down(seat, post.out);
        self.schedule(seat, post, None);
    }

    /// Not durable: only how far fences have come, in blocks.
    pub(super) fn write_down_fences(
        &mut self,
        seat: &Seat<'_, Arbiter>,
        out: &mut Outbox<Arbiter>,
    ) {
        let top = self.highest();
        if !seat.pool.names_units() || (top <= self.ceiling && self.is_open()) {
            return;
        }
        self.ceiling = Fence(top.0.saturating_add(BLOCK));
        out.persist(Record::of_fences(self.ceiling, self.is_sure()));
    }
}

fn others(seat: &Seat<'_, Arbiter>) -> NodeSet {
    seat.pool.quorums.members().iter().filter(|&node| node != seat.me).collect()
}
