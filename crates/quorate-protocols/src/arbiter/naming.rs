//! Which units a claim has, where permissions only count: the arbiter's half (arbiter spec C7).
//!
//! A claim with a quorum's permissions picks units and names them to that quorum; once all have
//! locked them for it, its client may go. Two claims that pick the same unit share an arbiter.
//! There the older one gets it: a younger one is asked to pick again, and does so unless its client
//! uses the unit already, which it then says. Refusing whoever comes second instead never ends if
//! picks cross (arbiter spec N-1). Enough units exist for everybody, since permissions never exceed
//! the pool.
//!
//! What is locked belongs to its permission and ends with it. An arbiter in grace may have locked
//! units in its earlier life, so it locks only what a client uses already: whoever else relies on a
//! lock of that life stops before grace ends, or renews, and then hears that the lock is gone.

use std::collections::BTreeSet;
use std::sync::Arc;

use quorate_core::{ClaimId, Stamp, Unit};

use super::booked::{Booked, are_units};
use super::grantor::Grantor;
use super::message::{GrantNumber, Message, Pick};
use super::pool::broken;
use super::{Post, Seat};
use crate::attempt::{Asker, Bid};

/// What a claim with a permission has said of its units.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Picked {
    pub(super) pick: Pick,
    pub(super) state: PickState,
    /// Its client uses them.
    pub(super) used: bool,
    /// Somebody older wants one of them, and it was asked to pick again.
    pub(super) asked: bool,
}

impl Picked {
    /// Whether a pick only says again, in another round, what is locked for it and in use.
    fn keeps(&self, pick: &Pick, used: bool) -> bool {
        used && self.state == PickState::Locked && self.pick.names == pick.names
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum PickState {
    /// Others were asked to give way.
    Wanted,
    /// They are the claim's.
    Locked,
    /// It must pick others, and was told that it cannot have these. It is told again when it can.
    Refused { told: Arc<[Unit]> },
}

impl Booked {
    /// The pick that is locked for it, or 0.
    pub(super) fn round(&self) -> u64 {
        let locked = self.picked.as_ref().filter(|picked| picked.state == PickState::Locked);
        locked.map_or(0, |picked| picked.pick.round)
    }
}

impl Grantor {
    pub(super) fn on_name(
        &mut self,
        seat: &Seat<'_>,
        claim: ClaimId,
        (asker, grant): (Asker, GrantNumber),
        (pick, used): (Pick, bool),
        post: &mut Post<'_>,
    ) {
        let bid = asker.bid(claim);
        if !self.is_granted(seat, bid, asker, grant) {
            let (attempt, clock) = (asker.attempt, self.clock.0);
            let lost = Message::Lost { claim, attempt, grant: Some(grant), clock };
            return post.send(asker.node, lost);
        }
        let booked = self.entries.get_mut(&bid).expect("it is granted");
        let gives_up = pick.names.is_empty() && !used;
        let sensible = gives_up || are_units(seat.pool, booked.wish.units, &pick.names);
        if !seat.pool.picks_units() || !sensible {
            return post.out.anomaly(asker.node, "a pick that no claim of this pool can have");
        }
        match &mut booked.picked {
            Some(known) if known.pick.round > pick.round => return,
            Some(known) if known.pick.round == pick.round => {
                known.used |= used;
                match &known.state {
                    PickState::Locked => self.tell_named(seat, bid, post),
                    // It asks again, so what it or its rivals were told may have been lost.
                    PickState::Refused { .. } => known.state = PickState::Wanted,
                    PickState::Wanted => self.ask_rivals_again(bid),
                }
            }
            // Its client was at another home meanwhile, which counts rounds of its own: what it
            // uses is not free in between, not even for somebody older.
            Some(known) if known.keeps(&pick, used) && !broken!(seat, C7LockAnew) => {
                (known.pick, known.used) = (pick, true);
                self.write_down(seat, post.out);
                self.tell_named(seat, bid, post);
            }
            _ => {
                let names = booked.locked().to_vec();
                let (state, asked) = (PickState::Wanted, false);
                booked.picked = Some(Picked { pick, state, used, asked });
                self.unlock(bid, &names);
            }
        }
        self.settle_names(seat, post);
    }

    /// Whoever wants units gets them, oldest first, waits for younger ones to give way, or is told
    /// to pick others. Looks again after every change.
    pub(super) fn settle_names(&mut self, seat: &Seat<'_>, post: &mut Post<'_>) {
        if !seat.pool.picks_units() {
            return;
        }
        let claimants: Vec<(Stamp, Bid)> = self
            .granted
            .iter()
            .filter(|(_, bid)| self.entries[bid].picked.is_some())
            .copied()
            .collect();
        let mut spoken_for: BTreeSet<Unit> = BTreeSet::new();
        for (stamp, bid) in claimants {
            let picked = self.picked(bid);
            if picked.state != PickState::Wanted {
                self.tell_news(seat, bid, post);
                continue;
            }
            let (names, used) = (Arc::clone(&picked.pick.names), picked.used);
            if !used && !self.is_open() && !broken!(seat, C7PickInGrace) {
                continue; // A client may use what an earlier life of this arbiter locked for it.
            }
            let rivals = self.rivals(bid, &names);
            let second = names.iter().any(|unit| spoken_for.contains(unit)) && !used;
            let beaten = |&rival: &Bid| {
                let has = &self.entries[&rival];
                self.picked(rival).used || (has.stamp, rival) < (stamp, bid)
            };
            if !names.is_empty() && rivals.is_empty() && !second {
                self.lock_pick(seat, bid, &names, post);
            } else if !used
                && (names.is_empty()
                    || second
                    || rivals.iter().any(beaten)
                    || broken!(seat, N1RefuseWithoutPriority))
            {
                self.refuse_pick(seat, bid, post);
            } else {
                spoken_for.extend(names.iter());
                if broken!(seat, C7TakeUnasked) {
                    rivals.iter().for_each(|&rival| self.rob(rival));
                    self.lock_pick(seat, bid, &names, post);
                    continue;
                }
                for rival in rivals {
                    self.ask_rival(rival, post);
                }
            }
        }
    }

    fn picked(&self, bid: Bid) -> &Picked {
        self.entries[&bid].picked.as_ref().expect("it has picked")
    }

    fn picked_mut(&mut self, bid: Bid) -> &mut Picked {
        let booked = self.entries.get_mut(&bid).expect("it is in the books");
        booked.picked.as_mut().expect("it has picked")
    }

    /// Who else has one of these units.
    fn rivals(&self, bid: Bid, names: &[Unit]) -> BTreeSet<Bid> {
        let owners = names.iter().filter_map(|unit| self.locks.get(unit).copied());
        owners.filter(|&owner| owner != bid).collect()
    }

    fn lock_pick(&mut self, seat: &Seat<'_>, bid: Bid, names: &[Unit], post: &mut Post<'_>) {
        self.picked_mut(bid).state = PickState::Locked;
        self.lock(bid, names);
        self.write_down(seat, post.out);
        self.tell_named(seat, bid, post);
    }

    fn refuse_pick(&mut self, seat: &Seat<'_>, bid: Bid, post: &mut Post<'_>) {
        let told = match broken!(seat, N1RefuseWithoutPriority) {
            true => self.locked_by_others(bid),
            false => self.out_of_reach(bid),
        };
        self.picked_mut(bid).state = PickState::Refused { told: Arc::clone(&told) };
        self.tell_taken(bid, told, post);
    }

    /// Whoever was refused hears when a unit that it could not have is within reach.
    fn tell_news(&mut self, seat: &Seat<'_>, bid: Bid, post: &mut Post<'_>) {
        let PickState::Refused { told } = &self.picked(bid).state else { return };
        let now = self.out_of_reach(bid);
        if told.iter().any(|unit| !now.contains(unit)) {
            self.refuse_pick(seat, bid, post);
        }
    }

    fn ask_rival(&mut self, rival: Bid, post: &mut Post<'_>) {
        let picked = self.picked_mut(rival);
        if picked.asked || picked.used {
            return;
        }
        picked.asked = true;
        let taken = self.out_of_reach(rival);
        self.tell_taken(rival, taken, post);
    }

    fn ask_rivals_again(&mut self, bid: Bid) {
        let names = Arc::clone(&self.picked(bid).pick.names);
        for rival in self.rivals(bid, &names) {
            self.picked_mut(rival).asked = false;
        }
    }

    /// A mistake for tests: its units go to somebody else.
    fn rob(&mut self, bid: Bid) {
        let names = self.entries[&bid].locked().to_vec();
        self.unlock(bid, &names);
        self.picked_mut(bid).state = PickState::Wanted;
    }

    /// Units that a claim cannot pick: in use, or picked by somebody older.
    fn out_of_reach(&self, bid: Bid) -> Arc<[Unit]> {
        let key = (self.entries[&bid].stamp, bid);
        let beats = |&&(stamp, other): &&(Stamp, Bid)| {
            let picked = &self.entries[&other].picked;
            other != bid
                && picked.as_ref().is_some_and(|picked| {
                    let refused = matches!(picked.state, PickState::Refused { .. });
                    !refused && (picked.used || (stamp, other) < key)
                })
        };
        let units: BTreeSet<Unit> = self
            .granted
            .iter()
            .filter(beats)
            .flat_map(|(_, other)| self.picked(*other).pick.names.iter().copied())
            .collect();
        units.into_iter().collect()
    }

    pub(super) fn locked_by_others(&self, bid: Bid) -> Arc<[Unit]> {
        self.locks.iter().filter(|&(_, &owner)| owner != bid).map(|(&unit, _)| unit).collect()
    }

    fn tell_named(&self, seat: &Seat<'_>, bid: Bid, post: &mut Post<'_>) {
        let (booked, claim) = (&self.entries[&bid], bid.claim);
        let (Asker { node, attempt }, clock) = (booked.asker, self.clock.0);
        let (grant, round) = (booked.number(), booked.round());
        let floor = self.floors.of(booked.fenced(seat.pool));
        post.send(node, Message::Named { claim, attempt, grant, round, floor, clock });
    }

    fn tell_taken(&self, bid: Bid, taken: Arc<[Unit]>, post: &mut Post<'_>) {
        let (booked, claim) = (&self.entries[&bid], bid.claim);
        let (Asker { node, attempt }, clock) = (booked.asker, self.clock.0);
        let (grant, round) = (booked.number(), self.picked(bid).pick.round);
        post.send(node, Message::Taken { claim, attempt, grant, round, taken, clock });
    }
}
