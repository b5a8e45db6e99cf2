//! The control plane of a small world, and the order of time in it.
//!
//! For protocols whose decider may change ([`quorate_core::Charter`]) the checker plays the control
//! plane: a log of seat table entries that grows at one moment ([`Happening::Commit`]), is applied
//! by each node at its own, one entry after the other or the newest at once, and answers who asks
//! for a licence as long as the entry stands. The log is on no node: it never forgets, and is
//! always there, as one that a majority keeps.
//!
//! **Time** is an order here as elsewhere, but a finer one: two nodes may have promised the same
//! client something, and the end of one promise says nothing about the other. So whatever counts
//! from a moment on has that moment in the world: an alarm that ends leases, from when it was
//! armed; a promise, from when the alarm that ends its lease was armed at whoever made it, or from
//! when it was told if there is none; a licence, from when it was asked for. An alarm rings only
//! when every promise that is not younger is over, whoever made it; one for licences only when
//! every older licence is. That much the arithmetic of leases and licences achieves
//! ([`quorate_core::Lease`]), and nothing else is assumed. Only the order of these moments matters,
//! so they are renumbered as clocks are. Clocks read how many renewals there were, so that each
//! answer to one is news.

use std::time::Duration;

use quorate_core::{Charter, Event, Explorable, Moment, NodeId, Shadow, Tenure};
use quorate_laws::Breach;

use crate::action::Happening;
use crate::client::Client;
use crate::model::Model;
use crate::moments::{NOW, name, renumbered};
use crate::parts::{Lapse, Parcel};
use crate::scope::CLIENTS_MAX;
use crate::spans::{self, Carried, Promises};
use crate::steps::{Cue, Stepper};
use crate::world::{Misfortune, World};

/// A control plane, and what may happen in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Council {
    /// Who decides first.
    pub seat: NodeId,
    /// How often another node is to decide although the one that does is there. One that is gone
    /// is replaced without that.
    pub moves: u8,
    /// How often a client goes to another node.
    pub rehomes: u8,
    /// Whether a node that was restarted may have forgotten what it had applied.
    pub forgets: bool,
    /// Who shadows the first seat from the beginning, and so is whole.
    pub shadow: Option<NodeId>,
    /// How often a shadow is named where there is none.
    pub namings: u8,
    /// How often one that is there is struck.
    pub strikes: u8,
    /// Whether the first seat is that of a node that files name: the log gets its first entry when
    /// that node has given it up (charter spec S18).
    pub pinned: bool,
    /// What is wrong with it, for tests that the harness finds it.
    pub flaw: Option<Flaw>,
}

impl Council {
    /// One that lets this node decide, and changes nothing without need.
    pub fn of(seat: NodeId) -> Self {
        let (moves, rehomes, namings, strikes) = (0, 0, 0, 0);
        let (forgets, shadow, pinned, flaw) = (false, None, false, None);
        Council { seat, moves, rehomes, forgets, shadow, namings, strikes, pinned, flaw }
    }
}

/// Rules of a control plane that tests break (charter spec S1, S17).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// Licences are given by what some node has applied, and not at a read index.
    AnswersFromApplied,
    /// Licences are given to the node that decides, whatever term it asks about.
    AnswersWithoutTerm,
    /// Whoever was a whole shadow takes over, though it was restarted since.
    AnyLifeInherits,
}

/// Where the control plane is, and since when things count.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Chamber {
    pub(crate) log: Vec<Charter>,
    /// How long that was when the pool was changed, change by change.
    pub(crate) amended: Vec<usize>,
    pub(crate) nodes: Vec<Member>,
    /// Armed alarms that end leases or licences, by node and number.
    alarms: Vec<Armed>,
    /// By which promises clients use units.
    pub(crate) clients: Vec<Promises>,
    /// Where clients are.
    pub(crate) homes: Vec<NodeId>,
    /// How often a shadow may still be named or struck, and how many were named.
    pub(crate) namings: u8,
    pub(crate) strikes: u8,
    pub(crate) named: u64,
    /// The term and the naming of a shadow that its seat has vouched for.
    pub(crate) vouched: Option<(u32, u64)>,
    /// Whether the node that files name decides for good no more.
    unpinned: bool,
}

/// An alarm that ends leases or licences: since when, and promises of how many lengths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Armed {
    node: NodeId,
    alarm: u32,
    born: u8,
    within: u8,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Member {
    /// How many changes of the pool this node has applied.
    pub(crate) edition: u8,
    /// How much of the log this life of the node was told...
    applied: usize,
    /// ...and how much it will be told at least when it is back.
    stored: usize,
    /// The term in which it wants a licence, and since when.
    ask: Option<(u32, u8)>,
    /// Since when its licence counts.
    licence: Option<u8>,
}

impl<P: Explorable> Model<'_, P> {
    /// The control plane before anything happened.
    pub(crate) fn convene(&mut self, world: &World) {
        let Some(council) = &self.scope.council else { return };
        let term = if council.pinned { Tenure::PINNED } else { 1 };
        let first = Tenure { term, after: None, node: council.seat, boot: 0 };
        let mut log = vec![Charter::Applied(first)];
        let shadow = council.shadow.map(|node| Shadow { node, boot: 0, naming: 0, whole: true });
        log.extend(shadow.map(|it| Charter::Shadowed { term: 1, shadow: Some(it) }));
        self.chamber = Some(Chamber {
            log,
            amended: Vec::new(),
            nodes: vec![Member::default(); world.nodes().count()],
            alarms: Vec::new(),
            clients: vec![Promises::default(); self.scope.clients.len()],
            homes: self.scope.clients.iter().map(|plan| plan.home).collect(),
            namings: council.namings,
            strikes: council.strikes,
            named: 0,
            vouched: None,
            unpinned: false,
        });
    }

    /// Everybody learns who decides first, undisturbed.
    pub(crate) fn apply_first(&mut self, world: &mut World) -> Result<(), Breach> {
        let Some(council) = self.scope.council else { return Ok(()) };
        let entries = if council.shadow.is_some() { 2 } else { 1 };
        for node in world.nodes() {
            for index in 0..if node == council.seat { entries } else { 1 } {
                self.resume(world);
                let (node, cue) = self.apply(world, node, index);
                let (boot, participant) = (world.boot(node), world.participant(node));
                let stepper = Stepper { node, boot, participant, tick: 0, edition: 0 };
                let outcome = self.steps.take(&mut self.parts, self.scope, stepper, cue)?;
                self.finish(world, node, outcome, None)?;
                self.adjourn(world);
            }
        }
        Ok(())
    }

    /// Takes the control plane out for an action...
    pub(crate) fn resume(&mut self, world: &World) {
        self.carried = None;
        self.chamber =
            self.scope.council.is_some().then(|| self.parts.chambers.get(world.council()).clone());
    }

    /// ...and puts it back: what cannot matter any more is taken out, and moments are renumbered.
    pub(crate) fn adjourn(&mut self, world: &mut World) {
        let Some(mut chamber) = self.chamber.take() else { return };
        let parts = &self.parts;
        chamber.alarms.retain(|it| parts.alarm_sets.get(world.alarms(it.node)).contains(&it.alarm));
        for (client, promises) in chamber.clients.iter_mut().enumerate() {
            if !matches!(parts.clients.get(world.client(client)), Client::Using { .. }) {
                *promises = Promises::default();
            }
        }
        let last = chamber.tenure();
        chamber.vouched = chamber.vouched.filter(|said| chamber.counts(*said));
        let licences = [Flaw::AnswersFromApplied, Flaw::AnswersWithoutTerm].map(Some);
        let flawed = self.scope.council.as_ref().is_some_and(|it| licences.contains(&it.flaw));
        for (node, member) in world.nodes().zip(&mut chamber.nodes) {
            let stands = |term: u32| flawed || (last.node, last.term) == (node, term);
            member.ask = member.ask.filter(|(term, _)| stands(*term));
            let participant = world.participant(node);
            let licensed = participant.is_some_and(|p| parts.participants.get(p).is_licensed());
            member.licence = member.licence.filter(|_| licensed);
        }
        self.renumber_leases(world, &mut chamber);
        renumber_licences(&mut chamber, |alarm| {
            matches!(self.parts.alarms.card(alarm), Lapse::Licences)
        });
        world.set_council(self.parts.chambers.put(chamber, |_| ()));
    }

    fn renumber_leases(&mut self, world: &mut World, chamber: &mut Chamber) {
        let ends_leases =
            |alarm: u32| matches!(self.parts.alarms.card(alarm), Lapse::Of(_) | Lapse::Earlier);
        let mut moments = Vec::new();
        moments.extend(
            chamber.alarms.iter().filter(|it| ends_leases(it.alarm)).map(|it| (it.born, true)),
        );
        let using = |client: &usize| {
            matches!(self.parts.clients.get(world.client(*client)), Client::Using { .. })
        };
        let clients: Vec<usize> = (0..chamber.clients.len()).filter(using).collect();
        let promised = clients.iter().flat_map(|&client| chamber.clients[client]);
        moments.extend(promised.flatten().map(|born| (born, false)));
        let promises = |parcel: &Parcel| {
            !parcel.expired && self.parts.messages.card(parcel.message).promise.is_some()
        };
        for &queue in world.queues() {
            let parcels = self.parts.queues.get(queue).iter().filter(|it| promises(it));
            moments.extend(parcels.map(|parcel| (parcel.born, false)));
        }
        let names = renumbered(moments);
        for armed in chamber.alarms.iter_mut().filter(|it| ends_leases(it.alarm)) {
            armed.born = name(&names, armed.born, true);
        }
        for client in clients {
            for born in chamber.clients[client].iter_mut().flatten() {
                *born = name(&names, *born, false);
            }
        }
        for place in 0..world.queues().len() {
            let queue = self.parts.queues.get(world.queues()[place]);
            if !queue.is_empty() {
                let renamed = |parcel: &Parcel| {
                    let promises = self.parts.messages.card(parcel.message).promise.is_some()
                        && !parcel.expired;
                    let born = if promises { name(&names, parcel.born, false) } else { 0 };
                    Parcel { born, ..*parcel }
                };
                let queue = queue.iter().map(renamed).collect();
                world.queues_mut()[place] = self.parts.put_queue(queue);
            }
        }
    }

    /// What all clocks read.
    pub(crate) fn tick(&self, world: &World) -> u32 {
        match self.scope.council {
            Some(_) => u32::from(self.scope.budget.renewals) - world.left(Misfortune::Renewal),
            None => 0,
        }
    }

    /// Where a client is.
    pub(crate) fn home_in(&self, world: &World, client: usize) -> NodeId {
        match self.scope.council {
            Some(_) => self.parts.chambers.get(world.council()).homes[client],
            None => self.scope.clients[client].home,
        }
    }

    /// Whether another node has decided before.
    pub(crate) fn has_moved(&self) -> bool {
        self.chamber.as_ref().is_some_and(|chamber| chamber.tenure().term > 1)
    }

    /// An alarm counts from now on.
    pub(crate) fn armed(&mut self, node: NodeId, alarm: u32, after: Duration) {
        let ends = self.parts.alarms.card(alarm);
        let counts = *ends != Lapse::Nothing;
        let within = if *ends == Lapse::Licences { 0 } else { self.scope.spans_within(after) };
        if let Some(chamber) = self.chamber.as_mut().filter(|_| counts) {
            chamber.alarms.retain(|it| (it.node, it.alarm) != (node, alarm));
            chamber.alarms.push(Armed { node, alarm, born: NOW, within });
            chamber.alarms.sort_unstable();
        }
    }

    /// A node wants a licence.
    pub(crate) fn asked(&mut self, node: NodeId, term: u32) {
        if let Some(chamber) = &mut self.chamber {
            chamber.nodes[node.index()].ask = Some((term, NOW));
        }
    }

    /// A client uses units by the promise that is being delivered, or that its node just made.
    pub(crate) fn promised(&mut self, node: NodeId, client: usize, until: Moment) {
        let here = || Carried {
            born: self.lease_of(node, client),
            span: self.scope.span_of(self.edition(node)),
        };
        let Carried { born, span: said } = self.carried.unwrap_or_else(here);
        let told = self.scope.span_until(until);
        let Some(chamber) = &mut self.chamber else { return };
        let promises = &mut chamber.clients[client];
        // A later moment of which it was told before stays as it was.
        let known = promises[usize::from(told)..].iter().any(Option::is_some);
        spans::noted(promises, if known { said } else { told }, born);
    }

    /// Since when a promise counts that a node tells.
    pub(crate) fn born_of(&self, node: NodeId, message: u32) -> u8 {
        let promise = self.parts.messages.card(message).promise;
        promise.map_or(0, |client| self.lease_of(node, client))
    }

    fn lease_of(&self, node: NodeId, client: usize) -> u8 {
        let Some(chamber) = &self.chamber else { return 0 };
        let ends = |alarm: u32| *self.parts.alarms.card(alarm) == Lapse::Of(Some(client));
        let armed = chamber.alarms.iter().find(|it| it.node == node && ends(it.alarm));
        armed.map_or(NOW, |it| it.born)
    }

    /// A node is down: what it asked for, and was told, it will not remember.
    pub(crate) fn left(&mut self, node: NodeId) {
        let forgets = self.scope.council.as_ref().is_some_and(|council| council.forgets);
        if let Some(chamber) = &mut self.chamber {
            let member = &mut chamber.nodes[node.index()];
            let stored = if forgets { 0 } else { member.stored };
            let edition = if forgets { 0 } else { member.edition };
            *member = Member { stored, edition, ..Member::default() };
        }
    }

    pub(crate) fn council_happenings(&self, world: &World, into: &mut Vec<Happening>) {
        let Some(council) = &self.scope.council else { return };
        let chamber = self.parts.chambers.get(world.council());
        let last = chamber.tenure();
        let is_up = |node: NodeId| world.participant(node).is_some();
        let is_pinned = last.term == Tenure::PINNED;
        let gone = match is_pinned {
            true => chamber.unpinned,
            false => !is_up(last.node) || world.boot(last.node) != last.boot,
        };
        let is_told = || chamber.nodes[last.node.index()].applied > 0;
        if is_pinned && !chamber.unpinned && is_up(last.node) && is_told() {
            into.push(Happening::Unpin { node: last.node });
        }
        for to in world.nodes().filter(|to| is_up(*to)) {
            if gone {
                into.push(Happening::Commit { to, forced: true });
            } else if !is_pinned && to != last.node && world.left(Misfortune::Move) > 0 {
                into.push(Happening::Commit { to, forced: false });
            }
        }
        for (node, member) in world.nodes().zip(&chamber.nodes).filter(|(node, _)| is_up(*node)) {
            let next = chamber.next_for(node, member.applied, member.stored);
            let known = chamber.known_by(member.edition);
            let next = next.into_iter().filter(|index| *index < known);
            into.extend(next.map(|index| Happening::Apply { node, index }));
            let stands = |it: &Tenure, term| it.node == node && it.term == term;
            let confirmed = |term| match council.flaw {
                Some(Flaw::AnyLifeInherits) | None => stands(&last, term),
                Some(Flaw::AnswersWithoutTerm) => last.node == node,
                Some(Flaw::AnswersFromApplied) => {
                    let applied = chamber.nodes.iter().filter_map(|it| it.applied.checked_sub(1));
                    applied.into_iter().any(|index| stands(&chamber.tenure_at(index), term))
                }
            };
            // Charter spec S2: it has applied whatever is in force where that is confirmed.
            let is_up_to_date = usize::from(member.edition) == chamber.amended.len();
            if is_up_to_date && member.ask.is_some_and(|(term, _)| confirmed(term)) {
                into.push(Happening::License { node });
            }
            if member.licence.is_some() {
                into.push(Happening::EndLicence { node });
            }
        }
        self.amendments(world, into);
        self.shadow_happenings(world, into);
        if world.left(Misfortune::Rehome) > 0 {
            for (client, &number) in world.clients().iter().enumerate() {
                let state = self.parts.clients.get(number);
                let goes = matches!(
                    state,
                    Client::Waiting { cancelling: false, .. } | Client::Using { .. }
                );
                let others = world
                    .nodes()
                    .filter(|to| goes && is_up(*to) && *to != self.home_in(world, client));
                into.extend(others.map(|to| Happening::Rehome { client, to }));
            }
        }
    }

    /// What happens in the control plane, and which node hears of it.
    pub(crate) fn begin_of_council(
        &mut self,
        world: &mut World,
        happening: Happening,
    ) -> Result<Option<(NodeId, Cue)>, Breach> {
        let told = |node, event| Some((node, Cue::Step { event, late: false }));
        let mut chamber = self.chamber.take().expect("only a council does this");
        let heard = match happening {
            Happening::Commit { to, forced } => {
                if !forced {
                    world.spend(Misfortune::Move);
                }
                let flaw = self.scope.council.as_ref().and_then(|council| council.flaw);
                chamber.log.push(chamber.succession(to, world.boot(to), flaw));
                None
            }
            Happening::Amend { .. } | Happening::Learn { .. } => {
                self.chamber = Some(chamber);
                return self.amended(world, happening);
            }
            Happening::Name { .. } | Happening::Strike { .. } | Happening::Whole => {
                self.shadow_happens(world, &mut chamber, happening);
                None
            }
            Happening::Apply { node, index } => {
                self.chamber = Some(chamber);
                return Ok(Some(self.apply(world, node, index)));
            }
            Happening::Unpin { node } => {
                chamber.unpinned = true;
                told(node, Event::Charter(Charter::Unpinned))
            }
            Happening::License { node } => {
                let member = &mut chamber.nodes[node.index()];
                let (term, born) = member.ask.take().expect("only who asked is answered");
                member.licence = member.licence.max(Some(born));
                // Whoever asks anew is not answered what it asked before.
                let tick = if self.scope.editions.is_empty() { 0 } else { self.tick(world) };
                let asked = quorate_core::Moment(tick.into());
                told(node, Event::Charter(Charter::Licensed { term, asked }))
            }
            Happening::EndLicence { node } => {
                chamber.nodes[node.index()].licence = None;
                let number = world.participant(node).expect("only who runs has a licence");
                let mut participant = self.parts.participants.get(number).clone();
                participant.end_licence();
                let number = self.parts.put_participant(participant, self.scope);
                world.set_participant(node, Some(number));
                None
            }
            Happening::Rehome { client, to } => {
                world.spend(Misfortune::Rehome);
                chamber.homes[client] = to;
                let state = self.parts.clients.get(world.client(client));
                let event = match state {
                    Client::Using { .. } => self.renewal(world, client),
                    _ => Event::Claim(self.claim(client).clone()),
                };
                if let Client::Waiting { cancelling, .. } = *state {
                    let waits = Client::Waiting { unheard: false, cancelling };
                    self.set_client(world, client, waits);
                }
                told(to, event)
            }
            _ => unreachable!("not the council's"),
        };
        self.chamber = Some(chamber);
        Ok(heard)
    }

    fn apply(&mut self, world: &World, node: NodeId, index: usize) -> (NodeId, Cue) {
        let chamber = self.chamber.as_mut().expect("only where there is a council");
        let member = &mut chamber.nodes[node.index()];
        member.applied = index + 1;
        member.stored = member.stored.max(index + 1);
        let word = match chamber.log[index] {
            // Files name the node, whatever life of it there is, until it has given that up.
            Charter::Applied(it) if it.term == Tenure::PINNED && !chamber.unpinned => {
                Charter::Applied(Tenure { boot: world.boot(it.node), ..it })
            }
            word => word,
        };
        (node, Cue::Step { event: Event::Charter(word), late: false })
    }

    /// Whether everything is over that is over when this alarm rings.
    pub(crate) fn may_ring_in_order(&self, world: &World, node: NodeId, alarm: u32) -> bool {
        let chamber = self.parts.chambers.get(world.council());
        let rings = |it: &&Armed| (it.node, it.alarm) == (node, alarm);
        let Some(&Armed { born, within, .. }) = chamber.alarms.iter().find(rings) else {
            return true;
        };
        if *self.parts.alarms.card(alarm) == Lapse::Licences {
            return chamber.nodes.iter().all(|it| it.licence.is_none_or(|since| since > born));
        }
        let using = |client: usize| {
            matches!(self.parts.clients.get(world.client(client)), Client::Using { .. })
        };
        let mut clients = 0..chamber.clients.len();
        let goes_on = |client: usize| spans::outlives(&chamber.clients[client], born, within);
        clients.all(|client| !using(client) || goes_on(client))
            && (world.left(Misfortune::Lapse) > 0 || !self.is_late_for_some(world, (born, within)))
    }

    /// Whether somebody waits while a promise to it is on its way that is over by then.
    fn is_late_for_some(&self, world: &World, (born, within): (u8, u8)) -> bool {
        let waits = |client: usize| {
            matches!(self.parts.clients.get(world.client(client)), Client::Waiting { .. })
        };
        let mut parcels = world.queues().iter().flat_map(|&queue| self.parts.queues.get(queue));
        parcels.any(|parcel| {
            let promise = self.parts.messages.card(parcel.message).promise;
            let ended = parcel.born <= born && self.span_of(parcel) < within;
            !parcel.expired && ended && promise.is_some_and(waits)
        })
    }

    /// An alarm rings that says what is over.
    pub(crate) fn ring_in_order(&mut self, world: &mut World, node: NodeId, alarm: u32) {
        let chamber = self.chamber.as_mut().expect("only where there is a council");
        let place = chamber.alarms.iter().position(|it| (it.node, it.alarm) == (node, alarm));
        let Some(place) = place else { return };
        let Armed { born, within, .. } = chamber.alarms.remove(place);
        if *self.parts.alarms.card(alarm) == Lapse::Licences {
            for member in &mut chamber.nodes {
                member.ask = member.ask.filter(|(_, since)| *since > born);
            }
            return;
        }
        for promises in &mut chamber.clients {
            *promises = spans::left(promises, born, within);
        }
        if self.is_late_for_some(world, (born, within)) {
            world.spend(Misfortune::Lapse);
        }
        for place in 0..world.queues().len() {
            let queue = world.queues()[place];
            let everybody = (1u16 << CLIENTS_MAX).wrapping_sub(1) as u8;
            world.queues_mut()[place] = self.expired(queue, everybody, (born, within));
        }
    }
}

fn renumber_licences(chamber: &mut Chamber, ends_licences: impl Fn(u32) -> bool) {
    let mut moments: Vec<(u8, bool)> = Vec::new();
    let lulls = chamber.alarms.iter().filter(|it| ends_licences(it.alarm));
    moments.extend(lulls.map(|it| (it.born, true)));
    for member in &chamber.nodes {
        moments.extend(member.ask.iter().map(|(_, born)| (*born, false)));
        moments.extend(member.licence.iter().map(|born| (*born, false)));
    }
    let names = renumbered(moments);
    for armed in chamber.alarms.iter_mut().filter(|it| ends_licences(it.alarm)) {
        armed.born = name(&names, armed.born, true);
    }
    for member in &mut chamber.nodes {
        if let Some((_, born)) = &mut member.ask {
            *born = name(&names, *born, false);
        }
        if let Some(born) = &mut member.licence {
            *born = name(&names, *born, false);
        }
    }
}
