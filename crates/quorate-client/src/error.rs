//! What can go wrong, one narrow enum per boundary. Every variant says what was left behind.

use quorate_api::{ClaimId, Problem};

use crate::tls::hint;

/// Why there is no connection to any node. Nothing was asked of anybody.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The list of servers is empty.
    #[error("no server is named: give at least one, such as 127.0.0.1:7420")]
    NoServers,
    /// A name in the list is not the address of a server.
    #[error(
        "{text:?} is not a server: write HOST:PORT, http://HOST:PORT, https://HOST:PORT or \
         unix:/PATH"
    )]
    BadServer {
        /// What was given.
        text: String,
    },
    /// What should say whom to trust does not.
    #[error("the certificates cannot be used: {what}")]
    BadCertificate {
        /// What is the matter.
        what: String,
    },
    /// A server is named with `https://`, and nothing says whom to trust.
    #[error("{server} asks for encryption: name the certificate of its authority (ca.crt) too")]
    NoAuthority {
        /// Which server.
        server: String,
    },
    /// None of the servers answered.
    #[error("no node answers ({why}): {}", hint(why))]
    Unreachable {
        /// What was tried last, and what happened.
        why: String,
    },
}

/// Why a claim was not granted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// No units were asked for. Nothing was sent.
    #[error("a claim must ask for at least 1 unit")]
    None,
    /// The pool can never grant so many. Nothing was left behind.
    #[error("{h} units asked of a pool of {k}: ask for at most {k}")]
    TooLarge {
        /// Units asked for.
        h: u32,
        /// Units the pool has.
        k: u32,
    },
    /// There is no such pool. Nothing was left behind.
    #[error("there is no pool {pool:?}: `quorate pools` lists those there are")]
    UnknownPool {
        /// The name that was given.
        pool: String,
    },
    /// The time is over; the claim was cancelled, and that was acknowledged. Nothing was left
    /// behind: it will never be granted.
    #[error("the units were not granted in time; claim {claim} is cancelled")]
    Timeout {
        /// The claim.
        claim: ClaimId,
    },
    /// The time is over, and the claim never left this machine. Nothing was left behind.
    #[error("no node could be reached in time ({why}); claim {claim} was never made")]
    Unreachable {
        /// The claim.
        claim: ClaimId,
        /// What was tried last, and what happened.
        why: String,
    },
    /// The time is over, and nobody acknowledged the cancellation. Units may be set aside for the
    /// claim until one lease has passed; this client does not use them and goes on cancelling.
    #[error(
        "what became of claim {claim} is unknown; it is being cancelled, and whatever it was \
         granted ends with its lease: ask `quorate status` by its id"
    )]
    Unknown {
        /// The claim.
        claim: ClaimId,
    },
    /// It was granted, and its lease ended before this client could use it. Nothing was left
    /// behind; claim again under a new id.
    #[error("claim {claim} was lost before it could be used ({why}): claim again")]
    Lost {
        /// The claim.
        claim: ClaimId,
        /// Why.
        why: String,
    },
    /// An operator took it back. Nothing was left behind.
    #[error("claim {claim} was revoked: {reason}")]
    Revoked {
        /// The claim.
        claim: ClaimId,
        /// In the operator's words.
        reason: String,
    },
    /// Somebody ended the claim by its id. Nothing was left behind.
    #[error("claim {claim} was ended by somebody else: {why}")]
    Ended {
        /// The claim.
        claim: ClaimId,
        /// Why.
        why: String,
    },
    /// The node would not take the claim. Nothing was left behind.
    #[error("{0}")]
    Rejected(Problem),
    /// The client's task is gone, with its runtime. What was granted ends with its lease.
    #[error("the client is closed")]
    Closed,
}

/// Why [`crate::Pool::try_acquire`] got nothing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TryAcquireError {
    /// The units are not free now. The claim is cancelled; nothing was left behind.
    #[error("the units are not free now")]
    NoUnits,
    /// Anything else.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
}

/// How a grant was lost. Whoever holds it must have stopped by its deadline.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Lost {
    /// This client's own clock reached the deadline, and no renewal had succeeded.
    #[error("the lease ended and could not be renewed in time")]
    Deadline,
    /// An operator wants the units back. They remain this holder's until the deadline: stop using
    /// them and release.
    #[error("revoked: {reason}")]
    Revoked {
        /// In the operator's words.
        reason: String,
    },
    /// The nodes say that the grant is over: stop at once.
    #[error("lost: {why}")]
    Told {
        /// Why.
        why: String,
    },
}

/// Why [`crate::Pool::run`] has no result.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The units were not granted: nothing was run.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// The units were lost while the work went on: it was stopped where it waited last, and what it
    /// had done by then is done.
    #[error("the work was stopped: {0}")]
    Lost(#[from] Lost),
}

/// Why a release was not acknowledged.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The grant had been lost before: somebody else may have used the units meanwhile. Nothing was
    /// left behind.
    #[error("the units were lost before they were released: {0}")]
    Lost(Lost),
    /// No node acknowledged it yet. This client goes on trying for a while; in any case the units
    /// return when their lease ends, or where the pool gives nothing away that a silent node may
    /// use (protocol `broadcast`), when that node is back or counted out.
    #[error(
        "no node acknowledged the release of {claim}; the units return with their lease, or, where \
         their node has to be heard first, with that node"
    )]
    Unknown {
        /// The claim.
        claim: ClaimId,
    },
    /// The client's task is gone, with its runtime. The units return when their lease ends.
    #[error("the client is closed; the units return with their lease")]
    Closed,
}
