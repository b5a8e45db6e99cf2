//! Hyperplanes of the projective space PG(D,q). RR-2523, section 4.4, takes a projective space as
//! the lower bound and calls every (k+1)-wise intersecting family equivalent to one; only this is
//! true: any D hyperplanes of PG(D,q) meet, so that PG(k+1,q) gives a k-arbiter. n =
//! (q^(D+1)−1)/(q−1) nodes, quorums and efforts of (q^D−1)/(q−1), load close to the bound
//! n^(−1/(k+1)); it survives q crashes, since a smallest set meeting all hyperplanes is a line
//! (Bose and Burton).
//!
//! Points are normalised vectors (first non-zero coordinate 1) in lexicographic order.

use std::collections::BTreeMap;

use quorate_core::{NodeId, NodeSet};

use super::field::Field;
use super::{FamilyError, prime_power};
use crate::rule::Rule;
use crate::{Domination, Natural, Ratio, Reach, Symmetric};

/// The hyperplanes of PG(dimension, order).
#[derive(Clone, Debug)]
pub struct Space {
    dimension: usize,
    field: Field,
    points: Vec<Vec<usize>>,
    hyperplanes: Vec<NodeSet>,
}

/// Most points for which incidences are computed.
const POINTS_MAX: usize = 12_000;

/// The space with the dimension and order given, or with dimension k+1 and the order that fits.
pub(super) fn space(
    params: &[usize],
    nodes: Option<usize>,
    units: usize,
) -> Result<Space, FamilyError> {
    let (dimension, order) = match (params, nodes) {
        ([dimension, order], _) => (*dimension, *order),
        ([], Some(nodes)) => {
            let dimension = units + 1;
            let order = (2..=Field::ORDER_MAX).find(|q| points(dimension, *q) >= Some(nodes));
            let order = order.filter(|q| points(dimension, *q) == Some(nodes));
            let sizes: Vec<String> = [2, 3, 4, 5, 7]
                .iter()
                .filter_map(|q| points(dimension, *q))
                .map(|n| n.to_string())
                .collect();
            let problem = format!("PG({dimension},q) has {}, … nodes", sizes.join(", "));
            (dimension, order.ok_or_else(|| FamilyError::fit("space", problem))?)
        }
        _ => {
            let problem = "two numbers are expected, dimension and order: space:3,2";
            return Err(FamilyError::fit("space", problem));
        }
    };
    let space = Space::new(dimension, order)?;
    super::agree("space", nodes, space.points.len())?;
    Ok(space)
}

/// Points of PG(dimension, q), if that is a number we can handle.
pub(super) fn points(dimension: usize, q: usize) -> Option<usize> {
    (0..=dimension)
        .try_fold(0usize, |sum, i| sum.checked_add(q.checked_pow(u32::try_from(i).ok()?)?))
}

/// Whether incidences are computed for so many points.
fn fits(dimension: usize, order: usize) -> bool {
    points(dimension, order).is_some_and(|n| n <= POINTS_MAX)
}

/// The orders next to one that cannot be built, in words.
fn nearest(dimension: usize, order: usize) -> String {
    let good = |q: &usize| prime_power(*q).is_some() && fits(dimension, *q);
    let below = (2..order.min(POINTS_MAX)).rev().find(good);
    let above = (order + 1..POINTS_MAX).take_while(|q| fits(dimension, *q)).find(good);
    match (below, above) {
        (Some(below), Some(above)) => format!("the nearest orders are {below} and {above}"),
        (Some(one), None) => format!("the largest order is {one}"),
        (None, Some(one)) => format!("the smallest order is {one}"),
        (None, None) => format!("no order fits dimension {dimension}"),
    }
}

impl Space {
    /// The hyperplanes of PG(`dimension`, `order`). On error nothing is built.
    pub fn new(dimension: usize, order: usize) -> Result<Space, FamilyError> {
        let refused = |problem: String| Err(FamilyError::fit("space", problem));
        if dimension < 2 {
            return refused(format!("the dimension is at least 2, not {dimension}"));
        }
        if prime_power(order).is_none() {
            let nearest = nearest(dimension, order);
            return refused(format!(
                "no construction is known for order {order}, which is not a prime power; {nearest}"
            ));
        }
        if !fits(dimension, order) {
            let nearest = nearest(dimension, order);
            let nodes = points(dimension, order).map_or("far more".to_owned(), |n| n.to_string());
            return refused(format!(
                "order {order} makes {nodes} nodes, and at most {POINTS_MAX} fit; {nearest}"
            ));
        }
        let field = Field::new(order).expect("a prime power of moderate size");
        let mut vectors = vec![Vec::new()];
        for _ in 0..=dimension {
            vectors = vectors
                .into_iter()
                .flat_map(|v: Vec<usize>| {
                    (0..order).map(move |x| v.iter().copied().chain([x]).collect())
                })
                .collect();
        }
        let points: Vec<Vec<usize>> =
            vectors.into_iter().filter(|v| v.iter().find(|x| **x != 0) == Some(&1)).collect();
        let hyperplane = |normal: &Vec<usize>| -> NodeSet {
            let on = points.iter().enumerate().filter(|(_, point)| field.dot(normal, point) == 0);
            on.map(|(index, _)| NodeId::from(index)).collect()
        };
        let hyperplanes = points.iter().map(hyperplane).collect();
        Ok(Space { dimension, field, points, hyperplanes })
    }

    fn quorum_size(&self) -> usize {
        self.hyperplanes[0].len()
    }

    /// RR-2523 says that a plane is non-dominated; it is so for order 2 only. For q >= 3: a line
    /// without one of its points P, and one point on each other line through P, not all on one
    /// line.
    fn plane_witness(&self) -> NodeSet {
        let line = &self.hyperplanes[0];
        let removed = line.smallest().expect("a line has points");
        let mut witness = line.clone();
        witness.remove(removed);
        let others: Vec<&NodeSet> =
            self.hyperplanes.iter().filter(|l| l.contains(removed) && *l != line).collect();
        let free = |other: &NodeSet| -> Vec<NodeId> {
            other.iter().filter(|point| *point != removed).collect()
        };
        let mut chosen: Vec<NodeId> = others.iter().map(|other| free(other)[0]).collect();
        let collinear = |points: &[NodeId]| {
            self.hyperplanes.iter().any(|l| points.iter().all(|point| l.contains(*point)))
        };
        if collinear(&chosen) {
            chosen[0] = free(others[0])[1];
        }
        witness.union(&chosen.into_iter().collect())
    }
}

impl Rule for Space {
    fn nodes(&self) -> usize {
        self.points.len()
    }

    fn contains_quorum(&self, alive: &NodeSet) -> bool {
        self.hyperplanes.iter().any(|hyperplane| hyperplane.is_subset(alive))
    }

    fn sizes(&self) -> Option<BTreeMap<usize, Natural>> {
        Some(BTreeMap::from([(self.quorum_size(), Natural::from(self.points.len()))]))
    }

    fn enumerate(&self, most: usize) -> Option<Vec<NodeSet>> {
        (self.hyperplanes.len() <= most).then(|| self.hyperplanes.clone())
    }

    fn reach(&self) -> Option<Reach> {
        // D hyperplanes always meet; the D+1 coordinate hyperplanes do not.
        Some(Reach::UpTo(self.dimension as i64 - 1))
    }

    fn survives(&self) -> Option<usize> {
        Some(self.field.order())
    }

    /// Every point is like every other.
    fn load(&self, capacities: &[f64]) -> Option<f64> {
        let even = capacities.windows(2).all(|pair| pair[0] == pair[1]);
        even.then(|| self.quorum_size() as f64 / self.points.len() as f64 / capacities[0])
    }

    fn resiliency(&self) -> Option<Ratio> {
        Some(Ratio::of(self.quorum_size(), self.points.len()))
    }

    fn symmetric(&self) -> Option<Option<Symmetric>> {
        let size = self.quorum_size();
        Some(Some(Symmetric { effort: Natural::from(size), size }))
    }

    fn domination(&self, units: usize) -> Option<Domination> {
        if self.dimension != 2 || units != 1 {
            return None;
        }
        if self.field.order() == 2 {
            return Some(Domination::Nondominated);
        }
        let witness = self.plane_witness();
        let lines = &self.hyperplanes;
        assert!(lines.iter().all(|line| !line.is_disjoint(&witness)), "it meets every line");
        assert!(lines.iter().all(|line| !line.is_subset(&witness)), "it contains none");
        Some(Domination::Dominated(witness))
    }
}
