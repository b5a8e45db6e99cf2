//! What a node can tell people: whom it believes in, how near the responsiveness property is to
//! breaking, and what crashes cost.

use quorate_core::{Fact, Health, Hurdle, NodeId, NodeSet, Outlook, Seat};

use super::detect::Detector;
use super::join::Membership;
use super::pool::Reclaim;
use super::weighted::AskedPhase;
use super::{Warnings, Weighted};

impl Weighted {
    /// What the operator should know now (broadcast spec E9, E9b). That something was the matter
    /// earlier is counted, and no alarm.
    pub fn warnings(&self, seat: &Seat<'_, Self>) -> Warnings {
        let most = seat.pool.crashes_max;
        // Where suspects are never counted out, a suspect that is heard again does no harm, and the
        // suspicion is forgotten only when it restarts. A node that was expelled has to come back
        // first.
        let is_unheard =
            || self.crashed().contains(seat.me) && self.heard_by(seat, seat.me) <= most;
        let is_expelled = self.is_expelled(seat) || self.expulsions > 0 && !self.is_member();
        let has_suspects =
            seat.pool.reclaim != Reclaim::Never && self.crashed().len() > most as usize;
        Warnings {
            falsely_suspected: is_expelled || is_unheard(),
            too_many_crashed: has_suspects || self.is_overdue(seat),
        }
    }

    /// How often this node was taken for crashed, as far as it heard. Where nothing follows from
    /// it, a second time is not told from the first.
    pub fn false_suspicions(&self, seat: &Seat<'_, Self>) -> u32 {
        self.expulsions.saturating_add(self.crashed().contains(seat.me).into())
    }

    /// Whether the latest query should have ended long ago: more than f nodes do not answer.
    fn is_overdue(&self, seat: &Seat<'_, Self>) -> bool {
        let waits = seat.now.since(self.detector.sent);
        !self.detector.is_done() && seat.pool.probe.is_some_and(|pace| waits > pace * 2)
    }

    /// Who does not answer and is counted as using all that a node may: suspects, and if too many
    /// are silent for anybody to be suspected, all of them.
    fn silent(&self, seat: &Seat<'_, Self>) -> NodeSet {
        let Detector { known, .. } = &self.detector;
        let missing = self.detector.missing().difference(self.counted_out());
        if self.is_overdue(seat) {
            return missing;
        }
        missing.intersection(self.crashed()).intersection(&known.unheard)
    }

    /// How many units of the pool nobody can use, because nodes that do not answer are counted as
    /// using them.
    pub fn units_lost(&self, seat: &Seat<'_, Self>) -> u32 {
        let lost = self.silent(seat).len() as u64 * u64::from(seat.pool.node_units_max);
        u32::try_from(lost).unwrap_or(u32::MAX).min(seat.pool.units)
    }

    /// How many nodes, this one included, had heard of a node in their last query when they
    /// answered ours, or have not answered. With f or fewer the node will be taken for crashed:
    /// near that, what detection rests on is about to break (broadcast spec 7.1).
    pub fn heard_by(&self, seat: &Seat<'_, Self>, node: NodeId) -> u32 {
        let hears = |peer: NodeId| match self.detector.answer(peer) {
            _ if peer == seat.me => !self.detector.known.unheard.contains(node),
            Some(said) => !said.unheard.contains(node),
            None => true,
        };
        (0..seat.pool.nodes).map(NodeId).filter(|&peer| hears(peer)).count() as u32
    }

    pub(super) fn condition(&self, seat: &Seat<'_, Self>) -> Health {
        let Warnings { falsely_suspected, too_many_crashed } = self.warnings(seat);
        let counts_out = seat.pool.reclaim != Reclaim::Never;
        let mut crashed = self.crashed().clone();
        crashed.remove(seat.me);
        Health {
            joining: match &self.membership {
                Membership::Member => None,
                Membership::Joining(awaited) => Some(awaited.clone()),
                Membership::Grace | Membership::LettingGo | Membership::Out => Some(NodeSet::new()),
            },
            in_grace: self.membership == Membership::Grace,
            crashed,
            silent: self.silent(seat),
            units_lost: self.units_lost(seat),
            counted_out: counts_out.then(|| self.counted_out().clone()),
            falsely_suspected,
            too_many_crashed,
            ..Health::default()
        }
    }

    /// What its own detector says counts beside what the driver believes.
    pub(super) fn prospect(&self, seat: &Seat<'_, Self>, away: &NodeSet) -> Outlook {
        let health = self.condition(seat);
        if health.in_grace {
            return Outlook::nothing(Hurdle::Grace([seat.me].into_iter().collect()));
        }
        if let Some(awaited) = health.joining {
            return Outlook::nothing(Hurdle::Joining(awaited));
        }
        // Until somebody is counted out its units are lost, also where that will be soon.
        let silent = away.union(&health.silent).difference(self.counted_out());
        seat.pool.outlook(&silent, seat.pool.is_leased() && health.too_many_crashed)
    }

    pub(super) fn show_facts(&self, seat: &Seat<'_, Self>, show: &mut dyn FnMut(Fact)) {
        let health = self.condition(seat);
        show(Fact::gauge("falsely_suspected", health.falsely_suspected));
        show(Fact::gauge("too_many_crashed", health.too_many_crashed));
        show(Fact::gauge("joining", health.joining.is_some()));
        show(Fact::counter("false_suspicions", self.false_suspicions(seat)));
        show(Fact::counter("expulsions", self.expulsions));
        show(Fact::gauge("crashes_max", seat.pool.crashes_max));
        show(Fact::gauge("units_lost", health.units_lost));
        show(Fact::gauge("units_reclaimed", self.reclaimed()));
        let waits = self.asked.iter().find_map(|asked| match &asked.standing {
            AskedPhase::Waiting(tally) => Some(tally),
            AskedPhase::Held { .. } | AskedPhase::Lost => None,
        });
        for peer in seat.pool.peers(seat.me) {
            if let Membership::Joining(awaited) = &self.membership {
                show(Fact::gauge("awaited", awaited.contains(peer)).about(peer));
            }
            show(Fact::gauge("crashed", health.crashed.contains(peer)).about(peer));
            if let Some(out) = &health.counted_out {
                show(Fact::gauge("counted_out", out.contains(peer)).about(peer));
            }
            let answered = self.detector.query.is_some() && !self.detector.missing().contains(peer);
            show(Fact::gauge("answered", answered).about(peer));
            show(Fact::gauge("silent", health.silent.contains(peer)).about(peer));
            show(Fact::gauge("heard_by", self.heard_by(seat, peer)).about(peer));
            // What the peer may use ahead of this node's oldest request; not known if no request
            // waits.
            if let Some(tally) = waits {
                show(Fact::gauge("units_ahead", tally.used(peer)).about(peer));
            }
        }
    }
}
