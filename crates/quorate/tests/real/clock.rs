//! The one clock of this machine, on which the histories of all processes are put in order.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of the machine's monotonic clock: the same for every process.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Turns deadlines, which are [`Instant`]s, into readings of [`now`].
#[derive(Clone, Copy)]
pub(crate) struct Scale {
    reading: u64,
    instant: Instant,
}

impl Scale {
    /// The reading comes first: deadlines come out a little early, never late, so that the harness
    /// accuses nobody wrongly.
    pub(crate) fn new() -> Scale {
        let pair = |_| {
            let reading = now();
            let instant = Instant::now();
            (now() - reading, Scale { reading, instant })
        };
        let best = (0..100).map(pair).min_by_key(|(gap, _)| *gap);
        best.expect("tried often enough").1
    }

    pub(crate) fn reading(&self, at: Instant) -> u64 {
        let after = at.saturating_duration_since(self.instant);
        self.reading + after.as_nanos() as u64
    }
}
