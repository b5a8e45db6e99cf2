//! A run moved along by hand: for experiments that look into participants, measure a stretch of
//! time, or hurt somebody at a set moment.

use std::fmt;

use quorate_core::{NodeId, NodeSet, Protocol};
use quorate_laws::Breach;

use crate::measure::Measures;
use crate::network::Cut;
use crate::plan::Plan;
use crate::trace::Trace;
use crate::verdict::Watch;
use crate::world::World;

/// A run in its safety phase. Nothing happens except in [`Session::advance`].
pub struct Session<'a, P: Protocol> {
    world: World<'a, P>,
}

impl<P: Protocol> fmt::Debug for Session<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("now", &self.world.now).finish_non_exhaustive()
    }
}

impl<'a, P: Protocol> Session<'a, P> {
    /// A world in which everybody has booted.
    ///
    /// # Errors
    /// A law was broken before anything happened.
    pub fn new(plan: &'a Plan, pool: &'a P::Pool, watch: Watch<'a>) -> Result<Self, Breach> {
        let strict = watch.strict;
        let world = World::new(plan, pool, strict, Trace::new(watch)).map_err(|stop| *stop)?;
        Ok(Session { world })
    }

    /// Spreads the first claims of a closed loop over the first time that each client thinks, so
    /// that they do not all begin in step.
    pub fn stagger(&mut self) {
        self.world.stagger();
    }

    /// Lets everything happen up to a true time, in nanoseconds.
    ///
    /// # Errors
    /// The law that was broken.
    pub fn advance(&mut self, to: u64) -> Result<(), Breach> {
        self.world.run_until(to).map_err(|stop| *stop)
    }

    /// True time, in nanoseconds.
    pub fn now(&self) -> u64 {
        self.world.now
    }

    /// The participant of a node that is up.
    pub fn participant(&self, node: NodeId) -> Option<&P> {
        self.world.nodes[node.index()].seat.as_ref()
    }

    /// Numbers up to now.
    pub fn measures(&mut self) -> &Measures {
        self.world.finish_measures();
        &self.world.measures
    }

    /// Numbers up to now, with those that take long to find out.
    pub fn closed_measures(&mut self) -> &Measures {
        self.world.close_measures();
        &self.world.measures
    }

    /// A node crashes for good, and its clients with it: the papers' process.
    ///
    /// # Errors
    /// The law that was broken.
    pub fn kill(&mut self, node: NodeId) -> Result<(), Breach> {
        self.world.clients_die(node).map_err(|stop| *stop)?;
        self.world.crash(node);
        Ok(())
    }

    /// A node crashes. Its clients live, and ask again when it is back.
    pub fn crash(&mut self, node: NodeId) {
        self.world.crash(node);
    }

    /// A node that is down comes back: remembering nothing as often as the plan says, else with
    /// what it had written down.
    ///
    /// # Errors
    /// The law that was broken.
    pub fn restart(&mut self, node: NodeId) -> Result<(), Breach> {
        let boot = self.world.nodes[node.index()].boot;
        self.world.restart(node, boot).map_err(|stop| *stop)
    }

    /// Nothing passes between a node and the others until [`Session::heal`].
    pub fn cut_off(&mut self, node: NodeId) {
        self.world.network.cut(node.0, Cut::Apart(NodeSet::from_iter([node])));
    }

    /// A node that was cut off is so no more.
    ///
    /// # Errors
    /// The law that was broken.
    pub fn heal(&mut self, node: NodeId) -> Result<(), Breach> {
        self.world.heal(node.0).map_err(|stop| *stop)
    }

    /// A node's failure detector takes another for dead, rightly or not, or trusts it again.
    ///
    /// # Errors
    /// The law that was broken.
    pub fn suspect(&mut self, node: NodeId, about: NodeId, dead: bool) -> Result<(), Breach> {
        self.world.change_opinion(node, about, dead, true).map_err(|stop| *stop)
    }

    /// The clients of a node go away for good; it goes on without any.
    ///
    /// # Errors
    /// The law that was broken.
    pub fn dismiss(&mut self, node: NodeId) -> Result<(), Breach> {
        self.world.clients_die(node).map_err(|stop| *stop)
    }

    /// A node stands still for so many nanoseconds.
    pub fn freeze(&mut self, node: NodeId, lasts: u64) {
        self.world.freeze(node, lasts);
    }
}
