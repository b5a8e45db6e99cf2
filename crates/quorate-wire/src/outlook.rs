//! What a node says of its pool: which claims can be granted with the nodes that are there.

use quorate_core::{Health, Hurdle, NodeId, NodeSet, Outlook};
use serde::{Deserialize, Serialize};

/// Which claims a node believes a pool can grant: [`Outlook`], with nodes as numbers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OutlookLine {
    /// The smallest and the largest claim that can be granted, if any can.
    pub sizes: Option<(u32, u32)>,
    /// What is in the way of the others.
    pub hurdle: Option<HurdleLine>,
    /// Whether the node itself promises nothing yet.
    pub in_grace: bool,
    /// Where whoever decides may change: the term of whom it takes to decide.
    pub term: u32,
}

/// Why not every claim can be granted: [`Hurdle`], with nodes as numbers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum HurdleLine {
    NoQuorum { away: Vec<u32>, voters: u32, needed: Option<u32> },
    Away(Vec<u32>),
    Grace(Vec<u32>),
    Joining(Vec<u32>),
    TooManyCrashed(Vec<u32>),
    UnitsLost(u32, Vec<u32>),
    CutOff,
    NoSeat,
    SeatAway(u32),
    SeatInGrace(u32),
    Unlicensed(u32),
}

impl OutlookLine {
    /// As a seat tells it.
    pub fn new(outlook: &Outlook, health: &Health) -> Self {
        let numbers = |nodes: &NodeSet| nodes.iter().map(|node| node.0).collect();
        let hurdle = outlook.hurdle.as_ref().map(|hurdle| match hurdle {
            Hurdle::NoQuorum { away, voters, needed } => {
                HurdleLine::NoQuorum { away: numbers(away), voters: *voters, needed: *needed }
            }
            Hurdle::Away(nodes) => HurdleLine::Away(numbers(nodes)),
            Hurdle::Grace(nodes) => HurdleLine::Grace(numbers(nodes)),
            Hurdle::Joining(nodes) => HurdleLine::Joining(numbers(nodes)),
            Hurdle::TooManyCrashed(nodes) => HurdleLine::TooManyCrashed(numbers(nodes)),
            Hurdle::UnitsLost(units, nodes) => HurdleLine::UnitsLost(*units, numbers(nodes)),
            Hurdle::CutOff => HurdleLine::CutOff,
            Hurdle::NoSeat => HurdleLine::NoSeat,
            Hurdle::SeatAway(node) => HurdleLine::SeatAway(node.0),
            Hurdle::SeatInGrace(node) => HurdleLine::SeatInGrace(node.0),
            Hurdle::Unlicensed(node) => HurdleLine::Unlicensed(node.0),
        });
        let (in_grace, term) = (health.in_grace, health.term);
        OutlookLine { sizes: outlook.sizes, hurdle, in_grace, term }
    }

    /// The same among so many nodes: whoever is none of them is left out.
    pub fn outlook(&self, members: usize) -> Outlook {
        let set = |nodes: &Vec<u32>| -> NodeSet {
            let known = nodes.iter().filter(|node| (**node as usize) < members);
            known.map(|node| NodeId(*node)).collect()
        };
        let one = |node: u32| ((node as usize) < members).then_some(NodeId(node));
        let hurdle = self.hurdle.as_ref().map(|hurdle| match hurdle {
            HurdleLine::NoQuorum { away, voters, needed } => {
                Hurdle::NoQuorum { away: set(away), voters: *voters, needed: *needed }
            }
            HurdleLine::Away(nodes) => Hurdle::Away(set(nodes)),
            HurdleLine::Grace(nodes) => Hurdle::Grace(set(nodes)),
            HurdleLine::Joining(nodes) => Hurdle::Joining(set(nodes)),
            HurdleLine::TooManyCrashed(nodes) => Hurdle::TooManyCrashed(set(nodes)),
            HurdleLine::UnitsLost(units, nodes) => Hurdle::UnitsLost(*units, set(nodes)),
            HurdleLine::CutOff => Hurdle::CutOff,
            HurdleLine::NoSeat => Hurdle::NoSeat,
            HurdleLine::SeatAway(node) => one(*node).map_or(Hurdle::NoSeat, Hurdle::SeatAway),
            HurdleLine::SeatInGrace(node) => one(*node).map_or(Hurdle::NoSeat, Hurdle::SeatInGrace),
            HurdleLine::Unlicensed(node) => one(*node).map_or(Hurdle::NoSeat, Hurdle::Unlicensed),
        });
        Outlook { sizes: self.sizes, hurdle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_heard_without_nodes_that_there_are_not() {
        let set = |nodes: &[u32]| -> NodeSet { nodes.iter().copied().collect() };
        let hurdle = |away| Hurdle::NoQuorum { away, voters: 5, needed: Some(4) };
        for (said, heard) in [
            (hurdle(set(&[3, 9])), hurdle(set(&[3]))),
            (Hurdle::Away(set(&[0])), Hurdle::Away(set(&[0]))),
            (Hurdle::Grace(set(&[1, 7])), Hurdle::Grace(set(&[1]))),
            (Hurdle::Joining(set(&[])), Hurdle::Joining(set(&[]))),
            (Hurdle::TooManyCrashed(set(&[4])), Hurdle::TooManyCrashed(set(&[4]))),
            (Hurdle::UnitsLost(2, set(&[4, 5])), Hurdle::UnitsLost(2, set(&[4]))),
            (Hurdle::CutOff, Hurdle::CutOff),
            (Hurdle::NoSeat, Hurdle::NoSeat),
            (Hurdle::SeatAway(NodeId(4)), Hurdle::SeatAway(NodeId(4))),
            (Hurdle::SeatInGrace(NodeId(0)), Hurdle::SeatInGrace(NodeId(0))),
            (Hurdle::Unlicensed(NodeId(5)), Hurdle::NoSeat),
        ] {
            let health = Health { in_grace: true, term: 3, ..Health::default() };
            let line = OutlookLine::new(&Outlook::nothing(said), &health);
            assert_eq!((line.in_grace, line.term), (true, 3));
            assert_eq!(line.outlook(5), Outlook::nothing(heard));
        }
        let some = Outlook { sizes: Some((2, 3)), hurdle: Some(Hurdle::CutOff) };
        assert_eq!(OutlookLine::new(&some, &Health::default()).outlook(1), some);
    }
}
