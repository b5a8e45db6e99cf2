//! The register: every grant to this node's clients and its end, in order, for whoever wants to
//! judge afterwards. Nothing is decided by it.
//!
//! Where a pool is durable its register is in the journal's file and survives restarts. That costs
//! no client anything: nobody waits for its lines, which go to disk within a second
//! ([`crate::journal`]).

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use quorate_api::GrantEvent;

/// Most events that are kept of a pool, in memory and on disk.
pub(crate) const KEPT: u64 = 1000;
/// Most events of all pools that are not durable: beyond that, the busiest forget first.
const TOTAL_MAX: usize = 100_000;
/// Most shares of one event.
pub(crate) const SHARES_MAX: usize = 100;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Register {
    pools: HashMap<Arc<str>, VecDeque<GrantEvent>>,
    total: usize,
}

impl Register {
    /// With what is left of earlier starts, which may not be readable any more.
    pub(crate) fn recalled(lines: BTreeMap<Arc<str>, Vec<Vec<u8>>>) -> Self {
        let mut register = Register::default();
        for (pool, lines) in lines {
            let events = lines.iter().filter_map(|line| serde_json::from_slice(line).ok());
            let events: VecDeque<GrantEvent> = events.collect();
            register.total += events.len();
            register.pools.insert(pool, events);
        }
        register
    }

    /// Enters an event; gives it its number, and how it is written down where it is.
    pub(crate) fn enter(
        &mut self,
        pool: &Arc<str>,
        mut event: GrantEvent,
        written: bool,
    ) -> (u64, Option<Vec<u8>>) {
        let events = self.pools.entry(Arc::clone(pool)).or_default();
        event.number = events.back().map_or(1, |last| last.number + 1);
        let number = event.number;
        let line = written.then(|| serde_json::to_vec(&event).unwrap_or_default());
        events.push_back(event);
        self.total += 1;
        let room = if self.total > TOTAL_MAX { 8 } else { KEPT as usize };
        while events.len() > room {
            events.pop_front();
            self.total -= 1;
        }
        (number, line)
    }

    /// What happened in a pool after the event of this number, the first first.
    pub(crate) fn after(&self, pool: &str, number: u64) -> Vec<GrantEvent> {
        let events = self.pools.get(pool).into_iter().flatten();
        events.filter(|event| event.number > number).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use quorate_api::{ClaimId, ClaimState};

    use super::*;

    #[test]
    fn numbers_go_on_after_a_restart_and_the_oldest_are_dropped() {
        let id = ClaimId::from_halves(1, 2);
        let (state, shares) = (ClaimState::Granted, vec![(0, 7)]);
        let event = GrantEvent { number: 0, at_ms: 1, boot: 3, grant: None, id, state, shares };
        let (mut register, pool) = (Register::default(), Arc::from("p"));
        let mut lines: Vec<Vec<u8>> =
            (0..KEPT + 5).filter_map(|_| register.enter(&pool, event.clone(), true).1).collect();
        assert_eq!(register.after("p", 0).first().map(|event| event.number), Some(6));
        assert_eq!(register.after("p", KEPT + 4).len(), 1);
        lines.push(b"of another version".to_vec());
        let mut again = Register::recalled([(Arc::clone(&pool), lines)].into());
        assert_eq!(again.enter(&pool, event, false), (KEPT + 6, None), "nobody would read it");
        assert!(again.after("q", 0).is_empty());
    }
}
