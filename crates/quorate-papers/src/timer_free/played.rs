//! The algorithm as it is printed, with one error at a time, behind the contract: to be played with
//! by hand (`quorate-lab play`). It is the model of [`super::model`], for three processes, and
//! nothing that a pool of a node or a swarm of seeds can be made of.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;

use quorate_core::{
    ClaimId, Entry, Event, EventOf, Fact, Fence, LeaseEnd, Moment, NodeId, NodeSet, Outbox,
    Protocol, Refusal, Seat, Share, Shares, Start, Unit,
};

use super::every::{Until, World};
use super::model::{self, Phase, Process, Terms};

/// How many processes there are.
const N: usize = 3;
/// And units.
const UNITS: u32 = 2;

/// What is printed, and wrong, and breaks capacity although nobody crashes and nothing is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misprint {
    /// Footnote 1: of two equal clocks neither goes first (broadcast spec E1).
    TieBreak,
    /// Lines 33 to 41: replies are not matched with what they answer (broadcast spec E3).
    Unmatched,
    /// Section 4.1: permission unless inside *and* ahead (broadcast spec E17).
    Either,
    /// Section 4.1: replies are counted, whatever they say (broadcast spec E18).
    CountReplies,
}

impl Misprint {
    /// All of them.
    pub const ALL: [Misprint; 4] =
        [Misprint::Either, Misprint::CountReplies, Misprint::TieBreak, Misprint::Unmatched];

    fn terms(self) -> Terms {
        let printed = match self {
            Misprint::TieBreak => model::Printed::TieBreak,
            Misprint::Unmatched => model::Printed::Unmatched,
            Misprint::Either => model::Printed::Either,
            Misprint::CountReplies => model::Printed::CountReplies,
        };
        // Where no crash is looked for, nothing rests on who answers in time.
        Terms::new(UNITS, 0).with(printed)
    }

    /// Fewest steps to one inside too many, found by looking at every history in which each
    /// process asks so often at most: a request, a message that arrives, and leaving are a step
    /// each.
    pub fn shortest(self, requests: [u8; 3]) -> Option<usize> {
        // Messages arrive in any order, and nobody has to be heard in time.
        let (until, heard_by) = (Until::TooMany, [0; N]);
        let world = World::new(self.terms(), requests);
        let world = World { until, heard_by, ordered: false, ..world };
        world.explore().too_many.map(|story| story.len())
    }
}

/// A process of the printed algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Printed {
    process: Process<N>,
    /// Claims of its clients, the one that is served first.
    claims: VecDeque<ClaimId>,
}

/// What such processes tell each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Said(model::Message);

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            model::Message::Request { clock, .. } => write!(f, "REQUEST @{clock}"),
            model::Message::Reply { clock, permits: true, .. } => write!(f, "PERM @{clock}"),
            model::Message::Reply { clock, .. } => write!(f, "NOPERM @{clock}"),
        }
    }
}

impl Printed {
    fn tell(said: Vec<(usize, model::Message)>, out: &mut Outbox<Self>) {
        for (to, message) in said {
            out.tell(NodeId::from(to), Said(message));
        }
    }

    /// Asks for the oldest client, if nobody is asked for.
    fn ask(&mut self, seat: &Seat<'_, Self>, out: &mut Outbox<Self>) {
        if self.process.phase == Phase::Idle && !self.claims.is_empty() {
            let mut said = Vec::new();
            let seen = self.process.request(seat.pool.terms(), seat.me.index(), &mut said);
            Self::tell(said, out);
            self.enter(seen.entered.is_some(), out);
        }
    }

    fn enter(&self, entered: bool, out: &mut Outbox<Self>) {
        if let Some(claim) = self.claims.front().filter(|_| entered) {
            let share = Share { unit: Unit(0), fence: Fence::default() };
            out.grant(*claim, Shares::new(&[share]), Moment::NEVER);
        }
    }

    fn leave(&mut self, seat: &Seat<'_, Self>, claim: ClaimId, out: &mut Outbox<Self>) {
        if self.claims.front() == Some(&claim) {
            let mut said = Vec::new();
            self.process.leave(seat.pool.terms(), &mut said);
            Self::tell(said, out);
        }
        self.claims.retain(|other| *other != claim);
        self.ask(seat, out);
    }
}

impl Protocol for Printed {
    type Pool = Misprint;
    type Message = Said;
    type Alarm = Infallible;
    type Durable = ();

    const NAME: &'static str = "broadcast, as printed";
    const KINDS: &'static [&'static str] = &["PERM", "REQUEST", "NOPERM"];

    fn boot(_: &Seat<'_, Self>, _: Start<()>, _: &mut Outbox<Self>) -> Self {
        Printed { process: Process::new(), claims: VecDeque::new() }
    }

    fn step(&mut self, seat: &Seat<'_, Self>, event: EventOf<Self>, out: &mut Outbox<Self>) {
        match event {
            Event::Claim(claim) if self.claims.contains(&claim.id) => {}
            Event::Claim(claim) => {
                self.claims.push_back(claim.id);
                self.ask(seat, out);
            }
            Event::Release(claim) | Event::Withdraw(claim) => self.leave(seat, claim, out),
            Event::Cancel(claim) => {
                self.leave(seat, claim, out);
                out.refuse(claim, Refusal::Cancelled);
            }
            Event::Renew { claim, .. } => {
                if !self.claims.contains(&claim) {
                    out.lose(claim);
                }
            }
            Event::Hear { from, message } => {
                let (terms, mut said) = (seat.pool.terms(), Vec::new());
                let me = seat.me.index();
                let seen = self.process.hear(terms, me, from.index(), message.0, &mut said);
                Self::tell(said, out);
                self.enter(seen.entered.is_some(), out);
            }
            Event::Ring(never) => match never {},
            Event::Suspect(_) | Event::Trust(_) | Event::Charter(_) => {}
        }
    }

    fn audit(&self, _: &Seat<'_, Self>) {}

    fn ledger(&self, _: &mut dyn FnMut(Entry)) {}

    fn facts(&self, seat: &Seat<'_, Self>, show: &mut dyn FnMut(Fact)) {
        for other in (0..N).filter(|other| *other != seat.me.index()) {
            let about = NodeId::from(other);
            show(Fact::gauge("answered", self.process.have >> other & 1).about(about));
        }
        show(Fact::gauge("clock", self.process.clock));
        show(Fact::gauge("asked_at", self.process.last));
    }

    fn lease_end(alarm: &Infallible) -> LeaseEnd {
        match *alarm {}
    }

    fn kind(message: &Said) -> usize {
        match message.0 {
            model::Message::Reply { permits: true, .. } => 0,
            model::Message::Request { .. } => 1,
            model::Message::Reply { .. } => 2,
        }
    }

    fn capacity(_: &Misprint) -> u32 {
        UNITS
    }

    fn overtakes_max(_: &Misprint) -> Option<u32> {
        None
    }

    fn names_units(_: &Misprint) -> bool {
        false
    }

    fn can_lose(_: &Misprint, dead: &NodeSet) -> bool {
        dead.is_empty()
    }
}
