//! Whom a home asks of a family of quorums, whom instead of nodes that seem dead, and for how long
//! what enough of them said may be relied on.

use std::collections::{BTreeMap, BTreeSet};

use quorate_core::{Fact, Moment, NodeId, NodeSet, Units};

use super::Quorums;

/// A quorum around the suspected nodes if there is one, and so many more.
pub(crate) fn first_choice(
    quorums: &Quorums,
    units: Units,
    (me, draw): (NodeId, u64),
    suspects: &NodeSet,
    more: u32,
) -> NodeSet {
    let chosen = quorums
        .draw(units, me, draw, suspects)
        .or_else(|| quorums.draw(units, me, draw, &NodeSet::new()))
        .expect("a family has a quorum");
    and_more(quorums, chosen, draw, suspects, more)
}

/// So many members more that are not suspected, from where the draw points.
pub(crate) fn and_more(
    quorums: &Quorums,
    mut chosen: NodeSet,
    draw: u64,
    suspects: &NodeSet,
    more: u32,
) -> NodeSet {
    if more > 0 {
        let rest = quorums.members().difference(&chosen).difference(suspects);
        let start = (draw % rest.len().max(1) as u64) as usize;
        let around = rest.iter().skip(start).chain(rest.iter().take(start));
        around.take(more as usize).for_each(|node| {
            chosen.insert(node);
        });
    }
    chosen
}

/// A quorum without any of `avoid`, with as many as possible of those that are preferred.
pub(crate) fn replacement(
    quorums: &Quorums,
    units: Units,
    avoid: &NodeSet,
    prefer: impl Fn(NodeId) -> bool,
) -> Option<NodeSet> {
    quorums.within(units, &quorums.members().difference(avoid), prefer)
}

/// These and as many more, none of them suspected, as let what is held outlive a crash: where any
/// so many members are a quorum all of them, so that it outlives as many as the family does; else
/// enough that whichever one fails, the others contain a quorum.
pub(crate) fn covering(
    quorums: &Quorums,
    units: Units,
    known: &NodeSet,
    suspects: &NodeSet,
) -> NodeSet {
    if let Quorums::Threshold { .. } | Quorums::BySize { .. } = quorums {
        return quorums.members().difference(suspects);
    }
    let mut chosen = known.difference(suspects);
    for node in known.iter() {
        let avoid = suspects.union(&std::iter::once(node).collect());
        if !quorums.contains_quorum(units, &chosen.difference(&avoid))
            && let Some(more) = replacement(quorums, units, &avoid, |node| chosen.contains(node))
        {
            chosen = chosen.union(&more);
        }
    }
    chosen
}

/// Whether the answers that are missing leave no quorum. Most answers come before they would do,
/// and in the order in which nodes were asked: so the last ones are looked at first, and no more
/// than it takes.
pub(crate) fn too_few<'a, A: 'a>(
    quorums: &Quorums,
    units: Units,
    asked: &'a BTreeMap<NodeId, A>,
    is_missing: impl Fn(&A) -> bool,
) -> bool {
    let Some(size) = quorums.size(units) else { return false };
    let Some(spare) = asked.len().checked_sub(size) else { return true };
    asked.values().rev().filter(|answer| is_missing(answer)).nth(spare).is_some()
}

/// Until when some quorum can be relied on: the longest over all quorums of the shortest in each
/// (arbiter spec C1).
pub(crate) fn lasts_until(
    quorums: &Quorums,
    units: Units,
    relied: impl Iterator<Item = (Moment, NodeId)>,
) -> Option<Moment> {
    if let Some(size) = quorums.size(units) {
        let votes = relied.filter(|(_, node)| quorums.is_member(*node));
        let mut votes: Vec<Moment> = votes.map(|(until, _)| until).collect();
        let last = votes.len().checked_sub(size)?;
        return Some(*votes.select_nth_unstable(last).1);
    }
    let mut relied: Vec<(Moment, NodeId)> = relied.collect();
    relied.sort_unstable_by(|a, b| b.cmp(a));
    let mut longest = NodeSet::new();
    relied.into_iter().find_map(|(until, node)| {
        longest.insert(node);
        quorums.contains_quorum(units, &longest).then_some(until)
    })
}

/// A quorum of nodes that are not suspected and can be relied on for as long as a client was told:
/// then those believed dead are not needed (arbiter spec C5).
pub(crate) fn lasting_quorum(
    quorums: &Quorums,
    units: Units,
    (told, suspects): (Moment, &NodeSet),
    relied: impl Iterator<Item = (Moment, NodeId)>,
) -> Option<NodeSet> {
    let lasting: NodeSet = relied
        .filter(|&(until, node)| until >= told && !suspects.contains(node))
        .map(|(_, node)| node)
        .collect();
    quorums.within(units, &lasting, |_| true)
}

/// Who is suspected, and who is asked, for people.
pub(crate) fn facts(
    suspects: &NodeSet,
    asked: impl Iterator<Item = NodeId>,
    show: &mut dyn FnMut(Fact),
) {
    for node in suspects.iter() {
        show(Fact::gauge("suspected", true).about(node));
    }
    for node in asked.collect::<BTreeSet<NodeId>>() {
        show(Fact::gauge("quorum_member", true).about(node));
    }
}
