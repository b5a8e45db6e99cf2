//! How a participant is, and which claims its pool can grant: what drivers tell clients and
//! operators rests on it.

use crate::{Moment, NodeId, NodeSet};

/// How a participant is, see [`Protocol::health`](crate::Protocol::health). A protocol fills in
/// what it knows; the rest says that nothing is the matter.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Health {
    /// How new its copy of the books is, where every participant keeps one: the newest counts.
    pub edition: (u64, u64),
    /// If it does not take part yet: those whose answers it waits for, which may be none.
    pub joining: Option<NodeSet>,
    /// Whether it promises nothing yet, since what an earlier life promised may still be in force.
    pub in_grace: bool,
    /// Those that it believes to have crashed.
    pub crashed: NodeSet,
    /// Those that do not answer and are counted as using all that a node may...
    pub silent: NodeSet,
    /// ...and so many units nobody can have because of that, or of those that are remade.
    pub units_lost: u32,
    /// Where units are counted again and again: when those that are missing will be there again.
    pub remade: Option<Remade>,
    /// Those that are not counted any more, so that others may have what they had. None where
    /// nobody is ever counted out.
    pub counted_out: Option<NodeSet>,
    /// Whether it is taken for crashed while it runs.
    pub falsely_suspected: bool,
    /// Whether more nodes are away than the pool allows for.
    pub too_many_crashed: bool,
    /// Where whoever decides may change: the term of whom it takes to decide. What is said of a
    /// later one counts.
    pub term: u32,
    /// Where it decides and has one: how it is with its shadow.
    pub shadow: Option<Shadowing>,
}

/// How it is with whoever is told every grant before its client is (charter spec S13).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shadowing {
    /// Who.
    pub node: NodeId,
    /// As whom ([`Shadow::naming`](crate::Shadow)).
    pub naming: u64,
    /// Whether it could decide at once if this node were gone.
    pub whole: bool,
    /// Since when it owes an answer and gives none: nobody new is told of a grant meanwhile.
    pub silent_since: Option<Moment>,
}

/// When units that are missing are made anew.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Remade {
    /// By the next counts.
    Soon,
    /// Once whoever had them must have stopped.
    WhenStopped,
}

/// Which claims a pool can grant with the nodes that are there. It says nothing of who holds units:
/// a claim that must only wait for holders can be granted.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Outlook {
    /// The smallest and the largest claim that can be granted, in units; `None`: no claim can.
    pub sizes: Option<(u32, u32)>,
    /// What stands in the way of all others.
    pub hurdle: Option<Hurdle>,
}

/// Why a pool cannot grant some claims, or any.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Hurdle {
    /// No quorum is among the voters that are there.
    NoQuorum {
        /// The voters that are not.
        away: NodeSet,
        /// How many voters there are.
        voters: u32,
        /// How many of them would do for any claim, where it matters only how many there are.
        needed: Option<u32>,
    },
    /// These are away, and nothing can be granted without them.
    Away(NodeSet),
    /// These promise nothing yet, since what they promised earlier may still be in force.
    Grace(NodeSet),
    /// This participant does not take part yet, and waits for these, which may be none.
    Joining(NodeSet),
    /// More are away than the pool allows for.
    TooManyCrashed(NodeSet),
    /// So many units nobody can have, since these are counted as using them, or are left out.
    UnitsLost(u32, NodeSet),
    /// This participant has not heard of the one on whom all depend for so long that it grants
    /// nothing.
    CutOff,
    /// Where whoever decides may change: nobody does yet, as far as this participant knows.
    NoSeat,
    /// This one decides, and is away: nothing is granted until another does.
    SeatAway(NodeId),
    /// This one decides since lately, and promises nothing yet, since what was promised before may
    /// still be in force.
    SeatInGrace(NodeId),
    /// This one decides, and nobody confirms to it that it may.
    Unlicensed(NodeId),
}

/// What one node says of its pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opinion {
    /// Who says it.
    pub node: NodeId,
    /// Which claims it could be granted.
    pub outlook: Outlook,
    /// Whether it promises nothing yet itself.
    pub in_grace: bool,
    /// See [`Health::term`].
    pub term: u32,
}

impl Outlook {
    /// Every claim of up to so many units.
    pub fn all(units: u32) -> Self {
        Outlook { sizes: Some((1, units)), hurdle: None }
    }

    /// No claim, because of this.
    pub fn nothing(hurdle: Hurdle) -> Self {
        Outlook { sizes: None, hurdle: Some(hurdle) }
    }

    /// No claims of fewer units than this: those meet this hurdle.
    pub fn from(self, least: u32, hurdle: impl FnOnce() -> Hurdle) -> Self {
        let sizes = self.sizes.map(|(first, last)| (first.max(least), last));
        self.narrowed(sizes, hurdle)
    }

    /// No claims of more units than this: those meet this hurdle.
    pub fn up_to(self, most: u32, hurdle: impl FnOnce() -> Hurdle) -> Self {
        let sizes = self.sizes.map(|(first, last)| (first, last.min(most)));
        self.narrowed(sizes, hurdle)
    }

    fn narrowed(self, sizes: Option<(u32, u32)>, hurdle: impl FnOnce() -> Hurdle) -> Self {
        let sizes = sizes.filter(|(first, last)| first <= last);
        let hurdle = if sizes == self.sizes { self.hurdle } else { Some(hurdle()) };
        Outlook { sizes, hurdle }
    }

    /// What a pool can grant of which this is known: `grants` says what it can without some nodes
    /// ([`Protocol::grants`](crate::Protocol::grants)), these are `away`, and those promise nothing
    /// yet.
    pub fn of(grants: impl Fn(&NodeSet) -> Outlook, away: &NodeSet, grace: &NodeSet) -> Self {
        let present = grants(away);
        let open = grants(&away.union(grace));
        match open.sizes == present.sizes {
            true => present,
            false => Outlook { hurdle: Some(Hurdle::Grace(grace.difference(away))), ..open },
        }
    }

    /// What a pool of so many units can grant, as nodes say that were asked together. Those are
    /// `away` that did not answer. Where whoever decides may change, it counts what those say who
    /// know of the last one, and first what that one says of itself: others take it for well.
    pub fn together(
        grants: impl Fn(&NodeSet) -> Outlook,
        units: u32,
        away: &NodeSet,
        said: &[Opinion],
    ) -> Self {
        let term = said.iter().map(|it| it.term).max().unwrap_or(0);
        let last = || said.iter().filter(|it| it.term == term);
        let itself = |it: &&Opinion| match it.outlook.hurdle {
            Some(Hurdle::Unlicensed(node) | Hurdle::SeatInGrace(node)) => node == it.node,
            _ => false,
        };
        if let Some(decides) = last().find(itself) {
            return decides.outlook.clone();
        }
        let grace = last().filter(|it| it.in_grace).map(|it| it.node).collect();
        let known = Outlook::of(grants, away, &grace);
        // A node that misses others can do less for its clients than one that does not.
        let width = |of: &&Outlook| of.sizes.map(|(least, most)| most.saturating_sub(least));
        let heard = || last().map(|it| &it.outlook);
        let Some(widest) = heard().max_by_key(width).filter(|_| known.hurdle.is_none()) else {
            return known;
        };
        // Some know of units that are lost, and others not yet.
        let lost = heard().filter_map(|outlook| match &outlook.hurdle {
            Some(Hurdle::UnitsLost(units, nodes)) => Some((*units, nodes)),
            _ => None,
        });
        match lost.max_by_key(|(lost, _)| *lost) {
            Some((lost, nodes)) => {
                let lose = || Hurdle::UnitsLost(lost, nodes.clone());
                widest.clone().up_to(units.saturating_sub(lost), lose)
            }
            None => widest.clone(),
        }
    }

    /// Whether a claim of so many units can be granted.
    pub fn allows(&self, units: u32) -> bool {
        self.sizes.is_some_and(|(least, most)| (least..=most).contains(&units))
    }

    /// The largest claim that can be granted, in units; 0 if none can.
    pub fn most(&self) -> u32 {
        self.sizes.map_or(0, |(_, most)| most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(nodes: &[u32]) -> NodeSet {
        nodes.iter().copied().collect()
    }

    fn opinion(node: u32, outlook: &Outlook, in_grace: bool, term: u32) -> Opinion {
        Opinion { node: NodeId(node), outlook: outlook.clone(), in_grace, term }
    }

    /// Three nodes, any two of which grant one unit, and all of which grant two.
    fn grants(away: &NodeSet) -> Outlook {
        let there = 3 - away.len() as u32;
        Outlook::all(2).up_to(there.saturating_sub(1), || Hurdle::Away(away.clone()))
    }

    #[test]
    fn who_is_away_comes_before_who_promises_nothing_yet() {
        let of = |away: &[u32], grace: &[u32]| Outlook::of(grants, &set(away), &set(grace));
        assert_eq!(of(&[], &[]), Outlook::all(2));
        let fewer = |hurdle| Outlook { sizes: Some((1, 1)), hurdle: Some(hurdle) };
        assert_eq!(of(&[1], &[]), fewer(Hurdle::Away(set(&[1]))));
        assert_eq!(of(&[], &[2]), fewer(Hurdle::Grace(set(&[2]))));
        assert_eq!(of(&[1], &[1]), fewer(Hurdle::Away(set(&[1]))), "it matters that it is away");
        assert_eq!(of(&[1], &[2]), Outlook::nothing(Hurdle::Grace(set(&[2]))));
        assert_eq!(of(&[0, 1], &[2]).hurdle, Some(Hurdle::Away(set(&[0, 1]))));
        assert!(of(&[1], &[]).allows(1) && !of(&[1], &[]).allows(2) && !of(&[0, 1], &[]).allows(1));
    }

    #[test]
    fn nodes_that_are_asked_together_know_more_than_each() {
        let together = |away: &[u32], said: &[(u32, Outlook, bool)]| {
            let said = said.iter().map(|(n, o, g)| opinion(*n, o, *g, 0)).collect::<Vec<_>>();
            Outlook::together(grants, 2, &set(away), &said)
        };
        let (all, off) = (Outlook::all(2), Outlook::nothing(Hurdle::CutOff));
        assert_eq!(together(&[], &[(0, all.clone(), false), (1, off.clone(), false)]), all);
        assert_eq!(together(&[], &[(1, off.clone(), false)]), off);
        let grace = together(&[], &[(0, all.clone(), false), (1, all.clone(), true)]);
        assert_eq!(grace.hurdle, Some(Hurdle::Grace(set(&[1]))));
        assert_eq!(together(&[0, 1], &[(2, all.clone(), false)]).sizes, None);
        let lost = Outlook::all(2).up_to(1, || Hurdle::UnitsLost(1, set(&[2])));
        assert_eq!(together(&[], &[(0, lost.clone(), false), (1, all, false)]), lost);
        assert_eq!(together(&[], &[]), Outlook::all(2));
    }

    /// Where the seat moves: homes take whoever decides for well, and it knows better; what one
    /// says that was replaced since does not count.
    #[test]
    fn whoever_decides_last_knows_best_whether_it_can() {
        let all = Outlook::all(2);
        let off = |node| Outlook::nothing(Hurdle::Unlicensed(NodeId(node)));
        let together =
            |said: &[Opinion]| Outlook::together(|_: &NodeSet| Outlook::all(2), 2, &set(&[]), said);
        let homes = [opinion(1, &all, false, 7), opinion(2, &all, false, 7)];
        let with = |it: Opinion| [homes[0].clone(), it, homes[1].clone()];
        assert_eq!(together(&with(opinion(0, &off(0), false, 7))), off(0));
        assert_eq!(together(&with(opinion(0, &off(0), false, 6))), all, "it does not decide now");
        assert_eq!(together(&with(opinion(0, &all, false, 7))), all);
        let grace = Outlook::nothing(Hurdle::SeatInGrace(NodeId(0)));
        assert_eq!(together(&with(opinion(0, &grace, true, 8))), grace);
        let nobody = Outlook::nothing(Hurdle::NoSeat);
        assert_eq!(together(&[opinion(1, &nobody, false, 0)]), nobody);
    }

    /// As with quorums by size: large claims can be granted where small ones cannot.
    #[test]
    fn the_smallest_claims_may_be_those_that_cannot_be_granted() {
        let large = Outlook::all(5).from(3, || Hurdle::CutOff);
        assert_eq!((large.sizes, large.most()), (Some((3, 5)), 5));
        assert_eq!(large.up_to(2, || Hurdle::CutOff).most(), 0);
    }
}
