//! Every question about a family, answered in the best way known: in closed form by its rule, else
//! by computation on the quorums written out, else by a bound, and always saying which.

use std::cell::OnceCell;

use quorate_core::{NodeId, NodeSet};

use crate::catalog::Family;
use crate::rule::Rule;
use crate::sampling::{self, Estimate, Samples};
use crate::set::SMALL;
use crate::{
    Chances, Domination, Effort, Explicit, Natural, Ratio, Reach, Symmetric, Table, TooLarge,
    domination, fewest_apart, frontier, hitting_bounds, largest_k, load, load_with_capacities,
    smallest_hitting,
};

/// How an availability was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// The rule knows it.
    ClosedForm,
    /// Counting all sets of nodes.
    Table,
    /// A decision diagram.
    Diagram,
    /// Sampling; the bounds hold with 99 % confidence.
    Sampling,
}

/// An availability with what is certain, or nearly so, about it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Availability {
    /// Lower bound.
    pub low: f64,
    /// Best estimate.
    pub value: f64,
    /// Upper bound.
    pub high: f64,
    /// One minus the best estimate, with as many digits.
    pub missing: f64,
    /// How it was found.
    pub method: Method,
}

impl Availability {
    fn exact(chances: Chances, method: Method) -> Self {
        let Chances { alive, dead } = chances.clamped();
        Availability { low: alive, value: alive, high: alive, missing: dead, method }
    }
}

/// A number known exactly or between bounds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Between<T> {
    /// Lower bound.
    pub low: T,
    /// Upper bound.
    pub high: T,
}

impl<T: Copy + PartialEq> Between<T> {
    fn exactly(value: T) -> Self {
        Between { low: value, high: value }
    }
}

impl Between<usize> {
    /// The number, if known.
    pub fn known(self) -> Option<usize> {
        (self.low == self.high).then_some(self.low)
    }
}

/// A family under examination.
#[derive(Debug)]
pub struct Answers<'a> {
    rule: &'a dyn Rule,
    listed: OnceCell<Option<Explicit>>,
    minimal: OnceCell<Option<Explicit>>,
}

/// Most quorums that are written out.
pub const LISTED_MAX: usize = 250_000;
/// Most samples drawn for one availability.
const SAMPLES: u64 = 4_000_000;
const SEED: u64 = 0x5eed;

impl<'a> Answers<'a> {
    /// Examines a family of the catalogue.
    pub fn new(family: &'a Family) -> Self {
        Answers::of(family.rule.as_ref())
    }

    /// Examines a rule.
    pub fn of(rule: &'a dyn Rule) -> Self {
        Answers { rule, listed: OnceCell::new(), minimal: OnceCell::new() }
    }

    /// The rule.
    pub fn rule(&self) -> &dyn Rule {
        self.rule
    }

    /// The quorums as constructed, unless there are too many to write out.
    pub fn listed(&self) -> Option<&Explicit> {
        let list = || {
            let quorums = self.rule.enumerate(LISTED_MAX)?;
            Some(Explicit::new(self.rule.nodes(), quorums).expect("a rule gives a proper family"))
        };
        self.listed.get_or_init(list).as_ref()
    }

    /// The minimal quorums, unless there are too many.
    pub fn minimal(&self) -> Option<&Explicit> {
        self.minimal.get_or_init(|| self.listed().map(Explicit::minimalised)).as_ref()
    }

    /// Whether no quorum contains another.
    pub fn is_minimal(&self) -> Option<bool> {
        self.rule.is_minimal().or_else(|| Some(self.listed()?.inclusion().is_none()))
    }

    /// The largest k for which any k+1 quorums meet.
    pub fn reach(&self, effort: &mut Effort<'_>) -> Result<Reach, TooLarge> {
        if let Some(reach) = self.rule.reach() {
            return Ok(reach);
        }
        let minimal = self.minimal().ok_or(TooLarge { limit: LISTED_MAX as u64 })?;
        effort.renew();
        largest_k(minimal, effort)
    }

    /// Whether any `units` + 1 quorums meet, decided even where the largest k is not.
    pub fn intersecting(&self, units: usize, effort: &mut Effort<'_>) -> Result<bool, TooLarge> {
        if let Some(reach) = self.rule.reach() {
            return Ok(reach.covers(units));
        }
        let minimal = self.minimal().ok_or(TooLarge { limit: LISTED_MAX as u64 })?;
        effort.renew();
        Ok(fewest_apart(minimal, units + 1, effort)?.is_none())
    }

    /// Whether the family is dominated; `None` if it is no `units`-arbiter to begin with, even
    /// minimalised.
    pub fn domination(
        &self,
        units: usize,
        effort: &mut Effort<'_>,
    ) -> Result<Option<Domination>, TooLarge> {
        if !self.intersecting(units, effort)? {
            return Ok(None);
        }
        let small = self.rule.nodes() <= 14;
        if let (Some(known), false) = (self.rule.domination(units), small) {
            return Ok(Some(known));
        }
        match self.minimal() {
            Some(minimal) => {
                effort.renew();
                domination(minimal, units, effort).map(Some)
            }
            None => match self.rule.domination(units) {
                Some(known) => Ok(Some(known)),
                None => Err(TooLarge { limit: LISTED_MAX as u64 }),
            },
        }
    }

    /// Crashes that are always survived.
    pub fn survives(&self, effort: &mut Effort<'_>) -> Between<usize> {
        let nodes = self.rule.nodes();
        if let Some(survives) = self.rule.survives() {
            return Between::exactly(survives);
        }
        let Some(minimal) = self.minimal() else { return Between { low: 0, high: nodes } };
        effort.renew();
        match smallest_hitting(minimal, effort) {
            Ok(Some(hitting)) => Between::exactly(hitting.len() - 1),
            Ok(None) => Between::exactly(nodes),
            Err(_) => {
                let (low, high) = hitting_bounds(minimal);
                Between { low: low - 1, high: high - 1 }
            }
        }
    }

    /// Whether all nodes have one effort and all quorums one size.
    pub fn symmetric(&self) -> Option<Option<Symmetric>> {
        self.rule.symmetric().or_else(|| Some(self.listed()?.symmetric()))
    }

    /// The largest share of quorums one node is in.
    pub fn resiliency(&self) -> Option<Ratio> {
        self.rule.resiliency().or_else(|| Some(self.listed()?.resiliency()))
    }

    /// The load, with nodes alike. Where it is too large to compute, the average node under any
    /// strategy bounds it from below, and choosing quorums evenly from above.
    pub fn load(&self, smallest: usize) -> Between<f64> {
        let nodes = self.rule.nodes();
        if let Some(load) = self.rule.load(&vec![1.0; nodes]) {
            return Between::exactly(load);
        }
        if let Some(Ok(load)) = self.minimal().map(load) {
            let exact = load.is_exact();
            return Between { low: if exact { load.high } else { load.low }, high: load.high };
        }
        Between {
            low: smallest as f64 / nodes as f64,
            high: self.resiliency().map_or(1.0, |ratio| ratio.to_f64()),
        }
    }

    /// Requests per second the family can answer, node i answering `capacities[i]`.
    pub fn capacity(&self, capacities: &[f64]) -> Option<Between<f64>> {
        if let Some(load) = self.rule.load(capacities) {
            return Some(Between::exactly(1.0 / load));
        }
        let load = load_with_capacities(self.minimal()?, capacities).ok()?;
        Some(Between { low: 1.0 / load.high, high: 1.0 / load.low })
    }

    /// The probability that a quorum is alive, node i being alive with `up[i]`.
    pub fn availability(&self, up: &[f64], effort: &mut Effort<'_>) -> Availability {
        if let Some(chances) = self.rule.chances(up) {
            return Availability::exact(chances, Method::ClosedForm);
        }
        let even = up.windows(2).all(|pair| pair[0] == pair[1]);
        if let Some(minimal) = self.minimal() {
            if even && minimal.nodes() <= Table::NODES_MAX {
                let chances = from_survivors(&Table::new(minimal).survivors(), up[0]);
                return Availability::exact(chances, Method::Table);
            }
            effort.renew();
            let fits = minimal.quorums().len() <= 1_000;
            if let Some(Ok(chances)) = fits.then(|| frontier::chances(minimal, up, effort)) {
                return Availability::exact(chances, Method::Diagram);
            }
        }
        let estimate = self.sampled(up, even, effort);
        let Estimate { low, value, high, .. } = estimate;
        Availability { low, value, high, missing: 1.0 - value, method: Method::Sampling }
    }

    /// The availability for each of these probabilities, all nodes alike: a curve to draw. Sampled
    /// where nothing else is feasible, without bounds.
    pub fn availability_curve(&self, ups: &[f64], effort: &mut Effort<'_>) -> Vec<f64> {
        let nodes = self.rule.nodes();
        let closed: Option<Vec<f64>> =
            ups.iter().map(|up| self.rule.availability(&vec![*up; nodes])).collect();
        if let Some(closed) = closed {
            return closed.into_iter().map(|value| value.clamp(0.0, 1.0)).collect();
        }
        let minimal = self.minimal();
        if let Some(minimal) = minimal.filter(|minimal| minimal.nodes() <= Table::NODES_MAX) {
            let survivors = Table::new(minimal).survivors();
            return ups.iter().map(|up| from_survivors(&survivors, *up).clamped().alive).collect();
        }
        effort.renew();
        let shares = match minimal.filter(|minimal| minimal.nodes() <= 120) {
            Some(minimal) => frontier::survivors(minimal, effort).ok().map(|counts| {
                let of = |(size, count): (usize, &u128)| {
                    *count as f64 / Natural::binomial(nodes, size).to_f64()
                };
                counts.iter().enumerate().map(of).rev().collect()
            }),
            None => None,
        };
        let shares: Vec<f64> = shares.unwrap_or_else(|| {
            let plan = self.sampling_plan(effort);
            sampling::survived_shares(plan, self.survival())
        });
        let at = |up: &f64| {
            let weights = sampling::binomial_weights(nodes, 1.0 - up);
            weights.iter().zip(&shares).map(|(weight, share)| weight * share).sum::<f64>().min(1.0)
        };
        ups.iter().map(at).collect()
    }

    /// Whether a quorum is left when the nodes listed are dead: on masks if the family is small.
    fn survival(&self) -> impl Fn(&[usize]) -> bool + '_ {
        let masks = self.minimal().filter(|minimal| minimal.nodes() <= SMALL);
        let masks: Option<Vec<u128>> = masks.map(Explicit::sets);
        move |dead: &[usize]| match &masks {
            Some(masks) => {
                let dead = dead.iter().fold(0u128, |set, node| set | 1 << node);
                masks.iter().any(|mask| mask & dead == 0)
            }
            None => {
                let mut alive = NodeSet::first(self.rule.nodes());
                for node in dead {
                    alive.remove(NodeId::from(*node));
                }
                self.rule.contains_quorum(&alive)
            }
        }
    }

    fn sampling_plan(&self, effort: &mut Effort<'_>) -> Samples {
        let nodes = self.rule.nodes();
        // Keep the work of all samples together within reason, whatever one membership test costs.
        let listed = self.minimal().map_or(0, |minimal| minimal.quorums().len());
        let cost = if nodes <= SMALL && listed > 0 {
            (nodes + listed) / 4
        } else {
            4 * nodes + 8 * listed
        };
        let smallest = self.rule.sizes().and_then(|sizes| sizes.keys().next().copied());
        Samples {
            nodes,
            survives: self.survives(effort).low,
            smallest: smallest.unwrap_or(1),
            samples: (80_000_000 / cost.max(1) as u64).clamp(1_000, SAMPLES),
            seed: SEED,
        }
    }

    fn sampled(&self, up: &[f64], even: bool, effort: &mut Effort<'_>) -> Estimate {
        let plan = self.sampling_plan(effort);
        if even {
            sampling::by_strata(plan, up[0], self.survival())
        } else {
            sampling::plainly(plan.samples, plan.seed, up, self.survival())
        }
    }
}

/// Availability from the number of surviving sets of each size.
pub fn from_survivors(survivors: &[u64], up: f64) -> Chances {
    let nodes = survivors.len() - 1;
    let weights = sampling::binomial_weights(nodes, up);
    let mut chances = Chances { alive: 0.0, dead: 0.0 };
    for (size, &count) in survivors.iter().enumerate() {
        let all = Natural::binomial(nodes, size);
        let others = all.minus(&Natural::from(u128::from(count))).expect("no more sets than all");
        chances.alive += weights[size] * (count as f64 / all.to_f64());
        chances.dead += weights[size] * (others.to_f64() / all.to_f64());
    }
    chances
}
