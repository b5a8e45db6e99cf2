//! What a node does when it believes that a peer crashed: nothing, or it counts the peer out so
//! that its units come back (broadcast spec 7.2).
//!
//! A grant is *clean* if there was room for it with everybody counted, and *reclaimed* if only
//! because some were counted out. A clean grant is safe whatever the network does; a reclaimed one
//! is as safe as the reason for counting out, which is what [`Reclaim`] chooses.
//!
//! **Leases.** A node may hold, or enter, only until one lease after it *sent* the last query that
//! everybody it does not suspect has answered without naming it. A suspect is counted out one lease
//! after everybody not suspected has answered a query and named it. Counting from the suspicion
//! would need an assumption about messages (broadcast spec 7.2); this does not: of those who have
//! to renew the suspect's lease, at least n-1-f, at most f-1 are suspects themselves, and all
//! others name it.

use std::time::Duration;

use quorate_core::{ClaimId, Lease, Moment, NodeId, NodeSet, Outbox, Seat};

use super::deaths::Deaths;
use super::desk::shares;
use super::join::Membership;
use super::message::{Knowledge, Message};
use super::pool::{Reclaim, broken};
use super::weighted::Standing;
use super::{Alarm, Weighted};

/// Whom a node no longer counts, and until when it counts itself.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Counting {
    out: NodeSet,
    /// Suspects whose lease is being waited out.
    leaving: NodeSet,
    /// Whom the driver has confirmed to be cut off.
    fenced: NodeSet,
    /// Where leases are used: when this node's own ends.
    until: Moment,
}

impl Counting {
    pub(super) fn out(&self) -> &NodeSet {
        &self.out
    }

    /// Counts a node again; says whether it had begun to count it out.
    pub(super) fn readmit(&mut self, node: NodeId) -> bool {
        self.out.remove(node);
        self.fenced.remove(node);
        self.leaving.remove(node)
    }

    pub(super) fn is_out(&self, node: NodeId) -> bool {
        self.out.contains(node)
    }

    /// This node has no lease any more.
    pub(super) fn give_up(&mut self) {
        self.until = Moment::ZERO;
    }

    /// When this node itself has to stop, whatever its clients do.
    pub(super) fn deadline(&self, seat: &Seat<'_, Weighted>) -> Moment {
        match seat.pool.reclaim {
            Reclaim::Lease(_) => self.until,
            Reclaim::Never | Reclaim::Fenced | Reclaim::TrustRp => Moment::NEVER,
        }
    }
}

/// When a client that is granted units now, or renews them, has to stop if it does not renew.
pub(super) fn hold_end(seat: &Seat<'_, Weighted>) -> Moment {
    seat.pool.lease.map_or(Moment::NEVER, |lease| lease.deadline(seat.now, Duration::ZERO))
}

impl Weighted {
    /// Takes over what somebody believes about crashes, and draws the pool's conclusions.
    pub(super) fn learn(
        &mut self,
        seat: &Seat<'_, Self>,
        crashed: &Deaths,
        out: &mut Outbox<Self>,
    ) {
        if !self.detector.learn(crashed) {
            return;
        }
        self.count_out(seat);
        if self.detector.crashed().contains(seat.me) {
            self.on_expelled(seat, self.life, out);
        }
    }

    /// The driver says that a node can no longer reach the protected thing until it joins again.
    /// For a node that takes part this is about the life that it believes to be over: a peer that
    /// is not suspected now is not counted out for it later. A node that is joining may take an
    /// earlier life of a peer for the present one, so it counts nobody out; but whatever it let
    /// that peer do, in any life, does no harm any more, and it need not wait for that peer.
    pub(super) fn on_fenced(
        &mut self,
        seat: &Seat<'_, Self>,
        node: NodeId,
        out: &mut Outbox<Self>,
    ) {
        if seat.pool.reclaim != Reclaim::Fenced || node == seat.me {
            return;
        }
        if let Membership::Joining(waiting) = &mut self.membership {
            waiting.remove(node);
            self.finish_join(seat, out);
        } else if self.is_member() && self.detector.crashed().contains(node) {
            self.counting.fenced.insert(node);
            self.count_out(seat);
            self.check(seat, out);
        }
    }

    fn count_out(&mut self, seat: &Seat<'_, Self>) {
        let crashed = self.detector.crashed();
        match seat.pool.reclaim {
            Reclaim::Never | Reclaim::Lease(_) => {}
            Reclaim::Fenced => self.counting.out = crashed.intersection(&self.counting.fenced),
            Reclaim::TrustRp => {
                self.counting.out = crashed.clone();
                self.counting.out.remove(seat.me);
            }
        }
    }

    /// Whether others may have counted this node out: it must hold nothing and ask for nothing.
    pub(super) fn is_expelled(&self, seat: &Seat<'_, Self>) -> bool {
        seat.pool.reclaim != Reclaim::Never
            && (self.expelled || self.detector.crashed().contains(seat.me))
    }

    /// Asks for nothing any more, and tells clients to let go (broadcast spec E9). What they had
    /// stays in use until they have, or until their deadline. Claims that wait go back to the desk.
    pub(super) fn step_down(&mut self, seat: &Seat<'_, Self>, out: &mut Outbox<Self>) {
        for mut asked in std::mem::take(&mut self.asked).into_iter().rev() {
            if matches!(asked.standing, Standing::Waiting(_)) {
                self.desk.push_front(asked.claim, asked.units);
                continue;
            }
            if matches!(asked.standing, Standing::Held { .. }) {
                out.lose(asked.claim);
                if broken!(seat, LoseAtOnce) {
                    continue;
                }
                asked.standing = Standing::Lost;
                // Where clients renew, the alarm is armed already, and rings no later than this.
                if let (None, Some(most)) = (seat.pool.lease, seat.pool.hold_max()) {
                    out.arm(Alarm::HoldEnd(asked.claim), most);
                }
            }
            self.asked.insert(0, asked);
        }
        self.answer_deferred(seat, out);
    }

    /// Whether a request starts a query as well. Where leases are used it lets a query go on until
    /// everybody has answered, or no lease would ever be renewed under load.
    pub(super) fn may_query(&self, seat: &Seat<'_, Self>) -> bool {
        let is_whole = || self.detector.missing().is_subset(self.detector.crashed());
        self.detector.is_done() && (!seat.pool.is_leased() || is_whole())
    }

    /// Starts a query: numbered `clock`, and told to others by the caller.
    pub(super) fn start_query(
        &mut self,
        seat: &Seat<'_, Self>,
        clock: u64,
        out: &mut Outbox<Self>,
    ) {
        assert!(
            self.detector.is_done() || broken!(seat, AbandonQueries),
            "a query starts when the one before it has ended (E5)"
        );
        self.detector.start(clock, seat.now, seat.me, seat.pool.crashes_max);
        if let Some(pace) = seat.pool.probe {
            out.arm(Alarm::Probe, pace);
        }
    }

    /// Nothing was asked for a while: a query of its own, or the last one again to whoever has not
    /// answered it.
    pub(super) fn on_ring_probe(&mut self, seat: &Seat<'_, Self>, out: &mut Outbox<Self>) {
        let Some(pace) = seat.pool.probe.filter(|_| self.is_member()) else { return };
        if self.detector.is_done() {
            let clock = self.next_clock(seat);
            self.start_query(seat, clock, out);
        } else {
            out.arm(Alarm::Probe, pace);
        }
        let query = self.detector.query.expect("a query is under way");
        for peer in self.detector.missing().iter().filter(|&peer| !self.counting.is_out(peer)) {
            out.tell(peer, Message::Query { query, known: self.detector.known.clone() });
        }
        self.renew_lease(seat, out); // The only node of a pool has all answers at once.
        self.check(seat, out);
    }

    /// Takes an answer to a query.
    pub(super) fn on_answer(
        &mut self,
        seat: &Seat<'_, Self>,
        from: NodeId,
        said: Knowledge,
        out: &mut Outbox<Self>,
    ) {
        let found = self.detector.on_answer(from, said);
        if let Some(found) = found
            && found.iter().any(|node| !self.detector.is_dead(node))
            && !broken!(seat, NoDetection)
        {
            let found = found.iter().map(|node| (node, self.detector.life(node))).collect();
            self.learn(seat, &found, out);
            if seat.pool.notices {
                for peer in seat.pool.peers(seat.me).filter(|&peer| !self.counting.is_out(peer)) {
                    out.tell(peer, Message::Notice { known: self.detector.known.clone() });
                }
            }
        }
        self.renew_lease(seat, out);
    }

    /// Where leases are used: what follows if everybody not suspected has answered the query.
    #[inline]
    pub(super) fn renew_lease(&mut self, seat: &Seat<'_, Self>, out: &mut Outbox<Self>) {
        if let Reclaim::Lease(lease) = seat.pool.reclaim {
            self.renew_leased(seat, lease, out);
        }
    }

    fn renew_leased(&mut self, seat: &Seat<'_, Self>, lease: Lease, out: &mut Outbox<Self>) {
        let crashed = self.detector.crashed().clone();
        // More suspects than can have crashed: the network is at fault, and nobody is counted out.
        let is_sound = crashed.len() <= seat.pool.crashes_max as usize;
        let answered = |peer| crashed.contains(peer) || self.detector.answer(peer).is_some();
        let is_whole = seat.pool.peers(seat.me).all(answered);
        if !is_sound || !is_whole || crashed.contains(seat.me) || !self.is_member() {
            return;
        }
        for suspect in crashed.difference(&self.counting.leaving).iter() {
            let mut judges = seat.pool.peers(seat.me).filter(|&peer| !crashed.contains(peer));
            let named = |peer| {
                self.detector.answer(peer).is_some_and(|said| self.detector.is_named(suspect, said))
            };
            if judges.all(named) {
                self.counting.leaving.insert(suspect);
                out.arm(Alarm::LeaseEnd(suspect), lease.length());
            }
        }
        let until = lease.deadline(self.detector.sent, Duration::ZERO);
        if until > self.counting.until {
            self.counting.until = until;
            self.extend_held(seat, out);
        }
    }

    /// Holders may go on; those who stopped meanwhile have nothing any more.
    fn extend_held(&mut self, seat: &Seat<'_, Self>, out: &mut Outbox<Self>) {
        let renewed = self.counting.until;
        let mut over = Vec::new();
        for asked in &mut self.asked {
            let Standing::Held { until, hold_end, .. } = &mut asked.standing else { continue };
            if *until <= seat.now {
                over.push(asked.claim);
            } else {
                *until = renewed.min(*hold_end);
                out.extend(asked.claim, *until);
            }
        }
        for claim in over {
            out.lose(claim);
            self.end(seat, claim, out);
        }
    }

    /// A client wants to keep what it has. One that is unknown outlived an earlier life.
    pub(super) fn on_renew(
        &mut self,
        seat: &Seat<'_, Self>,
        claim: ClaimId,
        out: &mut Outbox<Self>,
    ) {
        let node_end = self.counting.deadline(seat);
        match self.place_of(claim).map(|place| &mut self.asked[place].standing) {
            None | Some(Standing::Lost) => out.lose(claim),
            Some(Standing::Held { until, hold_end, .. }) if *until > seat.now => {
                let Some(lease) = seat.pool.lease else { return };
                *hold_end = self::hold_end(seat);
                *until = node_end.min(*hold_end);
                out.extend(claim, *until);
                out.arm(Alarm::HoldEnd(claim), lease.length());
            }
            Some(_) => {}
        }
    }

    /// A client has not renewed: it stopped by itself, or died.
    pub(super) fn on_ring_hold_end(
        &mut self,
        seat: &Seat<'_, Self>,
        claim: ClaimId,
        out: &mut Outbox<Self>,
    ) {
        if let Some(place) = self.place_of(claim)
            && self.asked[place].standing.is_in_use()
        {
            out.reclaim(claim, shares(self.asked[place].units));
            out.lose(claim);
            self.end(seat, claim, out);
        }
    }

    /// A suspect's lease has ended: whatever it held, its clients have stopped. While there are
    /// more suspects than can have crashed nobody is counted out, and its lease is waited for again
    /// when there are fewer.
    pub(super) fn on_ring_lease_end(
        &mut self,
        seat: &Seat<'_, Self>,
        node: NodeId,
        out: &mut Outbox<Self>,
    ) {
        if self.detector.crashed().len() <= seat.pool.crashes_max as usize {
            self.counting.out.insert(node);
            self.check(seat, out);
        } else {
            self.counting.leaving.remove(node);
        }
    }

    pub(super) fn audit_counting(&self, seat: &Seat<'_, Self>) {
        let Counting { out, leaving, .. } = &self.counting;
        assert!(out.is_subset(self.detector.crashed()), "only suspects are counted out");
        assert!(!out.contains(seat.me), "nobody counts itself out");
        assert!(leaving.is_subset(self.detector.crashed()));
        assert!(seat.pool.reclaim != Reclaim::Never || out.is_empty());
    }
}
