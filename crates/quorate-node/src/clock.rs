//! This node's monotonic clock.
//!
//! `CLOCK_BOOTTIME`: it goes on while the machine sleeps, so that a lease that ran out during a
//! suspend is seen to have run out at the first reading afterwards. The runtime's own timers stop
//! during a suspend and then ring late, which is never a matter of safety.

use std::time::Duration;

use quorate_core::Moment;
use rustix::time::{ClockId, clock_gettime};

/// Reads it.
pub(crate) fn now() -> Moment {
    let reading = clock_gettime(ClockId::Boottime);
    let (seconds, nanos) = (reading.tv_sec.unsigned_abs(), reading.tv_nsec.unsigned_abs());
    Moment(at_rate(seconds.saturating_mul(1_000_000_000).saturating_add(nanos)))
}

#[cfg(not(feature = "planted-bugs"))]
fn at_rate(nanos: u64) -> u64 {
    nanos
}

/// The rate of this process's clock, in millionths of the true one (`planted`).
#[cfg(feature = "planted-bugs")]
static RATE: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1_000_000);

/// From now on the clock runs at another rate: at the start of a process, before anybody reads it.
#[cfg(feature = "planted-bugs")]
pub(crate) fn run_at(millionths: u32) {
    RATE.store(millionths, std::sync::atomic::Ordering::Relaxed);
}

#[cfg(feature = "planted-bugs")]
fn at_rate(nanos: u64) -> u64 {
    let rate = RATE.load(std::sync::atomic::Ordering::Relaxed);
    u64::try_from(u128::from(nanos) * u128::from(rate) / 1_000_000).unwrap_or(u64::MAX)
}

/// The calendar as of a moment on this clock: the system's is read once in a while only, since it
/// is told with every line of a record.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Calendar {
    /// What both said when it was read last.
    read: Option<(Moment, u64)>,
}

/// How long a calendar that was set may be shown as it was.
const READ_AGAIN: Duration = Duration::from_secs(1);

impl Calendar {
    /// Milliseconds since 1970 at that moment, which is about now.
    pub(crate) fn at_ms(&mut self, now: Moment) -> u64 {
        match self.read {
            Some((at, ms)) if now >= at && now.since(at) < READ_AGAIN => {
                ms + u64::try_from(now.since(at).as_millis()).unwrap_or(u64::MAX)
            }
            _ => {
                let ms = crate::history::now_ms();
                self.read = Some((now, ms));
                ms
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calendar_goes_on_with_the_clock_and_is_read_again_after_a_while() {
        let at = |ms: u64| Moment::ZERO.after(Duration::from_millis(ms));
        let mut calendar = Calendar { read: Some((at(5_000), 77)) };
        assert_eq!(calendar.at_ms(at(5_000)), 77);
        assert_eq!(calendar.at_ms(at(5_999)), 1_076);
        let before = crate::history::now_ms();
        assert!(calendar.at_ms(at(6_000)) >= before, "read again");
        assert!(calendar.at_ms(at(4_000)) >= before, "not about now");
    }
}
