//! Which units a claim has: the requester's half. Where permissions only count, it picks them once
//! a quorum has given its permissions (arbiter spec C7; [`super::naming`] has the other half).
//! Where units are locks, it chose them when it asked, and chooses others if it hears that those
//! are taken and enough are free (arbiter spec 7.11).

use std::collections::BTreeSet;
use std::sync::Arc;

use quorate_core::{ClaimId, Fence, NodeId, NodeSet, Seat, Unit};

use super::choice::{choose_free, free_units, has_choice};
use super::local::{Local, Permit, PermitState, Phase, Polls};
use super::message::{GrantNumber, Message, Pick, Wish};
use super::pool::{Mode, broken};
use super::requester::{Requester, enlist};
use super::{Arbiter, Post};
use crate::home::About;

impl Requester {
    /// Picks units if there are enough, and names them to whoever of the quorum has not heard.
    /// `again` repeats it, in case it was lost. Says whether all have locked them.
    pub(super) fn settle_pick(
        &mut self,
        seat: &Seat<'_, Arbiter>,
        claim: ClaimId,
        quorum: &NodeSet,
        again: bool,
        post: &mut Post<'_>,
    ) -> bool {
        let stuck = self.claims[&claim].pick.as_ref().is_none_or(|pick| pick.names.is_empty());
        if stuck {
            self.pick_units(seat, claim);
        }
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        let pick = local.pick.clone().expect("it was picked above");
        let mut settled = !pick.names.is_empty();
        // The arbiters that made the claim give up its pick must tell it when the units are free
        // again.
        let quorum = if settled { quorum.clone() } else { local.given() };
        for (&node, permit) in local.enlisted.iter_mut().filter(|(node, _)| quorum.contains(**node))
        {
            if !permit.has_locked(&pick) {
                settled = false;
                name_to(claim, &pick, false, (node, permit), again, post);
            }
        }
        settled
    }

    /// A new pick among the units that no arbiter with a permission says it cannot have; an empty
    /// one if those are too few, which gives up what was picked before. Always by the word of the
    /// same arbiters, or a pick that one of them made it give up would be made again at once.
    fn pick_units(&mut self, seat: &Seat<'_, Arbiter>, claim: ClaimId) {
        let others = self.claims.iter().filter(|(other, _)| **other != claim);
        let mine: BTreeSet<Unit> = others
            .filter_map(|(_, local)| local.pick.as_ref())
            .flat_map(|pick| pick.names.iter().copied())
            .collect();
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        let given = local.given();
        let heard = local.taken.iter().filter(|(node, _)| given.contains(**node));
        let taken: BTreeSet<Unit> = heard.flat_map(|(_, taken)| taken.iter().copied()).collect();
        let free = free_units(seat.pool, local.wish.units, local.draw, &taken, &mine);
        if free.is_none() && local.pick.as_ref().is_some_and(|pick| pick.names.is_empty()) {
            return;
        }
        let names: Arc<[Unit]> = free.unwrap_or_default().into_iter().collect();
        local.pick = Some(Pick { round: self.outlook.clock.tick(), names });
    }

    pub(super) fn on_named(
        &mut self,
        seat: &Seat<'_, Arbiter>,
        about: About,
        (number, round, floor): (GrantNumber, u64, Fence),
        post: &mut Post<'_>,
    ) {
        self.fence = self.fence.max(floor);
        let Some(permit) = self.permit_of(about, number) else { return };
        let PermitState::Given { named, floor: known, .. } = &mut permit.state else {
            unreachable!("it is a permission");
        };
        (*named, *known) = (round.max(*named), floor.max(*known));
        self.go_on(seat, about.claim, post);
    }

    /// Somebody older wants a unit that this claim picked, somebody uses one, or one that it could
    /// not have before is free.
    pub(super) fn on_taken(
        &mut self,
        seat: &Seat<'_, Arbiter>,
        about: About,
        (number, round): (GrantNumber, u64),
        taken: Arc<[Unit]>,
        post: &mut Post<'_>,
    ) {
        let About { from, claim, .. } = about;
        if self.permit_of(about, number).is_none() {
            return;
        }
        let local = self.claims.get_mut(&claim).expect("it has a permission");
        local.taken.insert(from, taken);
        let Some(pick) = local.pick.clone() else { return };
        if local.is_held() {
            let permit = local.enlisted.get_mut(&from).expect("it has a permission");
            return name_to(claim, &pick, true, (from, permit), true, post);
        }
        if round == pick.round && !pick.names.is_empty() {
            local.pick = None;
            self.pick_units(seat, claim);
        }
        // Whoever knows an earlier pick hears of this one: somebody may wait for those units.
        let local = self.claims.get_mut(&claim).expect("it has a permission");
        let pick = local.pick.clone().expect("it was picked above");
        for (&node, permit) in &mut local.enlisted {
            if permit.has_heard_a_pick() {
                name_to(claim, &pick, false, (node, permit), false, post);
            }
        }
        self.try_enter(seat, claim, false, post);
    }

    /// The permission that a message is about, if it is in our hands.
    fn permit_of(&mut self, about: About, number: GrantNumber) -> Option<&mut Permit> {
        let local = self.claims.get_mut(&about.claim)?;
        let permit = local.enlisted.get_mut(&about.from)?;
        let is_it = matches!(permit.state, PermitState::Given { grant, .. } if grant == number);
        (is_it && permit.attempt == about.attempt).then_some(permit)
    }

    /// An arbiter says what others have or wait for, where units are locks. A claim that waits for
    /// one of those while others are free asks for these instead. If none is, it asks arbiters that
    /// gave their permission to say when one is: they know of other holders than those at which it
    /// waits.
    pub(super) fn look_around(
        &mut self,
        seat: &Seat<'_, Arbiter>,
        About { from, claim, attempt }: About,
        taken: Arc<[Unit]>,
        post: &mut Post<'_>,
    ) {
        let Some(local) = self.claims.get_mut(&claim) else { return };
        let Some(permit) = local.enlisted.get_mut(&from) else { return };
        let waits = matches!(local.phase, Phase::Waiting(_)) && permit.attempt == attempt;
        if seat.pool.mode != Mode::Named || !waits {
            return;
        }
        match &mut permit.state {
            PermitState::Given { watched: false, .. } => {} // It was not asked who has what.
            PermitState::Given { watched, .. } => {
                let before = local.taken.insert(from, Arc::clone(&taken)).unwrap_or_default();
                // What has become free is told once.
                *watched = before.iter().all(|unit| taken.contains(unit));
            }
            _ => _ = local.taken.insert(from, taken),
        }
        let names = local.wish.names.as_deref().expect("units have names here");
        let can_move = has_choice(seat.pool, &local.wanted);
        if !can_move || !local.is_blocked(names) {
            return;
        }
        match self.free_instead(seat, claim) {
            Some(wish) => self.move_on(seat, claim, wish, post),
            None if !broken!(seat, MoveInTheDark) => self.watch(seat, claim, post),
            None => {}
        }
    }

    /// Units that a claim could have as far as its arbiters have said, and that no other claim of
    /// this node has or waits for.
    fn free_instead(&self, seat: &Seat<'_, Arbiter>, claim: ClaimId) -> Option<Wish> {
        let others = self.claims.iter().filter(|(other, _)| **other != claim);
        let mine = others.flat_map(|(_, local)| local.wish.names.iter().flat_map(|n| n.iter()));
        let local = &self.claims[&claim];
        let heard = local.taken.iter().filter(|(node, _)| local.enlisted.contains_key(node));
        let heard = heard.flat_map(|(_, taken)| taken.iter());
        let avoid: BTreeSet<Unit> = mine.chain(heard).copied().collect();
        choose_free(seat.pool, &local.wanted, local.draw, &avoid)
    }

    /// Asks for other units, at its age. At most once for each unit of the pool until it asks again
    /// anyway, so that claims that go out of each other's way do not do so for ever; then soon.
    fn move_on(
        &mut self,
        seat: &Seat<'_, Arbiter>,
        claim: ClaimId,
        wish: Wish,
        post: &mut Post<'_>,
    ) {
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        if local.moves >= seat.pool.units {
            if let Phase::Waiting(polls) = &mut local.phase {
                *polls = Polls { rest: polls.rest.min(Polls::FIRST.rest), ..Polls::FIRST };
            }
            return;
        }
        let attempt = self.outlook.next_attempt(seat.boot);
        local.wish = wish;
        local.moves += 1;
        if broken!(seat, MoveInTheDark) {
            local.taken.clear();
        }
        for node in local.enlisted().iter() {
            enlist(local, seat, claim, node, attempt, post);
        }
    }

    /// Repeats the request to arbiters that gave their permission: they answer with what others
    /// have, and tell when that changes.
    fn watch(&mut self, seat: &Seat<'_, Arbiter>, claim: ClaimId, post: &mut Post<'_>) {
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        let mut asked = Vec::new();
        for (&node, permit) in &mut local.enlisted {
            if let PermitState::Given { watched, .. } = &mut permit.state
                && !std::mem::replace(watched, true)
            {
                asked.push(node);
            }
        }
        for node in asked {
            post.send(node, local.request(claim, &local.enlisted[&node], seat.now));
        }
    }

    /// Where permissions only count, arbiters asked later must lock what the client uses.
    pub(super) fn name_used(
        &mut self,
        seat: &Seat<'_, Arbiter>,
        claim: ClaimId,
        again: bool,
        post: &mut Post<'_>,
    ) {
        let local = self.claims.get_mut(&claim).expect("the caller has looked it up");
        let Some(pick) = local.pick.clone() else { return };
        for (&node, permit) in &mut local.enlisted {
            if let PermitState::Given { named, .. } = &mut permit.state
                && broken!(seat, C7MoveWithoutNames)
            {
                *named = pick.round;
            }
            if permit.is_given() && !permit.has_locked(&pick) {
                name_to(claim, &pick, true, (node, permit), again, post);
            }
        }
    }

    /// Tells an arbiter that asks which claims of this home are not over there.
    pub(super) fn on_roll(&self, seat: &Seat<'_, Arbiter>, from: NodeId, post: &mut Post<'_>) {
        let attempt = crate::attempt::Attempt { boot: seat.boot, clock: self.outlook.clock.0 };
        let lists = |(_, local): &(&ClaimId, &Local)| local.enlisted.contains_key(&from);
        let claims = self.claims.iter().filter(lists).map(|(&claim, _)| claim).collect();
        post.send(from, Message::Alive { attempt, claims });
    }
}

/// Names a pick to one arbiter, unless it was told and this is not to be repeated.
fn name_to(
    claim: ClaimId,
    pick: &Pick,
    used: bool,
    (node, permit): (NodeId, &mut Permit),
    again: bool,
    post: &mut Post<'_>,
) {
    let attempt = permit.attempt;
    let PermitState::Given { grant, told, .. } = &mut permit.state else { return };
    if again || *told != pick.round {
        *told = pick.round;
        let (grant, pick) = (*grant, pick.clone());
        post.send(node, Message::Name { claim, attempt, grant, pick, used });
    }
}
