//! Fewer states for the same histories, as in broadcast spec 5.
//!
//! * *What no later step reads is cleared*, in participants and in messages: the clock of who asks
//!   no more, answers to what is over, the beliefs of others that the receiver shares. Messages of
//!   which nothing is left are removed.
//! * *Who is spent answers at once.* A process that wants nothing any more answers every question
//!   alike, so that only the sum of the two delays matters, and the answer takes all of it. Two
//!   things could have happened before the question really came, and may happen to the answer on
//!   its way instead: the process crashes (`Lose`), or learns of a crash (`retold`). With one crash
//!   at most there is nothing between what it knew then and what it knows now; and no worlds are
//!   reduced this way in which somebody may be suspected falsely.

use quorate_check::Lookup;
use quorate_core::NodeId;

use super::every::{Cue, DEAD, Explored, Explorer, NODES_MAX, State};

/// What there is around a participant, as far as that makes something unread. Sets are bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Around {
    /// Whether it asks again, for units or for answers.
    pub(super) more: bool,
    /// Whether somebody may still crash.
    pub(super) may_crash: bool,
    dead: u8,
    silent: u8,
}

impl Around {
    pub(super) fn is_dead(&self, node: NodeId) -> bool {
        self.dead & 1 << node.index() != 0
    }

    pub(super) fn dead(&self) -> impl Iterator<Item = NodeId> {
        members(self.dead)
    }

    /// The dead of whom nothing is on its way here any more.
    pub(super) fn silent(&self) -> impl Iterator<Item = NodeId> {
        members(self.silent)
    }
}

fn members(bits: u8) -> impl Iterator<Item = NodeId> {
    (0..NODES_MAX).filter(move |place| bits & 1 << place != 0).map(NodeId::from)
}

/// What was worked out before.
#[derive(Default)]
pub(super) struct Remembered {
    cleared: Lookup<(u32, Around), u32>,
    wanted: Lookup<(u32, Around, NodeId, bool, u32), u32>,
}

impl<P: Explored> Explorer<'_, P> {
    /// Leaves of a state only what is read.
    pub(super) fn settle(&mut self, state: &mut State) {
        let mut before = None;
        while self.scope.reduced && before.as_ref() != Some(state) {
            before = Some(state.clone());
            for to in (0..self.nodes).map(NodeId::from) {
                if state.nodes[to.index()].0 != DEAD {
                    self.clear(state, to);
                    self.trim_links(state, to);
                    self.answer_at_once(state, to);
                }
            }
        }
    }

    fn around(&self, state: &State, node: NodeId) -> Around {
        let mut around = Around {
            more: self.asks_again(state, node),
            may_crash: state.crashes > 0,
            dead: 0,
            silent: 0,
        };
        for other in (0..self.nodes).map(NodeId::from) {
            if state.nodes[other.index()].0 == DEAD {
                let is_silent = state.links[Self::link(other, node)] == self.nothing;
                around.dead |= 1 << other.index();
                around.silent |= u8::from(is_silent) << other.index();
            }
        }
        around
    }

    fn asks_again(&self, state: &State, node: NodeId) -> bool {
        state.nodes[node.index()].1 > 0 || state.probes > 0
    }

    fn clear(&mut self, state: &mut State, node: NodeId) {
        let around = self.around(state, node);
        let number = state.nodes[node.index()].0;
        let key = (number, around);
        state.nodes[node.index()].0 = match self.remembered.cleared.get(&key) {
            Some(&cleared) => cleared,
            None => {
                let cleared = self.participants.get(number).cleared(&around);
                let cleared = self.participants.keep(cleared);
                self.remembered.cleared.insert(key, cleared);
                cleared
            }
        };
    }

    fn trim_links(&mut self, state: &mut State, to: NodeId) {
        let around = self.around(state, to);
        let number = state.nodes[to.index()].0;
        for from in (0..self.nodes).map(NodeId::from) {
            let link = Self::link(from, to);
            let queue = state.links[link];
            if queue == self.nothing {
                continue;
            }
            let is_spent = self.is_spent(state, from);
            let key = (number, around, from, is_spent, queue);
            state.links[link] = match self.remembered.wanted.get(&key) {
                Some(&trimmed) => trimmed,
                None => {
                    let trimmed = self.trimmed(number, around, from, is_spent, queue);
                    self.remembered.wanted.insert(key, trimmed);
                    trimmed
                }
            };
        }
    }

    fn trimmed(
        &mut self,
        to: u32,
        around: Around,
        from: NodeId,
        is_spent: bool,
        queue: u32,
    ) -> u32 {
        let receiver = self.participants.get(to);
        let wanted = |&message: &u32| {
            let wanted = receiver.wanted(&around, from, is_spent, self.messages.get(message));
            wanted.map(|wanted| self.messages.keep(wanted))
        };
        let mut kept: Vec<u32> = self.queues.get(queue).iter().filter_map(wanted).collect();
        if !self.scope.ordered {
            kept.sort_unstable();
        }
        self.queues.keep(kept)
    }

    /// Whether a process lives, wants nothing and will never want anything again.
    pub(super) fn is_spent(&self, state: &State, node: NodeId) -> bool {
        let is_whole = !self.scope.heard_by.is_empty() || self.scope.requests.contains(&None);
        self.scope.reduced
            && is_whole
            && !self.asks_again(state, node)
            && self.at(state, node).is_some_and(P::is_idle)
    }

    /// Who is spent answers what is no news to it.
    fn answer_at_once(&mut self, state: &mut State, node: NodeId) {
        if !self.is_spent(state, node) {
            return;
        }
        for from in (0..self.nodes).map(NodeId::from) {
            loop {
                let queue = self.queues.get(state.links[Self::link(from, node)]);
                let reach = if self.scope.ordered { queue.len().min(1) } else { queue.len() };
                let idle = self.at(state, node).expect("only the living answer");
                let is_question =
                    |&place: &usize| idle.is_mere_question(self.messages.get(queue[place]));
                let Some(place) = (0..reach).find(is_question) else { break };
                let message = self.take_off(state, from, node, place);
                self.step(state, node, Cue::Hear(from, message));
            }
        }
    }

    /// Whether an answer of one that is spent would say more if it were given now.
    pub(super) fn may_be_retold(
        &self,
        state: &State,
        from: NodeId,
        to: NodeId,
        message: u32,
    ) -> bool {
        if !self.is_spent(state, from) {
            return false;
        }
        let (sender, receiver) = (self.at(state, from), self.at(state, to));
        let (sender, receiver) = (sender.expect("is spent"), receiver.expect("hears"));
        let message = self.messages.get(message);
        let (around, retold) = (self.around(state, to), sender.retold(message));
        receiver.wanted(&around, from, true, &retold).as_ref() != Some(message)
    }
}
