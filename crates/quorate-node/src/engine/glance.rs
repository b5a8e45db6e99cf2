//! What an operator sees who looks at this node, and the record of what happened.

use quorate_api::ClaimState;
use quorate_core::{ClaimId, Moment};
use quorate_wire::glance::{FOUND_MAX, Glance, Record, Wanted, What};

use super::Engine;
use super::claims::CANCELLED;
use crate::history;
use crate::ledger::{Claimed, State};

/// Most records in one answer: it must fit in a frame.
const RECORDS_MAX: u32 = 512;
const NOTABLE: usize = 100;
/// Most pools whose claims are counted at once.
const COUNTED_MAX: usize = 256;

impl Engine {
    /// Answers an operator.
    pub(super) fn glance(&self, wanted: &Wanted) -> Glance {
        let view = self.node_view();
        let seat = wanted.pool.as_ref().and_then(|pool| self.by_name.get(pool.as_str()));
        let mut glance = Glance {
            boot: self.boot,
            ready: view.ready,
            grace_micros: u64::try_from(self.grace_left().as_micros()).unwrap_or(u64::MAX),
            claims: view.claims,
            clients: view.clients,
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
            glance.counts.push(pool.map_or((0, 0), |pool| {
                let held = pool.ledger.iter().map(|(_, claimed)| match &claimed.state {
                    State::Granted { shares, .. } => shares.len() as u64,
                    _ => 0,
                });
                (held.sum(), pool.ledger.waiting() as u64)
            }));
        }
        if let Some((origin, serial)) = wanted.claim {
            let id = ClaimId { origin, serial };
            let knows = |pool: &&super::Pool| pool.ledger.get(&id).is_some();
            glance.found = self.pools.iter().filter(knows).map(|p| p.name.to_string()).collect();
        } else if let Some(search) = &wanted.search {
            let names = self.pools.iter().map(|pool| &pool.name);
            let mut found: Vec<&str> =
                names.filter(|name| name.contains(search.as_str())).map(|name| &**name).collect();
            found.sort_unstable();
            glance.found_count = found.len() as u64;
            glance.found = found.into_iter().take(FOUND_MAX).map(String::from).collect();
        }
        glance
    }

    /// A claim was made or granted.
    pub(super) fn note(&mut self, seat: usize, id: ClaimId, what: What, took: std::time::Duration) {
        let pool = &self.pools[seat];
        let Some(claimed) = pool.ledger.get(&id) else { return };
        let record = record(&pool.name, id, claimed, what, took, &claimed.want.reason);
        self.history.note(seat, record);
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
        let pool = &self.pools[seat];
        let Some(claimed) = pool.ledger.get(&id).filter(|claimed| claimed.want.units() > 0) else {
            return;
        };
        let took = match &claimed.state {
            State::Granted { since, .. } => now.since(*since),
            _ => std::time::Duration::ZERO,
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
        let record = record(&pool.name, id, claimed, what, took, text);
        self.history.note(seat, record);
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
        };
        self.history.note(seat, record);
    }
}

fn record(
    pool: &str,
    id: ClaimId,
    claimed: &Claimed,
    what: What,
    took: std::time::Duration,
    text: &str,
) -> Record {
    Record {
        at_ms: history::now_ms(),
        what,
        pool: pool.to_owned(),
        claim: (id.origin, id.serial),
        units: claimed.want.units(),
        took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        who: claimed.want.client.clone(),
        text: text.to_owned(),
    }
}
