//! The other half of a lock: whatever a unit protects refuses those who hold it no more.
//!
//! A holder that was paused (a full disk, a debugger, a machine that slept) may wake up after its
//! lease ended and somebody else got the unit, and still do what it was about to do: no lock can
//! prevent that. Therefore each grant has a **fence** for each unit, a number that grows from
//! holder to holder. Holders say it with everything they ask for, and the thing that is protected
//! keeps the largest it has seen and refuses smaller ones.
//!
//! ```
//! use quorate_fence::Guard;
//!
//! let mut guard = Guard::new();
//! guard.admit("gpu-0", 7)?; // The first holder...
//! guard.admit("gpu-0", 9)?; // ...and the next.
//! let late = guard.admit("gpu-0", 7); // The first has slept, and wakes up.
//! assert!(late.is_err());
//! guard.admit("gpu-0", 9)?; // The holder goes on.
//! # Ok::<(), quorate_fence::Stale>(())
//! ```
//!
//! A [`Guard`] is memory. What outlives its process needs one that does, too: keep the number where
//! the thing itself is kept, and compare and change both in one step. [`mod@file`] does that for a
//! file; the guide on fences shows it for PostgreSQL.
//!
//! Pools that only count their units (`quorate pools NAME` says so) have no fences.

pub mod file;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;

/// The largest fence of each unit that was seen.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Guard {
    seen: BTreeMap<String, u64>,
}

impl Guard {
    /// One that has seen nothing: it admits the first that comes, whoever that is.
    pub fn new() -> Guard {
        Guard::default()
    }

    /// Admits whoever says this fence of this unit, unless somebody has said a larger one. The same
    /// may come again and again.
    ///
    /// # Errors
    /// A later holder was here. Nothing changed, and the request must not be carried out.
    pub fn admit(&mut self, unit: &str, fence: u64) -> Result<(), Stale> {
        match self.seen.get_mut(unit) {
            Some(seen) if *seen > fence => {
                return Err(Stale { unit: unit.to_owned(), fence, seen: *seen });
            }
            Some(seen) => *seen = fence,
            None => drop(self.seen.insert(unit.to_owned(), fence)),
        }
        Ok(())
    }

    /// Admits a request under several units, all or none.
    ///
    /// # Errors
    /// A later holder of one of them was here. Nothing changed.
    pub fn admit_all<'a>(
        &mut self,
        units: impl IntoIterator<Item = (&'a str, u64)>,
    ) -> Result<(), Stale> {
        let mut after = self.clone();
        for (unit, fence) in units {
            after.admit(unit, fence)?;
        }
        *self = after;
        Ok(())
    }

    /// The largest fence of each unit that was admitted, for whoever wants to keep them.
    pub fn seen(&self) -> impl Iterator<Item = (&str, u64)> {
        self.seen.iter().map(|(unit, fence)| (unit.as_str(), *fence))
    }
}

/// What was kept ([`Guard::seen`]).
impl<U: Into<String>> FromIterator<(U, u64)> for Guard {
    fn from_iter<I: IntoIterator<Item = (U, u64)>>(kept: I) -> Guard {
        let mut guard = Guard::new();
        for (unit, fence) in kept {
            let seen = guard.seen.entry(unit.into()).or_default();
            *seen = fence.max(*seen);
        }
        guard
    }
}

/// A later holder of the unit was here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stale {
    /// The unit.
    pub unit: String,
    /// What was said.
    pub fence: u64,
    /// What somebody had said before.
    pub seen: u64,
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stale { unit, fence, seen } = self;
        write!(
            f,
            "fence {fence} of unit {unit} is too late: a holder with {seen} was here; nothing \
             changed. Stop, and claim again"
        )
    }
}

impl Error for Stale {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_holders_are_refused_and_change_nothing() {
        let mut guard = Guard::new();
        assert_eq!(guard.admit("a", 5), Ok(()));
        assert_eq!(guard.admit("a", 5), Ok(()), "a holder may come again");
        let late = Stale { unit: "a".into(), fence: 4, seen: 5 };
        assert_eq!(guard.admit("a", 4), Err(late));
        assert_eq!(guard.admit("b", 4), Ok(()), "another unit");
        assert_eq!(guard.seen().collect::<Vec<_>>(), [("a", 5), ("b", 4)]);
    }

    #[test]
    fn several_units_are_admitted_together_or_not_at_all() {
        let mut guard: Guard = [("a", 5), ("b", 7), ("b", 2)].into_iter().collect();
        let before = guard.clone();
        assert_eq!(guard.admit_all([("a", 6), ("b", 6)]).unwrap_err().seen, 7);
        assert_eq!(guard, before);
        assert_eq!(guard.admit_all([("a", 6), ("b", 7)]), Ok(()));
    }
}
