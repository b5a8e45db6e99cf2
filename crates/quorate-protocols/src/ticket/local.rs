//! One local client's claim: whom it asks, and what they said so far.

use std::collections::BTreeMap;
use std::sync::Arc;

use quorate_core::{ClaimId, Fence, Moment, NodeId, NodeSet, Units};

use super::message::{Message, Rival, Standing};
use super::pool::broken;
use super::{Post, Seat};
use crate::attempt::Attempt;
use crate::home;
use crate::quorums::asking;

/// A local client's claim.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Local {
    pub(super) units: Units,
    pub(super) draw: u64,
    pub(super) attempt: Attempt,
    /// Its ticket, once all of its quorum have proposed one; until then what it must exceed.
    pub(super) ticket: Fence,
    pub(super) phase: Phase,
    /// Its quorum, and what each member said.
    pub(super) quorum: BTreeMap<NodeId, Said>,
    /// Since when it is shown here by a client that another home, or an earlier life of this one,
    /// let in.
    pub(super) shown: Option<Moment>,
}

pub(super) type Phase = home::Phase<Round>;

/// What a claim that waits waits for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Round {
    /// Members are asked to propose a ticket.
    Asking,
    /// It has one, and waits for older claims.
    Settled,
}

/// What a member said about a claim.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Said {
    pub(super) proposed: Option<Fence>,
    /// Whom it last knew to be older, perhaps.
    pub(super) rivals: Option<Arc<[Rival]>>,
    /// What it said before this mark is void.
    pub(super) mark: Fence,
    /// Our deadline for relying on it, before its own.
    pub(super) until: Option<Moment>,
    /// Since when it is asked to know of what is held. Nothing it said to anything earlier counts:
    /// it did not know of it then, or not any more.
    pub(super) joins: Option<Moment>,
    /// How often the retry alarm rang without any answer.
    pub(super) rings: u32,
}

impl Said {
    /// Whether it can be relied on now.
    pub(super) fn is_relied_on(&self, now: Moment) -> bool {
        self.until.is_some_and(|until| until > now)
    }
}

impl Local {
    /// Whether its client may be using units.
    pub(super) fn is_held(&self) -> bool {
        self.phase.is_held()
    }

    /// Whether members are asked to know of what is held.
    pub(super) fn joins(&self) -> bool {
        self.quorum.values().any(|said| said.joins.is_some())
    }

    /// Whether a client shows that it uses units, and too few members have said that they know it.
    pub(super) fn is_unconfirmed(&self) -> bool {
        matches!(self.phase, Phase::Held { told: None })
    }

    /// Whether members may be asked to know of what is held: its home let the client in, or some
    /// member has said that another did. A client's word alone is not enough.
    pub(super) fn may_join(&self) -> bool {
        !self.is_unconfirmed() || self.quorum.values().any(|said| said.until.is_some())
    }

    /// Whether some member may yet say that it knows what a client shows: one has, or one that is
    /// not suspected has not answered. Those that are suspected could only know it alone if they
    /// were a quorum: whoever let the client in asked others, too.
    pub(super) fn may_be_known(&self, seat: &Seat<'_>, suspects: &NodeSet) -> bool {
        let left = self.quorum.iter().filter(|(_, said)| said.joins.is_none());
        let left: NodeSet = left.map(|(&node, _)| node).collect();
        self.may_join()
            || !left.difference(suspects).is_empty()
            || seat.pool.quorums.contains_quorum(self.units, &left)
            || (broken!(seat, WaitForTheDead) && !left.is_empty())
    }

    pub(super) fn members(&self) -> NodeSet {
        self.quorum.keys().copied().collect()
    }

    /// What a member is told, who said this so far.
    pub(super) fn message(&self, seat: &Seat<'_>, claim: ClaimId, said: &Said) -> Message {
        let Local { units, attempt, ticket, .. } = *self;
        let (sent, seen) = (seat.now, said.mark);
        let standing = match self.phase {
            Phase::Waiting(Round::Asking) => {
                return Message::Register { claim, attempt, units, above: ticket, sent };
            }
            Phase::Waiting(Round::Settled) => Standing::Waiting,
            Phase::Held { .. } | Phase::Ending { .. } => match said.until {
                Some(until) if until > sent || broken!(seat, ReviveMember) => Standing::Held,
                _ if said.joins.is_some() && self.may_join() => Standing::Joins,
                _ => Standing::Shown,
            },
        };
        Message::Settle { claim, attempt, units, ticket, standing, seen, sent }
    }

    pub(super) fn tell(&self, seat: &Seat<'_>, claim: ClaimId, node: NodeId, post: &mut Post<'_>) {
        post.send(node, self.message(seat, claim, &self.quorum[&node]));
    }

    /// Asks members to know of what is held that do not yet.
    pub(super) fn tell_joined(&self, seat: &Seat<'_>, claim: ClaimId, post: &mut Post<'_>) {
        if self.may_join() {
            let joins = self.quorum.iter().filter(|(_, said)| said.joins.is_some());
            joins.for_each(|(&node, _)| self.tell(seat, claim, node, post));
        }
    }

    pub(super) fn tell_all(&self, seat: &Seat<'_>, claim: ClaimId, post: &mut Post<'_>) {
        for &node in self.quorum.keys() {
            self.tell(seat, claim, node, post);
        }
    }

    /// Those that answered, and until when they can be relied on.
    pub(super) fn relied(&self) -> impl Iterator<Item = (Moment, NodeId)> + '_ {
        self.quorum.iter().filter_map(|(&node, said)| Some((said.until?, node)))
    }

    /// Until when some quorum of those that answered can be relied on.
    pub(super) fn deadline(&self, seat: &Seat<'_>) -> Option<Moment> {
        asking::lasts_until(&seat.pool.quorums, self.units, self.relied())
    }

    pub(super) fn relies_on(&self, node: NodeId) -> bool {
        !self.is_held() && self.quorum.get(&node).is_some_and(|said| said.until.is_some())
    }

    pub(super) fn release_all(&self, claim: ClaimId, post: &mut Post<'_>) {
        for &node in self.quorum.keys() {
            self.release(claim, node, post);
        }
    }

    pub(super) fn release(&self, claim: ClaimId, node: NodeId, post: &mut Post<'_>) {
        post.send(node, Message::Release { claim, attempt: self.attempt, whole: false });
    }
}
