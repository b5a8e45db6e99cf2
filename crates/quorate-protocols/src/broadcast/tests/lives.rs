//! Every history of a small world in which nodes have leases from each other, are suspected,
//! counted out, crash, forget and come back (broadcast spec 7.2 and 7.3).
//!
//! What is taken as given is what the arithmetic of leases achieves, an order. Each node has a
//! clock of its own, which moves on between any two of its queries and jumps to the next deadline
//! whenever the explorer likes; a client stops at its deadline, as late as it may, whether its node
//! lives or not. That a suspect's lease is over is told when every lease that it got for a query
//! sent *before* the alarm was armed has passed; one that it got for a later query is the
//! protocol's matter. And where suspects are fenced: that its clients of that life use nothing.
//!
//! Nothing else is assumed: any member may come to suspect any node at any moment, as if queries
//! had misled it, so that responsiveness plays no part. How often anything happens is bounded, so
//! that there are no cycles.

use std::collections::BTreeMap;

use quorate_check::{Rules, Shelf, walk};
use quorate_core::{
    Claim, ClaimId, Effect, Event, EventOf, Moment, NodeId, NodeSet, Outbox, Protocol, Seat, Start,
    Units,
};

use crate::broadcast::join::Membership;
use crate::broadcast::message::first_life;
use crate::broadcast::{Alarm, Deaths, Message, Pool, Reclaim, Weighted};

pub(super) const NODES: usize = 3;
/// The length of all leases: longer than all queries of a node take together.
pub(super) const LENGTH: u64 = 1_000;

/// A world to exhaust.
#[derive(Clone)]
pub(super) struct Scope {
    pub(super) pool: Pool,
    /// Claims at each node, one after the other.
    pub(super) claims: [u8; NODES],
    /// Queries of each node beside those of its requests.
    pub(super) probes: [u8; NODES],
    /// How often a member suspects a node, and who may suspect whom: `None` for anybody.
    pub(super) suspicions: u8,
    pub(super) suspicion: Option<(NodeId, NodeId)>,
    /// How often who is joining is told that a node is cut off.
    pub(super) cuts: u8,
    /// How often a node crashes, and which may: `None` for any.
    pub(super) crashes: u8,
    pub(super) crashing: Option<NodeId>,
    pub(super) ordered: bool,
}

/// What was found.
#[derive(PartialEq, Eq, Default, Debug)]
pub(super) struct Found {
    pub(super) states: usize,
    /// Steps that granted something because somebody was counted out.
    pub(super) reclaimed: u64,
    /// Steps with which somebody took part again.
    pub(super) joined: u64,
    pub(super) violation: Option<Vec<String>>,
}

#[derive(Clone)]
struct State {
    nodes: [Node; NODES],
    /// What is on its way, by number, from each node to each.
    links: [[Vec<u32>; NODES]; NODES],
    suspicions: u8,
    cuts: u8,
    crashes: u8,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Node {
    /// Its number on the shelf; `None` while the node is down.
    participant: Option<u32>,
    boot: u32,
    now: u64,
    /// Each with the moment after which it may ring: of this node's clock, or of the suspect's.
    alarms: BTreeMap<Alarm, u64>,
    /// Its clients that use a unit, of any life, until when, and where it matters the life.
    using: BTreeMap<ClaimId, (u64, u64)>,
    claims: u8,
    probes: u8,
    /// The life in which it was cut off from what the units protect.
    cut: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Happening {
    Claim(NodeId),
    Release(NodeId, ClaimId),
    Deliver {
        from: NodeId,
        to: NodeId,
        place: usize,
    },
    Ring(NodeId, Alarm),
    /// A member comes to believe that a node has crashed.
    Suspect {
        node: NodeId,
        suspect: NodeId,
    },
    /// A suspect is cut off, and a node is told so.
    Fence {
        node: NodeId,
        suspect: NodeId,
    },
    /// A clock reaches the next moment at which something is over.
    Pass(NodeId),
    /// A node crashes, and what it told this one last is lost with it.
    Crash {
        node: NodeId,
        unheard: Option<NodeId>,
    },
    Restart(NodeId),
}

struct Explorer<'a> {
    scope: &'a Scope,
    participants: Shelf<Weighted, ()>,
    messages: Shelf<Message, ()>,
    nodes: Shelf<Node, ()>,
    queues: Shelf<Vec<u32>, ()>,
    found: Found,
}

pub(super) fn explored(scope: &Scope) -> Found {
    let mut explorer = Explorer {
        scope,
        participants: Shelf::new(),
        messages: Shelf::new(),
        nodes: Shelf::new(),
        queues: Shelf::new(),
        found: Found::default(),
    };
    let walk = walk(&mut explorer);
    let violation = walk.wrong.map(|(what, way)| explorer.told(what, way));
    Found { states: walk.states, violation, ..explorer.found }
}

impl Rules for Explorer<'_> {
    type Happening = Happening;

    fn first(&mut self) -> Vec<u32> {
        let first = self.begin();
        self.words(first)
    }

    fn happenings(&mut self, state: &[u32]) -> Vec<Happening> {
        self.possible(&self.state(state))
    }

    fn after(&mut self, state: &[u32], happening: Happening) -> Result<Vec<u32>, String> {
        let mut next = self.state(state);
        match self.happen(&mut next, happening) {
            Some(anomaly) => Err(anomaly.to_owned()),
            None => Ok(self.words(next)),
        }
    }

    fn judge(&mut self, state: &[u32]) -> Option<String> {
        let using = |node: &u32| self.nodes.get(*node).using.len();
        let in_use: usize = state[..NODES].iter().map(using).sum();
        (in_use > self.scope.pool.units as usize).then(|| format!("{in_use} in use"))
    }
}

fn all() -> impl Iterator<Item = NodeId> {
    (0..NODES).map(NodeId::from)
}

impl Explorer<'_> {
    fn words(&mut self, state: State) -> Vec<u32> {
        let State { nodes, links, suspicions, cuts, crashes } = state;
        let mut words = nodes.map(|node| self.nodes.keep(node)).to_vec();
        words.extend(links.into_iter().flatten().map(|queue| self.queues.keep(queue)));
        words.push(u32::from_le_bytes([suspicions, cuts, crashes, 0]));
        words
    }

    fn state(&self, words: &[u32]) -> State {
        let (nodes, rest) = words.split_at(NODES);
        let (links, budget) = rest.split_at(NODES * NODES);
        let [suspicions, cuts, crashes, _] = budget[0].to_le_bytes();
        let queue = |from: usize, to: usize| self.queues.get(links[from * NODES + to]).clone();
        State {
            nodes: [0, 1, 2].map(|node| self.nodes.get(nodes[node]).clone()),
            links: [0, 1, 2].map(|from| [0, 1, 2].map(|to| queue(from, to))),
            suspicions,
            cuts,
            crashes,
        }
    }

    fn begin(&mut self) -> State {
        let node = |node: NodeId| Node {
            participant: None,
            boot: 0,
            now: 0,
            alarms: BTreeMap::new(),
            using: BTreeMap::new(),
            claims: self.scope.claims[node.index()],
            probes: self.scope.probes[node.index()],
            cut: None,
        };
        let mut state = State {
            nodes: [0, 1, 2].map(|place| node(NodeId(place))),
            links: Default::default(),
            suspicions: self.scope.suspicions,
            cuts: self.scope.cuts,
            crashes: self.scope.crashes,
        };
        for node in all() {
            self.boot(&mut state, node, Start::First);
        }
        state
    }

    fn possible(&self, state: &State) -> Vec<Happening> {
        let mut into = Vec::new();
        for id in all() {
            let node = &state.nodes[id.index()];
            if self.next_moment(state, id).is_some() {
                into.push(Happening::Pass(id));
            }
            let Some(number) = node.participant else {
                into.push(Happening::Restart(id));
                continue;
            };
            let participant = self.participants.get(number);
            if node.claims > 0 && participant.is_member() && participant.asked.is_empty() {
                into.push(Happening::Claim(id));
            }
            into.extend(node.using.keys().map(|&claim| Happening::Release(id, claim)));
            for (&alarm, &after) in &node.alarms {
                let now = match alarm {
                    Alarm::LeaseEnd(suspect) => state.nodes[suspect.index()].now,
                    _ => node.now,
                };
                if now >= after && (alarm != Alarm::Probe || node.probes > 0) {
                    into.push(Happening::Ring(id, alarm));
                }
            }
            if self.scope.pool.reclaim == Reclaim::Fenced {
                let news = match &participant.membership {
                    Membership::Joining(_) if state.cuts == 0 => NodeSet::new(),
                    Membership::Joining(awaited) => awaited.clone(),
                    _ => participant.crashed().difference(participant.counted_out()),
                };
                let fence = |suspect| Happening::Fence { node: id, suspect };
                into.extend(news.iter().filter(|&x| x != id).map(fence));
            }
            if state.suspicions > 0 && participant.is_member() {
                let news = all().filter(|&x| x != id && !participant.crashed().contains(x));
                let may = |&x: &NodeId| self.scope.suspicion.is_none_or(|pair| pair == (id, x));
                let suspects = news.filter(may);
                into.extend(suspects.map(|suspect| Happening::Suspect { node: id, suspect }));
            }
            if state.crashes > 0 && self.scope.crashing.is_none_or(|node| node == id) {
                into.push(Happening::Crash { node: id, unheard: None });
                let some = all().filter(|to| !state.links[id.index()][to.index()].is_empty());
                into.extend(some.map(|to| Happening::Crash { node: id, unheard: Some(to) }));
            }
            for from in all() {
                let queue = &state.links[from.index()][id.index()];
                let reach = if self.scope.ordered { queue.len().min(1) } else { queue.len() };
                let deliver = |place| Happening::Deliver { from, to: id, place };
                into.extend((0..reach).map(deliver));
            }
        }
        into
    }

    /// When something is over next by a node's clock: a client's use, the node's own lease, or what
    /// an alarm waits for.
    fn next_moment(&self, state: &State, id: NodeId) -> Option<u64> {
        let node = &state.nodes[id.index()];
        let own = node.participant.map(|number| {
            let seat = seat(&self.scope.pool, id, node);
            self.participants.get(number).counting.deadline(&seat).0
        });
        let of_others = state.nodes.iter().filter_map(|n| n.alarms.get(&Alarm::LeaseEnd(id)));
        let is_ours = |alarm: &Alarm| !matches!(alarm, Alarm::LeaseEnd(_));
        let alarms = node.alarms.iter().filter(|(alarm, _)| is_ours(alarm)).map(|(_, at)| at);
        let using = node.using.values().map(|(until, _)| until);
        let moments = using.chain(of_others).chain(alarms).copied().chain(own);
        moments.filter(|&at| at > node.now && at < Moment::NEVER.0).min()
    }

    /// Makes something happen; says what no correct peer could have said.
    fn happen(&mut self, state: &mut State, happening: Happening) -> Option<&'static str> {
        match happening {
            Happening::Claim(id) => {
                let node = &mut state.nodes[id.index()];
                let claim = ClaimId { origin: id.0.into(), serial: node.claims.into() };
                node.claims -= 1;
                let claim = Claim::any(claim, Units::ONE);
                self.step(state, id, Event::Claim(claim))
            }
            Happening::Release(id, claim) => {
                state.nodes[id.index()].using.remove(&claim);
                self.step(state, id, Event::Release(claim))
            }
            Happening::Deliver { from, to, place } => {
                let message = state.links[from.index()][to.index()].remove(place);
                let message = self.messages.get(message).clone();
                self.step(state, to, Event::Hear { from, message })
            }
            Happening::Ring(id, alarm) => {
                let node = &mut state.nodes[id.index()];
                node.alarms.remove(&alarm);
                node.probes -= u8::from(alarm == Alarm::Probe);
                self.step(state, id, Event::Ring(alarm))
            }
            Happening::Suspect { node, suspect } => {
                state.suspicions -= 1;
                self.act(state, node, |participant, seat, out| {
                    let life = participant.detector.life(suspect);
                    participant.learn(seat, &Deaths::from_iter([(suspect, life)]), out);
                    participant.check(seat, out);
                })
            }
            Happening::Fence { node, suspect } => {
                // What is said of a life that is believed to be over is true of it, and of its
                // clients, and of no later one. To who is joining it is said of the present one.
                let number = state.nodes[node.index()].participant.expect("only who runs acts");
                let told = self.participants.get(number);
                let is_joining = matches!(told.membership, Membership::Joining(_));
                state.cuts -= u8::from(is_joining);
                let life = match state.nodes[suspect.index()].participant {
                    _ if !is_joining => told.detector.life(suspect),
                    Some(number) => self.participants.get(number).life,
                    None => first_life(state.nodes[suspect.index()].boot + 1) - 1,
                };
                let cut = &mut state.nodes[suspect.index()];
                cut.using.retain(|_, (_, granted)| *granted > life);
                cut.cut = cut.cut.max(Some(life));
                self.step(state, node, Event::Suspect(suspect))
            }
            Happening::Pass(id) => {
                let now = self.next_moment(state, id).expect("something is over some day");
                let node = &mut state.nodes[id.index()];
                node.now = now;
                node.using.retain(|_, (until, _)| *until > now);
                None
            }
            Happening::Crash { node, unheard } => {
                state.crashes -= 1;
                let crashed = &mut state.nodes[node.index()];
                (crashed.participant, crashed.alarms) = (None, BTreeMap::new());
                for from in all() {
                    state.links[from.index()][node.index()].clear();
                }
                if let Some(to) = unheard {
                    state.links[node.index()][to.index()].pop();
                }
                None
            }
            Happening::Restart(id) => {
                state.nodes[id.index()].boot += 1;
                self.boot(state, id, Start::Amnesia)
            }
        }
    }

    fn boot(&mut self, state: &mut State, id: NodeId, start: Start<()>) -> Option<&'static str> {
        let mut out = Outbox::new();
        let seat = seat(&self.scope.pool, id, &state.nodes[id.index()]);
        let participant = Weighted::boot(&seat, start, &mut out);
        participant.audit(&seat);
        self.perform(state, id, participant, out)
    }

    fn step(
        &mut self,
        state: &mut State,
        id: NodeId,
        event: EventOf<Weighted>,
    ) -> Option<&'static str> {
        self.act(state, id, |participant, seat, out| participant.step(seat, event, out))
    }

    fn act(
        &mut self,
        state: &mut State,
        id: NodeId,
        act: impl FnOnce(&mut Weighted, &Seat<'_, Weighted>, &mut Outbox<Weighted>),
    ) -> Option<&'static str> {
        let node = &state.nodes[id.index()];
        let number = node.participant.expect("only who runs acts");
        let before = self.participants.get(number);
        let mut participant = before.clone();
        let mut out = Outbox::new();
        let seat = seat(&self.scope.pool, id, node);
        act(&mut participant, &seat, &mut out);
        participant.audit(&seat);
        self.found.reclaimed += u64::from(participant.reclaimed() > before.reclaimed());
        self.found.joined += u64::from(participant.is_member() && !before.is_member());
        let asked_anew = participant.detector.query != before.detector.query;
        let anomaly = self.perform(state, id, participant, out);
        // No two queries are sent at the same moment.
        state.nodes[id.index()].now += u64::from(asked_anew);
        anomaly
    }

    /// Takes answers off their way that change nothing any more: to a request that does not wait,
    /// or a query that is over, from a life that is known and with nothing new.
    fn drop_dead_letters(&self, state: &mut State, to: NodeId) {
        let Some(number) = state.nodes[to.index()].participant else { return };
        let receiver = self.participants.get(number);
        for from in all() {
            let is_dead = |message: &u32| {
                let Message::Reply { request, query, known, .. } = self.messages.get(*message)
                else {
                    return false;
                };
                let waiting = |clock: u64| {
                    let asked = receiver.asked.iter().find(|asked| asked.clock == clock);
                    asked.is_some_and(|asked| !asked.standing.is_in_use())
                };
                let is_news = |(node, life): (NodeId, u64)| {
                    receiver.detector.last_death(node).is_none_or(|known| known < life)
                };
                known.life <= receiver.detector.life(from)
                    && !request.is_some_and(waiting)
                    && (query.is_none() || *query != receiver.detector.query)
                    && !known.crashed.iter().any(is_news)
            };
            state.links[from.index()][to.index()].retain(|message| !is_dead(message));
        }
    }

    fn perform(
        &mut self,
        state: &mut State,
        id: NodeId,
        participant: Weighted,
        mut out: Outbox<Weighted>,
    ) -> Option<&'static str> {
        let life = participant.life;
        let is_fenced = self.scope.pool.reclaim == Reclaim::Fenced;
        state.nodes[id.index()].participant = Some(self.participants.keep(participant));
        let mut anomaly = None;
        for effect in out.drain() {
            let now = state.nodes[id.index()].now;
            match effect {
                Effect::Tell { to, message } => {
                    if state.nodes[to.index()].participant.is_some() {
                        let message = self.messages.keep(message);
                        let queue = &mut state.links[id.index()][to.index()];
                        queue.push(message);
                        if !self.scope.ordered {
                            queue.sort_unstable();
                        }
                    }
                }
                Effect::Arm { alarm, .. } => {
                    let after = match alarm {
                        Alarm::Probe | Alarm::Retry => 0,
                        Alarm::HoldEnd(_) | Alarm::Grace => now + LENGTH,
                        // Its clock has moved on since its last query.
                        Alarm::LeaseEnd(suspect) => {
                            (state.nodes[suspect.index()].now + LENGTH).saturating_sub(1)
                        }
                    };
                    state.nodes[id.index()].alarms.insert(alarm, after);
                }
                Effect::Disarm(alarm) => {
                    state.nodes[id.index()].alarms.remove(&alarm);
                }
                Effect::Grant { claim, until, .. } => {
                    let node = &mut state.nodes[id.index()];
                    if node.cut.is_none_or(|over| over < life) {
                        let life = if is_fenced { life } else { 0 };
                        node.using.insert(claim, (until.0, life));
                    }
                }
                Effect::Extend { claim, until } => {
                    if let Some(using) = state.nodes[id.index()].using.get_mut(&claim) {
                        using.0 = until.0;
                    }
                }
                Effect::Anomaly { what, .. } => anomaly = Some(what),
                // Who is told to stop may hear it late: it goes on until it releases or must stop.
                Effect::Lose { .. } | Effect::Reclaim { .. } | Effect::Refuse { .. } => {}
                Effect::Persist(()) => unreachable!("nothing is written"),
                Effect::Move { .. } => unreachable!("nobody is asked to move"),
                Effect::AskLicence { .. } | Effect::Vouch { .. } => {
                    unreachable!("nobody decides alone")
                }
            }
        }
        for to in all() {
            self.drop_dead_letters(state, to);
        }
        anomaly
    }

    /// The shortest way to a violation, played again.
    fn told(&mut self, what: String, way: Vec<Happening>) -> Vec<String> {
        let mut state = self.begin();
        let mut lines = Vec::new();
        for happening in way {
            let message = match happening {
                Happening::Deliver { from, to, place } => {
                    let number = state.links[from.index()][to.index()][place];
                    format!(": {}", self.messages.get(number))
                }
                _ => String::new(),
            };
            self.happen(&mut state, happening);
            let using: Vec<_> = state.nodes.iter().flat_map(|node| node.using.keys()).collect();
            lines.push(format!("{happening:?}{message}  using {using:?}"));
        }
        lines.push(what);
        lines
    }
}

fn seat<'a>(pool: &'a Pool, me: NodeId, node: &Node) -> Seat<'a, Weighted> {
    Seat { me, boot: node.boot, now: Moment(node.now), pool }
}
