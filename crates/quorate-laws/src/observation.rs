//! What an outsider sees of clients, in the order in which it happens.

use quorate_core::{ClaimId, Refusal, Shares, Units};

/// One thing a client did or was told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Observation<'a> {
    /// A client asked for units. Asking again under the same name is not observed again.
    Claimed {
        /// Its claim.
        claim: ClaimId,
        /// How many it wants.
        units: Units,
    },
    /// A client was told that it may use units, and does from now on.
    Granted {
        /// Its claim.
        claim: ClaimId,
        /// What it got.
        shares: &'a Shares,
    },
    /// A client that uses units was given more, and was asked to leave others.
    Added {
        /// Its claim.
        claim: ClaimId,
        /// What it got.
        shares: &'a Shares,
    },
    /// A client left some of its units, and goes on with the others.
    Left {
        /// Its claim.
        claim: ClaimId,
        /// What it left.
        shares: &'a Shares,
    },
    /// A client stopped using what it was granted.
    Ended {
        /// Its claim.
        claim: ClaimId,
        /// What it had.
        shares: &'a Shares,
        /// Why it stopped.
        how: End,
    },
    /// A client was told that its claim is over without a grant.
    Refused {
        /// Its claim.
        claim: ClaimId,
        /// Why.
        why: Refusal,
    },
    /// A client that was waiting is gone without an answer. What became of its claim is unknown:
    /// units may have been set aside for it, and nobody will ever see the grant.
    Abandoned {
        /// Its claim.
        claim: ClaimId,
    },
}

/// Why a client stopped using its units.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum End {
    /// It gave them back.
    Released,
    /// Its own clock reached the grant's deadline.
    Deadline,
    /// It was told that it had lost them.
    Told,
    /// It died.
    Died,
}
