//! What each effect means here.
//!
//! | effect | in this world |
//! |---|---|
//! | `Persist` | a pending image, synced after a drawn delay; a crash before that loses or tears it |
//! | `Tell` | given to the network: late, lost, twice, held, as the plan has it |
//! | `Arm`, `Disarm` | an entry in the queue, on the node's own clock |
//! | `Grant`, `Extend`, `Refuse`, `Lose` | told to the client, and to the laws |
//! | `Reclaim` | counted |
//! | `AskLicence` | a question to the control plane (`council.rs`) |
//! | `Anomaly` | fails the run |
//!
//! Effects behind a `Persist` that is not on disk yet wait for it, also those of later steps,
//! except alarms: nobody outside can see an alarm, and an alarm that was disarmed must not ring
//! meanwhile.

use std::fmt::Write as _;

use quorate_core::{Effect, EffectOf, Event, EventOf, NodeId, Protocol, Purpose, Seat, Start};
use quorate_laws::Breach;

use crate::Span;
use crate::film::Flight;
use crate::network::Fate;
use crate::queue::{Due, Ticket};
use crate::trace::Stamp;
use crate::world::{Armed, Happening, Node, Stop, World};

/// Stops a run for something the contract forbids rather than a law.
pub(crate) fn broken_contract(what: String) -> Stop {
    Stop::new(Breach { law: "contract", what })
}

/// For what was looked at before it was taken. It is not dropped: whatever may have to be dropped
/// is copied to where that can be done, and each message would be.
#[inline(always)]
fn cannot_be<T>(other: T) -> ! {
    std::mem::forget(other);
    unreachable!("it was a message a moment ago")
}

impl<P: Protocol> World<'_, P> {
    /// Starts a participant.
    pub(crate) fn boot(&mut self, me: NodeId, start: Start<P::Durable>) -> Result<(), Stop> {
        let pool = self.pool_of(me);
        let node = &mut self.nodes[me.index()];
        let now = node.clock.read(self.now);
        let seat = Seat { me, boot: node.boot, now, pool };
        let first = start == Start::First;
        node.seat = Some(P::boot(&seat, start, &mut self.outbox));
        // A million first boots with nothing to say are not worth a line each.
        let text = (self.trace.is_on() && !(first && self.outbox.is_empty()))
            .then(|| format!("boot {}", node.boot));
        self.after_step(me, text)
    }

    /// Something happens to a participant that is running.
    pub(crate) fn step(&mut self, me: NodeId, event: EventOf<P>) -> Result<(), Stop> {
        match &event {
            // It is for what the message was for.
            Event::Hear { .. } => {}
            Event::Ring(alarm) => self.purpose = P::purpose(alarm),
            Event::Renew { .. } => self.purpose = Purpose::Lease,
            _ => self.purpose = Purpose::Protocol,
        }
        if self.is_watched {
            return self.step_watched(me, event);
        }
        self.take_step(me, event);
        self.perform_all(me)
    }

    #[inline(always)]
    fn take_step(&mut self, me: NodeId, event: EventOf<P>) {
        self.measures.steps += 1;
        let pool = self.pool_of(me);
        let node = &mut self.nodes[me.index()];
        let now = node.clock.read(self.now);
        let seat = Seat { me, boot: node.boot, now, pool };
        let participant = node.seat.as_mut().expect("only running nodes take steps");
        participant.step(&seat, event, &mut self.outbox);
    }

    /// A step that somebody looks at: apart, so that others are fast.
    #[cold]
    fn step_watched(&mut self, me: NodeId, event: EventOf<P>) -> Result<(), Stop> {
        let text = self.trace.is_on().then(|| event.to_string());
        if self.corruption.is_some() {
            let node = &self.nodes[me.index()];
            let now = node.clock.read(self.now);
            let seat = Seat { me, boot: node.boot, now, pool: self.pool_of(me) };
            self.look_at_event(&seat, &event);
        }
        self.take_step(me, event);
        self.after_step(me, text)
    }

    pub(crate) fn after_step(&mut self, me: NodeId, event: Option<String>) -> Result<(), Stop> {
        if let Some(event) = event {
            self.trace_step(me, &event);
        }
        if self.laws.is_strict() {
            self.inspect(me)?;
        }
        self.perform_all(me)
    }

    /// Empties the outbox.
    #[inline(always)]
    fn perform_all(&mut self, me: NodeId) -> Result<(), Stop> {
        if self.outbox.is_empty() {
            return Ok(());
        }
        let node = &mut self.nodes[me.index()];
        if let Some(limit) = node.crash_after.take() {
            return self.perform_until_crash(me, limit as usize);
        }
        let mut is_plain = self.tells_plainly(me);
        for position in 0..self.outbox.len() {
            if is_plain && self.leave_at_once(me, position) {
                continue;
            }
            if let Some(effect) = self.outbox.at(position).take() {
                self.perform(me, effect)?;
                is_plain = self.tells_plainly(me);
            }
        }
        self.outbox.restart();
        Ok(())
    }

    #[cold]
    fn perform_until_crash(&mut self, me: NodeId, limit: usize) -> Result<(), Stop> {
        let mut outbox = std::mem::take(&mut self.outbox);
        for effect in outbox.drain().take(limit) {
            self.perform(me, effect)?;
        }
        self.outbox = outbox;
        self.crash(me);
        Ok(())
    }

    fn trace_step(&mut self, me: NodeId, event: &str) {
        let (used, units) = (self.laws.in_use(), self.measures.units());
        let (now, waiting, name) = (Stamp(self.now), self.measures.queue.level(), me.to_string());
        let mut text = event.to_owned();
        for (position, effect) in self.outbox.effects().enumerate() {
            let mark = if position == 0 { "  => " } else { "; " };
            // Writing to a string cannot fail.
            let _ = write!(text, "{mark}{effect}");
        }
        self.trace.write(format_args!("{now} {used:>2}/{units} w{waiting:<3} {name:<4} {text}\n"));
        let pool = self.pool_of(me);
        let Some(film) = self.trace.film() else { return };
        film.frame((self.measures.happenings, self.now), name, text);
        let node = &self.nodes[me.index()];
        if let Some(participant) = &node.seat {
            let now = node.clock.read(self.now);
            let mut facts = Vec::new();
            participant.facts(&Seat { me, boot: node.boot, now, pool }, &mut |fact| {
                facts.push(fact);
            });
            film.facts(me, facts);
        }
    }

    /// The slow checks of strict runs: the participant alone, and what its books say.
    fn inspect(&mut self, me: NodeId) -> Result<(), Stop> {
        let node = &self.nodes[me.index()];
        let Some(participant) = &node.seat else { return Ok(()) };
        let now = node.clock.read(self.now);
        participant.audit(&Seat { me, boot: node.boot, now, pool: self.pool_of(me) });
        self.books.clear();
        participant.ledger(&mut |entry| self.books.push(entry));
        Ok(self.laws.see_books(me, &self.books)?)
    }

    /// The table above.
    fn perform(&mut self, me: NodeId, effect: EffectOf<P>) -> Result<(), Stop> {
        match effect {
            Effect::Arm { alarm, after } => {
                self.arm(me, alarm, after);
                Ok(())
            }
            Effect::Disarm(alarm) => {
                let key = (me, self.nodes[me.index()].boot, alarm);
                if self.alarms.remove(&key).is_some() {
                    self.take_back();
                }
                Ok(())
            }
            Effect::Anomaly { peer, what } => {
                let what = format!("{me} says of {peer}: {what}");
                Err(Breach { law: "anomaly", what }.into())
            }
            seen => match &mut self.nodes[me.index()].disk {
                Some(disk) if disk.is_busy() => {
                    disk.wait(self.purpose, seen);
                    Ok(())
                }
                _ => self.perform_visibly(me, seen),
            },
        }
    }

    /// An effect that outsiders see, once nothing on the way to the disk is before it.
    fn perform_visibly(&mut self, me: NodeId, effect: EffectOf<P>) -> Result<(), Stop> {
        if self.nobody_hears(me, &effect) {
            return Ok(());
        }
        match effect {
            Effect::Persist(record) => {
                self.persist(me, record);
                Ok(())
            }
            Effect::Tell { to, message } => self.tell(me, to, message),
            Effect::Grant { claim, shares, until } => self.grant(me, claim, shares, until),
            Effect::Extend { claim, until } => self.extend(claim, until),
            Effect::Move { claim, shares, it } => self.ask_to_move(claim, shares, *it),
            Effect::Refuse { claim, why } => self.refuse(claim, why),
            Effect::Lose { claim } => {
                self.lose(claim);
                Ok(())
            }
            Effect::Reclaim { .. } => {
                self.measures.reclaims += 1;
                self.progress_at = self.now;
                Ok(())
            }
            Effect::AskLicence { term, asked } => {
                self.ask_licence(me, term, asked);
                Ok(())
            }
            Effect::Vouch { term, naming } => {
                self.vouch(term, naming);
                Ok(())
            }
            Effect::Arm { .. } | Effect::Disarm(_) | Effect::Anomaly { .. } => {
                unreachable!("performed at once")
            }
        }
    }

    fn persist(&mut self, me: NodeId, record: P::Durable) {
        self.measures.persists += 1;
        let disk = self.nodes[me.index()].disk.get_or_insert_default();
        if self.plan.sync == Span::ZERO {
            disk.write_now(record);
        } else {
            disk.wait(self.purpose, Effect::Persist(record));
            self.start_sync(me);
        }
    }

    fn start_sync(&mut self, node: NodeId) {
        let Some(disk) = &mut self.nodes[node.index()].disk else { return };
        if disk.start_sync() {
            let at = self.now + self.plan.sync.draw(&mut self.chance.disk);
            let boot = self.nodes[node.index()].boot;
            self.queue.push(at, Happening::Synced { node, boot });
        }
    }

    /// A sync is done: what waited for it happens.
    pub(crate) fn synced(&mut self, node: NodeId, boot: u32) -> Result<(), Stop> {
        if self.nodes[node.index()].boot != boot || self.nodes[node.index()].seat.is_none() {
            return Ok(());
        }
        self.note(&node, format_args!("synced"));
        while let Some(disk) = &mut self.nodes[node.index()].disk
            && let Some((purpose, effect)) = disk.next_released()
        {
            self.purpose = purpose;
            self.perform_visibly(node, effect)?;
        }
        self.start_sync(node);
        Ok(())
    }

    /// Whether messages of a node leave at once and only take their time, and nobody looks at them,
    /// as mostly.
    #[inline(always)]
    fn tells_plainly(&self, me: NodeId) -> bool {
        self.nodes[me.index()].disk.is_none() && self.network.is_plain() && !self.is_watched
    }

    /// Takes such a message straight from the outbox to the queue, if the effect is one and its
    /// receiver is there: half of the simulator's inner loop.
    #[inline(always)]
    fn leave_at_once(&mut self, me: NodeId, position: usize) -> bool {
        let place = self.outbox.at(position);
        let Some(Effect::Tell { to, message }) = place else { return false };
        let (to, kind) = (*to, P::kind(message));
        let Some(Node { seat: Some(_), boot, .. }) = self.nodes.get(to.index()) else {
            return false;
        };
        if to == me {
            return false;
        }
        let (to_boot, purpose) = (*boot, self.purpose);
        let from_boot = self.nodes[me.index()].boot;
        self.nodes[me.index()].traffic += 1;
        self.measures.messages[kind] += 1;
        self.measures.messages_for[purpose as usize] += 1;
        let planned = self.queue.plan(self.network.plain_arrival(self.now, me, to));
        let message = match place.take() {
            Some(Effect::Tell { message, .. }) => message,
            other => cannot_be(other),
        };
        *planned = Some(Happening::Hear { from: me, to, message, from_boot, to_boot, purpose });
        true
    }

    pub(crate) fn tell(&mut self, me: NodeId, to: NodeId, message: P::Message) -> Result<(), Stop> {
        if to == me || to.index() >= self.nodes.len() {
            return Err(broken_contract(format!("{me} tells {to}: {message}")));
        }
        let purpose = self.purpose;
        self.measures.messages[P::kind(&message)] += 1;
        self.measures.messages_for[purpose as usize] += 1;
        self.nodes[me.index()].traffic += 1;
        let receiver = &self.nodes[to.index()];
        // A message to a node that is down is on its way to nobody.
        let fate = match &receiver.seat {
            Some(_) => self.network.send(self.now, me, to),
            None => Fate::Lost,
        };
        let (from_boot, to_boot) = (self.nodes[me.index()].boot, receiver.boot);
        let hear = |message| Happening::Hear { from: me, to, message, from_boot, to_boot, purpose };
        match fate {
            Fate::Once(at) => {
                self.shoot(me, to, &message, at, Some(self.queue.next_ticket()));
                self.queue.push(at, hear(message));
            }
            Fate::Twice(first, second) => {
                for at in [first, second] {
                    self.shoot(me, to, &message, at, Some(self.queue.next_ticket()));
                    self.queue.push(at, hear(message.clone()));
                }
            }
            Fate::Lost => {
                self.disturb();
                self.measures.messages_lost += 1;
                // A little of its way is drawn.
                let ends = self.now + self.plan.links.delay.mean() / 2;
                self.shoot(me, to, &message, ends, None);
            }
        }
        Ok(())
    }

    /// Puts a message on film.
    fn shoot(
        &mut self,
        from: NodeId,
        to: NodeId,
        message: &P::Message,
        ends: u64,
        on: Option<Ticket>,
    ) {
        let sent = self.now;
        if let Some(film) = self.trace.film() {
            let (kind, text, lost) = (P::kind(message), message.to_string(), on.is_none());
            let number = on.map(Ticket::number);
            film.send(Flight { from, to, sent, ends, lost, kind, text, number }, on);
        }
    }

    /// Takes what is next straight from the queue to its receiver, if it is a message that nothing
    /// stands in the way of, as nearly everything is: its link is not cut, its receiver runs, and
    /// nobody has restarted or looks at it. The other half of the simulator's inner loop, in which
    /// a message is not copied more often than it must be.
    #[inline(always)]
    pub(crate) fn hear_at_once(&mut self, at: u64, due: Due) -> Result<bool, Stop> {
        let place = self.queue.place(due);
        let Some(&mut Happening::Hear { from, to, from_boot: 0, to_boot, purpose, .. }) =
            place.as_mut()
        else {
            return Ok(false);
        };
        let pool = self.pool_of(to);
        let place = self.queue.place(due);
        let node = &mut self.nodes[to.index()];
        let is_plain = node.boot == to_boot
            && !node.paused
            && self.newest.is_empty()
            && !self.network.is_cut(from, to)
            && !self.is_watched;
        let (Some(participant), true) = (&mut node.seat, is_plain) else { return Ok(false) };
        self.now = at;
        self.purpose = purpose;
        node.traffic += 1;
        self.measures.happenings += 1;
        self.measures.steps += 1;
        let now = node.clock.read(at);
        let seat = Seat { me: to, boot: to_boot, now, pool };
        let message = match place.take() {
            Some(Happening::Hear { message, .. }) => message,
            other => cannot_be(other),
        };
        participant.step(&seat, Event::Hear { from, message }, &mut self.outbox);
        self.perform_all(to)?;
        Ok(true)
    }

    /// A message arrives, unless its link is cut or its sender or receiver is of an earlier life.
    pub(crate) fn hear(
        &mut self,
        ticket: Ticket,
        (from, from_boot): (NodeId, u32),
        (to, to_boot): (NodeId, u32),
        message: P::Message,
    ) -> Result<(), Stop> {
        let receiver = &self.nodes[to.index()];
        if receiver.boot != to_boot || receiver.seat.is_none() {
            self.lose_message(ticket);
            return Ok(());
        }
        if self.network.is_cut(from, to) {
            if self.network.cuts_hold() {
                let purpose = self.purpose;
                let happening = Happening::Hear { from, from_boot, to, to_boot, message, purpose };
                self.held.push((ticket, happening));
            } else {
                self.lose_message(ticket);
            }
            return Ok(());
        }
        if self.nodes[from.index()].boot > 0 {
            let newest = self.newest.entry((to, from)).or_insert(0);
            if from_boot < *newest {
                self.lose_message(ticket);
                return Ok(());
            }
            if self.plan.faults.greetings && from_boot > *newest {
                let purpose = self.purpose;
                self.greet(to, from, from_boot)?;
                self.purpose = purpose;
                if self.nodes[to.index()].boot != to_boot || self.nodes[to.index()].seat.is_none() {
                    self.lose_message(ticket);
                    return Ok(());
                }
            } else {
                *newest = from_boot;
            }
        }
        if let Some(film) = self.trace.film() {
            film.land(ticket, self.now, false);
        }
        self.nodes[to.index()].traffic += 1;
        self.step(to, Event::Hear { from, message })
    }

    fn lose_message(&mut self, ticket: Ticket) {
        self.disturb();
        self.measures.messages_lost += 1;
        if let Some(film) = self.trace.film() {
            film.land(ticket, self.now, true);
        }
    }

    fn arm(&mut self, node: NodeId, alarm: P::Alarm, after: std::time::Duration) {
        let owner = &self.nodes[node.index()];
        let deadline = owner.clock.read(self.now).after(after);
        let at = owner.clock.when(deadline).max(self.now);
        let key = (node, owner.boot, alarm);
        let ticket = self.queue.push(at, Happening::Ring { node, boot: owner.boot, alarm });
        if self.alarms.insert(key, Armed { deadline, ticket }).is_some() {
            self.take_back();
        }
    }

    /// The time of an alarm has come: it rings, unless it was disarmed or armed anew while its
    /// node was paused, or its node's clock has become slower since.
    pub(crate) fn ring(
        &mut self,
        ticket: Ticket,
        node: NodeId,
        boot: u32,
        alarm: P::Alarm,
    ) -> Result<(), Stop> {
        let owner = &self.nodes[node.index()];
        let key = (node, boot, alarm);
        let Some(armed) = self.alarms.get_mut(&key).filter(|armed| armed.ticket == ticket) else {
            return Ok(());
        };
        if owner.boot != boot || owner.seat.is_none() {
            self.alarms.remove(&key);
            return Ok(());
        }
        if owner.clock.read(self.now) < armed.deadline {
            let at = owner.clock.when(armed.deadline);
            armed.ticket = self.queue.push(at, Happening::Ring { node, boot, alarm });
            return Ok(());
        }
        self.alarms.remove(&key);
        self.step(node, Event::Ring(alarm))
    }
}
