//! What a client asks for, and why it may be told no.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::{Moment, UNITS_MAX, Unit};

/// The name of a claim, chosen by whoever makes it and never used again. Repeating a claim under
/// its name, at the same node or another, is the same claim.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ClaimId {
    /// Who named it: a client's random session number, or its index in a simulation.
    pub origin: u64,
    /// Counts the claims of that origin.
    pub serial: u64,
}

impl fmt::Display for ClaimId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.origin, self.serial)
    }
}

impl fmt::Debug for ClaimId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A number of units that a pool can give: 1..=k by construction. The paper's h.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Units(NonZeroU32);

impl Units {
    /// One unit.
    pub const ONE: Units = Units(NonZeroU32::MIN);

    /// `h` units of a pool of `k`. After this line nobody has to compare h with k again.
    ///
    /// # Errors
    /// Nothing was claimed; the error says which of the two numbers is impossible.
    pub fn new(h: u32, k: u32) -> Result<Units, UnitsError> {
        if k == 0 || k > UNITS_MAX {
            return Err(UnitsError::Pool { k });
        }
        match NonZeroU32::new(h) {
            Some(units) if h <= k => Ok(Units(units)),
            Some(_) => Err(UnitsError::TooMany { h, k }),
            None => Err(UnitsError::None),
        }
    }

    /// The number.
    pub fn get(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for Units {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for Units {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a number of units cannot be asked for. Nothing was claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnitsError {
    /// A claim must ask for at least one unit.
    None,
    /// More units than the pool has: such a claim could never be granted, so it never queues.
    TooMany {
        /// Units asked for.
        h: u32,
        /// Units the pool has.
        k: u32,
    },
    /// The pool itself has no units, or more than [`UNITS_MAX`].
    Pool {
        /// Units the pool is said to have.
        k: u32,
    },
}

impl fmt::Display for UnitsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnitsError::None => f.write_str("a claim must ask for at least 1 unit"),
            UnitsError::TooMany { h, k } => {
                write!(f, "{h} units asked of a pool of {k}: ask for at most {k}")
            }
            UnitsError::Pool { k } => {
                write!(f, "a pool cannot have {k} units: choose 1 to {UNITS_MAX}")
            }
        }
    }
}

impl std::error::Error for UnitsError {}

/// One line of a claim on units that differ: so many of these.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Line {
    /// How many.
    pub units: Units,
    /// The units that will do, ascending. As many as `units` names each of them.
    pub among: Arc<[Unit]>,
    /// And of those only such as have all these labels, as whoever decides knows them when it does:
    /// labels may change while a claim waits. Only for pools whose protocol knows labels.
    pub labels: Option<Arc<BTreeMap<String, String>>>,
}

impl Line {
    /// So many of these, whatever their labels.
    pub fn of(units: Units, among: Arc<[Unit]>) -> Self {
        Line { units, among, labels: None }
    }
}

/// What a claim asks for, all at once. The one description of it that protocols, their messages and
/// the drivers share; what a new kind of claim says is a field here.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Wanted {
    /// How many units in all.
    pub units: Units,
    /// Which units will do; `None` means any of the pool. At most [`crate::LINES_MAX`] lines, whose
    /// counts add up to `units`.
    pub lines: Option<Arc<[Line]>>,
    /// Whether its client can be asked to go to another unit, see [`crate::Effect::Move`].
    pub movable: bool,
    /// Whether what it is granted *stands*: it has no lease, lasts until [`Moment::NEVER`] and ends
    /// by its client's word alone, whoever crashes, forgets or is suspected. Only for pools that
    /// say so ([`crate::Protocol::stands`]); drivers let no other claim in. The text is kept with
    /// it for whoever asks later who has it: no client renews it, and its node may be gone.
    pub standing: Option<Arc<str>>,
}

impl Wanted {
    /// So many units, whichever.
    pub fn any(units: Units) -> Self {
        Wanted { units, lines: None, movable: false, standing: None }
    }

    /// The same, to stand, with this text.
    #[must_use]
    pub fn to_stand(self, text: &str) -> Self {
        Wanted { standing: Some(Arc::from(text)), ..self }
    }

    /// Whether it asks for the same. What is kept with a claim that stands are words for people:
    /// those that came first count.
    pub fn asks_as(&self, other: &Wanted) -> bool {
        let asked = |wanted: &Wanted| (wanted.units, wanted.movable, wanted.standing.is_some());
        asked(self) == asked(other) && self.lines == other.lines
    }

    /// Until when a grant lasts that would last until then if it had a lease.
    pub fn lasts(&self, until: Moment) -> Moment {
        if self.standing.is_some() { Moment::NEVER } else { until }
    }
}

/// A request for units.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Claim {
    /// Its name.
    pub id: ClaimId,
    /// A number drawn by the driver, from which the protocol derives whatever choice it has (such
    /// as a quorum). Drivers draw it at random, the checker enumerates it.
    pub draw: u64,
    /// What it asks for.
    pub wanted: Wanted,
}

impl Claim {
    /// A claim of this name, with nothing drawn for it.
    pub fn new(id: ClaimId, wanted: Wanted) -> Self {
        Claim { id, draw: 0, wanted }
    }

    /// A claim on any units of the pool.
    pub fn any(id: ClaimId, units: Units) -> Self {
        Claim::new(id, Wanted::any(units))
    }
}

/// Why a claim is over without a grant. It will never be granted later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Refusal {
    /// The client took it back, and this acknowledges it.
    Cancelled,
    /// It asks for particular units, and this pool's protocol only counts.
    NotByName,
    /// Its name belongs to a claim for a different number of units.
    NameTaken,
    /// The pool has so many units, but lets no single node have them.
    TooManyForOneNode,
    /// Not even with nobody else there has the pool enough units that will do.
    NeverEnough,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Cancelled => "cancelled",
            Refusal::NotByName => "this pool's protocol counts units and cannot choose among them",
            Refusal::NameTaken => "a different claim has this name",
            Refusal::TooManyForOneNode => "no single node of this pool may have so many units",
            Refusal::NeverEnough => "the pool does not have so many units that will do",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_lie_between_one_and_k_by_construction() {
        for k in 1..=5 {
            for h in 0..=7 {
                assert_eq!(Units::new(h, k).is_ok(), (1..=k).contains(&h), "h={h} k={k}");
            }
        }
        assert_eq!(Units::new(3, 2), Err(UnitsError::TooMany { h: 3, k: 2 }));
        assert_eq!(Units::new(1, 0), Err(UnitsError::Pool { k: 0 }));
        assert_eq!(Units::new(1, UNITS_MAX + 1), Err(UnitsError::Pool { k: UNITS_MAX + 1 }));
        assert_eq!(
            UnitsError::TooMany { h: 3, k: 2 }.to_string(),
            "3 units asked of a pool of 2: ask for at most 2"
        );
    }
}
