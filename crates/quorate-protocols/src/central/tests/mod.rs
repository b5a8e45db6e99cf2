//! What `central` promises, step by step: one event in, exactly these effects out.

pub(crate) mod absent;
pub(crate) mod eligible;
mod exhaustive;
mod exhaustive_moves;
mod judged;
pub(crate) mod labelled;
mod moving;
mod relabelled;
pub(crate) mod seeds;
mod steps;
mod transcripts;

use quorate_core::{
    Claim, ClaimId, Effect, EffectOf, Event, EventOf, Moment, NodeId, Start, Units,
};

use super::{Central, Pool};
use crate::by_hand::ByHand;

/// Seats that talk over links which deliver at once, in order, when asked to.
struct Table {
    world: ByHand<Central>,
    /// What the arbiter wrote down last.
    record: Option<super::Record>,
    /// Everything else the seats wanted, as traces show it.
    wanted: Vec<String>,
}

impl Table {
    fn new(nodes: usize, pool: Pool) -> Self {
        let (world, began) = ByHand::new(nodes, pool, Moment(1_000));
        let mut table = Table { world, record: None, wanted: Vec::new() };
        for (node, effect) in began {
            table.perform(node, vec![effect]);
        }
        table.wanted.clear();
        table
    }

    fn restart(&mut self, node: usize, start: Start<super::Record>) {
        let effects = self.world.restart(node.into(), start);
        self.perform(node.into(), effects);
    }

    fn step(&mut self, node: usize, event: EventOf<Central>) {
        let effects = self.world.step(node.into(), event);
        self.perform(node.into(), effects);
    }

    fn perform(&mut self, node: NodeId, effects: Vec<EffectOf<Central>>) {
        for effect in effects {
            if let Effect::Persist(record) = &effect {
                self.record = Some(record.clone());
            }
            self.wanted.push(format!("{node} {effect}"));
        }
    }

    fn claim(&mut self, node: usize, serial: u64, h: u32) {
        let units = Units::new(h, self.world.pool.goods.units).unwrap();
        self.step(node, Event::Claim(Claim::any(id(serial), units)));
    }

    fn deliver_all(&mut self) {
        while let Some((to, event)) = self.world.next() {
            self.step(to.index(), event);
        }
    }

    /// What was wanted since last asked, without the arming and disarming of alarms.
    fn wanted(&mut self) -> Vec<String> {
        let mut wanted = std::mem::take(&mut self.wanted);
        wanted.retain(|line| !line.contains(" arm ") && !line.contains(" disarm "));
        wanted
    }
}

fn id(serial: u64) -> ClaimId {
    ClaimId { origin: 7, serial }
}
