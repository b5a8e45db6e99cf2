//! Many sessions in one small seeded world: requests and answers are late, connections break, nodes
//! fall silent, clients sleep. One arbiter stands behind all nodes and takes units back exactly one
//! lease after it gave them. Nodes name each other, by turns, as the one that decides, so that
//! clients have several connections. What clients believe to hold must never exceed what there is.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use quorate_api::link::{Answer, Ask, FromNode, Reply, Request, Share};
use quorate_api::{ClaimId, ClaimState};

use super::tests::nameless;
use super::{Action, News, Pace, Session};
use crate::chance::Chance;
use crate::clock::Instant;

const UNITS: u32 = 3;
const CLIENTS: usize = 4;
const SERVERS: usize = 3;
const LEASE: Duration = Duration::from_millis(1200);
const STEP: Duration = Duration::from_millis(10);
const STEPS: usize = 6_000;

/// The truth: who holds what until when, and who waits since when.
#[derive(Default)]
struct Arbiter {
    fence: u64,
    holds: BTreeMap<ClaimId, (Vec<Share>, Instant)>,
    queue: VecDeque<ClaimId>,
    wants: BTreeMap<ClaimId, u32>,
}

impl Arbiter {
    fn settle(&mut self, now: Instant) {
        self.holds.retain(|_, (_, end)| *end > now);
        while let Some(&id) = self.queue.front() {
            let taken: Vec<u32> =
                self.holds.values().flat_map(|(shares, _)| shares).map(|s| s.unit).collect();
            let free: Vec<u32> = (0..UNITS).filter(|unit| !taken.contains(unit)).collect();
            let want = self.wants[&id] as usize;
            if free.len() < want {
                return;
            }
            self.fence += 1;
            let shares =
                free[..want].iter().map(|&unit| Share { unit, fence: self.fence }).collect();
            self.holds.insert(id, (shares, now + LEASE));
            self.queue.pop_front();
        }
    }

    fn end(&mut self, id: ClaimId) {
        self.holds.remove(&id);
        self.queue.retain(|other| *other != id);
        self.wants.remove(&id);
    }
}

/// A client with what it believes, and the messages to and from it.
struct Party {
    session: Session,
    asleep_until: Instant,
    /// Grants it believes in, with their deadlines.
    believes: BTreeMap<ClaimId, (u32, Instant)>,
    serial: u64,
    connections: [Option<Connection>; SERVERS],
    granted: usize,
    /// What was sent while there were several connections.
    elsewhere: usize,
}

struct Connection {
    requests: VecDeque<(Instant, Request)>,
    answers: VecDeque<(Instant, FromNode)>,
    /// Claims and renewals that the node has not answered, with its receipt of them.
    pending: Vec<(u64, ClaimId, Instant)>,
    broken: bool,
}

struct World {
    chance: Chance,
    now: Instant,
    arbiter: Arbiter,
    parties: Vec<Party>,
}

impl World {
    fn new(seed: u64) -> World {
        let now = Instant::now();
        let mut chance = Chance::new(seed);
        let parties = (0..CLIENTS)
            .map(|_| Party {
                session: Session::new(nameless(), SERVERS, Pace::default(), chance.draw(), now),
                asleep_until: now,
                believes: BTreeMap::new(),
                serial: 0,
                connections: Default::default(),
                granted: 0,
                elsewhere: 0,
            })
            .collect();
        World { chance, now, arbiter: Arbiter::default(), parties }
    }

    fn delay(&mut self) -> Instant {
        let most = if self.chance.below(20) == 0 { 1500 } else { 60 };
        self.now + Duration::from_millis(self.chance.below(most))
    }

    fn step(&mut self, who: usize, faults: bool) {
        for server in 0..SERVERS {
            self.serve(who, server);
        }
        if faults {
            self.harm(who);
        }
        if self.parties[who].asleep_until > self.now {
            return; // Its clock goes on; nobody looks at it.
        }
        self.deliver(who);
        self.perform(who);
        self.live(who);
        self.perform(who);
    }

    /// The node's side of one connection.
    fn serve(&mut self, who: usize, server: usize) {
        let Some(mut connection) = self.parties[who].connections[server].take() else { return };
        while connection.requests.front().is_some_and(|(at, _)| *at <= self.now) {
            let (_, request) = connection.requests.pop_front().expect("looked at above");
            let number = request.number;
            let mut say = |world: &mut World, reply| {
                let at = world.delay();
                let at = connection.answers.back().map_or(at, |(last, _)| at.max(*last));
                connection.answers.push_back((at, FromNode::Answer(Answer { number, reply })));
            };
            match request.ask {
                Ask::Hello { .. } | Ask::Introduce { .. } => {
                    let (node, cluster) = (format!("n{server}"), "c".into());
                    say(self, Reply::Welcome { node, cluster, boot: 1 });
                }
                Ask::Claim { id, want, .. } => {
                    let known = self.arbiter.wants.insert(id, want.units()).is_some();
                    if !known {
                        self.arbiter.queue.push_back(id);
                    }
                    connection.pending.push((number, id, self.now));
                    if self.chance.below(4) == 0 {
                        let node = format!("n{}", self.chance.below(SERVERS as u64 + 1));
                        let at = connection.answers.back().map_or(self.now, |(last, _)| *last);
                        let said = FromNode::Decides { pool: "p".into(), node };
                        connection.answers.push_back((at, said));
                    }
                }
                Ask::Renew { id, .. } => {
                    if let Some((_, end)) = self.arbiter.holds.get_mut(&id) {
                        *end = (*end).max(self.now + LEASE);
                    }
                    connection.pending.push((number, id, self.now));
                }
                Ask::Release { id, .. } => {
                    self.arbiter.end(id);
                    say(self, Reply::Over { state: ClaimState::Released, why: String::new() });
                }
                Ask::Status { .. } => say(self, Reply::Waiting),
                Ask::Ping => say(self, Reply::Pong),
            }
        }
        self.arbiter.settle(self.now);
        for (number, id, receipt) in std::mem::take(&mut connection.pending) {
            let reply = match self.arbiter.holds.get(&id) {
                Some((shares, end)) => Reply::Granted {
                    units: shares.clone(),
                    valid_for_micros: end.saturating_duration_since(receipt).as_micros() as u64,
                    lease_micros: LEASE.as_micros() as u64,
                    counted: false,
                    about: Vec::new(),
                    moves: Vec::new(),
                },
                None if self.arbiter.queue.contains(&id) => {
                    connection.pending.push((number, id, receipt));
                    continue;
                }
                None => Reply::Over { state: ClaimState::Lost, why: "the lease ended".into() },
            };
            let at = self.delay();
            let at = connection.answers.back().map_or(at, |(last, _)| at.max(*last));
            connection.answers.push_back((at, FromNode::Answer(Answer { number, reply })));
        }
        self.parties[who].connections[server] = Some(connection);
    }

    fn harm(&mut self, who: usize) {
        let (break_it, sleep) = (self.chance.below(60) == 0, self.chance.below(400) == 0);
        let nap = self.now + Duration::from_millis(self.chance.below(3000));
        let which = self.chance.below(SERVERS as u64) as usize;
        let party = &mut self.parties[who];
        if break_it && let Some(connection) = &mut party.connections[which] {
            connection.broken = true;
        }
        if sleep {
            party.asleep_until = nap;
        }
    }

    fn deliver(&mut self, who: usize) {
        let now = self.now;
        let party = &mut self.parties[who];
        party.session.wake(now);
        for server in 0..SERVERS {
            while let Some(connection) = &mut party.connections[server]
                && connection.answers.front().is_some_and(|(at, _)| *at <= now)
            {
                let (_, message) = connection.answers.pop_front().expect("looked at above");
                party.session.heard(now, server, message);
            }
            if party.connections[server].as_ref().is_some_and(|it| it.broken) {
                party.connections[server] = None;
                party.session.disconnected(now, server, "cut".into());
            }
        }
    }

    /// The client claims, uses, releases and loses patience.
    fn live(&mut self, who: usize) {
        let (now, dice, units) =
            (self.now, self.chance.below(100), self.chance.below(3) as u32 + 1);
        let patience = Duration::from_millis(self.chance.below(4000));
        let party = &mut self.parties[who];
        if dice < 3 {
            party.serial += 1;
            let id = ClaimId::from_halves(who as u64, party.serial);
            let give_up_at = (dice == 0).then(|| now + patience);
            party.session.claim(now, ("p".into(), id), units.into(), give_up_at);
        } else if dice < 8 {
            if let Some(id) = party.believes.keys().next().copied() {
                party.believes.remove(&id);
                party.session.release(now, id);
            }
        } else if dice == 8 && party.serial > 0 {
            let id = ClaimId::from_halves(who as u64, party.serial);
            party.believes.remove(&id);
            party.session.abandon(now, id);
        }
    }

    fn perform(&mut self, who: usize) {
        while let Some(action) = self.parties[who].session.next_action() {
            let (at, refused) = (self.delay(), self.chance.below(10) == 0);
            let now = self.now;
            let party = &mut self.parties[who];
            match action {
                Action::Dial { server } if refused => {
                    party.session.disconnected(now, server, "no".into());
                }
                Action::Dial { server } => {
                    party.connections[server] = Some(Connection {
                        requests: VecDeque::new(),
                        answers: VecDeque::new(),
                        pending: Vec::new(),
                        broken: false,
                    });
                    party.session.dialed(now, server);
                }
                Action::HangUp { server } => party.connections[server] = None,
                Action::Send { server, request } => {
                    let others = party.connections.iter().flatten().count();
                    party.elsewhere += usize::from(others > 1);
                    // Lost, if the connection broke at this very moment.
                    let Some(connection) = &mut party.connections[server] else { continue };
                    let requests = &mut connection.requests;
                    let at = requests.back().map_or(at, |(last, _)| at.max(*last));
                    requests.push_back((at, request));
                }
                Action::Tell { id, news } => party.hear(id, news),
                Action::Online { .. } | Action::Offline { .. } => {}
            }
        }
    }

    /// Units that clients may be using now, by their own belief.
    fn in_use(&self) -> u32 {
        self.parties
            .iter()
            .flat_map(|party| party.believes.values())
            .filter(|(_, deadline)| *deadline > self.now)
            .map(|(units, _)| units)
            .sum()
    }
}

impl Party {
    fn hear(&mut self, id: ClaimId, news: News) {
        match news {
            News::Granted { shares, deadline, .. } => {
                self.granted += 1;
                self.believes.insert(id, (shares.len() as u32, deadline));
            }
            News::Extended { deadline } => {
                let (_, until) = self.believes.get_mut(&id).expect("it was granted");
                assert!(deadline >= *until, "a renewal never takes time away");
                *until = deadline;
            }
            News::Lost(_) => {
                self.believes.remove(&id);
            }
            News::Move(_) => unreachable!("nobody here can be moved"),
            News::Refused(_) | News::Left(_) => assert!(!self.believes.contains_key(&id)),
        }
    }
}

fn run(seed: u64) -> (usize, u32, usize) {
    let mut world = World::new(seed);
    let mut most = 0;
    for step in 0..STEPS {
        world.now = world.now + STEP;
        for who in 0..CLIENTS {
            world.step(who, step < STEPS / 2);
            let used = world.in_use();
            most = most.max(used);
            assert!(used <= UNITS, "seed {seed}: {used} units in use at step {step}");
        }
    }
    let sum = |count: fn(&Party) -> usize| world.parties.iter().map(count).sum();
    (sum(|party| party.granted), most, sum(|party| party.elsewhere))
}

#[test]
fn clients_never_believe_in_more_units_than_there_are() {
    let (mut granted, mut most, mut beside) = (0, 0, 0);
    for seed in 0..30 {
        let (g, m, b) = run(seed);
        (granted, most, beside) = (granted + g, most.max(m), beside + b);
    }
    assert!(granted > 1000, "the world is busy: {granted}");
    assert!(beside > 1000, "on several connections: {beside}");
    assert_eq!(most, UNITS, "and its pool is used to the full");
}
