//! Rings without rounds: anything that can happen next may, by chance (ring spec 5.3).
//!
//! Messages, claims, releases and withdrawals come in any order; links are slow or fast as chance
//! has it. Chance comes in as `draw(n)`, any number below n.

use super::track::Track;
use crate::ring::legitimate::Stabilizing;
use crate::ring::message::Message;
use crate::ring::station::StationClaim;

/// A ring under a scheduler that knows no fairness but that of chance.
pub struct Wander<'a, M: Stabilizing> {
    /// The ring.
    pub track: Track<M>,
    /// Where chance comes from.
    pub draw: &'a mut dyn FnMut(u64) -> u64,
    /// Whether clients still ask and withdraw.
    pub asking: bool,
    /// Of a thousand times that the root's patience is tried, how often it ends without need.
    pub premature: u64,
    /// Claims granted so far.
    pub grants: u64,
}

/// What became of a ring that began anywhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wandered {
    /// It became legitimate, stayed so, and everybody was served.
    Right {
        /// After so many steps.
        after: u64,
    },
    /// It never became legitimate.
    NeverLegitimate,
    /// It was legitimate, and then not any more.
    NotClosed,
    /// Somebody was not served.
    Unserved,
}

impl<'a, M: Stabilizing> Wander<'a, M> {
    /// Steps per station within which a ring must become right, and serve everybody.
    const PATIENCE: u64 = 40_000;

    /// A ring in whatever state it is.
    pub fn new(track: Track<M>, draw: &'a mut dyn FnMut(u64) -> u64) -> Self {
        Wander { track, draw, asking: true, premature: 0, grants: 0 }
    }

    /// One thing happens.
    pub fn step(&mut self) {
        let station = (self.draw)(self.track.size() as u64) as usize;
        let need = 1 + (self.draw)(u64::from(self.track.terms.claim_max)) as u32;
        let granted = match (self.draw)(20) {
            0 if self.asking => self.track.step(station, |m, t, out| m.request(t, need, out)),
            1 if self.track.stations[station].station().in_use() > 0 => {
                self.track.step(station, M::leave)
            }
            // A withdrawal, more seldom.
            2 if self.asking && (self.draw)(4) == 0 => self.track.step(station, M::leave),
            3 => self.root(),
            4 => self.track.step(station, M::nudge),
            _ => self.track.deliver(station),
        };
        self.grants += u64::from(granted);
    }

    /// The root's alarms: early only if that was asked for.
    fn root(&mut self) -> bool {
        let launched = self.track.stations[0].has_launched();
        let traversal = |message: &_| matches!(message, Message::Controller(_) | Message::Frame(_));
        let lost = !self.track.links.iter().flatten().any(traversal);
        if launched && (lost || (self.draw)(1000) < self.premature) {
            return self.track.step(0, M::timeout);
        }
        (self.draw)(20) == 0 && self.track.step(0, M::launch)
    }

    /// Clients stop asking: whoever waits must be served, and whoever was served soon ends.
    pub fn everyone_is_served(&mut self) -> bool {
        self.asking = false;
        for _ in 0..Self::PATIENCE * self.track.size() as u64 {
            if self.track.stations.iter().all(|m| m.station().standing == StationClaim::Out) {
                return true;
            }
            self.step();
        }
        false
    }

    /// From anywhere: it must become legitimate, stay so, and serve everybody.
    pub fn to_the_end(mut self) -> Wandered {
        self.track.settle(&mut |_| {});
        let mut after = 0;
        while !M::is_legitimate(&self.track) {
            if after == Self::PATIENCE * self.track.size() as u64 {
                return Wandered::NeverLegitimate;
            }
            after += 1;
            self.step();
        }
        for _ in 0..50 * self.track.size() {
            self.step();
            if !M::is_legitimate(&self.track) {
                return Wandered::NotClosed;
            }
        }
        if self.everyone_is_served() { Wandered::Right { after } } else { Wandered::Unserved }
    }
}
