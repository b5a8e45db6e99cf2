//! Leases of clients, for protocols that leave those to the node.
//!
//! Some protocols know only nodes: what a node was granted is its own until it gives it back, or
//! until the other nodes stop answering it. Whether the *client* still lives is then between it and
//! its node. The keeper gives every grant a lease, lets clients renew it, and takes back what was
//! not renewed. What a client is told is never later than what the protocol allows.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_core::{ClaimId, Lease, Moment, Shares};

/// The leases of one seat's clients.
#[derive(Debug)]
pub(crate) struct Keeper {
    lease: Lease,
    kept: BTreeMap<ClaimId, Kept>,
}

#[derive(Debug)]
struct Kept {
    shares: Shares,
    /// Until when the protocol lets it be used.
    allowed: Moment,
    /// Until when the client, which last spoke one lease before, may use it.
    leased: Moment,
}

impl Kept {
    fn until(&self) -> Moment {
        self.allowed.min(self.leased)
    }
}

impl Keeper {
    pub(crate) fn new(lease: Lease) -> Self {
        Keeper { lease, kept: BTreeMap::new() }
    }

    /// How long after a client last spoke its units are taken back: by our clock never earlier than
    /// its own deadline, which is this less the drift.
    pub(crate) fn length(&self) -> Duration {
        self.lease.length()
    }

    /// The protocol granted a claim; says until when its client may use it.
    pub(crate) fn grant(
        &mut self,
        claim: ClaimId,
        shares: &Shares,
        allowed: Moment,
        now: Moment,
    ) -> Moment {
        let leased = self.lease.deadline(now, Duration::ZERO);
        let kept = Kept { shares: shares.clone(), allowed, leased };
        let until = kept.until();
        self.kept.insert(claim, kept);
        until
    }

    /// The protocol allows more time; says until when the client may go on.
    pub(crate) fn allow(&mut self, claim: ClaimId, allowed: Moment) -> Option<Moment> {
        let kept = self.kept.get_mut(&claim)?;
        kept.allowed = kept.allowed.max(allowed);
        Some(kept.until())
    }

    /// A client shows what it has and wants to keep it: until when, or nothing if it is unknown or
    /// over.
    pub(crate) fn renew(&mut self, claim: ClaimId, shares: &Shares, now: Moment) -> Option<Moment> {
        let leased = self.lease.deadline(now, Duration::ZERO);
        let kept = self.kept.get_mut(&claim).filter(|kept| kept.shares == *shares)?;
        if kept.until() <= now {
            return None; // The client has stopped, and what is over stays over.
        }
        kept.leased = leased;
        Some(kept.until())
    }

    /// A claim is over; says what it had.
    pub(crate) fn end(&mut self, claim: ClaimId) -> Option<Shares> {
        self.kept.remove(&claim).map(|kept| kept.shares)
    }
}
