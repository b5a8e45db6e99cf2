//! A driver that does what a script says: ordered channels, one step at a time.

use std::collections::{BTreeMap, VecDeque};

use quorate_core::{
    Claim, ClaimId, Effect, EffectOf, Event, EventOf, Moment, NodeId, Outbox, Protocol, Seat,
    Start, Units,
};

use crate::broadcast::{Message, Pool, Weighted};
use crate::reference::{Counted, Difference, Rule};

/// What a script says of messages, for each kind of participant.
pub(super) trait Scripted: Protocol<Pool = Pool> {
    /// The scenario's name for a message, and the timestamp that it may ask for.
    fn label(message: &Self::Message) -> (&'static str, Option<u64>);
}

impl<R: Rule> Scripted for Counted<R> {
    fn label(message: &Difference) -> (&'static str, Option<u64>) {
        match *message {
            Difference::Permit { .. } => ("REPLY", None),
            Difference::Request { clock } => ("REQUEST", Some(clock)),
        }
    }
}

impl Scripted for Weighted {
    fn label(message: &Message) -> (&'static str, Option<u64>) {
        match *message {
            Message::Request { clock, .. } => ("REQUEST", Some(clock)),
            Message::Reply { request, .. } => ("REPLY", request),
            Message::Query { query, .. } => ("QUERY", Some(query)),
            Message::Notice { .. } => ("NOTICE", None),
            Message::Join { .. } => ("JOIN", None),
            Message::Joined { clock, .. } => ("JOIN_ACK", Some(clock)),
            Message::Expelled { .. } => ("EXPELLED", None),
        }
    }
}

/// Some participants and the messages between them.
pub(super) struct World<P: Scripted> {
    pub(super) pool: Pool,
    pub(super) nodes: Vec<Option<P>>,
    channels: BTreeMap<(NodeId, NodeId), VecDeque<P::Message>>,
    /// Each node's claim that is waiting or held.
    claims: Vec<Option<(ClaimId, bool)>>,
    made: Vec<u64>,
    held: Vec<u32>,
    pub(super) in_use_max: u32,
    pub(super) delivered: Vec<P::Message>,
    pub(super) anomalies: Vec<&'static str>,
    pub(super) losses: Vec<NodeId>,
}

impl<P: Scripted> World<P> {
    pub(super) fn new(pool: Pool) -> Self {
        let count = pool.nodes as usize;
        let mut world = World {
            nodes: Vec::new(),
            channels: BTreeMap::new(),
            claims: vec![None; count],
            made: vec![0; count],
            held: vec![0; count],
            in_use_max: 0,
            delivered: Vec::new(),
            anomalies: Vec::new(),
            losses: Vec::new(),
            pool,
        };
        for node in 0..count {
            let mut out = Outbox::new();
            let pool = world.pool.clone();
            world.nodes.push(Some(P::boot(&seat(&pool, node.into()), Start::First, &mut out)));
        }
        world
    }

    /// A node comes back in a new boot and has forgotten everything.
    pub(super) fn restart(&mut self, node: NodeId, boot: u32) {
        self.crash(node);
        let pool = self.pool.clone();
        let seat = Seat { boot, ..seat(&pool, node) };
        self.nodes[node.index()] = Some(P::boot(&seat, Start::Amnesia, &mut Outbox::new()));
    }

    pub(super) fn step(&mut self, node: NodeId, event: EventOf<P>) {
        let Some(participant) = &mut self.nodes[node.index()] else { return };
        let mut out = Outbox::new();
        participant.step(&seat(&self.pool, node), event, &mut out);
        participant.audit(&seat(&self.pool, node));
        for effect in out.drain().collect::<Vec<_>>() {
            self.perform(node, effect);
        }
    }

    fn perform(&mut self, node: NodeId, effect: EffectOf<P>) {
        match effect {
            Effect::Tell { to, message } => {
                assert_ne!(to, node, "nobody tells itself");
                if self.nodes[to.index()].is_some() {
                    self.channels.entry((node, to)).or_default().push_back(message);
                }
            }
            Effect::Grant { claim, shares, .. } => {
                assert_eq!(self.claims[node.index()], Some((claim, false)), "granted once");
                self.claims[node.index()] = Some((claim, true));
                self.held[node.index()] = shares.len() as u32;
                self.in_use_max = self.in_use_max.max(self.held.iter().sum());
            }
            // The client goes on until it hears of it, which is when the script has it release.
            Effect::Lose { .. } => self.losses.push(node),
            Effect::Anomaly { what, .. } => self.anomalies.push(what),
            _ => {}
        }
    }

    /// A client of an idle node wants units.
    pub(super) fn request(&mut self, node: NodeId, units: u32) {
        if self.claims[node.index()].is_some() || self.nodes[node.index()].is_none() {
            return;
        }
        self.made[node.index()] += 1;
        let id = ClaimId { origin: u64::from(node.0), serial: self.made[node.index()] };
        self.claims[node.index()] = Some((id, false));
        let units = Units::new(units, self.pool.units).unwrap();
        self.step(node, Event::Claim(Claim::any(id, units)));
    }

    /// The holder at a node gives its units back.
    pub(super) fn release(&mut self, node: NodeId) {
        let Some((claim, true)) = self.claims[node.index()] else { return };
        self.claims[node.index()] = None;
        self.held[node.index()] = 0;
        self.step(node, Event::Release(claim));
    }

    /// The second half of a release that is not atomic; nothing where it is.
    pub(super) fn finish_release(&mut self, node: NodeId) {
        let id = ClaimId { origin: u64::from(node.0), serial: self.made[node.index()] };
        if self.claims[node.index()].is_none() {
            self.step(node, Event::Cancel(id));
        }
    }

    /// A node dies, and what was on its way to it with it.
    pub(super) fn crash(&mut self, node: NodeId) {
        self.nodes[node.index()] = None;
        self.claims[node.index()] = None;
        self.held[node.index()] = 0;
        self.channels.retain(|&(_, to), _| to != node);
    }

    /// Delivers in order up to the first message of this kind, if there is one.
    pub(super) fn deliver(&mut self, from: NodeId, to: NodeId, kind: &str, clock: Option<u64>) {
        let wanted = |message: &P::Message| {
            let (name, its) = P::label(message);
            name == kind && (clock.is_none() || its.is_none() || its == clock)
        };
        let channel = self.channels.entry((from, to)).or_default();
        let Some(last) = channel.iter().position(wanted) else { return };
        for _ in 0..=last {
            self.deliver_next(from, to);
        }
    }

    fn deliver_next(&mut self, from: NodeId, to: NodeId) -> bool {
        let next = self.channels.get_mut(&(from, to)).and_then(VecDeque::pop_front);
        let Some(message) = next else { return false };
        self.delivered.push(message.clone());
        self.step(to, Event::Hear { from, message });
        true
    }

    /// Delivers everything and then lets every holder leave, until nothing happens any more.
    pub(super) fn drain(&mut self) {
        loop {
            self.deliver_all();
            let holders = self.holders();
            if holders.is_empty() {
                return;
            }
            for node in holders {
                self.release(node);
                self.finish_release(node);
            }
        }
    }

    /// Delivers everything.
    pub(super) fn deliver_all(&mut self) {
        let busy = |(&link, channel): (&_, &VecDeque<_>)| (!channel.is_empty()).then_some(link);
        while let Some((from, to)) = self.channels.iter().find_map(busy) {
            self.deliver_next(from, to);
        }
    }

    pub(super) fn holders(&self) -> Vec<NodeId> {
        self.having(|(_, held)| held)
    }

    pub(super) fn waiting(&self) -> Vec<NodeId> {
        self.having(|(_, held)| !held)
    }

    fn having(&self, is: impl Fn((ClaimId, bool)) -> bool) -> Vec<NodeId> {
        let claims = self.claims.iter().enumerate();
        claims.filter(|(_, claim)| claim.is_some_and(&is)).map(|(node, _)| node.into()).collect()
    }
}

pub(super) fn seat<P: Protocol<Pool = Pool>>(pool: &Pool, me: NodeId) -> Seat<'_, P> {
    Seat { me, boot: 0, now: Moment::ZERO, pool }
}
