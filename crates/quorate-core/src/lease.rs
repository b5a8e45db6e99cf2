//! Time, as far as protocols know it: readings of the driver's monotonic clock, and the arithmetic
//! of leases.
//!
//! The arithmetic has one purpose, an *order*: a holder's own deadline passes before any arbiter
//! treats the grant as ended. With D the lease and rho the bound on clock-rate error (arbiter spec
//! C1):
//!
//! * an arbiter ends the grant D after it granted or renewed it, by its own clock; in true time
//!   that is at least D / (1 + rho) later;
//! * a holder counts from *before it asked*, and adds the time its request waited as the arbiter
//!   measured it: `sent + (waited + D)(1 - rho)/(1 + rho)` by its own clock. Since its clock runs
//!   at least at 1 - rho, that is at most (waited + D)/(1 + rho) of true time after it asked, and
//!   the arbiter granted no earlier than waited/(1 + rho) after that.

use std::fmt;
use std::time::Duration;

const MILLION: u128 = 1_000_000;

/// A reading of one driver's monotonic clock, in nanoseconds from an origin of its own. Readings of
/// different nodes must not be compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(pub u64);

impl Moment {
    /// The origin.
    pub const ZERO: Moment = Moment(0);
    /// Later than everything.
    pub const NEVER: Moment = Moment(u64::MAX);

    /// This reading plus a span; never overflows.
    pub fn after(self, span: Duration) -> Moment {
        Moment(self.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// How long after `earlier` this is; zero if it is not.
    pub fn since(self, earlier: Moment) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Moment::NEVER {
            return f.write_str("never");
        }
        write!(f, "{}.{:06}", self.0 / 1_000_000_000, self.0 % 1_000_000_000 / 1_000)
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How long a grant lasts without renewal, and how far clocks may run apart while it does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Lease {
    length: Duration,
    drift_ppm: u32,
}

impl Lease {
    /// A lease of this length among clocks whose rates are wrong by at most `drift_ppm` millionths.
    ///
    /// # Panics
    /// If the drift is a half or more: no lease can be built on such clocks.
    pub fn new(length: Duration, drift_ppm: u32) -> Self {
        assert!(drift_ppm < 500_000, "clocks that are wrong by half carry no lease");
        Lease { length, drift_ppm }
    }

    /// How long an arbiter keeps a grant, by its own clock, after granting or renewing it. An
    /// arbiter that forgot what it promised waits as long before it promises anything.
    pub fn length(&self) -> Duration {
        self.length
    }

    /// The bound on clock-rate error, in millionths.
    pub fn drift_ppm(&self) -> u32 {
        self.drift_ppm
    }

    /// The holder's own deadline on the clock that read `sent` just before it asked, where the
    /// arbiter says that the request waited `waited` with it (nothing, for a renewal).
    pub fn deadline(&self, sent: Moment, waited: Duration) -> Moment {
        let drift = u128::from(self.drift_ppm);
        let span = (self.length.saturating_add(waited)).as_nanos();
        let safe = span.saturating_mul(MILLION - drift) / (MILLION + drift);
        sent.after(Duration::from_nanos(u64::try_from(safe).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order of the module's documentation, at the corners of the drift range: a fast arbiter,
    /// a slow holder, any wait and any delay of the request.
    #[test]
    fn a_holder_stops_before_any_arbiter_treats_the_grant_as_ended() {
        for drift_ppm in [0, 200, 50_000, 300_000] {
            let lease = Lease::new(Duration::from_secs(10), drift_ppm);
            let rho = f64::from(drift_ppm) / 1e6;
            for (arbiter_rate, holder_rate) in
                [(1.0 + rho, 1.0 - rho), (1.0 - rho, 1.0 + rho), (1.0, 1.0)]
            {
                for waited_true in [0.0, 3.0, 500.0] {
                    for travel in [0.0, 0.5] {
                        let waited = Duration::from_secs_f64(waited_true * arbiter_rate);
                        let deadline = lease.deadline(Moment::ZERO, waited);
                        let stops_at = deadline.0 as f64 / 1e9 / holder_rate;
                        let granted_at = travel + waited_true;
                        let ended_at = granted_at + lease.length().as_secs_f64() / arbiter_rate;
                        assert!(stops_at <= ended_at + 1e-6, "{drift_ppm} {stops_at} {ended_at}");
                    }
                }
            }
        }
    }

    #[test]
    fn time_saturates_instead_of_wrapping() {
        let lease = Lease::new(Duration::MAX, 0);
        assert_eq!(lease.deadline(Moment(5), Duration::MAX), Moment::NEVER);
        assert_eq!(Moment(3).since(Moment(9)), Duration::ZERO);
        assert_eq!(Moment(1_500_000_000).to_string(), "1.500000");
    }
}
