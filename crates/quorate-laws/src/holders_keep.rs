//! Whoever renews keeps what it has, as long as no more nodes are down, or have forgotten what they
//! promised, than the pool survives (arbiter spec C5).
//!
//! When that is so, the driver knows: it takes nodes down one after the other, the next one when
//! the one before promises again. A holder that has not renewed since then rests on what it was
//! granted with, and is excused.

use std::collections::BTreeSet;

use quorate_core::ClaimId;

use crate::{Breach, End, Observation};

/// Remembers who is excused.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct HoldersKeep {
    excused: BTreeSet<ClaimId>,
}

impl HoldersKeep {
    const LAW: &'static str = "holders keep";

    /// A node goes down before this holder has renewed.
    pub fn excuse(&mut self, claim: ClaimId) {
        self.excused.insert(claim);
    }

    /// Looks at how a holder ends.
    ///
    /// # Errors
    /// The breach: it did not want to, and nothing excuses it.
    pub fn see(&mut self, seen: Observation<'_>) -> Result<(), Breach> {
        let Observation::Ended { claim, how, .. } = seen else { return Ok(()) };
        let excused = self.excused.remove(&claim);
        match how {
            End::Deadline | End::Told if !excused => Err(Breach {
                law: Self::LAW,
                what: format!("{claim} renewed and lost what it had all the same ({how:?})"),
            }),
            End::Deadline | End::Told | End::Released | End::Died => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{id, shares};

    #[test]
    fn a_holder_that_loses_what_it_has_is_a_breach_unless_it_is_excused() {
        let held = shares(&[(0, 1)]);
        let ended = |serial, how| Observation::Ended { claim: id(serial), shares: &held, how };
        let mut law = HoldersKeep::default();
        assert!(law.see(ended(1, End::Released)).is_ok());
        assert_eq!(law.see(ended(2, End::Told)).unwrap_err().law, "holders keep");
        assert_eq!(law.see(ended(2, End::Deadline)).unwrap_err().law, "holders keep");
        law.excuse(id(3));
        assert!(law.see(ended(3, End::Deadline)).is_ok());
        assert!(law.see(ended(3, End::Deadline)).is_err(), "once is enough");
    }
}
