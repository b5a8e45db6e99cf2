//! What an operator sees who looks at this node, and the record of what happened.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use quorate_api::{ClaimState, Problem, RegisterView};
use quorate_core::{ClaimId, Moment};
use quorate_wire::glance::{Count, FOUND_MAX, Glance, Only, Order, Record, Wanted, What};

use super::claims::CANCELLED;
use super::states::State as SeatState;
use super::{Engine, Pool};
use crate::history::Brief;
use crate::ledger::{Claimed, State};
use crate::register::Line;
use crate::{admission, clock, history};

/// Most records in one answer: it must fit in a frame.
const RECORDS_MAX: u32 = 512;
const NOTABLE: usize = 100;
/// Most pools whose claims are counted at once.
const COUNTED_MAX: usize = 256;

/// How old may be what takes a walk through all claims, so that many dashboards cost no more than
/// one.
const RECENT: Duration = Duration::from_millis(300);
/// Most lists of pools that are kept for so long.
const LISTS_MAX: usize = 16;

/// What operators were told a moment ago.
#[derive(Default)]
pub(super) struct Recent {
    lists: Vec<(Moment, Arc<List>)>,
    unconnected: Option<(Moment, u64)>,
}

/// The pools that somebody asked for, of so many.
struct List {
    of: usize,
    search: String,
    only: Only,
    order: Order,
    pools: Vec<(String, Count)>,
    count: u64,
}

impl Engine {
    /// Answers an operator.
    pub(super) fn glance(&mut self, wanted: &Wanted) -> Glance {
        let (view, now) = (self.node_view(), clock::now());
        let unconnected = self.unconnected(now);
        let seat = wanted.pool.as_ref().and_then(|pool| self.by_name.get(pool.as_str()));
        let mut glance = Glance {
            boot: self.boot,
            ready: view.ready,
            grace_micros: u64::try_from(self.grace_left().as_micros()).unwrap_or(u64::MAX),
            claims: view.claims,
            clients: view.clients,
            unconnected,
            sees: self.peers.sights(&self.watch),
            notable: self.history.notable(NOTABLE),
            ..Glance::default()
        };
        if let Some(pool) = &wanted.pool {
            glance.survey = self.survey(pool, None);
        }
        if let Some(seat) = seat {
            let most = wanted.records_max.min(RECORDS_MAX) as usize;
            glance.records = self.history.records(*seat, most);
            glance.buckets = self.history.buckets(*seat);
        }
        for name in wanted.counted.iter().take(COUNTED_MAX) {
            let pool = self.by_name.get(name.as_str()).map(|seat| &self.pools[*seat]);
            glance.outlooks.push(pool.and_then(|pool| self.outlook_line(pool, now)));
            glance.counts.push(pool.map_or_else(Count::default, |pool| count(pool, now)));
        }
        if let Some((origin, serial)) = wanted.claim {
            let id = ClaimId { origin, serial };
            let knows = |pool: &&Pool| pool.ledger.get(&id).is_some();
            let found = self.pools.iter().filter(knows);
            glance.found = found.map(|pool| (pool.name.to_string(), Count::default())).collect();
        } else if let Some(search) = &wanted.search {
            let found = self.list(search, wanted.only, wanted.order, now);
            (glance.found, glance.found_count) = (found.pools.clone(), found.count);
        }
        glance
    }

    /// The pools with this text in their names, in this order: as they were, if that was asked for
    /// a moment ago.
    fn list(&mut self, search: &str, only: Only, order: Order, now: Moment) -> Arc<List> {
        let pools = self.pools.len();
        let lists = &mut self.recent.lists;
        lists.retain(|(taken, list)| now.since(*taken) < RECENT && list.of == pools);
        let asked = |list: &List| list.search == search && (list.only, list.order) == (only, order);
        if let Some((_, list)) = lists.iter().find(|(_, list)| asked(list)) {
            return Arc::clone(list);
        }
        let matching = self.pools.iter().filter(|pool| !pool.is_gone());
        let matching = matching.filter(|pool| pool.name.contains(search));
        let mut found: Vec<(u64, &str, Count)> = matching
            .map(|pool| (pool, count(pool, now)))
            .filter(|(_, count)| only.takes(count))
            .map(|(pool, count)| (order.rank(&count, pool.def.units), &*pool.name, count))
            .collect();
        // What is first here is first anywhere only if others agree; whoever asks adds it up.
        found.sort_unstable_by_key(|(rank, name, _)| (std::cmp::Reverse(*rank), *name));
        let count = found.len() as u64;
        let listed = found.into_iter().take(FOUND_MAX);
        let listed = listed.map(|(_, name, count)| (name.to_owned(), count)).collect();
        let search = search.to_owned();
        let list = Arc::new(List { of: pools, search, only, order, pools: listed, count });
        if self.recent.lists.len() < LISTS_MAX {
            self.recent.lists.push((now, Arc::clone(&list)));
        }
        list
    }

    /// Clients that have claims here and are not connected: HTTP needs no connection to hold units.
    /// They are told apart by what they call themselves, and by claim where they say nothing.
    fn unconnected(&mut self, now: Moment) -> u64 {
        let known = self.recent.unconnected.filter(|(taken, _)| now.since(*taken) < RECENT);
        if let Some((_, unconnected)) = known {
            return unconnected;
        }
        let unconnected = self.count_unconnected();
        self.recent.unconnected = Some((now, unconnected));
        unconnected
    }

    fn count_unconnected(&self) -> u64 {
        let claims = self.pools.iter().flat_map(|pool| pool.ledger.live());
        let away = claims
            .filter(|claimed| claimed.session.as_ref().is_none_or(|session| session.is_closed()));
        let (named, nameless): (Vec<_>, Vec<_>) =
            away.partition(|claimed| !claimed.want.client.is_empty());
        let names: BTreeSet<&str> = named.iter().map(|c| c.want.client.as_str()).collect();
        (names.len() + nameless.len()) as u64
    }

    /// A claim was made or granted.
    pub(super) fn note(&mut self, seat: usize, id: ClaimId, what: What, took: Duration) {
        let at_ms = self.at_ms();
        let pool = &self.pools[seat];
        let Some(claimed) = pool.ledger.get(&id) else { return };
        let brief = brief(&pool.name, id, claimed, (at_ms, what, took), &claimed.want.reason);
        self.history.note_brief(seat, &brief);
        if what == What::Granted {
            self.register(seat, id, ClaimState::Granted);
        }
    }

    /// The calendar's time of what is done now.
    fn at_ms(&mut self) -> u64 {
        let now = self.now();
        self.calendar.at_ms(now)
    }

    /// Enters a grant of ours, or that it is about to be over, into the register.
    fn register(&mut self, seat: usize, id: ClaimId, state: ClaimState) {
        let at_ms = self.at_ms();
        let pool = &self.pools[seat];
        let Some(claimed) = pool.ledger.get(&id) else { return };
        let State::Granted { shares, .. } = &claimed.state else { return };
        let (boot, grant, shares) = (self.boot, claimed.grant, shares.clone());
        let line = Line { number: 0, at_ms, boot, grant, id, state, shares };
        let durable = pool.def.protocol.about.durable;
        if let (number, Some(line)) = self.register.enter((seat, &pool.name), line, durable) {
            self.journal.note(&pool.name, number, line);
        }
    }

    pub(super) fn registered(&self, pool: &str, after: u64) -> Result<RegisterView, Problem> {
        let def = self.config.pool(pool).ok_or_else(|| admission::unknown_pool(pool))?;
        let (node, durable) = (self.config.name().to_owned(), def.protocol.about.durable);
        let events = self.register.after((self.by_name.get(pool).copied(), pool), after);
        Ok(RegisterView { node, durable, events })
    }

    /// A claim is about to be over; says nothing of claims that are known by name only.
    pub(super) fn note_end(
        &mut self,
        seat: usize,
        id: ClaimId,
        state: ClaimState,
        why: &str,
        now: Moment,
    ) {
        self.register(seat, id, state);
        let at_ms = self.at_ms();
        let pool = &self.pools[seat];
        let Some(claimed) = pool.ledger.get(&id).filter(|claimed| claimed.want.units() > 0) else {
            return;
        };
        let took = match &claimed.state {
            State::Granted { since, .. } => now.since(*since),
            _ => Duration::ZERO,
        };
        let (what, text) = match state {
            ClaimState::Released => (What::Released, claimed.want.reason.as_str()),
            ClaimState::Cancelled if why == CANCELLED => {
                (What::Cancelled, claimed.want.reason.as_str())
            }
            ClaimState::Cancelled => (What::Cancelled, why),
            ClaimState::Revoked => (What::Revoked, why),
            ClaimState::Refused => (What::Refused, why),
            ClaimState::Lost | ClaimState::Waiting | ClaimState::Granted => (What::Expired, why),
        };
        let brief = brief(&pool.name, id, claimed, (at_ms, what, took), text);
        self.history.note_brief(seat, &brief);
    }

    /// As an arbiter, this node took units back.
    pub(super) fn note_reclaim(&mut self, seat: usize, id: ClaimId, units: usize) {
        let record = Record {
            at_ms: history::now_ms(),
            what: What::Reclaimed,
            pool: self.pools[seat].name.to_string(),
            claim: (id.origin, id.serial),
            units: u32::try_from(units).unwrap_or(u32::MAX),
            took_ms: 0,
            who: String::new(),
            text: "the holder did not renew".into(),
            times: 1,
            more_pools: 0,
            others: Vec::new(),
        };
        self.history.note(seat, record);
    }
}

fn brief<'a>(
    pool: &'a str,
    id: ClaimId,
    claimed: &'a Claimed,
    (at_ms, what, took): (u64, What, Duration),
    text: &'a str,
) -> Brief<'a> {
    Brief {
        at_ms,
        what,
        pool,
        claim: (id.origin, id.serial),
        units: claimed.want.units(),
        took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        who: &claimed.want.client,
        text,
    }
}

/// What this node's clients have of a pool.
fn count(pool: &Pool, now: Moment) -> Count {
    let waited = |made: Moment| u64::try_from(now.since(made).as_millis()).unwrap_or(u64::MAX);
    let waits = || pool.ledger.waiting_since().map(waited);
    Count {
        held: pool.ledger.units_held(),
        waiting: pool.ledger.waiting() as u64,
        waited_ms: waits().fold(0, u64::saturating_add),
        oldest_ms: waits().next().unwrap_or(0),
        unavailable: u32::from(pool.states.contains(&SeatState::GrantsNothing)),
    }
}
