//! The whole ring as one value: stations, and links between them that keep order.
//!
//! For looking at a ring from outside: replaying the specification's vectors, starting from
//! arbitrary states, measuring stabilization, exploring small rings. Chance and time come from
//! whoever drives it. A pool's seats do not know it.

use std::collections::VecDeque;

use crate::ring::machine::{Machine, Role};
use crate::ring::message::Message;
use crate::ring::station::Post;
use crate::ring::terms::Terms;
use crate::ring::tokens::{Tally, Tokens};

/// All stations of a ring, and what is on its way between them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Track<M: Machine> {
    /// What they agree on.
    pub terms: Terms,
    /// The stations; number 0 is the root.
    pub stations: Vec<M>,
    /// `links[i]` leads from station i to its right neighbour.
    pub links: Vec<VecDeque<Message<M::Tokens>>>,
}

impl<M: Machine> Track<M> {
    /// `size` stations that know nothing, and empty links.
    ///
    /// # Panics
    /// If there are no stations.
    pub fn new(terms: Terms, size: usize) -> Self {
        assert!(size > 0, "a ring has a root");
        let role = |i| if i == 0 { Role::Root { boot: 0 } } else { Role::Other };
        Track {
            terms,
            stations: (0..size).map(|i| M::new(role(i), &terms)).collect(),
            links: vec![VecDeque::new(); size],
        }
    }

    /// A ring as its root first starts it: every token made, the first traversal under way.
    pub fn started(terms: Terms, size: usize) -> Self {
        let mut track = Self::new(terms, size);
        track.step(0, |root, terms, out| root.first_start(terms, out));
        track
    }

    /// How many stations there are.
    pub fn size(&self) -> usize {
        self.stations.len()
    }

    /// One station does something. Returns whether its claim was granted by it.
    pub fn step(
        &mut self,
        station: usize,
        act: impl FnOnce(&mut M, &Terms, &mut Post<M::Tokens>),
    ) -> bool {
        let mut out = Post::default();
        act(&mut self.stations[station], &self.terms, &mut out);
        self.links[station].extend(out.right);
        out.entered
    }

    /// Whether anything is on its way to a station.
    pub fn can_deliver(&self, to: usize) -> bool {
        !self.links[self.left_of(to)].is_empty()
    }

    /// The oldest message on its way to a station arrives, if there is one. Returns whether the
    /// station's claim was granted by it.
    pub fn deliver(&mut self, to: usize) -> bool {
        let left = self.left_of(to);
        match self.links[left].pop_front() {
            Some(message) => self.step(to, |station, terms, out| station.hear(terms, message, out)),
            None => false,
        }
    }

    /// Everything on its way arrives, and what is sent meanwhile is on its way then: one hop for
    /// every message. Tells who was granted, in the order of stations.
    pub fn round(&mut self, granted: &mut dyn FnMut(usize)) {
        let arriving: Vec<usize> = self.links.iter().map(VecDeque::len).collect();
        for to in 0..self.size() {
            for _ in 0..arriving[self.left_of(to)] {
                if self.deliver(to) {
                    granted(to);
                }
            }
        }
    }

    /// All enabled local actions happen, as after a fault. Tells who was granted.
    pub fn settle(&mut self, granted: &mut dyn FnMut(usize)) {
        for station in 0..self.size() {
            if self.step(station, |machine, terms, out| machine.settle(terms, out)) {
                granted(station);
            }
        }
    }

    /// All tokens there are (ring spec 2). Units in use count as tokens where the root counts them.
    pub fn census(&self) -> <M::Tokens as Tokens>::Tally {
        let mut tally = <M::Tokens as Tokens>::Tally::default();
        for machine in &self.stations {
            tally.add(machine.station().reported(&self.terms), u32::MAX);
            machine.stored(&mut tally);
        }
        self.links.iter().flatten().for_each(|message| message.count(&mut tally));
        tally
    }

    /// How many tokens there are.
    pub fn tokens(&self) -> u64 {
        u64::from(self.census().total())
    }

    /// Units in use.
    pub fn in_use(&self) -> u64 {
        self.stations.iter().map(|machine| u64::from(machine.station().in_use())).sum()
    }

    /// Messages on their way.
    pub fn under_way(&self) -> usize {
        self.links.iter().map(VecDeque::len).sum()
    }

    /// The left neighbour.
    pub fn left_of(&self, station: usize) -> usize {
        if station == 0 { self.size() - 1 } else { station - 1 }
    }
}
