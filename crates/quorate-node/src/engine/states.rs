//! What begins and what ends in how seats are: one look a heartbeat, a line in the log and in the
//! pool's history for each change.

use std::collections::{BTreeMap, BTreeSet};

use quorate_core::{Health, Moment, NodeId, NodeSet};
use quorate_wire::glance::{Record, What};

use super::Engine;
use super::pools::Pool;
use super::readiness::LOOKED_AT;
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
    GrantsNothing,
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
            State::GrantsNothing => ("it grants nothing", "it grants again", None),
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
        // A node that goes away can be the end of a thousand pools: said once of all.
        let mut news: BTreeMap<(What, String), Vec<usize>> = BTreeMap::new();
        let away = self.suspects();
        for _ in 0..self.pools.len().min(AT_ONCE) {
            let seat = self.next_look % self.pools.len();
            self.next_look = seat + 1;
            if self.pools[seat].stopped().is_some() || self.pools[seat].def.deleted {
                continue;
            }
            let pool = &self.pools[seat];
            let mut states = states(&pool.seat.health(now));
            let outlook = self.outlook_of(pool, &away, now);
            // A seat that has just begun may not have heard of those on whom it depends: what lasts
            // from one look to the next is an outage.
            let stalled = outlook.is_none_or(|outlook| outlook.sizes.is_none());
            if std::mem::replace(&mut self.pools[seat].stalled, stalled) && stalled {
                states.insert(State::GrantsNothing);
            }
            match stalled {
                true => self.stalled.insert(seat),
                false => self.stalled.remove(&seat),
            };
            let before = std::mem::replace(&mut self.pools[seat].states, states.clone());
            for ended in before.difference(&states) {
                let (_, words, about) = ended.words();
                news.entry((What::Cleared, self.words(words, about))).or_default().push(seat);
            }
            for begun in states.difference(&before) {
                let (words, _, about) = begun.words();
                let mut text = self.words(words, about);
                if *begun == State::GrantsNothing {
                    let grants = self.grants_view(&self.pools[seat], &away, now);
                    let why = grants.hindrance.map(|why| format!(": {}", why.summary));
                    text.push_str(&why.unwrap_or_default());
                }
                news.entry((What::Warned, text)).or_default().push(seat);
            }
        }
        for ((what, text), seats) in news {
            self.tell_news(what, &text, &seats);
        }
    }

    pub(super) fn tell_news(&mut self, what: What, text: &str, seats: &[usize]) {
        for seat in seats {
            let pool = &self.pools[*seat].name;
            match what {
                What::Cleared | What::Seated | What::Amended => tracing::info!(%pool, "{text}"),
                _ => tracing::warn!(%pool, "{text}"),
            }
        }
        let records = seats.iter().map(|seat| (*seat, self.state_record(*seat, what, text)));
        let records = records.collect();
        self.history.note_together(records);
    }

    fn words(&self, words: &str, about: Option<NodeId>) -> String {
        words.replace("{}", about.map_or("", |peer| self.name_of(peer)))
    }

    fn state_record(&self, seat: usize, what: What, text: &str) -> Record {
        Record {
            at_ms: history::now_ms(),
            what,
            pool: self.pools[seat].name.to_string(),
            claim: (0, 0),
            units: 0,
            took_ms: 0,
            who: String::new(),
            text: text.to_owned(),
            times: 1,
            more_pools: 0,
            others: Vec::new(),
        }
    }

    /// The pools in which this node does not take part because it waits for others, and for whom.
    pub(super) fn unjoined(&self, now: Moment) -> Vec<String> {
        let awaited = |pool: &Pool| {
            let awaited = pool.seat.health(now).joining.filter(|nodes| !nodes.is_empty())?;
            let nodes: Vec<&str> = awaited.iter().map(|peer| self.name_of(peer)).collect();
            Some(format!("pool {} waits for {}", pool.name, nodes.join(", ")))
        };
        self.pools.iter().take(LOOKED_AT).filter_map(awaited).collect()
    }
}
