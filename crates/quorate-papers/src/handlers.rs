//! The algorithm of section 3.1 of the k-arbiter paper, as printed, in every history of a small
//! world: no leases, no preemption, nothing that Quorate added. What it lacks can be seen in it.

use std::collections::{BTreeSet, HashMap};

/// A request: who asks for how much, of which arbiters, and after which other one of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) process: u8,
    pub(crate) units: u32,
    pub(crate) quorum: u32,
    pub(crate) after: Option<u8>,
}

impl Claim {
    pub(crate) fn new(process: u8, units: u32, quorum: u32) -> Self {
        Claim { process, units, quorum, after: None }
    }

    pub(crate) fn after(self, other: u8) -> Self {
        Claim { after: Some(other), ..self }
    }
}

/// What an arbiter writes down about those whom it gave its permission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ledger {
    /// One number for each process, as printed.
    PerProcess,
    /// One entry for each request.
    PerRequest,
}

/// Whom an arbiter serves when units come back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Queue {
    /// The oldest first, and whoever fits beside those who do not.
    AnyFit,
    /// Nobody before one who is older.
    Strict,
    /// The lowest process first.
    Identity,
    /// Whoever came first, and nobody before it.
    Arrival,
}

/// A small world.
#[derive(Clone, Debug)]
pub(crate) struct Scheme {
    pub(crate) units: u32,
    pub(crate) arbiters: u8,
    pub(crate) claims: Vec<Claim>,
    pub(crate) ledger: Ledger,
    pub(crate) queue: Queue,
    pub(crate) fifo: bool,
    /// Whoever has left asks again.
    pub(crate) again: bool,
    /// Members are asked one after the other, in ascending order.
    pub(crate) ordered: bool,
    /// Permissions are sent to their own sender.
    pub(crate) astray: bool,
}

const IDLE: u8 = 0;
const ASKING: u8 = 1;
const INSIDE: u8 = 2;
const DONE: u8 = 3;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    phase: Vec<u8>,
    /// Permissions that each claim has...
    got: Vec<u32>,
    /// ...and that are under way to it.
    coming: Vec<u32>,
    /// Requests and releases under way, for each process and arbiter.
    links: Vec<Vec<(u8, bool)>>,
    /// What each arbiter has permitted, by process or by claim.
    books: Vec<Vec<u32>>,
    waiting: Vec<Vec<u8>>,
    /// Claims by age, the oldest first.
    age: Vec<u8>,
}

/// What was found in all histories.
#[derive(Clone, Debug)]
pub(crate) struct Explored {
    pub(crate) states: u64,
    /// Most units in use at once.
    pub(crate) most: u32,
    /// A shortest history with more units in use than there are.
    pub(crate) broken: Option<Vec<String>>,
    /// A shortest history after which somebody waits and nothing can happen.
    pub(crate) deadlock: Option<Vec<String>>,
    /// Who can be passed over for ever, while all others are served again and again.
    pub(crate) starved: Option<u8>,
    /// A shortest history to the state that takes longest to reach.
    pub(crate) last: Vec<String>,
    /// Who is inside together in some state.
    pub(crate) together: BTreeSet<u32>,
}

impl Scheme {
    pub(crate) fn new(units: u32, arbiters: u8, claims: Vec<Claim>) -> Self {
        Scheme {
            units,
            arbiters,
            claims,
            ledger: Ledger::PerRequest,
            queue: Queue::AnyFit,
            fifo: true,
            again: false,
            ordered: false,
            astray: false,
        }
    }

    /// Goes through every history.
    pub(crate) fn explore(&self) -> Explored {
        let mut states = vec![self.start()];
        let mut known = HashMap::from([(states[0].clone(), 0usize)]);
        let mut came: Vec<(usize, String)> = vec![(0, String::new())];
        let mut edges: Vec<Vec<(usize, Option<u8>)>> = Vec::new();
        let mut found = Explored {
            states: 0,
            most: 0,
            broken: None,
            deadlock: None,
            starved: None,
            last: Vec::new(),
            together: BTreeSet::new(),
        };
        let mut at = 0;
        while at < states.len() {
            let state = states[at].clone();
            let used = self.used(&state);
            found.most = found.most.max(used);
            let inside = (0..state.phase.len()).filter(|i| state.phase[*i] == INSIDE);
            found.together.insert(inside.map(|i| 1 << i).sum());
            if used > self.units && found.broken.is_none() {
                found.broken = Some(story(&came, at));
            }
            let next = self.next(&state);
            if next.is_empty() && state.phase.contains(&ASKING) && found.deadlock.is_none() {
                found.deadlock = Some(story(&came, at));
            }
            let mut out = Vec::new();
            for (what, enters, state) in next {
                let number = *known.entry(state).or_insert_with_key(|state| {
                    states.push(state.clone());
                    came.push((at, what));
                    states.len() - 1
                });
                out.push((number, enters));
            }
            edges.push(out);
            at += 1;
        }
        found.states = states.len() as u64;
        found.last = story(&came, states.len() - 1);
        if self.again {
            found.starved = (0..self.claims.len() as u8)
                .find(|victim| self.is_starved(&states, &edges, *victim));
        }
        found
    }

    fn start(&self) -> State {
        let (claims, arbiters) = (self.claims.len(), usize::from(self.arbiters));
        let processes = self.claims.iter().map(|claim| claim.process).max().map_or(0, |p| p + 1);
        State {
            phase: vec![IDLE; claims],
            got: vec![0; claims],
            coming: vec![0; claims],
            links: vec![Vec::new(); usize::from(processes) * arbiters],
            books: vec![vec![0; claims]; arbiters],
            waiting: vec![Vec::new(); arbiters],
            age: Vec::new(),
        }
    }

    fn used(&self, state: &State) -> u32 {
        let inside = state.phase.iter().zip(&self.claims).filter(|(phase, _)| **phase == INSIDE);
        inside.map(|(_, claim)| claim.units).sum()
    }

    fn next(&self, state: &State) -> Vec<(String, Option<u8>, State)> {
        let mut next = Vec::new();
        for (index, claim) in self.claims.iter().enumerate() {
            let number = index as u8;
            let free = claim.after.is_none_or(|other| state.phase[usize::from(other)] == DONE);
            match state.phase[index] {
                IDLE if free => {
                    let mut after = state.clone();
                    after.phase[index] = ASKING;
                    after.age.push(number);
                    self.tell(&mut after, number, false);
                    next.push((format!("r{number} asks for {}", claim.units), None, after));
                }
                ASKING if state.got[index] == claim.quorum => {
                    let mut after = state.clone();
                    after.phase[index] = INSIDE;
                    next.push((format!("r{number} enters"), Some(number), after));
                }
                INSIDE => {
                    let mut after = state.clone();
                    after.phase[index] = if self.again { IDLE } else { DONE };
                    after.got[index] = 0;
                    after.age.retain(|other| *other != number);
                    self.tell(&mut after, number, true);
                    next.push((format!("r{number} leaves"), None, after));
                }
                _ => {}
            }
            for arbiter in 0..self.arbiters {
                if state.coming[index] >> arbiter & 1 == 1 {
                    let mut after = state.clone();
                    after.coming[index] &= !(1 << arbiter);
                    after.got[index] |= 1 << arbiter;
                    if self.ordered {
                        self.tell(&mut after, number, false);
                    }
                    next.push((format!("permission of a{arbiter} to r{number}"), None, after));
                }
            }
        }
        for (link, queue) in state.links.iter().enumerate() {
            let arbiter = (link % usize::from(self.arbiters)) as u8;
            for at in 0..if self.fifo { queue.len().min(1) } else { queue.len() } {
                let mut after = state.clone();
                let (claim, release) = after.links[link].remove(at);
                self.receive(&mut after, arbiter, claim, release);
                let what = if release { "release" } else { "request" };
                next.push((format!("{what} of r{claim} at a{arbiter}"), None, after));
            }
        }
        next
    }

    fn tell(&self, state: &mut State, claim: u8, release: bool) {
        let Claim { process, quorum, .. } = self.claims[usize::from(claim)];
        let got = state.got[usize::from(claim)];
        let members = (0..self.arbiters).filter(|arbiter| quorum >> arbiter & 1 == 1);
        let most = if self.ordered && !release { 1 } else { usize::MAX };
        for arbiter in members.filter(|arbiter| got >> arbiter & 1 == 0).take(most) {
            let link = usize::from(process) * usize::from(self.arbiters) + usize::from(arbiter);
            state.links[link].push((claim, release));
        }
    }

    fn slot(&self, claim: u8) -> usize {
        match self.ledger {
            Ledger::PerProcess => usize::from(self.claims[usize::from(claim)].process),
            Ledger::PerRequest => usize::from(claim),
        }
    }

    fn receive(&self, state: &mut State, arbiter: u8, claim: u8, release: bool) {
        let at = usize::from(arbiter);
        if release {
            state.books[at][self.slot(claim)] = 0;
        } else {
            state.waiting[at].push(claim);
        }
        // Those who may be served now, in the order of the rule. A newcomer that fits passes all
        // who wait as it is printed, unless the rule is strict.
        let mut order = state.waiting[at].clone();
        let age = |claim: &u8| state.age.iter().position(|other| other == claim);
        match self.queue {
            Queue::Identity => order.sort_by_key(|claim| self.claims[usize::from(*claim)].process),
            Queue::AnyFit | Queue::Strict => order.sort_by_key(age),
            Queue::Arrival => {}
        }
        for claim in order {
            let units = self.claims[usize::from(claim)].units;
            if state.books[at].iter().sum::<u32>() + units <= self.units {
                let slot = self.slot(claim);
                state.books[at][slot] = units;
                state.waiting[at].retain(|other| *other != claim);
                state.coming[usize::from(claim)] |= u32::from(!self.astray) << arbiter;
            } else if matches!(self.queue, Queue::Strict | Queue::Arrival) {
                break;
            }
        }
        if self.queue != Queue::Arrival {
            state.waiting[at].sort_unstable();
        }
    }

    /// Whether some cycle serves everybody else, while all arbiters know that the victim waits.
    fn is_starved(&self, states: &[State], edges: &[Vec<(usize, Option<u8>)>], victim: u8) -> bool {
        let at = usize::from(victim);
        let waits = |state: &State| {
            let known = (0..self.arbiters).filter(|a| self.claims[at].quorum >> a & 1 == 1);
            state.phase[at] == ASKING && state.coming[at] == 0 && state.got[at] == 0 && { known }
                .all(|a| state.waiting[usize::from(a)].contains(&victim))
        };
        let kept: Vec<bool> = states.iter().map(waits).collect();
        let others = (0..self.claims.len() as u8).filter(|claim| *claim != victim);
        let wanted: u32 = others.map(|claim| 1 << claim).sum();
        components(edges, &kept).into_iter().any(|members| {
            let inside: std::collections::HashSet<usize> = members.iter().copied().collect();
            let mut served = 0u32;
            for &from in &members {
                for (to, enters) in &edges[from] {
                    if inside.contains(to) {
                        served |= enters.map_or(0, |claim| 1 << claim);
                    }
                }
            }
            served == wanted
        })
    }
}

fn story(came: &[(usize, String)], mut at: usize) -> Vec<String> {
    let mut story = Vec::new();
    while at != 0 {
        story.push(came[at].1.clone());
        at = came[at].0;
    }
    story.reverse();
    story
}

/// Strongly connected components of the states that are kept (Kosaraju, without recursion).
fn components(edges: &[Vec<(usize, Option<u8>)>], kept: &[bool]) -> Vec<Vec<usize>> {
    let mut back = vec![Vec::new(); edges.len()];
    for (from, out) in edges.iter().enumerate() {
        for (to, _) in out {
            back[*to].push(from);
        }
    }
    let mut seen = vec![false; edges.len()];
    let mut left = Vec::new();
    for root in (0..edges.len()).filter(|at| kept[*at]) {
        let mut stack = vec![(root, 0)];
        while let Some((at, edge)) = stack.pop() {
            if edge == 0 {
                if seen[at] {
                    continue;
                }
                seen[at] = true;
            }
            match edges[at].get(edge) {
                Some((to, _)) => {
                    stack.push((at, edge + 1));
                    if kept[*to] && !seen[*to] {
                        stack.push((*to, 0));
                    }
                }
                None => left.push(at),
            }
        }
    }
    let mut found = Vec::new();
    let mut taken = vec![false; edges.len()];
    for root in left.into_iter().rev() {
        let mut members = Vec::new();
        let mut stack = vec![root];
        while let Some(at) = stack.pop() {
            if !kept[at] || std::mem::replace(&mut taken[at], true) {
                continue;
            }
            members.push(at);
            stack.extend(&back[at]);
        }
        if !members.is_empty() {
            found.push(members);
        }
    }
    found
}
