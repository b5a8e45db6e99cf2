//! What a seat tells people about the ring, and the root about its healing.

use quorate_core::{Fact, Health, Hurdle, NodeSet, Outlook, Protocol, Remade, Seat};

use super::Ring;
use super::place::{Job, Place, Seated};
use super::tokens::Tokens;

impl Ring {
    /// Only the root counts, and knows whom it left out.
    pub(super) fn condition(&self, seat: &Seat<'_, Ring>) -> Health {
        let Some(watch) = &self.watch else { return Health::default() };
        let units = seat.pool.terms().units;
        let counted = watch.healed().counted.unwrap_or(units).min(units);
        let later = if watch.settling || self.blind { Remade::WhenStopped } else { Remade::Soon };
        Health {
            units_lost: units - counted,
            remade: (counted < units).then_some(later),
            counted_out: Some(self.tether.skipped.clone()),
            ..Health::default()
        }
    }

    pub(super) fn prospect(&self, seat: &Seat<'_, Ring>, away: &NodeSet) -> Outlook {
        let outlook = Ring::grants(seat.pool, away);
        if outlook.sizes.is_some() && self.places.iter().any(Place::is_barred) {
            return Outlook::nothing(Hurdle::CutOff);
        }
        let lost = self.condition(seat).units_lost;
        let lose = || Hurdle::UnitsLost(lost, self.tether.skipped.clone());
        outlook.up_to(seat.pool.terms().units - lost, lose)
    }

    /// Every node shows its own tokens. Their sum is the pool's, without the tokens on their way.
    pub(super) fn show_facts(&self, seat: &Seat<'_, Ring>, show: &mut dyn FnMut(Fact)) {
        let sum = |of: fn(&Place) -> u32| self.places.iter().map(of).sum::<u32>();
        let waiting = self.places.iter().filter(|p| matches!(p.job, Job::Waiting { .. })).count();
        show(Fact::gauge("tokens_in_use", sum(|place| place.station().in_use())));
        show(Fact::gauge("tokens_held", sum(held)));
        show(Fact::gauge("claims_waiting", (waiting + self.waiting.len()) as u64));
        show(Fact::counter("tokens_destroyed", self.destroyed));
        show(Fact::gauge("blind", self.blind));
        if let Some(epoch) = self.tether.epoch {
            show(Fact::gauge("epoch_config", epoch.config));
            show(Fact::gauge("epoch_boot", epoch.boot));
            show(Fact::gauge("epoch_change", epoch.change));
        }
        let Some(watch) = &self.watch else {
            let licensed = self.places.iter().all(|place| !place.is_barred());
            return show(Fact::gauge("fenced", !licensed));
        };
        let units = seat.pool.terms().units;
        let healed = watch.healed();
        show(Fact::counter("tokens_created", healed.made));
        show(Fact::counter("kills", healed.kills));
        if let Some(counted) = healed.counted {
            show(Fact::gauge("tokens_counted", counted));
        }
        let right = healed.counted == Some(units) && !self.places[0].is_flushing();
        show(Fact::gauge("legitimate", right));
        show(Fact::gauge("traversals_missed", watch.misses));
        show(Fact::gauge("quarantine", watch.settling));
        for node in self.tether.skipped.iter() {
            show(Fact::gauge("left_out", true).about(node));
        }
    }
}

/// Tokens at a place that nobody uses.
fn held(place: &Place) -> u32 {
    let station = place.station();
    let held = if station.in_use() > 0 { 0 } else { station.held.len() };
    let stored = match &place.seated {
        Seated::Core(machine) => {
            let root = machine.root.as_ref();
            root.map_or(0, |root| root.collected.len() + root.left_over.len())
        }
        Seated::Train(machine) => {
            let root = machine.root.as_ref();
            machine.kept.len() + root.map_or(0, |root| root.bag.len() + root.pool.len())
        }
    };
    held + stored
}
