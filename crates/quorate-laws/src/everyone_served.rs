//! Once faults stop, every claim is granted (the liveness property of the k-arbiter paper, section
//! 2.1; conventions 4.7). Claims that were cancelled, or whose client is gone, are nobody's any
//! more.

use std::collections::BTreeMap;

use quorate_core::{ClaimId, Units};

use crate::{Breach, Observation};

/// Remembers who waits.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct EveryoneServed {
    waiting: BTreeMap<ClaimId, Units>,
}

impl EveryoneServed {
    const LAW: &'static str = "everyone served";

    /// Notes who waits; no single observation breaks this law.
    pub fn see(&mut self, seen: Observation<'_>) {
        match seen {
            Observation::Claimed { claim, units } => {
                self.waiting.insert(claim, units);
            }
            Observation::Granted { claim, .. }
            | Observation::Refused { claim, .. }
            | Observation::Abandoned { claim } => {
                self.waiting.remove(&claim);
            }
            Observation::Added { .. } | Observation::Left { .. } | Observation::Ended { .. } => {}
        }
    }

    /// How many claims wait now.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Judges a world in which faults stopped long enough ago.
    ///
    /// # Errors
    /// The breach: somebody still waits.
    pub fn at_rest(&self) -> Result<(), Breach> {
        match self.waiting.first_key_value() {
            None => Ok(()),
            Some((claim, units)) => Err(Breach {
                law: Self::LAW,
                what: format!(
                    "{} still waiting long after faults stopped, first {claim} for {units} units",
                    self.waiting.len()
                ),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{claimed, granted, id, shares};

    #[test]
    fn a_claim_left_waiting_is_a_breach_unless_its_client_is_gone() {
        let mut law = EveryoneServed::default();
        for claim in 1..=3 {
            law.see(claimed(id(claim), 1));
        }
        law.see(granted(id(1), &shares(&[(0, 1)])));
        law.see(Observation::Abandoned { claim: id(2) });
        assert_eq!(law.at_rest().unwrap_err().law, "everyone served");
        law.see(granted(id(3), &shares(&[(0, 2)])));
        assert!(law.at_rest().is_ok());
    }
}
