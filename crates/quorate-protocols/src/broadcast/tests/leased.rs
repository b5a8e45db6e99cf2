//! Every history of a small world in which nodes have leases from each other, are suspected,
//! counted out, crash, forget and come back (spec 7.2 and 7.3: "add it to the checker before
//! shipping").
//!
//! What is taken as given is what the arithmetic of leases achieves, an order. Each node has a
//! clock of its own, which moves on between any two of its queries and jumps to the next deadline
//! whenever the explorer likes; a client stops at its deadline, as late as it may, whether its node
//! lives or not. That a suspect's lease is over is told when every lease that it got for a query
//! sent *before* the alarm was armed has passed; one that it got for a later query is the
//! protocol's matter.
//!
//! Nothing else is assumed: any member may come to suspect any node at any moment, as if queries
//! had misled it, so that responsiveness plays no part. How often anything happens is bounded, so
//! that there are no cycles.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use quorate_core::{
    Claim, ClaimId, Effect, Event, Lease, Moment, NodeId, Outbox, Protocol, Seat, Start, Units,
};

use super::seen::{Seen, Shelf, hash};
use crate::broadcast::pool::Mutant;
use crate::broadcast::{Alarm, Message, Pool, Reclaim, Weighted};

const NODES: usize = 3;
/// The length of all leases: longer than all queries of a node take together.
const LENGTH: u64 = 1_000;

/// A world to exhaust.
#[derive(Clone)]
struct Scope {
    pool: Pool,
    /// Claims at each node, one after the other.
    claims: [u8; NODES],
    /// Queries of each node beside those of its requests.
    probes: [u8; NODES],
    /// How often a member suspects a node, and who may suspect whom: `None` for anybody.
    suspicions: u8,
    suspicion: Option<(NodeId, NodeId)>,
    /// How often a node crashes, and which may: `None` for any.
    crashes: u8,
    crashing: Option<NodeId>,
    ordered: bool,
}

/// What was found.
#[derive(PartialEq, Eq, Default, Debug)]
struct Found {
    states: usize,
    /// Steps that granted something because somebody was counted out.
    reclaimed: u64,
    /// Steps with which somebody took part again.
    joined: u64,
    violation: Option<Vec<String>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    nodes: [Node; NODES],
    /// What is on its way, by number, from each node to each.
    links: [[Vec<u32>; NODES]; NODES],
    suspicions: u8,
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
    /// Its clients that use a unit, of any life, and until when.
    using: BTreeMap<ClaimId, u64>,
    claims: u8,
    probes: u8,
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
    participants: Shelf<Weighted>,
    messages: Shelf<Message>,
    found: Found,
}

fn explored(scope: &Scope) -> Found {
    let participants = Shelf::new();
    let (messages, found) = (Shelf::new(), Found::default());
    let mut explorer = Explorer { scope, participants, messages, found };
    explorer.run();
    explorer.found
}

fn all() -> impl Iterator<Item = NodeId> {
    (0..NODES).map(NodeId::from)
}

impl Explorer<'_> {
    fn run(&mut self) {
        let first = self.first();
        let mut seen = Seen::new();
        seen.insert(hash(&first));
        let mut frontier = VecDeque::from([(first, 0)]);
        let mut trail: Vec<(usize, Happening)> = vec![(0, Happening::Pass(NodeId(0)))];
        while let Some((state, number)) = frontier.pop_front() {
            for happening in self.happenings(&state) {
                let mut next = state.clone();
                let anomaly = self.happen(&mut next, happening);
                if !seen.insert(hash(&next)) {
                    continue;
                }
                trail.push((number, happening));
                let in_use: usize = next.nodes.iter().map(|node| node.using.len()).sum();
                if in_use > self.scope.pool.units as usize || anomaly.is_some() {
                    let what = anomaly.map_or(format!("{in_use} in use"), str::to_owned);
                    self.found.states = seen.count;
                    return self.tell(&trail, what);
                }
                frontier.push_back((next, trail.len() - 1));
            }
        }
        self.found.states = seen.count;
    }

    fn first(&mut self) -> State {
        let node = |node: NodeId| Node {
            participant: None,
            boot: 0,
            now: 0,
            alarms: BTreeMap::new(),
            using: BTreeMap::new(),
            claims: self.scope.claims[node.index()],
            probes: self.scope.probes[node.index()],
        };
        let mut state = State {
            nodes: [0, 1, 2].map(|place| node(NodeId(place))),
            links: Default::default(),
            suspicions: self.scope.suspicions,
            crashes: self.scope.crashes,
        };
        for node in all() {
            self.boot(&mut state, node, Start::First);
        }
        state
    }

    fn happenings(&self, state: &State) -> Vec<Happening> {
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
        let moments = node.using.values().chain(of_others).chain(alarms).copied().chain(own);
        moments.filter(|&at| at > node.now).min()
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
                    participant.learn(seat, &BTreeMap::from([(suspect, life)]), out);
                    participant.check(seat, out);
                })
            }
            Happening::Pass(id) => {
                let now = self.next_moment(state, id).expect("something is over some day");
                let node = &mut state.nodes[id.index()];
                node.now = now;
                node.using.retain(|_, until| *until > now);
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
        event: Event<Weighted>,
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
                let is_news = |(&node, &life): (&NodeId, &u64)| {
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
        state.nodes[id.index()].participant = Some(self.participants.put(participant));
        let mut anomaly = None;
        for effect in out.drain() {
            let now = state.nodes[id.index()].now;
            match effect {
                Effect::Tell { to, message } => {
                    if state.nodes[to.index()].participant.is_some() {
                        let message = self.messages.put(message);
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
                    state.nodes[id.index()].using.insert(claim, until.0);
                }
                Effect::Extend { claim, until } => {
                    if let Some(using) = state.nodes[id.index()].using.get_mut(&claim) {
                        *using = until.0;
                    }
                }
                Effect::Anomaly { what, .. } => anomaly = Some(what),
                // Who is told to stop may hear it late: it goes on until it releases or must stop.
                Effect::Lose { .. } | Effect::Reclaim { .. } | Effect::Refuse { .. } => {}
                Effect::Persist(()) => unreachable!("nothing is written"),
                Effect::Move { .. } => unreachable!("nobody is asked to move"),
            }
        }
        for to in all() {
            self.drop_dead_letters(state, to);
        }
        anomaly
    }

    /// The shortest way to a violation, played again.
    fn tell(&mut self, trail: &[(usize, Happening)], what: String) {
        let mut happenings = Vec::new();
        let mut number = trail.len() - 1;
        while number > 0 {
            let (parent, happening) = trail[number];
            happenings.push(happening);
            number = parent;
        }
        let mut state = self.first();
        let mut lines = Vec::new();
        for happening in happenings.into_iter().rev() {
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
        self.found.violation = Some(lines);
    }
}

fn seat<'a>(pool: &'a Pool, me: NodeId, node: &Node) -> Seat<'a, Weighted> {
    Seat { me, boot: node.boot, now: Moment(node.now), pool }
}

/// Three nodes and one unit; n0 and n2 want it.
fn scope(mutant: Option<Mutant>) -> Scope {
    let lease = Lease::new(Duration::from_nanos(LENGTH), 0);
    let pool = Pool {
        reclaim: Reclaim::Lease(lease),
        lease: Some(lease),
        retry: None,
        mutant,
        ..Pool::weighted(3, 1, 1, 1)
    };
    let (claims, probes) = ([1, 0, 1], [0; NODES]);
    let (suspicion, crashing) = (None, None);
    Scope { pool, claims, probes, suspicions: 0, suspicion, crashes: 0, crashing, ordered: true }
}

/// What n0 thinks of n2 is wrong or right.
const SUSPICION: Option<(NodeId, NodeId)> = Some((NodeId(0), NodeId(2)));

fn holds(scope: &Scope, expected: (usize, u64, u64)) {
    let found = explored(scope);
    let violation = found.violation.as_ref().map(|lines| lines.join("\n"));
    assert!(violation.is_none(), "{}", violation.unwrap_or_default());
    assert_eq!((found.states, found.reclaimed, found.joined), expected);
}

/// Who is counted out has stopped; when it hears of it, it comes back.
#[test]
fn a_suspect_is_counted_out_and_comes_back() {
    let scope = Scope { suspicions: 1, suspicion: SUSPICION, ..scope(None) };
    holds(&scope, (31_872, 390, 3_027));
}

#[test]
fn a_node_that_restarts_comes_back() {
    holds(&Scope { crashes: 1, ..scope(None) }, (149_766, 0, 32_752));
}

/// Anybody is suspected by anybody; and one is suspected while it, its accuser or the third node
/// restarts and forgets.
#[test]
#[cfg(feature = "long-checks")]
fn whoever_is_suspected_and_whoever_forgets_it_one_unit_is_used_once() {
    holds(&Scope { suspicions: 1, ..scope(None) }, (536_958, 7_679, 64_420));
    let suspicion = Scope { suspicions: 1, suspicion: SUSPICION, ..scope(None) };
    for (node, expected) in [
        (0, (607_971, 1_525, 102_139)),
        (1, (2_816_313, 4_942, 861_522)),
        (2, (496_151, 9_162, 20_077)),
    ] {
        holds(&Scope { crashes: 1, crashing: Some(NodeId(node)), ..suspicion.clone() }, expected);
    }
}

/// Without a rule of the join a second holder is found.
#[test]
fn a_join_without_its_rules_is_found_out() {
    let crash = |mutant, node| Scope {
        suspicions: 1,
        suspicion: SUSPICION,
        crashes: 1,
        crashing: Some(NodeId(node)),
        ..scope(Some(mutant))
    };
    for scope in
        [crash(Mutant::NoGrace, 0), crash(Mutant::JoinAlone, 0), crash(Mutant::LoseAtOnce, 2)]
    {
        let found = explored(&scope);
        let violation = found.violation.expect("something is wrong here");
        // Who joins alone is answered what it never asked, before anybody uses too much.
        let what = match scope.pool.mutant {
            Some(Mutant::JoinAlone) => "an answer to what was never asked",
            _ => "2 in use",
        };
        assert_eq!(violation.last().map(String::as_str), Some(what), "{violation:?}");
    }
}
