//! What all seats of a `ticket` pool agree on.

use std::time::Duration;

use quorate_core::Lease;

use crate::quorums::Quorums;

/// A pool in which tickets decide.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pool {
    /// How many units there are.
    pub units: u32,
    /// Whose views suffice. Any two quorums must share a node; nothing here checks it.
    pub quorums: Quorums,
    /// How long an entry lasts without being asked for again. One of `Duration::MAX` never ends.
    pub lease: Lease,
    /// How long a requester lets a claim wait before it asks again.
    pub retry: Duration,
    /// How many members beyond a quorum are asked, and must let a claim in: it outlives the crash
    /// of as many, whichever they are.
    pub spares: u32,
    /// How often a requester asks a member that does not answer before it goes on without it, or
    /// starts again with a quorum of others; `None` leaves that to the failure detector.
    pub patience: Option<u32>,
    /// The rule that is broken, for tests that the harness finds it.
    #[cfg(test)]
    pub(crate) mutant: Option<Mutant>,
}

impl Pool {
    /// A pool of `units` guarded by majorities of `members` nodes, leases of ten seconds.
    pub fn new(units: u32, members: u32) -> Self {
        Pool {
            units,
            quorums: Quorums::majority(members),
            lease: Lease::new(Duration::from_secs(10), 200),
            retry: Duration::from_secs(1),
            spares: 0,
            patience: Some(3),
            #[cfg(test)]
            mutant: None,
        }
    }

    /// Whether entries end by themselves.
    pub(super) fn leases_end(&self) -> bool {
        self.lease.length() < Duration::MAX
    }
}

/// Rules that tests break one at a time; the harness must notice each. Those with a number are the
/// scenarios of arbiter spec 9.
#[cfg(test)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Mutant {
    /// Arbiter spec T-1: one round. Each member's own order of arrival is taken for the order of
    /// all.
    T1OneRound,
    /// Arbiter spec T-2: a member does not raise its numbers to the tickets it hears of.
    T2NoBump,
    /// Arbiter spec T-3: claims whose tickets are not settled yet are left out of views.
    T3IgnoreUnsettled,
    /// A member that forgot gives proposals and views at once.
    NoGrace,
    /// A holder goes on although its deadline has passed.
    ReviveDead,
    /// A proposal or view that nobody waits for is ignored.
    NoHeal,
    /// A requester asks only once.
    NeverRetry,
    /// A member has one entry per claim: a registration through another home ends the first.
    OneEntryPerClaim,
    /// What a client shows through another home is that home's alone from then on.
    HandOverWhole,
    /// A member that forgot takes up whatever clients say that they use.
    AdoptShown,
    /// A member that forgot tells homes that it knows what it took up, though they cannot tell
    /// whether it had ended there.
    ConfirmInGrace,
    /// A holder relies again on a member after its entry there may have ended.
    ReviveMember,
    /// A member that a holder joins says so while others rely on views without that holder.
    JoinAtOnce,
    /// A claim keeps a view although it heard that the view is void.
    KeepVoidViews,
    /// A client has lost its units as soon as too few members remember.
    LoseWhatIsForgotten,
    /// A member that is dead is waited for, for a lease: it may know what a client made up. Our
    /// first draft.
    WaitForTheDead,
}

/// Whether a rule is broken: never, outside this crate's tests.
macro_rules! broken {
    ($seat:expr, $mutant:ident) => {{
        #[cfg(test)]
        let broken = $seat.pool.mutant == Some($crate::ticket::pool::Mutant::$mutant);
        #[cfg(not(test))]
        let broken = {
            let _ = &$seat;
            false
        };
        broken
    }};
}
pub(super) use broken;
