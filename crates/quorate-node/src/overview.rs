//! What an operator sees of the whole cluster, put together from what all nodes told.

use std::collections::BTreeMap;

use quorate_api::{
    CellView, ChartPoint, GrantsView, HistoryEvent, HistoryKind, HolderView, MemberView, NodeView,
    PoolDetail, PoolRow, ShareView, SightView, StillView, WaiterView,
};
use quorate_core::{ClaimId, NodeId, NodeSet};
use quorate_wire::glance::{Bucket, Count, Glance, Order, Record, What};
use quorate_wire::survey::Survey;

use crate::config::{Config, PoolDef};
use crate::convert;
use crate::engine::Gathered;
use crate::kinds;
use crate::outlook::{Opinions, Words};
use crate::views::Picture;

/// Most events of a list.
const EVENTS: usize = 60;
const NOTABLE: usize = 100;
/// Most units that are drawn one by one.
const CELLS: usize = 256;
/// How much of the past charts show, in ten seconds each.
const CHART: u64 = 60;

/// What nodes told about themselves.
#[derive(Debug)]
pub(crate) struct Glances<'a> {
    config: &'a Config,
    told: Vec<(NodeId, Glance)>,
    silent: NodeSet,
}

/// Which part of long lists is wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    /// Only claims in which this text appears.
    pub(crate) search: String,
    pub(crate) holders: usize,
    pub(crate) queue: usize,
    pub(crate) size: usize,
}

impl<'a> Glances<'a> {
    /// What was told of nodes, and what of the pool that was asked about.
    pub(crate) fn take(config: &'a Config, gathered: Gathered<Glance>) -> (Self, Gathered<Survey>) {
        let Gathered { said: mut told, silent } = gathered;
        let survey =
            |(node, glance): &mut (NodeId, Glance)| (*node, std::mem::take(&mut glance.survey));
        let said = told.iter_mut().map(survey).collect();
        let away = silent.iter().copied().collect();
        (Glances { config, told, silent: away }, Gathered { said, silent })
    }

    /// How long units of the pool were held that were given back, in milliseconds.
    pub(crate) fn holds_ms(&self) -> Vec<u64> {
        let records = self.told.iter().flat_map(|(_, glance)| &glance.records);
        let released = records.filter(|record| record.what == What::Released);
        released.map(|record| record.took_ms).collect()
    }

    /// Pools that match on some node, in this order, with what all of them know; and how many there
    /// are.
    pub(crate) fn found(&self, order: Order) -> (Vec<(&str, Count)>, u64) {
        let mut found: BTreeMap<&str, Count> = BTreeMap::new();
        for (name, count) in self.told.iter().flat_map(|(_, glance)| &glance.found) {
            let sum = found.entry(name).or_default();
            *sum = sum.plus(*count);
        }
        let units = |name: &str| self.config.pool(name).map_or(1, |def| def.units);
        let mut names: Vec<(&str, Count)> = found.into_iter().collect();
        names.sort_by_key(|(name, count)| std::cmp::Reverse(order.rank(count, units(name))));
        let most = self.told.iter().map(|(_, glance)| glance.found_count).max().unwrap_or(0);
        let count = most.max(names.len() as u64);
        (names, count)
    }

    /// What clients of all nodes have of the pool that was asked about at this place.
    fn count(&self, place: usize) -> Count {
        let counts = self.told.iter().filter_map(|(_, glance)| glance.counts.get(place));
        counts.fold(Count::default(), |sum, count| sum.plus(*count))
    }

    /// The rows of a list of pools, in the order in which they were asked about.
    pub(crate) fn rows(&self, names: &[String]) -> Vec<PoolRow> {
        let row = |(place, name): (usize, &String)| {
            let def = self.config.pool(name)?;
            let Count { held, waiting, oldest_ms, .. } = self.count(place);
            let oldest_ms = (waiting > 0).then_some(oldest_ms);
            let (units, protocol) = (def.units, def.protocol.name().to_owned());
            let grants = self.grants(place, name, &def);
            let name = name.clone();
            Some(PoolRow { name, units, held, waiting, oldest_ms, protocol, grants })
        };
        names.iter().enumerate().filter_map(row).collect()
    }

    /// Which claims the pool that was asked about at this place can grant.
    fn grants(&self, place: usize, name: &str, def: &PoolDef) -> GrantsView {
        let (config, units) = (self.config, def.units);
        let line = |glance: &Glance| glance.outlooks.get(place).cloned().flatten();
        let told = self.told.iter();
        let opinions = Opinions {
            said: told.filter_map(|(node, glance)| Some((*node, line(glance)?))).collect(),
            silent: self.silent.clone(),
        };
        let grace = self.told.iter().map(|(_, glance)| glance.grace_micros).max();
        let grace_ms = grace.filter(|micros| *micros > 0).map(|micros| micros / 1000);
        let outlook = opinions.outlook(name, def, config.members.len());
        Words { config, units, grace_ms, who: None }.view(&outlook)
    }

    /// Every member: what it says of itself, or what the node that was asked says of it.
    pub(crate) fn members(&self, asked: &NodeView) -> Vec<MemberView> {
        let member = |(place, member): (usize, &crate::config::Member)| {
            let told = self.told.iter().find(|(node, _)| node.index() == place);
            let peer = asked.peers.iter().find(|peer| peer.name == member.name);
            let glance = told.map(|(_, glance)| glance);
            let sight = |sight: &quorate_wire::glance::Sight| SightView {
                connected: sight.connected,
                suspected: sight.suspected,
                latency_us: (sight.latency_micros > 0).then_some(sight.latency_micros),
            };
            MemberView {
                name: member.name.clone(),
                answers: glance.is_some(),
                ready: glance.is_some_and(|glance| glance.ready),
                boot: glance
                    .map_or(peer.and_then(|peer| peer.boot).unwrap_or(0), |glance| glance.boot),
                grace_ms: glance.map_or(0, |glance| glance.grace_micros / 1000),
                claims: glance.map_or(0, |glance| glance.claims),
                clients: glance.map_or(0, |glance| glance.clients),
                unconnected: glance.map_or(0, |glance| glance.unconnected),
                sees: glance.map_or_else(Vec::new, |g| g.sees.iter().map(sight).collect()),
                problem: match (glance, peer) {
                    (None, Some(peer)) => peer.problem.clone().or(Some("no answer".into())),
                    _ => None,
                },
            }
        };
        self.config.members.iter().enumerate().map(member).collect()
    }

    /// One pool in full; `place` is where it was counted.
    pub(crate) fn pool(
        &self,
        name: &str,
        def: &PoolDef,
        picture: &Picture,
        place: usize,
        page: &Page,
    ) -> PoolDetail {
        let holders = picture.holders(def).holders;
        let cell = |holder: &HolderView, unit: u32| CellView {
            unit,
            node: holder.node.clone(),
            id: holder.id,
        };
        let units = holders.iter().flat_map(|h| h.units.iter().map(move |u| cell(h, u.unit)));
        let cells = units.take(CELLS).collect();
        let waiting = picture.waiting().waiting;
        let listed = waiting.len() as u64;
        let count = self.count(place);
        let unlisted = count.waiting.saturating_sub(listed);
        let (kinds, kinds_left_out) = kinds::of(def, picture, &holders, &waiting, unlisted);
        let (holders, holders_found) = page.cut(holders, page.holders, fits_h);
        let (queue, queue_found) = page.cut(waiting, page.queue, fits_w);
        let mut view = picture.pool(self.config, name, def);
        let more = u32::try_from(unlisted).unwrap_or(u32::MAX);
        view.waiting = view.waiting.map(|waiting| waiting.saturating_add(more));
        let mut events = self.events(|glance| &glance.records, |record| Some(record.clone()));
        events.truncate(EVENTS);
        PoolDetail {
            view,
            holders,
            holders_found,
            queue,
            queue_found,
            unlisted,
            shares: self.shares(place),
            still: StillView {
                waiting: count.waiting,
                waited_ms: count.waited_ms / count.waiting.max(1),
                waited_max_ms: count.oldest_ms,
            },
            kinds,
            kinds_left_out,
            cells,
            chart: self.chart(),
            events,
        }
    }

    fn shares(&self, place: usize) -> Vec<ShareView> {
        let mut shares = vec![ShareView::default(); self.config.members.len()];
        for (node, glance) in &self.told {
            if let Some(Count { held, waiting, .. }) = glance.counts.get(place) {
                shares[node.index()] = ShareView { held: *held, waiting: *waiting };
            }
        }
        shares
    }

    /// The last minutes, without gaps, up to the latest of which any node told.
    fn chart(&self) -> Vec<ChartPoint> {
        let mut sums: BTreeMap<u64, Bucket> = BTreeMap::new();
        for bucket in self.told.iter().flat_map(|(_, glance)| &glance.buckets) {
            let sum = sums.entry(bucket.number).or_default();
            sum.granted = sum.granted.saturating_add(bucket.granted);
            sum.released = sum.released.saturating_add(bucket.released);
            sum.lost = sum.lost.saturating_add(bucket.lost);
            sum.waited_ms.0 = sum.waited_ms.0.saturating_add(bucket.waited_ms.0);
            sum.waited_ms.1 = sum.waited_ms.1.max(bucket.waited_ms.1);
        }
        let now = crate::history::now_ms() / 10_000;
        (now.saturating_sub(CHART - 1)..=now)
            .map(|number| {
                let sum = sums.get(&number).copied().unwrap_or_default();
                ChartPoint {
                    at_s: number * 10,
                    granted: sum.granted,
                    waited_ms: sum.waited_ms.0 / u64::from(sum.granted.max(1)),
                    waited_max_ms: sum.waited_ms.1,
                    released: sum.released,
                    lost: sum.lost,
                }
            })
            .collect()
    }

    /// What is worth knowing of all pools, or of those that may be seen, and of nodes, the latest
    /// first.
    pub(crate) fn notable(&self, sees: Option<&dyn Fn(&str) -> bool>) -> Vec<HistoryEvent> {
        let shown = |record: &Record| match sees {
            Some(sees) => visible(record, sees),
            None => Some(record.clone()),
        };
        let mut events = self.events(|glance| &glance.notable, shown);
        events.truncate(NOTABLE);
        events
    }

    /// What happened in the pool, the oldest first.
    pub(crate) fn history(&self) -> Vec<HistoryEvent> {
        let mut events = self.events(|glance| &glance.records, |record| Some(record.clone()));
        events.reverse();
        events
    }

    fn events(
        &self,
        which: impl Fn(&Glance) -> &Vec<Record>,
        shown: impl Fn(&Record) -> Option<Record>,
    ) -> Vec<HistoryEvent> {
        let mut events: Vec<HistoryEvent> = Vec::new();
        for (node, glance) in &self.told {
            let name = &self.config.members[node.index()].name;
            let records = which(glance).iter().filter_map(&shown);
            events.extend(records.map(|record| event(name, &record)));
        }
        // The latest first; of one node, in the order in which it told them.
        events.reverse();
        events.sort_by_key(|event| std::cmp::Reverse(event.at_ms));
        events
    }
}

impl Page {
    /// Those that match, and of them one page.
    fn cut<T>(&self, all: Vec<T>, page: usize, fits: fn(&T, &str) -> bool) -> (Vec<T>, u64) {
        let found: Vec<T> = all.into_iter().filter(|one| fits(one, &self.search)).collect();
        let count = found.len() as u64;
        let start = page.saturating_mul(self.size);
        (found.into_iter().skip(start).take(self.size).collect(), count)
    }
}

fn fits_h(one: &HolderView, text: &str) -> bool {
    fits(&[&one.id.to_string(), &one.client, &one.reason, &one.node], text)
}

fn fits_w(one: &WaiterView, text: &str) -> bool {
    fits(&[&one.id.to_string(), &one.client, &one.reason, &one.node], text)
}

fn fits(texts: &[&str], wanted: &str) -> bool {
    let wanted = wanted.to_lowercase();
    wanted.is_empty() || texts.iter().any(|text| text.to_lowercase().contains(&wanted))
}

/// What is left of a record for whoever sees these pools: it is told of the first of them, and of
/// how many more of them there are, of those that are named.
fn visible(record: &Record, sees: impl Fn(&str) -> bool) -> Option<Record> {
    if record.pool.is_empty() {
        return Some(record.clone());
    }
    let mut pools = std::iter::once(&record.pool).chain(&record.others);
    let pool = pools.find(|pool| sees(pool))?.clone();
    let more_pools = u32::try_from(pools.filter(|pool| sees(pool)).count()).unwrap_or(u32::MAX);
    Some(Record { pool, more_pools, others: Vec::new(), ..record.clone() })
}

fn event(node: &str, record: &Record) -> HistoryEvent {
    let (origin, serial) = record.claim;
    let took = Some(record.took_ms);
    HistoryEvent {
        at_ms: record.at_ms,
        what: kind(record.what),
        node: node.to_owned(),
        pool: record.pool.clone(),
        id: (record.claim != (0, 0)).then(|| convert::api_id(ClaimId { origin, serial })),
        units: record.units,
        waited_ms: took.filter(|_| record.what == What::Granted),
        held_ms: took.filter(|took| {
            matches!(record.what, What::Released | What::Expired | What::Revoked) && *took > 0
        }),
        who: record.who.clone(),
        text: record.text.clone(),
        times: record.times,
        more_pools: record.more_pools,
    }
}

fn kind(what: What) -> HistoryKind {
    match what {
        What::Claimed => HistoryKind::Claimed,
        What::Granted => HistoryKind::Granted,
        What::Released => HistoryKind::Released,
        What::Cancelled => HistoryKind::Cancelled,
        What::Expired => HistoryKind::Expired,
        What::Revoked => HistoryKind::Revoked,
        What::Refused => HistoryKind::Refused,
        What::Reclaimed => HistoryKind::Reclaimed,
        What::Started => HistoryKind::Started,
        What::Met => HistoryKind::Met,
        What::Missed => HistoryKind::Missed,
        What::Suspected => HistoryKind::Suspected,
        What::Trusted => HistoryKind::Trusted,
        What::Stopped => HistoryKind::Stopped,
        What::Warned => HistoryKind::Warned,
        What::Cleared => HistoryKind::Cleared,
        What::Seated => HistoryKind::Seated,
        What::Amended => HistoryKind::Amended,
        What::Member => HistoryKind::Member,
        What::Passed => HistoryKind::Passed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_to_many_pools_is_told_of_those_that_may_be_seen() {
        let others = vec!["b".to_owned(), "ci-1".to_owned(), "ci-2".to_owned()];
        let record = Record {
            at_ms: 1,
            what: What::Warned,
            pool: "a".into(),
            claim: (0, 0),
            units: 0,
            took_ms: 0,
            who: String::new(),
            text: "n2 is away".into(),
            times: 1,
            more_pools: 99,
            others,
        };
        let told = |sees: fn(&str) -> bool| {
            visible(&record, sees).map(|record| (record.pool, record.more_pools))
        };
        assert_eq!(told(|pool| pool.starts_with("ci-")), Some(("ci-1".into(), 1)));
        assert_eq!(told(|pool| pool == "a"), Some(("a".into(), 0)));
        assert_eq!(told(|pool| pool == "b"), Some(("b".into(), 0)));
        assert_eq!(told(|_| false), None, "nothing that happened to it");
        let node = Record { pool: String::new(), others: Vec::new(), ..record.clone() };
        assert_eq!(visible(&node, |_| false), Some(node.clone()), "what happens to nodes is");
    }
}
