//! The operator's law: a run after which some nodes never come back, whether or not the pool can do
//! without them, and what the others say then of what can be granted.

use quorate_core::{NodeId, NodeSet, Opinion, Outlook, Protocol, Seat};
use quorate_laws::{Breach, HonestOutlook, Observation};

use crate::client::Phase;
use crate::plan::Plan;
use crate::trace::Trace;
use crate::verdict::Watch;
use crate::world::{Happening, Stop, World};

/// Plays a plan until its faults are over, then goes on without `lost`. When everybody has had time
/// to notice, each node says what can be granted, and one more client of each asks for as much as
/// the plan's clients do.
///
/// # Errors
/// The law that was broken: what was said is not what became of these claims, or any other.
pub fn judge_outlooks<P: Protocol>(
    plan: &Plan,
    pool: &P::Pool,
    lost: &NodeSet,
) -> Result<(), Breach> {
    let trace = Trace::new(Watch::default());
    let judged = World::<P>::new(plan, pool, true, trace).and_then(|mut world| {
        world.run_until(plan.duration)?;
        world.calm_down_without(lost)?;
        let settled = world.now.saturating_add(plan.patience());
        world.run_until(settled)?;
        world.judge_what_is_said()
    });
    judged.map_err(|stop| *stop)
}

impl<P: Protocol> World<'_, P> {
    /// What each node tells a client of its own: what it says itself and what all say together, of
    /// which the smaller counts.
    fn what_is_said(&self) -> Vec<(NodeId, Outlook)> {
        let running = self.nodes.iter().enumerate().filter_map(|(index, node)| {
            let me = NodeId::from(index);
            let now = node.clock.read(self.now);
            let seat = Seat { me, boot: node.boot, now, pool: self.pool_of(me) };
            let suspects = node.aside.as_ref().map(|aside| aside.suspects.clone());
            let participant = node.seat.as_ref()?;
            let outlook = participant.outlook(&seat, &suspects.unwrap_or_default());
            let health = participant.health(&seat);
            let (in_grace, term) = (health.in_grace, health.term);
            Some(Opinion { node: me, outlook, in_grace, term })
        });
        let said: Vec<Opinion> = running.collect();
        let down = (0..self.nodes.len()).map(NodeId::from);
        let away = down.filter(|node| self.nodes[node.index()].seat.is_none()).collect();
        let grants = |away: &NodeSet| P::grants(self.pool, away);
        let together = Outlook::together(grants, P::capacity(self.pool), &away, &said);
        let least = |own: Outlook| match (own.sizes, together.sizes) {
            (Some((a, b)), Some((c, d))) => {
                Outlook { sizes: Some((a.max(c), b.min(d))), hurdle: own.hurdle }
            }
            (None, _) => own,
            (_, None) => together.clone(),
        };
        said.into_iter().map(|it| (it.node, least(it.outlook))).collect()
    }

    fn judge_what_is_said(&mut self) -> Result<(), Stop> {
        let mut law = HonestOutlook::default();
        let mut asked = Vec::new();
        for (node, outlook) in self.what_is_said() {
            self.note(&node, format_args!("says {outlook:?}"));
            law.said(node, outlook);
            asked.push((node, self.add_client(node, Some(self.now))));
        }
        let patience = self.plan.patience();
        self.progress_at = self.now;
        while self.now < self.progress_at.saturating_add(patience) && !self.is_over() {
            self.run_until(self.progress_at.saturating_add(patience))?;
        }
        for (node, index) in asked {
            let client = &self.clients[index];
            let claim = client.claim(index);
            law.claimed(node, claim, client.wanted.units);
            // What it got it keeps a note of, also when it has given it back.
            if client.phase != Phase::Waiting && !client.shares.is_empty() {
                law.see(Observation::Granted { claim, shares: &client.shares });
            }
        }
        Ok(law.at_rest()?)
    }

    /// Faults are over, and these are down for good.
    fn calm_down_without(&mut self, lost: &NodeSet) -> Result<(), Stop> {
        self.be_calm()?;
        for name in (0..self.nodes.len()).map(NodeId::from) {
            self.nodes[name.index()].crash_after = None;
            let boot = self.nodes[name.index()].boot;
            if !lost.contains(name) {
                match self.nodes[name.index()].seat {
                    Some(_) => self.resume(name, boot)?,
                    None => self.restart(name, boot)?,
                }
                continue;
            }
            if self.nodes[name.index()].seat.is_some() {
                self.crash(name);
            }
            self.nodes[name.index()].boot += 1;
            self.clients_give_up(name)?;
        }
        self.correct_opinions();
        for about in lost.iter() {
            for observer in (0..self.nodes.len()).map(NodeId::from) {
                let opinion = Happening::Opinion { observer, about, suspect: true, slander: false };
                self.queue.push(self.now, opinion);
            }
        }
        Ok(())
    }
}
