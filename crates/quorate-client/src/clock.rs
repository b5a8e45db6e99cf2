//! The clock that deadlines are read on: one that goes on while the machine sleeps.
//!
//! [`std::time::Instant`] stands still during a suspend, and whoever reads it afterwards believes
//! in a lease that others have seen end. Timers of the runtime stand still as well, so nobody
//! sleeps for long without looking at the clock.

use std::ops::Add;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

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
    async fn nobody_wakes_before_the_moment() {
        let at = Instant::now() + LOOK + LOOK / 5;
        sleep_until(at).await;
        assert!(Instant::now() >= at);
    }
}
