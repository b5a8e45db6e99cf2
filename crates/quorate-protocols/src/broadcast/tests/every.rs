//! Every history of a small world, as in broadcast spec 5.
//!
//! The generic checker lets a client outlive its node and a node come back; here a process is its
//! client and a crash is for ever, as in the papers. And it must be possible to impose the
//! responsiveness property physically: an answer that would end a query is held back until those
//! have answered whom the asker always hears in time. Hence a world of its own for the checker's
//! search ([`quorate_check::walk`]): participants and messages numbered, every step of a
//! participant taken once and remembered. Each process has finitely many requests, so that there
//! are no cycles and "nobody waits in a state without successors" is liveness.

use std::collections::BTreeSet;
use std::rc::Rc;

use quorate_check::{Lookup, Rules, Shelf, walk};
use quorate_core::{
    Claim, ClaimId, Effect, EffectOf, Event, NodeId, NodeSet, Outbox, Protocol, Start, Units,
};

use super::reduced::Remembered;
use super::script::seat;
use crate::broadcast::Pool;

pub(super) use super::reduced::Around;

/// What the explorer must see of a participant.
pub(super) trait Explored: Protocol<Pool = Pool> {
    /// Units held.
    fn held(&self) -> u32;
    /// Whether a claim waits.
    fn waits(&self) -> bool;
    /// If hearing this ends a query: who has not answered it then.
    fn ends_query(&self, _: &Pool, _: NodeId, _: &Self::Message) -> Option<NodeSet> {
        None
    }
    /// Who is believed to have crashed.
    fn suspects(&self) -> NodeSet {
        NodeSet::new()
    }
    /// Units held only because somebody was counted out.
    fn reclaimed(&self) -> u32 {
        0
    }
    /// Whether nothing is left over when all is quiet.
    fn is_quiet(&self) -> bool {
        true
    }
    /// The alarm that makes it ask whom it hears.
    fn probe() -> Option<Self::Alarm> {
        None
    }

    // What `reduced.rs` asks.

    /// The same participant without what no later step reads.
    fn cleared(&self, around: &Around) -> Self;
    /// What of a message is read, now or later; `None` if nothing. `is_spent`: its sender is.
    fn wanted(
        &self,
        around: &Around,
        from: NodeId,
        is_spent: bool,
        message: &Self::Message,
    ) -> Option<Self::Message>;
    /// Whether it has nothing, wants nothing and defers nobody.
    fn is_idle(&self) -> bool;
    /// Whether a message leaves one that is idle as it is, but for the answer.
    fn is_mere_question(&self, message: &Self::Message) -> bool;
    /// What an answer would say if it were given now.
    fn retold(&self, message: &Self::Message) -> Self::Message {
        message.clone()
    }
}

/// A world to exhaust.
#[derive(Clone)]
pub(super) struct Scope {
    pub(super) pool: Pool,
    /// Requests of each process; a process with `None` is dead from the start.
    pub(super) requests: Vec<Option<u8>>,
    /// Units of each request.
    pub(super) weights: Vec<u32>,
    pub(super) ordered: bool,
    /// Crashes at any point...
    pub(super) crashes: u8,
    /// ...of this process only; `None` for any.
    pub(super) crashing: Option<NodeId>,
    /// How often everybody makes a query of its own when somebody waits and nothing else happens.
    pub(super) probes: u8,
    /// For each process, who always hears it in time; empty imposes nothing.
    pub(super) heard_by: Vec<NodeSet>,
    /// Whether states are told apart only by what is still read (`reduced.rs`).
    pub(super) reduced: bool,
    /// Whether everything that could be seen is to be told.
    pub(super) views: bool,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) states: usize,
    /// Transitions into the critical section that exist only because a crash is known.
    pub(super) reclaimed: u64,
    pub(super) false_suspicions: u64,
    pub(super) violation: Option<(String, Vec<String>)>,
    /// If asked for: all that one saw who does not look inside.
    pub(super) views: BTreeSet<Vec<View>>,
}

/// What can be seen of a process that lives: its requests to come, units held, whether it waits,
/// and whom it suspects.
type View = Option<(u8, u32, bool, Vec<NodeId>)>;

/// One state: for each node the number of its participant and its requests left, or `DEAD` and
/// whether it was spent; the number of what is on its way on each link; crashes and probes left.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct State {
    pub(super) nodes: [(u32, u8); NODES_MAX],
    pub(super) links: [u32; NODES_MAX * NODES_MAX],
    pub(super) crashes: u8,
    pub(super) probes: u8,
}

impl State {
    fn words(&self) -> Vec<u32> {
        let nodes = self.nodes.iter().flat_map(|&(number, left)| [number, left.into()]);
        let budget = u32::from_le_bytes([self.crashes, self.probes, 0, 0]);
        nodes.chain(self.links).chain([budget]).collect()
    }

    fn of(words: &[u32]) -> State {
        let (nodes, rest) = words.split_at(2 * NODES_MAX);
        let (links, budget) = rest.split_at(NODES_MAX * NODES_MAX);
        let [crashes, probes, ..] = budget[0].to_le_bytes();
        let node = |place: usize| (nodes[2 * place], nodes[2 * place + 1] as u8);
        let links = links.try_into().expect("as many as there were");
        State { nodes: [0, 1, 2, 3].map(node), links, crashes, probes }
    }
}

pub(super) const NODES_MAX: usize = 4;
pub(super) const DEAD: u32 = u32::MAX;

/// One thing that happens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Happening {
    Request(NodeId),
    Release(NodeId),
    Crash(NodeId),
    /// `retold`: with what its sender knows by now.
    Deliver {
        from: NodeId,
        to: NodeId,
        place: usize,
        retold: bool,
    },
    /// Everybody makes a query of its own.
    Probe,
    /// The sender crashed before it answered.
    Lose {
        from: NodeId,
        to: NodeId,
        place: usize,
    },
}

/// What a participant does when something happens to it.
#[derive(Clone)]
struct Outcome {
    after: u32,
    sent: Rc<[(NodeId, u32)]>,
    is_reclaimed: bool,
}

/// What happens to a participant.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Cue {
    /// Its client's next move.
    Client,
    Hear(NodeId, u32),
    Probe,
}

pub(super) struct Explorer<'a, P: Explored> {
    pub(super) scope: &'a Scope,
    pub(super) nodes: usize,
    pub(super) participants: Shelf<P, ()>,
    pub(super) messages: Shelf<P::Message, ()>,
    pub(super) queues: Shelf<Vec<u32>, ()>,
    /// The number of an empty queue.
    pub(super) nothing: u32,
    /// By who, in which state, and what happened to it.
    steps: Lookup<(NodeId, u32, Cue), Outcome>,
    pub(super) remembered: Remembered,
    found: Found,
}

/// Explores everything.
pub(super) fn every_history<P: Explored>(scope: &Scope) -> Found {
    let mut queues = Shelf::new();
    let nothing = queues.keep(Vec::new());
    let mut explorer = Explorer::<P> {
        scope,
        nodes: scope.requests.len(),
        participants: Shelf::new(),
        messages: Shelf::new(),
        queues,
        nothing,
        steps: Lookup::default(),
        remembered: Remembered::default(),
        found: Found::default(),
    };
    let walk = walk(&mut explorer);
    let violation = walk.wrong.map(|(what, way)| explorer.told(what, way));
    Found { states: walk.states, violation, ..explorer.found }
}

impl<P: Explored> Rules for Explorer<'_, P> {
    type Happening = Happening;

    fn first(&mut self) -> Vec<u32> {
        self.begin().words()
    }

    fn happenings(&mut self, state: &[u32]) -> Vec<Happening> {
        self.possible(&State::of(state))
    }

    fn after(&mut self, state: &[u32], happening: Happening) -> Result<Vec<u32>, String> {
        Ok(self.made_to(&State::of(state), happening).words())
    }

    /// Laws about one state.
    fn judge(&mut self, state: &[u32]) -> Option<String> {
        self.wrong_in(&State::of(state))
    }

    /// Laws about a state after which nothing happens.
    fn judge_end(&mut self, state: &[u32]) -> Option<String> {
        self.wrong_at_the_end_in(&State::of(state))
    }
}

impl<P: Explored> Explorer<'_, P> {
    fn begin(&mut self) -> State {
        let mut nodes = [(DEAD, 0); NODES_MAX];
        for (node, requests) in self.scope.requests.iter().enumerate() {
            let mut out = Outbox::new();
            let boot = P::boot(&seat(&self.scope.pool, node.into()), Start::First, &mut out);
            let is_alarm = |effect: &EffectOf<P>| matches!(effect, Effect::Arm { .. });
            assert!(out.effects().all(is_alarm), "nothing is said at first");
            if let Some(requests) = *requests {
                nodes[node] = (self.participants.keep(boot), requests);
            }
        }
        let links = [self.nothing; NODES_MAX * NODES_MAX];
        let Scope { crashes, probes, .. } = *self.scope;
        let mut first = State { nodes, links, crashes, probes };
        self.settle(&mut first);
        first
    }

    pub(super) fn at<'s>(&'s self, state: &State, node: NodeId) -> Option<&'s P> {
        let number = state.nodes[node.index()].0;
        (number != DEAD).then(|| self.participants.get(number))
    }

    fn possible(&self, state: &State) -> Vec<Happening> {
        let mut all = Vec::new();
        for node in (0..self.nodes).map(NodeId::from) {
            let Some(participant) = self.at(state, node) else { continue };
            if participant.held() > 0 {
                all.push(Happening::Release(node));
            } else if !participant.waits() && state.nodes[node.index()].1 > 0 {
                all.push(Happening::Request(node));
            }
            if state.crashes > 0 && self.scope.crashing.is_none_or(|only| only == node) {
                all.push(Happening::Crash(node));
            }
            for from in (0..self.nodes).map(NodeId::from) {
                let queue = self.queues.get(state.links[Self::link(from, node)]);
                let reach = if self.scope.ordered { queue.len().min(1) } else { queue.len() };
                for place in 0..reach {
                    let repeated = place > 0 && queue[place] == queue[place - 1];
                    if repeated {
                        continue;
                    }
                    if self.may_arrive(state, from, node, queue[place]) {
                        all.push(Happening::Deliver { from, to: node, place, retold: false });
                        if self.may_be_retold(state, from, node, queue[place]) {
                            all.push(Happening::Deliver { from, to: node, place, retold: true });
                        }
                    }
                }
                if state.nodes[from.index()] == (DEAD, 1) {
                    // The youngest that are on their way were perhaps never sent.
                    let places = if self.scope.ordered { queue.len().max(1) - 1 } else { 0 };
                    let lose = |place| Happening::Lose { from, to: node, place };
                    all.extend((places..queue.len()).map(lose));
                }
            }
        }
        let waits = |node: NodeId| self.at(state, node).is_some_and(P::waits);
        if all.is_empty() && state.probes > 0 && (0..self.nodes).map(NodeId::from).any(waits) {
            all.push(Happening::Probe);
        }
        all
    }

    pub(super) fn link(from: NodeId, to: NodeId) -> usize {
        from.index() * NODES_MAX + to.index()
    }

    /// The responsiveness property, imposed: nobody's query ends without those whom it always hears
    /// in time, as long as they live.
    fn may_arrive(&self, state: &State, from: NodeId, to: NodeId, message: u32) -> bool {
        if self.scope.heard_by.is_empty() {
            return true;
        }
        let participant = self.at(state, to).expect("only the living hear");
        let message = self.messages.get(message);
        let Some(missing) = participant.ends_query(&self.scope.pool, from, message) else {
            return true;
        };
        let is_due = |late: NodeId| {
            self.scope.heard_by[late.index()].contains(to) && self.at(state, late).is_some()
        };
        !missing.iter().any(is_due)
    }

    fn made_to(&mut self, state: &State, happening: Happening) -> State {
        let mut next = state.clone();
        match happening {
            Happening::Crash(node) => {
                next.crashes -= 1;
                next.nodes[node.index()] = (DEAD, u8::from(self.is_spent(state, node)));
                for from in (0..self.nodes).map(NodeId::from) {
                    next.links[Self::link(from, node)] = self.nothing;
                }
            }
            Happening::Request(node) => {
                self.step(&mut next, node, Cue::Client);
                next.nodes[node.index()].1 -= 1;
            }
            Happening::Release(node) => self.step(&mut next, node, Cue::Client),
            Happening::Deliver { from, to, place, retold } => {
                let mut message = self.take_off(&mut next, from, to, place);
                if retold {
                    let sender = self.at(state, from).expect("only the living learn");
                    message = self.messages.keep(sender.retold(self.messages.get(message)));
                }
                self.step(&mut next, to, Cue::Hear(from, message));
            }
            Happening::Probe => {
                next.probes -= 1;
                for node in (0..self.nodes).map(NodeId::from) {
                    if self.at(&next, node).is_some() {
                        self.step(&mut next, node, Cue::Probe);
                    }
                }
            }
            Happening::Lose { from, to, place } => _ = self.take_off(&mut next, from, to, place),
        }
        self.settle(&mut next);
        next
    }

    /// Takes a message off its link.
    pub(super) fn take_off(
        &mut self,
        state: &mut State,
        from: NodeId,
        to: NodeId,
        place: usize,
    ) -> u32 {
        let link = &mut state.links[Self::link(from, to)];
        let mut queue = self.queues.get(*link).clone();
        let message = queue.remove(place);
        *link = self.queues.keep(queue);
        message
    }

    /// Something happens to a participant.
    pub(super) fn step(&mut self, state: &mut State, node: NodeId, cue: Cue) {
        let before = state.nodes[node.index()].0;
        let outcome = match self.steps.get(&(node, before, cue)) {
            Some(outcome) => outcome.clone(),
            None => {
                let outcome = self.take(node, before, cue);
                self.steps.insert((node, before, cue), outcome.clone());
                outcome
            }
        };
        state.nodes[node.index()].0 = outcome.after;
        self.found.reclaimed += u64::from(outcome.is_reclaimed);
        for &(to, message) in &*outcome.sent {
            if state.nodes[to.index()].0 != DEAD {
                let link = Self::link(node, to);
                let mut queue = self.queues.get(state.links[link]).clone();
                queue.push(message);
                if !self.scope.ordered {
                    queue.sort_unstable();
                }
                state.links[link] = self.queues.keep(queue);
            }
        }
    }

    fn take(&mut self, node: NodeId, before: u32, cue: Cue) -> Outcome {
        let mut participant = self.participants.get(before).clone();
        // One name for all claims of a process: it has forgotten the last when it makes the next.
        let id = ClaimId { origin: node.0.into(), serial: 0 };
        let event = match cue {
            Cue::Hear(from, message) => {
                Event::Hear { from, message: self.messages.get(message).clone() }
            }
            Cue::Client if participant.held() > 0 => Event::Release(id),
            Cue::Client => {
                let units = Units::new(self.scope.weights[node.index()], self.scope.pool.units);
                Event::Claim(Claim::any(id, units.unwrap()))
            }
            Cue::Probe => Event::Ring(P::probe().expect("probes are of this protocol")),
        };
        let mut out = Outbox::new();
        participant.step(&seat(&self.scope.pool, node), event, &mut out);
        participant.audit(&seat(&self.scope.pool, node));
        let mut sent = Vec::new();
        for effect in out.drain() {
            match effect {
                Effect::Tell { to, message } => sent.push((to, self.messages.keep(message))),
                Effect::Anomaly { what, .. } => panic!("an anomaly: {what}"),
                _ => {}
            }
        }
        let is_reclaimed = participant.reclaimed() > self.participants.get(before).reclaimed();
        Outcome { after: self.participants.keep(participant), sent: sent.into(), is_reclaimed }
    }

    fn wrong_in(&mut self, state: &State) -> Option<String> {
        let all = || (0..self.nodes).map(NodeId::from);
        let alive = || all().filter_map(|node| Some((node, self.at(state, node)?)));
        let in_use: u32 = alive().map(|(_, participant)| participant.held()).sum();
        if in_use > self.scope.pool.units {
            return Some(format!("{in_use} units in use of {}", self.scope.pool.units));
        }
        let falsely =
            |suspects: NodeSet| suspects.iter().any(|node| self.at(state, node).is_some());
        if alive().any(|(_, participant)| falsely(participant.suspects())) {
            if !self.scope.heard_by.is_empty() {
                return Some("a live process is suspected".into());
            }
            self.found.false_suspicions += 1;
        }
        if self.scope.views {
            let view = |node: NodeId| {
                let participant = self.at(state, node)?;
                let suspects = participant.suspects().iter().collect();
                let left = state.nodes[node.index()].1;
                Some((left, participant.held(), participant.waits(), suspects))
            };
            self.found.views.insert(all().map(view).collect());
        }
        None
    }

    fn wrong_at_the_end_in(&self, state: &State) -> Option<String> {
        for node in (0..self.nodes).map(NodeId::from) {
            let Some(participant) = self.at(state, node) else { continue };
            if participant.waits() {
                return Some(format!("{node} waits for ever"));
            }
            let all_alive = state.nodes[..self.nodes].iter().all(|node| node.0 != DEAD);
            if all_alive && !participant.is_quiet() {
                return Some(format!("{node} is owed something for ever"));
            }
        }
        None
    }

    /// Tells the shortest way to a violation.
    fn told(&mut self, what: String, way: Vec<Happening>) -> (String, Vec<String>) {
        let mut lines = Vec::new();
        let mut state = self.begin();
        for happening in way {
            lines.push(self.line(&state, happening));
            state = self.made_to(&state, happening);
            let inside = |&node: &NodeId| self.at(&state, node).is_some_and(|p| p.held() > 0);
            let inside: NodeSet = (0..self.nodes).map(NodeId::from).filter(inside).collect();
            let line = lines.last_mut().expect("just pushed");
            line.push_str(&format!("  holders {inside}"));
        }
        lines.push(what.clone());
        (what, lines)
    }

    fn line(&self, state: &State, happening: Happening) -> String {
        match happening {
            Happening::Request(node) => format!("{node} requests"),
            Happening::Release(node) => format!("{node} releases"),
            Happening::Crash(node) => format!("{node} crashes"),
            Happening::Probe => "everybody queries".into(),
            Happening::Deliver { from, to, place, .. } | Happening::Lose { from, to, place } => {
                let queue = self.queues.get(state.links[Self::link(from, to)]);
                let verb = if matches!(happening, Happening::Lose { .. }) { "loses" } else { "<" };
                format!("{to} {verb} {from} {}", self.messages.get(queue[place]))
            }
        }
    }
}
