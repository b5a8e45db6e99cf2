//! The roll: what clients of all members have, from those who know (charter spec S5 to S7).
//!
//! A member answers once it has applied the term, and from then on takes nothing that a seat of a
//! lower one promises: what it lists is all there will be. When all have answered with complete
//! lists, nobody else decides any more and nothing is in force that is not in the books: the member
//! on which the last seat was is among them.

use quorate_core::{Moment, NodeId};

use super::message::{Message, Shown};
use super::reign::Reign;
use super::{Alarm, Desk, Moving, Seat, judge};
use crate::central::pool::broken;

impl Moving {
    /// Calls those who have not answered, now and until all have.
    pub(super) fn call_roll(&mut self, seat: &Seat<'_>, desk: &mut Desk<'_>) {
        self.answer_myself(seat, desk);
        let Some(reign) = self.reign.as_ref().filter(|reign| reign.stage.waits()) else {
            return;
        };
        let term = reign.tenure.term;
        for member in seat.pool.members.iter() {
            if member != seat.me && !reign.answered.contains(member) {
                desk.out.tell(member, Message::Roll { term });
            }
        }
        desk.out.arm(Alarm::Roll, seat.pool.central.goods.retry);
    }

    pub(super) fn on_roll(
        &mut self,
        seat: &Seat<'_>,
        from: NodeId,
        term: u32,
        desk: &mut Desk<'_>,
    ) {
        let early = broken!(judge(seat, term), AnswerBeforeApplied);
        let applied = self.applied.is_some_and(|it| it.term == term && it.node == from);
        if applied || early && self.applied.is_none_or(|it| it.term < term) {
            let (complete, sent, grants) = (self.is_complete, seat.now, self.list(seat));
            desk.out.tell(from, Message::Answer { term, complete, sent, grants });
        }
    }

    pub(super) fn on_answer(
        &mut self,
        seat: &Seat<'_>,
        (from, sent): (NodeId, Moment),
        complete: bool,
        grants: &[Shown],
        desk: &mut Desk<'_>,
    ) {
        let Some(reign) = self.reign.as_mut().filter(|reign| reign.stage.waits()) else {
            return;
        };
        let at = judge(seat, reign.tenure.term);
        if complete {
            reign.answered.insert(from);
        }
        let missing = seat.pool.members.iter().filter(|it| !reign.answered.contains(*it)).count();
        self.as_seat(seat, desk, |reign, at, post| {
            reign.note_all(at, from, sent, grants, post.out);
        });
        if missing == 0 || missing == 1 && broken!(at, OpenWithoutOne) {
            self.end_waiting(desk);
            self.as_seat(seat, desk, Reign::open);
        }
    }

    /// This node is a member too.
    pub(super) fn answer_myself(&mut self, seat: &Seat<'_>, desk: &mut Desk<'_>) {
        if self.reign.is_some() {
            let (complete, grants) = (self.is_complete, self.list(seat));
            self.on_answer(seat, (seat.me, seat.now), complete, &grants, desk);
        }
    }

    /// All grants of this node's clients whose deadline has not passed.
    fn list(&self, seat: &Seat<'_>) -> Vec<Shown> {
        let listed = self.requester.listed(seat.now);
        listed.map(|(claim, attempt, shares)| Shown { claim, attempt, shares }).collect()
    }
}
