//! Arbitrary states: every variable anything in its domain, garbage on the links (ring spec 5).
//!
//! Chance comes in as `draw(n)`, any number below n, so that whoever drives it decides: a seed, or
//! every possibility in turn.

use super::legitimate::Stabilizing;
use super::message::{Frame, Message};
use super::station::{Station, StationClaim};
use super::terms::Terms;
use super::tokens::{Tally, Tokens};
use super::train::Train;
use crate::reference::ring::Core;
use crate::reference::ring::Track;

type Draw<'a> = dyn FnMut(u64) -> u64 + 'a;

/// Which garbage is on the links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mix {
    /// Every kind alike.
    Any,
    /// Mostly tokens.
    Tokens,
    /// Nothing that could be a traversal: only a timeout brings one.
    NoController,
    /// Mostly traversals.
    Controllers,
}

impl Mix {
    /// All of them.
    pub const ALL: [Mix; 4] = [Mix::Any, Mix::Tokens, Mix::NoController, Mix::Controllers];
}

impl<M: Stabilizing> Track<M> {
    /// A ring in any state, with up to `per_link` garbage messages on each link.
    pub fn scrambled(terms: Terms, size: usize, per_link: u64, draw: &mut Draw<'_>) -> Self {
        let mut track = Self::new(terms, size);
        let mix = Mix::ALL[draw(Mix::ALL.len() as u64) as usize];
        for i in 0..size {
            track.stations[i].scramble(&terms, draw);
            for _ in 0..draw(per_link + 1) {
                track.links[i].push_back(M::garbage(&terms, mix, draw));
            }
        }
        track
    }
}

fn bit(draw: &mut Draw<'_>) -> bool {
    draw(2) == 1
}

/// A number from `least` to `most`.
fn between(least: u32, most: u32, draw: &mut Draw<'_>) -> u32 {
    least + draw(u64::from(most - least) + 1) as u32
}

/// A bag of up to `most`.
fn bag<T: Tokens>(most: u32, terms: &Terms, draw: &mut Draw<'_>) -> T {
    let count = between(0, most, draw);
    T::garbage(count, terms.units, draw)
}

fn tally<T: Tokens>(terms: &Terms, draw: &mut Draw<'_>) -> T::Tally {
    let count = between(0, terms.units + 1, draw);
    T::Tally::garbage(count, terms.units, draw)
}

fn station<T: Tokens>(terms: &Terms, draw: &mut Draw<'_>) -> Station<T> {
    let need = between(1, terms.claim_max, draw);
    let standing = match draw(3) {
        0 => StationClaim::Out,
        1 => StationClaim::Requesting { need },
        _ => StationClaim::Using { units: T::garbage(need, terms.units, draw) },
    };
    let nominal = between(0, terms.claim_max, draw);
    let disabled = between(0, nominal, draw);
    Station {
        standing,
        held: T::garbage(nominal - disabled, terms.units, draw),
        disabled,
        seq: draw(terms.seqs),
        turn: bit(draw),
        favoured: bit(draw),
    }
}

pub(super) fn core<T: Tokens>(machine: &mut Core<T>, terms: &Terms, draw: &mut Draw<'_>) {
    machine.station = station(terms, draw);
    if let Some(root) = &mut machine.root {
        root.reports = tally::<T>(terms, draw);
        root.sent = tally::<T>(terms, draw);
        root.collected = bag(terms.units, terms, draw);
        root.left_over = bag(terms.units, terms, draw);
        root.flush = bit(draw);
    }
}

pub(super) fn core_message<T: Tokens>(terms: &Terms, mix: Mix, draw: &mut Draw<'_>) -> Message<T> {
    let kind = match mix {
        Mix::Any => draw(6),
        Mix::Tokens => [0, 0, 0, draw(6)][draw(4) as usize],
        Mix::NoController => [0, 2, 3, 4, 5][draw(5) as usize],
        Mix::Controllers => [1, 1, 1, draw(6)][draw(4) as usize],
    };
    match kind {
        0 => Message::Token(T::garbage(1, terms.units, draw)),
        1 => Message::Controller(draw(terms.seqs)),
        2 => Message::Enabled(T::garbage(1, terms.units, draw)),
        3 => Message::Collect(bag(terms.collect_max, terms, draw)),
        4 => {
            let count = between(1, terms.allocate_max(), draw);
            let tokens = T::garbage(count, terms.units, draw);
            Message::Allocate { tokens, order: bit(draw) }
        }
        _ => Message::Disable,
    }
}

pub(super) fn train<T: Tokens>(machine: &mut Train<T>, terms: &Terms, draw: &mut Draw<'_>) {
    machine.station = station(terms, draw);
    machine.crowded = bit(draw);
    machine.woke = bit(draw);
    machine.phase = bit(draw);
    match &mut machine.root {
        None => machine.kept = bag(terms.claim_max, terms, draw),
        Some(root) => {
            root.bag = bag(terms.units, terms, draw);
            root.pool = bag(terms.units, terms, draw);
            root.flush = bit(draw);
            root.parked = bit(draw);
            root.announce = bit(draw);
            root.hot = bit(draw);
        }
    }
}

pub(super) fn train_message<T: Tokens>(terms: &Terms, mix: Mix, draw: &mut Draw<'_>) -> Message<T> {
    let kind = match mix {
        Mix::Any => draw(3),
        Mix::Tokens => [0, 0, 0, draw(3)][draw(4) as usize],
        Mix::NoController => [0, 2][draw(2) as usize],
        Mix::Controllers => [1, 1, 1, draw(3)][draw(4) as usize],
    };
    match kind {
        0 => {
            let count = between(1, terms.claim_max, draw);
            Message::Token(T::garbage(count, terms.units, draw))
        }
        1 => Message::Frame(Box::new(Frame {
            seq: draw(terms.seqs),
            order: bit(draw),
            free: bag(terms.units, terms, draw),
            alloc: bag(terms.allocate_max(), terms, draw),
            coll: bag(terms.collect_max, terms, draw),
            counted: tally::<T>(terms, draw),
            kill: bit(draw),
            waited: bit(draw),
            waits: bit(draw),
            blind: bit(draw),
        })),
        _ => Message::Wake,
    }
}
