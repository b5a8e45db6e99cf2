//! One local client's claim: whom it asks, and what it was given so far.

use std::collections::BTreeMap;

use quorate_core::{ClaimId, Fence, Moment, NodeId, NodeSet, Seat, Shares, Stamp};

use super::Arbiter;
use super::grantor::shares;
use super::message::{GrantNumber, Message, Wish};
use crate::attempt::Attempt;

/// A local client's claim.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Local {
    pub(super) wish: Wish,
    /// Its age, for life.
    pub(super) stamp: Stamp,
    /// What its quorum is drawn by.
    pub(super) draw: u64,
    /// The fence it will have, or has.
    pub(super) token: Fence,
    /// The arbiters that know of it. A set of permissions, by arbiter, and never a count (M7).
    pub(super) enlisted: BTreeMap<NodeId, Permit>,
    pub(super) phase: Phase,
    /// An arbiter said that it will not be served now.
    #[cfg(test)]
    pub(super) failed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Phase {
    /// Asked for. It will be asked for again when the retry alarm has rung `rest` times more, and
    /// the next time after `gap` times.
    Waiting { rest: u32, gap: u32 },
    /// The client was told of its grant, to last until then; `None` if that was in an earlier life
    /// of ours. It never yields what it uses, and what is over stays over (C1).
    Held { told: Option<Moment> },
    /// The client was told that it has nothing any more, and may not hear it before then. Until it
    /// gives its units back, or that moment passes, they stay taken.
    Ending { until: Moment },
}

/// How one arbiter stands to a claim.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Permit {
    /// Our try at this arbiter: one more each time it is enlisted again (M14).
    pub(super) attempt: Attempt,
    /// The fence of the claim as this arbiter knows it.
    pub(super) token: Fence,
    /// Permissions up to this one were yielded, even if they have not arrived yet (M2).
    pub(super) yielded: GrantNumber,
    pub(super) state: PermitState,
    /// The permission that was asked back and not given, by Maekawa's rule.
    #[cfg(test)]
    pub(super) inquired: Option<GrantNumber>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum PermitState {
    /// It was asked, and the retry alarm rang so often without any answer.
    Asked { rings: u32 },
    /// It gave its permission.
    Given {
        grant: GrantNumber,
        floor: Fence,
        /// Our deadline for it, before its own.
        until: Moment,
        /// The fence it was last told, if that was not in the request.
        retold: Fence,
    },
    /// A client that outlived our last boot says it has its units; the arbiter was shown that.
    Shown,
}

impl Phase {
    /// A claim that was just asked for.
    pub(super) const ASKED: Phase = Phase::Waiting { rest: 1, gap: 1 };
}

impl Local {
    /// Whether its client may be using units.
    pub(super) fn is_held(&self) -> bool {
        !matches!(self.phase, Phase::Waiting { .. })
    }

    /// What the client has, or will have.
    pub(super) fn shares(&self) -> Shares {
        shares(&self.wish, self.token)
    }

    /// Arbiters whose permission is in force now.
    pub(super) fn live(&self, seat: &Seat<'_, Arbiter>) -> NodeSet {
        self.enlisted
            .iter()
            .filter(|(_, permit)| permit.until().is_some_and(|until| until > seat.now))
            .map(|(&node, _)| node)
            .collect()
    }

    /// Arbiters that know of the claim.
    pub(super) fn enlisted(&self) -> NodeSet {
        self.enlisted.keys().copied().collect()
    }

    /// Until when some quorum's permissions last: the longest over all quorums of the shortest in
    /// each (C1).
    pub(super) fn deadline(&self, seat: &Seat<'_, Arbiter>) -> Option<Moment> {
        let mut permits: Vec<(Moment, NodeId)> = self
            .enlisted
            .iter()
            .filter_map(|(&node, permit)| Some((permit.until()?, node)))
            .collect();
        permits.sort_unstable_by(|a, b| b.cmp(a));
        let mut longest = NodeSet::new();
        permits.into_iter().find_map(|(until, node)| {
            longest.insert(node);
            seat.pool.quorums.contains_quorum(self.wish.units, &longest).then_some(until)
        })
    }

    pub(super) fn request(&self, claim: ClaimId, permit: &Permit, sent: Moment) -> Message {
        Message::Request {
            claim,
            attempt: permit.attempt,
            stamp: self.stamp,
            wish: self.wish.clone(),
            token: permit.token,
            sent,
        }
    }

    pub(super) fn renew(&self, claim: ClaimId, permit: &Permit, sent: Moment) -> Message {
        let grant = match permit.state {
            PermitState::Given { grant, .. } => Some(grant),
            PermitState::Asked { .. } | PermitState::Shown => None,
        };
        Message::Renew {
            claim,
            attempt: permit.attempt,
            grant,
            stamp: self.stamp,
            wish: self.wish.clone(),
            token: permit.token,
            sent,
        }
    }
}

impl Permit {
    /// An arbiter about to be asked.
    pub(super) fn asked(attempt: Attempt, token: Fence) -> Permit {
        let (yielded, state) = (GrantNumber::default(), PermitState::Asked { rings: 0 });
        Permit {
            attempt,
            token,
            yielded,
            state,
            #[cfg(test)]
            inquired: None,
        }
    }

    pub(super) fn until(&self) -> Option<Moment> {
        match self.state {
            PermitState::Given { until, .. } => Some(until),
            PermitState::Asked { .. } | PermitState::Shown => None,
        }
    }

    pub(super) fn is_given(&self) -> bool {
        matches!(self.state, PermitState::Given { .. })
    }
}
