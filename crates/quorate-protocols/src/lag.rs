//! What is over, and still in a durable arbiter's record.
//!
//! A grant is written down before it is told (arbiter spec C3). Its end is not: a record that has
//! too much costs the next life one lease at most and breaks no law, since nobody is given what it
//! has. So a release waits for no disk. But it must not stay unwritten either, or every restart
//! would bring back whatever ended since the last grant. It is written when an alarm rings, with
//! all that ended meanwhile, or with the next grant if that comes first. A crash may come before
//! it, and the checker lets it ring at any moment or never.

use std::time::Duration;

use quorate_core::{Lease, Outbox, Protocol};

/// Longest time for which a record may have what is over.
const LAG_MAX: Duration = Duration::from_millis(250);

/// Whether a record has something that is over. The alarm is armed exactly then.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Lag(bool);

impl Lag {
    /// Something ended that the record has.
    pub(crate) fn begin<P: Protocol>(
        &mut self,
        alarm: P::Alarm,
        lease: &Lease,
        out: &mut Outbox<P>,
    ) {
        if !std::mem::replace(&mut self.0, true) {
            out.arm(alarm, LAG_MAX.min(lease.length() / 8));
        }
    }

    /// The record is about to be written.
    pub(crate) fn end<P: Protocol>(&mut self, alarm: P::Alarm, out: &mut Outbox<P>) {
        if std::mem::take(&mut self.0) {
            out.disarm(alarm);
        }
    }
}
