//! Once a cancel was acknowledged, the claim is never granted (conventions 4.4).

use std::collections::BTreeMap;

use quorate_core::{ClaimId, Refusal};

use crate::{Breach, Observation};

/// Remembers, for each origin of claims, the last one whose cancel was acknowledged. Origins number
/// their claims upwards, so memory stays bounded; a grant for an older one still breaks
/// [`crate::OneGrantPerClaim`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct CancelledIsOver {
    last: BTreeMap<u64, u64>,
}

impl CancelledIsOver {
    pub(crate) const LAW: &'static str = "cancelled is over";

    /// # Errors
    /// The breach, if this observation is one.
    pub fn see(&mut self, seen: Observation<'_>) -> Result<(), Breach> {
        match seen {
            Observation::Refused { claim: ClaimId { origin, serial }, why: Refusal::Cancelled } => {
                self.last.insert(origin, serial);
            }
            Observation::Granted { claim, shares }
                if self.last.get(&claim.origin) == Some(&claim.serial) =>
            {
                return Err(Breach {
                    law: Self::LAW,
                    what: format!("{claim} was granted {shares} after its cancel was acknowledged"),
                });
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{granted, id, shares};

    #[test]
    fn a_grant_after_an_acknowledged_cancel_is_a_breach() {
        let mut law = CancelledIsOver::default();
        law.see(Observation::Refused { claim: id(1), why: Refusal::Cancelled }).unwrap();
        law.see(granted(id(2), &shares(&[(0, 1)]))).unwrap();
        assert_eq!(
            law.see(granted(id(1), &shares(&[(1, 2)]))).unwrap_err().law,
            "cancelled is over"
        );
    }
}
