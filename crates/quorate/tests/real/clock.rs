//! The one clock of this machine, on which the histories of all processes are put in order: the one
//! that clients read their deadlines on.

use quorate_client::Instant;

/// Nanoseconds of it: the same for every process.
pub(crate) fn now() -> u64 {
    reading(Instant::now())
}

/// What it shows at a moment.
pub(crate) fn reading(at: Instant) -> u64 {
    u64::try_from(at.reading().as_nanos()).expect("machines run for less than centuries")
}
