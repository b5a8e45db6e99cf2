//! A participant that does as it is told, and writes down what happens to it.
//!
//! The tests of this crate's world use it: a claim for h units makes it do the h-th thing of a list
//! in its pool.

use std::fmt;
use std::time::Duration;

use quorate_core::{
    Entry, Event, EventOf, Fence, Moment, NodeId, NodeSet, Outbox, Protocol, Seat, Share, Shares,
    Start, Unit,
};

/// Lists of things to do; the first is done at boot, a claim for h units does the h-th after it.
pub(crate) type Todo = Vec<Vec<Deed>>;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Deed {
    Persist(u32),
    Tell(u32, u32),
    Arm(u32, u64),
    Disarm(u32),
    Grant,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Probe {
    /// What happened, and when by the node's own clock.
    pub(crate) seen: Vec<(Moment, String)>,
    pub(crate) record: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Word(pub(crate) u32);

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Probe {
    pub(crate) fn words(&self) -> Vec<&str> {
        self.seen.iter().map(|(_, what)| what.as_str()).collect()
    }
}

impl Protocol for Probe {
    type Pool = Todo;
    type Message = Word;
    type Alarm = Word;
    type Durable = u32;

    const NAME: &'static str = "probe";
    const KINDS: &'static [&'static str] = &["word"];

    fn boot(seat: &Seat<'_, Self>, start: Start<u32>, out: &mut Outbox<Self>) -> Self {
        let mut probe = Probe::default();
        if let Start::Recovered(record) = start {
            probe.record = record;
        }
        if seat.boot == 0 {
            do_all(&seat.pool[0], out, None, seat.now);
        }
        probe
    }

    fn step(&mut self, seat: &Seat<'_, Self>, event: EventOf<Self>, out: &mut Outbox<Self>) {
        let what = event.to_string();
        self.seen.push((seat.now, what));
        if let Event::Claim(claim) = event
            && let Some(deeds) = seat.pool.get(claim.wanted.units.get() as usize)
        {
            do_all(deeds, out, Some(claim.id), seat.now);
        }
    }

    fn audit(&self, _: &Seat<'_, Self>) {}

    fn ledger(&self, _: &mut dyn FnMut(Entry)) {}

    fn kind(_: &Word) -> usize {
        0
    }

    fn capacity(_: &Todo) -> u32 {
        8
    }

    fn overtakes_max(_: &Todo) -> Option<u32> {
        None
    }

    fn can_lose(_: &Todo, _: &NodeSet) -> bool {
        false
    }
}

fn do_all(
    deeds: &[Deed],
    out: &mut Outbox<Probe>,
    claim: Option<quorate_core::ClaimId>,
    now: Moment,
) {
    for deed in deeds {
        match *deed {
            Deed::Persist(record) => out.persist(record),
            Deed::Tell(to, word) => out.tell(NodeId(to), Word(word)),
            Deed::Arm(alarm, nanos) => out.arm(Word(alarm), Duration::from_nanos(nanos)),
            Deed::Disarm(alarm) => out.disarm(Word(alarm)),
            Deed::Grant => {
                let share = Share { unit: Unit(0), fence: Fence(now.0) };
                let until = now.after(Duration::from_secs(1));
                out.grant(claim.expect("granted in answer"), Shares::new(&[share]), until);
            }
        }
    }
}
