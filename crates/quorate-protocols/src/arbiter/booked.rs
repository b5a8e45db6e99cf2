//! A claim in the books of an arbiter, and whether a peer could want what it asks for.

use std::sync::Arc;
use std::time::Duration;

use quorate_core::{Fence, Moment, Share, Shares, Stamp, Unit, Units};

use super::Seat;
use super::message::{GrantNumber, Wish};
use super::naming::{PickState, Picked};
use super::pool::{Mode, Pool};
use crate::attempt::Asker;

/// A claim in the books.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Booked {
    pub(super) asker: Asker,
    pub(super) stamp: Stamp,
    pub(super) wish: Wish,
    /// The fence that its holder has or will have, as far as the arbiter was told.
    pub(super) token: Fence,
    /// How often a younger claim passed it.
    pub(super) overtaken: u32,
    /// The asker's clock when it sent the message that counts, to be echoed...
    pub(super) sent: Moment,
    /// ...and ours when that message arrived. The two belong together: adding a wait to a newer
    /// reading than the one echoed would promise too much (arbiter spec C1).
    pub(super) arrived: Moment,
    pub(super) state: State,
    /// The units it picked, where permissions only count and grants name units.
    pub(super) picked: Option<Picked>,
    /// The units it was last told that others have or wait for, where units are locks, if it is to
    /// hear when one of them is free.
    pub(super) offered: Option<Arc<[Unit]>>,
    /// Two homes have this permission, and each may rely on it: neither can give it back, and it
    /// ends with its lease (`Grantor::hand_over`).
    pub(super) shared: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum State {
    Waiting,
    Granted { grant: GrantNumber, inquired: bool, waited: Duration, adopted: bool },
}

impl Booked {
    /// As a message shows it, sent and arrived at these readings of two clocks.
    pub(super) fn new(
        asker: Asker,
        stamp: Stamp,
        wish: Wish,
        token: Fence,
        (sent, arrived): (Moment, Moment),
    ) -> Booked {
        let state = State::Waiting;
        let (overtaken, picked, offered, shared) = (0, None, None, false);
        Booked {
            asker,
            stamp,
            wish,
            token,
            overtaken,
            sent,
            arrived,
            state,
            picked,
            offered,
            shared,
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.state == State::Waiting
    }

    pub(super) fn units(&self) -> u32 {
        self.wish.units.get()
    }

    /// The number of its permission.
    pub(super) fn number(&self) -> GrantNumber {
        match self.state {
            State::Granted { grant, .. } => grant,
            State::Waiting => unreachable!("only permissions have numbers"),
        }
    }

    /// The units that are locked for it here.
    pub(super) fn locked(&self) -> &[Unit] {
        match (&self.picked, &self.wish.names) {
            _ if self.is_waiting() => &[],
            (Some(picked), _) if picked.state == PickState::Locked => &picked.pick.names,
            (None, Some(names)) => names,
            _ => &[],
        }
    }

    /// The units that its fence is about.
    pub(super) fn fenced(&self, pool: &Pool) -> &[Unit] {
        match &self.wish.names {
            Some(names) => names,
            None if pool.picks_units() => self.locked(),
            None if pool.names_units() => &[Unit(0)],
            None => &[],
        }
    }

    /// What its holder has, as far as the arbiter can say.
    pub(super) fn shares(&self) -> Shares {
        match self.locked() {
            [] => shares(None, self.wish.units, self.token),
            names => shares(Some(names), self.wish.units, self.token),
        }
    }
}

/// So many units, all with this fence; numbered from 0 where they have no names.
pub(super) fn shares(names: Option<&[Unit]>, units: Units, fence: Fence) -> Shares {
    let shares: Vec<Share> = match names {
        Some(names) => names.iter().map(|&unit| Share { unit, fence }).collect(),
        None => (0..units.get()).map(|unit| Share { unit: Unit(unit), fence }).collect(),
    };
    Shares::new(&shares)
}

/// Whether a correct peer could want this.
pub(super) fn is_sensible(
    seat: &Seat<'_>,
    wish: &Wish,
    is_shown: bool,
) -> Result<(), &'static str> {
    if wish.units.get() > seat.pool.units {
        return Err("a request for more units than the pool has");
    }
    match (&wish.names, seat.pool.mode) {
        (None, Mode::Count { .. }) => Ok(()),
        (None, Mode::Named) => Err("a request without names where units have them"),
        // What a client shows that outlived its home has names.
        (Some(_), Mode::Count { .. }) if !(is_shown && seat.pool.picks_units()) => {
            Err("a request for units by name in a pool that counts")
        }
        (Some(names), _) => match are_units(seat.pool, wish.units, names) {
            true => Ok(()),
            false => Err("a request for units that the pool does not have"),
        },
    }
}

/// Whether these are so many units of the pool, ascending.
pub(super) fn are_units(pool: &Pool, units: Units, names: &[Unit]) -> bool {
    names.len() == units.get() as usize
        && names.windows(2).all(|pair| pair[0] < pair[1])
        && names.last().is_some_and(|last| last.0 < pool.units)
}
