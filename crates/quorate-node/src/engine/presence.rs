//! Claims that nobody is there for (`crate::presence`).
//!
//! Three things can happen to them, and none to what a client was told that it holds:
//!
//! * *its turn comes*: the units are given back as soon as nobody is expected, and the claim stands
//!   aside until its client asks again. It has lost its place then, since somebody else was served
//!   in it;
//! * *nobody comes* for a lease, or for as long as the client said: it is cancelled. A client that
//!   does come later, and repeats it, makes it anew;
//! * *its client waits at another node*: the copy here gives way, without a trace.

use std::time::Duration;

use quorate_api::ClaimState;
use quorate_core::{ClaimId, Event, Moment};
use quorate_wire::glance::What;

use super::{Due, Engine};
use crate::admission;
use crate::clock;
use crate::ledger::State;
use crate::protocols::Books;

/// Why a claim is over that nobody came back for.
const NOBODY: &str = "nobody waited for it any more";

impl Engine {
    /// Somebody asks for a claim.
    pub(super) fn attend(&mut self, seat: usize, id: ClaimId, now: Moment) {
        let Some(claimed) = self.pools[seat].ledger.get_mut(&id) else { return };
        claimed.presence.asks(now);
        if std::mem::take(&mut claimed.presence.aside) {
            self.line_up_again(seat, id, now);
        }
    }

    /// Whoever makes a claim says for how long it need not ask again.
    pub(super) fn detach(&mut self, seat: usize, id: ClaimId, keep: Option<Duration>) {
        let claimed = self.pools[seat].ledger.get_mut(&id);
        if let (Some(claimed), Some(keep)) = (claimed, keep) {
            claimed.presence.detach(keep);
        }
    }

    /// Somebody asks at another node how a claim stands that was made here, and is told.
    pub(super) fn look_after(&mut self, pool: &str, id: ClaimId) {
        let Some(&seat) = self.by_name.get(pool) else { return };
        let now = clock::now();
        let Some(claimed) = self.pools[seat].ledger.get_mut(&id) else { return };
        if matches!(claimed.state, State::Granted { .. }) {
            claimed.presence.tell();
        }
        if claimed.presence.elsewhere {
            return; // Whoever asks is there, or is not its client.
        }
        claimed.presence.answered(now);
        if std::mem::take(&mut claimed.presence.aside) {
            self.line_up_again(seat, id, now);
        }
    }

    /// The client of a claim that stood aside is back: the claim is made again.
    fn line_up_again(&mut self, seat: usize, id: ClaimId, now: Moment) {
        let draw = self.draw();
        let pool = &self.pools[seat];
        let Some(claimed) = pool.ledger.get(&id) else { return };
        if claimed.state != State::Waiting {
            return;
        }
        let (want, known) = (&claimed.want, pool.known());
        match admission::claim(&pool.def, &known, &self.config, id, want, draw) {
            Ok(claim) => self.step(seat, Event::Claim(claim)),
            // What the pool could grant has changed meanwhile.
            Err(unfit) => {
                let why = quorate_api::Problem::from(unfit).detail;
                self.over(seat, id, ClaimState::Refused, why, now);
            }
        }
    }

    /// What was granted to nobody is given back, now that all else of the step is done: the order
    /// of effects is their meaning. That may grant the next claim to nobody, and so on.
    pub(super) fn give_back(&mut self) {
        if std::mem::replace(&mut self.giving_back, true) {
            return;
        }
        while let Some((seat, id)) = self.unwanted.pop() {
            self.step(seat, Event::Withdraw(id));
            self.stand_aside(seat, id);
        }
        self.giving_back = false;
    }

    /// The turn of a claim came while nobody was there for it.
    fn stand_aside(&mut self, seat: usize, id: ClaimId) {
        let Some(claimed) = self.pools[seat].ledger.get_mut(&id) else { return };
        if claimed.presence.elsewhere {
            return self.vanish(seat, id);
        }
        claimed.presence.aside = true;
        let took = clock::now().since(claimed.made);
        self.note(seat, id, What::Passed, took);
    }

    /// A copy of a claim whose client is at another node: nobody here misses it.
    fn vanish(&mut self, seat: usize, id: ClaimId) {
        let ledger = &mut self.pools[seat].ledger;
        let before = ledger.active();
        ledger.remove(&id);
        self.active = self.active + ledger.active() - before;
        self.owner_news(seat, id);
    }

    /// A client that was told of a grant had hung up: nobody knows of it.
    pub(super) fn on_unread(&mut self, pool: &str, id: ClaimId, since: Moment) {
        let Some(&seat) = self.by_name.get(pool) else { return };
        let (now, pool) = (clock::now(), &mut self.pools[seat]);
        let lease = pool.def.lease.length();
        let Some(claimed) = pool.ledger.get_mut(&id) else { return };
        if !matches!(claimed.state, State::Granted { since: known, .. } if known == since) {
            return;
        }
        claimed.presence.take_back();
        if claimed.presence.is_told() {
            return;
        }
        if claimed.is_wanted(now, lease) {
            return self.keep_for(seat, id);
        }
        self.pass(seat, id);
        self.give_back();
    }

    /// Nobody was told of a grant yet, and somebody is expected to come for it.
    pub(super) fn keep_for(&mut self, seat: usize, id: ClaimId) {
        let pool = &mut self.pools[seat];
        pool.untold.insert(id);
        if let Some(gone) = pool.ledger.get(&id).and_then(|claimed| claimed.presence.gone_at()) {
            self.alarms.set(gone, Due::Absent(seat));
        }
    }

    /// Nobody came for a grant that nobody was told of.
    fn pass(&mut self, seat: usize, id: ClaimId) {
        self.pools[seat].ledger.change(&id, State::Waiting);
        self.unwanted.push((seat, id));
    }

    /// This node stood still itself, and could not see who came.
    pub(super) fn forgive_absence(&mut self, now: Moment) {
        for &seat in &self.lines {
            let pool = &mut self.pools[seat];
            let asked = pool.ledger.in_line().chain(pool.untold.iter().copied());
            for id in asked.collect::<Vec<_>>() {
                if let Some(claimed) = pool.ledger.get_mut(&id) {
                    claimed.presence.waits(now);
                }
            }
        }
    }

    /// Looks for claims that nobody is there for.
    pub(super) fn look_for_the_absent(&mut self, now: Moment) {
        let mut lines = std::mem::take(&mut self.lines);
        lines.retain(|seat| self.look_along(*seat, now));
        self.lines.append(&mut lines);
    }

    /// Says whether there is anything to look for in this pool next time.
    pub(super) fn look_along(&mut self, seat: usize, now: Moment) -> bool {
        let pool = &mut self.pools[seat];
        let ledger = &pool.ledger;
        pool.untold.retain(|id| {
            let claimed = ledger.get(id).filter(|c| matches!(c.state, State::Granted { .. }));
            claimed.is_some_and(|claimed| !claimed.presence.is_told())
        });
        let lease = pool.def.lease.length();
        let (mut over, mut elsewhere, mut passed) = (Vec::new(), Vec::new(), Vec::new());
        let asked: Vec<ClaimId> = ledger.in_line().chain(pool.untold.iter().copied()).collect();
        for id in asked {
            let Some(claimed) = pool.ledger.get_mut(&id) else { continue };
            if claimed.is_attended() {
                claimed.presence.waits(now);
            } else if claimed.presence.elsewhere {
                elsewhere.push(id);
            } else if claimed.presence.is_given_up(now, lease) {
                over.push(id);
            } else if claimed.state != State::Waiting && !claimed.is_wanted(now, lease) {
                passed.push(id);
            }
        }
        for id in elsewhere {
            self.give_way(seat, id);
        }
        for id in over {
            // Over first, so that nobody finds it half ended.
            self.over(seat, id, ClaimState::Cancelled, NOBODY, now);
            if let Some(claimed) = self.pools[seat].ledger.get_mut(&id) {
                claimed.presence.abandoned = true;
            }
            self.step(seat, Event::Withdraw(id));
        }
        for id in passed {
            self.pass(seat, id);
        }
        self.give_back();
        let pool = &self.pools[seat];
        pool.ledger.waiting() > 0 || !pool.untold.is_empty()
    }

    /// This node stops. Where one node or a table books claims, those that wait here keep their
    /// places until their clients ask for them elsewhere. Where each node asks for itself, whoever
    /// asks elsewhere begins anew, and what was asked for here would stand in the way of everybody.
    pub(super) fn give_up_waiting(&mut self, seat: usize) {
        let pool = &self.pools[seat];
        if matches!(pool.def.protocol.about.books, Books::Decide(_) | Books::Copy) {
            return;
        }
        let waiting = pool.ledger.in_line().chain(pool.untold.iter().copied());
        for id in waiting.collect::<Vec<_>>() {
            let told = self.pools[seat].ledger.get(&id).is_some_and(|it| it.presence.is_told());
            if !told {
                self.step(seat, Event::Withdraw(id));
            }
        }
    }

    /// A copy at which nobody waits, and of which nobody was told that it is granted, ends for the
    /// sake of the one where its client is.
    pub(super) fn give_way(&mut self, seat: usize, id: ClaimId) {
        self.vanish(seat, id);
        self.step(seat, Event::Withdraw(id));
    }
}
