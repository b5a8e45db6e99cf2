//! What all seats of a `central` pool agree on.

use quorate_core::NodeId;

use crate::goods::Goods;

/// A pool that one node decides.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pool {
    /// What there is, who may use it, and for how long.
    pub goods: Goods,
    /// The node that decides.
    pub arbiter: NodeId,
    /// Whether another may decide in its place, as the charter says ([`super::moving`]): then homes
    /// know what their clients have.
    pub moves: bool,
}

impl Pool {
    /// A pool of `units` decided by node 0: oldest first, leases of ten seconds, nothing written
    /// down.
    pub fn new(units: u32) -> Self {
        Pool::of(Goods::new(units))
    }

    /// A pool of these, decided by node 0.
    pub fn of(goods: Goods) -> Self {
        Pool { goods, arbiter: NodeId(0), moves: false }
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
    /// What ends a grant names its try, which may have another by now (charter spec 6). Our
    /// first draft.
    EndByTry,
    /// A home gives back on its own account what another has asked for too. Our first draft.
    DeclineShared,
    /// A home that gives up a claim that waits takes it out of the queue for the others that asked
    /// for it: its client had moved, and lost its place. Found with real processes.
    GiveUpForAll,
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
    /// Any units will do for any claim.
    IgnoreLines,
    /// A unit changes hands before its user has left it.
    HandOverEarly,
    /// Nobody who is blocked keeps what it found: the specification's P = 0.
    Greedy,
    /// Nobody passes a blocked claim, whatever it asks for.
    StrictFifo,
    /// Units are named as soon as a claim is granted.
    BindEarly,
    /// Holders are counted as if they could move, and are not moved.
    CountOnly,
    /// A renewal from before a move counts after it.
    ExtendAfterMove,
    /// What can be granted is said as if the arbiter were there.
    PromiseWithoutArbiter,
    /// Claims of homes that seem dead are granted in their turn. Our first draft.
    ServeTheDead,
    /// A claim that was out of its turn stays so when its home asks for it.
    StayAway,
    /// A seat decides without a licence (charter spec S1).
    DecideUnlicensed,
    /// A seat renews without one (charter spec S1).
    RenewUnlicensed,
    /// The seat of a term does not wait until nobody else has a licence (charter spec S3).
    NoLull,
    /// It renews while it waits for that (charter spec S3).
    RenewInLull,
    /// It decides as soon as nobody else does (charter spec S4).
    NoGraceAfterMove,
    /// In grace it tells a claim again what it has (charter spec S4).
    TellInGrace,
    /// A member answers the roll of a term that it has not applied (charter spec S5).
    AnswerBeforeApplied,
    /// A home takes what a seat of a lower term says (charter spec S5).
    TakeLowerTerms,
    /// The roll is over though one member has not answered (charter spec S6).
    OpenWithoutOne,
    /// A member that forgot takes its list for complete (charter spec S6).
    CompleteAtOnce,
    /// Books replace what was shown (charter spec S8).
    BooksReplace,
    /// Of two that show one unit the first stays (charter spec S8).
    FirstShownStays,
    /// The lease of what is shown begins then, not when the seat opens (charter spec S8).
    LeaseFromShowing,
    /// A claim is told with its old fence what an earlier seat gave it (charter spec S9).
    KeepOldFences,
    /// Fences of a term begin where those of any other do (charter spec S10).
    FenceByCounterAlone,
    /// A seat goes on when its node has applied a later term (charter spec S11).
    GoOnAfterMove,
    /// A seat in grace hands over what it knows (charter spec S11).
    HandOverInGrace,
    /// Books open any later seat (charter spec S11).
    BooksForAnyTerm,
    /// A node that was restarted decides in the term of its earlier life (charter spec S12).
    DecideInAnotherLife,
    /// Homes are told of a grant before the shadow knows of it (charter spec S13).
    ClientFirst,
    /// A node that gave up what files let it decide goes on (charter spec S18).
    GoOnUnpinned,
    /// Every life of a pinned seat counts fences from the same (charter spec S18).
    PinnedFencesAnew,
    /// A seat whose shadow does not answer goes on before its node has applied that it is struck
    /// (charter spec S15).
    GoOnUnshadowed,
    /// A shadow is vouched for before it knows what was granted before it was named (charter spec
    /// S16).
    VouchAtOnce,
    /// A shadow decides at once by what it was told under an earlier naming (charter spec S16).
    InheritEarlier,
    /// A shadow decides at once though it was not shown everything in this life (charter spec S17).
    InheritUnshown,
    /// A shadow that hears that something is over drops whatever its claim has (charter spec S14).
    EndAnyGrant,
    /// A seat that renews what a claim has tells its shadow that it is over (charter spec S14).
    EndWhatStands,
    /// A shadow that decides answers the seat before (charter spec S17).
    AnswerTellsAfter,
    /// Leases of what a shadow took over begin when it opens (charter spec S17).
    LeaseFromTakeover,
    /// Units that a pool has no more are granted again when they come back (charter spec 3).
    GrantRemoved,
    /// A seat goes on under a licence from before its pool was changed (charter spec 3).
    DecideAmendedAtOnce,
    /// A seat knows nothing of units that its pool has no more (charter spec 3).
    ForgetRemoved,
    /// A change of the pool begins fences anew (charter spec 3).
    FencesAnew,
    /// The seat of a term waits for promises of earlier ones by the lease that the pool has now
    /// (charter spec 3).
    GraceByNewLease,
    /// What was promised by an earlier lease is kept by the new one once it is renewed (charter
    /// spec 3).
    KeepByNewLease,
    /// A grant that is told later than it was made counts by the lease of now (charter spec 3).
    TellByNewLease,
    /// Homes count by the lease of which they have heard (charter spec 3).
    CountByOwnLease,
    /// A home that forgot, and hears of a longer lease, knows all of its clients as soon as ever
    /// (charter spec 3).
    CompleteByOldLease,
    /// Nothing is waited for that was promised by an earlier definition (charter spec 3).
    SettleAtOnce,
    /// Units that are drained are granted (charter spec 3).
    GrantDrained,
    /// Claims that wait choose by labels that units have no more (charter spec 3).
    ChooseByOldLabels,
    /// Claims for more than there is now wait on (charter spec 3).
    WaitForNothing,
}

/// Whether a rule is broken: never, outside this crate's tests.
macro_rules! broken {
    ($seat:expr, $mutant:ident) => {{
        #[cfg(test)]
        let broken = $seat.pool.goods.mutant == Some($crate::central::pool::Mutant::$mutant);
        #[cfg(not(test))]
        let broken = {
            let _ = &$seat;
            false
        };
        broken
    }};
}
pub(super) use broken;
