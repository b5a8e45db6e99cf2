//! What all stations of a ring agree on, and which of the paper's errata are repaired.

use std::fmt;

use quorate_core::UNITS_MAX;

/// The numbers and rules of one ring (ring spec 2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Terms {
    /// How many units there are. The paper's l.
    pub units: u32,
    /// Most units one claim may ask for. The paper's K (and k).
    pub claim_max: u32,
    /// Most tokens one collection takes. The paper's MaxV_c, at least K.
    pub collect_max: u32,
    /// How many sequence numbers there are: M, at least the number of controller tokens that a
    /// fault can leave in the ring (ring spec E19).
    pub seqs: u64,
    fixes: Fixes,
}

impl Terms {
    /// The repaired rules for `units` units of which a claim may ask for `claim_max`.
    ///
    /// # Panics
    /// If 1 <= `claim_max` <= `units` <= [`UNITS_MAX`] does not hold: pools are checked at the
    /// door.
    pub fn new(units: u32, claim_max: u32) -> Self {
        assert!((1..=units).contains(&claim_max), "1 <= K <= l");
        assert!(units <= UNITS_MAX, "a pool has at most {UNITS_MAX} units");
        Terms { units, claim_max, collect_max: claim_max, seqs: 1 << 56, fixes: Fixes::ALL }
    }

    /// The same ring with rules of the paper put back: for replaying the specification's
    /// counterexamples and for tests that find them again. No pool is made with such terms.
    pub fn with_fixes(self, fixes: Fixes) -> Self {
        Terms { fixes, ..self }
    }

    /// Whether an erratum is repaired.
    pub(crate) fn fixed(&self, erratum: Erratum) -> bool {
        self.fixes.has(erratum)
    }

    /// Most tokens one distribution hands out: A_max.
    pub(crate) fn allocate_max(&self) -> u32 {
        self.collect_max.saturating_mul(2).min(self.units)
    }

    /// Where the root's counters stop (ring spec E2).
    pub(crate) fn count_max(&self) -> u32 {
        if self.fixed(Erratum::E2) { self.units + 1 } else { self.units }
    }

    /// The sequence number after this one.
    pub(crate) fn next_seq(&self, seq: u64) -> u64 {
        (seq + 1) % self.seqs
    }
}

/// The errata whose repair can be taken out again, because the specification shows what happens
/// then. The others are either unobservable or not a matter of code (ring spec 4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Erratum {
    /// Counters stop at l + 1, not at l: a surplus of free tokens can be seen.
    E2,
    /// The root counts what leaves it, and adds what it holds at the end.
    E3,
    /// A station is locked by the tokens it really has.
    E4,
    /// Swallowing a distribution adds to what is held.
    E5,
    /// A surplus is flushed: nothing is handed out, and the root discards what comes.
    E6,
    /// Units in use stay counted, whatever became of their tokens.
    E7,
    /// A controller token is always passed on.
    E12,
    /// Withdrawing a claim gives up the turn.
    E13,
}

impl Erratum {
    /// All of them.
    pub const ALL: [Erratum; 8] = [
        Erratum::E2,
        Erratum::E3,
        Erratum::E4,
        Erratum::E5,
        Erratum::E6,
        Erratum::E7,
        Erratum::E12,
        Erratum::E13,
    ];
}

/// Which errata are repaired.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fixes(u8);

impl Fixes {
    /// All: the only rules that a pool runs.
    pub const ALL: Fixes = Fixes(u8::MAX);

    /// Without one of them.
    #[must_use]
    pub fn without(self, erratum: Erratum) -> Self {
        Fixes(self.0 & !(1 << erratum as u8))
    }

    /// Whether one is repaired.
    pub fn has(self, erratum: Erratum) -> bool {
        self.0 & 1 << erratum as u8 != 0
    }

    /// The rules by the name that the specification gives them: `repaired` (and `train`, which has
    /// no other rules), `charitable`, or `no-E4` for one repair taken out, `no-E4-E7` for several.
    /// The paper's text as printed has no name here: too much of it is lost.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "repaired" | "train" => return Some(Fixes::ALL),
            // The garbled places read in the authors' favour, the clear ones as they stand.
            "charitable" => {
                let as_printed = [Erratum::E4, Erratum::E7, Erratum::E13];
                return Some(as_printed.into_iter().fold(Fixes::ALL, Fixes::without));
            }
            _ => {}
        }
        name.strip_prefix("no-")?.split('-').try_fold(Fixes::ALL, |fixes, one| {
            let erratum = Erratum::ALL.into_iter().find(|e| format!("{e:?}") == one)?;
            Some(fixes.without(erratum))
        })
    }
}

impl fmt::Display for Fixes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Fixes::ALL {
            return f.write_str("repaired");
        }
        f.write_str("no")?;
        for erratum in Erratum::ALL.into_iter().filter(|&e| !self.has(e)) {
            write!(f, "-{erratum:?}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_the_names_that_the_specification_gives_them() {
        assert_eq!(Fixes::named("repaired"), Some(Fixes::ALL));
        for erratum in Erratum::ALL {
            let fixes = Fixes::named(&format!("no-{erratum:?}")).expect("a name of the spec");
            assert!(!fixes.has(erratum));
            assert_eq!(fixes.to_string(), format!("no-{erratum:?}"));
        }
        assert_eq!(Fixes::named("charitable"), Fixes::named("no-E4-E7-E13"));
        for unknown in ["", "no-", "no-E99", "printed", "debt"] {
            assert_eq!(Fixes::named(unknown), None, "{unknown}");
        }
    }
}
