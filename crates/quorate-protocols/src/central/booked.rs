//! A claim in the arbiter's books, and the homes that asked for it.

use std::time::Duration;

use quorate_core::{ClaimId, Fence, Holding, Moment, NodeId, Share, Shares, Stamp, Units, Wanted};

use super::message::Message;
use crate::allocator::Ticket;
use crate::attempt::Asker;

/// A claim in the books.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Booked {
    pub(crate) asker: Asker,
    pub(crate) stamp: Stamp,
    /// What it asks for. Its lines only if they choose by labels, and while it waits or can be
    /// moved: labels may change.
    pub(crate) wanted: Wanted,
    /// The asker's clock when it sent the request that counts, to be echoed...
    pub(crate) sent: Moment,
    /// ...and ours when that request arrived. The two belong together: adding a wait to a newer
    /// reading than the one echoed would promise too much (arbiter spec C1).
    pub(crate) arrived: Moment,
    /// Other homes, or lives of homes, that have asked for it, the last to ask last. Of what was
    /// granted each may have told a client, and none can give it back for the others. While it
    /// waits, each is where its client may be: whoever gives it up leaves it to the others, in its
    /// place.
    pub(crate) others: Vec<Asking>,
    pub(crate) state: State,
}

/// A home's last try, with the two clock readings that belong to it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Asking {
    pub(crate) asker: Asker,
    pub(crate) sent: Moment,
    pub(crate) arrived: Moment,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum State {
    Waiting,
    /// It waits, and is not in the queue: its node was taken for dead, and has not asked for it
    /// since.
    Absent,
    Granted {
        held: Holding,
        waited: Duration,
        adopted: bool,
    },
}

impl State {
    /// The newest fence of what its home was granted, moves aside: of those it may not know yet.
    pub(super) fn newest(&self) -> Option<Fence> {
        let State::Granted { held, .. } = self else { return None };
        held.before_moves().newest()
    }
}

impl Booked {
    /// Whether the home that asked last may give it back on its own account, without a client's
    /// word. What an earlier life of this arbiter granted it may have granted to several.
    pub(super) fn is_its_own(&self) -> bool {
        let by_several = !self.others.is_empty();
        !matches!(self.state, State::Granted { adopted, .. } if adopted || by_several)
    }

    /// A home asks in a new try, and is answered from now on.
    pub(super) fn asked_by(&mut self, next: Asking) {
        let life = |asker: Asker| (asker.node, asker.attempt.boot);
        let Booked { asker, sent, arrived, .. } = *self;
        self.others.retain(|other| life(other.asker) != life(next.asker));
        if life(asker) != life(next.asker) {
            self.others.push(Asking { asker, sent, arrived });
        }
        Asking { asker: self.asker, sent: self.sent, arrived: self.arrived } = next;
    }

    /// A home gives up a claim that waits. Says whether nobody else asks for it.
    pub(super) fn given_up_by(&mut self, asker: Asker) -> bool {
        if self.asker != asker {
            self.others.retain(|other| other.asker != asker);
            return false;
        }
        if self.state == State::Waiting
            && let Some(other) = self.others.pop()
        {
            Asking { asker: self.asker, sent: self.sent, arrived: self.arrived } = other;
            return false;
        }
        // Out of its turn, it is back as soon as another asks again.
        self.others.is_empty()
    }

    /// The claim as the allocator knows it. Its age is the arbiter's clock when it came.
    pub(crate) fn ticket(&self, claim: ClaimId) -> Ticket {
        Ticket { age: self.stamp.clock, claim }
    }

    /// What its asker is told of its grant.
    #[inline]
    pub(super) fn answer(&self, claim: ClaimId) -> (NodeId, Message) {
        let State::Granted { held, waited, .. } = &self.state else {
            unreachable!("only grants are told");
        };
        let (shares, waited, sent) = (held.before_moves(), *waited, self.sent);
        let Asker { node, attempt } = self.asker;
        (node, Message::Grant { claim, attempt, shares, sent, waited })
    }

    /// A new promise, counted from here, if these are the units it has: returns what it left.
    /// `None` if they are not.
    pub(super) fn renew(
        &mut self,
        asker: Asker,
        theirs: &Shares,
        sent: Moment,
        now: Moment,
    ) -> Option<Vec<Share>> {
        let State::Granted { held, waited, adopted } = &mut self.state else { return None };
        let left = match held.shown(theirs) {
            Some(left) => left,
            // It answers a move of which an earlier life asked it, and which nobody wrote down.
            None if *adopted
                && held.moves.is_empty()
                && theirs.iter().all(|share| held.shares.contains(*share)) =>
            {
                let left = held.shares.iter().filter(|share| !theirs.contains(**share));
                let left = left.copied().collect();
                let units = &mut self.wanted.units;
                *units = Units::new(theirs.len() as u32, units.get()).ok()?;
                held.shares = theirs.clone();
                left
            }
            None => return None,
        };
        (self.asker, self.sent, self.arrived, *waited) = (asker, sent, now, Duration::ZERO);
        Some(left)
    }
}
