//! Short ways to write synthetic histories.

use quorate_core::{ClaimId, Entry, Fence, NodeId, Share, Shares, Stamp, Standing, Unit, Units};

use crate::{End, Observation};

pub(crate) fn id(serial: u64) -> ClaimId {
    ClaimId { origin: 1, serial }
}

pub(crate) fn shares(of: &[(u32, u64)]) -> Shares {
    let shares: Vec<Share> =
        of.iter().map(|&(unit, fence)| Share { unit: Unit(unit), fence: Fence(fence) }).collect();
    Shares::new(&shares)
}

pub(crate) fn claimed(claim: ClaimId, h: u32) -> Observation<'static> {
    Observation::Claimed { claim, units: Units::new(h, h).unwrap() }
}

pub(crate) fn granted(claim: ClaimId, shares: &Shares) -> Observation<'_> {
    Observation::Granted { claim, shares }
}

pub(crate) fn ended(claim: ClaimId, shares: &Shares) -> Observation<'_> {
    Observation::Ended { claim, shares, how: End::Released }
}

pub(crate) fn entry(serial: u64, clock: u64, standing: Standing) -> Entry {
    let stamp = Stamp { clock, node: NodeId(0) };
    Entry { claim: id(serial), stamp, units: Units::ONE, standing, kept: None }
}
