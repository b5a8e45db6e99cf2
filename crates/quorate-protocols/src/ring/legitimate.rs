//! When a ring is as it should be (Datta, Hadid, Villain 2002, section 2: self-stabilization).
//!
//! A stabilizing protocol is judged by a predicate on the whole ring, *legitimate*, with two laws:
//! **closure**, from a legitimate ring only legitimate ones follow, and **convergence**, from any
//! ring whatever a legitimate one is reached. Safety and fairness are promised from then on.
//!
//! The heart of the predicate is that the running count will come out right. At any moment, a token
//! has either been counted by the traversal under way (reported, or sent on by the root behind it),
//! or will be (its station is still to come, or it reaches the root ahead of the traversal).

use super::machine::Machine;
use super::message::Message;
use super::station::StationClaim;
use super::tokens::{Tally, Tokens};
use super::train::Train;
use crate::reference::ring::Core;
use crate::reference::ring::Track;

const ALL: u32 = u32::MAX;

/// A machine whose rings have a legitimate form.
pub trait Stabilizing: Machine {
    /// Whether the ring is as it should be.
    fn is_legitimate(track: &Track<Self>) -> bool;
    /// Whether exactly one traversal is under way or, for a train, none and it is parked.
    fn is_controlled(track: &Track<Self>) -> bool;
    /// Makes every variable anything that it can be. `draw(n)` is any number below n.
    fn scramble(&mut self, terms: &super::Terms, draw: &mut dyn FnMut(u64) -> u64);
    /// Any message that this kind of ring knows, of the kinds that the mix prefers.
    fn garbage(
        terms: &super::Terms,
        mix: super::Mix,
        draw: &mut dyn FnMut(u64) -> u64,
    ) -> Message<Self::Tokens>;
}

/// Where something is on the ring: after passing station `link`, with `ahead` messages before it.
#[derive(Clone, Copy)]
struct Place {
    link: usize,
    ahead: usize,
}

impl Place {
    /// Whether a message here reaches the root before one at `other`.
    fn is_ahead_of(self, other: Place) -> bool {
        self.link > other.link || self.link == other.link && self.ahead < other.ahead
    }
}

fn messages<M: Machine>(track: &Track<M>) -> impl Iterator<Item = (Place, &Message<M::Tokens>)> {
    track.links.iter().enumerate().flat_map(|(link, queue)| {
        queue.iter().enumerate().map(move |(ahead, message)| (Place { link, ahead }, message))
    })
}

/// Whether no station contradicts itself, and stations are numbered as the traversal at `front`
/// left them.
fn stations_agree<M: Machine>(track: &Track<M>, front: Option<Place>) -> bool {
    let current = track.stations[0].station().seq;
    track.stations.iter().enumerate().all(|(i, machine)| {
        let station = machine.station();
        let settled = match &station.standing {
            StationClaim::Out => station.nominal() == 0,
            StationClaim::Requesting { need } => {
                station.held.len() < *need && station.nominal() <= *need
            }
            StationClaim::Using { .. } => station.is_whole(),
        };
        let passed = front.is_some_and(|front| i <= front.link);
        settled && (i == 0 || passed == (station.seq == current))
    })
}

/// Whether every unit has exactly one token.
fn all_there<T: Tokens>(tally: &T::Tally, units: u32) -> bool {
    tally.total() == units && !tally.is_surplus(units)
}

impl<T: Tokens> Core<T> {
    fn front(track: &Track<Self>) -> Option<Place> {
        let mut found = messages(track).filter_map(|(place, message)| match message {
            Message::Controller(seq) => Some((place, *seq)),
            _ => None,
        });
        let (place, seq) = found.next()?;
        (found.next().is_none() && seq == track.stations[0].station.seq).then_some(place)
    }

    /// What the next START will count.
    fn foreseen(track: &Track<Self>, front: Place) -> T::Tally {
        let root = track.stations[0].root.as_ref().expect("station 0 is the root");
        let mut tally = root.reports.clone();
        tally.merge(&root.sent);
        tally.add(&root.collected, ALL);
        tally.add(&root.left_over, ALL);
        tally.add(track.stations[0].station.reported(&track.terms), ALL);
        for machine in &track.stations[front.link + 1..] {
            tally.add(machine.station.reported(&track.terms), ALL);
        }
        for (place, message) in messages(track) {
            match message {
                Message::Enabled(token) => tally.add(token, ALL),
                _ if place.is_ahead_of(front) => message.count(&mut tally),
                _ => {}
            }
        }
        tally
    }
}

impl<T: Tokens> Stabilizing for Core<T> {
    fn is_controlled(track: &Track<Self>) -> bool {
        Self::front(track).is_some()
    }

    fn is_legitimate(track: &Track<Self>) -> bool {
        let Some(front) = Self::front(track) else { return false };
        let (mut collections, mut distributions) = (0, 0);
        let in_place = messages(track).all(|(place, message)| match message {
            Message::Token(_) | Message::Controller(_) => true,
            Message::Enabled(_) => place.is_ahead_of(front),
            Message::Collect(_) => {
                collections += 1;
                place.is_ahead_of(front)
            }
            Message::Allocate { .. } => {
                distributions += 1;
                place.is_ahead_of(front)
            }
            Message::Disable | Message::Frame(_) | Message::Wake => false,
        });
        let units = track.terms.units;
        in_place
            && collections <= 1
            && distributions <= 1
            && !track.stations[0].root.as_ref().is_some_and(|root| root.flush)
            && stations_agree(track, Some(front))
            && all_there::<T>(&track.census(), units)
            && all_there::<T>(&Self::foreseen(track, front), units)
    }

    fn scramble(&mut self, terms: &super::Terms, draw: &mut dyn FnMut(u64) -> u64) {
        super::corrupt::core(self, terms, draw);
    }

    fn garbage(
        terms: &super::Terms,
        mix: super::Mix,
        draw: &mut dyn FnMut(u64) -> u64,
    ) -> Message<T> {
        super::corrupt::core_message(terms, mix, draw)
    }
}

impl<T: Tokens> Train<T> {
    /// Where the train is. The outer answer is whether there is one train, on the way or parked.
    fn front(track: &Track<Self>) -> Option<Option<Place>> {
        let root = track.stations[0].root.as_ref().expect("station 0 is the root");
        let mut found = messages(track).filter_map(|(place, message)| match message {
            Message::Frame(frame) => Some((place, frame.seq)),
            _ => None,
        });
        match (root.parked, found.next(), found.next()) {
            (true, None, None) => Some(None),
            (false, Some((place, seq)), None) if seq == track.stations[0].station.seq => {
                Some(Some(place))
            }
            _ => None,
        }
    }

    /// What the root will count when the train arrives.
    fn foreseen(track: &Track<Self>, front: Place) -> T::Tally {
        let root = track.stations[0].root.as_ref().expect("station 0 is the root");
        let mut tally = T::Tally::default();
        tally.add(&root.bag, ALL);
        tally.add(&root.pool, ALL);
        tally.add(track.stations[0].station.reported(&track.terms), ALL);
        for machine in &track.stations[front.link + 1..] {
            tally.add(machine.station.reported(&track.terms), ALL);
            tally.add(&machine.kept, ALL);
        }
        for (place, message) in messages(track) {
            if let Message::Frame(frame) = message {
                tally.merge(&frame.counted);
                message.count(&mut tally);
            } else if place.is_ahead_of(front) {
                message.count(&mut tally);
            }
        }
        tally
    }
}

impl<T: Tokens> Stabilizing for Train<T> {
    fn is_controlled(track: &Track<Self>) -> bool {
        Self::front(track).is_some()
    }

    fn is_legitimate(track: &Track<Self>) -> bool {
        let Some(front) = Self::front(track) else { return false };
        let root = track.stations[0].root.as_ref().expect("station 0 is the root");
        let in_place = messages(track).all(|(_, message)| match message {
            Message::Token(_) | Message::Wake => true,
            Message::Frame(frame) => !frame.kill,
            _ => false,
        });
        let units = track.terms.units;
        in_place
            && !root.flush
            && stations_agree(track, front)
            && all_there::<T>(&track.census(), units)
            && front.is_none_or(|front| all_there::<T>(&Self::foreseen(track, front), units))
    }

    fn scramble(&mut self, terms: &super::Terms, draw: &mut dyn FnMut(u64) -> u64) {
        super::corrupt::train(self, terms, draw);
    }

    fn garbage(
        terms: &super::Terms,
        mix: super::Mix,
        draw: &mut dyn FnMut(u64) -> u64,
    ) -> Message<T> {
        super::corrupt::train_message(terms, mix, draw)
    }
}
