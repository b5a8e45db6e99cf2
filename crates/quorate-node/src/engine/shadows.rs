//! Who would go on without this node: whether the shadows of its seats know all that is in force,
//! and whether they answer (charter spec S13 to S16).
//!
//! Of a group's pools those are looked at of which its shadow may not know all, and of all pools
//! those whose shadow owes an answer: of most it knows all and owes nothing, however many they are.

use std::collections::{BTreeMap, BTreeSet};

use quorate_charter::Group;
use quorate_core::{Event, Moment, Shadow};

use super::Engine;
use super::pools::Pool;
use crate::charter::{Seated, Want};

/// Pools in use over which this node decides, and whose shadows may not know all of them.
#[derive(Debug, Default)]
pub(super) struct Unshown {
    /// By group, as its shadow is named now.
    all: BTreeMap<Group, BTreeSet<usize>>,
    /// Those whose shadow had something to answer when anything happened to them last.
    owed: BTreeSet<usize>,
}

impl Unshown {
    /// Somebody else shadows a group, or anew: what the one before knew counts for nothing.
    pub(super) fn forget(&mut self, group: Group) {
        self.all.remove(&group);
    }

    fn of(&self, group: Group) -> impl Iterator<Item = usize> + '_ {
        self.all.get(&group).into_iter().flatten().copied()
    }
}

impl Engine {
    /// The seat of a pool hears who shadows it, if this node decides. Whoever was named since it
    /// heard that last knows nothing yet.
    pub(super) fn tell_shadow(&mut self, seat: usize, is: Seated, named: bool) {
        if is.tenure.node != self.config.me || !self.is_shadowed(seat) {
            return;
        }
        if named && is.shadow.is_some() {
            let group = Group::of(&self.pools[seat].name);
            self.charter.unshown.all.entry(group).or_default().insert(seat);
        }
        self.step(seat, Event::Charter(is.shadowed()));
        if let Some(shadow) = is.shadow.filter(|shadow| !shadow.whole) {
            self.charter.asks_again(seat, shadow.node);
        }
    }

    /// Whether the seat of a pool has a shadow when the charter names one.
    fn is_shadowed(&self, seat: usize) -> bool {
        self.pools[seat].def.protocol.about.shadowed
    }

    /// The shadow of a pool's seat knows all that is in force in the pool.
    pub(super) fn vouch(&mut self, seat: usize, term: u32, naming: u64) {
        let group = Group::of(&self.pools[seat].name);
        let named = self.shadow_of_mine(group).map(|(is, shadow)| (is.tenure.term, shadow.naming));
        if named != Some((term, naming)) {
            return;
        }
        self.need_not_vouch(seat);
        self.see_whole(group);
    }

    /// A seat has stopped, or its shadow knows all.
    pub(super) fn need_not_vouch(&mut self, seat: usize) {
        let group = Group::of(&self.pools[seat].name);
        if let Some(unshown) = self.charter.unshown.all.get_mut(&group) {
            unshown.remove(&seat);
        }
    }

    /// If the shadow of a group knows all of all its pools that are in use here, the charter is to
    /// say so. A pool that comes into use later begins with its shadow: nobody is told of a grant
    /// before that knows of it, and it takes nothing over that it was not shown.
    pub(super) fn see_whole(&self, group: Group) {
        let Some((is, shadow)) = self.shadow_of_mine(group).filter(|(_, it)| !it.whole) else {
            return;
        };
        if let Some(hall) = self.charter.hall()
            && self.charter.unshown.of(group).next().is_none()
        {
            hall.wants(group, (is.tenure.term, shadow.naming), Want::Whole);
        }
    }

    /// The pools over which this node decides and nobody would at once without it, although they
    /// should have a shadow: the first ones, and how many there are.
    pub(super) fn unshadowed(&self, most: usize) -> (Vec<&Pool>, usize) {
        let (mut first, mut count) = (Vec::new(), 0);
        let mut see = |seat: usize| {
            if first.len() < most {
                first.push(&self.pools[seat]);
            }
            count += 1;
        };
        for (group, pools) in self.charter.pools() {
            let Some(is) = self.charter.seated_of(*group).filter(|is| self.is_mine(&is.tenure))
            else {
                continue;
            };
            match is.shadow.is_some_and(|shadow| shadow.whole) {
                true => self.charter.unshown.of(*group).for_each(&mut see),
                false => {
                    pools.iter().copied().filter(|it| self.is_shadowed(*it)).for_each(&mut see);
                }
            }
        }
        (first, count)
    }

    /// Who shadows a group, if this life of this node decides for it.
    fn shadow_of_mine(&self, group: Group) -> Option<(Seated, Shadow)> {
        let is = self.charter.seated_of(group)?;
        Some((is, is.shadow.filter(|_| self.is_mine(&is.tenure))?))
    }

    /// Something happened to a seat of which this node decides.
    pub(super) fn note_owed(&mut self, seat: usize) {
        if self.pools[seat].seat.is_owed() {
            self.charter.unshown.owed.insert(seat);
        }
    }

    /// Shadows that do not answer are struck: nobody new is granted anything before that (charter
    /// spec S15). The charter's leader strikes who is gone; this is for who is gone only from here.
    pub(super) fn strike_the_silent(&mut self, now: Moment) {
        let Some(charter) = self.config.charter else { return };
        let mut owed = std::mem::take(&mut self.charter.unshown.owed);
        owed.retain(|seat| self.pools[*seat].seat.is_owed());
        let mut silent = BTreeSet::new();
        for seat in &owed {
            let group = Group::of(&self.pools[*seat].name);
            let shadow = self.shadow_of_mine(group).map(|(_, shadow)| shadow.naming);
            let shadowing = self.pools[*seat].seat.health(now).shadow;
            let its = shadowing.filter(|it| Some(it.naming) == shadow);
            let since = its.and_then(|it| it.silent_since);
            if since.is_some_and(|since| now.since(since) > charter.suspect_after) {
                silent.insert(group);
            }
        }
        self.charter.unshown.owed = owed;
        let (suspects, Some(hall)) = (self.suspects(), self.charter.hall()) else { return };
        for group in Group::all() {
            let Some((is, shadow)) = self.shadow_of_mine(group) else { continue };
            if suspects.contains(shadow.node) || silent.contains(&group) {
                hall.wants(group, (is.tenure.term, shadow.naming), Want::Strike);
            }
        }
    }
}
