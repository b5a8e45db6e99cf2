//! Shadows in the control plane of a run: named, vouched for, struck, and called to decide (charter
//! spec S13 to S17).
//!
//! Now and then somebody looks. A seat without a shadow gets one; one that was lost or restarted is
//! struck or replaced, and sometimes one that was not. Only the node that decides cares who shadows
//! it, and applies that in the order of the charter, later than it was said.

use quorate_core::{Charter, NodeId, Protocol, Shadow, Tenure};

use crate::misfortune::Trouble;
use crate::world::{Happening, World};

/// The shadow of whoever decides.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shadows {
    /// Who it is, as the charter says.
    pub(crate) now: Option<Shadow>,
    named: u64,
    /// When the last word about it is applied by whoever decides: none is applied before that.
    applied_at: u64,
}

impl<P: Protocol> World<'_, P> {
    /// Somebody will look whether there is a shadow.
    pub(crate) fn plan_shadow(&mut self) {
        if let Some(plan) = self.plan.council.as_ref().filter(|plan| plan.shadows) {
            let at = self.now + plan.suspicion.draw(&mut self.chance.faults).max(1);
            self.queue.push(at, Happening::Trouble(Trouble::SeeShadow));
        }
    }

    /// Names a shadow where there is none, and strikes one that is gone.
    pub(crate) fn see_shadow(&mut self) {
        self.plan_shadow();
        let now = self.now;
        let Some(council) = self.council.as_ref().filter(|it| it.away_until <= now) else {
            return;
        };
        let (last, _) = council.log[council.log.len() - 1];
        if council.applied[last.node.index()] < council.log.len() || last.term == Tenure::PINNED {
            return; // It does not know yet that it decides, or files say so.
        }
        let runs = |node: NodeId| self.nodes[node.index()].seat.is_some();
        let boot = |node: NodeId| self.nodes[node.index()].boot;
        let it = council.shadows.now;
        let is_gone = it.is_some_and(|it| !runs(it.node) || boot(it.node) != it.boot);
        // The one that is gone is struck, or another named in its place.
        if it.is_none() || is_gone && self.chance.faults.chance(500_000) {
            let all = (0..self.nodes.len()).map(NodeId::from);
            let others: Vec<NodeId> = all.filter(|it| *it != last.node && runs(*it)).collect();
            if others.is_empty() {
                return;
            }
            let (naming, node) = (council.shadows.named + 1, *self.chance.faults.pick(&others));
            let boot = self.nodes[node.index()].boot;
            return self.say_shadow(Some(Shadow { node, boot, naming, whole: false }));
        }
        if is_gone || !self.calm && self.chance.faults.chance(30_000) {
            self.say_shadow(None);
        }
    }

    /// A seat vouches for its shadow: that reaches the control plane later, if it is there.
    pub(crate) fn vouch(&mut self, term: u32, naming: u64) {
        let Some(plan) = &self.plan.council else { return };
        let at = self.now + plan.answer.draw(&mut self.chance.faults);
        self.queue.push(at, Happening::Trouble(Trouble::Whole { term, naming }));
    }

    /// The shadow is whole, if it is still the one that was meant.
    pub(crate) fn call_whole(&mut self, term: u32, naming: u64) {
        let Some(council) = &self.council else { return };
        if council.away_until > self.now {
            return self.vouch(term, naming); // Whoever asked asks again.
        }
        let (last, _) = council.log[council.log.len() - 1];
        let it = council.shadows.now.filter(|it| it.naming == naming && !it.whole);
        if let Some(it) = it.filter(|_| last.term == term) {
            self.say_shadow(Some(Shadow { whole: true, ..it }));
        }
    }

    fn say_shadow(&mut self, shadow: Option<Shadow>) {
        let (Some(plan), Some(council)) = (&self.plan.council, &mut self.council) else { return };
        let (last, _) = council.log[council.log.len() - 1];
        let delay = plan.learn.draw(&mut self.chance.faults);
        let shadows = &mut council.shadows;
        shadows.named = shadow.map_or(shadows.named, |it| it.naming);
        shadows.now = shadow;
        shadows.applied_at = (self.now + delay).max(shadows.applied_at + 1);
        let delay = shadows.applied_at - self.now;
        self.tell_charter(last.node, delay, Charter::Shadowed { term: last.term, shadow });
    }

    /// The whole shadow, if it runs in the life that the charter names, and as whom.
    pub(crate) fn heir(&self) -> Option<(NodeId, u64)> {
        let it = self.council.as_ref()?.shadows.now.filter(|it| it.whole)?;
        let place = &self.nodes[it.node.index()];
        (place.seat.is_some() && place.boot == it.boot).then_some((it.node, it.naming))
    }
}
