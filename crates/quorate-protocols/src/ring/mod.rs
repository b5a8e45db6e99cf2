//! `ring`: tokens go round, and the ring heals from any state whatever.
//!
//! Datta, Hadid and Villain, *A Self-Stabilizing Token-Based k-out-of-l Exclusion Algorithm*
//! (Euro-Par 2002). Each of the l units is a token; a node that has collected as many as its claim
//! asks for may use them. One node, the root, counts the tokens with every traversal, makes those
//! that are missing, and destroys all if there are too many. What the paper leaves out or gets
//! wrong is repaired as the specification says (ring spec 3 and 4).
//!
//! | message | from, to | means |
//! |---|---|---|
//! | `token` | any, right | free tokens |
//! | `controller` | any, right | delimits a traversal; its number tells it from earlier ones (`core`) |
//! | `enabled` | any, towards the root | a token that its sender has or uses (`core`) |
//! | `collect` | root round to root | takes tokens from whoever has some but not enough (`core`) |
//! | `allocate` | root round to root | hands those out, by turns (`core`) |
//! | `disable` | root round to root | destroys tokens (`core`) |
//! | `frame` | root round to root | all of that in one: the train (`train`) |
//! | `wake` | any, towards the root | somebody waits while the train is parked (`train`) |
//!
//! Two variants share their common rules ([`Station`]): `core`, with the paper's messages, for
//! study ([`crate::reference::ring`]); [`train`], for use. Both are written over [`Tokens`], once
//! as numbers ([`Count`], the paper's) and once as units with fences ([`Named`], which grants
//! need).
//!
//! **Links** must keep order and not repeat. `train` bears losses: they cost tokens, which the root
//! makes again. For `core` the loss of a report is a transient fault.
//!
//! **What it promises.** From a legitimate ring ([`Stabilizing::is_legitimate`]): capacity,
//! exclusivity, fence order, and everybody is served. From any other ring: the same, once it has
//! become legitimate, which takes about a timeout and three traversals, and the end of whatever is
//! in use then. Until that moment more units may be in use than there are: that is what
//! self-stabilization allows, and what fences are for.
//!
//! **Crashes** (`train` only; `core` waits until all its nodes are back). A node that the root
//! suspects is left out of the ring: the others go on with what they have, and the root makes what
//! the node had anew when its clients must have stopped (`leaving.rs`). A node that is restarted is
//! *blind* for one lease: the root makes no tokens meanwhile. Either way capacity is reduced, never
//! exceeded. Without the root the pool grants nothing.

mod corrupt;
mod explore;
mod facts;
mod leaving;
pub(crate) mod legitimate;
pub(crate) mod machine;
pub(crate) mod message;
mod place;
mod pool;
mod seat;
pub(crate) mod station;
pub(crate) mod terms;
mod tether;
pub(crate) mod tokens;
mod whole;

pub mod train;

use std::collections::VecDeque;
use std::fmt;

use quorate_core::{
    ClaimId, Entry, Event, EventOf, Fact, Health, Hurdle, LeaseEnd, NodeSet, Outbox, Outlook,
    Protocol, Refusal, Seat, Start, Units,
};

use message::Kinds;
use place::Place;
use seat::Watch;
use tether::Tether;

pub use corrupt::Mix;
pub use legitimate::Stabilizing;
pub use machine::{Machine, Role};
pub use message::{Frame, Message};
pub use pool::{Pool, TourError, Variant};
pub use seat::Healed;
pub use station::{Post, Station, StationClaim};
pub use terms::Terms;
pub use tether::{Epoch, Parcel};
pub use tokens::{Census, Count, Named, Tally, Tokens};

/// One node's seat in a pool whose units go round.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ring {
    /// At least one for every visit of the ring to this node, in the order of visits.
    places: Vec<Place>,
    /// Claims that have no place yet, oldest first.
    waiting: VecDeque<(ClaimId, Units)>,
    /// In a ring of one node, what it sent to itself.
    own: VecDeque<Parcel>,
    /// Whether clients of an earlier boot may still use what this one knows nothing of.
    blind: bool,
    /// Which ring it is in, and how long it may go on.
    tether: Tether,
    /// Tokens destroyed here. It decides nothing.
    destroyed: u32,
    /// At the root only, and then boxed: every other seat stays small.
    watch: Option<Box<Watch>>,
}

/// The timers of `ring`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Alarm {
    /// Root: the traversal should have come back.
    Timeout,
    /// Root: the train has stood long enough.
    Idle,
    /// The only node of a ring: what it sent to itself arrives.
    Hop,
    /// The client of this claim did not renew in time.
    LeaseEnd(ClaimId),
    /// Whatever was granted before the boot is over.
    Grace,
    /// The licence ends: the root may have left this node out.
    Fence,
    /// Root: whoever it left out has stopped.
    Quarantine,
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Alarm::Timeout => f.write_str("timeout"),
            Alarm::Idle => f.write_str("idle"),
            Alarm::Hop => f.write_str("hop"),
            Alarm::LeaseEnd(claim) => write!(f, "lease-end {claim}"),
            Alarm::Grace => f.write_str("grace"),
            Alarm::Fence => f.write_str("fence"),
            Alarm::Quarantine => f.write_str("quarantine"),
        }
    }
}

impl Protocol for Ring {
    type Pool = Pool;
    type Message = Parcel;
    type Alarm = Alarm;
    /// Nothing need survive a crash: a restarted node waits out one lease instead.
    type Durable = ();

    const NAME: &'static str = "ring";
    const KINDS: &'static [&'static str] = Kinds::KINDS;

    fn boot(seat: &Seat<'_, Self>, start: Start<()>, out: &mut Outbox<Self>) -> Self {
        Ring::begin(seat, &start, out)
    }

    fn step(&mut self, seat: &Seat<'_, Self>, event: EventOf<Self>, out: &mut Outbox<Self>) {
        self.look_at_the_clock(seat, out);
        match event {
            Event::Claim(claim) => self.on_claim(seat, &claim, out),
            Event::Release(claim) | Event::Withdraw(claim) => self.on_end(seat, claim, out),
            Event::Cancel(claim) => {
                self.on_end(seat, claim, out);
                out.refuse(claim, Refusal::Cancelled);
            }
            Event::Renew { claim, shares } => self.on_renew(seat, claim, &shares, out),
            Event::Hear { from, message } => self.on_parcel(seat, from, message, out),
            Event::Ring(Alarm::Timeout) => self.on_ring_timeout(seat, out),
            Event::Ring(Alarm::Idle) => self.on_ring_idle(seat, out),
            Event::Ring(Alarm::Hop) => self.on_ring_hop(seat, out),
            Event::Ring(Alarm::LeaseEnd(claim)) => self.on_ring_lease_end(seat, claim, out),
            Event::Ring(Alarm::Grace) => self.on_ring_grace(seat, out),
            Event::Ring(Alarm::Fence) => self.fence(seat, out),
            Event::Ring(Alarm::Quarantine) => self.on_ring_quarantine(),
            Event::Suspect(node) => self.on_opinion(seat, node, true, out),
            Event::Trust(node) => self.on_opinion(seat, node, false, out),
            Event::Charter(_) => {}
        }
    }

    fn audit(&self, seat: &Seat<'_, Self>) {
        self.check(seat);
    }

    /// No node decides for others: there are no books.
    fn ledger(&self, _show: &mut dyn FnMut(Entry)) {}

    fn health(&self, seat: &Seat<'_, Self>) -> Health {
        self.condition(seat)
    }

    fn outlook(&self, seat: &Seat<'_, Self>, away: &NodeSet) -> Outlook {
        self.prospect(seat, away)
    }

    fn facts(&self, seat: &Seat<'_, Self>, show: &mut dyn FnMut(Fact)) {
        self.show_facts(seat, show);
    }

    fn footprint(&self) -> Option<usize> {
        Some(self.bytes())
    }

    fn lease_end(alarm: &Alarm) -> LeaseEnd {
        match alarm {
            Alarm::Timeout | Alarm::Idle | Alarm::Hop | Alarm::Fence => LeaseEnd::Nothing,
            // Armed by suspicion only, which the checker does not have.
            Alarm::Quarantine => LeaseEnd::Nothing,
            Alarm::LeaseEnd(claim) => LeaseEnd::Of(*claim),
            Alarm::Grace => LeaseEnd::Earlier,
        }
    }

    fn kind(message: &Self::Message) -> usize {
        message.message.kind()
    }

    fn capacity(pool: &Pool) -> u32 {
        pool.terms().units
    }

    fn overtakes_max(_pool: &Pool) -> Option<u32> {
        None
    }

    fn can_lose(pool: &Pool, dead: &NodeSet) -> bool {
        dead.iter().all(|node| pool.can_skip(node))
    }

    fn grants(pool: &Pool, away: &NodeSet) -> Outlook {
        let needed: NodeSet = away.iter().filter(|node| !pool.can_skip(*node)).collect();
        match needed.is_empty() {
            true => Outlook::all(pool.terms().units),
            false => Outlook::nothing(Hurdle::Away(needed)),
        }
    }
}

impl Ring {
    /// Bytes that this seat takes, with what it points to.
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.places.iter().map(Place::bytes).sum::<usize>()
            + (self.places.capacity() - self.places.len()) * size_of::<Place>()
            + self.waiting.capacity() * size_of::<(ClaimId, Units)>()
            + self.own.capacity() * size_of::<Parcel>()
            + self.watch.as_ref().map_or(0, |_| size_of::<Watch>())
    }
}

#[cfg(test)]
mod tests;
