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

use std::collections::VecDeque;

use quorate_core::{
    Claim, ClaimId, Effect, Event, EventOf, Moment, NodeId, Outbox, Protocol, Seat, Start, Units,
};

use super::{Central, Message, Pool};

/// Seats that talk over links which deliver at once, in order, when asked to.
struct Table {
    pool: Pool,
    seats: Vec<Central>,
    boots: Vec<u32>,
    now: Moment,
    wire: VecDeque<(NodeId, NodeId, Message)>,
    /// What the arbiter wrote down last.
    record: Option<super::Record>,
    /// Everything else the seats wanted, as traces show it.
    wanted: Vec<String>,
    messages: usize,
}

impl Table {
    fn new(nodes: usize, pool: Pool) -> Self {
        let mut table = Table {
            pool,
            seats: Vec::new(),
            boots: vec![0; nodes],
            now: Moment(1_000),
            wire: VecDeque::new(),
            record: None,
            wanted: Vec::new(),
            messages: 0,
        };
        for node in 0..nodes {
            let seat = table.boot(node, Start::First);
            table.seats.push(seat);
        }
        table.wanted.clear();
        table
    }

    fn boot(&mut self, node: usize, start: Start<super::Record>) -> Central {
        let mut out = Outbox::new();
        let seat =
            Seat { me: node.into(), boot: self.boots[node], now: self.now, pool: &self.pool };
        let central = Central::boot(&seat, start, &mut out);
        self.perform(node, &mut out);
        central
    }

    fn restart(&mut self, node: usize, start: Start<super::Record>) {
        self.wire.retain(|(_, to, _)| to.index() != node);
        self.boots[node] += 1;
        self.seats[node] = self.boot(node, start);
    }

    fn step(&mut self, node: usize, event: EventOf<Central>) {
        let mut out = Outbox::new();
        let seat =
            Seat { me: node.into(), boot: self.boots[node], now: self.now, pool: &self.pool };
        self.seats[node].step(&seat, event, &mut out);
        self.seats[node].audit(&seat);
        self.perform(node, &mut out);
    }

    fn perform(&mut self, node: usize, out: &mut Outbox<Central>) {
        for effect in out.drain() {
            if let Effect::Tell { to, message } = effect {
                assert_ne!(to.index(), node, "nobody writes to himself");
                self.messages += 1;
                self.wire.push_back((node.into(), to, message));
            } else {
                if let Effect::Persist(record) = &effect {
                    self.record = Some(record.clone());
                }
                self.wanted.push(format!("n{node} {effect}"));
            }
        }
    }

    fn claim(&mut self, node: usize, serial: u64, h: u32) {
        let units = Units::new(h, self.pool.goods.units).unwrap();
        self.step(node, Event::Claim(Claim::any(id(serial), units)));
    }

    fn deliver_all(&mut self) {
        while let Some((from, to, message)) = self.wire.pop_front() {
            self.step(to.index(), Event::Hear { from, message });
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
