//! What a seat that moves waits for.

use std::fmt;

use crate::central::Alarm as Timer;

/// The timers of a seat that moves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Alarm {
    /// Those of a pool that is pinned.
    Of(Timer),
    /// Seat: nobody has a licence for an earlier term any more.
    Lull,
    /// Seat: nothing that an earlier seat promised is in force any more, unless renewed here.
    Grace,
    /// Seat: ask for a licence again.
    Licence,
    /// Seat: call those again who have not answered.
    Roll,
    /// Nobody decides by an earlier definition of the pool any more (charter spec 3).
    Amended,
    /// Whatever was promised by an earlier definition is over, or was promised again since.
    Settled,
    /// Home: whatever clients were told before this life began is over, or was shown since.
    Complete,
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Alarm::Of(timer) => timer.fmt(f),
            Alarm::Lull => f.write_str("lull"),
            Alarm::Grace => f.write_str("grace-of-term"),
            Alarm::Licence => f.write_str("licence"),
            Alarm::Roll => f.write_str("roll"),
            Alarm::Amended => f.write_str("amended"),
            Alarm::Settled => f.write_str("settled"),
            Alarm::Complete => f.write_str("complete"),
        }
    }
}
