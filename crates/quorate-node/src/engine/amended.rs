//! Pools that the charter names and that are changed while they run: each node applies that at its
//! own moment, the protocol by an event, and the engine by judging claims by what the pool is now.

use std::sync::Arc;

use quorate_api::ClaimState;
use quorate_charter::Group;
use quorate_core::{ClaimId, Event, Refusal};
use quorate_wire::glance::What;

use super::Engine;
use crate::config::{Added, PoolDef};
use crate::ledger::{State, Terms};
use crate::seat::Amended;

impl Engine {
    /// Pools that were changed are others from now on. One that nobody uses here is read when
    /// somebody does.
    pub(super) fn on_amended(&mut self, changed: &[String]) {
        for name in changed {
            let Some(&seat) = self.by_name.get(name.as_str()) else { continue };
            // The files may have a pool of this name, and then that one counts.
            if let Some(added) = self.config.added(name) {
                self.amend(seat, &added);
            }
        }
    }

    fn amend(&mut self, seat: usize, added: &Added) {
        let (members, def) = (self.config.members.len(), Arc::clone(&added.def));
        let pool = &mut self.pools[seat];
        let before = std::mem::replace(&mut pool.def, Arc::clone(&def));
        pool.terms = Terms::of(&def);
        self.learn_decider(seat);
        let pool = &self.pools[seat];
        let (pool, edition) = (def.protocol.rules.pool(&pool.name, members), added.edition);
        let amended = Amended { pool, edition, grace: def.grace };
        self.refuse_unfit(seat, &def);
        // What is worth a renewal is judged by what it is now.
        self.pools[seat].ledger.shorten(def.lease.length());
        if let Err(error) = self.act(seat, |seat, now, effects| seat.amend(now, amended, effects)) {
            tracing::warn!(pool = %self.pools[seat].name, %error, "it cannot be changed here");
        }
        self.decides_anew(seat);
        // Homes that heard of it before the node that decides ask that in vain.
        if let Some(tenure) = self.charter.tenure(Group::of(&self.pools[seat].name)) {
            self.charter.asks_again(seat, tenure.node);
        }
        self.tell_news(What::Amended, &difference(&before, &def), &[seat]);
    }

    /// Claims that wait, and that nobody could make any more.
    fn refuse_unfit(&mut self, seat: usize, def: &PoolDef) {
        let sizes = def.claim_min..=def.claim_max.min(def.units);
        let unfit: Vec<ClaimId> = self.pools[seat]
            .ledger
            .all()
            .filter(|(_, claimed)| matches!(claimed.state, State::Waiting))
            .filter(|(_, claimed)| !sizes.contains(&claimed.want.units()))
            .map(|(id, _)| *id)
            .collect();
        let why = match def.deleted {
            true => "the pool was deleted".to_owned(),
            false => format!(
                "the pool was changed: claims are for {} to {} units now",
                sizes.start(),
                sizes.end()
            ),
        };
        for claim in unfit {
            self.step(seat, Event::Withdraw(claim));
            if let Some(claimed) = self.pools[seat].ledger.get_mut(&claim) {
                claimed.refusal = Some(Refusal::NeverEnough);
            }
            let now = self.now();
            self.over(seat, claim, ClaimState::Refused, why.clone(), now);
        }
    }
}

/// What people are told of a change, as far as it is of interest to those who use the pool.
fn difference(before: &PoolDef, after: &PoolDef) -> String {
    match (before.deleted, after.deleted) {
        (false, true) => return "the pool was deleted".to_owned(),
        (true, false) => return format!("the pool was made again, with {} units", after.units),
        _ => {}
    }
    let span = |def: &PoolDef| quorate_api::format_span(def.lease.length());
    let sizes = |def: &PoolDef| format!("{} to {}", def.claim_min, def.claim_max);
    let of = [
        ("units", before.units.to_string(), after.units.to_string()),
        ("lease", span(before), span(after)),
        ("claims", sizes(before), sizes(after)),
    ];
    let differs = of.iter().filter(|(_, was, is)| was != is);
    let words: Vec<String> =
        differs.map(|(what, was, is)| format!("{what} {is} (before: {was})")).collect();
    match &words[..] {
        [] => "the pool was changed".to_owned(),
        words => format!("the pool was changed: {}", words.join(", ")),
    }
}
