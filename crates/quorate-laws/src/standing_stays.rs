//! What stands ends by its client's word alone: not by time, and not because nodes crash, forget or
//! are suspected (the contract of [`quorate_core::Wanted::standing`]).

use std::collections::BTreeSet;

use quorate_core::ClaimId;

use crate::{Breach, End, Observation};

/// Remembers which claims stand.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct StandingStays {
    standing: BTreeSet<ClaimId>,
}

impl StandingStays {
    pub(crate) const LAW: &'static str = "standing stays";

    /// A client asks for a hold without a lease.
    pub fn stands(&mut self, claim: ClaimId) {
        self.standing.insert(claim);
    }

    /// # Errors
    /// The breach: a holder stopped that did not want to.
    pub fn see(&mut self, seen: Observation<'_>) -> Result<(), Breach> {
        match seen {
            Observation::Ended { claim, how, .. } if self.standing.remove(&claim) => match how {
                End::Released | End::Died => Ok(()),
                End::Deadline | End::Told => Err(Breach {
                    law: Self::LAW,
                    what: format!("{claim} stands, and ended without its client's word ({how:?})"),
                }),
            },
            Observation::Refused { claim, .. } | Observation::Abandoned { claim } => {
                self.standing.remove(&claim);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{id, shares};

    #[test]
    fn what_stands_and_ends_by_itself_is_a_breach() {
        let held = shares(&[(0, 1)]);
        let ended = |serial, how| Observation::Ended { claim: id(serial), shares: &held, how };
        let mut law = StandingStays::default();
        (1..=3).for_each(|serial| law.stands(id(serial)));
        assert!(law.see(ended(1, End::Released)).is_ok());
        assert_eq!(law.see(ended(2, End::Told)).unwrap_err().law, "standing stays");
        assert_eq!(law.see(ended(3, End::Deadline)).unwrap_err().law, "standing stays");
        assert!(law.see(ended(4, End::Deadline)).is_ok(), "it had a lease");
    }
}
