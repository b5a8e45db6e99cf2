//! Every interleaving of small rings (ring spec 5.2): safety, no trap, no starvation, convergence.
//!
//! Weak fairness is what a real ring has: a message on its way arrives, a claim that was granted
//! ends, a parked train leaves, a lost traversal times out. Asking and withdrawing are free. A
//! strongly connected set of states in which every such thing is either taken or somewhere not
//! possible can go on for ever; what holds in one of its states is then never over.

#[allow(clippy::disallowed_types, reason = "looked up, never iterated")]
use std::collections::HashMap;
use std::collections::VecDeque;
use std::hash::Hash;

use super::track::Track;
use crate::ring::legitimate::Stabilizing;
use crate::ring::message::Message;
use crate::ring::station::StationClaim;
use crate::ring::terms::Terms;

/// Values kept once, by number.
#[allow(clippy::disallowed_types, reason = "looked up, never iterated")]
struct Shelf<T> {
    numbers: HashMap<T, u32>,
    values: Vec<T>,
}

impl<T: Clone + Eq + Hash> Shelf<T> {
    fn new() -> Self {
        Shelf { numbers: Default::default(), values: Vec::new() }
    }

    /// The number of a value, and whether it is new.
    fn put(&mut self, value: T) -> (u32, bool) {
        let next = self.values.len() as u32;
        let number = *self.numbers.entry(value.clone()).or_insert(next);
        if number == next {
            self.values.push(value);
        }
        (number, number == next)
    }
}

/// What can happen. The first four are fair.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Act {
    Deliver(u8),
    End(u8),
    Launch,
    Timeout,
    Ask(u8, u8),
    Withdraw(u8),
    Early,
}

impl Act {
    fn is_fair(self) -> bool {
        !matches!(self, Act::Ask(..) | Act::Withdraw(_) | Act::Early)
    }
}

/// What can happen besides.
#[derive(Clone, Copy, Default, Debug)]
pub struct Freedom {
    /// Whoever waits may withdraw.
    pub withdrawals: bool,
    /// A station that uses what it gets for ever, if there is one.
    pub forever: Option<usize>,
    /// Whether the root may lose patience too early, once before each count. Often enough and it
    /// would never see one.
    pub impatience: bool,
}

/// All states of a ring, and what leads from which to which.
pub struct Atlas<M: Stabilizing> {
    terms: Terms,
    /// What each station may ask for.
    wants: Vec<Vec<u32>>,
    freedom: Freedom,
    machines: Shelf<M>,
    links: Shelf<VecDeque<Message<M::Tokens>>>,
    states: Shelf<Vec<u32>>,
    edges: Vec<Vec<(Act, u32)>>,
    /// Whether all is as it should be in a state.
    good: Vec<bool>,
}

impl<M: Stabilizing> Atlas<M> {
    /// Explores from these states; `None` if there are more than `most`.
    pub fn explore(
        starts: Vec<Track<M>>,
        wants: &[Vec<u32>],
        withdrawals: bool,
        most: usize,
    ) -> Option<Self> {
        let freedom = Freedom { withdrawals, ..Freedom::default() };
        Self::explore_with(starts, wants, freedom, most)
    }

    /// The same with other freedoms.
    pub fn explore_with(
        starts: Vec<Track<M>>,
        wants: &[Vec<u32>],
        freedom: Freedom,
        most: usize,
    ) -> Option<Self> {
        let mut atlas = Atlas {
            terms: starts[0].terms,
            wants: wants.to_vec(),
            freedom,
            machines: Shelf::new(),
            links: Shelf::new(),
            states: Shelf::new(),
            edges: Vec::new(),
            good: Vec::new(),
        };
        for start in starts {
            atlas.put(&start);
        }
        while atlas.edges.len() < atlas.states.values.len() {
            let from = atlas.track(atlas.edges.len());
            let edges = atlas.acts(&from).into_iter().map(|act| {
                let mut track = from.clone();
                happen(&mut track, act);
                (act, atlas.put(&track))
            });
            let edges = edges.collect();
            atlas.edges.push(edges);
            if atlas.states.values.len() > most {
                return None;
            }
        }
        Some(atlas)
    }

    /// How many states there are.
    #[allow(clippy::len_without_is_empty, reason = "there is always a start")]
    pub fn len(&self) -> usize {
        self.edges.len()
    }

    fn put(&mut self, track: &Track<M>) -> u32 {
        let mut key: Vec<u32> = Vec::with_capacity(2 * track.size());
        key.extend(track.stations.iter().map(|m| self.machines.put(m.clone()).0));
        key.extend(track.links.iter().map(|l| self.links.put(l.clone()).0));
        let (number, new) = self.states.put(key);
        if new {
            let units = u64::from(self.terms.units);
            self.good.push(track.in_use() <= units && track.tokens() == units);
        }
        number
    }

    /// One of the states.
    pub fn track(&self, number: usize) -> Track<M> {
        let key = &self.states.values[number];
        let (machines, links) = key.split_at(key.len() / 2);
        Track {
            terms: self.terms,
            stations: machines.iter().map(|&m| self.machines.values[m as usize].clone()).collect(),
            links: links.iter().map(|&l| self.links.values[l as usize].clone()).collect(),
        }
    }

    fn acts(&self, track: &Track<M>) -> Vec<Act> {
        let mut acts = Vec::new();
        for (i, machine) in track.stations.iter().enumerate() {
            let name = i as u8;
            if track.can_deliver(i) {
                acts.push(Act::Deliver(name));
            }
            match machine.station().standing {
                StationClaim::Out => {
                    acts.extend(self.wants[i].iter().map(|&need| Act::Ask(name, need as u8)));
                }
                StationClaim::Requesting { .. } if self.freedom.withdrawals => {
                    acts.push(Act::Withdraw(name));
                }
                StationClaim::Requesting { .. } => {}
                StationClaim::Using { .. } if self.freedom.forever == Some(i) => {}
                StationClaim::Using { .. } => acts.push(Act::End(name)),
            }
        }
        let traversal = |message: &Message<M::Tokens>| {
            matches!(message, Message::Controller(_) | Message::Frame(_))
        };
        if !track.stations[0].has_launched() {
            acts.push(Act::Launch);
        } else if !track.links.iter().flatten().any(traversal) {
            acts.push(Act::Timeout);
        } else if self.freedom.impatience && track.stations[0].station().seq.is_multiple_of(2) {
            // A new number, and then that of the count: even again.
            acts.push(Act::Early);
        }
        acts
    }

    /// Most units in use in any state.
    pub fn in_use_max(&self) -> u64 {
        (0..self.len()).map(|state| self.track(state).in_use()).max().unwrap_or(0)
    }

    /// Whether every state has exactly l tokens and at most l units in use.
    pub fn all_good(&self) -> bool {
        self.good.iter().all(|&good| good)
    }

    /// A state in which a station waits and from which it can never be granted.
    pub fn trap(&self) -> Option<(usize, usize)> {
        let mut back: Vec<Vec<u32>> = vec![Vec::new(); self.len()];
        for (from, edges) in self.edges.iter().enumerate() {
            edges.iter().for_each(|&(_, to)| back[to as usize].push(from as u32));
        }
        (0..self.wants.len()).find_map(|station| {
            let uses = |state: usize| self.machine(state, station).station().in_use() > 0;
            let mut can: Vec<bool> = (0..self.len()).map(uses).collect();
            let mut open: Vec<u32> = (0..self.len() as u32).filter(|&s| can[s as usize]).collect();
            while let Some(state) = open.pop() {
                for &before in &back[state as usize] {
                    if !std::mem::replace(&mut can[before as usize], true) {
                        open.push(before);
                    }
                }
            }
            let waits = |state: &usize| self.machine(*state, station).station().is_requesting();
            (0..self.len()).filter(waits).find(|&state| !can[state]).map(|state| (state, station))
        })
    }

    /// A station that can wait for ever although everything fair happens.
    pub fn starves(&self) -> Option<usize> {
        (0..self.wants.len()).find(|&station| {
            let waits = |state: usize| self.machine(state, station).station().is_requesting();
            self.fair_sets(&waits, &|act| act != Act::Withdraw(station as u8)).next().is_some()
        })
    }

    /// Whether something can go on for ever, although everything fair happens, in which not all is
    /// as it should be again and again.
    pub fn never_converges(&self) -> bool {
        let mut sets = self.fair_sets(&|_| true, &|_| true);
        sets.any(|set| set.iter().any(|&state| !self.good[state as usize]))
    }

    fn machine(&self, state: usize, station: usize) -> &M {
        &self.machines.values[self.states.values[state][station] as usize]
    }

    /// The strongly connected sets of those states and acts in which a run can stay for ever.
    fn fair_sets<'a>(
        &'a self,
        within: &dyn Fn(usize) -> bool,
        by: &'a dyn Fn(Act) -> bool,
    ) -> impl Iterator<Item = Vec<u32>> + 'a {
        let inside: Vec<bool> = (0..self.len()).map(within).collect();
        let sets = self.components(&inside, by);
        let mut set_of = vec![u32::MAX; self.len()];
        for (number, set) in sets.iter().enumerate() {
            set.iter().for_each(|&state| set_of[state as usize] = number as u32);
        }
        sets.into_iter().enumerate().filter_map(move |(number, set)| {
            let stays = |act: Act, to: u32| by(act) && set_of[to as usize] == number as u32;
            let mut taken: Vec<Act> = set
                .iter()
                .flat_map(|&state| self.edges[state as usize].iter())
                .filter(|&&(act, to)| stays(act, to))
                .map(|&(act, _)| act)
                .collect();
            taken.sort_unstable();
            taken.dedup();
            let possible = |state: u32| {
                let edges = self.edges[state as usize].iter();
                edges.map(|&(act, _)| act).filter(|act| act.is_fair())
            };
            let neglected = possible(set[0])
                .filter(|act| taken.binary_search(act).is_err())
                .any(|act| set.iter().all(|&state| possible(state).any(|other| other == act)));
            (!taken.is_empty() && !neglected).then_some(set)
        })
    }

    /// Tarjan's algorithm (1972), without recursion.
    fn components(&self, inside: &[bool], by: &dyn Fn(Act) -> bool) -> Vec<Vec<u32>> {
        let mut sets = Vec::new();
        let (mut index, mut low) = (vec![u32::MAX; self.len()], vec![0; self.len()]);
        let mut on_stack = vec![false; self.len()];
        let (mut stack, mut calls, mut next) = (Vec::new(), Vec::new(), 0);
        for start in (0..self.len()).filter(|&s| inside[s]) {
            if index[start] == u32::MAX {
                calls.push((start, 0));
            }
            while let Some((state, edge)) = calls.pop() {
                if edge == 0 && index[state] == u32::MAX {
                    (index[state], low[state]) = (next, next);
                    next += 1;
                    stack.push(state as u32);
                    on_stack[state] = true;
                }
                let Some(&(act, to)) = self.edges[state].get(edge) else {
                    self.finish(state, &index, &mut low, &mut on_stack, &mut stack, &mut sets);
                    if let Some(&(above, _)) = calls.last() {
                        low[above] = low[above].min(low[state]);
                    }
                    continue;
                };
                calls.push((state, edge + 1));
                let to = to as usize;
                if !inside[to] || !by(act) {
                    continue;
                }
                if index[to] == u32::MAX {
                    calls.push((to, 0));
                } else if on_stack[to] {
                    low[state] = low[state].min(index[to]);
                }
            }
        }
        sets
    }

    fn finish(
        &self,
        state: usize,
        index: &[u32],
        low: &mut [u32],
        on_stack: &mut [bool],
        stack: &mut Vec<u32>,
        sets: &mut Vec<Vec<u32>>,
    ) {
        if low[state] != index[state] {
            return;
        }
        let first = stack.iter().rposition(|&s| s as usize == state).expect("it is on the stack");
        let set = stack.split_off(first);
        set.iter().for_each(|&s| on_stack[s as usize] = false);
        sets.push(set);
    }
}

fn happen<M: Stabilizing>(track: &mut Track<M>, act: Act) {
    match act {
        Act::Deliver(to) => track.deliver(to.into()),
        Act::End(at) | Act::Withdraw(at) => track.step(at.into(), M::leave),
        Act::Launch => track.step(0, M::launch),
        Act::Timeout | Act::Early => track.step(0, M::timeout),
        Act::Ask(at, need) => {
            track.step(at.into(), |m, terms, out| m.request(terms, need.into(), out))
        }
    };
}

/// Terms with so few numbers that states repeat soon.
pub fn tiny(units: u32, claim_max: u32, seqs: u64) -> Terms {
    let mut terms = Terms::new(units, claim_max);
    terms.seqs = seqs;
    terms
}

/// From the legitimate start: each station asks for its number of units again and again, or for
/// none (0), and may withdraw.
pub fn from_start<M: Stabilizing>(terms: Terms, needs: &[u32], most: usize) -> Atlas<M> {
    let wants: Vec<Vec<u32>> =
        needs.iter().map(|&need| (need > 0).then_some(need).into_iter().collect()).collect();
    let start = Track::<M>::started(terms, needs.len());
    Atlas::explore(vec![start], &wants, true, most).expect("it is small enough")
}
