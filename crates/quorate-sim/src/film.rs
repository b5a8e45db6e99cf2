//! A run on film: everything a replay needs to draw it, and no more than fits on a page.
//!
//! A frame is a line of the trace with what changed in that moment. Messages on their way are
//! flights of their own, since they begin in one frame and end in another.

use std::collections::BTreeMap;

use quorate_core::{ClaimId, Fact, NodeId, Shares};

use crate::queue::Ticket;

/// A recorded run.
#[derive(Debug, Default)]
pub struct Film {
    /// What happened, in order.
    pub frames: Vec<Frame>,
    /// Every message that was sent, in order.
    pub flights: Vec<Flight>,
    /// Lines that found no room.
    pub left_out: u64,
    frames_max: usize,
    soon: Vec<Change>,
    in_the_air: BTreeMap<Ticket, usize>,
    health: Vec<Health>,
    cuts: Vec<u32>,
    facts: BTreeMap<NodeId, Vec<Fact>>,
}

/// One line of the trace.
#[derive(Debug)]
pub struct Frame {
    /// Steps of the run up to here, this one included ([`crate::Intervention::after`]).
    pub step: u64,
    /// True time, in nanoseconds.
    pub at: u64,
    /// A node, or `net`, `all`, `law`.
    pub who: String,
    /// The event and its effects, as in the trace; begins with `*` if it is the world's.
    pub text: String,
    /// What is different now.
    pub changes: Vec<Change>,
}

/// Something that is different.
#[derive(Debug)]
pub enum Change {
    /// A client at a node waits.
    Claimed {
        /// Its claim.
        claim: ClaimId,
        /// Its node.
        node: NodeId,
        /// How many units it wants.
        units: u32,
    },
    /// It has these units.
    Granted {
        /// Its claim.
        claim: ClaimId,
        /// Which units.
        units: Vec<u32>,
        /// And their fences.
        fences: Vec<u64>,
    },
    /// It neither waits nor holds.
    Gone {
        /// Its claim.
        claim: ClaimId,
    },
    /// A node runs, stands still or is down; one that is down shows no facts.
    Node {
        /// Which.
        node: NodeId,
        /// How it is.
        health: Health,
    },
    /// Nothing passes from the first to the second of these pairs; replaces what was cut before.
    Cut(Vec<(NodeId, NodeId)>),
    /// A node shows a fact with another value than before.
    Fact {
        /// Who shows it.
        node: NodeId,
        /// What it shows.
        fact: Fact,
    },
}

/// How a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Health {
    /// It runs.
    Up,
    /// It does nothing, and does not know it.
    Paused,
    /// It has crashed.
    Down,
}

/// A message on its way.
#[derive(Debug)]
pub struct Flight {
    /// Who sent it.
    pub from: NodeId,
    /// To whom.
    pub to: NodeId,
    /// When.
    pub sent: u64,
    /// When it arrives, or is lost.
    pub ends: u64,
    /// Whether it never arrives.
    pub lost: bool,
    /// Which kind of message, see [`quorate_core::Protocol::KINDS`].
    pub kind: usize,
    /// What it says.
    pub text: String,
    /// How whoever interferes calls it ([`crate::Act::Drop`]); none if it was lost at once.
    pub number: Option<u64>,
}

impl Film {
    /// An empty film with room for so many frames.
    pub fn new(frames_max: usize) -> Self {
        Film { frames_max, ..Film::default() }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.left_out == 0
    }

    pub(crate) fn frame(&mut self, (step, at): (u64, u64), who: String, text: String) {
        if self.frames.len() >= self.frames_max {
            self.left_out += 1;
            return;
        }
        let changes = std::mem::take(&mut self.soon);
        self.frames.push(Frame { step, at, who, text, changes });
    }

    /// Something will be different with the next frame.
    pub(crate) fn soon(&mut self, change: Change) {
        if self.has_room() {
            self.soon.push(change);
        }
    }

    /// Something is different since the last frame.
    pub(crate) fn change(&mut self, change: Change) {
        if let Some(frame) = self.frames.last_mut().filter(|_| self.left_out == 0) {
            frame.changes.push(change);
        }
    }

    pub(crate) fn granted(&mut self, claim: ClaimId, shares: &Shares) {
        let units = shares.iter().map(|share| share.unit.0).collect();
        let fences = shares.iter().map(|share| share.fence.0).collect();
        self.change(Change::Granted { claim, units, fences });
    }

    /// A message leaves; without a ticket it arrives nowhere.
    pub(crate) fn send(&mut self, flight: Flight, ticket: Option<Ticket>) {
        if self.has_room() {
            if let Some(ticket) = ticket {
                self.in_the_air.insert(ticket, self.flights.len());
            }
            self.flights.push(flight);
        }
    }

    /// A message arrives, or is dropped at the door.
    pub(crate) fn land(&mut self, ticket: Ticket, at: u64, lost: bool) {
        if let Some(index) = self.in_the_air.remove(&ticket) {
            let flight = &mut self.flights[index];
            (flight.ends, flight.lost) = (at, lost);
        }
    }

    /// A message on its way will never arrive; of its way a little more is drawn.
    pub(crate) fn lose(&mut self, ticket: Ticket, now: u64) {
        if let Some(index) = self.in_the_air.remove(&ticket) {
            let flight = &mut self.flights[index];
            (flight.ends, flight.lost) = (flight.ends.min(now + 500_000), true);
        }
    }

    /// Looks at everybody's health.
    pub(crate) fn look(&mut self, nodes: impl Iterator<Item = Health>) {
        for (index, health) in nodes.enumerate() {
            if self.health.len() <= index {
                self.health.push(Health::Up);
            }
            if std::mem::replace(&mut self.health[index], health) != health {
                self.change(Change::Node { node: NodeId::from(index), health });
                if health == Health::Down {
                    self.facts.remove(&NodeId::from(index));
                }
            }
        }
    }

    /// Looks at the links, if the cuts have other names than before.
    pub(crate) fn look_at_links(
        &mut self,
        cuts: impl Iterator<Item = u32>,
        pairs: impl FnOnce() -> Vec<(NodeId, NodeId)>,
    ) {
        let cuts: Vec<u32> = cuts.collect();
        if cuts != self.cuts {
            self.cuts = cuts;
            self.change(Change::Cut(pairs()));
        }
    }

    /// Compares a node's facts with those it showed before; one that is no longer shown is 0.
    pub(crate) fn facts(&mut self, node: NodeId, facts: Vec<Fact>) {
        let before = self.facts.insert(node, facts.clone()).unwrap_or_default();
        let same = |a: &Fact, b: &Fact| a.name == b.name && a.about == b.about;
        for fact in &facts {
            let old = before.iter().find(|old| same(old, fact)).map_or(0, |old| old.value);
            if old != fact.value {
                self.change(Change::Fact { node, fact: *fact });
            }
        }
        for old in before.iter().filter(|old| old.value != 0) {
            if !facts.iter().any(|fact| same(old, fact)) {
                self.change(Change::Fact { node, fact: Fact { value: 0, ..*old } });
            }
        }
    }
}
