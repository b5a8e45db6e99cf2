//! Runs that begin in any state: participants and links are corrupted before anything happens, and
//! nobody judges until the pool is legitimate.

use std::fmt;

use quorate_core::{Corruptible, NodeId, Outbox, Protocol, Seat};
use quorate_laws::{Breach, Observation};

use crate::Rng;
use crate::client::Phase;
use crate::judge::Judge;
use crate::world::{Happening, World};

type Draw<'a> = dyn FnMut(u64) -> u64 + 'a;
type Show<'a, P> = dyn FnMut(NodeId, NodeId, <P as Protocol>::Message) + 'a;
type IsLegitimate<P> = fn(&<P as Protocol>::Pool, &[&P], &[UnderWay<'_, P>]) -> bool;
type UnderWay<'a, P> = (NodeId, NodeId, &'a <P as Protocol>::Message);

/// [`Corruptible`] as values, so that the world can be asked for any protocol.
pub(crate) struct Corruption<P: Protocol> {
    strict: bool,
    corrupt: fn(&mut P, &Seat<'_, P>, &mut Draw<'_>, &mut Outbox<P>),
    garbage: fn(&P::Pool, &mut Draw<'_>, &mut Show<'_, P>),
    is_legitimate: IsLegitimate<P>,
}

impl<P: Corruptible> Corruption<P> {
    /// For a run that is judged strictly, or not, once there is something to judge.
    pub(crate) fn new(strict: bool) -> Self {
        Corruption {
            strict,
            corrupt: |participant, seat, draw, out| participant.corrupt(seat, draw, out),
            garbage: |pool, draw, show| P::garbage(pool, draw, show),
            is_legitimate: P::is_legitimate,
        }
    }
}

impl<P: Protocol> fmt::Debug for Corruption<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Corruption").field("strict", &self.strict).finish_non_exhaustive()
    }
}

impl<P: Protocol> World<'_, P> {
    /// Everything becomes anything, by chance of its own, so that the rest of the run is as it
    /// would be without.
    pub(crate) fn corrupt(&mut self, corruption: Corruption<P>) -> Result<(), Breach> {
        self.laws = Judge::Nobody;
        let mut chance = Rng::new(!self.plan.seed);
        let mut draw = |bound: u64| chance.below(bound);
        for index in 0..self.nodes.len() {
            let (me, node) = (NodeId::from(index), &mut self.nodes[index]);
            let now = node.clock.read(self.now);
            let seat = Seat { me, boot: node.boot, now, pool: self.pool };
            let participant = node.seat.as_mut().expect("everybody has just booted");
            (corruption.corrupt)(participant, &seat, &mut draw, &mut self.outbox);
            let text = self.trace.is_on().then(|| "CORRUPTED".to_string());
            self.after_step(me, text)?;
        }
        let mut garbage = Vec::new();
        (corruption.garbage)(self.pool, &mut draw, &mut |from, to, message| {
            garbage.push((from, to, message));
        });
        for (from, to, message) in garbage {
            self.note(&from, format_args!("garbage > {to} {message}"));
            self.tell(from, to, message)?;
        }
        self.corruption = Some(corruption);
        Ok(())
    }

    /// From the moment at which the pool is legitimate it is judged, with whatever clients wait for
    /// and use then.
    pub(crate) fn look_whether_it_is_right(&mut self) -> Result<(), Breach> {
        let Some(corruption) = &self.corruption else { return Ok(()) };
        let up: Vec<&P> = self.nodes.iter().filter_map(|node| node.seat.as_deref()).collect();
        let messages = self.queue.planned().chain(self.held.iter().map(|(_, held)| held));
        let under_way: Vec<UnderWay<'_, P>> = messages
            .filter_map(|happening| match happening {
                Happening::Hear { from, to, message, .. } => Some((*from, *to, message)),
                _ => None,
            })
            .collect();
        let all_up = up.len() == self.nodes.len();
        if !all_up || !(corruption.is_legitimate)(self.pool, &up, &under_way) {
            return Ok(());
        }
        self.laws = Judge::new::<P>(self.pool, corruption.strict);
        self.corruption = None;
        self.measures.legitimate_at = Some(self.now);
        self.note(&"all", format_args!("legitimate"));
        for (index, client) in self.clients.iter().enumerate() {
            let (claim, units) = (client.claim(index), client.units);
            if matches!(client.phase, Phase::Waiting | Phase::Cancelling | Phase::Using) {
                self.laws.see(Observation::Claimed { claim, units })?;
            }
            if client.phase == Phase::Using {
                self.laws.see(Observation::Granted { claim, shares: &client.shares })?;
            }
        }
        Ok(())
    }
}
