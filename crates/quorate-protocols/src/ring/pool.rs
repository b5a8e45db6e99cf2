//! What all seats of a `ring` pool agree on.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quorate_core::{Lease, NODES_MAX, NodeId, NodeSet};

use super::seat::ROOT;
use super::terms::Terms;

/// A pool whose units go round.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pool {
    /// Private, since only the repaired rules may run a pool.
    terms: Terms,
    order: Order,
    /// With which messages.
    pub variant: Variant,
    /// How long a grant lasts without renewal: the client renews with its own node.
    pub lease: Lease,
    /// The pool's epoch in the configuration; grows when its nodes or units change.
    pub epoch: u32,
    /// How long a node goes on without news from the root, and how long the root makes no tokens
    /// after it left a node out ([`super::Epoch`]). Frames must pass well within it, two in a row.
    pub ttl: Lease,
    /// How long the root waits for its traversal, at first; doubled with every miss.
    pub timeout: Duration,
    /// How long a train that nobody needs stands at the root.
    pub idle: Duration,
    /// Most claims of one node that are granted at the same time.
    pub grants_max: usize,
    /// A rule broken on purpose, for tests of the tests.
    #[cfg(test)]
    pub(super) mutant: Option<Mutant>,
}

/// A deployment rule that can be broken in tests.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(not(test), allow(dead_code, reason = "only tests break rules"))]
pub(super) enum Mutant {
    /// A node goes on without a licence.
    NoFence,
    /// The root makes tokens at once after a change.
    NoQuarantine,
    /// Messages of an older epoch are taken.
    AnyEpoch,
}

/// With which messages a ring runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Variant {
    /// The paper's.
    Core,
    /// All of them in one frame: for use.
    Train,
}

/// Who is whose right neighbour.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Order {
    /// By number.
    Circle { nodes: u32 },
    /// As the tour visits them: for each node its visits in turn.
    Tour(Arc<[Vec<Visit>]>),
}

/// One visit of a tour to a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Visit {
    left: NodeId,
    right: NodeId,
}

impl Pool {
    /// A pool of `units` on a ring of `nodes` in the order of their numbers, node 0 being the root;
    /// leases of ten seconds.
    ///
    /// # Panics
    /// If a number is 0 or too large: pools are checked at the door.
    pub fn new(units: u32, nodes: u32) -> Self {
        assert!((1..=NODES_MAX).contains(&nodes), "1 to {NODES_MAX} nodes");
        Self::on(units, Order::Circle { nodes })
    }

    /// A pool of `units` on any connected network, given by its edges: the ring is the tour round a
    /// spanning tree, which passes each edge of the tree once in each direction (Datta, Hadid and
    /// Villain 2002, section 5). A node that the tour visits several times has one seat; it asks at
    /// its first visit, and at the others only passes on.
    ///
    /// # Errors
    /// Why there is no such tour. Nothing was made.
    pub fn on_network(units: u32, edges: &[(NodeId, NodeId)]) -> Result<Self, TourError> {
        Ok(Self::on(units, Order::Tour(tour(edges)?)))
    }

    /// The same pool on a network.
    ///
    /// # Errors
    /// Why there is no such tour. Nothing was changed.
    pub fn follow(&mut self, edges: &[(NodeId, NodeId)]) -> Result<(), TourError> {
        self.order = Order::Tour(tour(edges)?);
        Ok(())
    }

    fn on(units: u32, order: Order) -> Self {
        Pool {
            terms: Terms::new(units, units),
            order,
            variant: Variant::Train,
            lease: Lease::new(Duration::from_secs(10), 200),
            epoch: 0,
            ttl: Lease::new(Duration::from_secs(10), 200),
            timeout: Duration::from_secs(1),
            idle: Duration::from_secs(1),
            grants_max: 64,
            #[cfg(test)]
            mutant: None,
        }
    }

    /// Whether a rule is broken on purpose.
    #[cfg(test)]
    pub(super) fn breaks(&self, rule: Mutant) -> bool {
        self.mutant == Some(rule)
    }

    #[cfg(not(test))]
    #[allow(clippy::unused_self, reason = "tests ask the pool")]
    pub(super) fn breaks(&self, _rule: Mutant) -> bool {
        false
    }

    /// With so few sequence numbers that a checker can tell them all apart. There must be more than
    /// traversals that can be under way at once (ring spec E19).
    #[must_use]
    pub fn with_seqs(mut self, seqs: u64) -> Self {
        assert!(seqs >= 2, "two traversals must differ");
        self.terms.seqs = seqs;
        self
    }

    /// The numbers and rules of the ring.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// How long a message takes in a ring of one node, which cannot send to itself: well within the
    /// root's patience.
    pub(super) fn hop(&self) -> Duration {
        Duration::from_millis(1).min(self.timeout / 4)
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> u32 {
        match &self.order {
            Order::Circle { nodes } => *nodes,
            Order::Tour(visits) => visits.len() as u32,
        }
    }

    /// How many stations there are: more than nodes if a tour visits some of them again.
    pub fn stations(&self) -> usize {
        match &self.order {
            Order::Circle { nodes } => *nodes as usize,
            Order::Tour(visits) => visits.iter().map(Vec::len).sum(),
        }
    }

    /// Every visit, in the order of the ring, beginning at the root.
    pub(super) fn tour(&self) -> impl Iterator<Item = (NodeId, usize)> + '_ {
        let nobody = NodeSet::new();
        std::iter::successors(Some((ROOT, 0)), move |&(node, visit)| {
            let right = self.right_of(node, visit, &nobody);
            let next = (right, self.visit_from(right, node, &nobody)?);
            (next != (ROOT, 0)).then_some(next)
        })
    }

    /// How often the ring passes a node.
    pub(super) fn visits(&self, node: NodeId) -> usize {
        match &self.order {
            Order::Circle { .. } => 1,
            Order::Tour(visits) => visits[node.index()].len(),
        }
    }

    /// Whether the ring can do without a node: the others have links past it, and it is not the
    /// root. A tour follows the links that there are.
    pub(super) fn can_skip(&self, node: NodeId) -> bool {
        let circle = matches!(self.order, Order::Circle { nodes } if node.0 < nodes);
        circle && self.variant == Variant::Train && node != ROOT
    }

    /// To whom a node passes things on at one of its visits, if these are left out.
    pub(super) fn right_of(&self, node: NodeId, visit: usize, skipped: &NodeSet) -> NodeId {
        match &self.order {
            Order::Circle { nodes } => {
                let mut right = NodeId((node.0 + 1) % nodes);
                while right != node && right != ROOT && skipped.contains(right) {
                    right = NodeId((right.0 + 1) % nodes);
                }
                right
            }
            Order::Tour(visits) => visits[node.index()][visit].right,
        }
    }

    /// At which of its visits a node hears from this one, if these are left out.
    pub(super) fn visit_from(
        &self,
        node: NodeId,
        from: NodeId,
        skipped: &NodeSet,
    ) -> Option<usize> {
        match &self.order {
            Order::Circle { nodes } => {
                (from.0 < *nodes && self.right_of(from, 0, skipped) == node).then_some(0)
            }
            Order::Tour(visits) => visits[node.index()].iter().position(|v| v.left == from),
        }
    }
}

/// Why a network has no tour. Nothing was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TourError {
    /// There are no edges.
    Empty,
    /// A node's number is too large.
    TooLarge(NodeId),
    /// No path leads from node 0 to this one.
    Unreachable(NodeId),
}

impl fmt::Display for TourError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TourError::Empty => f.write_str("the network has no edges"),
            TourError::TooLarge(node) => write!(f, "{node}: a pool has at most {NODES_MAX} nodes"),
            TourError::Unreachable(node) => write!(f, "no path leads from n0 to {node}"),
        }
    }
}

impl std::error::Error for TourError {}

/// The tour round the breadth-first spanning tree from node 0, each node's visits in turn. The last
/// thing before the end is the way back to the root, so its first visit begins the tour.
fn tour(edges: &[(NodeId, NodeId)]) -> Result<Arc<[Vec<Visit>]>, TourError> {
    let most = edges.iter().flat_map(|&(a, b)| [a, b]).max().ok_or(TourError::Empty)?;
    if most.0 >= NODES_MAX {
        return Err(TourError::TooLarge(most));
    }
    let mut near: Vec<BTreeSet<NodeId>> = vec![BTreeSet::new(); most.index() + 1];
    for &(a, b) in edges.iter().filter(|(a, b)| a != b) {
        near[a.index()].insert(b);
        near[b.index()].insert(a);
    }
    let mut parent: Vec<Option<NodeId>> = vec![None; near.len()];
    let mut found = vec![NodeId(0)];
    let mut next = 0;
    while let Some(&node) = found.get(next) {
        next += 1;
        for &other in &near[node.index()] {
            if other != NodeId(0) && parent[other.index()].is_none() {
                parent[other.index()] = Some(node);
                found.push(other);
            }
        }
    }
    if let Some(lost) = (1..near.len()).find(|&i| parent[i].is_none()) {
        return Err(TourError::Unreachable(NodeId::from(lost)));
    }
    let mut children: Vec<Vec<NodeId>> = vec![Vec::new(); near.len()];
    for &node in &found[1..] {
        let above = parent[node.index()].expect("every node but the root was found from another");
        children[above.index()].push(node);
    }
    let round = (0..near.len()).map(|i| visits(parent[i], &children[i]));
    Ok(round.collect())
}

/// A node is entered from above and after each of its children; it goes on to the next child, and
/// after the last one back up.
fn visits(above: Option<NodeId>, below: &[NodeId]) -> Vec<Visit> {
    let Some(above) = above else {
        // The root's tour closes: after its last child comes its first.
        let lefts = below.iter().cycle().skip(below.len() - 1);
        return below.iter().zip(lefts).map(|(&right, &left)| Visit { left, right }).collect();
    };
    let lefts = std::iter::once(above).chain(below.iter().copied());
    let rights = below.iter().copied().chain(std::iter::once(above));
    lefts.zip(rights).map(|(left, right)| Visit { left, right }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(pairs: &[(u32, u32)]) -> Vec<(NodeId, NodeId)> {
        pairs.iter().map(|&(a, b)| (NodeId(a), NodeId(b))).collect()
    }

    fn walk(pool: &Pool) -> Vec<u32> {
        pool.tour().map(|(node, _)| node.0).collect()
    }

    #[test]
    fn a_tour_visits_every_station_of_a_network_once() {
        let networks: [&[(u32, u32)]; 5] = [
            &[(0, 1)],
            &[(0, 1), (1, 2), (2, 3)],
            &[(1, 0), (0, 2), (0, 3)],
            &[(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 0)],
            &[(0, 3), (3, 1), (3, 2), (1, 5), (5, 4), (1, 4), (2, 2)],
        ];
        for network in networks {
            let pool = Pool::on_network(2, &edges(network)).expect("it is connected");
            let walked = walk(&pool);
            assert_eq!(walked.len(), pool.stations());
            assert_eq!(walked.len(), 2 * (pool.nodes() as usize - 1));
            let nodes: BTreeSet<u32> = walked.into_iter().collect();
            assert_eq!(nodes.len(), pool.nodes() as usize);
        }
        assert_eq!(walk(&Pool::new(2, 4)), [0, 1, 2, 3]);
    }

    #[test]
    fn a_network_in_pieces_has_no_tour() {
        let apart = Pool::on_network(1, &edges(&[(0, 1), (2, 3)]));
        assert_eq!(apart, Err(TourError::Unreachable(NodeId(2))));
        assert_eq!(Pool::on_network(1, &[]), Err(TourError::Empty));
        let huge = edges(&[(0, NODES_MAX)]);
        assert_eq!(Pool::on_network(1, &huge), Err(TourError::TooLarge(NodeId(NODES_MAX))));
    }
}
