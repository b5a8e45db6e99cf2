//! Steps of participants, each taken once and remembered.
//!
//! A step depends on the participant, its seat and the event, and on nothing else: that is the
//! contract. The same step is met in very many worlds, so it is taken once, audited once, and
//! looked up from then on.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use quorate_core::{
    ClaimId, Effect, EffectOf, Event, EventOf, Explorable, Moment, NodeId, Outbox, Seat, Start,
};
use quorate_laws::Breach;

use crate::hash::Lookup;
use crate::parts::Parts;
use crate::scope::Scope;

/// What happens to a participant; messages, alarms and records by their numbers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Cue {
    Boot(Start<u32>),
    /// `late` if it is a message that arrives after the deadline it carries.
    Step {
        event: Event<u32, u32>,
        late: bool,
    },
}

/// An effect; its message, alarm or record by its number.
pub(crate) type NumberedEffect = Effect<u32, u32, u32>;

/// Whether anything of it is left if its node crashes right after it.
pub(crate) fn outlives_a_crash(effect: &NumberedEffect) -> bool {
    !matches!(
        effect,
        Effect::Arm { .. } | Effect::Disarm(_) | Effect::Extend { .. } | Effect::Reclaim { .. }
    )
}

/// Who steps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Stepper {
    pub(crate) node: NodeId,
    pub(crate) boot: u32,
    /// `None` for one that is about to boot.
    pub(crate) participant: Option<u32>,
    /// What all clocks read, in a scope with a council.
    pub(crate) tick: u32,
    /// How often the pool was changed, as far as the node has applied that.
    pub(crate) edition: u8,
}

/// What became of a step.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The participant afterwards.
    pub(crate) after: u32,
    pub(crate) effects: Vec<NumberedEffect>,
    /// The place of the first effect that no participant may want, and why it may not.
    pub(crate) forbidden: Option<(usize, Breach)>,
}

/// All steps taken so far.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    outcomes: Vec<Rc<Outcome>>,
    known: Lookup<(Stepper, Cue), Result<u32, Breach>>,
}

impl Steps {
    pub(crate) fn outcome(&self, number: u32) -> &Rc<Outcome> {
        &self.outcomes[number as usize]
    }

    /// Takes a step, or remembers it.
    ///
    /// # Errors
    /// The participant panicked.
    pub(crate) fn take<P: Explorable>(
        &mut self,
        parts: &mut Parts<P>,
        scope: &Scope<P>,
        stepper: Stepper,
        cue: Cue,
    ) -> Result<u32, Breach> {
        let key = (stepper, cue);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let result = run(parts, scope, stepper, &key.1).map(|(participant, effects)| {
            let after = parts.put_participant(participant, scope);
            let outcome = in_numbers(parts, scope, stepper.node, after, effects);
            self.outcomes.push(Rc::new(outcome));
            self.outcomes.len() as u32 - 1
        });
        self.known.insert(key, result.clone());
        result
    }
}

/// Lets the participant take the step, and audits it.
fn run<P: Explorable>(
    parts: &Parts<P>,
    scope: &Scope<P>,
    stepper: Stepper,
    cue: &Cue,
) -> Result<(P, Vec<EffectOf<P>>), Breach> {
    let late = matches!(cue, Cue::Step { late: true, .. });
    let now = if late { Moment::NEVER } else { Moment(u64::from(stepper.tick)) };
    let seat =
        Seat { me: stepper.node, boot: stepper.boot, now, pool: scope.pool_of(stepper.edition) };
    let mut out = Outbox::new();
    // A participant that panics is thrown away, so nobody sees what it left half done.
    let stepped = catch_unwind(AssertUnwindSafe(|| {
        let participant = match cue {
            Cue::Boot(start) => P::boot(&seat, recalled(parts, *start), &mut out),
            Cue::Step { event, .. } => {
                let event = spelled_out(parts, event);
                let number = stepper.participant.expect("only a running participant steps");
                let mut participant = parts.participants.get(number).clone();
                let trusts = match event {
                    Event::Suspect(about) if scope.trusts_again => Some(Event::Trust(about)),
                    _ => None,
                };
                participant.step(&seat, event, &mut out);
                if let Some(again) = trusts {
                    participant.step(&seat, again, &mut out);
                }
                participant
            }
        };
        participant.audit(&seat);
        participant
    }));
    match stepped {
        Ok(participant) => Ok((participant, out.drain().collect())),
        Err(payload) => {
            let text = payload
                .downcast_ref::<&str>()
                .map(|text| (*text).to_string())
                .or_else(|| payload.downcast_ref::<String>().cloned());
            let text = text.unwrap_or_else(|| "without a message".to_string());
            Err(Breach { law: "no panic", what: format!("{} panicked: {text}", stepper.node) })
        }
    }
}

fn recalled<P: Explorable>(parts: &Parts<P>, start: Start<u32>) -> Start<P::Durable> {
    match start {
        Start::First => Start::First,
        Start::Amnesia => Start::Amnesia,
        Start::Recovered(record) => {
            Start::Recovered(record.map(|number| parts.records.get(number).clone()))
        }
    }
}

fn spelled_out<P: Explorable>(parts: &Parts<P>, event: &Event<u32, u32>) -> EventOf<P> {
    event
        .clone()
        .map(|message| parts.messages.get(message).clone(), |alarm| *parts.alarms.get(alarm))
}

/// A cue as traces show it.
pub(crate) fn describe<P: Explorable>(parts: &Parts<P>, cue: &Cue) -> String {
    match cue {
        Cue::Boot(Start::First) => "first boot".to_string(),
        Cue::Boot(Start::Amnesia) => "boot, remembering nothing".to_string(),
        Cue::Boot(Start::Recovered(None)) => "boot, with no record on disk".to_string(),
        Cue::Boot(Start::Recovered(Some(_))) => "boot from its record".to_string(),
        Cue::Step { event, .. } => spelled_out(parts, event).to_string(),
    }
}

/// An effect as traces show it.
pub(crate) fn describe_effect<P: Explorable>(parts: &Parts<P>, effect: &NumberedEffect) -> String {
    let (messages, alarms) = (&parts.messages, &parts.alarms);
    effect
        .clone()
        .map(|number| messages.get(number), |number| alarms.get(number), |_| ())
        .to_string()
}

fn in_numbers<P: Explorable>(
    parts: &mut Parts<P>,
    scope: &Scope<P>,
    node: NodeId,
    after: u32,
    effects: Vec<EffectOf<P>>,
) -> Outcome {
    let forbids = |effect| forbidden(scope, node, effect);
    let forbidden =
        effects.iter().map(forbids).enumerate().find_map(|(place, breach)| Some((place, breach?)));
    let parts = RefCell::new(parts);
    let number = |effect: EffectOf<P>| {
        effect.map(
            |message| parts.borrow_mut().put_message(message, scope),
            |alarm| parts.borrow_mut().put_alarm(alarm, scope),
            |record| parts.borrow_mut().put_record(record),
        )
    };
    Outcome { after, effects: effects.into_iter().map(number).collect(), forbidden }
}

/// Why no participant may want this, if so.
fn forbidden<P: Explorable>(
    scope: &Scope<P>,
    node: NodeId,
    effect: &EffectOf<P>,
) -> Option<Breach> {
    let contract = |what| Some(Breach { law: "contract", what });
    let answers = |claim: ClaimId| match scope.client_of(claim) {
        Some(client) if scope.clients[client].home == node => None,
        Some(_) if scope.council.as_ref().is_some_and(|council| council.rehomes > 0) => None,
        Some(_) => contract(format!("{node} answers {claim}, which was claimed elsewhere")),
        None => contract(format!("{node} answers {claim}, which nobody ever claimed")),
    };
    match effect {
        Effect::Tell { to, .. } if *to == node || to.index() >= scope.nodes => {
            contract(format!("{node} tells {to}, which is no peer of it"))
        }
        Effect::Grant { claim, until, .. } | Effect::Extend { claim, until }
            if *until < Moment::NEVER
                && scope.client_of(*claim).is_some_and(|client| scope.stands(client)) =>
        {
            contract(format!("{node} tells {claim}, which stands, a deadline"))
        }
        Effect::Grant { claim, .. } | Effect::Refuse { claim, .. } | Effect::Lose { claim } => {
            answers(*claim)
        }
        Effect::Move { claim, .. } => answers(*claim).or_else(|| {
            let movable = scope.clients[scope.client_of(*claim)?].claim.wanted.movable;
            if movable {
                None
            } else {
                contract(format!("{node} moves {claim}, which cannot be moved"))
            }
        }),
        Effect::Anomaly { peer, what } => {
            let what = format!("{node} heard from {peer} what no correct peer could say: {what}");
            Some(Breach { law: "no anomaly", what })
        }
        Effect::Persist(_)
        | Effect::Tell { .. }
        | Effect::Arm { .. }
        | Effect::Disarm(_)
        | Effect::Extend { .. }
        | Effect::Reclaim { .. }
        | Effect::AskLicence { .. }
        | Effect::Vouch { .. } => None,
    }
}
