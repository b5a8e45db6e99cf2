//! No unit has two users at once (conventions 4.2): counting to k is not enough where units have
//! names.

use quorate_core::ClaimId;

use crate::{Breach, Observation};

/// Remembers who uses each unit.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Exclusivity {
    users: Vec<Option<ClaimId>>,
}

impl Exclusivity {
    pub(crate) const LAW: &'static str = "exclusivity";

    /// For a pool of `k` units.
    pub fn new(k: u32) -> Self {
        Exclusivity { users: vec![None; k as usize] }
    }

    /// # Errors
    /// The breach, if this observation is one.
    #[inline]
    pub fn see(&mut self, seen: Observation<'_>) -> Result<(), Breach> {
        match seen {
            Observation::Granted { claim, shares } | Observation::Added { claim, shares } => {
                for share in shares {
                    let breach = |what| Err(Breach { law: Self::LAW, what });
                    match self.users.get_mut(share.unit.index()) {
                        Some(user @ None) => *user = Some(claim),
                        Some(Some(other)) => {
                            return breach(format!(
                                "{claim} was granted {}, which {other} is using",
                                share.unit
                            ));
                        }
                        None => {
                            return breach(format!(
                                "{claim} was granted {}, which the pool does not have",
                                share.unit
                            ));
                        }
                    }
                }
            }
            Observation::Ended { shares, .. } | Observation::Left { shares, .. } => {
                for share in shares {
                    self.users[share.unit.index()] = None;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ended, granted, id, shares};

    #[test]
    fn one_unit_with_two_users_is_a_breach_even_if_the_count_fits() {
        let mut law = Exclusivity::new(3);
        let (first, second) = (shares(&[(1, 1)]), shares(&[(0, 2), (1, 2)]));
        law.see(granted(id(1), &first)).unwrap();
        assert_eq!(law.clone().see(granted(id(2), &second)).unwrap_err().law, "exclusivity");
        law.see(ended(id(1), &first)).unwrap();
        law.see(granted(id(2), &second)).unwrap();
    }

    #[test]
    fn a_unit_that_does_not_exist_is_a_breach() {
        let mut law = Exclusivity::new(1);
        assert!(law.see(granted(id(1), &shares(&[(1, 1)]))).is_err());
    }
}
