//! What all stations of a ring agree on, and which of the paper's errata are repaired.

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
    pub(crate) fixes: Fixes,
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

/// Which errata are repaired: all of them, but where [`crate::reference::ring`] puts one back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fixes(pub(crate) u8);

impl Fixes {
    /// All: the only rules that a pool runs.
    pub const ALL: Fixes = Fixes(u8::MAX);

    /// Whether one is repaired.
    pub fn has(self, erratum: Erratum) -> bool {
        self.0 & 1 << erratum as u8 != 0
    }
}
