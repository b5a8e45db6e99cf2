//! Availability by a decision diagram, one node at a time.
//!
//! Decide node after node whether it is alive. What remains of the family is the set of quorums no
//! dead node has hit, restricted to the undecided nodes; of quorums whose remaining parts contain
//! each other only the smallest matter. Two histories that leave the same remainder have the same
//! future, so they are merged: the layers are those of a reduced ordered decision diagram of "some
//! quorum is alive", built from the top, and only one layer is kept. The weight carried along may
//! be a probability (unequal nodes welcome) or a count of sets by size (the survivors polynomial).

use quorate_core::{NodeId, NodeSet};

use crate::explicit::minimal;
use crate::{Chances, Effort, Explicit, TooLarge};

/// A set of quorum indices, in as few words as the family needs.
type Remainder<const W: usize> = [u64; W];

/// What histories carry: they are added when merged and changed by each decision.
trait Weight: Clone {
    fn add(&mut self, other: &Self);
}

impl Weight for f64 {
    fn add(&mut self, other: &f64) {
        *self += other;
    }
}

impl Weight for Vec<u128> {
    fn add(&mut self, other: &Vec<u128>) {
        for (mine, more) in self.iter_mut().zip(other) {
            *mine += more;
        }
    }
}

/// How likely some quorum is entirely alive, node i being alive with `up[i]`.
pub fn chances(
    family: &Explicit,
    up: &[f64],
    effort: &mut Effort<'_>,
) -> Result<Chances, TooLarge> {
    assert_eq!(up.len(), family.nodes(), "one probability per node");
    let mut chances = Chances { alive: 0.0, dead: 0.0 };
    run(
        family,
        1.0,
        |weight, node, lives| weight * if lives { up[node] } else { 1.0 - up[node] },
        |weight, left| match left {
            Some(_) => chances.alive += weight,
            None => chances.dead += weight,
        },
        effort,
    )?;
    Ok(chances)
}

/// How many sets of each size contain a quorum. For at most 127 nodes, so that counts fit.
pub fn survivors(family: &Explicit, effort: &mut Effort<'_>) -> Result<Vec<u128>, TooLarge> {
    let nodes = family.nodes();
    assert!(nodes <= 127, "counts of sets fit in 128 bits");
    let mut start = vec![0u128; nodes + 1];
    start[0] = 1;
    let mut counts = vec![0u128; nodes + 1];
    run(
        family,
        start,
        |weight, _, lives| {
            let mut weight = weight.clone();
            if lives {
                weight.rotate_right(1);
            }
            weight
        },
        |weight, left| {
            let Some(undecided) = left else { return };
            // The undecided nodes are free: any of them may be alive or dead.
            for (size, count) in weight.iter().enumerate().filter(|(_, count)| **count > 0) {
                let mut ways = 1u128;
                for more in 0..=undecided {
                    counts[size + more] += count * ways;
                    ways = ways * (undecided - more) as u128 / (more as u128 + 1);
                }
            }
        },
        effort,
    )?;
    Ok(counts)
}

/// Most words in one layer of merged histories; beyond it the diagram is too wide to be worth it.
const WORDS_MAX: usize = 1 << 22;

/// `end` is told the weight of every history that is decided and, if it leaves a quorum alive, how
/// many nodes it does not ask about.
fn run<V: Weight>(
    family: &Explicit,
    start: V,
    step: impl Fn(&V, usize, bool) -> V,
    mut end: impl FnMut(&V, Option<usize>),
    effort: &mut Effort<'_>,
) -> Result<(), TooLarge> {
    let quorums = minimal(family.sets::<NodeSet>());
    match quorums.len() {
        _ if quorums[0].is_empty() => end(&start, Some(family.nodes())),
        0..=64 => layers::<V, 1>(family.nodes(), &quorums, start, step, end, effort)?,
        65..=256 => layers::<V, 4>(family.nodes(), &quorums, start, step, end, effort)?,
        257..=2048 => layers::<V, 32>(family.nodes(), &quorums, start, step, end, effort)?,
        _ => return Err(TooLarge { limit: 2048 }),
    }
    Ok(())
}

fn layers<V: Weight, const W: usize>(
    nodes: usize,
    quorums: &[NodeSet],
    start: V,
    step: impl Fn(&V, usize, bool) -> V,
    mut end: impl FnMut(&V, Option<usize>),
    effort: &mut Effort<'_>,
) -> Result<(), TooLarge> {
    // Each level compares all pairs of quorums, word by word. Known beforehand, so that a diagram
    // that cannot be afforded is not begun.
    let pairs = (quorums.len() * quorums.len()) as u64;
    effort.spend(pairs * nodes as u64 * nodes.div_ceil(64) as u64 / 4)?;
    let order = order(nodes, quorums);
    let place: Vec<usize> = (0..nodes)
        .map(|node| order.iter().position(|o| *o == node).expect("every node is decided"))
        .collect();
    let mut all: Remainder<W> = [0; W];
    for index in 0..quorums.len() {
        all[index / 64] |= 1 << (index % 64);
    }
    let mut layer = vec![(all, start)];
    for (decided, &node) in order.iter().enumerate() {
        let level = Level::new(quorums, &place, decided);
        effort.spend((layer.len() * (1 + W * quorums.len() / 8)) as u64)?;
        let mut next: Vec<(Remainder<W>, V)> = Vec::with_capacity(2 * layer.len());
        for (remainder, weight) in &layer {
            for lives in [false, true] {
                let weight = step(weight, node, lives);
                let mut rest = *remainder;
                if !lives {
                    clear(&mut rest, &level.with_node);
                }
                if meets(&rest, &level.finished) {
                    end(&weight, Some(nodes - decided - 1));
                } else if rest.iter().any(|word| *word != 0) {
                    level.reduce(&mut rest);
                    next.push((rest, weight));
                } else {
                    end(&weight, None);
                }
            }
        }
        next.sort_unstable_by_key(|(remainder, _)| *remainder);
        next.dedup_by(|later, first| {
            let same = later.0 == first.0;
            if same {
                first.1.add(&later.1);
            }
            same
        });
        if next.len() > WORDS_MAX / (W + 1) {
            return Err(TooLarge { limit: WORDS_MAX as u64 });
        }
        layer = next;
    }
    assert!(layer.is_empty(), "after the last node every history has ended");
    Ok(())
}

/// What is the same for all histories after a node was decided.
struct Level<const W: usize> {
    /// Quorums with the node decided.
    with_node: Remainder<W>,
    /// Quorums all of whose nodes are decided.
    finished: Remainder<W>,
    /// For each quorum, the others whose remaining part is inside its own.
    smaller: Vec<Remainder<W>>,
}

impl<const W: usize> Level<W> {
    fn new(quorums: &[NodeSet], place: &[usize], decided: usize) -> Self {
        let rest: Vec<NodeSet> = quorums
            .iter()
            .map(|quorum| quorum.iter().filter(|node| place[node.index()] > decided).collect())
            .collect();
        let pick = |test: &dyn Fn(usize) -> bool| -> Remainder<W> {
            let mut picked = [0u64; W];
            for index in (0..quorums.len()).filter(|index| test(*index)) {
                picked[index / 64] |= 1 << (index % 64);
            }
            picked
        };
        let here = |index: usize| quorums[index].iter().any(|node| place[node.index()] == decided);
        let inside = |a: usize, b: usize| {
            rest[a].is_subset(&rest[b]) && a != b && (rest[a] != rest[b] || a < b)
        };
        Level {
            with_node: pick(&here),
            finished: pick(&|index| rest[index].is_empty()),
            smaller: (0..quorums.len()).map(|b| pick(&|a| inside(a, b))).collect(),
        }
    }

    /// Drops quorums whose remaining part contains that of another one.
    fn reduce(&self, remainder: &mut Remainder<W>) {
        let before = *remainder;
        for (word, bits) in before.iter().enumerate() {
            let mut left = *bits;
            while left != 0 {
                let index = word * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                if meets(&before, &self.smaller[index]) {
                    remainder[word] &= !(1 << (index % 64));
                }
            }
        }
    }
}

fn meets(a: &[u64], b: &[u64]) -> bool {
    a.iter().zip(b).any(|(a, b)| a & b != 0)
}

fn clear(from: &mut [u64], what: &[u64]) {
    for (word, less) in from.iter_mut().zip(what) {
        *word &= !less;
    }
}

/// Finishes quorums early: next comes the node that completes most, among quorums already begun.
fn order(nodes: usize, quorums: &[NodeSet]) -> Vec<usize> {
    let mut order = Vec::with_capacity(nodes);
    let mut open: Vec<usize> = (0..nodes).collect();
    let mut missing: Vec<usize> = quorums.iter().map(NodeSet::len).collect();
    while !open.is_empty() {
        let score = |node: usize| -> f64 {
            let of_node = quorums
                .iter()
                .zip(&missing)
                .filter(|(quorum, _)| quorum.contains(NodeId::from(node)));
            of_node.map(|(_, missing)| 2f64.powi(-(*missing as i32).min(60))).sum()
        };
        let best = (0..open.len())
            .max_by(|a, b| score(open[*a]).total_cmp(&score(open[*b])).then(b.cmp(a)))
            .expect("a node is open");
        let node = open.remove(best);
        order.push(node);
        for (quorum, missing) in quorums.iter().zip(&mut missing) {
            *missing -= usize::from(quorum.contains(NodeId::from(node)));
        }
    }
    order
}
