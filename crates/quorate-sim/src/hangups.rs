//! Clients that hang up while they wait. Their node notices after a while that nobody is there for
//! the claim any more. Its client is gone, or goes on with the same claim at another node.

use quorate_core::{ClaimId, Effect, EffectOf, Event, NodeId, Protocol};

use crate::client::{Fate, Phase};
use crate::world::{Happening, Stop, World};

impl<P: Protocol> World<'_, P> {
    /// A client that waits hangs up.
    pub(crate) fn hang_up(&mut self, index: usize) -> Result<(), Stop> {
        let (old, claim) = (self.clients[index].home, self.clients[index].claim(index));
        let up = |node: &NodeId| *node != old && self.nodes[node.index()].is_running();
        let others: Vec<NodeId> = (0..self.nodes.len()).map(NodeId::from).filter(up).collect();
        let goes_on = self.chance.faults.chance(500_000) && !others.is_empty();
        let respawn = self.plan.faults.respawn;
        let boot = self.nodes[old.index()].boot;
        let at = self.now + respawn.draw(&mut self.chance.faults);
        self.queue.push(at, Happening::Silence { node: old, boot, claim });
        self.clients[index].fate = Fate::Proper;
        self.left.insert((old, claim));
        if goes_on {
            let new = *self.chance.faults.pick(&others);
            self.note(&new, format_args!("client {index} comes from {old}"));
            self.clients[index].home = new;
            return self.ask(index);
        }
        self.note(&old, format_args!("client {index} hangs up"));
        self.abandon(index)?;
        self.abandoned.remove(&claim);
        self.clients[index].phase = Phase::Dead;
        let at = self.now + respawn.draw(&mut self.chance.faults);
        self.wake_at(index, at);
        Ok(())
    }

    /// A node notices that nobody is there for a claim any more.
    pub(crate) fn fall_silent(
        &mut self,
        node: NodeId,
        boot: u32,
        claim: ClaimId,
    ) -> Result<(), Stop> {
        if self.nodes[node.index()].boot != boot || !self.nodes[node.index()].is_running() {
            return Ok(());
        }
        self.measures.withdrawn += 1;
        self.step(node, Event::Withdraw(claim))
    }

    /// Whether this would be told to a client that has left.
    pub(crate) fn nobody_hears(&mut self, node: NodeId, effect: &EffectOf<P>) -> bool {
        if self.left.is_empty() {
            return false;
        }
        let (claim, is_grant) = match effect {
            Effect::Grant { claim, .. } => (claim, true),
            Effect::Extend { claim, .. }
            | Effect::Move { claim, .. }
            | Effect::Refuse { claim, .. }
            | Effect::Lose { claim } => (claim, false),
            _ => return false,
        };
        let unheard = self.left.contains(&(node, *claim));
        self.measures.unheard += u64::from(unheard && is_grant);
        unheard
    }
}
