//! One local client's claim: whom it asks, and what it was given so far.

use std::collections::BTreeMap;
use std::sync::Arc;

use quorate_core::{ClaimId, Fence, Moment, NodeId, NodeSet, Shares, Stamp, Unit, Wanted};

use super::Seat;
use super::booked::shares;
use super::message::{GrantNumber, Message, Pick, Wish};
use super::pool::broken;
use crate::attempt::Attempt;
use crate::home;
use crate::quorums::asking;

/// A local client's claim.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Local {
    /// What its client asked for...
    pub(super) wanted: Wanted,
    /// ...and what arbiters are asked for.
    pub(super) wish: Wish,
    /// Its age, for life.
    pub(super) stamp: Stamp,
    /// What its quorum is drawn by.
    pub(super) draw: u64,
    /// The fence it will have, or has.
    pub(super) token: Fence,
    /// The arbiters that know of it. A set of permissions, by arbiter, and never a count (arbiter
    /// spec M7).
    pub(super) enlisted: BTreeMap<NodeId, Permit>,
    pub(super) phase: Phase,
    /// How often other units were chosen since it was last asked for again, where units are locks.
    pub(super) moves: u32,
    /// The units it picked, where permissions only count and grants name units.
    pub(super) pick: Option<Pick>,
    /// Units that it cannot have, as arbiters said last.
    pub(super) taken: BTreeMap<NodeId, Arc<[Unit]>>,
    /// Since when it is shown here by a client that another home, or an earlier life of this one,
    /// let in.
    pub(super) shown: Option<Moment>,
    /// Arbiters forgot what they gave it, and too few are left: its client goes on until its
    /// deadline, and others are asked until then.
    pub(super) lacks: bool,
    /// An arbiter said that it will not be served now.
    #[cfg(test)]
    pub(super) failed: bool,
}

pub(super) type Phase = home::Phase<Polls>;

/// When a claim that waits is asked for again: when the retry alarm has rung `rest` times more, and
/// the next time after `gap` times.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Polls {
    pub(super) rest: u32,
    pub(super) gap: u32,
}

/// How one arbiter stands to a claim.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Permit {
    /// Our try at this arbiter: one more each time it is enlisted again (arbiter spec M14).
    pub(super) attempt: Attempt,
    /// The fence of the claim as this arbiter knows it.
    pub(super) token: Fence,
    /// Permissions up to this one were yielded, even if they have not arrived yet (arbiter spec
    /// M2).
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
        /// The pick it was last told, and the one that it has locked; 0 is none.
        told: u64,
        named: u64,
        /// It was asked to say when a unit becomes free that others have.
        watched: bool,
    },
    /// A client that outlived our last boot says it has its units; the arbiter was shown that.
    Shown,
}

impl Polls {
    /// Of a claim that was just asked for.
    pub(super) const FIRST: Polls = Polls { rest: 1, gap: 1 };
}

impl Local {
    /// Whether its client may be using units.
    pub(super) fn is_held(&self) -> bool {
        self.phase.is_held()
    }

    /// Whether a client shows that it uses units, and too few arbiters have said that they know it.
    pub(super) fn is_unconfirmed(&self) -> bool {
        matches!(self.phase, Phase::Held { told: None })
    }

    /// What the client has, or will have.
    pub(super) fn shares(&self) -> Shares {
        let names = self.wish.names.as_ref().or(self.pick.as_ref().map(|pick| &pick.names));
        shares(names.map(|names| &names[..]), self.wish.units, self.token)
    }

    /// Arbiters that gave their permission.
    pub(super) fn given(&self) -> NodeSet {
        let given = self.enlisted.iter().filter(|(_, permit)| permit.is_given());
        given.map(|(&node, _)| node).collect()
    }

    /// Arbiters on whose permission what the client uses may rest: those that gave it to us; and
    /// until enough of them have said so, all that may have given it to another home.
    pub(super) fn counted_on(&self) -> NodeSet {
        let told = !matches!(self.phase, Phase::Held { told: None });
        let counts =
            |permit: &Permit| permit.is_given() || (!told && permit.state == PermitState::Shown);
        let counted = self.enlisted.iter().filter(|(_, permit)| counts(permit));
        counted.map(|(&node, _)| node).collect()
    }

    /// Arbiters that gave their permission, or may say that they gave it to another home.
    pub(super) fn known_or_shown(&self) -> NodeSet {
        let may = |permit: &Permit| permit.is_given() || permit.state == PermitState::Shown;
        self.enlisted.iter().filter(|(_, permit)| may(permit)).map(|(&node, _)| node).collect()
    }

    /// Whether some arbiter may yet say that it knows what a client shows: one has, or one that is
    /// not suspected has not answered. Those that are suspected could only know it alone if they
    /// were a quorum: whoever let the client in asked others, too.
    pub(super) fn may_be_known(&self, seat: &Seat<'_>, suspects: &NodeSet) -> bool {
        let left = self.known_or_shown();
        !self.given().is_empty()
            || !left.difference(suspects).is_empty()
            || seat.pool.quorums.contains_quorum(self.wish.units, &left)
            || (broken!(seat, WaitForTheDead) && !left.is_empty())
    }

    /// Whether an arbiter's permission is one to go in with: it has locked the units too, where
    /// claims pick them.
    pub(super) fn counts(&self, permit: &Permit) -> bool {
        permit.is_given() && self.pick.as_ref().is_none_or(|pick| permit.has_locked(pick))
    }

    /// Arbiters whose permission is in force now.
    pub(super) fn live(&self, seat: &Seat<'_>) -> NodeSet {
        self.enlisted
            .iter()
            .filter(|(_, permit)| permit.until().is_some_and(|until| until > seat.now))
            .map(|(&node, _)| node)
            .collect()
    }

    /// Whether an arbiter has not given its permission and says that others have a unit of these.
    pub(super) fn is_blocked(&self, names: &[Unit]) -> bool {
        let waits = self.enlisted.iter().filter(|(_, permit)| !permit.is_given());
        let mut taken = waits.filter_map(|(node, _)| self.taken.get(node));
        taken.any(|taken| names.iter().any(|unit| taken.contains(unit)))
    }

    /// It was asked for again: answers are new, so it may move again and be told again.
    pub(super) fn look_again(&mut self) {
        self.moves = 0;
        for permit in self.enlisted.values_mut() {
            if let PermitState::Given { watched, .. } = &mut permit.state {
                *watched = false;
            }
        }
    }

    /// Arbiters that know of the claim.
    pub(super) fn enlisted(&self) -> NodeSet {
        self.enlisted.keys().copied().collect()
    }

    /// Permissions to go in with, and until when they last.
    pub(super) fn relied(&self) -> impl Iterator<Item = (Moment, NodeId)> + '_ {
        let counts = self.enlisted.iter().filter(|(_, permit)| self.counts(permit));
        counts.filter_map(|(&node, permit)| Some((permit.until()?, node)))
    }

    /// Until when some quorum's permissions last.
    pub(super) fn deadline(&self, seat: &Seat<'_>) -> Option<Moment> {
        asking::lasts_until(&seat.pool.quorums, self.wish.units, self.relied())
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
        let mut wish = self.wish.clone();
        let grant = match permit.state {
            PermitState::Given { grant, .. } => Some(grant),
            PermitState::Asked { .. } | PermitState::Shown => None,
        };
        if let (None, Some(pick)) = (grant, &self.pick) {
            wish.names = Some(Arc::clone(&pick.names));
        }
        Message::Renew {
            claim,
            attempt: permit.attempt,
            grant,
            stamp: self.stamp,
            wish,
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

    /// Whether the arbiter has locked these units for the claim.
    pub(super) fn has_locked(&self, pick: &Pick) -> bool {
        matches!(self.state, PermitState::Given { named, .. } if named == pick.round)
    }

    /// Whether the arbiter may have units locked for the claim.
    pub(super) fn has_heard_a_pick(&self) -> bool {
        matches!(self.state, PermitState::Given { told, .. } if told > 0)
    }
}
