//! How a member that forgot becomes one again ([`crate::opening`]). Here it also asks for rounds:
//! what follows must be of later ones than anything it ever knew. Whoever answers takes its own
//! lock away first, since a section that has it may be storing what the one who asks has forgotten.
//!
//! Where claims may stand, it asks for the table too. A lease after it was stored, whatever has one
//! is over or was renewed with a quorum that does not need this member; what stands is not, and may
//! be known to one other member alone. Those who answer include one of every quorum, so one of them
//! has the last table that was confirmed, or a newer one.

use std::sync::Arc;

use quorate_core::{NodeId, Units};

use super::member::Member;
use super::message::Message;
use super::pool::broken;
use super::sheet::Sheet;
use super::{Alarm, Post, Seat};
use crate::opening::Report;

impl Member {
    pub(super) fn is_open(&self) -> bool {
        self.opening.is_open()
    }

    pub(super) fn on_ring_grace(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        match self.opening.end_grace() {
            true => self.open(seat, post),
            false => self.on_ring_survey(seat, post),
        }
    }

    /// Asks whoever has not answered yet.
    pub(super) fn on_ring_survey(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        let Some(unheard) = self.opening.unheard(&seat.pool.quorums, seat.me) else { return };
        unheard.iter().for_each(|node| post.send(node, Message::Survey));
        post.out.arm(Alarm::Survey, seat.pool.goods.retry);
        self.conclude(seat, post);
    }

    pub(super) fn on_survey(&mut self, seat: &Seat<'_>, from: NodeId, post: &mut Post<'_>) {
        self.take_lock_away(seat);
        let (round, fence, boot) = (self.promised, self.highest(), seat.boot);
        let sure = self.opening.is_sure();
        let sheet = seat.pool.goods.standing.then(|| Arc::clone(&self.sheet));
        self.write_down(seat, post.out);
        post.send(from, Message::Report { round, fence, boot, sure, sheet });
        self.advance(seat, post);
    }

    pub(super) fn on_report(
        &mut self,
        seat: &Seat<'_>,
        from: NodeId,
        report: Report,
        sheet: Option<Arc<Sheet>>,
        post: &mut Post<'_>,
    ) {
        self.opening.hear(from, report);
        let newer = |sheet: &Arc<Sheet>| sheet.version > self.told.version;
        if let Some(sheet) = sheet.filter(newer) {
            self.told = sheet;
        }
        self.conclude(seat, post);
    }

    fn conclude(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        let learned = self.opening.learned(&seat.pool.quorums, Units::ONE, (seat.me, seat.boot));
        let Some((round, fence)) = learned else { return };
        self.floor = self.highest().max(fence);
        self.promised = self.promised.max(round.next());
        post.out.disarm(Alarm::Survey);
        self.open(seat, post);
    }

    fn open(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        self.opening = crate::opening::Opening::Open;
        let told = std::mem::take(&mut self.told);
        if told.version > self.sheet.version && !broken!(seat, OpenEmpty) {
            return self.adopt(seat, told, post.out);
        }
        self.write_down(seat, post.out);
    }
}
