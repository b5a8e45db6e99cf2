//! What begins and what ends in what seats tell about themselves: one look a heartbeat, a line in
//! the log and in the pool's history for each change.

use std::collections::BTreeSet;

use quorate_core::{Fact, Moment, NodeId};
use quorate_wire::glance::{Record, What};

use super::Engine;
use super::pools::Pool;
use crate::history;

/// Pools looked at in one heartbeat: where there are more, each has its turn and nobody waits.
const AT_ONCE: usize = 1000;

/// A state that is watched, by its place in [`WATCHED`], and the peer that it is about.
pub(super) type State = (usize, Option<NodeId>);

/// Which facts are states, what is said when one begins, and what when it ends. `{}` is the peer.
const WATCHED: &[(&str, &str, &str)] = &[
    ("crashed", "{} seems to have crashed", "{} is back"),
    ("silent", "{} does not answer and is taken to use all that a node may", "{} answers again"),
    ("counted_out", "{} is counted out: others may have what it had", "{} is counted again"),
    ("joining", "it does not take part yet", "it takes part"),
    ("awaited", "it takes part when {} has answered", "{} is not waited for any more"),
    ("falsely_suspected", "it is taken for crashed while it runs", "it is heard again"),
    (
        "too_many_crashed",
        "more nodes are away than crashes_max allows for",
        "no more nodes are away than crashes_max allows for",
    ),
];

fn state(fact: &Fact) -> Option<State> {
    let place = WATCHED.iter().position(|(name, ..)| *name == fact.name)?;
    (fact.value > 0).then_some((place, fact.about))
}

impl Engine {
    pub(super) fn look_at_states(&mut self, now: Moment) {
        for _ in 0..self.pools.len().min(AT_ONCE) {
            let seat = self.next_look % self.pools.len();
            self.next_look = seat + 1;
            let pool = &self.pools[seat];
            if !pool.def.protocol.about.tells_crashes || pool.stopped().is_some() {
                continue;
            }
            let mut states = BTreeSet::new();
            self.pools[seat].seat.facts(now, &mut |fact| states.extend(state(&fact)));
            let before = std::mem::replace(&mut self.pools[seat].states, states.clone());
            for ended in before.difference(&states) {
                let text = self.words(WATCHED[ended.0].2, ended.1);
                tracing::info!(pool = %self.pools[seat].name, "{text}");
                self.note_state(seat, What::Cleared, text);
            }
            for begun in states.difference(&before) {
                let text = self.words(WATCHED[begun.0].1, begun.1);
                tracing::warn!(pool = %self.pools[seat].name, "{text}");
                self.note_state(seat, What::Warned, text);
            }
        }
    }

    fn words(&self, words: &str, about: Option<NodeId>) -> String {
        words.replace("{}", about.map_or("", |peer| self.name_of(peer)))
    }

    fn note_state(&mut self, seat: usize, what: What, text: String) {
        let Pool { name, .. } = &self.pools[seat];
        let record = Record {
            at_ms: history::now_ms(),
            what,
            pool: name.to_string(),
            claim: (0, 0),
            units: 0,
            took_ms: 0,
            who: String::new(),
            text,
        };
        self.history.note(seat, record);
    }

    /// The pools in which this node does not take part because it waits for others, and for whom.
    pub(super) fn unjoined(&self, now: Moment) -> Vec<String> {
        let awaited = |pool: &Pool| {
            let mut awaited = Vec::new();
            pool.seat.facts(now, &mut |fact| {
                if let ("awaited", 1.., Some(peer)) = (fact.name, fact.value, fact.about) {
                    awaited.push(self.name_of(peer).to_owned());
                }
            });
            let nodes = awaited.join(", ");
            (!awaited.is_empty()).then(|| format!("pool {} waits for {nodes}", pool.name))
        };
        let told = self.pools.iter().filter(|pool| pool.def.protocol.about.tells_crashes);
        told.filter_map(awaited).collect()
    }
}
