//! Families as rules: what can be said about them without writing the quorums out.
//!
//! Uniform quorums on 10,000 nodes cannot be listed, yet everything about them is known. A rule can
//! always test whether living nodes contain a quorum and pick one; whatever its paper, or ours,
//! proves in closed form it answers as well, and `None` means "not known in closed form, compute
//! it".

use std::collections::BTreeMap;
use std::fmt;

use quorate_core::{NodeId, NodeSet};

use crate::sampling::Draws;
use crate::{Domination, Explicit, Expr, Natural, Ratio, Reach, Symmetric};

/// A family given by a rule.
pub trait Rule: fmt::Debug {
    /// How many nodes there are.
    fn nodes(&self) -> usize;

    /// Whether `alive` contains a quorum.
    fn contains_quorum(&self, alive: &NodeSet) -> bool;

    /// How many quorums there are of each size.
    fn sizes(&self) -> Option<BTreeMap<usize, Natural>>;

    /// The quorums, unless there are more than `most`.
    fn enumerate(&self, most: usize) -> Option<Vec<NodeSet>>;

    /// A minimal quorum among the living, chosen by the draws.
    fn pick(&self, alive: &NodeSet, draws: &mut Draws) -> Option<NodeSet> {
        pick_by_dropping(alive, draws, |set| self.contains_quorum(set))
    }

    /// The expression it is, if it is one: then it can be used without listing anything.
    fn as_expr(&self) -> Option<&Expr> {
        None
    }

    /// Whether no quorum contains another.
    fn is_minimal(&self) -> Option<bool> {
        Some(true)
    }

    /// The largest k for which any k+1 quorums meet.
    fn reach(&self) -> Option<Reach> {
        None
    }

    /// How many crashes are always survived.
    fn survives(&self) -> Option<usize> {
        None
    }

    /// The load, node i being able to answer `capacities[i]` requests per second.
    fn load(&self, _capacities: &[f64]) -> Option<f64> {
        None
    }

    /// The largest share of quorums that one node is in.
    fn resiliency(&self) -> Option<Ratio> {
        None
    }

    /// Whether all nodes have one effort and all quorums one size; the inner `None` means they have
    /// not.
    fn symmetric(&self) -> Option<Option<Symmetric>> {
        None
    }

    /// Whether the family is dominated as a `units`-arbiter, which it must be.
    fn domination(&self, _units: usize) -> Option<Domination> {
        None
    }

    /// How likely a quorum is alive, node i being alive with `up[i]`.
    fn chances(&self, _up: &[f64]) -> Option<Chances> {
        None
    }

    /// The probability that a quorum is alive, node i being alive with `up[i]`.
    fn availability(&self, up: &[f64]) -> Option<f64> {
        self.chances(up).map(|chances| chances.alive)
    }
}

/// How likely a quorum is alive. The two add up to one, but the smaller has digits that one minus
/// the larger has not.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Chances {
    /// That one is.
    pub alive: f64,
    /// That none is.
    pub dead: f64,
}

impl Chances {
    /// The same within bounds, which sums of rounded numbers may leave by a little.
    pub(crate) fn clamped(self) -> Self {
        Chances { alive: self.alive.clamp(0.0, 1.0), dead: self.dead.clamp(0.0, 1.0) }
    }
}

/// Drops nodes in random order as long as a quorum is left; what remains is a minimal quorum.
pub(crate) fn pick_by_dropping(
    alive: &NodeSet,
    draws: &mut Draws,
    contains_quorum: impl Fn(&NodeSet) -> bool,
) -> Option<NodeSet> {
    if !contains_quorum(alive) {
        return None;
    }
    let mut order: Vec<NodeId> = alive.iter().collect();
    shuffle(&mut order, draws);
    let mut left = alive.clone();
    for node in order {
        left.remove(node);
        if !contains_quorum(&left) {
            left.insert(node);
        }
    }
    Some(left)
}

pub(crate) fn shuffle<T>(items: &mut [T], draws: &mut Draws) {
    for position in 0..items.len() {
        let other = position + draws.below(items.len() - position);
        items.swap(position, other);
    }
}

impl Rule for Explicit {
    fn nodes(&self) -> usize {
        Explicit::nodes(self)
    }

    fn contains_quorum(&self, alive: &NodeSet) -> bool {
        Explicit::contains_quorum(self, alive)
    }

    fn sizes(&self) -> Option<BTreeMap<usize, Natural>> {
        Some(Explicit::sizes(self))
    }

    fn enumerate(&self, most: usize) -> Option<Vec<NodeSet>> {
        (self.quorums().len() <= most).then(|| self.quorums().to_vec())
    }

    fn pick(&self, alive: &NodeSet, draws: &mut Draws) -> Option<NodeSet> {
        let living: Vec<&NodeSet> =
            self.quorums().iter().filter(|quorum| quorum.is_subset(alive)).collect();
        let chosen = living.get(draws.below(living.len().max(1)))?;
        pick_by_dropping(chosen, draws, |set| Explicit::contains_quorum(self, set))
    }

    fn is_minimal(&self) -> Option<bool> {
        Some(self.inclusion().is_none())
    }

    fn resiliency(&self) -> Option<Ratio> {
        Some(Explicit::resiliency(self))
    }

    fn symmetric(&self) -> Option<Option<Symmetric>> {
        Some(Explicit::symmetric(self))
    }
}
