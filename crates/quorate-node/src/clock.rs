//! This node's monotonic clock.
//!
//! `CLOCK_BOOTTIME`: it goes on while the machine sleeps, so that a lease that ran out during a
//! suspend is seen to have run out at the first reading afterwards. The runtime's own timers stop
//! during a suspend and then ring late, which is never a matter of safety.

use quorate_core::Moment;
use rustix::time::{ClockId, clock_gettime};

/// Reads it.
pub(crate) fn now() -> Moment {
    let reading = clock_gettime(ClockId::Boottime);
    let (seconds, nanos) = (reading.tv_sec.unsigned_abs(), reading.tv_nsec.unsigned_abs());
    Moment(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}
