//! Nodes restarted one after the other, as an operator would: the next one when the one before
//! promises again and holders had time to renew. Their clients go on at other nodes, as the client
//! library does, and must keep what they have.

use quorate_core::{NodeId, NodeSet, Protocol};
use quorate_laws::HoldersKeep;

use crate::client::Phase;
use crate::misfortune::Trouble;
use crate::world::{Happening, Stop, World};

/// How far that has come.
#[derive(Debug, Default)]
pub(crate) struct Rolling {
    pub(crate) law: HoldersKeep,
    /// How many were restarted.
    restarts: u32,
    /// From when on all nodes promise again.
    whole_at: u64,
    /// The next may go down from then on.
    next_at: u64,
}

impl<P: Protocol> World<'_, P> {
    fn lease(&self) -> u64 {
        self.plan.pool.lease.map_or(0, |lease| lease.as_nanos() as u64)
    }

    /// Looks again after a while whether the next node can be restarted.
    pub(crate) fn plan_roll(&mut self) {
        if self.rolling.is_some() {
            let least = self.lease() / 8;
            let at = self.now + least + self.chance.faults.below(least.saturating_add(1));
            self.queue.push(at, Happening::Trouble(Trouble::Roll));
        }
    }

    /// A node was restarted: it promises nothing for a lease on its own clock. After another lease
    /// whoever holds something has renewed it.
    pub(crate) fn is_whole_later(&mut self) {
        let (lease, drift) = (self.lease(), u64::from(self.plan.pool.drift_ppm));
        let at = self.now + lease + lease * 2 * drift / 1_000_000;
        if let Some(rolling) = &mut self.rolling {
            (rolling.whole_at, rolling.next_at) = (at, at + lease);
        }
    }

    /// The next node goes down, if all others are whole.
    pub(crate) fn roll(&mut self) -> Result<(), Stop> {
        if self.calm {
            return Ok(());
        }
        self.plan_roll();
        let all_run = self.nodes.iter().all(|node| node.seat.is_some());
        let (now, lease) = (self.now, self.lease());
        let rolling = self.rolling.as_mut().expect("only such a plan comes here");
        if !all_run || now < rolling.next_at {
            return Ok(());
        }
        let name = NodeId(rolling.restarts % self.plan.nodes);
        rolling.restarts += 1;
        if !P::can_lose(self.pool, &NodeSet::from_iter([name])) {
            return Ok(());
        }
        // What was granted a moment ago rests on what it was granted with; with a first renewal
        // others are asked, and with the second they have answered.
        for (index, client) in self.clients.iter().enumerate() {
            let renewed = client.extended.0 > rolling.whole_at;
            if client.phase == Phase::Using && !renewed {
                rolling.law.excuse(client.claim(index));
            }
        }
        self.crash(name);
        for index in 0..self.clients.len() {
            // Some are quick enough to find the same node again.
            if self.clients[index].home == name && self.chance.faults.chance(750_000) {
                let at = now + self.chance.faults.below(lease / 4 + 1);
                let client = index as u32;
                self.queue.push(at, Happening::Trouble(Trouble::Leave { client }));
            }
        }
        Ok(())
    }

    /// A client whose home is down says at another node what it would have said there.
    pub(crate) fn go_elsewhere(&mut self, index: usize) -> Result<(), Stop> {
        let old = self.clients[index].home;
        let up = |node: &NodeId| self.nodes[node.index()].is_running();
        if up(&old) {
            return Ok(());
        }
        let others: Vec<NodeId> = (0..self.nodes.len()).map(NodeId::from).filter(up).collect();
        if others.is_empty() {
            return Ok(());
        }
        let new = *self.chance.faults.pick(&others);
        self.note(&new, format_args!("client {index} comes from {old}"));
        // Its deadline is a moment in its own life; only the clock that we read it from changes.
        let stop_at = self.stop_at(index);
        let client = &mut self.clients[index];
        client.home = new;
        if client.phase == Phase::Using {
            client.until = self.nodes[new.index()].clock.read(stop_at.max(self.now));
            client.renew_at = self.now;
        }
        match client.phase {
            Phase::Using => self.wake_for_next(index),
            Phase::Due => self.begin(index)?,
            Phase::Waiting => self.ask(index)?,
            Phase::Cancelling => self.cancel(index)?,
            Phase::Releasing => self.release(index)?,
            Phase::Thinking | Phase::Dead | Phase::Done => {}
        }
        Ok(())
    }
}
