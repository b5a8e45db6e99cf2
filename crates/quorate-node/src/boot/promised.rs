//! For how long what earlier starts promised may be in use, pool by pool.
//!
//! A pool waits for its own leases and for no other's: one that lends for a day must not keep the
//! others from granting for a day. So the data directory keeps the leases of each configuration
//! that a promise may stem from, by name and pattern as the file had them. They are kept side by
//! side and not merged: which definition a pool had is only known within one file, where a name
//! goes before any pattern.

use std::time::Duration;

use crate::config::{Config, Names};

/// Most configurations that are kept apart. With more, what they promised counts for all pools: a
/// longer wait, never a shorter one.
const CONFIGURATIONS_MAX: usize = 8;

/// The leases of every configuration under which something may have been promised that is not over.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Promised(Vec<Leases>);

/// How long the grants of each pool or pattern last, in the order of one configuration. What is
/// over stays, as nothing: without it, the name of a pool would fall to a pattern it never had.
type Leases = Vec<(Names, Duration)>;

impl Promised {
    /// The longest lease that the pool of this name may have given.
    pub(crate) fn by(&self, name: &str) -> Duration {
        let lease = |leases: &Leases| {
            let exact = leases.iter().find(|(names, _)| *names == Names::One(name.to_owned()));
            let found = exact.or_else(|| leases.iter().find(|(names, _)| names.covers(name)));
            found.map_or(Duration::ZERO, |(_, lease)| *lease)
        };
        self.0.iter().map(lease).max().unwrap_or_default()
    }

    /// The longest lease that any of these pools may have given.
    pub(crate) fn by_any(&self, names: &Names) -> Duration {
        match names {
            Names::One(name) => self.by(name),
            Names::Like { .. } => {
                let all = self.0.iter().flatten().filter(|(other, _)| names.may_share(other));
                all.map(|(_, lease)| *lease).max().unwrap_or_default()
            }
        }
    }

    /// Also what this configuration lets a node promise from now on.
    pub(super) fn and(&self, config: &Config) -> Promised {
        let mut all = self.besides(config);
        if all.0.len() >= CONFIGURATIONS_MAX {
            all.0 = vec![vec![(Names::all(), all.longest())]];
        }
        all.0.push(leases(config));
        all
    }

    /// What only other configurations let a node promise.
    pub(super) fn besides(&self, config: &Config) -> Promised {
        let own = leases(config);
        Promised(self.0.iter().filter(|old| **old != own).cloned().collect())
    }

    /// What is left when this much time has passed since the last of these promises was given.
    pub(super) fn after(&self, passed: Duration) -> Promised {
        let mut left = self.0.clone();
        left.iter_mut().flatten().for_each(|(_, lease)| {
            if *lease <= passed {
                *lease = Duration::ZERO;
            }
        });
        left.retain(|leases| leases.iter().any(|(_, lease)| !lease.is_zero()));
        Promised(left)
    }

    /// The longest lease of all.
    pub(super) fn longest(&self) -> Duration {
        self.0.iter().flatten().map(|(_, lease)| *lease).max().unwrap_or_default()
    }

    /// The leases, each once, ascending.
    pub(super) fn lengths(&self) -> Vec<Duration> {
        let all = self.0.iter().flatten().map(|(_, lease)| *lease);
        let mut lengths: Vec<Duration> = all.filter(|lease| !lease.is_zero()).collect();
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }

    /// As it is kept: `pools` begins a configuration, and its pools follow.
    pub(super) fn lines(&self) -> String {
        let mut text = String::new();
        for leases in &self.0 {
            text.push_str("pools\n");
            for (names, lease) in leases {
                text.push_str(&format!("lease_ms {} {}\n", lease.as_millis(), names.label()));
            }
        }
        text + "end\n"
    }

    /// What was kept. Files of earlier versions have one lease for all pools. A file that ends
    /// early would let pools begin too soon, and counts as damaged.
    pub(super) fn read(text: &str) -> Option<Promised> {
        let mut all: Vec<Leases> = Vec::new();
        let mut is_whole = false;
        for line in text.lines() {
            let mut words = line.split(' ');
            match (words.next(), words.next(), words.next()) {
                (Some("pools"), None, None) => all.push(Vec::new()),
                (Some("lease_ms"), Some(lease), Some(label)) => {
                    all.last_mut()?.push((Names::read(label)?, millis(lease)?));
                }
                (Some("lease_ms"), Some(lease), None) => {
                    all.push(vec![(Names::all(), millis(lease)?)]);
                    is_whole = true;
                }
                (Some("end"), None, None) => is_whole = true,
                _ => {}
            }
        }
        is_whole.then_some(Promised(all))
    }
}

fn leases(config: &Config) -> Leases {
    config.pools.iter().map(|def| (def.names.clone(), def.lease.length())).collect()
}

fn millis(text: &str) -> Option<Duration> {
    text.parse().ok().map(Duration::from_millis)
}
