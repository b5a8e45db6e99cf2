//! What all seats of a `table` pool agree on.

use std::time::Duration;

use crate::goods::Goods;
use crate::quorums::Quorums;
use crate::quorums::family::Need;

/// With the units of the largest pool, what fits in one frame between nodes.
const ROOM: usize = 2 << 20;

/// A pool whose table is kept by quorums.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pool {
    /// What there is, who may use it, and for how long.
    pub goods: Goods,
    /// Who must have the table. Any two quorums must share a node; nothing here checks it.
    pub quorums: Quorums,
    /// Whether a section waits until all of its quorum have the new table before it tells anybody.
    /// Without that, messages must be neither lost nor reordered, and nobody may crash.
    pub confirm: bool,
    /// How often a node asks one that does not answer before it goes on without it; `None` leaves
    /// that to the failure detector.
    pub patience: Option<u32>,
    /// How much of a message claims may take. A message carries the whole table: where it is full,
    /// further claims wait at their homes.
    pub room: usize,
    /// The rule that is broken, for tests that the harness finds it.
    #[cfg(test)]
    pub(crate) mutant: Option<Mutant>,
}

impl Pool {
    /// A pool of `units` whose table majorities of `members` nodes keep.
    pub fn new(units: u32, members: u32) -> Self {
        Pool {
            goods: Goods::new(units),
            quorums: Quorums::majority(members),
            confirm: true,
            patience: Some(3),
            room: ROOM,
            #[cfg(test)]
            mutant: None,
        }
    }

    /// What the swarm plays on so many nodes: quorums and patience by lot.
    pub fn drawn(goods: Goods, nodes: u32, draw: u64) -> Self {
        let members = nodes.min(5);
        let need = Need::coterie(members as usize, goods.units as usize);
        let pool = Pool::new(goods.units, members);
        Pool { goods, quorums: need.drawn(draw), patience: Some(2 + (draw % 2) as u32), ..pool }
    }

    /// Whether grants end by themselves.
    pub(super) fn leases_end(&self) -> bool {
        self.goods.lease.length() < Duration::MAX
    }
}

/// Rules that tests break one at a time; the harness must notice each.
#[cfg(test)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Mutant {
    /// A section stores without having locked more than the first of its quorum.
    LockOne,
    /// A member takes tables from anybody, lock or not.
    StoreUnlocked,
    /// A lock that was taken away is given again in the same round.
    SameRound,
    /// A section takes the oldest table it sees.
    TakeOldest,
    /// A member that forgot gives its lock at once.
    NoGrace,
    /// The same fence for every grant.
    ReuseFence,
    /// What stands has a lease like everything else.
    EndStanding,
    /// A member that lost its disk opens with an empty table. Our first draft.
    OpenEmpty,
    /// A section that grants nothing forgets which fences those that forgot may have known. Our
    /// first draft.
    ForgetFloor,
    /// A section that needs all of its quorum asks them in any order.
    Unordered,
    /// A holder's home relies on the answer of a single member.
    TellEarly,
    /// A member does nothing about holders that do not renew.
    NeverReclaim,
    /// Nobody repeats anything.
    NeverRetry,
    /// A claim that is over takes along how often older ones were passed with it. Our first draft.
    ForgetPassed,
    /// Any units will do for any claim.
    IgnoreLines,
    /// Claims of homes that seem dead are granted in their turn. Our first draft.
    ServeTheDead,
    /// A claim that was out of its turn stays so when its home asks for it.
    StayAway,
    /// A home gives back on its own account what another has asked for too. Our first draft.
    EndShared,
    /// A home that gives up a claim that waits gives it up for all that asked for it. Our first
    /// draft.
    GiveUpForAll,
    /// A client is told of what is left of a lease, however little. Our first draft.
    TellWhatIsLeft,
    /// A node that was started again leaves what its earlier lives asked for in its turn until its
    /// clients want something. Our first draft.
    LeaveEarlierLives,
    /// A section asks a member that seems dead, if its turn comes later. Our first draft.
    AskTheDead,
}

/// Whether a rule is broken: never, outside this crate's tests.
macro_rules! broken {
    ($seat:expr, $mutant:ident) => {{
        #[cfg(test)]
        let broken = $seat.pool.mutant == Some($crate::table::pool::Mutant::$mutant);
        #[cfg(not(test))]
        let broken = {
            let _ = &$seat;
            false
        };
        broken
    }};
}
pub(super) use broken;
