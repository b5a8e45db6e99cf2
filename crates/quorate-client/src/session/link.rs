//! Connections as the session sees them: to which nodes, how lively, and when to give one up.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_api::ClaimId;
use quorate_api::link::Ask;

use super::claim::{State, reached};
use super::{Action, Asked, Session};
use crate::chance::Chance;
use crate::clock::Instant;

/// A server of the list, and what is known of it.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) link: Link,
    /// What the node called itself that answered there last.
    pub(super) name: Option<String>,
    /// What was asked on this connection and not answered.
    pub(super) asked: BTreeMap<u64, Asked>,
    /// How many claims are asked for there.
    pub(super) claims: usize,
    /// When a claim last went there because the node decides.
    pub(super) used: Instant,
    /// Attempts in a row to have a second connection there that came to nothing...
    pub(super) strikes: u32,
    /// ...and when the next one may be made.
    pub(super) rests_until: Instant,
}

/// A connection to one server.
#[derive(Clone, Debug)]
pub(super) enum Link {
    /// There is none, and nobody needs one before that moment, or at all.
    Down { retry_at: Option<Instant> },
    /// It is being made; the node has not said who it is.
    Dialing { give_up_at: Instant },
    /// The node answered.
    Up {
        /// When anything last came from it.
        heard: Instant,
        /// Since when a ping has gone unanswered.
        pinged: Option<Instant>,
    },
}

/// Whom to ask after a connection is gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// The same node once more.
    Same,
    /// Another of the list.
    Another,
    /// The node of this name, if it is known which that is.
    Named(String),
}

impl Link {
    /// When something is to be done about it, given how often it should show signs of life; never,
    /// for a connection that nobody needs now.
    fn due(&self, needed: bool, beat: Duration) -> Option<Instant> {
        match *self {
            Link::Down { retry_at } => retry_at,
            Link::Dialing { give_up_at } => Some(give_up_at),
            Link::Up { .. } if !needed => None,
            Link::Up { pinged: Some(since), .. } => Some(since + beat * SILENT_BEATS),
            Link::Up { heard, pinged: None } => Some(heard + beat),
        }
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self, Link::Up { .. })
    }

    fn is_down(&self) -> bool {
        matches!(self, Link::Down { .. })
    }

    fn is_asked(&self) -> bool {
        matches!(self, Link::Dialing { .. })
    }
}

impl Line {
    pub(super) fn new(now: Instant) -> Line {
        Line {
            link: Link::Down { retry_at: None },
            name: None,
            asked: BTreeMap::new(),
            claims: 0,
            used: now,
            strikes: 0,
            rests_until: now,
        }
    }

    pub(super) fn is_named(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name)
    }

    /// Whether a second connection may be made there.
    fn is_free(&self, now: Instant) -> bool {
        self.link.is_down() && self.rests_until <= now
    }
}

impl Session {
    pub(super) fn is_up(&self, server: usize) -> bool {
        self.lines[server].link.is_up()
    }

    /// When something is to be done about connections.
    pub(super) fn links_due(&self) -> Option<Instant> {
        (0..self.lines.len()).filter_map(|server| self.link_due(server)).min()
    }

    fn link_due(&self, server: usize) -> Option<Instant> {
        let line = &self.lines[server];
        let home = server == self.home;
        let needed = if home { !self.claims.is_empty() } else { line.claims > 0 };
        match line.link {
            Link::Up { .. } if !home && !needed => Some(line.used + LINGER),
            _ => line.link.due(needed, self.beat()),
        }
    }

    pub(super) fn on_welcome(&mut self, now: Instant, server: usize, cluster: String, node: &str) {
        let ours = self.cluster.get_or_insert_with(|| cluster.clone());
        if *ours != cluster {
            let why = format!("node {node} belongs to cluster {cluster:?}, not {ours:?}");
            return self.hang_up(now, server, why);
        }
        let line = &mut self.lines[server];
        line.link = Link::Up { heard: now, pinged: None };
        line.name = Some(node.to_owned());
        (line.used, line.strikes) = (now, 0);
        if server == self.home {
            self.actions.push_back(Action::Online { server });
            let all = self.move_claims(server, server);
            return self.ask_all(now, all);
        }
        if !self.hints.values().any(|hint| hint == node) {
            // It was asked who it is, and is not the one that was looked for.
            self.close(server);
        }
        if let Some(name) = self.sought.clone() {
            self.seek(now, &name);
        }
    }

    /// Asks anew for these.
    fn ask_all(&mut self, now: Instant, ids: Vec<ClaimId>) {
        for id in ids {
            if let Some(mut claim) = self.take(id) {
                claim.moved |= claim.is_known();
                self.ask_again(now, id, &mut claim);
                self.put(id, claim);
            }
        }
    }

    /// What is asked for there is asked for elsewhere, or there on another connection: which claims
    /// that are.
    fn move_claims(&mut self, from: usize, to: usize) -> Vec<ClaimId> {
        let mut moved = Vec::new();
        for (id, claim) in self.claims.iter_mut().filter(|(_, claim)| claim.at == from) {
            claim.moves_to(to);
            moved.push(*id);
        }
        self.lines[from].claims -= moved.len();
        self.lines[to].claims += moved.len();
        moved
    }

    pub(super) fn look_after_links(&mut self, now: Instant) {
        for server in 0..self.lines.len() {
            if reached(self.link_due(server), now) {
                self.look_after_link(now, server);
            }
        }
    }

    fn look_after_link(&mut self, now: Instant, server: usize) {
        let idle = server != self.home && self.lines[server].claims == 0;
        match &mut self.lines[server].link {
            Link::Down { .. } => self.dial(now, server),
            Link::Dialing { .. } => self.hang_up(now, server, "no answer in time".into()),
            Link::Up { .. } if idle => self.close(server),
            Link::Up { pinged: Some(_), .. } => {
                self.hang_up(now, server, "the node went silent".into());
            }
            Link::Up { pinged, .. } => {
                *pinged = Some(now);
                self.send(now, server, None, Ask::Ping);
            }
        }
    }

    fn dial(&mut self, now: Instant, server: usize) {
        let mut patience = self.pace.dial.min(self.beat() * 2);
        if server == self.home {
            patience = patience.min(self.haste());
        }
        self.lines[server].link = Link::Dialing { give_up_at: now + patience };
        self.actions.push_back(Action::Dial { server });
    }

    /// Gives up a connection that nothing depends on.
    fn close(&mut self, server: usize) {
        self.actions.push_back(Action::HangUp { server });
        let line = &mut self.lines[server];
        line.link = Link::Down { retry_at: None };
        line.asked.clear();
    }

    /// Where to ask for something of a pool: where it is decided, if there is a connection; else at
    /// home, and a connection is made, so that the next claim finds it.
    pub(super) fn whereto(&mut self, now: Instant, pool: &str) -> usize {
        let Some(name) = self.hints.get(pool) else { return self.home };
        if self.lines[self.home].is_named(name) {
            return self.home;
        }
        let up = self.lines.iter().position(|line| line.is_named(name) && line.link.is_up());
        if let Some(server) = up {
            self.lines[server].used = now;
            return server;
        }
        let name = name.clone();
        self.seek(now, &name);
        self.home
    }

    /// Makes a second connection to the node of this name. Which of the list it is shows when it
    /// answers: those are asked one by one that have not said who they are.
    fn seek(&mut self, now: Instant, name: &str) {
        let home = self.home;
        let beside = || self.lines.iter().enumerate().filter(|(server, _)| *server != home);
        let is_met = self.lines.iter().any(|line| line.is_named(name));
        let found = match is_met {
            true => beside().find(|(_, line)| line.is_named(name) && line.is_free(now)),
            // Whoever is being asked may be the one.
            false if beside().any(|(_, line)| line.link.is_asked()) => return,
            false => beside().find(|(_, line)| line.name.is_none() && line.is_free(now)),
        };
        let found = found.map(|(server, _)| server);
        self.sought = (!is_met).then(|| name.to_owned());
        if let Some(server) = found {
            self.dial(now, server);
        }
    }

    /// A node says who decides over a pool.
    pub(super) fn on_decides(&mut self, pool: String, node: String) {
        if self.hints.len() >= HINTS_MAX && !self.hints.contains_key(&pool) {
            self.hints.clear(); // They come again.
        }
        self.hints.insert(pool, node);
    }

    /// A node stops, and what it decided others decide from now on.
    pub(super) fn on_goodbye(&mut self, now: Instant, server: usize, go_on: Option<String>) {
        if let Some(name) = &self.lines[server].name {
            self.hints.retain(|_, node| node != name);
        }
        self.actions.push_back(Action::HangUp { server });
        let next = go_on.map_or(Next::Another, Next::Named);
        self.drop_link(now, server, "the node is stopping".into(), next);
    }

    /// How often a connection that is needed should show signs of life: often enough to try
    /// another node, and another, within the shortest lease seen.
    pub(super) fn beat(&self) -> Duration {
        self.shortest_lease.map_or(self.pace.beat, |lease| (lease / 6).min(self.pace.beat))
    }

    /// How long a node may take to answer somebody who holds units, whose time is running out: a
    /// twelfth of the lease, and when nobody was so quick longer with each round.
    fn haste(&self) -> Duration {
        let holds = self.claims.values().any(|claim| matches!(claim.state, State::Holding(_)));
        let Some(lease) = self.shortest_lease.filter(|_| holds) else { return Duration::MAX };
        lease / 12 * (1 << self.rounds().min(2))
    }

    /// How often all servers have failed.
    fn rounds(&self) -> u32 {
        self.failures / u32::try_from(self.lines.len()).unwrap_or(u32::MAX).max(1)
    }

    pub(super) fn hang_up(&mut self, now: Instant, server: usize, why: String) {
        self.actions.push_back(Action::HangUp { server });
        self.drop_link(now, server, why, Next::Another);
    }

    /// A connection is gone. What was asked for there is asked for at home; and if it was home,
    /// there is another one.
    pub(super) fn drop_link(&mut self, now: Instant, server: usize, why: String, next: Next) {
        let beat = self.beat();
        let line = &mut self.lines[server];
        line.asked.clear();
        line.link = Link::Down { retry_at: None };
        if next != Next::Same {
            line.rests_until = now + REST * (1 << line.strikes.min(REST_DOUBLINGS_MAX));
            line.strikes += 1;
        }
        if server != self.home {
            let moved = self.move_claims(server, self.home);
            if self.is_up(self.home) {
                self.ask_all(now, moved);
            }
            return;
        }
        self.failures += 1;
        self.why_down = why;
        self.home = match &next {
            Next::Same => server,
            Next::Another => self.next_home(None),
            Next::Named(name) => self.next_home(Some(name)),
        };
        let home = self.home;
        let moved = self.move_claims(server, home);
        match self.lines[home].link {
            Link::Up { .. } => {
                self.actions.push_back(Action::Online { server: home });
                self.ask_all(now, moved);
            }
            Link::Dialing { .. } => {}
            Link::Down { .. } => {
                let wait = backoff(self.failures, self.lines.len(), &mut self.chance);
                let retry_at = Some(now + wait.min(beat * 2));
                self.lines[home].link = Link::Down { retry_at };
            }
        }
        if !self.is_up(home) && (self.failures as usize).is_multiple_of(self.lines.len()) {
            self.actions.push_back(Action::Offline { server, why: self.why_down.clone() });
        }
    }

    /// Who is asked in general when the one that was is gone: who is called so, or who answers
    /// already, or the next of the list.
    fn next_home(&self, name: Option<&str>) -> usize {
        let lines = self.lines.iter().enumerate();
        let others = lines.filter(|(server, _)| *server != self.home);
        let mut known = others.clone().filter(|(_, line)| name.is_some_and(|it| line.is_named(it)));
        let mut up = others.filter(|(_, line)| line.link.is_up());
        let found = known.next().or_else(|| up.next()).map(|(server, _)| server);
        found.unwrap_or((self.home + 1) % self.lines.len())
    }
}

/// Beats without an answer after which a connection counts as dead.
const SILENT_BEATS: u32 = 2;
/// How long a second connection is kept that no claim has used.
const LINGER: Duration = Duration::from_secs(30);
/// How long a node is left alone that could not be had beside another, and how often that doubles.
const REST: Duration = Duration::from_secs(1);
const REST_DOUBLINGS_MAX: u32 = 6;
/// Pools of which it is remembered who decides.
const HINTS_MAX: usize = 4096;
const BACKOFF_MIN: Duration = Duration::from_millis(20);
const BACKOFF_DOUBLINGS_MAX: u32 = 6;
/// How long to wait after so many failures in a row. The next server of the list is tried at once;
/// only when all have failed does waiting begin, and it is never the same for two clients: those
/// that lost one node together must not come to the next one together.
fn backoff(failures: u32, servers: usize, chance: &mut Chance) -> Duration {
    let rounds = failures / u32::try_from(servers).unwrap_or(u32::MAX).max(1);
    if rounds == 0 {
        return Duration::ZERO;
    }
    let most = BACKOFF_MIN * (1 << (rounds - 1).min(BACKOFF_DOUBLINGS_MAX));
    let half = most / 2;
    half + Duration::from_nanos(chance.below(half.as_nanos() as u64 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_server_is_tried_at_once_and_a_full_round_waits_longer_each_time() {
        let mut chance = Chance::new(7);
        assert_eq!(backoff(1, 3, &mut chance), Duration::ZERO);
        assert_eq!(backoff(2, 3, &mut chance), Duration::ZERO);
        for round in 1..40 {
            let most = BACKOFF_MIN * (1 << (round - 1).min(BACKOFF_DOUBLINGS_MAX));
            let wait = backoff(3 * round, 3, &mut chance);
            assert!(wait >= most / 2 && wait <= most, "{round}: {wait:?}");
        }
    }
}
