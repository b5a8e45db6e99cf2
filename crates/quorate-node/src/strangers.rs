//! Who asks with tokens that nobody knows, and how often lately.
//!
//! Whoever tries one token after the other must not keep the node from those who need it, on one
//! connection or on a fresh one each time. So it is the address that is remembered: after a few
//! wrong ones each answer takes longer, up to [`MOST`], and while many from one address wait for
//! theirs, nobody else from there is let in, before any handshake. A wrong one now and then is a
//! mistake, and costs nothing. Whoever is connected and known is not concerned.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quorate_core::Moment;

use crate::caller::Whence;
use crate::clock;
use crate::crowd::party;

/// The longest wait for the news that a token is wrong.
const MOST: Duration = Duration::from_secs(2);
/// Wrong ones that cost nothing.
const FREE: u32 = 8;
/// After this long one more is forgiven.
const FORGIVEN: Duration = Duration::from_secs(1);
/// Most addresses that are remembered.
const KNOWN_MAX: usize = 10_000;

/// Those who are not known, by where they call from. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strangers(Arc<Mutex<BTreeMap<Whence, Tally>>>);

#[derive(Clone, Copy, Debug)]
struct Tally {
    /// Wrong tokens that are not forgiven yet...
    wrong: u32,
    /// ...as of then.
    since: Moment,
    /// How many wait for an answer.
    waiting: usize,
}

impl Tally {
    fn forgive(&mut self, now: Moment) {
        let spans = now.since(self.since).as_nanos() / FORGIVEN.as_nanos();
        let spans = u32::try_from(spans).unwrap_or(u32::MAX);
        self.wrong = self.wrong.saturating_sub(spans);
        self.since = match self.wrong {
            0 => now,
            _ => self.since.after(FORGIVEN.saturating_mul(spans)),
        };
    }
}

/// Somebody who waits for the news that its token is wrong.
#[derive(Debug)]
struct Waits {
    among: Strangers,
    whence: Whence,
}

impl Drop for Waits {
    fn drop(&mut self) {
        if let Some(tally) = self.among.inside().get_mut(&self.whence) {
            tally.waiting = tally.waiting.saturating_sub(1);
        }
    }
}

impl Strangers {
    /// Somebody there has shown a token that nobody knows, or none: it waits before it is told.
    pub(crate) async fn keep_waiting(&self, whence: Whence) {
        if whence == Whence::Node {
            return; // It is no stranger to itself.
        }
        let (pause, waits) = self.wrong(whence, clock::now());
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        drop(waits);
    }

    /// How many from there wait for an answer.
    pub(crate) fn waiting(&self, whence: Whence) -> usize {
        self.inside().get(&of(whence)).map_or(0, |tally| tally.waiting)
    }

    /// One more wrong token: how long it waits, and its place among those who do.
    fn wrong(&self, whence: Whence, now: Moment) -> (Duration, Waits) {
        let whence = of(whence);
        let mut inside = self.inside();
        if inside.len() >= KNOWN_MAX && !inside.contains_key(&whence) {
            inside.retain(|_, tally| {
                tally.forgive(now);
                tally.wrong > 0 || tally.waiting > 0
            });
        }
        let pause = match inside.len() < KNOWN_MAX || inside.contains_key(&whence) {
            true => {
                let new = Tally { wrong: 0, since: now, waiting: 0 };
                let tally = inside.entry(whence).or_insert(new);
                tally.forgive(now);
                tally.wrong = tally.wrong.saturating_add(1);
                tally.waiting += 1;
                pause(tally.wrong)
            }
            // There is no end of strangers.
            false => MOST,
        };
        drop(inside);
        (pause, Waits { among: self.clone(), whence })
    }

    fn inside(&self) -> MutexGuard<'_, BTreeMap<Whence, Tally>> {
        // Nobody panics in the middle of it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whom an address stands for, see [`party`].
fn of(whence: Whence) -> Whence {
    match whence {
        Whence::Address(address) => Whence::Address(party(address)),
        Whence::Local { .. } | Whence::Node => whence,
    }
}

fn pause(wrong: u32) -> Duration {
    match wrong.checked_sub(FREE + 1) {
        None => Duration::ZERO,
        Some(more) => Duration::from_millis(125).saturating_mul(1 << more.min(8)).min(MOST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(address: &str) -> Whence {
        Whence::Address(address.parse().unwrap())
    }

    #[test]
    fn who_tries_one_token_after_the_other_waits_longer_and_longer() {
        let millis = |wrong| pause(wrong).as_millis();
        assert_eq!([1, 8, 9, 10, 11, 12].map(millis), [0, 0, 125, 250, 500, 1000]);
        assert_eq!([13, 14, 1000, u32::MAX].map(millis), [2000; 4]);
    }

    #[test]
    fn it_is_the_address_that_waits_and_is_forgiven_with_time() {
        let (strangers, mut now) = (Strangers::default(), Moment(1_000_000_000_000));
        let wrong = |whence, now| strangers.wrong(whence, now).0.as_millis();
        let there = from("10.0.0.7");
        for _ in 0..FREE {
            assert_eq!(wrong(there, now), 0);
        }
        assert_eq!([(); 6].map(|()| wrong(there, now)), [125, 250, 500, 1000, 2000, 2000]);
        assert_eq!(wrong(from("10.0.0.8"), now), 0, "its neighbour has done nothing");
        assert_eq!(wrong(Whence::Local { user: 7 }, now), 0);
        now = now.after(Duration::from_secs(4));
        assert_eq!(wrong(there, now), 500, "fourteen, four of them forgiven, and one more");
        now = now.after(Duration::from_secs(3600));
        assert_eq!(wrong(there, now), 0);
    }

    #[test]
    fn who_waits_is_counted_until_it_is_told() {
        let (strangers, now) = (Strangers::default(), Moment(7));
        // Of the new kind of addresses, everybody has 2^64.
        let waits: Vec<_> = ["2001:db8::1", "2001:db8::2", "::ffff:10.0.0.7"]
            .map(|address| strangers.wrong(from(address), now).1)
            .into();
        assert_eq!(strangers.waiting(from("2001:db8::3")), 2);
        assert_eq!(strangers.waiting(from("10.0.0.7")), 1);
        drop(waits);
        assert_eq!(strangers.waiting(from("2001:db8::3")), 0);
    }

    #[test]
    fn not_more_addresses_are_remembered_than_there_is_room_for() {
        let (strangers, mut now) = (Strangers::default(), Moment(7));
        let number = |it: usize| Whence::Local { user: u32::try_from(it).unwrap() };
        for user in 0..KNOWN_MAX {
            assert_eq!(strangers.wrong(number(user), now).0, Duration::ZERO);
        }
        assert_eq!(strangers.wrong(number(KNOWN_MAX), now).0, MOST);
        assert_eq!(strangers.inside().len(), KNOWN_MAX);
        now = now.after(FORGIVEN);
        assert_eq!(strangers.wrong(number(KNOWN_MAX), now).0, Duration::ZERO, "they are forgiven");
        assert_eq!(strangers.inside().len(), 1);
    }
}
