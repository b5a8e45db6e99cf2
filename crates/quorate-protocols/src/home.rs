//! What the homes of claims have in common where quorums decide, by permissions (`arbiter`) or by
//! tickets (`ticket`): whom to ask and whom instead, how a claim stands with its client, and for
//! how long what enough others said may be relied on.

use std::collections::BTreeSet;

use quorate_core::{ClaimId, Clock, Fact, Lease, Moment, NodeId, NodeSet, Units};

use crate::attempt::Attempt;
use crate::quorums::Quorums;

/// Which try of which claim a message is about, and who sent it.
#[derive(Clone, Copy)]
pub(crate) struct About {
    pub(crate) from: NodeId,
    pub(crate) claim: ClaimId,
    pub(crate) attempt: Attempt,
}

/// How a claim stands with its client; `W` is what the protocol knows of one that waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Phase<W> {
    /// Asked for.
    Waiting(W),
    /// The client was told of its grant, to last until then; `None` if that was in an earlier life
    /// of ours. It never yields what it uses, and what is over stays over (arbiter spec C1).
    Held { told: Option<Moment> },
    /// The client was told that it has nothing any more, and may not hear it before then. Until it
    /// gives its units back, or that moment passes, they stay taken.
    Ending { until: Moment },
}

/// What a client that renews is to be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Renewal {
    /// Nothing: it waits here, so it holds nothing that could be renewed.
    Waits,
    /// Once more that it has nothing.
    Lost,
    /// That it has nothing any more: its deadline has passed.
    Over,
    /// What those say who are asked for more time.
    Asks,
}

impl<W> Phase<W> {
    /// Whether its client may be using units.
    pub(crate) fn is_held(&self) -> bool {
        !matches!(self, Phase::Waiting(_))
    }

    /// Whether its client is told nothing any more and cannot be using anything.
    pub(crate) fn is_over(&self, now: Moment) -> bool {
        matches!(self, Phase::Ending { until } if *until <= now)
    }

    /// Whether its client must have stopped by itself.
    pub(crate) fn has_stopped(&self, now: Moment) -> bool {
        matches!(self, Phase::Held { told: Some(told) } if *told <= now)
    }

    /// What a client that renews is to be told.
    pub(crate) fn renewal(&self, now: Moment) -> Renewal {
        match self {
            Phase::Waiting(_) => Renewal::Waits,
            Phase::Ending { .. } => Renewal::Lost,
            Phase::Held { .. } if self.has_stopped(now) => Renewal::Over,
            Phase::Held { .. } => Renewal::Asks,
        }
    }

    /// Until when a client may not know that it lost what it has, if it is told so now; `None` if
    /// it was told before.
    pub(crate) fn unheard_until(&self, now: Moment, lease: &Lease) -> Option<Moment> {
        match self {
            Phase::Waiting(_) => unreachable!("only what a client has is lost"),
            Phase::Ending { .. } => None,
            // Another life told it, at most one lease ago.
            Phase::Held { told } => Some(told.unwrap_or(now.after(lease.length()))),
        }
    }
}

/// What a home knows beside its claims.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Outlook {
    pub(crate) clock: Clock,
    /// Nodes that the failure detector believes dead. Only progress depends on it.
    pub(crate) suspects: NodeSet,
    /// Whether the retry alarm is armed. It is left to ring rather than disarmed, so that claims
    /// that are served quickly do not touch it at all.
    pub(crate) retrying: bool,
}

impl Outlook {
    pub(crate) fn next_attempt(&mut self, boot: u32) -> Attempt {
        Attempt { boot, clock: self.clock.tick() }
    }

    /// A quorum around the suspected nodes if there is one, and so many more.
    pub(crate) fn first_choice(
        &self,
        quorums: &Quorums,
        units: Units,
        (me, draw): (NodeId, u64),
        more: u32,
    ) -> NodeSet {
        let chosen = quorums
            .draw(units, me, draw, &self.suspects)
            .or_else(|| quorums.draw(units, me, draw, &NodeSet::new()))
            .expect("a family has a quorum");
        self.and_more(quorums, chosen, draw, more)
    }

    /// So many members more that are not suspected, from where the draw points.
    pub(crate) fn and_more(
        &self,
        quorums: &Quorums,
        mut chosen: NodeSet,
        draw: u64,
        more: u32,
    ) -> NodeSet {
        if more > 0 {
            let rest = quorums.members().difference(&chosen).difference(&self.suspects);
            let start = (draw % rest.len().max(1) as u64) as usize;
            let around = rest.iter().skip(start).chain(rest.iter().take(start));
            around.take(more as usize).for_each(|node| {
                chosen.insert(node);
            });
        }
        chosen
    }

    pub(crate) fn facts(&self, asked: impl Iterator<Item = NodeId>, show: &mut dyn FnMut(Fact)) {
        for node in self.suspects.iter() {
            show(Fact::gauge("suspected", true).about(node));
        }
        for node in asked.collect::<BTreeSet<NodeId>>() {
            show(Fact::gauge("quorum_member", true).about(node));
        }
    }
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

/// Until when some quorum can be relied on: the longest over all quorums of the shortest in each
/// (arbiter spec C1).
pub(crate) fn lasts_until(
    quorums: &Quorums,
    units: Units,
    relied: impl Iterator<Item = (Moment, NodeId)>,
) -> Option<Moment> {
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
