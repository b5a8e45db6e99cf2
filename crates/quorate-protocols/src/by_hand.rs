//! Nodes of one protocol in one process, which a test drives by hand: it says what happens to
//! which node, and which message arrives next. What every such world does alike is here, and
//! [`Judged`] is one with clients, disks and alarms, which the laws judge after every step.
//! Whatever else there is (dice, roads that are cut) is the test's own.

mod judged;

use std::collections::VecDeque;

use quorate_core::{EffectOf, Event, EventOf, Moment, NodeId, Outbox, Protocol, Seat, Start};

pub(crate) use judged::{Judged, Use};

/// A message on its way: from whom, to whom.
pub(crate) type Parcel<M> = (NodeId, NodeId, M);

/// See the module.
pub(crate) struct ByHand<P: Protocol> {
    pub(crate) pool: P::Pool,
    pub(crate) nodes: Vec<P>,
    pub(crate) boots: Vec<u32>,
    /// What every clock says.
    pub(crate) now: Moment,
    /// What is on its way, in the order of sending.
    pub(crate) wire: VecDeque<Parcel<P::Message>>,
    /// How many messages were sent.
    pub(crate) sent: usize,
}

impl<P: Protocol> ByHand<P> {
    /// Nodes that start for the first time, and what they want done at once.
    pub(crate) fn new(
        nodes: usize,
        pool: P::Pool,
        now: Moment,
    ) -> (Self, Vec<(NodeId, EffectOf<P>)>) {
        let (mut world, wanted) = Self::started(nodes, pool, now);
        let others = wanted.into_iter().filter_map(|(me, it)| Some((me, world.send(me, it)?)));
        let others = others.collect();
        (world, others)
    }

    /// The same before anything is sent.
    fn started(nodes: usize, pool: P::Pool, now: Moment) -> (Self, Vec<(NodeId, EffectOf<P>)>) {
        let (seats, wire) = Default::default();
        let boots = vec![0; nodes];
        let mut world = ByHand { pool, nodes: seats, boots, now, wire, sent: 0 };
        let mut wanted = Vec::new();
        for me in (0..nodes).map(NodeId::from) {
            let (node, effects) = world.boot(me, Start::First);
            world.nodes.push(node);
            wanted.extend(effects.into_iter().map(|effect| (me, effect)));
        }
        (world, wanted)
    }

    fn boot(&self, me: NodeId, start: Start<P::Durable>) -> (P, Vec<EffectOf<P>>) {
        let mut out = Outbox::new();
        let node = P::boot(&self.seat(me), start, &mut out);
        (node, out.drain().collect())
    }

    /// What a node knows without being told.
    pub(crate) fn seat(&self, me: NodeId) -> Seat<'_, P> {
        Seat { me, boot: self.boots[me.index()], now: self.now, pool: &self.pool }
    }

    /// A node is gone, with everything on its way to it, and starts again.
    pub(crate) fn restart(&mut self, me: NodeId, start: Start<P::Durable>) -> Vec<EffectOf<P>> {
        let wanted = self.restarted(me, start);
        self.send_all(me, wanted)
    }

    /// The same before anything is sent.
    fn restarted(&mut self, me: NodeId, start: Start<P::Durable>) -> Vec<EffectOf<P>> {
        self.wire.retain(|(_, to, _)| *to != me);
        self.boots[me.index()] += 1;
        let (node, effects) = self.boot(me, start);
        self.nodes[me.index()] = node;
        effects
    }

    /// Something happens to a node. Its messages are on their way; all else that it wants done is
    /// returned.
    pub(crate) fn step(&mut self, me: NodeId, event: EventOf<P>) -> Vec<EffectOf<P>> {
        self.act(me, |node, seat, out| node.step(seat, event, out)).1
    }

    /// The same for what is no event.
    pub(crate) fn act<T>(
        &mut self,
        me: NodeId,
        act: impl FnOnce(&mut P, &Seat<'_, P>, &mut Outbox<P>) -> T,
    ) -> (T, Vec<EffectOf<P>>) {
        let (acted, wanted) = self.acted(me, act);
        (acted, self.send_all(me, wanted))
    }

    /// The same before anything is sent.
    fn acted<T>(
        &mut self,
        me: NodeId,
        act: impl FnOnce(&mut P, &Seat<'_, P>, &mut Outbox<P>) -> T,
    ) -> (T, Vec<EffectOf<P>>) {
        let mut out = Outbox::new();
        let boot = self.boots[me.index()];
        let seat = Seat { me, boot, now: self.now, pool: &self.pool };
        let node = &mut self.nodes[me.index()];
        let acted = act(node, &seat, &mut out);
        node.audit(&seat);
        (acted, out.drain().collect())
    }

    fn send_all(&mut self, from: NodeId, wanted: Vec<EffectOf<P>>) -> Vec<EffectOf<P>> {
        wanted.into_iter().filter_map(|effect| self.send(from, effect)).collect()
    }

    /// A message is on its way; anything else is returned.
    fn send(&mut self, from: NodeId, effect: EffectOf<P>) -> Option<EffectOf<P>> {
        let EffectOf::<P>::Tell { to, message } = effect else { return Some(effect) };
        assert_ne!(to, from, "nobody tells itself");
        self.sent += 1;
        self.wire.push_back((from, to, message));
        None
    }

    /// The oldest message on its way, as what happens next to which node.
    pub(crate) fn next(&mut self) -> Option<(NodeId, EventOf<P>)> {
        let (from, to, message) = self.wire.pop_front()?;
        Some((to, Event::Hear { from, message }))
    }
}
