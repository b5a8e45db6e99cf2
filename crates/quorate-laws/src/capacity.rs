//! Units in use never exceed k, at every instant.
//!
//! The safety property of h-out-of-k mutual exclusion (k-arbiter paper, section 2.1), on definite
//! holds: from the moment a client is told of its grant until it stops, by release or by its own
//! deadline (conventions 4.1).

use crate::{Breach, Observation};

/// Counts units in use.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Capacity {
    units: u64,
    in_use: u64,
}

impl Capacity {
    pub(crate) const LAW: &'static str = "capacity";

    /// For a pool of `k` units.
    pub fn new(k: u32) -> Self {
        Capacity { units: u64::from(k), in_use: 0 }
    }

    /// Units in use now.
    pub fn in_use(&self) -> u64 {
        self.in_use
    }

    /// # Errors
    /// The breach, if this observation is one.
    #[inline]
    pub fn see(&mut self, seen: Observation<'_>) -> Result<(), Breach> {
        match seen {
            Observation::Granted { claim, shares } | Observation::Added { claim, shares } => {
                self.in_use += shares.len() as u64;
                if self.in_use > self.units {
                    return Err(Breach {
                        law: Self::LAW,
                        what: format!(
                            "{} units in use of {} once {claim} was granted {shares}",
                            self.in_use, self.units
                        ),
                    });
                }
            }
            Observation::Ended { shares, .. } | Observation::Left { shares, .. } => {
                self.in_use -= shares.len() as u64
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
    fn a_third_unit_of_two_is_a_breach() {
        let mut law = Capacity::new(2);
        let (both, another) = (shares(&[(0, 1), (1, 1)]), shares(&[(0, 2)]));
        law.see(granted(id(1), &both)).unwrap();
        assert_eq!(law.see(granted(id(2), &another)).unwrap_err().law, "capacity");

        let mut law = Capacity::new(2);
        law.see(granted(id(1), &both)).unwrap();
        law.see(ended(id(1), &both)).unwrap();
        law.see(granted(id(2), &another)).unwrap();
        assert_eq!(law.in_use(), 1);
    }
}
