//! A node's own monotonic clock, which drifts.
//!
//! True time is the world's and nobody in it can read it. Alarms, [`quorate_core::Seat::now`] and
//! the deadlines of clients are all on the clock of their node; its origin is arbitrary, so that
//! comparing readings of two nodes goes wrong at once, and its rate is wrong by up to what the
//! pool's lease declares.

use quorate_core::Moment;

const MILLION: i128 = 1_000_000;
/// Up to here, two hours and more, 64 bits are enough for a span times a million.
const SHORT: u64 = 1 << 43;

/// A clock that runs at one rate since some true time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DriftingClock {
    since: u64,
    reading: u64,
    ppm: i32,
}

impl DriftingClock {
    /// A clock that reads `origin` at true time 0 and is wrong by `ppm` millionths.
    pub(crate) fn new(origin: u64, ppm: i32) -> Self {
        DriftingClock { since: 0, reading: origin, ppm }
    }

    /// What it reads at a true time.
    #[inline]
    pub(crate) fn read(&self, now: u64) -> Moment {
        let elapsed = now - self.since;
        if self.ppm == 0 {
            return Moment(self.reading + elapsed);
        }
        if elapsed < SHORT {
            let wrong = elapsed as i64 * i64::from(self.ppm) / MILLION as i64;
            return Moment(self.reading + (elapsed as i64 + wrong) as u64);
        }
        let wrong = i128::from(elapsed) * i128::from(self.ppm) / MILLION;
        Moment(self.reading + (i128::from(elapsed) + wrong) as u64)
    }

    /// The first true time, from the last change of rate on, at which it reads `moment` or later.
    pub(crate) fn when(&self, moment: Moment) -> u64 {
        if moment == Moment::NEVER {
            return u64::MAX;
        }
        let ahead = moment.0.saturating_sub(self.reading);
        if self.ppm == 0 {
            return self.since.saturating_add(ahead);
        }
        if ahead == 0 {
            return self.since;
        }
        // What is wrong is rounded towards zero: for a fast clock that rounds its reading down, for
        // a slow one up. So the first time is this quotient rounded up, or the next whole number
        // above the quotient for one nanosecond less.
        let rate = (MILLION as i64 + i64::from(self.ppm)) as u64;
        let (span, more) = if self.ppm > 0 { (ahead, rate - 1) } else { (ahead - 1, rate) };
        let elapsed = if ahead < SHORT {
            (span * MILLION as u64 + more) / rate
        } else {
            ((i128::from(span) * MILLION + i128::from(more)) / i128::from(rate)) as u64
        };
        self.since.saturating_add(elapsed)
    }

    /// From now on it is wrong by `ppm` millionths.
    pub(crate) fn set_rate(&mut self, now: u64, ppm: i32) {
        self.reading = self.read(now).0;
        self.since = now;
        self.ppm = ppm;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    #[test]
    fn a_clock_is_wrong_by_its_rate_and_never_goes_back() {
        let mut clock = DriftingClock::new(1000, 50_000);
        assert_eq!(clock.read(0), Moment(1000));
        assert_eq!(clock.read(1_000_000), Moment(1000 + 1_050_000));
        clock.set_rate(1_000_000, -50_000);
        assert_eq!(clock.read(2_000_000), Moment(1000 + 1_050_000 + 950_000));
    }

    #[test]
    fn when_is_the_first_time_at_which_a_reading_is_reached() {
        let mut rng = Rng::new(7);
        for _ in 0..2000 {
            let ppm = rng.between(0, 800_000) as i32 - 400_000;
            let mut clock = DriftingClock::new(rng.below(1 << 40), 0);
            clock.set_rate(rng.below(1 << 40), ppm);
            let moment =
                clock.read(clock.since).after(std::time::Duration::from_nanos(rng.below(1 << 45)));
            let at = clock.when(moment);
            assert!(clock.read(at) >= moment);
            assert!(at == clock.since || clock.read(at - 1) < moment, "{clock:?} {moment}");
        }
        assert_eq!(DriftingClock::new(5, 3).when(Moment::NEVER), u64::MAX);
    }
}
