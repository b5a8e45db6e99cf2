//! Steps of participants, each taken once and remembered.
//!
//! A step depends on the participant, its seat and the event, and on nothing else: that is the
//! contract. The same step is met in very many worlds, so it is taken once, audited once, and
//! looked up from then on.

use std::panic::{AssertUnwindSafe, catch_unwind};

use quorate_core::{
    ClaimId, Effect, Event, Explorable, Moment, Move, NodeId, Outbox, Refusal, Seat, Start,
};
use quorate_laws::Breach;

use crate::client::Client;
use crate::hash::Lookup;
use crate::parts::Parts;
use crate::scope::Scope;

/// What happens to a participant, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Stimulus {
    FirstBoot,
    Recovery { record: Option<u32> },
    Amnesia,
    Claim { client: usize },
    Release { client: usize },
    Cancel { client: usize },
    Renew { client: usize, using: u32 },
    Hear { from: NodeId, message: u32, expired: bool },
    Ring { alarm: u32 },
    Suspect { about: NodeId },
}

/// Who steps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Stepper {
    pub(crate) node: NodeId,
    pub(crate) boot: u32,
    /// `None` for one that is about to boot.
    pub(crate) participant: Option<u32>,
}

/// An effect, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Deed {
    Persist {
        record: u32,
    },
    Tell {
        to: NodeId,
        message: u32,
    },
    Arm {
        alarm: u32,
    },
    Disarm {
        alarm: u32,
    },
    Grant {
        client: usize,
        using: u32,
    },
    /// Of `using` only what is new.
    Move {
        client: usize,
        using: u32,
        it: Move,
    },
    Refuse {
        client: usize,
        why: Refusal,
    },
    Lose {
        client: usize,
    },
    Reclaim,
    /// Nothing that the model sees.
    Extend,
    /// Something no participant may want; the text is with the outcome.
    Forbidden,
}

impl Deed {
    /// Whether it outlives a crash of the node right after it.
    pub(crate) fn is_visible(self) -> bool {
        !matches!(self, Deed::Arm { .. } | Deed::Disarm { .. } | Deed::Extend | Deed::Reclaim)
    }
}

/// What became of a step.
#[derive(Debug)]
pub(crate) struct Outcome<P: Explorable> {
    /// The participant afterwards.
    pub(crate) after: u32,
    pub(crate) deeds: Vec<Deed>,
    /// The same effects, to print.
    pub(crate) effects: Vec<Effect<P>>,
    /// Why one of the deeds is forbidden.
    pub(crate) forbidden: Option<Breach>,
}

/// All steps taken so far.
#[derive(Debug)]
pub(crate) struct Steps<P: Explorable> {
    outcomes: Vec<Outcome<P>>,
    known: Lookup<(Stepper, Stimulus), Result<u32, Breach>>,
}

impl<P: Explorable> Steps<P> {
    pub(crate) fn new() -> Self {
        Steps { outcomes: Vec::new(), known: Lookup::default() }
    }

    pub(crate) fn outcome(&self, number: u32) -> &Outcome<P> {
        &self.outcomes[number as usize]
    }

    /// Takes a step, or remembers it.
    ///
    /// # Errors
    /// The participant panicked.
    pub(crate) fn take(
        &mut self,
        parts: &mut Parts<P>,
        scope: &Scope<P>,
        stepper: Stepper,
        stimulus: Stimulus,
    ) -> Result<u32, Breach> {
        if let Some(known) = self.known.get(&(stepper, stimulus)) {
            return known.clone();
        }
        let result = run(parts, scope, stepper, stimulus).map(|(participant, effects)| {
            let after = parts.put_participant(participant, scope);
            let outcome = in_numbers(parts, scope, stepper.node, after, effects);
            self.outcomes.push(outcome);
            self.outcomes.len() as u32 - 1
        });
        self.known.insert((stepper, stimulus), result.clone());
        result
    }
}

/// Lets the participant take the step, and audits it.
fn run<P: Explorable>(
    parts: &Parts<P>,
    scope: &Scope<P>,
    stepper: Stepper,
    stimulus: Stimulus,
) -> Result<(P, Vec<Effect<P>>), Breach> {
    let late = matches!(stimulus, Stimulus::Hear { expired: true, .. });
    let now = if late { Moment::NEVER } else { Moment::ZERO };
    let seat = Seat { me: stepper.node, boot: stepper.boot, now, pool: &scope.pool };
    let mut out = Outbox::new();
    // A participant that panics is thrown away, so nobody sees what it left half done.
    let stepped = catch_unwind(AssertUnwindSafe(|| {
        let participant = match to_do(parts, scope, stimulus) {
            ToDo::Boot(start) => P::boot(&seat, start, &mut out),
            ToDo::Step(event) => {
                let number = stepper.participant.expect("only a running participant steps");
                let mut participant = parts.participants.get(number).clone();
                let trusts = match event {
                    Event::Suspect(about) => Some(Event::Trust(about)),
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

enum ToDo<P: Explorable> {
    Boot(Start<P::Durable>),
    Step(Event<P>),
}

fn to_do<P: Explorable>(parts: &Parts<P>, scope: &Scope<P>, stimulus: Stimulus) -> ToDo<P> {
    let id = |client: usize| scope.clients[client].claim.id;
    ToDo::Step(match stimulus {
        Stimulus::FirstBoot => return ToDo::Boot(Start::First),
        Stimulus::Amnesia => return ToDo::Boot(Start::Amnesia),
        Stimulus::Recovery { record } => {
            let record = record.map(|number| parts.records.get(number).clone());
            return ToDo::Boot(Start::Recovered(record));
        }
        Stimulus::Claim { client } => Event::Claim(scope.clients[client].claim.clone()),
        Stimulus::Release { client } => Event::Release(id(client)),
        Stimulus::Cancel { client } => Event::Cancel(id(client)),
        Stimulus::Renew { client, using } => {
            let Client::Using { held } = parts.clients.get(using) else {
                unreachable!("only a client that uses units renews");
            };
            Event::Renew { claim: id(client), shares: held.shares.clone() }
        }
        Stimulus::Hear { from, message, .. } => {
            Event::Hear { from, message: parts.messages.get(message).clone() }
        }
        Stimulus::Ring { alarm } => Event::Ring(*parts.alarms.get(alarm)),
        Stimulus::Suspect { about } => Event::Suspect(about),
    })
}

/// The event of a stimulus as traces show it.
pub(crate) fn describe<P: Explorable>(
    parts: &Parts<P>,
    scope: &Scope<P>,
    stimulus: Stimulus,
) -> String {
    match to_do(parts, scope, stimulus) {
        ToDo::Boot(Start::First) => "first boot".to_string(),
        ToDo::Boot(Start::Amnesia) => "boot, remembering nothing".to_string(),
        ToDo::Boot(Start::Recovered(None)) => "boot, with no record on disk".to_string(),
        ToDo::Boot(Start::Recovered(Some(_))) => "boot from its record".to_string(),
        ToDo::Step(event) => event.to_string(),
    }
}

fn in_numbers<P: Explorable>(
    parts: &mut Parts<P>,
    scope: &Scope<P>,
    node: NodeId,
    after: u32,
    effects: Vec<Effect<P>>,
) -> Outcome<P> {
    let mut forbidden = None;
    let mut deeds = Vec::new();
    for effect in &effects {
        let deed = deed(parts, scope, node, effect).unwrap_or_else(|breach| {
            forbidden.get_or_insert(breach);
            Deed::Forbidden
        });
        deeds.push(deed);
    }
    Outcome { after, deeds, effects, forbidden }
}

fn deed<P: Explorable>(
    parts: &mut Parts<P>,
    scope: &Scope<P>,
    node: NodeId,
    effect: &Effect<P>,
) -> Result<Deed, Breach> {
    let contract = |what| Breach { law: "contract", what };
    let client_of = |claim: ClaimId| match scope.client_of(claim) {
        Some(client) if scope.clients[client].home == node => Ok(client),
        Some(_) => Err(contract(format!("{node} answers {claim}, which was claimed elsewhere"))),
        None => Err(contract(format!("{node} answers {claim}, which nobody ever claimed"))),
    };
    Ok(match effect {
        Effect::Persist(record) => Deed::Persist { record: parts.put_record(record.clone()) },
        Effect::Tell { to, message } => {
            if *to == node || to.index() >= scope.nodes {
                return Err(contract(format!("{node} tells {to}, which is no peer of it")));
            }
            Deed::Tell { to: *to, message: parts.put_message(message.clone(), scope) }
        }
        Effect::Arm { alarm, .. } => Deed::Arm { alarm: parts.put_alarm(*alarm, scope) },
        Effect::Disarm(alarm) => Deed::Disarm { alarm: parts.put_alarm(*alarm, scope) },
        Effect::Grant { claim, shares, .. } => {
            let using = parts.put_client(Client::using(shares.clone()));
            Deed::Grant { client: client_of(*claim)?, using }
        }
        Effect::Refuse { claim, why } => Deed::Refuse { client: client_of(*claim)?, why: *why },
        Effect::Lose { claim } => Deed::Lose { client: client_of(*claim)? },
        Effect::Reclaim { .. } => Deed::Reclaim,
        Effect::Extend { .. } => Deed::Extend,
        Effect::Move { claim, it, .. } => {
            let (client, it) = (client_of(*claim)?, **it);
            if !scope.clients[client].claim.wanted.movable {
                return Err(contract(format!("{node} moves {claim}, which cannot be moved")));
            }
            Deed::Move { client, using: parts.put_client(Client::using_one(it.to)), it }
        }
        Effect::Anomaly { peer, what } => {
            let what = format!("{node} heard from {peer} what no correct peer could say: {what}");
            return Err(Breach { law: "no anomaly", what });
        }
    })
}
