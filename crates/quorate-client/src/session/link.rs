//! The connection as the session sees it: to which node, how lively, and when to give it up.

use std::time::Duration;

use quorate_api::ClaimId;
use quorate_api::link::Ask;

use super::claim::{Claim, State, reached};
use super::{Action, Session};
use crate::chance::Chance;
use crate::clock::Instant;

/// The one connection of a session.
#[derive(Clone, Debug)]
pub(super) enum Link {
    /// There is none, and nobody needs one before that moment.
    Down { retry_at: Instant },
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// The same node once more.
    Same,
    /// The next of the list.
    Another,
}

impl Link {
    /// When something is to be done about it, given how often it should show signs of life; never,
    /// for a connection that nobody needs now.
    pub(super) fn due(&self, needed: bool, beat: Duration) -> Option<Instant> {
        match *self {
            Link::Down { retry_at } => Some(retry_at),
            Link::Dialing { give_up_at } => Some(give_up_at),
            Link::Up { .. } if !needed => None,
            Link::Up { pinged: Some(since), .. } => Some(since + beat * SILENT_BEATS),
            Link::Up { heard, pinged: None } => Some(heard + beat),
        }
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self, Link::Up { .. })
    }
}

impl Session {
    pub(super) fn on_welcome(&mut self, now: Instant, cluster: String, node: &str) {
        let ours = self.cluster.get_or_insert_with(|| cluster.clone());
        if *ours != cluster {
            let why = format!("node {node} belongs to cluster {cluster:?}, not {ours:?}");
            return self.hang_up(now, why);
        }
        self.link = Link::Up { heard: now, pinged: None };
        self.actions.push_back(Action::Online { server: self.server });
        let ids: Vec<ClaimId> = self.claims.keys().copied().collect();
        for id in ids {
            if let Some(mut claim) = self.take(id) {
                claim.moved |= !matches!(claim.state, State::Asking { sent: false, .. });
                self.ask_again(now, id, &mut claim);
                self.put(id, claim);
            }
        }
    }

    pub(super) fn look_after_link(&mut self, now: Instant) {
        let beat = self.beat();
        if !reached(self.link.due(!self.claims.is_empty(), beat), now) {
            return;
        }
        match &mut self.link {
            Link::Down { .. } => {
                let patience = self.pace.dial.min(beat * 2).min(self.haste());
                self.link = Link::Dialing { give_up_at: now + patience };
                self.actions.push_back(Action::Dial { server: self.server });
            }
            Link::Dialing { .. } => self.hang_up(now, "no answer in time".into()),
            Link::Up { pinged: Some(_), .. } => {
                self.hang_up(now, "the node went silent".into());
            }
            Link::Up { pinged, .. } => {
                *pinged = Some(now);
                self.send(now, None, Ask::Ping);
            }
        }
    }

    /// How often a connection that is needed should show signs of life: often enough to try
    /// another node, and another, within the shortest lease seen.
    pub(super) fn beat(&self) -> Duration {
        self.shortest_lease.map_or(self.pace.beat, |lease| (lease / 6).min(self.pace.beat))
    }

    /// How long a node may take to answer somebody who holds units, whose time is running out: a
    /// twelfth of the lease, and when nobody was so quick longer with each round.
    fn haste(&self) -> Duration {
        let holds = |claim: &Claim| matches!(claim.state, State::Holding(_));
        let holds = self.claims.values().any(|claim| holds(claim));
        let Some(lease) = self.shortest_lease.filter(|_| holds) else { return Duration::MAX };
        let rounds = self.failures / u32::try_from(self.servers).unwrap_or(u32::MAX).max(1);
        lease / 12 * (1 << rounds.min(2))
    }

    pub(super) fn hang_up(&mut self, now: Instant, why: String) {
        self.actions.push_back(Action::HangUp);
        self.drop_link(now, why, Next::Another);
    }

    pub(super) fn drop_link(&mut self, now: Instant, why: String, next: Next) {
        self.asked.clear();
        for claim in self.claims.values_mut() {
            if let State::Holding(holding) = &mut claim.state {
                holding.unanswered = None;
            }
        }
        self.failures += 1;
        self.why_down = why;
        if (self.failures as usize).is_multiple_of(self.servers) {
            self.actions
                .push_back(Action::Offline { server: self.server, why: self.why_down.clone() });
        }
        if next == Next::Another {
            self.server = (self.server + 1) % self.servers;
        }
        let wait = backoff(self.failures, self.servers, &mut self.chance);
        self.link = Link::Down { retry_at: now + wait.min(self.beat() * 2) };
    }
}

/// Beats without an answer after which a connection counts as dead.
const SILENT_BEATS: u32 = 2;
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
