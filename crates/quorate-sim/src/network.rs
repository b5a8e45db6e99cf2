//! Links between nodes: how long a message takes, and what may happen to it on the way.
//!
//! The contract says that messages may be late, lost, repeated or reordered; a [`Links`] says how
//! much of each. A cut link either drops what would arrive while it lasts or, as links that resume
//! by sequence number do, holds it back until it is healed.

use std::fmt;
use std::str::FromStr;

use quorate_core::{NodeId, NodeSet};

use crate::table::Table;
use crate::{Rng, Span, SpanError};

/// What links are like.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Links {
    /// How long a message takes.
    pub delay: Delay,
    /// Whether each link keeps the order of its messages.
    pub ordered: bool,
    /// Messages lost, of a million.
    pub loss_ppm: u32,
    /// Messages that arrive twice, of a million.
    pub duplicate_ppm: u32,
    /// Whether a cut link holds messages back instead of dropping them.
    pub cuts_hold: bool,
}

impl Links {
    /// Links that keep order and lose nothing.
    pub fn reliable(delay: Delay) -> Self {
        Links { delay, ordered: true, loss_ppm: 0, duplicate_ppm: 0, cuts_hold: true }
    }
}

/// How long a message takes, by who sends it to whom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Delay {
    /// The same distribution between all nodes.
    Everywhere(Span),
    /// Nodes lie in clusters (node i in cluster i mod c), with a delay for each pair of them.
    Clusters(Clusters),
    /// Nodes lie at sites (node i at site i mod `count`): one distribution inside, one between.
    Sites {
        /// How many sites.
        count: u32,
        /// Between two nodes of one site.
        inside: Span,
        /// Between nodes of two sites.
        between: Span,
    },
}

/// Delays between clusters of nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Clusters {
    count: u32,
    /// Row by row; each delay is drawn evenly from 90 % to 110 % of it.
    means: Vec<u64>,
}

impl Clusters {
    /// A square matrix of mean delays in nanoseconds, row (sender) by row; `None` if it is not
    /// square.
    pub fn new(means: Vec<u64>) -> Option<Self> {
        let count = (1..=means.len()).find(|count| count * count == means.len())?;
        Some(Clusters { count: u32::try_from(count).ok()?, means })
    }

    fn mean(&self, from: NodeId, to: NodeId) -> u64 {
        self.means[(from.0 % self.count * self.count + to.0 % self.count) as usize]
    }
}

impl Delay {
    /// Draws one.
    #[inline(always)]
    pub fn draw(&self, rng: &mut Rng, from: NodeId, to: NodeId) -> u64 {
        match self {
            Delay::Everywhere(span) => span.draw(rng),
            Delay::Clusters(clusters) => {
                let mean = clusters.mean(from, to);
                rng.between(mean - mean / 10, mean + mean / 10)
            }
            Delay::Sites { count, inside, between } => {
                let is_inside = from.0.abs_diff(to.0).is_multiple_of(*count);
                if is_inside { inside } else { between }.draw(rng)
            }
        }
    }

    /// The mean over all pairs of clusters.
    pub fn mean(&self) -> u64 {
        match self {
            Delay::Everywhere(span) => span.mean(),
            Delay::Clusters(c) => c.means.iter().sum::<u64>() / c.means.len() as u64,
            Delay::Sites { count, inside, between } => {
                let others = u64::from(count.saturating_sub(1));
                (inside.mean() + others * between.mean()) / (others + 1)
            }
        }
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Delay::Everywhere(span) => write!(f, "{span}"),
            Delay::Clusters(clusters) => {
                for (index, &mean) in clusters.means.iter().enumerate() {
                    let separator = match index {
                        0 => "clusters:",
                        i if i % clusters.count as usize == 0 => ";",
                        _ => ",",
                    };
                    write!(f, "{separator}{}", crate::Time(mean))?;
                }
                Ok(())
            }
            Delay::Sites { count, inside, between } => {
                write!(f, "sites:{count};{inside};{between}")
            }
        }
    }
}

/// A [`Span`]; or `clusters:1ms,20ms;20ms,1ms`: rows of the matrix of mean delays; or
/// `sites:10;1ms;20ms`: so many sites, with a span inside and one between.
impl FromStr for Delay {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        if let Some(sites) = text.strip_prefix("sites:") {
            let wrong = || SpanError::Form(text.into());
            let mut parts = sites.split(';');
            let mut part = || parts.next().ok_or_else(wrong);
            let count = part()?.parse().ok().filter(|&count| count > 0).ok_or_else(wrong)?;
            let (inside, between) = (part()?.parse()?, part()?.parse()?);
            return Ok(Delay::Sites { count, inside, between });
        }
        let Some(matrix) = text.strip_prefix("clusters:") else {
            return text.parse().map(Delay::Everywhere);
        };
        let rows: Vec<&str> = matrix.split(';').collect();
        let means: Result<Vec<u64>, _> =
            matrix.split([';', ',']).map(crate::span::parse_time).collect();
        let clusters = Clusters::new(means?)
            .filter(|c| rows.iter().all(|row| row.split(',').count() == c.count as usize));
        clusters.map(Delay::Clusters).ok_or_else(|| SpanError::Form(text.into()))
    }
}

/// A shape in which links are cut.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cut {
    /// Nothing passes between these nodes and the others.
    Apart(NodeSet),
    /// Nothing passes from these nodes to the others; the way back is open.
    OneWay(NodeSet),
    /// Nothing passes between any two of these nodes.
    Between(NodeSet),
    /// Everybody hears only its two neighbours on a ring of so many nodes.
    Ring(u32),
}

impl Cut {
    /// Whether nothing passes from one node to another.
    pub fn stops(&self, from: NodeId, to: NodeId) -> bool {
        match self {
            Cut::Apart(side) => side.contains(from) != side.contains(to),
            Cut::OneWay(side) => side.contains(from) && !side.contains(to),
            Cut::Between(ends) => ends.contains(from) && ends.contains(to),
            Cut::Ring(n) => {
                let ahead = (to.0 + n - from.0) % n;
                ahead > 1 && ahead < n - 1
            }
        }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cut::Apart(side) => write!(f, "{side} apart"),
            Cut::OneWay(side) => write!(f, "{side} not heard by others"),
            Cut::Between(ends) => write!(f, "between {ends}"),
            Cut::Ring(_) => f.write_str("only neighbours on the ring"),
        }
    }
}

/// When copies of a message arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Lost,
    Once(u64),
    Twice(u64, u64),
}

/// All links of a world, now.
#[derive(Debug)]
pub(crate) struct Network {
    links: Links,
    rng: Rng,
    /// When the last message of an ordered link arrives; only where order is not a matter of
    /// course.
    last: Table<(u32, u32), u64>,
    cuts: Vec<(u32, Cut)>,
    /// Nodes whose links are slow now, and how many times slower.
    slow: Option<(NodeSet, u32)>,
    /// Whether each message only takes its time: nothing is lost, repeated, cut or slow, and links
    /// need not see to the order of their messages.
    is_plain: bool,
}

impl Network {
    pub(crate) fn new(links: Links, rng: Rng) -> Self {
        let (last, cuts) = (Table::default(), Vec::new());
        let mut network = Network { links, rng, last, cuts, slow: None, is_plain: false };
        network.look();
        network
    }

    /// Looks whether links are plain now.
    fn look(&mut self) {
        let Links { loss_ppm, duplicate_ppm, .. } = self.links;
        self.is_plain = !self.must_keep_order()
            && loss_ppm == 0
            && duplicate_ppm == 0
            && self.cuts.is_empty()
            && self.slow.is_none();
    }

    /// Whether links must see to it that messages arrive in order. Where each takes the same time
    /// they do by themselves, unless some were slow, and may still be on their way.
    fn must_keep_order(&self) -> bool {
        let even = matches!(self.links.delay, Delay::Everywhere(Span::Constant(_)));
        self.links.ordered && !(even && self.slow.is_none() && self.last.is_empty())
    }

    /// Whether each message only takes its time, and [`Self::plain_arrival`] says when it arrives.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// When a message that leaves now arrives, if links are plain.
    #[inline(always)]
    pub(crate) fn plain_arrival(&mut self, now: u64, from: NodeId, to: NodeId) -> u64 {
        now.saturating_add(self.links.delay.draw(&mut self.rng, from, to))
    }

    /// A message leaves.
    pub(crate) fn send(&mut self, now: u64, from: NodeId, to: NodeId) -> Fate {
        if self.is_plain {
            return Fate::Once(self.plain_arrival(now, from, to));
        }
        if !self.links.cuts_hold && self.is_cut(from, to) || self.rng.chance(self.links.loss_ppm) {
            return Fate::Lost;
        }
        let first = self.arrival(now, from, to);
        if self.rng.chance(self.links.duplicate_ppm) {
            return Fate::Twice(first, self.arrival(now, from, to));
        }
        Fate::Once(first)
    }

    /// When a message that leaves now arrives, if nothing stops it.
    fn arrival(&mut self, now: u64, from: NodeId, to: NodeId) -> u64 {
        let mut delay = self.links.delay.draw(&mut self.rng, from, to);
        if let Some((nodes, factor)) = &self.slow
            && (nodes.contains(from) || nodes.contains(to))
        {
            delay = delay.saturating_mul(u64::from(*factor));
        }
        let at = now.saturating_add(delay);
        if !self.must_keep_order() {
            return at;
        }
        let last = self.last.entry((from.0, to.0)).or_insert(0);
        *last = at.max(*last);
        *last
    }

    #[inline]
    pub(crate) fn is_cut(&self, from: NodeId, to: NodeId) -> bool {
        !self.cuts.is_empty() && self.cuts.iter().any(|(_, cut)| cut.stops(from, to))
    }

    pub(crate) fn cuts_hold(&self) -> bool {
        self.links.cuts_hold
    }

    pub(crate) fn cut(&mut self, name: u32, cut: Cut) {
        self.cuts.push((name, cut));
        self.look();
    }

    /// The names of all cuts there are.
    pub(crate) fn cuts(&self) -> impl Iterator<Item = u32> {
        self.cuts.iter().map(|(name, _)| *name)
    }

    /// Ends a cut; says whether it was still there.
    pub(crate) fn heal(&mut self, name: u32) -> bool {
        let before = self.cuts.len();
        self.cuts.retain(|(other, _)| *other != name);
        self.look();
        self.cuts.len() < before
    }

    pub(crate) fn slow_down(&mut self, slow: Option<(NodeSet, u32)>) {
        self.slow = slow;
        self.look();
    }

    /// No more loss, repetition, cuts or slow links.
    pub(crate) fn calm(&mut self) {
        self.links.loss_ppm = 0;
        self.links.duplicate_ppm = 0;
        self.cuts.clear();
        self.slow = None;
        self.look();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: NodeId = NodeId(0);
    const B: NodeId = NodeId(1);

    fn links(text: &str) -> Links {
        Links::reliable(text.parse().unwrap())
    }

    #[test]
    fn an_ordered_link_keeps_order_and_another_does_not() {
        for ordered in [true, false] {
            let spec = Links { ordered, ..links("exponential:5ms") };
            let mut network = Network::new(spec, Rng::new(1));
            let arrivals: Vec<Fate> = (0..1000).map(|i| network.send(i * 1000, A, B)).collect();
            let times: Vec<u64> = arrivals
                .iter()
                .map(|fate| match fate {
                    Fate::Once(at) => *at,
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(times.is_sorted(), ordered);
        }
    }

    #[test]
    fn slowing_down_and_up_again_keeps_order_too() {
        let mut network = Network::new(links("1ms"), Rng::new(1));
        network.slow_down(Some(([0].into_iter().collect(), 10)));
        assert_eq!(network.send(0, A, B), Fate::Once(10_000_000));
        network.slow_down(None);
        assert_eq!(network.send(1, A, B), Fate::Once(10_000_000));
        assert_eq!(network.send(1, B, A), Fate::Once(1_000_001));
    }

    #[test]
    fn loss_and_duplication_happen_as_often_as_they_say() {
        let spec = Links { loss_ppm: 100_000, duplicate_ppm: 200_000, ..links("1ms") };
        let mut network = Network::new(spec, Rng::new(2));
        let (mut lost, mut twice) = (0, 0);
        for _ in 0..100_000 {
            match network.send(0, A, B) {
                Fate::Lost => lost += 1,
                Fate::Twice(..) => twice += 1,
                Fate::Once(_) => {}
            }
        }
        assert!((9_500..10_500).contains(&lost), "{lost}");
        assert!((17_500..18_500).contains(&twice), "{twice} of nine tenths");
    }

    #[test]
    fn cuts_cut_what_they_say() {
        let side: NodeSet = [0, 2].into_iter().collect();
        let between = |cut: Cut| {
            let mut stopped = Vec::new();
            for from in 0..5 {
                for to in (0..5).filter(|to| *to != from) {
                    if cut.stops(NodeId(from), NodeId(to)) {
                        stopped.push((from, to));
                    }
                }
            }
            stopped
        };
        let one_way = between(Cut::OneWay(side.clone()));
        assert_eq!(one_way, [(0, 1), (0, 3), (0, 4), (2, 1), (2, 3), (2, 4)]);
        let apart = between(Cut::Apart(side));
        assert_eq!(apart.len(), 12);
        assert!(one_way.iter().all(|&(a, b)| apart.contains(&(a, b)) && apart.contains(&(b, a))));
        let ring = between(Cut::Ring(5));
        assert_eq!(ring.len(), 10);
        assert!(ring.contains(&(0, 2)) && !ring.contains(&(0, 4)) && !ring.contains(&(3, 4)));
    }

    #[test]
    fn a_healed_cut_is_gone_and_calm_ends_everything() {
        let mut network = Network::new(Links { cuts_hold: false, ..links("1ms") }, Rng::new(3));
        network.cut(1, Cut::Apart([0].into_iter().collect()));
        network.cut(2, Cut::Ring(3));
        assert_eq!(network.send(0, A, B), Fate::Lost);
        assert!(network.heal(1));
        assert!(!network.heal(1));
        assert!(!network.is_cut(A, B));
        network.cut(3, Cut::OneWay([0].into_iter().collect()));
        network.calm();
        assert!(!network.is_cut(A, B));
    }

    #[test]
    fn clusters_have_a_delay_for_each_pair() {
        let delay: Delay = "clusters:1ms,20ms;30ms,2ms".parse().unwrap();
        assert_eq!(delay.to_string(), "clusters:1ms,20ms;30ms,2ms");
        let mut rng = Rng::new(5);
        for (from, to, wanted) in [(0, 2, 1.0), (0, 1, 20.0), (1, 0, 30.0), (3, 1, 2.0)] {
            let sum: u64 =
                (0..10_000).map(|_| delay.draw(&mut rng, NodeId(from), NodeId(to))).sum();
            let mean = sum as f64 / 1e10;
            assert!((mean / wanted - 1.0).abs() < 0.02, "{from} to {to}: {mean}");
        }
        let sites: Delay = "sites:2;constant:1ms;uniform:5ms..7ms".parse().unwrap();
        assert_eq!(sites.to_string(), "sites:2;constant:1ms;uniform:5ms..7ms");
        assert_eq!(sites.draw(&mut rng, NodeId(1), NodeId(3)), 1_000_000);
        assert!(sites.draw(&mut rng, NodeId(1), NodeId(2)) >= 5_000_000);
        for wrong in [
            "sites:2;1ms",
            "sites:0;1ms;1ms",
            "clusters:1ms,2ms,3ms",
            "clusters:1ms,2ms;3ms",
            "clusters:1ms,2ms,3ms,4ms",
        ] {
            assert!(wrong.parse::<Delay>().is_err(), "{wrong}");
        }
    }
}
