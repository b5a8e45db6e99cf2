//! A unit's fences grow from holder to holder (arbiter spec C6; conventions 4.2): whatever compares
//! fences refuses a holder that woke up late.

use quorate_core::{Fence, Number};

use crate::{Breach, Observation};

/// Remembers the last fence given out with each unit; starts at no fence at all.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FenceOrder {
    last: Vec<Option<Fence>>,
}

impl FenceOrder {
    pub(crate) const LAW: &'static str = "fence order";

    /// For a pool of `k` units.
    pub fn new(k: u32) -> Self {
        FenceOrder { last: vec![None; k as usize] }
    }

    /// # Errors
    /// The breach, if this observation is one.
    #[inline]
    pub fn see(&mut self, seen: Observation<'_>) -> Result<(), Breach> {
        let (Observation::Granted { claim, shares } | Observation::Added { claim, shares }) = seen
        else {
            return Ok(());
        };
        for share in shares {
            let Some(last) = self.last.get_mut(share.unit.index()) else { continue };
            if let Some(last) = *last
                && last >= share.fence
            {
                return Err(Breach {
                    law: Self::LAW,
                    what: format!(
                        "{claim} was granted {} with {}, but an earlier holder had {last}",
                        share.unit, share.fence
                    ),
                });
            }
            *last = Some(share.fence);
        }
        Ok(())
    }

    /// Shows every fence remembered, for a checker that renames them.
    pub fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>)) {
        for fence in self.last.iter_mut().flatten() {
            see(Number::Fence(fence));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{granted, id, shares};

    #[test]
    fn an_equal_or_smaller_fence_is_a_breach_on_the_same_unit_only() {
        let mut law = FenceOrder::new(2);
        law.see(granted(id(1), &shares(&[(0, 5)]))).unwrap();
        law.see(granted(id(2), &shares(&[(1, 3)]))).unwrap();
        for stale in [5, 4] {
            let breach = law.clone().see(granted(id(3), &shares(&[(0, stale)]))).unwrap_err();
            assert_eq!(breach.law, "fence order");
        }
        law.see(granted(id(3), &shares(&[(0, 6), (1, 6)]))).unwrap();
    }
}
