//! A seat: the driver of one protocol value. One event in, a list of effects out.
//!
//! This is the contract of quorate-core as far as one pool is concerned. Everything that is
//! particular to a protocol ends here: messages and records leave as bytes, alarms as numbers, and
//! the engine, which owns all seats, performs the effects in order ([`crate::engine`]).
//!
//! A protocol that finds a contradiction in itself panics. The panic stops this seat for good: it
//! promises nothing more, and its clients are told. Other pools go on.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use quorate_core::{
    Charter, ClaimId, Effect, Entry, Event, Fact, Health, LeaseEnd, Moment, NodeId, NodeSet, Order,
    Outbox, Outlook, Protocol, Relabelled, Seat, Shortage, Start, Unit,
};
use quorate_wire::survey::Labelled;
use quorate_wire::{DecodeError, Delivery, Wire, frame};

/// What happens to a seat: a message comes as bytes, and which alarm rings the seat knows itself.
pub(crate) type SeatEvent<'a> = Event<&'a [u8], FirstDue>;

/// Of the alarms that are due, if any is, the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FirstDue;

/// What a seat wants done: its messages and records are bytes, and its alarms it keeps to itself.
pub(crate) type SeatEffect = Effect<Parcel, Infallible, Vec<u8>>;

/// A message for a peer's seat in the same pool.
#[derive(Debug)]
pub(crate) struct Parcel {
    /// Which of the protocol's kinds it is, for counting.
    pub(crate) kind: usize,
    pub(crate) delivery: Delivery,
    /// The pool's name and the message, as the peer reads them.
    pub(crate) packed: Box<[u8]>,
}

/// Why a seat did nothing with what happened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SeatError {
    /// The bytes are no message. The seat is unchanged.
    #[error("{0}")]
    Undecodable(#[from] DecodeError),
    /// The seat found a contradiction in itself, now or earlier, and has stopped.
    #[error("{0}")]
    Stopped(String),
}

/// Where a seat is, and how it comes to life.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The pool.
    pub(crate) name: Arc<str>,
    /// The node.
    pub(crate) me: NodeId,
    /// Its boot number.
    pub(crate) boot: u32,
    /// When the node started: a seat that is made on demand boots as of then.
    pub(crate) since: Moment,
    /// Least time for which promises of an earlier life are respected.
    pub(crate) grace: Duration,
}

/// How a seat comes to life, with the record still in bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// See [`Start::First`].
    First,
    /// See [`Start::Recovered`].
    Recovered(Option<Vec<u8>>),
    /// See [`Start::Amnesia`].
    Amnesia,
}

/// A pool that changes while it runs.
pub(crate) struct Amended {
    /// What it is now, as [`Protocol::Pool`].
    pub(crate) pool: Box<dyn Any>,
    /// How often it was changed.
    pub(crate) edition: u32,
    /// As in [`Place`].
    pub(crate) grace: Duration,
}

/// A seat of whatever protocol.
pub(crate) trait AnySeat: Send {
    /// Consumes one event; effects are appended in order.
    fn step(
        &mut self,
        now: Moment,
        event: SeatEvent<'_>,
        effects: &mut Vec<SeatEffect>,
    ) -> Result<(), SeatError>;
    /// The pool is another from now on, after so many changes: [`quorate_core::Charter::Amended`].
    /// Where such a pool is none of this protocol, nothing was done.
    fn amend(
        &mut self,
        now: Moment,
        amended: Amended,
        effects: &mut Vec<SeatEffect>,
    ) -> Result<(), SeatError>;
    /// A fault on purpose: every variable becomes anything that it can be. Says whether the
    /// protocol can heal from that; if not, nothing was done.
    fn corrupt(
        &mut self,
        now: Moment,
        draw: &mut dyn FnMut(u64) -> u64,
        effects: &mut Vec<SeatEffect>,
    ) -> Result<bool, SeatError>;
    /// Does what an operator orders, as [`quorate_core::Obeys::obey`]. Says whether it did.
    fn obey(
        &mut self,
        now: Moment,
        order: Order,
        effects: &mut Vec<SeatEffect>,
    ) -> Result<bool, SeatError>;
    /// So many members there are from now on: later ones joined.
    fn grow(&mut self, members: usize);
    /// Shows the books, as [`Protocol::ledger`].
    fn ledger(&self, show: &mut dyn FnMut(Entry));
    /// Why a claim waits, as [`Protocol::explain`].
    fn explain(&self, now: Moment, claim: ClaimId) -> Option<Shortage>;
    /// Shows what is drained, as [`quorate_core::Obeys::drained`].
    fn drained(&self, show: &mut dyn FnMut(Unit, bool));
    /// Which units have other labels, as [`quorate_core::Obeys::relabelled`].
    fn relabelled(&self) -> Option<Labelled>;
    /// How it is, as [`Protocol::health`].
    fn health(&self, now: Moment) -> Health;
    /// Which claims it could be granted while these are away, as [`Protocol::outlook`]; nothing if
    /// it has stopped.
    fn outlook(&self, now: Moment, away: &NodeSet) -> Option<Outlook>;
    /// Shows what only the protocol knows, as [`Protocol::facts`].
    fn facts(&self, now: Moment, show: &mut dyn FnMut(Fact));
    /// When the first alarm is due.
    fn due(&self) -> Option<Moment>;
    /// The node is stopping: what is still to be written down is due now, as
    /// [`Protocol::rings_at_stop`].
    fn hurry(&mut self, now: Moment);
    /// When promises of an earlier life are over, if they may still be in force.
    fn grace_until(&self) -> Option<Moment>;
    /// The kinds of messages, for counting.
    fn kinds(&self) -> &'static [&'static str];
    /// Whether its shadow has something to answer.
    fn is_owed(&self) -> bool;
    /// Nothing has happened to it for a while: gives back room that it does not need.
    fn rest(&mut self);
}

/// A protocol that a node can run.
pub(crate) trait Runs: Wire + Sends + Send + 'static {
    /// How to scramble a participant, if the protocol heals from any state:
    /// [`quorate_core::Corruptible::corrupt`].
    const CORRUPT: Option<Corrupt<Self>> = None;

    /// Whether this alarm, which is armed, has nothing to do unless something else happens to the
    /// seat first: then it rings only when that is no longer so. Later is always allowed.
    fn dozes(&self, _alarm: &Self::Alarm) -> bool {
        false
    }

    /// Whether its shadow has something to answer; most protocols have none.
    fn is_owed(&self) -> bool {
        false
    }

    /// The bytes of a message, in such a pool...
    fn put(_: &Self::Pool, message: &Self::Message, out: &mut Vec<u8>) {
        Self::encode_message(message, out);
    }
    /// ...and the message.
    fn take(_: &Self::Pool, bytes: &[u8]) -> Result<Self::Message, DecodeError> {
        Self::decode_message(bytes)
    }

    /// Nothing happens for a while: gives back room that is not needed. It is the same afterwards.
    fn rest(&mut self) {}

    /// The pool from now on, where so many are members; most pools have those of the file.
    fn grow(_: &mut Self::Pool, _members: usize) {}
    /// See [`quorate_core::Obeys::obey`]; most protocols obey nobody.
    fn obey(&mut self, _: &Seat<'_, Self>, _: Order, _: &mut Outbox<Self>) -> bool {
        false
    }
    /// See [`quorate_core::Obeys::drained`].
    fn drained(&self, _: &mut dyn FnMut(Unit, bool)) {}
    /// See [`quorate_core::Obeys::relabelled`].
    fn relabelled(&self) -> Option<Relabelled<'_>> {
        None
    }
}

/// A fault on purpose, with chance as `draw(n)`.
pub(crate) type Corrupt<P> =
    fn(&mut P, &Seat<'_, P>, draw: &mut dyn FnMut(u64) -> u64, &mut Outbox<P>);

/// A protocol whose values may move between threads.
pub(crate) trait Sends:
    Protocol<Pool: Send, Alarm: Send, Message: Send, Durable: Send>
{
}

impl<P: Protocol<Pool: Send, Alarm: Send, Message: Send, Durable: Send>> Sends for P {}

/// A seat of one protocol.
pub(crate) struct Driver<P: Runs> {
    place: Place,
    pool: P::Pool,
    /// Nothing once the seat has stopped.
    participant: Option<P>,
    outbox: Outbox<P>,
    /// When each alarm that is armed is due...
    alarms: BTreeMap<P::Alarm, Moment>,
    /// ...and the same, the first one first. Nobody outside keeps an alarm that may be disarmed:
    /// most are, long before they are due.
    agenda: BTreeSet<(Moment, P::Alarm)>,
    /// One that is armed and dozes, and after how long it rings when it does no more.
    dozing: Option<(P::Alarm, Duration)>,
    trace: Trace<P::Alarm>,
}

impl<P: Runs> Driver<P> {
    /// Takes the seat.
    pub(crate) fn boot(
        place: Place,
        pool: P::Pool,
        origin: Origin,
        effects: &mut Vec<SeatEffect>,
    ) -> Result<Self, SeatError> {
        let start = match origin {
            Origin::First => Start::First,
            Origin::Amnesia => Start::Amnesia,
            Origin::Recovered(None) => Start::Recovered(None),
            Origin::Recovered(Some(bytes)) => {
                Start::Recovered(Some(P::decode_record(&pool, &bytes)?))
            }
        };
        let mut driver = Driver {
            place,
            pool,
            participant: None,
            outbox: Outbox::new(),
            alarms: BTreeMap::new(),
            agenda: BTreeSet::new(),
            dozing: None,
            trace: Trace::default(),
        };
        let Place { me, boot, since, .. } = driver.place;
        let seat = Seat { me, boot, now: since, pool: &driver.pool };
        let outbox = &mut driver.outbox;
        let booted = catch_unwind(AssertUnwindSafe(|| P::boot(&seat, start, outbox)));
        match booted {
            Ok(participant) => driver.participant = Some(participant),
            Err(panic) => return Err(driver.stop(&*panic)),
        }
        driver.drain(since, effects);
        Ok(driver)
    }

    /// The alarms of a step stay here; what others see leaves as bytes.
    fn drain(&mut self, now: Moment, effects: &mut Vec<SeatEffect>) {
        // The outbox keeps its room: it is put back when it is empty.
        let mut outbox = std::mem::take(&mut self.outbox);
        for effect in outbox.drain() {
            match effect {
                Effect::Arm { alarm, after } => {
                    let earlier = P::lease_end(&alarm) == LeaseEnd::Earlier;
                    // Later than asked is always allowed; the configuration may want it so.
                    let after = if earlier { after.max(self.place.grace) } else { after };
                    match self.dozes(&alarm) {
                        true => {
                            self.disarm(alarm);
                            self.dozing = Some((alarm, after));
                        }
                        false => self.arm(alarm, now.after(after)),
                    }
                }
                Effect::Disarm(alarm) => self.disarm(alarm),
                other => effects.push(other.map(
                    |message| self.pack(&message),
                    |_| unreachable!("alarms stay here"),
                    |record| {
                        let mut bytes = Vec::new();
                        P::encode_record(&record, &mut bytes);
                        bytes
                    },
                )),
            }
        }
        self.outbox = outbox;
        if let Some((alarm, after)) = self.dozing.filter(|(alarm, _)| !self.dozes(alarm)) {
            self.arm(alarm, now.after(after));
        }
    }

    fn dozes(&self, alarm: &P::Alarm) -> bool {
        self.participant.as_ref().is_some_and(|participant| participant.dozes(alarm))
    }

    fn pack(&self, message: &P::Message) -> Parcel {
        let mut packed = Vec::with_capacity(64);
        frame::pack(&self.place.name, &mut packed);
        P::put(&self.pool, message, &mut packed);
        Parcel { kind: P::kind(message), delivery: P::DELIVERY, packed: packed.into() }
    }

    fn arm(&mut self, alarm: P::Alarm, at: Moment) {
        self.disarm(alarm);
        self.alarms.insert(alarm, at);
        self.agenda.insert((at, alarm));
    }

    fn disarm(&mut self, alarm: P::Alarm) {
        if let Some(at) = self.alarms.remove(&alarm) {
            self.agenda.remove(&(at, alarm));
        }
        self.dozing = self.dozing.filter(|(other, _)| *other != alarm);
    }

    /// Takes down the first alarm that is due.
    fn take_due(&mut self, now: Moment) -> Option<P::Alarm> {
        let (_, alarm) = *self.agenda.first().filter(|(at, _)| *at <= now)?;
        self.disarm(alarm);
        Some(alarm)
    }

    /// The participant does something, and its effects leave as bytes.
    fn act(
        &mut self,
        now: Moment,
        effects: &mut Vec<SeatEffect>,
        act: impl FnOnce(&mut P, &Seat<'_, P>, &mut Outbox<P>),
    ) -> Result<(), SeatError> {
        let Some(participant) = &mut self.participant else {
            return Err(SeatError::Stopped("this seat stopped earlier".into()));
        };
        let seat = Seat { me: self.place.me, boot: self.place.boot, now, pool: &self.pool };
        let outbox = &mut self.outbox;
        // The participant is given up after a panic, so nobody sees it half changed.
        let acted = catch_unwind(AssertUnwindSafe(|| {
            act(participant, &seat, outbox);
            if cfg!(debug_assertions) {
                participant.audit(&seat);
            }
        }));
        if let Err(panic) = acted {
            return Err(self.stop(&*panic));
        }
        self.drain(now, effects);
        Ok(())
    }

    /// What the panic said, and the last things that happened before it.
    fn stop(&mut self, panic: &(dyn std::any::Any + Send)) -> SeatError {
        self.participant = None;
        let said = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("a panic without words");
        SeatError::Stopped(format!("{said}; last events: {}", self.trace.show()))
    }
}

impl<P: Runs> AnySeat for Driver<P> {
    fn step(
        &mut self,
        now: Moment,
        event: SeatEvent<'_>,
        effects: &mut Vec<SeatEffect>,
    ) -> Result<(), SeatError> {
        let event = match event {
            Event::Ring(FirstDue) => self.take_due(now).map(Event::Ring).ok_or(None),
            other => other.try_map(
                |bytes| P::take(&self.pool, bytes).map_err(|error| Some(error.into())),
                |FirstDue| Err(None),
            ),
        };
        let event = match event {
            Ok(event) => event,
            Err(None) => return Ok(()), // No alarm is due.
            Err(Some(error)) => return Err(error),
        };
        self.trace.note(&event);
        self.act(now, effects, |participant, seat, outbox| participant.step(seat, event, outbox))
    }

    fn amend(
        &mut self,
        now: Moment,
        Amended { pool, edition, grace }: Amended,
        effects: &mut Vec<SeatEffect>,
    ) -> Result<(), SeatError> {
        let Ok(pool) = pool.downcast::<P::Pool>() else { return Ok(()) };
        (self.pool, self.place.grace) = (*pool, grace);
        let event = Event::Charter(Charter::Amended { edition });
        self.trace.note(&event);
        self.act(now, effects, |participant, seat, out| participant.step(seat, event, out))
    }

    fn corrupt(
        &mut self,
        now: Moment,
        draw: &mut dyn FnMut(u64) -> u64,
        effects: &mut Vec<SeatEffect>,
    ) -> Result<bool, SeatError> {
        let Some(corrupt) = P::CORRUPT else { return Ok(false) };
        self.act(now, effects, |participant, seat, out| corrupt(participant, seat, draw, out))?;
        Ok(true)
    }

    fn obey(
        &mut self,
        now: Moment,
        order: Order,
        effects: &mut Vec<SeatEffect>,
    ) -> Result<bool, SeatError> {
        let mut obeyed = false;
        self.act(now, effects, |participant, seat, out| {
            obeyed = participant.obey(seat, order, out)
        })?;
        Ok(obeyed)
    }

    fn explain(&self, now: Moment, claim: ClaimId) -> Option<Shortage> {
        let seat = Seat { me: self.place.me, boot: self.place.boot, now, pool: &self.pool };
        self.participant.as_ref()?.explain(&seat, claim)
    }

    fn drained(&self, show: &mut dyn FnMut(Unit, bool)) {
        if let Some(participant) = &self.participant {
            participant.drained(show);
        }
    }

    fn relabelled(&self) -> Option<Labelled> {
        let changed = self.participant.as_ref()?.relabelled()?;
        Some(changed.iter().map(|(unit, labels)| (unit.0, labels.clone())).collect())
    }

    fn grow(&mut self, members: usize) {
        P::grow(&mut self.pool, members);
    }

    fn ledger(&self, show: &mut dyn FnMut(Entry)) {
        if let Some(participant) = &self.participant {
            participant.ledger(show);
        }
    }

    fn health(&self, now: Moment) -> Health {
        let seat = Seat { me: self.place.me, boot: self.place.boot, now, pool: &self.pool };
        let health = self.participant.as_ref().map(|participant| participant.health(&seat));
        health.unwrap_or_default()
    }

    fn outlook(&self, now: Moment, away: &NodeSet) -> Option<Outlook> {
        let seat = Seat { me: self.place.me, boot: self.place.boot, now, pool: &self.pool };
        self.participant.as_ref().map(|participant| participant.outlook(&seat, away))
    }

    fn facts(&self, now: Moment, show: &mut dyn FnMut(Fact)) {
        let seat = Seat { me: self.place.me, boot: self.place.boot, now, pool: &self.pool };
        if let Some(participant) = &self.participant {
            participant.facts(&seat, show);
        }
    }

    fn due(&self) -> Option<Moment> {
        self.agenda.first().map(|(at, _)| *at)
    }

    fn hurry(&mut self, now: Moment) {
        let waiting = self.alarms.keys().copied().filter(P::rings_at_stop);
        for alarm in waiting.collect::<Vec<_>>() {
            self.arm(alarm, now);
        }
    }

    fn grace_until(&self) -> Option<Moment> {
        let is_grace = |alarm: &P::Alarm| P::lease_end(alarm) == LeaseEnd::Earlier;
        let graces = self.alarms.iter().filter(|(alarm, _)| is_grace(alarm));
        graces.map(|(_, at)| *at).max()
    }

    fn kinds(&self) -> &'static [&'static str] {
        P::KINDS
    }

    fn is_owed(&self) -> bool {
        self.participant.as_ref().is_some_and(Runs::is_owed)
    }

    fn rest(&mut self) {
        if self.outbox.is_empty() {
            self.outbox = Outbox::new();
        }
        if self.alarms.is_empty() {
            (self.alarms, self.agenda) = (BTreeMap::new(), BTreeSet::new());
        }
        self.trace.events.shrink_to_fit();
        if let Some(participant) = &mut self.participant {
            participant.rest();
        }
    }
}

/// The last things that happened to a seat, for whoever finds it stopped. What clients do is kept
/// as it is and put into words when somebody wants to read it; messages are put into words at
/// once, since they may be large.
#[derive(Debug)]
struct Trace<A> {
    events: VecDeque<Event<String, A>>,
}

impl<A> Default for Trace<A> {
    fn default() -> Self {
        Trace { events: VecDeque::new() }
    }
}

const TRACE_MAX: usize = 8;

impl<A: Copy + std::fmt::Display> Trace<A> {
    fn note<M: Clone + std::fmt::Display>(&mut self, event: &Event<M, A>) {
        let full = self.events.len() >= TRACE_MAX;
        let old = self.events.pop_front_if(|_| full);
        let event = match event {
            Event::Hear { from, message } => {
                let mut said = match old {
                    Some(Event::Hear { message, .. }) => message,
                    _ => String::new(),
                };
                said.clear();
                // Writing to a string cannot fail.
                let _ = write!(said, "{message}");
                Event::Hear { from: *from, message: said }
            }
            other => other.clone().map(|_| String::new(), |alarm| alarm),
        };
        self.events.push_back(event);
    }

    fn show(&self) -> String {
        self.events.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ")
    }
}
