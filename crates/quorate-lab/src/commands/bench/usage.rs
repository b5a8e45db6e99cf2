//! What processes have used so far, as Linux tells it: processor time of their own and of the
//! system on their behalf, and how often they were switched.

use std::fs::read_to_string;
use std::ops::{Add, Sub};

use serde::Serialize;

/// Hundredths of a second: what `/proc` counts in.
const TICK_US: f64 = 10_000.0;

/// Since a process began; or between two looks.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub(super) struct Usage {
    /// Microseconds of its own code.
    pub(super) user_us: f64,
    /// Microseconds of the system on its behalf.
    pub(super) system_us: f64,
    /// How often one of its threads stopped for another.
    pub(super) switches: f64,
}

impl Usage {
    /// Of the process of this name under `/proc`; nothing where there is no such thing.
    pub(super) fn of(process: &str) -> Option<Usage> {
        let told = read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name, which comes before, may have any characters.
        let (_, rest) = told.rsplit_once(')')?;
        let at = |place: usize| rest.split_whitespace().nth(place)?.parse::<f64>().ok();
        let (user_us, system_us) = (at(11)? * TICK_US, at(12)? * TICK_US);
        let threads = std::fs::read_dir(format!("/proc/{process}/task")).ok()?;
        let statuses = threads.flatten().map(|thread| thread.path().join("status"));
        let switches = statuses.filter_map(|path| switches(&read_to_string(path).ok()?)).sum();
        Some(Usage { user_us, system_us, switches })
    }

    /// Of this process.
    pub(super) fn here() -> Option<Usage> {
        Usage::of("self")
    }

    /// For each of so many.
    pub(super) fn per(self, count: f64) -> Usage {
        let each = |value: f64| value / count.max(1.0);
        Usage {
            user_us: each(self.user_us),
            system_us: each(self.system_us),
            switches: each(self.switches),
        }
    }

    /// Processor time of both kinds.
    pub(super) fn processor_us(self) -> f64 {
        self.user_us + self.system_us
    }
}

/// The bytes in memory of the process of this name under `/proc`.
pub(super) fn memory(process: &str) -> Option<f64> {
    let status = read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? * 1024.0)
}

fn switches(status: &str) -> Option<f64> {
    let lines = status.lines().filter_map(|line| line.split_once(':'));
    let wanted = lines.filter(|(name, _)| name.ends_with("ctxt_switches"));
    wanted.map(|(_, count)| count.trim().parse::<f64>().ok()).sum()
}

impl Add for Usage {
    type Output = Usage;

    fn add(self, other: Usage) -> Usage {
        Usage {
            user_us: self.user_us + other.user_us,
            system_us: self.system_us + other.system_us,
            switches: self.switches + other.switches,
        }
    }
}

impl Sub for Usage {
    type Output = Usage;

    fn sub(self, other: Usage) -> Usage {
        Usage {
            user_us: self.user_us - other.user_us,
            system_us: self.system_us - other.system_us,
            switches: self.switches - other.switches,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_of_both_kinds_are_counted() {
        let status = "Name:\tx y\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t2\n";
        assert_eq!(switches(status), Some(7.0));
    }

    #[test]
    fn this_process_is_found_where_the_system_tells() {
        let used = Usage::here();
        assert_eq!(used.is_some(), cfg!(target_os = "linux"));
        assert_eq!(used, used.map(|used| used.per(1.0)));
    }
}
