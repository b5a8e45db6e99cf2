//! What a client process is, when it wakes up, and what it draws; `clients.rs` says what it does.

use quorate_core::{ClaimId, Moment, NodeId, Protocol, Share, Shares, Units, Wanted};

use crate::Arrivals;
use crate::queue::Ticket;
use crate::world::{Happening, World};

/// Readings are whole nanoseconds, and every conversion between two clocks may round by one. A
/// client stops this much early, so that rounding never makes it late.
const ROUNDING: u64 = 10;
/// A client whose lease is nearly over does not ask more often than this.
const RENEW_PAUSE_MIN: u64 = 1_000;

/// One client process.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) home: NodeId,
    pub(crate) phase: Phase,
    pub(crate) serial: u64,
    pub(crate) wake: Option<Ticket>,
    /// What it asks for.
    pub(crate) wanted: Wanted,
    /// What it was asked to leave, and has not left yet.
    pub(crate) leaving: Vec<Share>,
    pub(crate) draw: u64,
    /// When it claimed, and its place in the order of arrival.
    pub(crate) since: u64,
    pub(crate) place: u64,
    pub(crate) fate: Fate,
    pub(crate) shares: Shares,
    /// Its own deadline, on its home's clock.
    pub(crate) until: Moment,
    /// When it is done with its units, or gives up waiting, or dies; true time.
    pub(crate) done_at: u64,
    pub(crate) renew_at: u64,
    /// When it got more time, the last time but one and the last time; true time, 0 if never.
    pub(crate) extended: (u64, u64),
}

/// What a client is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Nothing, until it wakes up and claims.
    Thinking,
    /// It wants to claim, but its home is not running.
    Due,
    /// It claimed.
    Waiting,
    /// It no longer wants its claim, and waits to hear that it is over.
    Cancelling,
    /// It uses its units.
    Using,
    /// It stopped, but could not yet tell its home.
    Releasing,
    /// It is dead, and another process will take its place.
    Dead,
    /// It will not claim again.
    Done,
}

/// What a client will do at its `done_at`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// Wait as long as it takes, or release when done.
    Proper,
    /// Take its claim back.
    Cancel,
    /// Die.
    Die,
    /// Hang up, and perhaps go on at another node.
    HangUp,
    /// Release when done, but not renew until then.
    Stall,
    /// Stop without a word: it was told that it has nothing any more, and hears it only then.
    Told,
}

impl Client {
    pub(crate) fn claim(&self, index: usize) -> ClaimId {
        ClaimId { origin: index as u64, serial: self.serial }
    }
}

impl<P: Protocol> World<'_, P> {
    /// The true time at which a client must have stopped.
    pub(crate) fn stop_at(&self, index: usize) -> u64 {
        let client = &self.clients[index];
        self.stop_at_of(client.home, client.until)
    }

    /// The true time at which a client of this home must have stopped, given its deadline.
    pub(crate) fn stop_at_of(&self, home: NodeId, until: Moment) -> u64 {
        self.nodes[home.index()].clock.when(until).saturating_sub(ROUNDING)
    }

    pub(crate) fn wake_for_next(&mut self, index: usize) {
        let client = &self.clients[index];
        let silent = matches!(client.fate, Fate::Stall | Fate::Told);
        let renew_at = if silent { u64::MAX } else { client.renew_at };
        let next = client.done_at.min(renew_at).min(self.stop_at(index)).max(self.now);
        self.wake_at(index, next);
    }

    pub(crate) fn wake_at(&mut self, index: usize, at: u64) {
        let ticket = self.queue.push(at, Happening::Wake { client: index as u32 });
        if self.clients[index].wake.replace(ticket).is_some() {
            self.take_back();
        }
    }

    /// What a client asks for; whether it can be moved is drawn later.
    pub(crate) fn draw_wanted(&mut self, index: usize) -> Wanted {
        let k = self.measures.units();
        match &self.plan.workload.arrivals {
            Arrivals::Script(arrivals) => {
                let units = Units::new(arrivals[index].units, k);
                Wanted::any(units.expect("a script asks for what there is"))
            }
            _ => self.plan.workload.want.draw(&mut self.chance.clients, k),
        }
    }

    pub(crate) fn draw_hold(&mut self, index: usize) -> u64 {
        match &self.plan.workload.arrivals {
            Arrivals::Script(arrivals) => arrivals[index].hold,
            _ => self.plan.workload.hold.draw(&mut self.chance.clients),
        }
    }

    pub(crate) fn draw_patience(&mut self) -> (Fate, u64) {
        let rng = &mut self.chance.clients;
        let hangups = self.plan.faults.hangup_ppm;
        if self.calm {
            (Fate::Proper, 0)
        } else if hangups > 0 && rng.chance(hangups) {
            (Fate::HangUp, self.plan.workload.patience.draw(rng))
        } else if rng.chance(self.plan.faults.waiter_death_ppm) {
            (Fate::Die, self.plan.workload.patience.draw(rng))
        } else if rng.chance(self.plan.workload.cancel_ppm) {
            (Fate::Cancel, self.plan.workload.patience.draw(rng))
        } else {
            (Fate::Proper, 0)
        }
    }

    pub(crate) fn draw_ending(&mut self, hold: u64) -> (Fate, u64) {
        let rng = &mut self.chance.clients;
        if self.calm {
            (Fate::Proper, hold)
        } else if rng.chance(self.plan.faults.holder_death_ppm) {
            (Fate::Die, rng.below(hold.saturating_add(1)))
        } else if rng.chance(self.plan.faults.client_pause_ppm) {
            (Fate::Stall, hold)
        } else {
            (Fate::Proper, hold)
        }
    }
}

/// About a third of what is left.
pub(crate) fn renew_at(now: u64, stop_at: u64) -> u64 {
    match stop_at.checked_sub(now) {
        None | Some(0) => u64::MAX,
        Some(_) if stop_at >= u64::MAX - ROUNDING => u64::MAX,
        Some(left) => now + (left / 3).max(RENEW_PAUSE_MIN),
    }
}
