//! What all seats of a `central` pool agree on.

use std::sync::Arc;
use std::time::Duration;

use quorate_core::{Lease, NodeId, Unit};

use crate::allocator::{Among, Policy};

/// A pool that one node decides.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pool {
    /// How many units there are. The paper's k.
    pub units: u32,
    /// The node that decides.
    pub arbiter: NodeId,
    /// How long a grant lasts without renewal. There is no pool without a lease: a lost release
    /// would lose units.
    pub lease: Lease,
    /// How long a requester lets a claim wait before it asks again, once to twice this.
    pub retry: Duration,
    /// Who may pass whom.
    pub fairness: Fairness,
    /// Whether the arbiter writes grants down before it tells them. If not, it waits out one lease
    /// after a restart.
    pub durable: bool,
    /// Which units the clients of each node may use, ascending, node by node: the paper's alpha. A
    /// node beyond the list may use none. `None`: everybody may use any.
    pub eligible: Option<Arc<[Arc<[Unit]>]>>,
    /// The rule that is broken, for tests that the harness finds it.
    #[cfg(test)]
    pub(crate) mutant: Option<Mutant>,
}

impl Pool {
    /// A pool of `units` decided by node 0: oldest first, leases of ten seconds, nothing written
    /// down.
    pub fn new(units: u32) -> Self {
        Pool {
            units,
            arbiter: NodeId(0),
            lease: Lease::new(Duration::from_secs(10), 200),
            retry: Duration::from_secs(1),
            fairness: Fairness::Fifo,
            durable: false,
            eligible: None,
            #[cfg(test)]
            mutant: None,
        }
    }

    /// The units that clients of a node may use.
    pub(super) fn eligible(&self, node: NodeId) -> Among {
        let nodes = self.eligible.as_ref()?;
        Some(nodes.get(node.index()).cloned().unwrap_or_default())
    }

    /// How many units one claim of a node can have at most.
    pub(super) fn units_for(&self, node: NodeId) -> u32 {
        self.eligible(node).map_or(self.units, |units| units.len() as u32)
    }

    /// Who may pass whom, in the allocator's words.
    pub(super) fn policy(&self) -> Policy {
        #[cfg(test)]
        if self.mutant == Some(Mutant::OvertakeWithoutBound) {
            return Policy { protect: 1, patience: u32::MAX };
        }
        match self.fairness {
            Fairness::Fifo => Policy::STRICT,
            Fairness::Backfill(patience) => Policy { protect: 1, patience },
        }
    }
}

/// Who may pass whom while a claim waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fairness {
    /// Oldest first: no claim is delayed by a younger one. Where all units are alike nobody passes.
    Fifo,
    /// A younger claim may pass a blocked older one if it fits now, until the oldest has been
    /// passed this often. Then nobody may delay the oldest.
    Backfill(u32),
}

impl Fairness {
    /// Most times a waiting claim may be passed.
    pub fn overtakes_max(self) -> u32 {
        match self {
            Fairness::Fifo => 0,
            Fairness::Backfill(bound) => bound,
        }
    }
}

/// Rules that tests break one at a time; the harness must notice each. Exists in test builds of
/// this crate only.
#[cfg(test)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Mutant {
    /// Tells a grant before it is on disk.
    TellBeforePersist,
    /// Grants one unit more than there are.
    GrantWithoutRoom,
    /// A requester cancels by telling the arbiter, and keeps the claim.
    ForgetCancel,
    /// An arbiter that forgot everything grants at once.
    NoGrace,
    /// The same fence for every grant.
    ReuseFence,
    /// Backfill that does not count.
    OvertakeWithoutBound,
    /// A restarted requester declines what its earlier boot asked for.
    DeclineForeignBoot,
    /// A decline counts whatever attempt it names.
    DeclineAnyAttempt,
    /// A holder counts its lease from when the grant arrived.
    CountFromReceipt,
    /// A holder trusts all clocks to run alike.
    IgnoreDrift,
    /// An arbiter does nothing about holders that do not renew.
    NeverReclaim,
    /// A requester asks only once.
    NeverRetry,
    /// A requester renews a grant that came too late. Our first draft did; the checker found it.
    RenewLateGrant,
    /// A durable arbiter does not write down that a grant was asked for in a new attempt. Likewise.
    ForgetNewAttempt,
}

/// Whether a rule is broken: never, outside this crate's tests.
macro_rules! broken {
    ($seat:expr, $mutant:ident) => {{
        #[cfg(test)]
        let broken = $seat.pool.mutant == Some($crate::central::pool::Mutant::$mutant);
        #[cfg(not(test))]
        let broken = false;
        broken
    }};
}
pub(super) use broken;
