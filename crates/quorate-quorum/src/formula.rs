//! Expressions as rules. When no node is named twice, everything factors: a threshold of thresholds
//! is answered level by level, whatever the number of nodes. That covers majority, uniform,
//! hierarchies and trees (RR-2523; arbiter spec T6).

use std::cell::OnceCell;
use std::collections::BTreeMap;

use quorate_core::{NodeId, NodeSet};

use crate::expr::Expr;
use crate::rule::{Chances, Rule, pick_by_dropping, shuffle};
use crate::sampling::Draws;
use crate::shape::Shape;
use crate::{Domination, Natural, Ratio, Reach, Symmetric};

/// A family given by an expression over nodes 0..`nodes`.
#[derive(Clone, Debug)]
pub struct Formula {
    nodes: usize,
    expr: Expr,
    /// Only thresholds, and no node twice: then everything factors.
    plain: bool,
    /// Counted once, when first asked for.
    shape: OnceCell<Shape>,
}

impl Formula {
    /// The family of `expr` over at least `nodes` nodes (more if it names more).
    pub fn new(nodes: usize, expr: Expr) -> Self {
        let mut named = expr.named();
        named.sort();
        let nodes = named.last().map_or(nodes, |last| nodes.max(last.index() + 1));
        let once = named.windows(2).all(|pair| pair[0] != pair[1]);
        let plain = once && thresholds_only(&expr);
        Formula { nodes, expr, plain, shape: OnceCell::new() }
    }

    /// The expression.
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    fn shape(&self) -> Option<&Shape> {
        self.plain.then(|| self.shape.get_or_init(|| Shape::of(&self.expr)))
    }
}

impl Rule for Formula {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn contains_quorum(&self, alive: &NodeSet) -> bool {
        self.expr.holds(alive)
    }

    fn as_expr(&self) -> Option<&Expr> {
        Some(&self.expr)
    }

    fn sizes(&self) -> Option<BTreeMap<usize, Natural>> {
        self.shape()?.sizes.clone()
    }

    fn enumerate(&self, most: usize) -> Option<Vec<NodeSet>> {
        if let Some(shape) = self.shape()
            && shape.count > Natural::from(most)
        {
            return None;
        }
        let mut quorums = self.expr.quorums(most)?;
        quorums.sort();
        Some(quorums)
    }

    fn pick(&self, alive: &NodeSet, draws: &mut Draws) -> Option<NodeSet> {
        if !self.plain {
            return pick_by_dropping(alive, draws, |set| self.expr.holds(set));
        }
        pick(&self.expr, alive, draws)
    }

    fn reach(&self) -> Option<Reach> {
        self.plain.then(|| Reach::from_fewest(fewest_apart(&self.expr)))
    }

    fn survives(&self) -> Option<usize> {
        self.plain.then(|| smallest_hitting(&self.expr) - 1)
    }

    fn load(&self, capacities: &[f64]) -> Option<f64> {
        self.plain.then(|| load(&self.expr, capacities))
    }

    fn resiliency(&self) -> Option<Ratio> {
        Some(self.shape()?.share_max.clone())
    }

    fn symmetric(&self) -> Option<Option<Symmetric>> {
        let shape = self.shape()?;
        if shape.share_min != shape.share_max || shape.nodes != self.nodes {
            return Some(None);
        }
        let sizes = shape.sizes.as_ref()?;
        let size = sizes.keys().next().copied()?;
        let even = sizes.len() == 1;
        Some(even.then(|| Symmetric { effort: shape.share_max.share_of(&shape.count), size }))
    }

    fn domination(&self, units: usize) -> Option<Domination> {
        if !self.plain || !gates_are_arbiters(&self.expr, units) {
            return None;
        }
        let witness = witness(&self.expr, units);
        Some(witness.map_or(Domination::Nondominated, Domination::Dominated))
    }

    fn chances(&self, up: &[f64]) -> Option<Chances> {
        let mut named = self.expr.named();
        named.sort();
        named.windows(2).all(|pair| pair[0] != pair[1]).then(|| chances(&self.expr, up))
    }
}

fn thresholds_only(expr: &Expr) -> bool {
    match expr {
        Expr::Node(_) => true,
        Expr::Choose { of, .. } => of.iter().all(thresholds_only),
        Expr::Weighted { .. } => false,
    }
}

fn pick(expr: &Expr, alive: &NodeSet, draws: &mut Draws) -> Option<NodeSet> {
    match expr {
        Expr::Node(node) => alive.contains(*node).then(|| [*node].into_iter().collect()),
        Expr::Choose { need, of } => {
            let mut order: Vec<&Expr> = of.iter().collect();
            shuffle(&mut order, draws);
            let mut picked: Vec<NodeId> = Vec::new();
            let mut found = 0;
            for part in order {
                if found < *need
                    && let Some(quorum) = pick(part, alive, draws)
                {
                    picked.extend(quorum.iter());
                    found += 1;
                }
            }
            (found == *need).then(|| picked.into_iter().collect())
        }
        Expr::Weighted { .. } => unreachable!("plain formulas have thresholds only"),
    }
}

/// Fewest quorums with nothing in common. Among j quorums of a threshold each part is left out by
/// one of them, or must be emptied by j of its own; each quorum leaves out all but `need` parts.
fn fewest_apart(expr: &Expr) -> Option<usize> {
    let Expr::Choose { need, of } = expr else { return None };
    let spared = of.len() - need;
    let mut parts: Vec<usize> = of.iter().filter_map(fewest_apart).collect();
    let never = of.len() - parts.len();
    if spared == 0 {
        return if never == 0 { parts.into_iter().max() } else { None };
    }
    parts.sort_unstable();
    // At least what the parts that are never emptied take; then one by one, while parts give in.
    let mut count = never.div_ceil(spared).max(1);
    loop {
        let stubborn = never + parts.len() - parts.partition_point(|fewest| *fewest <= count);
        if count * spared >= stubborn {
            return Some(count);
        }
        count += 1;
    }
}

/// To stop a threshold, stop the parts that are cheapest to stop.
fn smallest_hitting(expr: &Expr) -> usize {
    let Expr::Choose { need, of } = expr else { return 1 };
    let mut costs: Vec<usize> = of.iter().map(smallest_hitting).collect();
    costs.sort_unstable();
    costs[..of.len() - need + 1].iter().sum()
}

/// The best strategy uses part i with frequency w_i, Σ w_i = need, w_i <= 1, and the load is the
/// largest w_i·load_i: parts that are cheap enough are always used, the others share the rest
/// evenly by load.
fn load(expr: &Expr, capacities: &[f64]) -> f64 {
    let (need, of) = match expr {
        Expr::Node(node) => return 1.0 / capacities[node.index()],
        Expr::Choose { need, of } => (*need, of),
        Expr::Weighted { .. } => unreachable!("plain formulas have thresholds only"),
    };
    let mut loads: Vec<f64> = of.iter().map(|part| load(part, capacities)).collect();
    loads.sort_by(f64::total_cmp);
    let mut rates: f64 = loads.iter().map(|load| 1.0 / load).sum();
    for (always, next) in loads.iter().enumerate() {
        let shared = (need - always) as f64 / rates;
        if shared <= *next * (1.0 + 1e-12) || always + 1 == need {
            return shared.max(if always > 0 { loads[always - 1] } else { 0.0 });
        }
        rates -= 1.0 / next;
    }
    unreachable!("at most all parts are needed")
}

/// Whether each threshold by itself is a `units`-arbiter: k+1 quorums cannot leave out everything.
fn gates_are_arbiters(expr: &Expr, units: usize) -> bool {
    let Expr::Choose { need, of } = expr else { return true };
    (units + 1) * (of.len() - need) < of.len()
        && of.iter().all(|part| gates_are_arbiters(part, units))
}

/// A composition of arbiters is dominated iff one of them is (arbiter spec T6). A
/// threshold with n parts of which it spares c is non-dominated iff n = c(k+1)+1; otherwise kc+1
/// parts are a witness, and a witness of a part, with quorums of need-1 other parts, is one of the
/// whole.
fn witness(expr: &Expr, units: usize) -> Option<NodeSet> {
    let Expr::Choose { need, of } = expr else { return None };
    let spared = of.len() - need;
    if of.len() != spared * (units + 1) + 1 {
        let parts = of.iter().take(units * spared + 1).flat_map(smallest_quorum);
        return Some(parts.collect());
    }
    of.iter().enumerate().find_map(|(index, part)| {
        let inner = witness(part, units)?;
        let others = of.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, p)| p);
        Some(inner.iter().chain(others.take(need - 1).flat_map(smallest_quorum)).collect())
    })
}

fn smallest_quorum(expr: &Expr) -> Vec<NodeId> {
    match expr {
        Expr::Node(node) => vec![*node],
        Expr::Choose { need, of } => {
            let mut parts: Vec<Vec<NodeId>> = of.iter().map(smallest_quorum).collect();
            parts.sort_by_key(Vec::len);
            parts.into_iter().take(*need).flatten().collect()
        }
        Expr::Weighted { .. } => unreachable!("plain formulas have thresholds only"),
    }
}

/// Both are sums of positive terms: nothing cancels.
fn chances(expr: &Expr, up: &[f64]) -> Chances {
    match expr {
        Expr::Node(node) => Chances { alive: up[node.index()], dead: 1.0 - up[node.index()] },
        Expr::Choose { need, of } => {
            let parts: Vec<Chances> = of.iter().map(|part| chances(part, up)).collect();
            let (alive, dead) = (|part: &Chances| part.alive, |part: &Chances| part.dead);
            Chances {
                alive: at_most(of.len() - need, &parts, dead, alive),
                dead: need.checked_sub(1).map_or(0.0, |most| at_most(most, &parts, alive, dead)),
            }
        }
        Expr::Weighted { need, of } => {
            let mut chance: BTreeMap<u64, f64> = BTreeMap::from([(0, 1.0)]);
            for (weight, part) in of {
                let Chances { alive, dead } = chances(part, up);
                let mut next = BTreeMap::new();
                for (total, p) in chance {
                    *next.entry(total).or_insert(0.0) += p * dead;
                    *next.entry((total + weight).min(*need)).or_insert(0.0) += p * alive;
                }
                chance = next;
            }
            let alive = chance.remove(need).unwrap_or(0.0);
            Chances { alive, dead: chance.into_values().sum() }
        }
    }
}

/// The probability that of these parts at most `most` are so, each with probability `is` and not
/// with `is_not`. Only numbers that can be told from never are carried along.
fn at_most(
    most: usize,
    parts: &[Chances],
    is: impl Fn(&Chances) -> f64,
    is_not: impl Fn(&Chances) -> f64,
) -> f64 {
    // chance[c]: exactly c so far are.
    let mut chance = vec![0.0; most + 1];
    chance[0] = 1.0;
    let (mut low, mut high) = (0, 0);
    for (index, part) in parts.iter().enumerate() {
        high = (high + 1).min(most);
        for count in (low..=high).rev() {
            let before = if count > low { chance[count - 1] * is(part) } else { 0.0 };
            chance[count] = chance[count] * is_not(part) + before;
        }
        if index % 64 == 63 {
            while low < high && chance[low] < f64::MIN_POSITIVE {
                low += 1;
            }
            while high > low && chance[high] < f64::MIN_POSITIVE {
                chance[high] = 0.0;
                high -= 1;
            }
        }
    }
    chance[low..=high].iter().sum()
}
