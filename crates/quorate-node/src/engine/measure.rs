//! What is counted of pools, when somebody reads it: a slice of the pools at a time, so that nobody
//! waits for long who wants something else of the engine meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quorate_core::{Moment, Unit};
use tokio::sync::oneshot;

use super::Engine;
use super::pools::Pool;
use crate::alarms::Due;
use crate::clock;
use crate::config::PoolDef;
use crate::ledger::State;
use crate::metrics::{PoolMeters, Standing};

/// Pools looked at before others have their turn, and for how long they have it.
const SLICE: usize = 2000;
const PAUSE: Duration = Duration::from_millis(1);

/// Most pools of the charter that are counted each by itself: those that came into use first.
const METERED_MAX: usize = 1000;
/// What all others are counted as.
const OTHERS: &str = "(other pools)";

/// The meters of each definition, by its label.
pub(super) type PoolMeterCache = BTreeMap<Arc<str>, Arc<PoolMeters>>;

/// A reading under way.
pub(super) struct Reading {
    /// The pool that is looked at next.
    next: usize,
    standings: BTreeMap<Arc<str>, Standing>,
    /// Who wants it.
    replies: Vec<oneshot::Sender<()>>,
}

impl Engine {
    /// What a pool is counted as, and where. Those of a pattern are counted together, and so are
    /// those of the charter beyond the first thousand.
    pub(super) fn meters_of(
        &mut self,
        def: &PoolDef,
        kinds: &[&'static str],
    ) -> (Arc<str>, Arc<PoolMeters>) {
        let own = def.label();
        let is_added = def.ever.is_some();
        let room = self.meters.len() < METERED_MAX + self.config.pools.len();
        let own = if !is_added || room || self.meters.contains_key(own.as_str()) {
            own.as_str()
        } else {
            OTHERS
        };
        if let Some((label, meters)) = self.meters.get_key_value(own) {
            return (Arc::clone(label), Arc::clone(meters));
        }
        let (label, meters) = (Arc::from(own), Arc::new(self.metrics.pool(own, kinds)));
        self.meters.insert(Arc::clone(&label), Arc::clone(&meters));
        (label, meters)
    }

    /// Sets the gauges, and says so when that is done.
    pub(super) fn measure(&mut self, reply: oneshot::Sender<()>) {
        if let Some(reading) = &mut self.reading {
            return reading.replies.push(reply);
        }
        let labels = self.config.pools.iter().map(|def| Arc::from(def.label()));
        let standings = labels.map(|label| (label, Standing::default())).collect();
        self.reading = Some(Reading { next: 0, standings, replies: vec![reply] });
        self.measure_on();
    }

    /// The next slice.
    pub(super) fn measure_on(&mut self) {
        let Some(mut reading) = self.reading.take() else { return };
        let (now, away) = (clock::now(), self.suspects());
        for pool in self.pools.iter().skip(reading.next).take(SLICE) {
            if pool.is_gone() {
                continue;
            }
            let standing = reading.standings.entry(Arc::clone(&pool.label)).or_default();
            let most = self.outlook_of(pool, &away, now).map_or(0, |outlook| outlook.most());
            standing.see_outlook(most.into());
            add(standing, pool, self.answers_for(pool), now);
        }
        reading.next += SLICE;
        if reading.next < self.pools.len() {
            self.reading = Some(reading);
            return self.alarms.set(now.after(PAUSE), Due::Reading);
        }
        let unshadowed = i64::try_from(self.unshadowed(0).1).unwrap_or(i64::MAX);
        self.metrics.unshadowed.set(unshadowed);
        self.metrics.measure(&self.config, reading.standings.iter());
        for reply in reading.replies {
            // Whoever asked may have gone away.
            let _ = reply.send(());
        }
    }
}

fn add(standing: &mut Standing, pool: &Pool, answers_for_it: bool, now: Moment) {
    let (mut held, mut waiting) = ((0, 0), (0, 0));
    let mut count = |granted: bool, units: u32| {
        let (claims, sum) = if granted { &mut held } else { &mut waiting };
        *claims += 1;
        *sum += u64::from(units);
    };
    let by_the_books = pool.def.protocol.about.books.decide();
    pool.seat.ledger(&mut |entry| {
        if by_the_books {
            count(!entry.standing.waits(), entry.units.get());
        }
    });
    for claimed in pool.ledger.live() {
        let granted = match &claimed.state {
            State::Waiting => {
                standing.oldest_wait = standing.oldest_wait.max(now.since(claimed.made));
                false
            }
            State::Granted { since, .. } => {
                standing.oldest_hold = standing.oldest_hold.max(now.since(*since));
                true
            }
            State::Shown { .. } | State::Over { .. } => continue,
        };
        // Where no books decide, every node counts its own clients.
        if !by_the_books {
            count(granted, claimed.want.units());
        }
    }
    standing.held += held.1;
    standing.waiters += waiting.0;
    standing.wait_units += waiting.1;
    if answers_for_it {
        let units = u64::from(pool.def.units);
        standing.capacity += units;
        if by_the_books {
            let grace = pool.seat.grace_until().is_some();
            let free = units.saturating_sub(held.1);
            // One that is still held is counted there.
            let mut draining = 0;
            let there = |unit: Unit| unit.0 < pool.def.units;
            pool.seat.drained(&mut |unit, held| draining += u64::from(!held && there(unit)));
            let free = free.saturating_sub(draining);
            let (free, quarantined) = if grace { (0, free) } else { (free, 0) };
            standing.draining += draining;
            standing.known_free = Some(standing.known_free.unwrap_or(0) + free);
            standing.quarantined += quarantined;
        }
    }
    pool.seat.facts(now, &mut |fact| standing.facts.push(fact));
}
