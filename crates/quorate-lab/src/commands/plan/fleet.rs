//! What a fleet is: nodes in zones, what they share, and what must not stop them.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use quorate_api::format_span;
use quorate_core::{NodeId, NodeSet};
use quorate_sim::{Rng, Want};

/// What must not stop the pool.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Losses {
    /// So many nodes, whichever they are.
    pub(super) nodes: u32,
    /// Any one zone.
    pub(super) zone: bool,
}

/// A fleet and its question.
#[derive(Clone, Debug)]
pub(super) struct Fleet {
    pub(super) nodes: u32,
    pub(super) zones: u32,
    pub(super) units: u32,
    /// What claims are for, as the simulator reads it...
    pub(super) want: String,
    /// ...which sizes there are...
    pub(super) sizes: Vec<u32>,
    /// ...and their mean.
    pub(super) mean: f64,
    pub(super) losses: Losses,
    pub(super) between: Duration,
    pub(super) inside: Duration,
    pub(super) hold: Duration,
    pub(super) wanted: f64,
    pub(super) lease: Duration,
    /// How likely a node is up, and a zone.
    pub(super) up: (f64, f64),
    pub(super) names: bool,
    pub(super) labels: bool,
    pub(super) durable: bool,
    pub(super) standing: bool,
}

/// Most nodes whose losses are all gone through for the availability.
const EXACT_MAX: u32 = 14;
/// Losses drawn where there are more.
const DRAWS: u64 = 20_000;
/// Most sets of nodes that are tried; protocols that count say the same of each set of a size.
const SETS_MAX: u64 = 200_000;

impl Fleet {
    /// With what follows from its claims.
    pub(super) fn new(fleet: Fleet) -> anyhow::Result<Fleet> {
        let want: Want = fleet.want.parse().with_context(|| format!("--claims {}", fleet.want))?;
        let choices = want.choices();
        let (most, units) = (want.most(), fleet.units);
        ensure!(most <= units, "--claims {}: there are {units} units", fleet.want);
        let weight: f64 = choices.iter().map(|(_, weight)| f64::from(*weight)).sum();
        let sum: f64 = choices.iter().map(|(size, w)| f64::from(*size) * f64::from(*w)).sum();
        let mut sizes: Vec<u32> = choices.iter().map(|(size, _)| *size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        Ok(Fleet { sizes, mean: sum / weight, ..fleet })
    }

    /// The smallest and the largest claim.
    pub(super) fn claims(&self) -> (u32, u32) {
        (self.sizes[0], self.sizes[self.sizes.len() - 1])
    }

    /// In which zone a node is: neighbours in the list are in different ones, so that the first few
    /// nodes, who vote where not all do, are spread.
    fn zone(&self, node: u32) -> u32 {
        node % self.zones
    }

    /// A node's name: its zone's letter and its number there.
    pub(super) fn name(&self, node: u32) -> String {
        format!("{}{}", letter(self.zone(node)), node / self.zones + 1)
    }

    /// The nodes of a zone.
    pub(super) fn of_zone(&self, zone: u32) -> NodeSet {
        (0..self.nodes).filter(|node| self.zone(*node) == zone).map(NodeId).collect()
    }

    /// Most nodes of a zone.
    pub(super) fn zone_max(&self) -> u32 {
        self.nodes.div_ceil(self.zones)
    }

    /// Names of nodes.
    pub(super) fn names_of(&self, nodes: &NodeSet) -> String {
        let names: Vec<String> = nodes.iter().map(|node| self.name(node.0)).collect();
        names.join(", ")
    }

    /// The first loss that must be survived and is not, in words.
    pub(super) fn stopped_by(
        &self,
        goes_on: &dyn Fn(&NodeSet) -> bool,
    ) -> Option<(String, NodeSet)> {
        if self.losses.zone {
            for zone in 0..self.zones {
                let lost = self.of_zone(zone);
                if !goes_on(&lost) {
                    return Some((format!("without zone {}", letter(zone)), lost));
                }
            }
        }
        let mut tried = 0;
        let mut stops = None;
        subsets(self.nodes, self.losses.nodes, &mut |lost| {
            tried += 1;
            if !goes_on(lost) {
                stops = Some((format!("without {}", self.names_of(lost)), lost.clone()));
            }
            stops.is_none() && tried < SETS_MAX
        });
        stops
    }

    /// How likely the pool can grant: exactly for few nodes, else by draws. Says which it was.
    pub(super) fn availability(&self, goes_on: &dyn Fn(&NodeSet) -> bool) -> (f64, bool) {
        let (node_up, zone_up) = self.up;
        if self.nodes <= EXACT_MAX {
            let mut sum = 0.0;
            for mask in 0..1_u32 << self.nodes {
                let away = |node: &u32| mask >> node & 1 == 1;
                // Zones fail, and nodes fail, each on its own: a zone's nodes are away together, or
                // each as it comes.
                let of_zone = |zone: u32| {
                    let nodes = || (0..self.nodes).filter(|node| self.zone(*node) == zone);
                    let each = |node| if away(&node) { 1.0 - node_up } else { node_up };
                    let singly: f64 = nodes().map(each).product();
                    let all = if nodes().all(|node| away(&node)) { 1.0 } else { 0.0 };
                    zone_up * singly + (1.0 - zone_up) * all
                };
                let likely: f64 = (0..self.zones).map(of_zone).product();
                let lost: NodeSet = (0..self.nodes).filter(away).map(NodeId).collect();
                if likely > 0.0 && goes_on(&lost) {
                    sum += likely;
                }
            }
            return (sum, true);
        }
        let mut rng = Rng::new(1);
        let mut is_up = |likely: f64| (rng.below(1 << 53) as f64) < likely * (1_u64 << 53) as f64;
        let granted = (0..DRAWS).filter(|_| {
            let zones: Vec<bool> = (0..self.zones).map(|_| is_up(zone_up)).collect();
            let up = |node: &u32| {
                let alone = is_up(node_up);
                zones[self.zone(*node) as usize] && alone
            };
            let mut up = up;
            let lost: NodeSet = (0..self.nodes).filter(|node| !up(node)).map(NodeId).collect();
            goes_on(&lost)
        });
        (granted.count() as f64 / DRAWS as f64, false)
    }

    /// The question, in a line.
    pub(super) fn question(&self) -> String {
        let many = |count: u32, one: &str| match count {
            1 => format!("1 {one}"),
            _ => format!("{count} {one}s"),
        };
        let mut text = many(self.nodes, "node");
        if self.zones > 1 {
            text += &format!(" in {} zones {} apart", self.zones, format_span(self.between));
        }
        text += &format!(", {}, claims of {}", many(self.units, "unit"), self.want);
        let lost = match (self.losses.nodes, self.losses.zone) {
            (0, false) => return text,
            (0 | 1, true) => "the loss of any zone".to_owned(),
            (count, false) => format!("the loss of any {}", many(count, "node")),
            (count, true) => format!("the loss of any zone, or of any {}", many(count, "node")),
        };
        text + &format!("; {lost} must not stop it")
    }
}

/// A zone's letter.
pub(super) fn letter(zone: u32) -> char {
    char::from(b'a' + (zone % 26) as u8)
}

/// All sets of so many of the first `nodes`, until there are enough.
fn subsets(nodes: u32, size: u32, each: &mut dyn FnMut(&NodeSet) -> bool) {
    fn more(
        (first, nodes, left): (u32, u32, u32),
        set: &mut NodeSet,
        each: &mut dyn FnMut(&NodeSet) -> bool,
    ) -> bool {
        if left == 0 {
            return each(set);
        }
        for node in first..=nodes.saturating_sub(left) {
            set.insert(NodeId(node));
            let go_on = more((node + 1, nodes, left - 1), set, each);
            set.remove(NodeId(node));
            if !go_on {
                return false;
            }
        }
        true
    }
    if size > 0 {
        more((0, nodes, size), &mut NodeSet::new(), each);
    }
}
