//! A grant answers a claim that is waiting, once, with exactly the h distinct units it asked for
//! (conventions 4.3 and 4.4): all or nothing, and repeating a request never changes the total.

use std::collections::BTreeMap;

use quorate_core::{ClaimId, Units};

use crate::{Breach, Observation};

/// Remembers the claims that are not over.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct OneGrantPerClaim {
    live: BTreeMap<ClaimId, (Units, Status)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Status {
    Waiting,
    Using,
}

impl OneGrantPerClaim {
    pub(crate) const LAW: &'static str = "one grant per claim";

    /// # Errors
    /// The breach, if this observation is one.
    pub fn see(&mut self, seen: Observation<'_>) -> Result<(), Breach> {
        let breach = |what| Err(Breach { law: Self::LAW, what });
        match seen {
            Observation::Claimed { claim, units } => {
                self.live.insert(claim, (units, Status::Waiting));
            }
            Observation::Granted { claim, shares } => match self.live.get_mut(&claim) {
                None => return breach(format!("{claim} was granted {shares}, but is not waiting")),
                Some((_, Status::Using)) => {
                    return breach(format!(
                        "{claim} was granted {shares} on top of an earlier grant"
                    ));
                }
                Some((units, status)) => {
                    if shares.len() != units.get() as usize {
                        return breach(format!(
                            "{claim} asked for {units} and was granted {shares}"
                        ));
                    }
                    if shares.as_slice().windows(2).any(|pair| pair[0].unit == pair[1].unit) {
                        return breach(format!("{claim} was granted a unit twice: {shares}"));
                    }
                    *status = Status::Using;
                }
            },
            Observation::Added { claim, shares } => {
                if !matches!(self.live.get(&claim), Some((_, Status::Using))) {
                    return breach(format!("{claim} was given {shares} and has no grant"));
                }
            }
            Observation::Left { .. } => {}
            Observation::Ended { claim, .. }
            | Observation::Refused { claim, .. }
            | Observation::Abandoned { claim } => {
                self.live.remove(&claim);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{claimed, ended, granted, id, shares};

    fn law() -> OneGrantPerClaim {
        let mut law = OneGrantPerClaim::default();
        law.see(claimed(id(1), 2)).unwrap();
        law
    }

    #[test]
    fn a_second_grant_is_a_breach_before_and_after_the_end_of_the_first() {
        let both = shares(&[(0, 1), (1, 1)]);
        let mut law = law();
        law.see(granted(id(1), &both)).unwrap();
        assert!(law.clone().see(granted(id(1), &both)).is_err());
        law.see(ended(id(1), &both)).unwrap();
        assert_eq!(law.see(granted(id(1), &both)).unwrap_err().law, "one grant per claim");
    }

    #[test]
    fn too_few_units_or_one_twice_is_a_breach() {
        assert!(law().see(granted(id(1), &shares(&[(0, 1)]))).is_err());
        assert!(law().see(granted(id(1), &shares(&[(0, 1), (0, 1)]))).is_err());
        assert!(law().see(granted(id(1), &shares(&[(0, 1), (1, 1)]))).is_ok());
    }

    #[test]
    fn a_grant_nobody_asked_for_is_a_breach() {
        assert!(law().see(granted(id(7), &shares(&[(0, 1)]))).is_err());
    }
}
