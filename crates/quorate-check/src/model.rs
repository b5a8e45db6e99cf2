//! How a world changes when something happens in it.

use std::rc::Rc;

use quorate_core::{Claim, ClaimId, Effect, Event, Explorable, Move, NodeId, Protocol, Start};
use quorate_laws::{Breach, End, StatuteBook};

use crate::action::{Action, Happening};
use crate::client::Client;
use crate::council::Chamber;
use crate::court::{Court, Seen};
use crate::parts::{Parcel, Parts};
use crate::scope::{Network, Restart, Scope};
use crate::sometimes::{Sightings, Sometimes};
use crate::spans::Carried;
use crate::steps::{Cue, NumberedEffect, Stepper, Steps, outlives_a_crash};
use crate::world::{Layout, Misfortune, World};

/// A scope, and everything learned about it so far.
#[derive(Debug)]
pub(crate) struct Model<'a, P: Explorable> {
    pub(crate) scope: &'a Scope<P>,
    pub(crate) parts: Parts<P>,
    pub(crate) steps: Steps,
    court: Court,
    /// What was seen to happen somewhere.
    pub(crate) sightings: Sightings,
    /// The control plane during an action, if there is one.
    pub(crate) chamber: Option<Chamber>,
    /// The promise that is being delivered.
    pub(crate) carried: Option<Carried>,
}

/// What a participant did in an action.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) node: NodeId,
    pub(crate) cue: Cue,
    /// `None` if the participant panicked.
    pub(crate) outcome: Option<u32>,
}

impl<'a, P: Explorable> Model<'a, P> {
    pub(crate) fn new(scope: &'a Scope<P>) -> Self {
        Model {
            scope,
            parts: Parts::new(),
            steps: Steps::default(),
            court: Court::new(),
            sightings: Sightings::default(),
            chamber: None,
            carried: None,
        }
    }

    /// The world after everybody booted for the first time, in order and undisturbed.
    ///
    /// # Errors
    /// A law was broken before anything happened.
    pub(crate) fn first_world(&mut self) -> Result<World, Breach> {
        let scope = self.scope;
        let capacity = scope.capacity();
        let mut book = StatuteBook::new(capacity, <P as Protocol>::overtakes_max(&scope.pool));
        if !P::names_units(&scope.pool) {
            book = book.anonymous();
        }
        let laws = self.parts.put_laws(book);
        let layout = Layout { nodes: scope.nodes, clients: scope.clients.len() };
        let mut world = World::new(layout, &scope.budget, scope.council.as_ref(), laws);
        self.convene(&world);
        let mut starts = Vec::new();
        for node in world.nodes() {
            let stepper = Stepper { node, boot: 0, participant: None, tick: 0, edition: 0 };
            let start =
                self.steps.take(&mut self.parts, scope, stepper, Cue::Boot(Start::First))?;
            world.set_participant(node, Some(self.steps.outcome(start).after));
            starts.push(start);
        }
        for (node, start) in world.nodes().zip(starts) {
            self.finish(&mut world, node, start, None)?;
        }
        self.adjourn(&mut world);
        self.apply_first(&mut world)?;
        self.canonical(&mut world);
        Ok(world)
    }

    /// Makes something happen. The step that a participant took for it, if any, is left in `step`
    /// even where a law was broken.
    ///
    /// # Errors
    /// The law that was broken.
    pub(crate) fn perform(
        &mut self,
        world: &mut World,
        action: Action,
        step: &mut Option<Step>,
    ) -> Result<(), Breach> {
        *step = None;
        self.resume(world);
        let Some((node, cue)) = self.begin(world, action.happening)? else {
            self.adjourn(world);
            return Ok(());
        };
        let step = step.insert(Step { node, cue: cue.clone(), outcome: None });
        let stepper = Stepper {
            node,
            boot: world.boot(node),
            participant: world.participant(node),
            tick: self.tick(world),
            edition: self.edition(node),
        };
        let outcome = self.steps.take(&mut self.parts, self.scope, stepper, cue.clone())?;
        step.outcome = Some(outcome);
        self.see_opening(&stepper, outcome, &cue);
        self.finish(world, node, outcome, action.cut)?;
        self.adjourn(world);
        Ok(())
    }

    /// After how many of its effects the node of this step could crash: everywhere, except where
    /// what would be left is what another action leaves.
    pub(crate) fn cuts(&self, happening: Happening, step: &Step, into: &mut Vec<usize>) {
        into.clear();
        let Some(outcome) = step.outcome else { return };
        let effects = &self.steps.outcome(outcome).effects;
        // A message, an alarm or an opinion is lost in any crash; of all else a trace remains.
        let trace = !matches!(
            happening,
            Happening::Deliver { .. } | Happening::Ring { .. } | Happening::Suspect { .. }
        );
        if trace && !effects.is_empty() {
            into.push(0);
        }
        for done in 1..effects.len() {
            if outlives_a_crash(&effects[done - 1]) {
                into.push(done);
            }
        }
    }

    /// What happens before the participant hears of it, and what it then hears.
    fn begin(
        &mut self,
        world: &mut World,
        happening: Happening,
    ) -> Result<Option<(NodeId, Cue)>, Breach> {
        let told = |node, event| Some((node, Cue::Step { event, late: false }));
        Ok(match happening {
            Happening::Claim { client, draw } => {
                self.set_client(world, client, Client::ASKED);
                self.judge(world, Seen::Claimed { client })?;
                told(self.home(client), Event::Claim(Claim { draw, ..self.claim(client).clone() }))
            }
            Happening::AskAgain { client }
                if *self.parts.clients.get(world.client(client)) == Client::Ended =>
            {
                self.set_client(world, client, Client::Done);
                told(self.home(client), Event::Release(self.claim(client).id))
            }
            Happening::AskAgain { client } => {
                let cancelling = matches!(
                    self.parts.clients.get(world.client(client)),
                    Client::Waiting { cancelling: true, .. }
                );
                self.set_client(world, client, Client::Waiting { unheard: false, cancelling });
                let again = match cancelling {
                    true => Event::Cancel(self.claim(client).id),
                    false => Event::Claim(self.claim(client).clone()),
                };
                told(self.home(client), again)
            }
            Happening::Release { client } => {
                self.end_use(world, client, End::Released, Client::Done)?;
                told(self.home(client), Event::Release(self.claim(client).id))
            }
            Happening::Cancel { client } => {
                world.spend(Misfortune::Cancel);
                self.cancel(world, client)?;
                told(self.home(client), Event::Cancel(self.claim(client).id))
            }
            Happening::Renew { client } => {
                world.spend(Misfortune::Renewal);
                told(self.home(client), self.renewal(world, client))
            }
            Happening::Answer { client, place } => {
                self.leave(world, client, place)?;
                told(self.home(client), self.renewal(world, client))
            }
            Happening::Stop { client } => {
                world.spend(Misfortune::Death);
                self.end_use(world, client, End::Deadline, Client::Gone)?;
                None
            }
            Happening::Abandon { client } => {
                world.spend(Misfortune::Death);
                self.judge(world, Seen::Abandoned { client })?;
                self.set_client(world, client, Client::Gone);
                None
            }
            Happening::HangUp { client } => {
                world.spend(Misfortune::HangUp);
                if self.is_promised(world, client) {
                    self.sightings.insert(Sometimes::HangUpCrossesGrant);
                }
                self.judge(world, Seen::Abandoned { client })?;
                self.set_client(world, client, Client::Gone);
                told(self.home(client), Event::Withdraw(self.claim(client).id))
            }
            Happening::Deliver { from, to, place, keep } => {
                if keep {
                    world.spend(Misfortune::Duplicate);
                }
                let parcel = self.take_parcel(world, from, to, place, keep);
                let Parcel { message, expired, born, .. } = parcel;
                let card = self.parts.messages.card(message);
                let span = card.span;
                self.carried = card.promise.map(|_| Carried { born, span });
                Some((to, Cue::Step { event: Event::Hear { from, message }, late: expired }))
            }
            Happening::Vanish { from, to, place } => {
                world.spend(Misfortune::Loss);
                let mut queue = self.parts.queues.get(world.queue(from, to)).clone();
                queue.remove(place);
                world.set_queue(from, to, self.parts.put_queue(queue));
                None
            }
            Happening::Ring { node, place, early } => {
                if early {
                    world.spend(Misfortune::EarlyRing);
                }
                told(node, Event::Ring(self.ring(world, node, place)))
            }
            Happening::Suspect { node, about } => {
                world.spend(Misfortune::Suspicion);
                told(node, Event::Suspect(about))
            }
            Happening::Crash { node } => {
                self.crash(world, node)?;
                None
            }
            Happening::Restart { node } => {
                world.count_boot(node);
                let start = match self.scope.restart {
                    Restart::Amnesia => Start::Amnesia,
                    Restart::Durable => Start::Recovered(world.disk(node)),
                };
                Some((node, Cue::Boot(start)))
            }
            Happening::Commit { .. }
            | Happening::Amend { .. }
            | Happening::Learn { .. }
            | Happening::Name { .. }
            | Happening::Strike { .. }
            | Happening::Whole
            | Happening::Apply { .. }
            | Happening::License { .. }
            | Happening::Unpin { .. }
            | Happening::EndLicence { .. }
            | Happening::Rehome { .. } => self.begin_of_council(world, happening)?,
        })
    }

    /// Performs the effects of a step, all or only the first few before a crash.
    pub(crate) fn finish(
        &mut self,
        world: &mut World,
        node: NodeId,
        outcome: u32,
        cut: Option<usize>,
    ) -> Result<(), Breach> {
        let outcome = Rc::clone(self.steps.outcome(outcome));
        let after = outcome.after;
        world.set_participant(node, Some(after));
        let done = cut.unwrap_or(outcome.effects.len());
        for (place, effect) in outcome.effects[..done].iter().enumerate() {
            if let Some((at, breach)) = &outcome.forbidden
                && *at == place
            {
                return Err(breach.clone());
            }
            self.perform_effect(world, node, effect)?;
        }
        match cut {
            Some(_) => self.crash(world, node),
            None => self.judge(world, Seen::Books { node, participant: after }),
        }
    }

    fn perform_effect(
        &mut self,
        world: &mut World,
        node: NodeId,
        effect: &NumberedEffect,
    ) -> Result<(), Breach> {
        match effect {
            // What nobody will read must not tell worlds apart.
            Effect::Persist(record) if self.scope.restart == Restart::Durable => {
                world.set_disk(node, Some(*record));
            }
            Effect::Tell { to, message } => self.tell(world, node, *to, *message),
            Effect::Arm { alarm, after } => {
                self.armed(node, *alarm, *after);
                let alarms = self.parts.alarms_changed(world.alarms(node), *alarm, true);
                world.set_alarms(node, alarms);
            }
            Effect::Disarm(alarm) => {
                let alarms = self.parts.alarms_changed(world.alarms(node), *alarm, false);
                world.set_alarms(node, alarms);
            }
            // A client that went to another node does not hear this one.
            Effect::Grant { claim, .. }
            | Effect::Extend { claim, .. }
            | Effect::Move { claim, .. }
            | Effect::Refuse { claim, .. }
            | Effect::Lose { claim }
                if self.home(self.client_of(*claim)) != node => {}
            Effect::Grant { claim, shares, until } => {
                self.promised(node, self.client_of(*claim), *until);
                let using = self.parts.put_client(Client::using(shares.clone()));
                self.grant(world, self.client_of(*claim), using)?;
            }
            Effect::Move { claim, it, .. } => {
                let using = self.parts.put_client(Client::using_one(it.to));
                self.ask_to_move(world, self.client_of(*claim), using, **it)?;
            }
            Effect::Refuse { claim, why } => {
                let (client, why) = (self.client_of(*claim), *why);
                match self.parts.clients.get(world.client(client)) {
                    Client::Waiting { .. } | Client::Done => {
                        self.judge(world, Seen::Refused { client, why })?;
                        self.set_client(world, client, Client::Refused);
                    }
                    Client::Ended | Client::Refused | Client::Gone => {}
                    Client::NotYet | Client::Using { .. } => {
                        let what = format!("{node} refused {claim}, which was not waiting: {why}");
                        return Err(Breach { law: "contract", what });
                    }
                }
            }
            Effect::Lose { claim } => {
                let client = self.client_of(*claim);
                let client_now = self.parts.clients.get(world.client(client));
                if matches!(client_now, Client::Using { .. }) {
                    self.end_use(world, client, End::Told, Client::Done)?;
                }
            }
            Effect::Reclaim { .. } => self.sightings.insert(Sometimes::Reclaim),
            Effect::Anomaly { .. } => unreachable!("it is forbidden"),
            Effect::AskLicence { term, .. } => self.asked(node, *term),
            Effect::Vouch { term, naming } => self.vouched(*term, *naming),
            Effect::Extend { claim, until } => {
                self.promised(node, self.client_of(*claim), *until);
            }
            Effect::Persist(_) => {} // Nothing that the model sees.
        }
        Ok(())
    }

    fn tell(&mut self, world: &mut World, from: NodeId, to: NodeId, message: u32) {
        if world.participant(to).is_none() {
            return; // A message reaches the participant it was sent to or nobody.
        }
        let born = self.born_of(from, message);
        let parcel = Parcel { message, boot: world.boot(from), expired: false, born };
        let queue = world.queue(from, to);
        let same = |other: &&Parcel| Parcel { born, ..**other } == parcel;
        let copies = self.parts.queues.get(queue).iter().filter(same).count();
        if copies < self.scope.copies_max {
            let longer = self.parts.queue_with(queue, parcel, self.scope.network);
            world.set_queue(from, to, longer);
        }
    }

    fn take_parcel(
        &mut self,
        world: &mut World,
        from: NodeId,
        to: NodeId,
        place: usize,
        keep: bool,
    ) -> Parcel {
        let mut queue = self.parts.queues.get(world.queue(from, to)).clone();
        let parcel = queue[place];
        if !keep {
            queue.remove(place);
        }
        // A node that has heard from a new incarnation of a peer hears nothing more from the old
        // one.
        queue.retain(|other| other.boot >= parcel.boot);
        world.set_queue(from, to, self.parts.put_queue(queue));
        parcel
    }

    fn grant(&mut self, world: &mut World, client: usize, using: u32) -> Result<(), Breach> {
        if *self.parts.clients.get(world.client(client)) == Client::Gone {
            return Ok(());
        }
        let crashed = world.left(Misfortune::Crash) < u32::from(self.scope.budget.crashes);
        self.judge(world, Seen::Granted { client, using })?;
        world.set_client(client, using);
        self.sightings.insert(Sometimes::Enter);
        if self.has_moved() {
            self.sightings.insert(Sometimes::SeatMoved);
        }
        if crashed {
            self.sightings.insert(Sometimes::CrashSurvived);
        }
        Ok(())
    }

    /// A client that uses units has one more from now on, unless it has heard of that before.
    fn ask_to_move(
        &mut self,
        world: &mut World,
        client: usize,
        using: u32,
        it: Move,
    ) -> Result<(), Breach> {
        let Client::Using { held } = self.parts.clients.get(world.client(client)) else {
            return Ok(()); // It has stopped.
        };
        let mut held = held.clone();
        let news = !held.shares.contains(it.to);
        if held.begin(it) {
            if news {
                self.judge(world, Seen::Added { client, using })?;
            }
            self.set_client(world, client, Client::Using { held });
        }
        Ok(())
    }

    /// A client does what it is asked to: it leaves a unit.
    fn leave(&mut self, world: &mut World, client: usize, place: usize) -> Result<(), Breach> {
        let Client::Using { held } = self.parts.clients.get(world.client(client)) else {
            unreachable!("only a client that uses units answers");
        };
        let mut held = held.clone();
        let left = held.moves.remove(place).from;
        held.shares = held.shares.without(left);
        let using = self.parts.put_client(Client::using_one(left));
        self.judge(world, Seen::Left { client, using })?;
        self.set_client(world, client, Client::Using { held });
        self.sightings.insert(Sometimes::Move);
        Ok(())
    }

    fn cancel(&mut self, world: &mut World, client: usize) -> Result<(), Breach> {
        if matches!(self.parts.clients.get(world.client(client)), Client::Using { .. }) {
            return self.end_use(world, client, End::Released, Client::Done);
        }
        if self.is_promised(world, client) {
            self.sightings.insert(Sometimes::CancelCrossesGrant);
        }
        self.set_client(world, client, Client::Waiting { unheard: false, cancelling: true });
        Ok(())
    }

    /// Takes the alarm down. If it says that leases are over, messages that promise them come too
    /// late.
    fn ring(&mut self, world: &mut World, node: NodeId, place: usize) -> u32 {
        let set = world.alarms(node);
        let alarm = self.parts.alarm_sets.get(set)[place];
        world.set_alarms(node, self.parts.alarms_changed(set, alarm, false));
        if self.scope.council.is_some() {
            self.ring_in_order(world, node, alarm);
            return alarm;
        }
        let lapsed = self.lapsing(world, node, alarm);
        if self.is_untimely(world, node, lapsed) {
            world.spend(Misfortune::Lapse);
        }
        if lapsed != 0 {
            for from in self.promisers(world, node) {
                for to in world.nodes() {
                    let queue = self.expired(world.queue(from, to), lapsed, (0, u8::MAX));
                    world.set_queue(from, to, queue);
                }
            }
        }
        alarm
    }

    /// A queue in which the promises to these clients that are not younger, nor longer than so many
    /// leases of the scope, are marked as too late.
    /// Of several late ones to one client only the last are kept, as many as there may be copies:
    /// the others are lost, or an arbiter that grants again and again could fill the link without
    /// end.
    pub(crate) fn expired(&mut self, queue: u32, lapsed: u8, (born, within): (u8, u8)) -> u32 {
        let promise = |parcel: &Parcel| self.parts.messages.card(parcel.message).promise;
        let lapses = |parcel: &Parcel| {
            let ended = parcel.born <= born && self.span_of(parcel) < within;
            ended && promise(parcel).is_some_and(|c| lapsed & 1 << c != 0)
        };
        let parcels = self.parts.queues.get(queue);
        if !parcels.iter().any(|parcel| !parcel.expired && lapses(parcel)) {
            return queue;
        }
        let marked: Vec<Parcel> = parcels
            .iter()
            .map(|parcel| Parcel { expired: parcel.expired || lapses(parcel), ..*parcel })
            .collect();
        let is_kept = |place: usize| {
            let same = |other: &&Parcel| other.expired && promise(other) == promise(&marked[place]);
            !lapses(&marked[place])
                || marked[place + 1..].iter().filter(same).count() < self.scope.copies_max
        };
        let kept: Vec<Parcel> =
            (0..marked.len()).filter(|&place| is_kept(place)).map(|place| marked[place]).collect();
        match self.scope.network {
            Network::Fifo => self.parts.put_queue(kept),
            // The mark is part of the order.
            Network::Reordering => kept
                .into_iter()
                .fold(0, |queue, parcel| self.parts.queue_with(queue, parcel, Network::Reordering)),
        }
    }

    /// A node is gone: its value, its alarms, what was on its way to it. Its disk remains.
    fn crash(&mut self, world: &mut World, node: NodeId) -> Result<(), Breach> {
        world.spend(Misfortune::Crash);
        world.set_participant(node, None);
        world.set_alarms(node, 0);
        self.left(node);
        for from in world.nodes() {
            world.set_queue(from, node, 0);
        }
        for client in 0..self.scope.clients.len() {
            if self.home(client) != node {
                continue;
            }
            match *self.parts.clients.get(world.client(client)) {
                Client::Waiting { cancelling, .. } => {
                    let unheard = true;
                    self.set_client(world, client, Client::Waiting { unheard, cancelling });
                }
                Client::Done | Client::Refused if self.scope.stands(client) => {
                    self.set_client(world, client, Client::Ended);
                }
                _ => {}
            }
        }
        self.judge(world, Seen::Crashed { node })
    }

    fn end_use(
        &mut self,
        world: &mut World,
        client: usize,
        how: End,
        then: Client,
    ) -> Result<(), Breach> {
        self.judge(world, Seen::Ended { client, using: world.client(client), how })?;
        self.set_client(world, client, then);
        Ok(())
    }

    pub(crate) fn judge(&mut self, world: &mut World, seen: Seen) -> Result<(), Breach> {
        let judgement = self.court.judge(&mut self.parts, self.scope, world.laws(), seen)?;
        world.set_laws(judgement.laws);
        if judgement.overtaken {
            self.sightings.insert(Sometimes::Overtake);
        }
        self.see_use(judgement.in_use);
        if judgement.in_use == u64::from(P::capacity(&self.scope.pool)) {
            self.sightings.insert(Sometimes::Full);
        }
        Ok(())
    }

    fn home(&self, client: usize) -> NodeId {
        let chamber = self.chamber.as_ref();
        chamber.map_or(self.scope.clients[client].home, |chamber| chamber.homes[client])
    }

    pub(crate) fn claim(&self, client: usize) -> &Claim {
        &self.scope.clients[client].claim
    }

    /// Whose claim this is.
    fn client_of(&self, claim: ClaimId) -> usize {
        self.scope.client_of(claim).expect("who answers another claim is stopped before")
    }

    /// A client shows what it has.
    pub(crate) fn renewal(&self, world: &World, client: usize) -> Event<u32, u32> {
        let Client::Using { held } = self.parts.clients.get(world.client(client)) else {
            unreachable!("only a client that uses units renews");
        };
        Event::Renew { claim: self.claim(client).id, shares: held.shares.clone() }
    }

    pub(crate) fn set_client(&mut self, world: &mut World, client: usize, state: Client) {
        let number = self.parts.put_client(state);
        world.set_client(client, number);
    }
}
