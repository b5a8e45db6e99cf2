//! Of a pool that changes, nobody is granted a unit that it had no more when he claimed.
//!
//! A pool has *editions*, each with so many units, of which some may be drained, and those who
//! decide learn of a new one at different moments. A grant is decided after its claim was made; so
//! it is decided by an edition that was not over everywhere by then, and its units are among those
//! of such an edition or a later one. What was granted before, or decided and not heard of, may be
//! used on: that units in use never exceed those that there ever were is the law of capacity, and
//! that none has two users is exclusivity.

use std::collections::BTreeMap;

use quorate_core::{ClaimId, Unit};

use crate::{Breach, Observation};

/// Remembers by which editions a claim that waits may be granted.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct UnitsInForce {
    /// The units of each edition after the first, and those of them that are drained.
    editions: Vec<(u32, Vec<Unit>)>,
    /// Nobody decides by an earlier one than this; 0 for the first.
    oldest: usize,
    /// What that was when a claim was made, if it was another than the first.
    claimed: BTreeMap<ClaimId, usize>,
}

impl UnitsInForce {
    pub(crate) const LAW: &'static str = "units in force";

    /// The pool has another edition, which may be decided by from now on.
    pub fn amended(&mut self, units: u32, drained: &[Unit]) {
        self.editions.push((units, drained.to_vec()));
    }

    /// Nobody decides by an earlier edition than this any more.
    pub fn applied(&mut self, edition: usize) {
        self.oldest = self.oldest.max(edition);
    }

    /// # Errors
    /// The breach, if this observation is one.
    pub fn see(&mut self, seen: Observation<'_>) -> Result<(), Breach> {
        match seen {
            Observation::Claimed { claim, .. } if self.oldest > 0 => {
                self.claimed.insert(claim, self.oldest);
            }
            Observation::Granted { claim, shares } => {
                let Some(oldest) = self.claimed.remove(&claim) else { return Ok(()) };
                let since = &self.editions[oldest - 1..];
                let lent = |unit: Unit| {
                    let by = |(units, drained): &(u32, Vec<Unit>)| {
                        unit.0 < *units && !drained.contains(&unit)
                    };
                    since.iter().any(by)
                };
                if let Some(gone) = shares.iter().find(|share| !lent(share.unit)) {
                    let what = format!(
                        "{claim} was granted {}, which the pool has not lent to anybody since it \
                         was claimed",
                        gone.unit
                    );
                    return Err(Breach { law: Self::LAW, what });
                }
            }
            Observation::Refused { claim, .. } | Observation::Abandoned { claim } => {
                self.claimed.remove(&claim);
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{claimed, granted, id, shares};

    #[test]
    fn who_claims_when_a_unit_is_gone_everywhere_does_not_get_it() {
        let mut law = UnitsInForce::default();
        law.amended(1, &[]);
        law.see(claimed(id(1), 1)).unwrap();
        law.applied(1);
        law.see(claimed(id(2), 1)).unwrap();
        law.see(granted(id(1), &shares(&[(1, 1)]))).unwrap();
        let breach = law.clone().see(granted(id(2), &shares(&[(1, 2)]))).unwrap_err();
        assert_eq!(breach.law, "units in force");
        law.amended(2, &[]);
        law.see(granted(id(2), &shares(&[(1, 2)]))).unwrap();
    }

    #[test]
    fn who_claims_when_a_unit_is_drained_everywhere_does_not_get_it() {
        let mut law = UnitsInForce::default();
        law.amended(2, &[Unit(0)]);
        law.applied(1);
        law.see(claimed(id(1), 1)).unwrap();
        law.clone().see(granted(id(1), &shares(&[(1, 1)]))).unwrap();
        law.clone().see(granted(id(1), &shares(&[(0, 1)]))).unwrap_err();
        law.amended(2, &[]);
        law.see(granted(id(1), &shares(&[(0, 1)]))).unwrap();
    }
}
