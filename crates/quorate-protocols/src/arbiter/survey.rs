//! How an arbiter that lost its disk learns what fences there were ([`crate::opening`]). Whoever
//! shared a quorum with it knew the fence before the client used it.

use quorate_core::{Fence, NodeId, Outbox, Units};

use super::grantor::Grantor;
use super::message::Message;
use super::recovery::Record;
use super::{Alarm, Arbiter, Post, Seat};
use crate::opening::{BLOCK, Opening, Report};

impl Grantor {
    pub(super) fn is_open(&self) -> bool {
        self.opening.is_open()
    }

    pub(super) fn is_sure(&self) -> bool {
        self.opening.is_sure()
    }

    pub(super) fn on_ring_grace(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        match self.opening.end_grace() {
            true => self.open(seat, post),
            false => self.on_ring_survey(seat, post),
        }
    }

    /// Asks whoever has not answered yet.
    pub(super) fn on_ring_survey(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        let Some(unheard) = self.opening.unheard(&seat.pool.quorums, seat.me) else {
            return; // The last answer came while the alarm rang.
        };
        for node in unheard.iter() {
            post.send(node, Message::Survey { clock: self.clock.0 });
        }
        post.out.arm(Alarm::Survey, seat.pool.retry);
        self.conclude(seat, post);
    }

    pub(super) fn on_survey(&mut self, seat: &Seat<'_>, from: NodeId, post: &mut Post<'_>) {
        let (highest, boot) = (self.highest(), seat.boot);
        let (sure, clock) = (self.is_sure(), self.clock.0);
        post.send(from, Message::Report { highest, boot, sure, clock });
    }

    pub(super) fn on_report(
        &mut self,
        seat: &Seat<'_>,
        from: NodeId,
        (highest, boot, sure): (Fence, u32, bool),
        post: &mut Post<'_>,
    ) {
        let round = Fence::default();
        self.opening.hear(from, Report { round, fence: highest, boot, sure });
        self.conclude(seat, post);
    }

    /// The largest fence that was or may be in use with this arbiter's permission.
    fn highest(&self) -> Fence {
        let ended = self.floors.units.values().copied().max().unwrap_or_default();
        ended.max(self.floors.base).max(self.top)
    }

    fn conclude(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        // The largest claims have the smallest quorums.
        let all = Units::new(seat.pool.units, seat.pool.units).expect("a pool has units");
        let learned = self.opening.learned(&seat.pool.quorums, all, (seat.me, seat.boot));
        let Some((_, fence)) = learned else { return };
        self.floors.base = fence.max(self.highest());
        post.out.disarm(Alarm::Survey);
        self.open(seat, post);
    }

    fn open(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        self.opening = Opening::Open;
        self.write_down(seat, post.out);
        self.schedule(seat, post, None);
    }

    /// Not durable: only how far fences have come, in blocks.
    pub(super) fn write_down_fences(&mut self, seat: &Seat<'_>, out: &mut Outbox<Arbiter>) {
        let top = self.highest();
        if !seat.pool.names_units() || (top <= self.ceiling && self.is_open()) {
            return;
        }
        self.ceiling = Fence(top.0.saturating_add(BLOCK));
        out.persist(Record::of_fences(self.ceiling, self.is_sure()));
    }
}
