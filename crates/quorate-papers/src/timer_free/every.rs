//! Every history of a small world of the timer-free algorithm: breadth first, each process with
//! finitely many requests, so that nobody who waits where nothing can happen is served ever.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use super::model::{Message, Phase, Process, Seen, Terms};

/// A small world of `N` processes.
#[derive(Clone, Copy, Debug)]
pub(super) struct World<const N: usize> {
    pub(super) terms: Terms,
    /// Requests of each.
    pub(super) requests: [u8; N],
    /// Who has crashed before the first step.
    pub(super) dead: u32,
    /// Whether links keep the order.
    pub(super) ordered: bool,
    /// How many may crash, at any point.
    pub(super) crashes: u8,
    /// How many messages may arrive twice.
    pub(super) duplicates: u8,
    /// For each process, who always hears it in time; 0 imposes nothing.
    pub(super) heard_by: [u32; N],
    /// Whether who is inside leaves.
    pub(super) leaves: bool,
    /// With what the search ends.
    pub(super) until: Until,
}

/// When a search has found enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Until {
    /// Never: every history.
    AllSeen,
    /// With the first thing that is wrong.
    Wrong,
    /// With one inside too many.
    TooMany,
    /// With one who waits for ever.
    Stuck,
}

impl Until {
    fn is_reached(self, found: &Found) -> bool {
        match self {
            Until::AllSeen => false,
            Until::Wrong => !found.is_right(),
            Until::TooMany => found.too_many.is_some(),
            Until::Stuck => found.stuck.is_some(),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State<const N: usize> {
    processes: [Process<N>; N],
    left: [u8; N],
    alive: u32,
    crashes: u8,
    duplicates: u8,
    /// From, to, what; in the order of each link, or sorted where there is none.
    links: Vec<(u8, u8, Message)>,
}

/// What was found.
#[derive(Clone, Default, Debug)]
pub(super) struct Found {
    pub(super) states: u64,
    /// The shortest histories to more inside than units, to a live process that is taken for
    /// crashed, to somebody who waits for ever, and to the first crash that is found.
    pub(super) too_many: Option<Vec<String>>,
    pub(super) suspected: Option<Vec<String>>,
    pub(super) stuck: Option<Vec<String>>,
    pub(super) detected: Option<Vec<String>>,
    /// Most inside at once; while a crash is unknown to everybody; and when all know of all.
    pub(super) most: u32,
    pub(super) most_unknown: u32,
    pub(super) most_known: u32,
    /// Entries, those with exactly as many permissions as line 15 wants, and those that only known
    /// crashes allow.
    pub(super) entries: u64,
    pub(super) exact: u64,
    pub(super) reclaimed: u64,
    /// Replies that a process had when it entered: most of those that were no permissions.
    pub(super) refusals: u32,
    /// While one waited, requests that were older or younger, and how many of each were permitted.
    pub(super) younger: (u64, u64),
    pub(super) older: (u64, u64),
    /// Processes that learnt their own name, or more than f names.
    pub(super) own_name: u64,
    pub(super) too_many_names: u64,
    /// Largest not_rec_from, and how often somebody was in its own.
    pub(super) unheard_max: u32,
    pub(super) unheard_self: u64,
    pub(super) clock_wrong: u64,
    /// Requests sent to other than those who are not known to have crashed.
    pub(super) asked_wrong: u64,
    pub(super) asked: u64,
    /// States with room inside in which the oldest waits and no message is under way.
    pub(super) oldest_waits: u64,
    /// States at the end in which somebody owes an answer to one who lives.
    pub(super) owed: u64,
    /// How many others each process has, and most of them that answered one query.
    pub(super) others: u32,
    pub(super) answers_max: u32,
    /// Crashes learnt of one who had permitted the request that waited.
    pub(super) withdrawn: u64,
}

impl Found {
    /// Nothing is wrong.
    pub(super) fn is_right(&self) -> bool {
        self.too_many.is_none() && self.suspected.is_none() && self.stuck.is_none()
    }

    /// What is wrong, in a few words.
    pub(super) fn wrong(&self) -> String {
        let steps = |story: &Option<Vec<String>>, what: &str| {
            story.as_ref().map(|story| format!("{what} after {} steps", story.len()))
        };
        let all = [
            steps(&self.too_many, "one inside too many"),
            steps(&self.suspected, "a live process taken for crashed"),
            steps(&self.stuck, "a live process waits for ever"),
        ];
        let all: Vec<String> = all.into_iter().flatten().collect();
        if all.is_empty() { "nothing wrong".into() } else { all.join(", ") }
    }
}

/// A fast hash, good enough to tell states apart (the constant is the golden ratio's).
#[derive(Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^ (mixed >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_u16(&mut self, value: u16) {
        self.write_u64(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }
}

#[derive(Clone, Copy, Debug)]
enum Move {
    Start,
    Request(usize),
    Leave(usize),
    Rest(usize),
    Crash(usize),
    Deliver(u8, u8, Message, bool),
}

impl Move {
    fn words(self) -> String {
        match self {
            Move::Start => String::new(),
            Move::Request(who) => format!("p{who} requests"),
            Move::Leave(who) => format!("p{who} leaves"),
            Move::Rest(who) => format!("p{who} is idle"),
            Move::Crash(who) => format!("p{who} crashes"),
            Move::Deliver(from, to, Message::Request { clock, .. }, _) => {
                format!("p{to} hears the request [{clock}] of p{from}")
            }
            Move::Deliver(from, to, Message::Reply { clock, permits, .. }, again) => {
                let what = if permits { "PERM" } else { "NOPERM" };
                let again = if again { " once, and it comes again" } else { "" };
                format!("p{to} hears {what} [{clock}] of p{from}{again}")
            }
        }
    }
}

impl<const N: usize> World<N> {
    /// Ordered links; nobody crashes; neighbours on a ring hear each other in time.
    pub(super) fn new(terms: Terms, requests: [u8; N]) -> Self {
        let heard_by = std::array::from_fn(|i| 1 << i | 1 << ((i + 1) % N));
        World {
            terms,
            requests,
            dead: 0,
            ordered: true,
            crashes: 0,
            duplicates: 0,
            heard_by,
            leaves: true,
            until: Until::AllSeen,
        }
    }

    pub(super) fn explore(&self) -> Found {
        let mut found = Found { others: N as u32 - 1, ..Found::default() };
        let mut known: HashSet<u64, BuildHasherDefault<Mixer>> = HashSet::default();
        let mut came: Vec<(u32, Move)> = vec![(0, Move::Start)];
        let mut level = vec![(self.start(), 0u32)];
        known.insert(hash(&level[0].0));
        let mut next_level = Vec::new();
        while !level.is_empty() {
            for (state, number) in level.drain(..) {
                found.states += 1;
                self.judge(&state, number, &came, &mut found);
                if self.until.is_reached(&found) {
                    return found;
                }
                let moves = self.moves(&state);
                if moves.is_empty() {
                    self.judge_end(&state, number, &came, &mut found);
                    if self.until.is_reached(&found) {
                        return found;
                    }
                }
                for one in moves {
                    let next = self.after(&state, one, &mut found);
                    if known.insert(hash(&next)) {
                        came.push((number, one));
                        next_level.push((next, (came.len() - 1) as u32));
                    }
                }
            }
            std::mem::swap(&mut level, &mut next_level);
        }
        found
    }

    fn start(&self) -> State<N> {
        State {
            processes: [Process::new(); N],
            left: self.requests,
            alive: ((1u64 << N) - 1) as u32 & !self.dead,
            crashes: self.crashes,
            duplicates: self.duplicates,
            links: Vec::new(),
        }
    }

    fn judge(&self, state: &State<N>, number: u32, came: &[(u32, Move)], found: &mut Found) {
        let alive = |i: &usize| state.alive >> i & 1 == 1;
        let is_in = |i: &usize| state.processes[*i].phase == Phase::Inside;
        let inside = (0..N).filter(alive).filter(is_in).count() as u32;
        found.most = found.most.max(inside);
        if inside > self.terms.units && found.too_many.is_none() {
            found.too_many = Some(story(came, number));
        }
        let dead = ((1u64 << N) - 1) as u32 & !state.alive;
        let (mut all_know, mut nobody_knows) = (true, true);
        for i in (0..N).filter(alive) {
            let Process { crashed, unheard, .. } = state.processes[i];
            if crashed & state.alive != 0 && found.suspected.is_none() {
                found.suspected = Some(story(came, number));
            }
            if crashed & dead != 0 && found.detected.is_none() {
                found.detected = Some(story(came, number));
            }
            all_know &= crashed & dead == dead;
            nobody_knows &= crashed & dead == 0;
            found.own_name += u64::from(crashed >> i & 1 == 1);
            found.too_many_names += u64::from(crashed.count_ones() > self.terms.crashes_max);
            found.unheard_max = found.unheard_max.max(unheard.count_ones());
            found.unheard_self += u64::from(unheard >> i & 1 == 1);
        }
        if dead != 0 && all_know {
            found.most_known = found.most_known.max(inside);
        } else if dead != 0 && nobody_knows {
            found.most_unknown = found.most_unknown.max(inside);
        }
        let waits = (0..N).filter(alive).any(|i| state.processes[i].phase == Phase::Waiting);
        if waits && state.links.is_empty() && inside < self.terms.units {
            found.oldest_waits += 1;
        }
    }

    fn judge_end(&self, state: &State<N>, number: u32, came: &[(u32, Move)], found: &mut Found) {
        let alive = |i: &usize| state.alive >> i & 1 == 1;
        let waits = |i: usize| state.processes[i].phase == Phase::Waiting;
        if (0..N).filter(alive).any(waits) && found.stuck.is_none() {
            found.stuck = Some(story(came, number));
        }
        found.owed += u64::from((0..N).filter(alive).any(|i| !state.processes[i].owes_nobody()));
    }

    fn moves(&self, state: &State<N>) -> Vec<Move> {
        let mut moves = Vec::new();
        for i in (0..N).filter(|i| state.alive >> i & 1 == 1) {
            match state.processes[i].phase {
                Phase::Idle if state.left[i] > 0 => moves.push(Move::Request(i)),
                Phase::Inside if self.leaves => moves.push(Move::Leave(i)),
                Phase::Leaving => moves.push(Move::Rest(i)),
                _ => {}
            }
            if state.crashes > 0 {
                moves.push(Move::Crash(i));
            }
        }
        let mut before = None;
        for (place, &(from, to, message)) in state.links.iter().enumerate() {
            let blocked = self.ordered && before == Some((from, to));
            let repeated = place > 0 && state.links[place - 1] == (from, to, message);
            before = Some((from, to));
            if blocked || repeated || !self.may_arrive(state, from, to, message) {
                continue;
            }
            moves.push(Move::Deliver(from, to, message, false));
            if state.duplicates > 0 && matches!(message, Message::Reply { permits: true, .. }) {
                moves.push(Move::Deliver(from, to, message, true));
            }
        }
        moves
    }

    /// The responsiveness property: nobody's query ends without those whom it always hears in
    /// time, as long as they live.
    fn may_arrive(&self, state: &State<N>, from: u8, to: u8, message: Message) -> bool {
        let to = usize::from(to);
        let ends = state.processes[to].truly_ends(self.terms, usize::from(from), message);
        let Some(late) = ends else { return true };
        let is_due = |l: usize| late & state.alive & 1 << l != 0 && self.heard_by[l] >> to & 1 == 1;
        !(0..N).any(is_due)
    }

    fn after(&self, state: &State<N>, one: Move, found: &mut Found) -> State<N> {
        let mut next = state.clone();
        let mut out = Vec::new();
        let mut actor = 0;
        let mut seen = Seen::default();
        match one {
            Move::Start => {}
            Move::Request(i) => {
                actor = i;
                next.left[i] -= 1;
                seen = next.processes[i].request(self.terms, i, &mut out);
                let known = state.processes[i].crashed.count_ones();
                found.asked += 1;
                found.asked_wrong += u64::from(out.len() as u32 + known != N as u32 - 1);
            }
            Move::Leave(i) => {
                actor = i;
                next.processes[i].leave(self.terms, &mut out);
            }
            Move::Rest(i) => next.processes[i].rest(),
            Move::Crash(i) => {
                next.crashes -= 1;
                next.alive &= !(1 << i);
                next.links.retain(|(_, to, _)| usize::from(*to) != i);
                next.processes[i] = Process::new();
                next.left[i] = 0;
            }
            Move::Deliver(from, to, message, again) => {
                let is = |link: &(u8, u8, Message)| *link == (from, to, message);
                let place = next.links.iter().position(is).expect("it is under way");
                if again {
                    next.duplicates -= 1;
                } else {
                    next.links.remove(place);
                }
                actor = usize::from(to);
                let terms = self.terms;
                seen =
                    next.processes[actor].hear(terms, actor, usize::from(from), message, &mut out);
                let answered = N as u32 - 1 - next.processes[actor].truly_missing.count_ones();
                found.answers_max = found.answers_max.max(answered);
            }
        }
        self.count(&seen, &next.processes[actor], found);
        for (to, message) in out {
            if next.alive >> to & 1 == 1 {
                next.links.push((actor as u8, to as u8, message));
            }
        }
        let State { processes, links, .. } = &mut next;
        links.retain(|&(from, to, message)| {
            !processes[usize::from(to)].is_idle_talk(self.terms, usize::from(from), message)
        });
        if self.ordered {
            links.sort_by_key(|(from, to, _)| (*from, *to));
        } else {
            links.sort_unstable();
        }
        next
    }

    fn count(&self, seen: &Seen, process: &Process<N>, found: &mut Found) {
        if let Some((permissions, replies)) = seen.entered {
            found.entries += 1;
            let wanted = (N as u32).saturating_sub(process.crashed.count_ones() + self.terms.units);
            found.exact += u64::from(permissions >= wanted);
            found.reclaimed += u64::from(seen.reclaimed);
            found.refusals = found.refusals.max(replies.saturating_sub(permissions));
        }
        if let Some((own_first, permits)) = seen.while_waiting {
            let which = if own_first { &mut found.younger } else { &mut found.older };
            which.0 += 1;
            which.1 += u64::from(permits);
        }
        found.clock_wrong += u64::from(seen.clock_wrong);
        found.withdrawn += u64::from(seen.withdrawn != 0);
    }
}

fn hash<T: Hash>(state: &T) -> u64 {
    let mut mixer = Mixer::default();
    state.hash(&mut mixer);
    mixer.finish()
}

fn story(came: &[(u32, Move)], number: u32) -> Vec<String> {
    let mut story = Vec::new();
    let mut at = number as usize;
    while at != 0 {
        story.push(came[at].1.words());
        at = came[at].0 as usize;
    }
    story.reverse();
    story
}
