//! The register: every grant to this node's clients and its end, in order, for whoever wants to
//! judge afterwards. Nothing is decided by it.
//!
//! Where a pool is durable its register is in the journal's file and survives restarts. That costs
//! no client anything: nobody waits for its lines, which go to disk within a second
//! ([`crate::journal`]).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use quorate_api::{ClaimState, GrantEvent};
use quorate_core::{ClaimId, Shares};

use crate::convert;

/// Most events that are kept of a pool, in memory and on disk.
pub(crate) const KEPT: u64 = 1000;
/// Most events of all pools that are not durable: beyond that, the busiest forget first.
const TOTAL_MAX: usize = 100_000;
/// Most shares of one event.
pub(crate) const SHARES_MAX: usize = 100;

/// One event, as it is kept: without room of its own, which would be asked for and given back twice
/// for every claim.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) number: u64,
    pub(crate) at_ms: u64,
    pub(crate) boot: u32,
    pub(crate) grant: Option<u64>,
    pub(crate) id: ClaimId,
    pub(crate) state: ClaimState,
    pub(crate) shares: Shares,
}

impl Line {
    fn event(&self) -> GrantEvent {
        let &Line { number, at_ms, boot, grant, state, .. } = self;
        let shares = self.shares.iter().take(SHARES_MAX).map(|s| (s.unit.0, s.fence.0)).collect();
        GrantEvent { number, at_ms, boot, grant, id: convert::api_id(self.id), state, shares }
    }

    /// Nothing if it was written by another version.
    fn read(line: &[u8]) -> Option<Line> {
        let event: GrantEvent = serde_json::from_slice(line).ok()?;
        let GrantEvent { number, at_ms, boot, grant, id, state, shares } = event;
        let shares = convert::shares(shares)?;
        Some(Line { number, at_ms, boot, grant, id: convert::claim_id(id), state, shares })
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Register {
    /// By the number of the pool.
    pools: Vec<VecDeque<Line>>,
    /// What is left of earlier starts, until its pool has a number.
    recalled: BTreeMap<Arc<str>, VecDeque<Line>>,
    total: usize,
}

impl Register {
    /// With what is left of earlier starts, which may not be readable any more.
    pub(crate) fn recalled(lines: BTreeMap<Arc<str>, Vec<Vec<u8>>>) -> Self {
        let mut register = Register::default();
        for (pool, lines) in lines {
            let lines: VecDeque<Line> = lines.iter().filter_map(|line| Line::read(line)).collect();
            register.total += lines.len();
            register.recalled.insert(pool, lines);
        }
        register
    }

    /// Enters an event in the pool of this number and name; gives it its number, and how it is
    /// written down where it is.
    pub(crate) fn enter(
        &mut self,
        (seat, pool): (usize, &str),
        mut line: Line,
        written: bool,
    ) -> (u64, Option<Vec<u8>>) {
        if self.pools.len() <= seat {
            self.pools.resize_with(seat + 1, VecDeque::new);
        }
        let lines = &mut self.pools[seat];
        if lines.is_empty() && !self.recalled.is_empty() {
            *lines = self.recalled.remove(pool).unwrap_or_default();
        }
        line.number = lines.back().map_or(1, |last| last.number + 1);
        let number = line.number;
        let written = written.then(|| serde_json::to_vec(&line.event()).unwrap_or_default());
        lines.push_back(line);
        self.total += 1;
        let room = if self.total > TOTAL_MAX { 8 } else { KEPT as usize };
        while lines.len() > room {
            lines.pop_front();
            self.total -= 1;
        }
        (number, written)
    }

    /// Nothing happens in a pool for a while: gives back room that its lines do not need.
    pub(crate) fn rest(&mut self, seat: usize) {
        if let Some(lines) = self.pools.get_mut(seat) {
            lines.shrink_to_fit();
        }
    }

    /// What happened in a pool, of this number if it has one, after the event of that number, the
    /// first first.
    pub(crate) fn after(
        &self,
        (seat, pool): (Option<usize>, &str),
        number: u64,
    ) -> Vec<GrantEvent> {
        let entered = seat.and_then(|seat| self.pools.get(seat)).filter(|lines| !lines.is_empty());
        let lines = entered.or_else(|| self.recalled.get(pool)).into_iter().flatten();
        lines.filter(|line| line.number > number).map(Line::event).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_after_a_restart_and_the_oldest_are_dropped() {
        let shares = convert::shares([(0, 7)]).expect("one unit");
        let (id, state) = (ClaimId { origin: 1, serial: 2 }, ClaimState::Granted);
        let line = Line { number: 0, at_ms: 1, boot: 3, grant: None, id, state, shares };
        let mut register = Register::default();
        let mut lines: Vec<Vec<u8>> =
            (0..KEPT + 5).filter_map(|_| register.enter((2, "p"), line.clone(), true).1).collect();
        assert_eq!(register.after((Some(2), "p"), 0).first().map(|event| event.number), Some(6));
        assert_eq!(register.after((Some(2), "p"), KEPT + 4).len(), 1);
        lines.push(b"of another version".to_vec());
        let mut again = Register::recalled([(Arc::from("p"), lines)].into());
        assert_eq!(again.after((Some(0), "p"), KEPT + 4).len(), 1, "nothing is entered yet");
        assert_eq!(again.enter((0, "p"), line, false), (KEPT + 6, None), "nobody would read it");
        assert_eq!(again.after((Some(0), "p"), KEPT + 4).len(), 2);
        assert!(again.after((Some(1), "q"), 0).is_empty());
    }
}
