//! The connection as the session sees it: to which node, how lively, and when to give it up.

use std::time::{Duration, Instant};

use crate::chance::Chance;

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

/// Beats without an answer after which a connection counts as dead.
const SILENT_BEATS: u32 = 2;
const BACKOFF_MIN: Duration = Duration::from_millis(20);
const BACKOFF_DOUBLINGS_MAX: u32 = 6;

/// How long to wait after so many failures in a row. The next server of the list is tried at once;
/// only when all have failed does waiting begin, and it is never the same for two clients: those
/// that lost one node together must not come to the next one together.
pub(super) fn backoff(failures: u32, servers: usize, chance: &mut Chance) -> Duration {
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
