//! The clock that deadlines are read on: one that goes on while the machine sleeps.
//!
//! [`std::time::Instant`] stands still during a suspend, and whoever reads it afterwards believes
//! in a lease that others have seen end. Timers of the runtime stand still as well, so nobody
//! sleeps for long without looking at the clock.

use std::ops::Add;
use std::pin::Pin;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::Sleep;

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: ClockId = ClockId::Boottime;
/// On other systems this is the one that goes on.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOCK: ClockId = ClockId::Monotonic;

/// Longest sleep between two looks at the clock: so late at most is a deadline noticed that passed
/// while the machine slept.
const LOOK: Duration = Duration::from_millis(250);

/// A moment, as [`std::time::Instant`], on a clock that goes on while the machine sleeps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Instant(Duration);

impl Instant {
    /// Reads the clock.
    pub fn now() -> Instant {
        let reading = clock_gettime(CLOCK);
        let seconds = Duration::from_secs(reading.tv_sec.unsigned_abs());
        Instant(seconds + Duration::from_nanos(reading.tv_nsec.unsigned_abs()))
    }

    /// So much later, if there is such a moment.
    pub fn checked_add(self, span: Duration) -> Option<Instant> {
        self.0.checked_add(span).map(Instant)
    }

    /// So much earlier, if there is such a moment.
    pub fn checked_sub(self, span: Duration) -> Option<Instant> {
        self.0.checked_sub(span).map(Instant)
    }

    /// How long it was from an earlier moment to this; zero if that is later.
    pub fn saturating_duration_since(self, earlier: Instant) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// What the clock shows then: the time since the machine was started.
    pub fn reading(self) -> Duration {
        self.0
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    /// # Panics
    /// If there is no such moment.
    fn add(self, span: Duration) -> Instant {
        self.checked_add(span).expect("a moment that the clock can show")
    }
}

/// Waits until the clock shows this, or a quarter of a second longer if the machine slept.
pub async fn sleep_until(at: Instant) {
    loop {
        let left = at.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(LOOK)).await;
    }
}

/// Rings when something is due, for somebody who is mostly woken by something else before: the
/// runtime's timer is set anew only if it would ring too late, and not for every wait.
#[derive(Default, Debug)]
pub(crate) struct Bell {
    /// The timer, and when it rings if the machine does not sleep.
    set: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl Bell {
    /// Rings at that moment or earlier, whoever hears it looks at the clock: says when, or that it
    /// does not. What is set already stays, unless it would ring too late.
    pub(crate) fn set(&mut self, due: Option<Instant>) -> Option<Instant> {
        let set = self.set.as_ref().map(|(at, _)| *at);
        let Some(due) = due.filter(|due| set.is_none_or(|at| at > *due)) else { return set };
        let now = Instant::now();
        let after = due.saturating_duration_since(now).min(LOOK);
        let timer = match self.set.take() {
            Some((_, mut timer)) => {
                timer.as_mut().reset(tokio::time::Instant::now() + after);
                timer
            }
            None => Box::pin(tokio::time::sleep(after)),
        };
        self.set = Some((now + after, timer));
        Some(now + after)
    }

    /// Waits until it rings: for ever, if it is not set. May be dropped at any time.
    pub(crate) async fn rung(&mut self) {
        match &mut self.set {
            Some((_, timer)) => timer.await,
            None => std::future::pending().await,
        }
        self.set = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_clock_that_goes_on_while_the_machine_sleeps() {
        let (before, now) = (clock_gettime(ClockId::Boottime), Instant::now());
        let after = clock_gettime(ClockId::Boottime);
        let reading = |time: rustix::time::Timespec| {
            Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
        };
        assert!(reading(before) <= now.reading() && now.reading() <= reading(after));
    }

    #[tokio::test]
    async fn a_bell_is_set_anew_only_if_it_would_ring_too_late() {
        let (now, hour) = (Instant::now(), Duration::from_secs(3600));
        let mut bell = Bell { set: Some((now + hour, Box::pin(tokio::time::sleep(hour)))) };
        let mut rings_at = |hours: u32| {
            let at = bell.set(Some(now + hour * hours / 2));
            let mut unheard = std::task::Context::from_waker(std::task::Waker::noop());
            // Nothing rings in here: the runtime looks at its timers when somebody waits.
            assert!(std::pin::pin!(bell.rung()).poll(&mut unheard).is_pending());
            assert_eq!(bell.set(None), at, "who is due no more leaves it to ring");
            at.expect("it is set")
        };
        assert_eq!(rings_at(3), now + hour, "it rings too early, and nobody minds");
        let sooner = rings_at(1);
        assert!(sooner < now + hour);
        assert_eq!(rings_at(3), sooner);
    }

    #[tokio::test]
    async fn nobody_wakes_before_the_moment() {
        let at = Instant::now() + LOOK + LOOK / 5;
        sleep_until(at).await;
        assert!(Instant::now() >= at);
    }
}
