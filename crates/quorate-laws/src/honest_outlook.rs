//! What cannot be granted is not promised: whoever asks which claims a pool can grant with the
//! nodes that are there is told the truth, both ways (the operator's law).
//!
//! A driver says what nodes said ([`HonestOutlook::said`]) when nothing has changed for long enough
//! that everybody knows who is there. Claims made from then on are the judges: those that could be
//! granted by what was said are, and no others.

use std::collections::BTreeMap;

use quorate_core::{ClaimId, NodeId, Outlook, Units};

use crate::{Breach, Observation};

/// Remembers what was said at each node, and what became of claims made there since.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HonestOutlook {
    said: BTreeMap<NodeId, Outlook>,
    /// Where each was made, for how much, and whether it was granted.
    claims: BTreeMap<ClaimId, (NodeId, Units, bool)>,
}

impl HonestOutlook {
    const LAW: &'static str = "honest outlook";

    /// Whoever asks this node is told that.
    pub fn said(&mut self, node: NodeId, outlook: Outlook) {
        self.said.insert(node, outlook);
    }

    /// A client of this node asks for units.
    pub fn claimed(&mut self, node: NodeId, claim: ClaimId, units: Units) {
        self.claims.insert(claim, (node, units, false));
    }

    /// Notes what was granted; no single observation breaks this law.
    pub fn see(&mut self, seen: Observation<'_>) {
        if let Observation::Granted { claim, .. } = seen
            && let Some((_, _, granted)) = self.claims.get_mut(&claim)
        {
            *granted = true;
        }
    }

    /// Judges a world in which nothing will be granted any more.
    ///
    /// # Errors
    /// The breach: somebody waits for what was promised, or got what was said to be impossible.
    pub fn at_rest(&self) -> Result<(), Breach> {
        for (claim, (node, units, granted)) in &self.claims {
            let Some(outlook) = self.said.get(node) else { continue };
            if outlook.allows(units.get()) != *granted {
                let became = if *granted { "was granted" } else { "waits in vain" };
                let what = format!("{node} said {outlook:?}; {claim} for {units} units {became}");
                return Err(Breach { law: Self::LAW, what });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use quorate_core::Hurdle;

    use super::*;
    use crate::testing::{granted, id, shares};

    #[test]
    fn a_promise_in_vain_and_a_grant_against_what_was_said_are_breaches() {
        let judged = |outlook: &Outlook, is_granted: bool| {
            let mut law = HonestOutlook::default();
            law.said(NodeId(1), outlook.clone());
            law.claimed(NodeId(1), id(1), Units::ONE);
            law.claimed(NodeId(2), id(2), Units::ONE);
            if is_granted {
                law.see(granted(id(1), &shares(&[(0, 1)])));
            }
            law.at_rest().map_err(|breach| breach.law)
        };
        let (can, cannot) = (Outlook::all(1), Outlook::nothing(Hurdle::CutOff));
        assert_eq!((judged(&can, true), judged(&cannot, false)), (Ok(()), Ok(())));
        assert_eq!(judged(&can, false), Err("honest outlook"));
        assert_eq!(judged(&cannot, true), Err("honest outlook"));
    }
}
