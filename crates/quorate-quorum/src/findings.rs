//! Everything worth knowing about a family at once: what a report shows, and what the planner
//! weighs.

use std::collections::BTreeMap;

use crate::{
    Answers, Availability, Between, Domination, Effort, Natural, Ratio, Reach, Rule, Symmetric,
    bounds,
};

/// What was found out. `None` means that the question was too large to decide.
#[derive(Clone, Debug)]
pub struct Findings {
    /// Number of nodes.
    pub nodes: usize,
    /// Number of units the family is to guard.
    pub units: usize,
    /// Number of quorums, as constructed.
    pub quorums: Option<Natural>,
    /// Quorums by size.
    pub sizes: Option<BTreeMap<usize, Natural>>,
    /// Whether any `units` + 1 quorums meet.
    pub intersecting: Option<bool>,
    /// The largest k for which any k+1 quorums meet.
    pub reach: Option<Reach>,
    /// Whether no quorum contains another.
    pub minimal: Option<bool>,
    /// Whether the family, minimalised, is dominated; the inner `None`: it is no arbiter to begin
    /// with.
    pub domination: Option<Option<Domination>>,
    /// Whether all nodes do the same work; the inner `None`: they do not.
    pub symmetric: Option<Option<Symmetric>>,
    /// The largest share of quorums one node is in.
    pub resiliency: Option<Ratio>,
    /// Crashes always survived.
    pub survives: Between<usize>,
    /// The probability that a quorum is alive.
    pub availability: Availability,
    /// The load under the best strategy.
    pub load: Between<f64>,
}

impl Findings {
    /// Asks every question of `rule` for `units` units, node i being alive with `up[i]`.
    pub fn of(rule: &dyn Rule, units: usize, up: &[f64], effort: &mut Effort<'_>) -> Findings {
        let answers = Answers::of(rule);
        Findings::from_answers(&answers, units, up, effort)
    }

    /// The same for a family already under examination.
    pub fn from_answers(
        answers: &Answers<'_>,
        units: usize,
        up: &[f64],
        effort: &mut Effort<'_>,
    ) -> Findings {
        let sizes = answers.rule().sizes().or_else(|| Some(answers.listed()?.sizes()));
        let reach = answers.reach(effort).ok();
        let intersecting = match reach {
            Some(reach) => Some(reach.covers(units)),
            None => answers.intersecting(units, effort).ok(),
        };
        let smallest = sizes.as_ref().and_then(|sizes| sizes.keys().next().copied()).unwrap_or(1);
        Findings {
            nodes: answers.rule().nodes(),
            units,
            quorums: sizes.as_ref().map(total),
            sizes,
            intersecting,
            reach,
            minimal: answers.is_minimal(),
            domination: answers.domination(units, effort).ok(),
            symmetric: answers.symmetric(),
            resiliency: answers.resiliency(),
            survives: answers.survives(effort),
            availability: answers.availability(up, effort),
            load: answers.load(units, smallest),
        }
    }

    /// Whether the family is a k-arbiter: any k+1 quorums meet and none contains another.
    pub fn arbiter(&self) -> Option<bool> {
        match (self.intersecting, self.minimal) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        }
    }

    /// Members of a smallest and of a largest quorum.
    pub fn size_range(&self) -> Option<(usize, usize)> {
        let sizes = self.sizes.as_ref()?;
        Some((*sizes.keys().next()?, *sizes.keys().next_back()?))
    }

    /// Members of a quorum, on average over the quorums.
    pub fn mean_size(&self) -> Option<f64> {
        let (sizes, count) = (self.sizes.as_ref()?, self.quorums.as_ref()?);
        let members = sizes.iter().fold(Natural::zero(), |sum, (size, count)| {
            sum.plus(&count.times(&Natural::from(*size)))
        });
        Some(Ratio::new(members, count.clone()).to_f64())
    }

    /// The load, if known to nine digits.
    pub fn exact_load(&self) -> Option<f64> {
        (self.load.high - self.load.low <= 1e-9 * self.load.high).then_some(self.load.high)
    }

    /// No strategy of an arbiter with such quorums has a smaller load; `None` if it is no arbiter.
    pub fn load_min(&self) -> Option<f64> {
        let smallest = self.size_range().map_or(1, |(smallest, _)| smallest);
        let meets = self.intersecting == Some(true);
        meets.then(|| bounds::load_min(self.nodes, self.units, smallest))
    }
}

fn total(sizes: &BTreeMap<usize, Natural>) -> Natural {
    sizes.values().fold(Natural::zero(), |sum, count| sum.plus(count))
}
