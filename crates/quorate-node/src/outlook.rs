//! Which claims a pool can grant: one answer, put together from what nodes say of it, and in words.
//!
//! The mathematics is the protocol's ([`quorate_core::Protocol::grants`]); a node adds whom it
//! misses. Nodes that are asked together know more than each alone: who of them is in grace.

use std::time::Duration;

use quorate_api::{GrantsView, Hindrance, HindranceKind, format_span};
use quorate_core::{Hurdle, NodeId, NodeSet, Opinion, Outlook};
use quorate_wire::outlook::OutlookLine;

use crate::config::{Config, PoolDef};

/// What nodes said of one pool.
#[derive(Clone, Default, Debug)]
pub(crate) struct Opinions {
    /// Of those that have a seat in it.
    pub(crate) said: Vec<(NodeId, OutlookLine)>,
    /// Who did not answer.
    pub(crate) silent: NodeSet,
}

impl Opinions {
    /// What the pool can grant with those that answered.
    pub(crate) fn outlook(&self, name: &str, def: &PoolDef, members: usize) -> Outlook {
        let grants = |away: &NodeSet| def.protocol.grants(name, members, away);
        let opinion = |(node, line): &(NodeId, OutlookLine)| {
            let (outlook, in_grace, term) = (line.outlook(members), line.in_grace, line.term);
            Opinion { node: *node, outlook, in_grace, term }
        };
        let said: Vec<_> = self.said.iter().map(opinion).collect();
        Outlook::together(grants, def.units, &self.silent, &said)
    }

    /// Whether others know of somebody who decides since whom this one takes to decide: then it
    /// asks whoever does not any more, and is not answered.
    pub(crate) fn is_behind(&self, line: &OutlookLine) -> bool {
        self.said.iter().any(|(_, other)| other.term > line.term)
    }
}

/// An outlook for people.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a> {
    pub(crate) config: &'a Config,
    /// Units of the pool.
    pub(crate) units: u32,
    /// How long grace lasts yet, if some node is in it.
    pub(crate) grace_ms: Option<u64>,
    /// The node that says it, if one does.
    pub(crate) who: Option<&'a str>,
}

impl Words<'_> {
    pub(crate) fn view(self, outlook: &Outlook) -> GrantsView {
        let (smallest, largest) = outlook.sizes.unwrap_or((0, 0));
        let hindrance = outlook.hurdle.as_ref().map(|hurdle| self.hindrance(hurdle, outlook));
        GrantsView { smallest, largest, hindrance }
    }

    /// Of a node that has not heard who decides now.
    pub(crate) fn behind(self) -> GrantsView {
        let who = self.who.unwrap_or_default();
        let summary = format!(
            "{who} does not know yet who decides now, as others do: it hears nothing of the \
             charter, or did lately"
        );
        let (nodes, kind) = (vec![who.to_owned()], HindranceKind::Behind);
        let (voters, needed, units_lost, for_ms) = Default::default();
        let hindrance = Hindrance { kind, summary, nodes, voters, needed, units_lost, for_ms };
        GrantsView { smallest: 0, largest: 0, hindrance: Some(hindrance) }
    }

    fn hindrance(self, hurdle: &Hurdle, outlook: &Outlook) -> Hindrance {
        let name = |node: NodeId| self.config.members[node.index()].name.clone();
        let names = |nodes: &NodeSet| nodes.iter().map(name).collect::<Vec<_>>();
        let (kind, nodes) = match hurdle {
            Hurdle::NoQuorum { away, .. } => (HindranceKind::NoQuorum, names(away)),
            Hurdle::Away(nodes) => (HindranceKind::NodeAway, names(nodes)),
            Hurdle::Grace(nodes) => (HindranceKind::Grace, names(nodes)),
            Hurdle::Joining(nodes) => (HindranceKind::Joining, names(nodes)),
            Hurdle::TooManyCrashed(nodes) => (HindranceKind::TooManyCrashed, names(nodes)),
            Hurdle::UnitsLost(_, nodes) => (HindranceKind::UnitsLost, names(nodes)),
            Hurdle::CutOff => (HindranceKind::CutOff, Vec::new()),
            Hurdle::NoSeat => (HindranceKind::NoSeat, Vec::new()),
            Hurdle::SeatAway(node) => (HindranceKind::NodeAway, vec![name(*node)]),
            Hurdle::SeatInGrace(node) => (HindranceKind::Grace, vec![name(*node)]),
            Hurdle::Unlicensed(node) => (HindranceKind::NoMajority, vec![name(*node)]),
        };
        let summary = self.summary(hurdle, outlook, &nodes);
        let (voters, needed) = match hurdle {
            Hurdle::NoQuorum { voters, needed, .. } => (Some(*voters), *needed),
            _ => (None, None),
        };
        let units_lost = match hurdle {
            Hurdle::UnitsLost(units, _) => Some(*units),
            _ => None,
        };
        let for_ms = self.grace_ms.filter(|_| kind == HindranceKind::Grace);
        Hindrance { kind, summary, nodes, voters, needed, units_lost, for_ms }
    }

    fn summary(self, hurdle: &Hurdle, outlook: &Outlook, nodes: &[String]) -> String {
        let one = nodes.len() == 1;
        let list = nodes.join(", ");
        let are = if one { "is" } else { "are" };
        match hurdle {
            Hurdle::NoQuorum { voters, needed, .. } => {
                let which = match outlook.sizes {
                    Some((least, _)) => format!(" for claims of fewer than {least} units"),
                    None => String::new(),
                };
                let need = needed.map(|needed| format!(", and {needed} of {voters} are needed"));
                let need = need.unwrap_or_default();
                format!("no quorum answers{which}: {list} {are} away{need}")
            }
            Hurdle::Away(_) => {
                let them = if one { "it" } else { "them" };
                format!("{list} {are} away, and nothing is granted without {them}")
            }
            Hurdle::Grace(_) => {
                let wait = if one { "waits" } else { "wait" };
                let left = self.grace_ms.map(Duration::from_millis);
                let left = left.map(|left| format!(" {}", format_span(left))).unwrap_or_default();
                format!("{list} restarted and {wait}{left} until old promises are over")
            }
            Hurdle::Joining(_) => {
                let who = self.who.unwrap_or("every node that answers");
                let answer = if one { "answers" } else { "answer" };
                match nodes {
                    [] => format!("{who} is joining: it asks for nothing yet"),
                    _ => format!("{who} is joining: it asks for nothing until {list} {answer}"),
                }
            }
            Hurdle::TooManyCrashed(_) => {
                format!("more nodes are away than crashes_max allows for: {list}")
            }
            Hurdle::UnitsLost(lost, _) => {
                let (units, answer) = (self.units, if one { "does" } else { "do" });
                match nodes {
                    [] => format!("{lost} of {units} units are missing, and will be made anew"),
                    _ => format!("{lost} of {units} units are lost: {list} {answer} not answer"),
                }
            }
            Hurdle::CutOff => {
                let who = self.who.unwrap_or("every node that answers");
                format!("{who} has not heard for too long of the node on which all depend")
            }
            Hurdle::NoSeat => "no node decides over it yet: the charter has not named one".into(),
            Hurdle::SeatAway(_) => {
                format!(
                    "{list} decides and is away: another will, once the charter's majority agrees"
                )
            }
            Hurdle::SeatInGrace(_) => {
                format!("{list} decides since lately and waits until old promises are over")
            }
            Hurdle::Unlicensed(_) => format!(
                "{list} decides and hears no majority of the charter: it grants and renews nothing \
                 until it does, or another decides"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(term: u32) -> OutlookLine {
        OutlookLine { sizes: Some((1, 3)), hurdle: None, in_grace: false, term }
    }

    #[test]
    fn who_has_not_heard_who_decides_now_is_behind_those_who_have() {
        let said = [5, 6, 6].into_iter().enumerate();
        let said = said.map(|(node, term)| (NodeId::from(node), line(term))).collect();
        let opinions = Opinions { said, silent: NodeSet::new() };
        let behind: Vec<bool> =
            opinions.said.iter().map(|(_, line)| opinions.is_behind(line)).collect();
        assert_eq!(behind, [true, false, false]);
        // Where nobody else can decide, all terms are the same.
        let said = (0..3_usize).map(|node| (NodeId::from(node), line(0))).collect();
        let pinned = Opinions { said, silent: NodeSet::new() };
        assert!(!pinned.is_behind(&pinned.said[0].1));
    }
}
