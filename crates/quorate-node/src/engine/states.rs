//! What begins and what ends in how seats are: one look a heartbeat, a line in the log and in the
//! pool's history for each change.

use std::collections::BTreeSet;

use quorate_core::{Health, Moment, NodeId, NodeSet};
use quorate_wire::glance::{Record, What};

use super::Engine;
use super::pools::Pool;
use crate::history;

/// Pools looked at in one heartbeat: where there are more, each has its turn and nobody waits.
const AT_ONCE: usize = 1000;

/// What an operator should know of a seat while it lasts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum State {
    Crashed(NodeId),
    Silent(NodeId),
    CountedOut(NodeId),
    Joining,
    Awaited(NodeId),
    FalselySuspected,
    TooManyCrashed,
}

impl State {
    /// What is said when it begins, what when it ends, and about which peer.
    fn words(self) -> (&'static str, &'static str, Option<NodeId>) {
        match self {
            State::Crashed(peer) => ("{} seems to have crashed", "{} is back", Some(peer)),
            State::Silent(peer) => (
                "{} does not answer and is taken to use all that a node may",
                "{} answers again",
                Some(peer),
            ),
            State::CountedOut(peer) => (
                "{} is counted out: others may have what it had",
                "{} is counted again",
                Some(peer),
            ),
            State::Joining => ("it does not take part yet", "it takes part", None),
            State::Awaited(peer) => {
                ("it takes part when {} has answered", "{} is not waited for any more", Some(peer))
            }
            State::FalselySuspected => {
                ("it is taken for crashed while it runs", "it is heard again", None)
            }
            State::TooManyCrashed => (
                "more nodes are away than crashes_max allows for",
                "no more nodes are away than crashes_max allows for",
                None,
            ),
        }
    }
}

fn states(health: &Health) -> BTreeSet<State> {
    let mut states = BTreeSet::new();
    let mut each = |nodes: &NodeSet, state: fn(NodeId) -> State| {
        states.extend(nodes.iter().map(state));
    };
    each(&health.crashed, State::Crashed);
    each(&health.silent, State::Silent);
    if let Some(out) = &health.counted_out {
        each(out, State::CountedOut);
    }
    if let Some(awaited) = &health.joining {
        each(awaited, State::Awaited);
        states.insert(State::Joining);
    }
    if health.falsely_suspected {
        states.insert(State::FalselySuspected);
    }
    if health.too_many_crashed {
        states.insert(State::TooManyCrashed);
    }
    states
}

impl Engine {
    pub(super) fn look_at_states(&mut self, now: Moment) {
        for _ in 0..self.pools.len().min(AT_ONCE) {
            let seat = self.next_look % self.pools.len();
            self.next_look = seat + 1;
            if self.pools[seat].stopped().is_some() {
                continue;
            }
            let states = states(&self.pools[seat].seat.health(now));
            let before = std::mem::replace(&mut self.pools[seat].states, states.clone());
            for ended in before.difference(&states) {
                let (_, words, about) = ended.words();
                let text = self.words(words, about);
                tracing::info!(pool = %self.pools[seat].name, "{text}");
                self.note_state(seat, What::Cleared, text);
            }
            for begun in states.difference(&before) {
                let (words, _, about) = begun.words();
                let text = self.words(words, about);
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
            times: 1,
        };
        self.history.note(seat, record);
    }

    /// The pools in which this node does not take part because it waits for others, and for whom.
    pub(super) fn unjoined(&self, now: Moment) -> Vec<String> {
        let awaited = |pool: &Pool| {
            let awaited = pool.seat.health(now).joining.filter(|nodes| !nodes.is_empty())?;
            let nodes: Vec<&str> = awaited.iter().map(|peer| self.name_of(peer)).collect();
            Some(format!("pool {} waits for {}", pool.name, nodes.join(", ")))
        };
        self.pools.iter().filter_map(awaited).collect()
    }
}
