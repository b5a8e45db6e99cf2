//! A node that restarted, or was expelled, joins again (broadcast spec 7.3).
//!
//! Two things must not happen. Units that clients of an earlier life still use must not be given to
//! others. And a new request of the node must not go before one that it let pass in an earlier life
//! and has forgotten, or k+1 clients enter. Against the first there is *grace*: grants are leased
//! by the node to its own clients ([`super::Pool::lease`]), and a restarted node says nothing about
//! units until one lease is over. Then it tells everybody that it is back and that its earlier
//! lives use nothing. Against the second it asks for units only when everybody who may have been
//! let pass has answered with its clock, and puts its own behind all of them.
//!
//! Nodes that are joining answer each other, so that a whole pool may restart at once. And
//! everybody means everybody, suspects and those counted out included: a node that stays down keeps
//! others from coming back. If suspects were exempt, one that was merely slow would enter on what
//! an earlier life let pass, while the newcomer enters before it (`tests/leased.rs`). Nor is it
//! enough that others count a suspect out: a node that has forgotten that the suspect came back
//! takes its earlier life for the present one. Exempt is only a node that is cut off now, in
//! whatever life, as an operator says to the newcomer ([`Reclaim::Fenced`]): it uses nothing until
//! it joins again, and then it asks the newcomer.
//!
//! **Under leases** more can be forgotten: that somebody is suspected, and that somebody else came
//! back since. A draft handed out six units of three: a restarted node took an old belief about an
//! earlier life for one about the present, and did not count a live node. Hence every message tells
//! its sender's life, and three rules. Messages of an earlier life are void. Messages of a life
//! that has not joined renew no lease. And a node that joins is counted at once, but its answers
//! are waited for only when it takes part, that is, when it knows from everybody who is suspected.
//! Why that is enough: let m count x out, after all whom m does not suspect named x. If x has a
//! lease later on, one of those, j, has answered without naming it, and so restarted since; but
//! then m told j of x before j took part.

use quorate_core::{NodeId, NodeSet, Outbox, Seat};

use super::message::{Life, Message};
use super::pool::{Reclaim, broken};
use super::{Alarm, Weighted};

/// Whether a node takes part.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Membership {
    /// It does.
    Member,
    /// Clients of an earlier life may still use units.
    Grace,
    /// It was expelled, and its clients may not have heard of it.
    LettingGo,
    /// It uses nothing and lets everybody pass; these have not answered yet.
    Joining(NodeSet),
    /// It stays out: nothing is leased, so that nobody knows when an earlier life is over, or
    /// suspects are counted out.
    Out,
}

impl Weighted {
    pub(super) fn is_member(&self) -> bool {
        self.membership == Membership::Member
    }

    /// Whether this life can say how much it uses.
    pub(super) fn is_settled(&self) -> bool {
        matches!(self.membership, Membership::Member | Membership::Joining(_))
    }

    /// Whoever was granted units in an earlier life has stopped by itself.
    pub(super) fn on_ring_grace(&mut self, seat: &Seat<'_, Self>, out: &mut Outbox<Self>) {
        assert_eq!(self.membership, Membership::Grace, "grace ends once");
        self.join(seat, out);
    }

    /// Tells everybody that this life begins.
    pub(super) fn join(&mut self, seat: &Seat<'_, Self>, out: &mut Outbox<Self>) {
        self.membership = Membership::Joining(seat.pool.peers(seat.me).collect());
        self.announce(seat, out);
        self.finish_join(seat, out);
    }

    /// The same for a node that was expelled, when its clients have let go.
    pub(super) fn join_if_idle(&mut self, seat: &Seat<'_, Self>, out: &mut Outbox<Self>) {
        if self.membership == Membership::LettingGo && self.asked.is_empty() {
            self.join(seat, out);
        }
    }

    /// Whether a message that tells its sender's life is to be heeded. Not what an earlier life of
    /// its sender said; and under leases, where an answer lets its receiver go on, not what a life
    /// says that has not joined. A node that has not joined itself takes every peer's life as it
    /// finds it.
    pub(super) fn is_timely(
        &mut self,
        seat: &Seat<'_, Self>,
        from: NodeId,
        message: &Message,
        life: Life,
        out: &mut Outbox<Self>,
    ) -> bool {
        let here = self.detector.life(from);
        if broken!(seat, AnyLife) {
            return true;
        }
        if life < here {
            return false;
        }
        if life > here {
            if self.is_member() && !matches!(message, Message::Joined { .. }) {
                return !seat.pool.is_leased();
            }
            self.welcome(seat, from, life, out);
        }
        // Only a node that takes part sends queries.
        if matches!(message, Message::Request { .. } | Message::Query { .. }) {
            self.detector.rely_on(from);
        }
        true
    }

    /// Repeats the join to every node that has not answered, in case messages were lost.
    pub(super) fn announce(&mut self, seat: &Seat<'_, Self>, out: &mut Outbox<Self>) {
        let Membership::Joining(waiting) = &self.membership else { return };
        for peer in waiting.iter() {
            out.tell(peer, Message::Join { life: self.life });
        }
        if let Some(retry) = seat.pool.retry {
            self.retrying = true;
            out.arm(Alarm::Retry, retry);
        }
    }

    pub(super) fn on_join(
        &mut self,
        seat: &Seat<'_, Self>,
        from: NodeId,
        life: Life,
        out: &mut Outbox<Self>,
    ) {
        if life > self.detector.life(from) {
            self.welcome(seat, from, life, out);
        }
        let known = self.detector.known.clone();
        out.tell(from, Message::Joined { life, clock: self.clock.0, known });
    }

    /// A node is there in a new life. What its earlier ones were asked, and did not answer or did
    /// not live to answer, is asked again: a join is no permission. The node may have joined long
    /// ago, and only this one has forgotten it.
    fn welcome(&mut self, seat: &Seat<'_, Self>, node: NodeId, life: Life, out: &mut Outbox<Self>) {
        let is_relied_on = !seat.pool.is_leased();
        self.detector.welcome(node, life, is_relied_on);
        self.deferred.forget(node);
        if self.counting.readmit(node) {
            out.disarm(Alarm::LeaseEnd(node));
        }
        self.ask_again(node, out);
    }

    pub(super) fn on_joined(
        &mut self,
        seat: &Seat<'_, Self>,
        from: NodeId,
        (life, clock): (Life, u64),
        out: &mut Outbox<Self>,
    ) {
        if let Membership::Joining(waiting) = &mut self.membership
            && life == self.life
        {
            if !broken!(seat, JoinWithoutClock) {
                self.clock.hear(clock);
            }
            waiting.remove(from);
            self.finish_join(seat, out);
        }
    }

    /// Takes part if everybody has answered who may have been let pass.
    pub(super) fn finish_join(&mut self, seat: &Seat<'_, Self>, out: &mut Outbox<Self>) {
        let Membership::Joining(waiting) = &self.membership else { return };
        let trusts = broken!(seat, JoinWithoutSuspects);
        let is_whole = waiting.is_empty() || trusts && waiting.is_subset(self.detector.crashed());
        if is_whole || broken!(seat, JoinAlone) {
            self.membership = Membership::Member;
            if let Some(pace) = seat.pool.probe {
                out.arm(Alarm::Probe, pace);
            }
            self.ask(seat, out);
        }
    }

    /// Somebody believes that this life is over. Where others are counted out for such a belief,
    /// everything is let go.
    pub(super) fn on_expelled(
        &mut self,
        seat: &Seat<'_, Self>,
        life: Life,
        out: &mut Outbox<Self>,
    ) {
        if life == self.life && seat.pool.reclaim != Reclaim::Never {
            self.expulsions = self.expulsions.saturating_add(1);
            self.step_down(seat, out);
            if !seat.pool.can_rejoin() {
                self.expelled = true;
                return;
            }
            self.life += 1;
            self.detector.begin(seat.me, self.life);
            self.counting.give_up();
            // A restarted node also waits for clients that it has forgotten.
            if self.membership != Membership::Grace {
                self.membership = Membership::LettingGo;
                self.join_if_idle(seat, out);
            }
        }
    }
}
