//! What a node can tell people: whom it believes in, how near the responsiveness property is to
//! breaking, and what crashes cost.

use quorate_core::{Fact, NodeId, Seat};

use super::join::Membership;
use super::pool::Reclaim;
use super::weighted::Standing;
use super::{Warnings, Weighted};

impl Weighted {
    /// How many units of the pool nobody can use, because nodes that are believed to have crashed,
    /// and do not answer, are still counted as using them.
    pub fn units_lost(&self, seat: &Seat<'_, Self>) -> u32 {
        let silent = self.crashed().intersection(self.detector.missing());
        let counted = silent.difference(self.counted_out());
        let lost = counted.len() as u64 * u64::from(seat.pool.node_units_max);
        u32::try_from(lost).unwrap_or(u32::MAX).min(seat.pool.units)
    }

    /// How many nodes, this one included, had heard of a node in their last query when they
    /// answered ours, or have not answered. With f or fewer the node will be taken for crashed:
    /// near that, what detection rests on is about to break (spec 7.1).
    pub fn heard_by(&self, seat: &Seat<'_, Self>, node: NodeId) -> u32 {
        let hears = |peer: NodeId| match self.detector.answer(peer) {
            _ if peer == seat.me => !self.detector.known.unheard.contains(node),
            Some(said) => !said.unheard.contains(node),
            None => true,
        };
        (0..seat.pool.nodes).map(NodeId).filter(|&peer| hears(peer)).count() as u32
    }

    pub(super) fn show_facts(&self, seat: &Seat<'_, Self>, show: &mut dyn FnMut(Fact)) {
        let Warnings { falsely_suspected, too_many_crashed } = self.warnings(seat);
        show(Fact::gauge("falsely_suspected", falsely_suspected));
        show(Fact::gauge("too_many_crashed", too_many_crashed));
        show(Fact::gauge("joining", !self.is_member()));
        show(Fact::counter("expulsions", self.expulsions));
        show(Fact::gauge("units_lost", self.units_lost(seat)));
        show(Fact::gauge("units_reclaimed", self.reclaimed()));
        let waits = self.asked.iter().find_map(|asked| match &asked.standing {
            Standing::Waiting(tally) => Some(tally),
            Standing::Held { .. } | Standing::Lost => None,
        });
        for peer in seat.pool.peers(seat.me) {
            if let Membership::Joining(awaited) = &self.membership {
                show(Fact::gauge("awaited", awaited.contains(peer)).about(peer));
            }
            show(Fact::gauge("crashed", self.crashed().contains(peer)).about(peer));
            if seat.pool.reclaim != Reclaim::Never {
                show(Fact::gauge("counted_out", self.counting.is_out(peer)).about(peer));
            }
            let answered = self.detector.query.is_some() && !self.detector.missing().contains(peer);
            show(Fact::gauge("answered", answered).about(peer));
            show(Fact::gauge("heard_by", self.heard_by(seat, peer)).about(peer));
            // What it may use ahead of our oldest request; nothing is known without one.
            if let Some(tally) = waits {
                show(Fact::gauge("units_ahead", tally.used(peer)).about(peer));
            }
        }
    }
}
