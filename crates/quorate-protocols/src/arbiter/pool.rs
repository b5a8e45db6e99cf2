//! What all seats of an `arbiter` pool agree on.

use std::time::Duration;

use quorate_core::Lease;

use crate::quorums::Quorums;

/// A pool that quorums decide.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pool {
    /// How many units there are. The paper's k.
    pub units: u32,
    /// Whose permissions suffice. Any `holders_max + 1` quorums must share a node, and any two
    /// where units have names; nothing here checks it.
    pub quorums: Quorums,
    /// What conflicts with what.
    pub mode: Mode,
    /// Where units are counted: whether grants name their units nevertheless, with a fence for
    /// each, by one more round of messages (arbiter spec C7). [`Mode::Named`] needs no such round
    /// and no k-arbiter.
    pub naming: bool,
    /// How long a permission lasts without renewal. One of `Duration::MAX` never ends: then nothing
    /// a crash took with it ever comes back, as in the paper.
    pub lease: Lease,
    /// How long a requester lets a claim wait before it asks again, once to twice this.
    pub retry: Duration,
    /// How many more arbiters than a quorum to ask, so that slow ones delay nobody (arbiter spec
    /// C4).
    pub hedge: u32,
    /// How often a requester asks an arbiter that does not answer before it asks others as well;
    /// `None` leaves that to the failure detector.
    pub patience: Option<u32>,
    /// Whether arbiters write permissions down before they tell them. If not, they wait out one
    /// lease after a restart.
    pub durable: bool,
    /// The rule that is broken, for tests that the harness finds it.
    #[cfg(test)]
    pub(crate) mutant: Option<Mutant>,
    /// Whether requesters ask only once, as on paper: some mistakes are healed by asking again.
    #[cfg(test)]
    pub(crate) once: bool,
}

/// What conflicts with what.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mode {
    /// Arbiters count units (arbiter spec 7.3).
    Count {
        /// Most grants in force at once, whatever their size (arbiter spec R2); then an M-arbiter
        /// will do. At most `units`, which is no limit.
        holders_max: u32,
        /// How often a waiting claim may be passed by younger ones that fit (arbiter spec 7.8).
        /// Each pass costs messages; 0 is best unless claims for everything are rare among many
        /// small ones.
        backfill: u32,
    },
    /// Every unit has a name and is a lock; a claim locks a set of them at once (arbiter spec
    /// 7.11).
    Named,
}

impl Pool {
    /// A pool of `units` counted by the uniform k-arbiter of `members` nodes: oldest first, leases
    /// of ten seconds, nothing written down.
    pub fn new(units: u32, members: u32) -> Self {
        Pool {
            units,
            quorums: Quorums::uniform(members, units),
            mode: Mode::Count { holders_max: units, backfill: 0 },
            naming: false,
            lease: Lease::new(Duration::from_secs(10), 200),
            retry: Duration::from_secs(1),
            hedge: 0,
            patience: Some(3),
            durable: false,
            #[cfg(test)]
            mutant: None,
            #[cfg(test)]
            once: false,
        }
    }

    /// The same with units that have names, locked by majorities: survives any minority, for any
    /// number of units.
    pub fn named(units: u32, members: u32) -> Self {
        let quorums = Quorums::majority(members);
        Pool { quorums, mode: Mode::Named, ..Pool::new(units, members) }
    }

    /// Whether a unit of a grant is that unit everywhere: it has a name, or it is the only one.
    pub(super) fn names_units(&self) -> bool {
        self.mode == Mode::Named || self.units == 1 || self.naming
    }

    /// Whether claims pick their units once they have a quorum's permissions (arbiter spec C7). The
    /// only unit need not be picked.
    pub(super) fn picks_units(&self) -> bool {
        self.naming && self.units > 1 && self.mode != Mode::Named
    }

    /// Whether permissions end by themselves.
    pub(super) fn leases_end(&self) -> bool {
        self.lease.length() < Duration::MAX
    }
}

/// Rules that tests break one at a time; the harness must notice each. Exists in test builds of
/// this crate only. Those with a number are scenarios (arbiter spec 9).
#[cfg(test)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Mutant {
    /// Arbiter spec M1: no preemption, as in the paper's section 3.1.
    M1NoInquire,
    /// Arbiter spec M2: a permission given again is not told from the one before.
    M2NoGrantNumbers,
    /// Arbiter spec M3: one counter per node instead of one entry per claim.
    M3CounterPerNode,
    /// Arbiter spec M4: a holder yields.
    M4HolderYields,
    /// Arbiter spec M5: arbiters ask for permissions back only when a request arrives.
    M5InquireOnArrival,
    /// Arbiter spec M6: arbiters forget who yielded.
    M6ForgetYielded,
    /// Arbiter spec M7: requesters count permissions instead of keeping a set.
    M7CountGrants,
    /// Arbiter spec M8: a permission that nobody waits for is ignored.
    M8NoHeal,
    /// Arbiter spec M9: the queue is in order of arrival.
    M9ArrivalOrder,
    /// Arbiter spec M10: permissions of older claims are asked back too.
    M10VictimsMayBeOlder,
    /// Arbiter spec M11: one permission is asked back at a time. Still right, only slower.
    M11OneInquireAtATime,
    /// Arbiter spec M12: backfill without the elder rule.
    M12BackfillWithoutElders,
    /// Arbiter spec M13: backfill without a bound, nor the elder rule.
    M13BackfillWithoutBound,
    /// Arbiter spec M14: no attempt numbers.
    M14NoAttempts,
    /// Arbiter spec F-1: floors rise when permissions expire, and not when they are released.
    F1FloorOnExpiryOnly,
    /// Arbiter spec F-2: a requester raises its token without telling the arbiters.
    F2SecretToken,
    /// Arbiter spec N-1: units that somebody picked first are refused, whoever is older.
    N1RefuseWithoutPriority,
    /// Arbiter spec C7: units that a younger claim picked go to an older one before the younger
    /// gave them up.
    C7TakeUnasked,
    /// Arbiter spec C7: an arbiter in grace locks units for whoever picks them first.
    C7PickInGrace,
    /// Arbiter spec C7: what a client uses is free for a moment when its home names it in another
    /// round.
    C7LockAnew,
    /// Arbiter spec C7: what moves to other arbiters takes its permission there, and not its units.
    C7MoveWithoutNames,
    /// Arbiter spec 7.11: a claim that asks for other units forgets what it was told of the first
    /// ones, asks for others once per unit in its whole life, and hears of free units only from
    /// arbiters at which it waits.
    MoveInTheDark,
    /// Arbiter spec C10: a restarted home's earlier permissions end with its earlier requests.
    C10DropGranted,
    /// Arbiter spec C10: a claim that a home does not list is over, however new it is.
    C10DropUnlisted,
    /// Arbiter spec L-1: a holder counts its lease from when the grant arrived.
    L1CountFromReceipt,
    /// Arbiter spec L-2: an arbiter that forgot everything grants at once.
    L2NoGrace,
    /// Arbiter spec L-3: a holder trusts all clocks to run alike.
    L3IgnoreDrift,
    /// Arbiter spec L-4: an arbiter counts the wait from the first request and echoes the newest.
    L4WaitedOnResetStamp,
    /// Arbiter spec L-6: a holder whose deadline has passed goes on when a renewal is answered.
    L6ReviveDead,
    /// A restarted requester declines what its earlier boot asked for.
    DeclineForeignBoot,
    /// An arbiter in grace takes up what is shown to it without a number of its own.
    AdoptUnnumbered,
    /// A holder's home keeps all its permissions alive while it asks for another.
    RenewForTheDead,
    /// Maekawa 1985: a requester gives way only once an arbiter has told it that it will not be
    /// served now, and an arbiter tells that to those that come behind others, once.
    MaekawaFailed,
    /// Tells a permission before it is on disk.
    TellBeforePersist,
    /// An arbiter has one entry per claim: a request through another home ends what the first was
    /// given.
    OneEntryPerClaim,
    /// What a client shows through another home is that home's alone from then on.
    HandOverWhole,
    /// What a client uses rests on the quorum that let it in, however long it is used.
    RestOnOneQuorum,
    /// A client has lost its units as soon as too few arbiters remember.
    LoseWhatIsForgotten,
    /// Where permissions are counted, a holder that asks another arbiter waits for as many younger
    /// claims as have what it needs, though they may be using it.
    AskTheYoungest,
    /// A permission goes on although it is over by its home's clock, if its arbiter says so.
    ReviveWhatEnded,
    /// An arbiter in grace promises again what it took up, though nobody shows the number.
    GiveAgainInGrace,
    /// A home gives back a permission of an earlier try, although what its client uses may rest on
    /// it.
    DeclineWhatIsUsed,
    /// A holder that asks another arbiter gets what that one gave to whoever repeated its claim at
    /// another home.
    TakeFromAnother,
    /// A holder's permission ends when its home asks the same arbiter again.
    EndWhatIsAskedAgain,
    /// A client has lost its units as soon as too few arbiters remember, and its requester gives
    /// back what the others gave before that client can have heard it.
    GiveBackWhatIsLost,
    /// What can be granted is said of the largest claims, whose quorums are the smallest.
    PromiseByLargest,
    /// An arbiter that is dead is waited for, for a lease: it may know what a client made up. Our
    /// first draft.
    WaitForTheDead,
    /// An arbiter gives others what a claim of its own node had before that node can ask again. Our
    /// first draft.
    ServeBeforeItHears,
}

/// Whether a rule is broken: never, outside this crate's tests.
macro_rules! broken {
    ($seat:expr, $mutant:ident) => {{
        #[cfg(test)]
        let broken = $seat.pool.mutant == Some($crate::arbiter::pool::Mutant::$mutant);
        #[cfg(not(test))]
        let broken = {
            let _ = &$seat;
            false
        };
        broken
    }};
}
pub(super) use broken;
