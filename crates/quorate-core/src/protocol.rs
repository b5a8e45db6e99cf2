//! The contract between a protocol and its drivers: one event in, a list of effects out.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use crate::{ClaimId, EventOf, Health, Hurdle, Moment, NodeId, NodeSet, Outbox, Outlook, Unit};
use crate::{Shares, Shortage, Stamp, Units};

/// One participant: a plain value that changes only inside [`Protocol::step`].
pub trait Protocol: Clone + Eq + Hash + fmt::Debug {
    /// What all seats of a pool agree on: units, options, who is special. Borrowed by every step.
    type Pool: Clone + fmt::Debug;
    /// What peers tell each other. `Display` is what traces show.
    type Message: Clone + Ord + Hash + fmt::Debug + fmt::Display;
    /// Named timers, at most one of each armed.
    type Alarm: Copy + Ord + Hash + fmt::Debug + fmt::Display;
    /// What a crash must not erase.
    type Durable: Clone + Eq + Hash + fmt::Debug;

    /// The protocol's name, as on the command line.
    const NAME: &'static str;
    /// The kinds of message there are, in the order of [`Protocol::kind`].
    const KINDS: &'static [&'static str];

    /// Takes its seat.
    fn boot(seat: &Seat<'_, Self>, start: Start<Self::Durable>, out: &mut Outbox<Self>) -> Self;

    /// Consumes one event. Whatever should happen in the world goes to `out`, in order.
    fn step(&mut self, seat: &Seat<'_, Self>, event: EventOf<Self>, out: &mut Outbox<Self>);

    /// Panics if this participant, seen alone, contradicts itself. May be slow.
    fn audit(&self, seat: &Seat<'_, Self>);

    /// Shows what this participant, as an arbiter, has queued and promised: the public books that
    /// laws about queues read. A participant that decides nothing shows nothing.
    fn ledger(&self, show: &mut dyn FnMut(Entry));

    /// How this participant is: drivers decide by it whether a node is ready, whose books count and
    /// how many units there are to be had.
    fn health(&self, _seat: &Seat<'_, Self>) -> Health {
        Health::default()
    }

    /// Which claims this participant could be granted for its clients, with what it knows, if the
    /// driver believes that these are away: the one answer that readiness, `status`, `why` and
    /// metrics share. What it says can be granted is granted once holders leave room, unless
    /// something changes that nobody here knows of yet; what it says cannot be granted is not.
    fn outlook(&self, seat: &Seat<'_, Self>, away: &NodeSet) -> Outlook {
        let idle = self.health(seat).in_grace;
        let grace: NodeSet = idle.then_some(seat.me).into_iter().collect();
        Outlook::of(|away| Self::grants(seat.pool, away), away, &grace)
    }

    /// Shows what this participant can tell people about itself that the contract has no word for:
    /// whom it suspects, how many tokens it made, which quorum it uses. Drivers print, count and
    /// draw these; no law and no protocol depends on them.
    fn facts(&self, _seat: &Seat<'_, Self>, _show: &mut dyn FnMut(Fact)) {}

    /// Why a claim that this participant has queued waits, if it can tell which units are short.
    fn explain(&self, _seat: &Seat<'_, Self>, _claim: ClaimId) -> Option<Shortage> {
        None
    }

    /// Bytes that this participant takes, with whatever it points to, if it counts them: for
    /// protocols that promise to stay small.
    fn footprint(&self) -> Option<usize> {
        None
    }

    /// Which leases are over when this alarm rings.
    fn lease_end(alarm: &Self::Alarm) -> LeaseEnd;

    /// What the messages are for that are sent when this alarm rings, for counting.
    fn purpose(alarm: &Self::Alarm) -> Purpose {
        match Self::lease_end(alarm) {
            LeaseEnd::Nothing => Purpose::Protocol,
            _ => Purpose::Lease,
        }
    }

    /// Whether a driver that stops in good order rings this alarm first, if it is armed. It is one
    /// whose only work is to write down what may be lost: nobody was promised that it is on disk,
    /// and the next life is better off with it.
    fn rings_at_stop(_alarm: &Self::Alarm) -> bool {
        false
    }

    /// Which of [`Protocol::KINDS`] a message is, for counting.
    fn kind(message: &Self::Message) -> usize;

    /// How many units the pool has.
    fn capacity(pool: &Self::Pool) -> u32;

    /// The units of the pool that are lent to nobody, ascending: part of its definition, where that
    /// changes while it runs.
    fn drained(_pool: &Self::Pool) -> &[Unit] {
        &[]
    }

    /// Most times a waiting claim may be overtaken, if the pool promises a bound.
    fn overtakes_max(pool: &Self::Pool) -> Option<u32>;

    /// Whether the units of a grant are the pool's own, by name. A protocol that only counts
    /// numbers a grant's units from 0 and its fences mean nothing across grants: exclusivity and
    /// fence order are then nobody's promise, capacity still is.
    fn names_units(_pool: &Self::Pool) -> bool {
        true
    }

    /// Whether claims of the pool may ask to stand ([`crate::Wanted::standing`]).
    fn stands(_pool: &Self::Pool) -> bool {
        false
    }

    /// Whether others can rely on what this participant remembers. One that lost its records may
    /// have to learn something from others before it can take part again; until then it is as good
    /// as lost ([`Protocol::can_lose`]).
    fn is_whole(&self) -> bool {
        true
    }

    /// Whether the others must still grant everything if these nodes never come back.
    fn can_lose(pool: &Self::Pool, dead: &NodeSet) -> bool;

    /// Which claims can be granted while these nodes are away: less than everything where
    /// [`Protocol::can_lose`] says so, and then perhaps something.
    fn grants(pool: &Self::Pool, away: &NodeSet) -> Outlook {
        match Self::can_lose(pool, away) {
            true => Outlook::all(Self::capacity(pool)),
            false => Outlook::nothing(Hurdle::Away(away.clone())),
        }
    }
}

/// A node's place in one pool, at the moment of one step.
pub struct Seat<'a, P: Protocol> {
    /// Who we are.
    pub me: NodeId,
    /// How often this node was started before; grows, never repeats.
    pub boot: u32,
    /// The driver's monotonic reading. Used for leases and for nothing else.
    pub now: Moment,
    /// What all seats of the pool agree on.
    pub pool: &'a P::Pool,
}

/// How a participant comes to life.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Start<D> {
    /// The pool's very first boot: nobody holds anything.
    First,
    /// After a stop or a crash, with the last record persisted; `None` if it never persisted one.
    Recovered(Option<D>),
    /// After a stop or a crash, remembering nothing: it may have promised anything. Whoever lost
    /// its records starts like this until it has persisted a new one, however often it crashes
    /// before.
    Amnesia,
}

/// One line of an arbiter's books.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Whose.
    pub claim: ClaimId,
    /// How old it is.
    pub stamp: Stamp,
    /// How many units it asks for.
    pub units: Units,
    /// How it stands.
    pub standing: Standing,
    /// If it asks to stand: what is known of it for good, in a box since it is rare.
    pub kept: Option<Box<Kept>>,
}

/// What an arbiter's books say of a claim that has no lease ([`crate::Wanted::standing`]): nobody
/// else may know it any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// The text that came with it.
    pub text: Arc<str>,
    /// What it has; nothing while it waits.
    pub shares: Shares,
}

/// How a claim stands in an arbiter's books.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// In the queue.
    Waiting,
    /// Out of its turn: the node that asked for it was taken for dead since. It keeps its age, and
    /// nobody who is granted meanwhile overtakes it.
    Absent,
    /// In the queue again, after it was out of its turn so many times.
    Returned(u32),
    /// Promised by this arbiter: the units are its own as far as it can say.
    Granted,
    /// Promised in an earlier life of this arbiter, and known to it again: from its record, or
    /// because the holder renewed.
    Adopted,
}

impl Standing {
    /// Whether it has nothing yet.
    pub fn waits(self) -> bool {
        matches!(self, Standing::Waiting | Standing::Absent | Standing::Returned(_))
    }
}

/// One thing a participant tells people about itself, see [`Protocol::facts`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fact {
    /// What it is, in `snake_case`, a noun that can end the name of a metric: `tokens_created`,
    /// `suspected`.
    pub name: &'static str,
    /// The node it is about, if it is about one: a fact that is shown once per peer.
    pub about: Option<NodeId>,
    /// How much; 0 or 1 for yes and no.
    pub value: u64,
    /// Whether the value only grows during a life of the participant.
    pub grows: bool,
}

impl Fact {
    /// Something that goes up and down.
    pub fn gauge(name: &'static str, value: impl Into<u64>) -> Self {
        Fact { name, about: None, value: value.into(), grows: false }
    }

    /// Something that is counted.
    pub fn counter(name: &'static str, value: impl Into<u64>) -> Self {
        Fact { name, about: None, value: value.into(), grows: true }
    }

    /// The same, about a node.
    pub fn about(mut self, node: NodeId) -> Self {
        self.about = Some(node);
        self
    }
}

/// What a message is for, for counting. A message that answers another is for the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum Purpose {
    /// To serve a claim, or to end one.
    #[default]
    Protocol,
    /// To say again what may not have arrived.
    Retry,
    /// To keep leases, or to end them.
    Lease,
    /// To find out who is there.
    Probe,
}

impl Purpose {
    /// All of them.
    pub const ALL: [Purpose; 4] =
        [Purpose::Protocol, Purpose::Retry, Purpose::Lease, Purpose::Probe];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Protocol => "protocol",
            Purpose::Retry => "retry",
            Purpose::Lease => "lease",
            Purpose::Probe => "probe",
        }
    }
}

/// What the ringing of an alarm says about leases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaseEnd {
    /// Nothing: the alarm may ring at any moment.
    Nothing,
    /// The holder of this claim has passed its own deadline.
    Of(ClaimId),
    /// Whoever was promised anything before this participant booted, and has not renewed with it
    /// since, has passed its own deadline.
    Earlier,
    /// Whoever was promised anything before the alarm was armed, and nothing since, has passed its
    /// own deadline. Nobody waits for that: this participant only knows it then.
    Promises,
    /// No lease, but every licence ([`crate::Charter::Licensed`]) that anybody asked for before the
    /// alarm was armed.
    Licences,
}
