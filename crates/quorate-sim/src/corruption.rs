//! Runs that begin in any state: participants and links are corrupted before anything happens, and
//! nobody judges until the pool is legitimate (*convergence*). From then on all laws are asked and,
//! in strict runs, one more: *closure*, from a legitimate pool only legitimate ones follow, until
//! something happens that the protocol calls a disturbance, or a node crashes.

use std::fmt;

use quorate_core::{Corruptible, EventOf, NodeId, Outbox, Protocol, Seat};
use quorate_laws::{Breach, Observation};

use crate::Rng;
use crate::client::{Fate, Phase};
use crate::judge::Judge;
use crate::world::{Happening, Stop, World};

type Draw<'a> = dyn FnMut(u64) -> u64 + 'a;
type Show<'a, P> = dyn FnMut(NodeId, NodeId, <P as Protocol>::Message) + 'a;
type IsLegitimate<P> = fn(&<P as Protocol>::Pool, &[&P], &[UnderWay<'_, P>]) -> bool;
type UnderWay<'a, P> = (NodeId, NodeId, &'a <P as Protocol>::Message);

/// How a pool that began in any state is now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// It was never right.
    Wrong,
    /// It is legitimate.
    Right,
    /// It was, before something disturbed it: the laws hold, and it may become so again.
    Disturbed,
}

/// [`Corruptible`] as values, so that the world can be asked for any protocol.
pub(crate) struct Corruption<P: Protocol> {
    strict: bool,
    stage: Stage,
    corrupt: fn(&mut P, &Seat<'_, P>, &mut Draw<'_>, &mut Outbox<P>),
    garbage: fn(&P::Pool, &mut Draw<'_>, &mut Show<'_, P>),
    is_legitimate: IsLegitimate<P>,
    is_disturbed_by: fn(&P, &Seat<'_, P>, &EventOf<P>) -> bool,
}

impl<P: Corruptible> Corruption<P> {
    /// For a run that is judged strictly, or not, once there is something to judge.
    pub(crate) fn new(strict: bool) -> Self {
        Corruption {
            strict,
            stage: Stage::Wrong,
            corrupt: |participant, seat, draw, out| participant.corrupt(seat, draw, out),
            garbage: |pool, draw, show| P::garbage(pool, draw, show),
            is_legitimate: P::is_legitimate,
            is_disturbed_by: |participant, seat, event| participant.is_disturbed_by(seat, event),
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
    pub(crate) fn corrupt(&mut self, corruption: Corruption<P>) -> Result<(), Stop> {
        self.laws = Judge::Nobody;
        self.is_watched = true;
        let mut chance = Rng::new(!self.plan.seed ^ self.measures.happenings);
        let mut draw = |bound: u64| chance.below(bound);
        for index in 0..self.nodes.len() {
            let (me, node) = (NodeId::from(index), &mut self.nodes[index]);
            let now = node.clock.read(self.now);
            let seat = Seat { me, boot: node.boot, now, pool: self.pool };
            let Some(participant) = node.seat.as_mut() else { continue };
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

    /// Before a step: whether a legitimate pool may be anything but that after it.
    pub(crate) fn look_at_event(&mut self, seat: &Seat<'_, P>, event: &EventOf<P>) {
        if let Some(corruption) = &self.corruption
            && let Some(participant) = &self.nodes[seat.me.index()].seat
            && (corruption.is_disturbed_by)(participant, seat, event)
        {
            self.disturb();
        }
    }

    /// A legitimate pool may be anything but that after what happens now.
    pub(crate) fn disturb(&mut self) {
        if let Some(corruption) = &mut self.corruption
            && corruption.stage == Stage::Right
        {
            corruption.stage = Stage::Disturbed;
        }
    }

    /// Something happened: the pool has become right, has to be right still, or is not yet.
    pub(crate) fn look_whether_it_is_right(&mut self) -> Result<(), Stop> {
        let Some(corruption) = &self.corruption else { return Ok(()) };
        let (stage, strict) = (corruption.stage, corruption.strict);
        match (stage, self.is_legitimate(corruption)) {
            (Stage::Wrong, true) if !self.somebody_must_stop() => self.begin_to_judge(strict)?,
            (Stage::Right, false) => {
                let what = "the pool was legitimate and is not any more".into();
                return Err(Breach { law: "closure", what }.into());
            }
            (Stage::Disturbed, true) => self.note(&"all", format_args!("legitimate again")),
            _ => return Ok(()),
        }
        match &mut self.corruption {
            Some(corruption) if strict => corruption.stage = Stage::Right,
            corruption => *corruption = None,
        }
        Ok(())
    }

    /// Whether the pool has not become right yet, for which every node has to be there.
    pub(crate) fn never_was_right(&self) -> bool {
        self.corruption.as_ref().is_some_and(|corruption| corruption.stage == Stage::Wrong)
    }

    fn is_legitimate(&self, corruption: &Corruption<P>) -> bool {
        let up: Vec<&P> = self.nodes.iter().filter_map(|node| node.seat.as_ref()).collect();
        let arrives = |happening| match happening {
            &Happening::Hear { from, to, to_boot, ref message, .. } => {
                (self.nodes[to.index()].boot == to_boot).then_some((from, to, message))
            }
            _ => None,
        };
        // What was held back, or came to a node that stands still, arrives first.
        let held = self.held.iter().map(|(_, held)| held);
        let asides = self.nodes.iter().filter_map(|node| node.aside.as_ref());
        let inboxes = asides.flat_map(|aside| aside.inbox.iter().map(|(_, arrived)| arrived));
        let kept = held.chain(inboxes).filter_map(arrives);
        let planned = self.queue.planned(|happening, _| arrives(happening));
        let under_way: Vec<UnderWay<'_, P>> = kept.chain(planned).collect();
        up.len() == self.nodes.len() && (corruption.is_legitimate)(self.pool, &up, &under_way)
    }

    /// Whether a client was told to stop and may not have heard it: a fault may have given its
    /// units to somebody else.
    fn somebody_must_stop(&self) -> bool {
        self.clients.iter().any(|client| client.phase == Phase::Using && client.fate == Fate::Told)
    }

    /// The pool is legitimate: it is judged, with whatever clients wait for and use now.
    fn begin_to_judge(&mut self, strict: bool) -> Result<(), Stop> {
        self.laws = Judge::new::<P>(self.pool, strict);
        self.measures.legitimate_at = Some(self.now);
        self.note(&"all", format_args!("legitimate"));
        for (index, client) in self.clients.iter().enumerate() {
            let (claim, units) = (client.claim(index), client.wanted.units);
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
