//! What the allocator promises (labels spec 6.2), judged from outside after every step of an
//! arbiter: by what claims asked for, by the labels of now, and by a slow second implementation.
//!
//! * **S**: units of holders are disjoint; what is granted is what was asked for.
//! * **M**: if holders and all who wait can be served together, nobody waits.
//! * **W**: if all ask for one unit, nobody waits who could be served beside the holders.
//! * *decision*: nobody waits whom the pass, as the specification prints it, grants.
//! * **A**: what the oldest lacks does not grow, once it is protected.
//! * **B**: it is granted at the latest when all have released who held units when it came to be
//!   the oldest and protected.
//!
//! L follows from B, and that everybody is served at the end is a law of every simulated run. M, W,
//! A, B and the decision are about pools at rest: nobody was told to move and has not answered, and
//! no promise of an earlier life may be in force. When units are drained or get other labels, A and
//! B begin anew.

use std::collections::{BTreeMap, BTreeSet};

use quorate_core::{ClaimId, NodeId, Relabelled, Seat, Unit, Units, Wanted};

use crate::allocator::oracle::{self, Case, Demand, mask};
use crate::central::Central;
use crate::central::arbiter::Arbiter;
use crate::central::booked::State;

/// What the laws remember of one life of an arbiter.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Theorems {
    /// What claims asked for, and at which node.
    asked: BTreeMap<ClaimId, Asked>,
    /// Who held units after the last step.
    held: BTreeSet<ClaimId>,
    /// Who was out of its turn after it.
    absent: BTreeSet<ClaimId>,
    /// The oldest who waits, if it is protected.
    oldest: Option<Oldest>,
    /// Units that are drained, and labels that differ, at that time.
    drained: Vec<Unit>,
    relabelled: BTreeMap<Unit, BTreeMap<String, String>>,
}

type Asked = (NodeId, Wanted);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Oldest {
    claim: ClaimId,
    /// Who held units when it came to be that, and still does.
    before: BTreeSet<ClaimId>,
    lacks: u32,
}

impl Theorems {
    /// A request is about to arrive.
    pub(super) fn asks(&mut self, claim: ClaimId, asked: Asked) {
        self.asked.entry(claim).or_insert(asked);
    }

    /// The arbiter has taken a step.
    ///
    /// # Errors
    /// The law that is broken, and how.
    pub(super) fn judge(
        &mut self,
        seat: &Seat<'_, Central>,
        arbiter: &Arbiter,
    ) -> Result<(), String> {
        if seat.pool.goods.units > oracle::UNITS_MAX {
            return Ok(());
        }
        self.asked.retain(|claim, _| arbiter.entries.contains_key(claim));
        self.law_s(seat, arbiter)?;
        self.held = holders(arbiter).map(|(claim, _)| claim).collect();
        let absent = arbiter.entries.iter().filter(|(_, booked)| booked.state == State::Absent);
        let absent: BTreeSet<ClaimId> = absent.map(|(claim, _)| *claim).collect();
        if !self.absent.is_subset(&absent) {
            self.oldest = None; // Whoever came back may be older.
        }
        self.absent = absent;
        if arbiter.grace || arbiter.allocator.is_moving() {
            return Ok(());
        }
        let changed = self.units_changed(arbiter.tags.changed(), arbiter);
        let case = self.case(seat, arbiter);
        let policy = seat.pool.goods.fairness.policy();
        case.judge(policy.protect)?;
        let protected = arbiter.allocator.oldest_passed() >= policy.patience;
        self.laws_a_and_b(&case, protected, changed)
    }

    fn law_s(&self, seat: &Seat<'_, Central>, arbiter: &Arbiter) -> Result<(), String> {
        let mut users: BTreeMap<Unit, ClaimId> = BTreeMap::new();
        for (claim, units) in holders(arbiter) {
            for unit in &units {
                if let Some(other) = users.insert(*unit, claim) {
                    return Err(format!("law S: {claim} and {other} both have {unit}"));
                }
            }
            let news = !self.held.contains(&claim);
            if let Some(asked) = self.asked.get(&claim).filter(|_| news) {
                // It may have been asked to move in the step that granted it.
                let units = granted(arbiter, claim);
                let got = units.iter().fold(0, |got, unit| got | 1 << unit.0);
                let mut wants = self.wants(seat, arbiter, asked);
                wants.iter_mut().for_each(|want| want.alpha &= got);
                let h: u32 = wants.iter().map(|want| want.units).sum();
                if units.len() as u32 != h || oracle::rho(&wants) != h {
                    return Err(format!("law S: {claim} has {units:?}, which will not do"));
                }
            }
        }
        Ok(())
    }

    /// What a claim asks for by the labels of now.
    fn wants(&self, seat: &Seat<'_, Central>, arbiter: &Arbiter, asked: &Asked) -> Vec<Demand> {
        let (node, Wanted { units, lines, .. }) = asked;
        let wants = match lines {
            None => vec![seat.pool.goods.any(*node, *units)],
            Some(lines) => seat.pool.goods.wants_by(arbiter.tags.labels(seat), *node, lines),
        };
        wants.iter().map(Demand::from).collect()
    }

    fn case(&self, seat: &Seat<'_, Central>, arbiter: &Arbiter) -> Case {
        let allocator = &arbiter.allocator;
        let seats: Vec<(Unit, u32)> =
            allocator.seats().map(|(unit, among)| (unit, mask(among))).collect();
        let free = (0..seat.pool.goods.units).filter(|unit| allocator.is_free(Unit(*unit)));
        let free = free.fold(0, |free, unit| free | 1 << unit);
        let there = seats.iter().fold(free, |there, (unit, _)| there | 1 << unit.0);
        let movers = seats.iter().map(|(_, alpha)| Demand { alpha: alpha & there, units: 1 });
        let booked = arbiter.entries.iter();
        let mut waiting: Vec<_> =
            booked.filter(|(_, booked)| booked.state == State::Waiting).collect();
        waiting.sort_by_key(|(claim, booked)| booked.ticket(**claim));
        let wants = |claim: &ClaimId| {
            let mut wants = self.wants(seat, arbiter, self.asked.get(claim)?);
            wants.iter_mut().for_each(|want| want.alpha &= there);
            Some((*claim, wants))
        };
        Case {
            holders: movers.collect(),
            waiting: waiting.into_iter().filter_map(|(claim, _)| wants(claim)).collect(),
            single: arbiter.entries.values().all(|booked| booked.wanted.units == Units::ONE),
        }
    }

    fn units_changed(&mut self, relabelled: Relabelled<'_>, arbiter: &Arbiter) -> bool {
        let drained: Vec<Unit> = arbiter.allocator.drained().collect();
        let changed = self.drained != drained || self.relabelled != *relabelled;
        if changed {
            (self.drained, self.relabelled) = (drained, relabelled.clone());
        }
        changed
    }

    fn laws_a_and_b(&mut self, case: &Case, protected: bool, changed: bool) -> Result<(), String> {
        let known = self.oldest.take().filter(|_| !changed);
        let Some((claim, wants)) = case.waiting.first().filter(|_| protected) else {
            return Ok(());
        };
        let lacks = oracle::lack(&case.holders, wants);
        let mut before = self.held.clone();
        if let Some(known) = known.filter(|known| known.claim == *claim) {
            if lacks > known.lacks {
                let was = known.lacks;
                return Err(format!("law A: {claim}, the oldest, lacked {was}, and now {lacks}"));
            }
            before = known.before;
            before.retain(|holder| self.held.contains(holder));
            if before.is_empty() {
                return Err(format!("law B: {claim} waits although all before it released"));
            }
        }
        self.oldest = Some(Oldest { claim: *claim, before, lacks });
        Ok(())
    }
}

fn holders(arbiter: &Arbiter) -> impl Iterator<Item = (ClaimId, Vec<Unit>)> + '_ {
    arbiter.entries.iter().filter_map(|(claim, booked)| match &booked.state {
        State::Granted { held, .. } => {
            Some((*claim, held.shares.iter().map(|share| share.unit).collect()))
        }
        State::Waiting | State::Absent => None,
    })
}

/// What a holder was granted, without what it is to move to.
fn granted(arbiter: &Arbiter, claim: ClaimId) -> Vec<Unit> {
    match &arbiter.entries[&claim].state {
        State::Granted { held, .. } => held.before_moves().iter().map(|share| share.unit).collect(),
        State::Waiting | State::Absent => Vec::new(),
    }
}
