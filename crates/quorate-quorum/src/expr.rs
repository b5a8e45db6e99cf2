//! An algebra to write a family down: *any*, *all*, *choose* and *weighted* over nodes, nested at
//! will, and the dual. After quoracle (Whittaker, Charapko, Hellerstein, Howard, Stoica,
//! "Read-write quorum systems made practical", 2021), which writes `+`, `*` and `choose`; like it,
//! the dual of a read expression gives the write quorums. Weighted votes are Gifford's (1979).

use std::fmt;

use quorate_core::{NodeId, NodeSet};

use crate::explicit::minimal;

/// A family as an expression: which sets of living nodes are good enough.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Expr {
    /// This node is alive.
    Node(NodeId),
    /// At least `need` of these hold.
    Choose {
        /// How many must hold, from 1 to all of them.
        need: usize,
        /// What may hold.
        of: Vec<Expr>,
    },
    /// The weights of those that hold add up to at least `need`.
    Weighted {
        /// How much weight is needed, from 1 to all of it.
        need: u64,
        /// Weights and what may hold.
        of: Vec<(u64, Expr)>,
    },
}

/// Why an expression makes no family.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ExprError {
    /// Nothing to choose from.
    #[error("nothing to choose from")]
    Nothing,
    /// More needed than there is, or nothing.
    #[error("cannot need {need} of {of}: it must be from 1 to {of}")]
    Need {
        /// What was asked for.
        need: u64,
        /// What there is.
        of: u64,
    },
}

impl Expr {
    /// This node.
    pub fn node(number: usize) -> Expr {
        Expr::Node(NodeId::from(number))
    }

    /// At least `need` of these.
    pub fn choose(need: usize, of: Vec<Expr>) -> Result<Expr, ExprError> {
        if of.is_empty() {
            return Err(ExprError::Nothing);
        }
        if need == 0 || need > of.len() {
            return Err(ExprError::Need { need: need as u64, of: of.len() as u64 });
        }
        Ok(Expr::Choose { need, of })
    }

    /// At least one of these.
    pub fn any(of: Vec<Expr>) -> Result<Expr, ExprError> {
        Expr::choose(1, of)
    }

    /// All of these.
    pub fn all(of: Vec<Expr>) -> Result<Expr, ExprError> {
        Expr::choose(of.len(), of)
    }

    /// At least this much weight. Weightless parts are left out.
    pub fn weighted(need: u64, of: Vec<(u64, Expr)>) -> Result<Expr, ExprError> {
        let of: Vec<(u64, Expr)> = of.into_iter().filter(|(weight, _)| *weight > 0).collect();
        let total = of.iter().map(|(weight, _)| weight).sum();
        if of.is_empty() {
            return Err(ExprError::Nothing);
        }
        if need == 0 || need > total {
            return Err(ExprError::Need { need, of: total });
        }
        Ok(Expr::Weighted { need, of })
    }

    /// `need` of the nodes `first`, `first`+1, …, `count` of them.
    pub(crate) fn threshold(need: usize, first: usize, count: usize) -> Expr {
        assert!((1..=count).contains(&need), "a threshold is from 1 to the number of nodes");
        Expr::Choose { need, of: (first..first + count).map(Expr::node).collect() }
    }

    /// Whether the living nodes are good enough.
    pub fn holds(&self, alive: &NodeSet) -> bool {
        match self {
            Expr::Node(node) => alive.contains(*node),
            Expr::Choose { need, of } => {
                of.iter().filter(|part| part.holds(alive)).take(*need).count() == *need
            }
            Expr::Weighted { need, of } => {
                let weights = of.iter().filter(|(_, part)| part.holds(alive)).map(|(w, _)| w);
                weights.sum::<u64>() >= *need
            }
        }
    }

    /// The sets that meet every quorum, as an expression: *any* and *all* change places.
    pub fn dual(&self) -> Expr {
        match self {
            Expr::Node(node) => Expr::Node(*node),
            Expr::Choose { need, of } => {
                Expr::Choose { need: of.len() - need + 1, of: of.iter().map(Expr::dual).collect() }
            }
            Expr::Weighted { need, of } => {
                let total: u64 = of.iter().map(|(weight, _)| weight).sum();
                Expr::Weighted {
                    need: total - need + 1,
                    of: of.iter().map(|(weight, part)| (*weight, part.dual())).collect(),
                }
            }
        }
    }

    /// Every node it names, as often as it names it.
    pub fn named(&self) -> Vec<NodeId> {
        match self {
            Expr::Node(node) => vec![*node],
            Expr::Choose { of, .. } => of.iter().flat_map(Expr::named).collect(),
            Expr::Weighted { of, .. } => of.iter().flat_map(|(_, part)| part.named()).collect(),
        }
    }

    /// Its minimal quorums, unless there are more than `most` on the way.
    pub fn quorums(&self, most: usize) -> Option<Vec<NodeSet>> {
        Some(minimal(self.candidates(most)?))
    }

    fn candidates(&self, most: usize) -> Option<Vec<NodeSet>> {
        match self {
            Expr::Node(node) => Some(vec![[*node].into_iter().collect()]),
            Expr::Choose { need, of } => {
                let parts: Vec<_> = of.iter().map(|part| (1, part)).collect();
                joined(&parts, *need as u64, most)
            }
            Expr::Weighted { need, of } => {
                let mut parts: Vec<_> = of.iter().map(|(weight, part)| (*weight, part)).collect();
                parts.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
                joined(&parts, *need, most)
            }
        }
    }
}

/// Unions of candidates of minimal winning groups of parts. The parts come heaviest first, so that
/// a group that has just reached the weight needed cannot spare any of its members.
fn joined(parts: &[(u64, &Expr)], need: u64, most: usize) -> Option<Vec<NodeSet>> {
    let of_part: Vec<Vec<NodeSet>> =
        parts.iter().map(|(_, part)| part.candidates(most)).collect::<Option<_>>()?;
    let mut left: Vec<u64> = vec![0; parts.len() + 1];
    for index in (0..parts.len()).rev() {
        left[index] = left[index + 1] + parts[index].0;
    }
    let mut done = Vec::new();
    let mut open: Vec<(usize, u64, Vec<NodeSet>)> = vec![(0, 0, vec![NodeSet::new()])];
    while let Some((index, weight, sets)) = open.pop() {
        if weight >= need {
            done.extend(sets);
        } else if weight + left[index] >= need {
            if sets.len().saturating_mul(of_part[index].len()) > most {
                return None;
            }
            let with =
                sets.iter().flat_map(|set| of_part[index].iter().map(|more| set.union(more)));
            let with = (index + 1, weight + parts[index].0, with.collect());
            open.push((index + 1, weight, sets));
            open.push(with);
        }
        if done.len() > most || open.len() > most {
            return None;
        }
    }
    Some(done)
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Node(node) => write!(f, "{}", node.0),
            Expr::Choose { need, of } if *need == of.len() => list(f, "all(", of.iter()),
            Expr::Choose { need: 1, of } => list(f, "any(", of.iter()),
            Expr::Choose { need, of } => list(f, &format!("choose({need}, "), of.iter()),
            Expr::Weighted { need, of } => {
                let parts = of.iter().map(|(weight, part)| format!("{weight}*{part}"));
                list(f, &format!("weighted({need}, "), parts)
            }
        }
    }
}

fn list<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    open: &str,
    parts: impl Iterator<Item = T>,
) -> fmt::Result {
    f.write_str(open)?;
    for (position, part) in parts.enumerate() {
        write!(f, "{}{part}", if position > 0 { ", " } else { "" })?;
    }
    f.write_str(")")
}
