//! What a pool lends, to whom, for how long and in which order: all that a pool that one node
//! decides (`central`) and one whose table quorums keep (`table`) have in common.

use std::sync::Arc;
use std::time::Duration;

use quorate_core::{
    LINES_MAX, Lease, Line, NodeId, Refusal, Shares, UNITS_MAX, Unit, Units, Wanted,
};

use crate::allocator::labels::Labels;
use crate::allocator::{Allocator, Among, Impossible, Policy, Want};
#[cfg(test)]
use crate::central::Mutant;

/// Longest text that is kept with a claim that stands, in bytes.
pub const TEXT_MAX: usize = 4096;

/// What there is, who may use it, who may pass whom, and for how long.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Goods {
    /// How many units there are. The paper's k.
    pub units: u32,
    /// For pools that change while they run: the most units that it ever had, before and now.
    /// Holders may have some that it has no more, and homes may not know yet what there is.
    pub ever: Option<u32>,
    /// For pools that change while they run: the units that are granted to nobody, ascending.
    /// Whoever has one keeps it.
    pub drained: Arc<[Unit]>,
    /// How long a grant lasts without renewal. There is no pool without a lease: a lost release
    /// would lose units.
    pub lease: Lease,
    /// For pools whose lease is another than it was: what it was before. Promises by those leases
    /// may be in force, and homes may know another lease than those who decide do.
    pub lease_ever: Option<LeaseEver>,
    /// How long a home lets a claim wait before it asks again, once to twice this.
    pub retry: Duration,
    /// Who may pass whom.
    pub fairness: Fairness,
    /// Whether those who decide write grants down before they tell them. If not, they wait out one
    /// lease after a restart.
    pub durable: bool,
    /// Whether claims may ask to stand ([`Wanted::standing`]): for pools that are durable and whose
    /// books enough nodes keep.
    pub standing: bool,
    /// Which units the clients of each node may use, ascending, node by node: the paper's alpha. A
    /// node beyond the list may use none. `None`: everybody may use any.
    pub eligible: Option<Arc<[Arc<[Unit]>]>>,
    /// What is known of each unit at first, so that claims can choose. `None`: units are alike, and
    /// claims with lines are refused.
    pub labels: Option<Arc<Labels>>,
    /// The rule that is broken, for tests that the harness finds it.
    #[cfg(test)]
    pub(crate) mutant: Option<Mutant>,
}

impl Goods {
    /// So many units that are alike: oldest first, leases of ten seconds, nothing written down.
    pub fn new(units: u32) -> Self {
        Goods {
            units,
            ever: None,
            drained: Arc::default(),
            lease: Lease::new(Duration::from_secs(10), 200),
            lease_ever: None,
            retry: Duration::from_secs(1),
            fairness: Fairness::Fifo,
            durable: false,
            standing: false,
            eligible: None,
            labels: None,
            #[cfg(test)]
            mutant: None,
        }
    }

    /// How many units anybody may hold or may have held.
    pub(crate) fn most(&self) -> u32 {
        #[cfg(test)]
        if self.mutant == Some(Mutant::ForgetRemoved) {
            return self.units;
        }
        self.ever.map_or(self.units, |ever| ever.max(self.units))
    }

    /// How long any promise may last that was ever made in this pool.
    pub fn longest(&self) -> Duration {
        let lease = self.lease.length();
        self.lease_ever.map_or(lease, |ever| ever.longest.max(lease))
    }

    /// Whether a unit is granted to anybody.
    pub(crate) fn lends(&self, unit: Unit) -> bool {
        #[cfg(test)]
        if self.mutant == Some(Mutant::GrantDrained) {
            return unit.0 < self.units;
        }
        unit.0 < self.units && self.drained.binary_search(&unit).is_err()
    }

    /// Most units of what a client shows, as a home judges it, which may know less than whoever
    /// decided.
    pub(crate) fn most_shown(&self) -> u32 {
        self.ever.map_or(self.units, |_| UNITS_MAX)
    }

    /// How long a claim that is out of its turn is kept, so that it has its place when its home
    /// asks for it again: much longer than a home that lives is taken for dead, and not for ever.
    pub(crate) fn kept_absent(&self) -> Duration {
        self.lease.length().saturating_mul(10)
    }

    /// The units that clients of a node may use.
    pub(crate) fn eligible(&self, node: NodeId) -> Among {
        let nodes = self.eligible.as_ref()?;
        Some(nodes.get(node.index()).cloned().unwrap_or_default())
    }

    /// One line of a claim, as the allocator wants it: what will do, by these labels, and may be
    /// used. Without labels, what could do if they were others.
    fn want(&self, labels: Option<&Labels>, node: NodeId, line: &Line) -> Want {
        let all = line.among.len() as u32 == self.units;
        let chosen = line.labels.as_ref().zip(labels).map(|(wanted, all)| all.having(wanted));
        let mut among = match (chosen, all) {
            (None, true) => None,
            (None, false) => Some(Arc::clone(&line.among)),
            (Some(chosen), true) => Some(chosen),
            (Some(chosen), false) => Some(common(&chosen, &line.among)),
        };
        if let Some(own) = self.eligible(node) {
            among = Some(among.map_or_else(|| Arc::clone(&own), |among| common(&among, &own)));
        }
        let among = among.filter(|units| (units.len() as u32) < self.units);
        Want { among, units: line.units.get() }
    }

    /// What a claim of a node's client asks for that does not choose.
    pub(crate) fn any(&self, node: NodeId, units: Units) -> Want {
        Want { among: self.eligible(node), units: units.get() }
    }

    /// What a claim of a node's client asks for, line by line, by the labels the pool began with.
    pub(crate) fn wants(&self, node: NodeId, lines: &[Line]) -> Vec<Want> {
        self.wants_by(self.labels.as_deref(), node, lines)
    }

    /// The same by other labels; without any, what could do if labels changed.
    pub(crate) fn wants_by(
        &self,
        labels: Option<&Labels>,
        node: NodeId,
        lines: &[Line],
    ) -> Vec<Want> {
        lines.iter().map(|line| self.want(labels, node, line)).collect()
    }

    /// Whether a claim of this pool can ask for this.
    pub(crate) fn has(&self, wanted: &Wanted) -> bool {
        wanted.units.get() <= self.units
            && wanted.standing.as_ref().is_none_or(|text| self.standing && text.len() <= TEXT_MAX)
            && wanted.lines.as_deref().is_none_or(|lines| self.has_lines(wanted.units, lines))
    }

    fn has_lines(&self, units: Units, lines: &[Line]) -> bool {
        let named = |line: &Line| {
            line.among.windows(2).all(|pair| pair[0] < pair[1])
                && line.among.last().is_none_or(|unit| unit.0 < self.units)
        };
        let sum: u64 = lines.iter().map(|line| u64::from(line.units.get())).sum();
        self.labels.is_some()
            && (1..=LINES_MAX).contains(&lines.len())
            && sum == u64::from(units.get())
            && lines.iter().all(named)
    }

    /// Why a claim of a node's client can never be granted, if it cannot, by these labels; without
    /// any, whatever labels there will be.
    pub(crate) fn refusal(
        &self,
        node: NodeId,
        wanted: &Wanted,
        labels: Option<&Labels>,
    ) -> Option<Refusal> {
        let Wanted { units, lines, .. } = wanted;
        let drained = self.drained.iter().filter(|unit| unit.0 < self.units).count() as u32;
        if units.get() > self.units - drained {
            assert!(self.ever.is_some(), "h <= k was settled at the door");
            return Some(Refusal::NeverEnough);
        }
        if let Some(lines) = lines {
            if self.labels.is_none() {
                return Some(Refusal::NotByName);
            }
            let settled = self.has_lines(*units, lines);
            assert!(settled || self.ever.is_some(), "lines were settled at the door");
            if !settled {
                return Some(Refusal::NeverEnough);
            }
            if self.serve(&self.wants_by(labels, node, lines)).is_err() {
                return Some(Refusal::NeverEnough);
            }
        }
        (units.get() > self.units_for(node)).then_some(Refusal::TooManyForOneNode)
    }

    /// Whether a claim of a node's client with these lines could ever be granted, by the labels the
    /// pool began with.
    ///
    /// # Errors
    /// It could not; nothing was claimed.
    pub fn possible(&self, node: NodeId, lines: &[Line]) -> Result<(), Impossible> {
        self.serve(&self.wants(node, lines))
    }

    fn serve(&self, wants: &[Want]) -> Result<(), Impossible> {
        let mut units = Allocator::new(self.units, Policy::STRICT);
        for unit in &*self.drained {
            units.drain(*unit);
        }
        units.serves(wants)
    }

    /// Whether these units are what a claim asks for, whatever their labels.
    pub(crate) fn serves(&self, wanted: &Wanted, shares: &Shares) -> bool {
        shares.len() == wanted.units.get() as usize
            && shares.iter().all(|share| share.unit.0 < self.most_shown())
            && wanted.lines.as_deref().is_none_or(|lines| self.suits(lines, shares))
    }

    fn suits(&self, lines: &[Line], shares: &Shares) -> bool {
        let granted = |line: &Line| Want {
            among: Some(
                shares
                    .iter()
                    .map(|share| share.unit)
                    .filter(|unit| line.among.binary_search(unit).is_ok())
                    .collect(),
            ),
            units: line.units.get(),
        };
        let wants: Vec<Want> = lines.iter().map(granted).collect();
        // Whoever decides may lend others than we have heard of.
        Allocator::new(self.most(), Policy::STRICT).serves(&wants).is_ok()
    }

    /// How many units one claim of a node can have at most.
    fn units_for(&self, node: NodeId) -> u32 {
        let lent = |units: Arc<[Unit]>| {
            units.iter().filter(|unit| self.drained.binary_search(unit).is_err()).count() as u32
        };
        self.eligible(node).map_or(self.units, lent)
    }

    /// Most times a waiting claim may be passed. Where units differ, a younger claim that wants
    /// other units delays nobody by passing, so the number of passes says nothing.
    pub(crate) fn overtakes_max(&self) -> Option<u32> {
        let alike = self.eligible.is_none() && self.labels.is_none();
        alike.then(|| self.fairness.overtakes_max())
    }

    /// Who decides who gets which units: all of them free.
    pub(crate) fn allocator(&self) -> Allocator {
        #[allow(unused_mut, reason = "a mutant changes it")]
        let mut allocator = Allocator::new(self.most(), self.fairness.policy());
        #[cfg(test)]
        {
            use crate::allocator::Mutant as Broken;
            let other =
                |protect, patience| Allocator::new(self.units, Policy { protect, patience });
            match self.mutant {
                Some(Mutant::OvertakeWithoutBound) => allocator = other(1, u32::MAX),
                Some(Mutant::Greedy) => allocator = other(0, 0),
                Some(Mutant::HandOverEarly) => allocator.mutant = Some(Broken::HandOverEarly),
                Some(Mutant::StrictFifo) => allocator.mutant = Some(Broken::StrictFifo),
                Some(Mutant::BindEarly) => allocator.mutant = Some(Broken::BindEarly),
                Some(Mutant::CountOnly) => allocator.mutant = Some(Broken::CountOnly),
                _ => {}
            }
        }
        if self.most() > self.units || !self.drained.is_empty() {
            allocator.amend(self.most(), |unit| self.lends(unit), |_| false);
        }
        allocator
    }
}

/// What leases a pool has had.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LeaseEver {
    /// The one with which it was made.
    pub first: Duration,
    /// The longest, before and now.
    pub longest: Duration,
}

/// The units in both lists.
fn common(some: &[Unit], others: &[Unit]) -> Arc<[Unit]> {
    some.iter().filter(|unit| others.binary_search(unit).is_ok()).copied().collect()
}

/// Who may pass whom while a claim waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fairness {
    /// Oldest first: no claim is delayed by a younger one. Where all units are alike nobody passes.
    Fifo,
    /// A younger claim may pass a blocked older one if it fits now, until the oldest has been
    /// passed this often. Then nobody may delay the oldest.
    Backfill(u32),
}

impl Fairness {
    /// The same in the allocator's words.
    pub(crate) fn policy(self) -> Policy {
        match self {
            Fairness::Fifo => Policy::STRICT,
            Fairness::Backfill(patience) => Policy { protect: 1, patience },
        }
    }

    /// Most times a waiting claim may be passed.
    pub fn overtakes_max(self) -> u32 {
        match self {
            Fairness::Fifo => 0,
            Fairness::Backfill(bound) => bound,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A home that forgot, or that the client comes to, judges it by what any pool could have had.
    #[test]
    fn what_a_client_of_a_pool_that_changes_shows_is_a_claim() {
        for ever in [None, Some(3), Some(UNITS_MAX)] {
            let goods = Goods { ever, ..Goods::new(3) };
            assert!(Units::new(3, goods.most_shown()).is_ok(), "{ever:?}");
        }
    }
}
