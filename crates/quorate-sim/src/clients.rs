//! Client processes. They live beside their home node, not inside it: a client goes on using its
//! units while its home is down, until it is done or its own deadline passes, and asks again once
//! the home is back.
//!
//! A client has one wake-up in the queue at most, whichever thing it does next.

use quorate_core::{
    Claim, ClaimId, Event, Moment, Move, NodeId, Protocol, Refusal, Shares, Units, Wanted,
};
use quorate_laws::{Breach, End, EveryoneServed, Observation};

use crate::Arrivals;
use crate::client::{Client, Fate, Phase, renew_at};
use crate::driver::broken_contract;
use crate::film::Change;
use crate::workload::suits;
use crate::world::{Happening, Stop, World};

impl<P: Protocol> World<'_, P> {
    /// A new client, which claims at a true time.
    pub(crate) fn add_client(&mut self, home: NodeId, claims_at: Option<u64>) -> usize {
        let index = self.clients.len();
        self.clients.push(Client {
            home,
            phase: Phase::Thinking,
            serial: 0,
            wake: None,
            wanted: Wanted::any(Units::ONE),
            leaving: Vec::new(),
            draw: 0,
            since: 0,
            place: 0,
            fate: Fate::Proper,
            shares: Shares::new(&[]),
            until: Moment::NEVER,
            done_at: 0,
            renew_at: u64::MAX,
            extended: (0, 0),
        });
        if let Some(at) = claims_at {
            self.wake_at(index, at);
        }
        index
    }

    /// An arrival of an open loop.
    pub(crate) fn arrive(&mut self) -> Result<(), Stop> {
        let Arrivals::Open { every, clients_max } = self.plan.workload.arrivals else {
            return Ok(());
        };
        if self.calm {
            return Ok(());
        }
        let next = self.now + self.chance.clients.exponential(every);
        self.queue.push(next, Happening::Arrival);
        let home = NodeId(self.chance.clients.below(u64::from(self.plan.nodes)) as u32);
        let client = match self.idle.pop() {
            Some(client) => client as usize,
            None if self.clients.len() >= clients_max as usize => return Ok(()),
            None => self.add_client(home, None),
        };
        self.clients[client].home = home;
        self.begin(client)
    }

    /// A client's wake-up comes.
    pub(crate) fn wake(&mut self, client: usize) -> Result<(), Stop> {
        self.clients[client].wake = None;
        match self.clients[client].phase {
            Phase::Thinking => self.begin(client),
            Phase::Waiting => match self.clients[client].fate {
                Fate::Die => self.die(client),
                Fate::HangUp => self.hang_up(client),
                _ => self.cancel(client),
            },
            Phase::Using => self.look_at_the_clock(client),
            // The deadline passed and nobody heard of the release: nobody needs to any more.
            Phase::Releasing => {
                self.think(client);
                Ok(())
            }
            Phase::Dead => {
                self.think(client);
                Ok(())
            }
            Phase::Due | Phase::Cancelling | Phase::Done => Ok(()),
        }
    }

    /// A client claims, if its home is there to hear it.
    pub(crate) fn begin(&mut self, index: usize) -> Result<(), Stop> {
        let home = self.clients[index].home;
        if !self.nodes[home.index()].is_running() {
            self.clients[index].phase = Phase::Due;
            return Ok(());
        }
        let mut wanted = self.draw_wanted(index);
        let units = wanted.units;
        let now = self.now;
        let place = self.measures.claimed(now);
        let (mut fate, patience) = self.draw_patience();
        if self.plan.workload.want.draw_standing(&mut self.chance.clients) {
            wanted = wanted.to_stand("");
            fate = if fate == Fate::Cancel { fate } else { Fate::Proper };
        }
        let stands = wanted.standing.is_some();
        let client = &mut self.clients[index];
        client.phase = Phase::Waiting;
        client.serial += 1;
        wanted.movable = self.plan.workload.want.draw_movable(&mut self.chance.clients);
        client.wanted = wanted;
        client.draw = self.chance.clients.draw();
        client.since = now;
        client.place = place;
        client.fate = fate;
        let claim = client.claim(index);
        if fate != Fate::Proper {
            self.wake_at(index, now + patience);
        }
        self.laws.see(Observation::Claimed { claim, units })?;
        if stands {
            self.laws.stands(claim);
        }
        if let Some(film) = self.trace.film() {
            film.soon(Change::Claimed { claim, node: home, units: units.get() });
        }
        self.ask(index)
    }

    /// Hands the claim to the home, for the first time or again.
    pub(crate) fn ask(&mut self, index: usize) -> Result<(), Stop> {
        let client = &self.clients[index];
        let wanted = client.wanted.clone();
        let claim = Claim { id: client.claim(index), draw: client.draw, wanted };
        self.step(client.home, Event::Claim(claim))
    }

    /// A home tells its client that it may use units.
    pub(crate) fn grant(
        &mut self,
        home: NodeId,
        claim: ClaimId,
        shares: Shares,
        until: Moment,
    ) -> Result<(), Stop> {
        self.progress_at = self.now;
        // Whoever asked is gone, and nobody sees this.
        if self.abandoned.remove(&claim) {
            return Ok(());
        }
        let index = usize::try_from(claim.origin).unwrap_or(usize::MAX);
        let Some(client) = self.clients.get(index) else {
            return Err(broken_contract(format!("a grant for {claim}, which nobody made")));
        };
        if client.claim(index) == claim && client.home != home {
            return Err(broken_contract(format!(
                "{home} grants {claim}, a claim of {}",
                client.home
            )));
        }
        if client.claim(index) == claim && client.phase == Phase::Cancelling {
            return Ok(());
        }
        let stop_at = self.stop_at_of(home, until);
        if client.claim(index) == claim && client.phase == Phase::Waiting && stop_at <= self.now {
            // The answer came so late that it is void: nobody uses these units.
            return self.give_up_late(index);
        }
        // Also what breaks a law is to be seen.
        if let Some(film) = self.trace.film() {
            film.granted(claim, &shares);
        }
        self.laws.see(Observation::Granted { claim, shares: &shares })?;
        let answers = client.claim(index) == claim && client.phase == Phase::Waiting;
        let suits = client.wanted.lines.as_ref().is_none_or(|lines| suits(lines, &shares));
        if !answers || !suits || shares.len() != client.wanted.units.get() as usize {
            let what = format!("{claim} was granted {shares}, which it does not wait for");
            return Err(Breach { law: "one grant per claim", what }.into());
        }
        let (now, place, since) = (self.now, client.place, client.since);
        self.measures.left_queue(now, place);
        self.measures.granted(now, index, since, place, &shares);
        self.start_using(index, shares, until, stop_at);
        Ok(())
    }

    fn start_using(&mut self, index: usize, shares: Shares, until: Moment, stop_at: u64) {
        let hold = self.draw_hold(index);
        let (mut fate, hold) = self.draw_ending(hold);
        if self.clients[index].wanted.standing.is_some() {
            fate = Fate::Proper;
        }
        let now = self.now;
        let client = &mut self.clients[index];
        client.phase = Phase::Using;
        client.shares = shares;
        client.leaving.clear();
        client.until = until;
        client.fate = fate;
        client.done_at = now + hold;
        client.renew_at = renew_at(now, stop_at);
        client.extended = (0, 0);
        self.wake_for_next(index);
    }

    /// A client that uses units does what is due: stop, die, release, or renew.
    fn look_at_the_clock(&mut self, index: usize) -> Result<(), Stop> {
        let now = self.now;
        let client = &self.clients[index];
        if self.stop_at(index) <= now {
            self.end(index, End::Deadline)?;
            self.think(index);
            return Ok(());
        }
        if client.done_at <= now {
            match client.fate {
                Fate::Die => return self.die(index),
                Fate::Told => {
                    self.end(index, End::Told)?;
                    self.think(index);
                    return Ok(());
                }
                Fate::Proper | Fate::Cancel | Fate::HangUp | Fate::Stall => {}
            }
            self.end(index, End::Released)?;
            return self.release(index);
        }
        if client.renew_at <= now && client.fate != Fate::Told {
            let (claim, home) = (client.claim(index), client.home);
            self.clients[index].renew_at = renew_at(now, self.stop_at(index));
            if self.nodes[home.index()].is_running() {
                self.leave_units(index)?;
                let shares = self.clients[index].shares.clone();
                self.step(home, Event::Renew { claim, shares })?;
            }
        }
        // The renewal may have been answered at once, even with a loss.
        if self.clients[index].phase == Phase::Using {
            self.wake_for_next(index);
        }
        Ok(())
    }

    /// Tells the home that units are free, or remembers to. What stands is released at any node.
    pub(crate) fn release(&mut self, index: usize) -> Result<(), Stop> {
        let client = &self.clients[index];
        let (home, claim) = (client.home, client.claim(index));
        let stands = client.wanted.standing.is_some();
        let to = match self.nodes[home.index()].is_running() {
            true => Some(home),
            false if stands => self.somebody(),
            false => None,
        };
        if let Some(to) = to {
            if stands {
                self.given_back.push((to, claim));
            }
            self.think(index);
            return self.step(to, Event::Release(claim));
        }
        self.clients[index].phase = Phase::Releasing;
        let stop_at = self.stop_at(index);
        self.wake_at(index, stop_at);
        Ok(())
    }

    /// A node that runs, if any does.
    fn somebody(&self) -> Option<NodeId> {
        (0..self.nodes.len()).map(NodeId::from).find(|node| self.nodes[node.index()].is_running())
    }

    /// Whoever ended what stands through a node that crashed since says so again: no lease would
    /// end what was not written down.
    fn end_again(&mut self, node: NodeId, through: NodeId) -> Result<(), Stop> {
        let heard = self.given_back.iter().filter(|(to, _)| *to == node).map(|(_, claim)| *claim);
        let claims: Vec<ClaimId> = heard.collect();
        for (to, _) in self.given_back.iter_mut().filter(|(to, _)| *to == node) {
            *to = through;
        }
        for claim in claims {
            if self.nodes[through.index()].is_running() {
                self.step(through, Event::Release(claim))?;
            }
        }
        Ok(())
    }

    /// A client gets more time.
    pub(crate) fn extend(&mut self, claim: ClaimId, until: Moment) -> Result<(), Stop> {
        let Some(index) = self.of_claim(claim) else { return Ok(()) };
        let client = &self.clients[index];
        if client.phase != Phase::Using || client.fate == Fate::Told {
            return Ok(());
        }
        // Answers may overtake each other on their way; each of them is a promise of its own.
        let until = until.max(self.clients[index].until);
        self.clients[index].until = until;
        self.clients[index].renew_at = renew_at(self.now, self.stop_at(index));
        let client = &mut self.clients[index];
        client.extended = (client.extended.1, self.now);
        Ok(())
    }

    /// A client is asked to move. It uses both units for a while, then leaves the old one, and says
    /// so with a renewal.
    pub(crate) fn ask_to_move(
        &mut self,
        claim: ClaimId,
        shares: Shares,
        Move { from, to }: Move,
    ) -> Result<(), Stop> {
        let Some(index) = self.of_claim(claim) else { return Ok(()) };
        let client = &self.clients[index];
        if client.phase != Phase::Using || client.fate == Fate::Told {
            return Ok(());
        }
        if client.shares.contains(to) {
            return Ok(()); // It knows.
        }
        let leaving = client.leaving.iter().chain([&from]);
        let moved = leaving.fold(shares.clone(), |shares, share| shares.without(*share));
        let suits = client.wanted.lines.as_ref().is_none_or(|lines| suits(lines, &moved));
        if !client.wanted.movable || !suits || client.shares.with(to) != shares {
            let what = format!("{claim} has {}, and is asked to have {shares}", client.shares);
            return Err(broken_contract(what));
        }
        self.laws.see(Observation::Added { claim, shares: &Shares::new(&[to]) })?;
        self.measures.holds(self.now, 1);
        let left = client.renew_at.saturating_sub(self.now);
        let answers_at = self.now + self.chance.clients.below(left.saturating_add(1));
        let client = &mut self.clients[index];
        client.shares = shares;
        client.leaving.push(from);
        client.renew_at = answers_at;
        self.wake_for_next(index);
        Ok(())
    }

    /// A client stops using what it was asked to leave.
    fn leave_units(&mut self, index: usize) -> Result<(), Stop> {
        let claim = self.clients[index].claim(index);
        for share in std::mem::take(&mut self.clients[index].leaving) {
            let client = &mut self.clients[index];
            client.shares = client.shares.without(share);
            self.laws.see(Observation::Left { claim, shares: &Shares::new(&[share]) })?;
            self.measures.holds(self.now, -1);
        }
        Ok(())
    }

    /// A client hears that its claim is over.
    pub(crate) fn refuse(&mut self, claim: ClaimId, why: Refusal) -> Result<(), Stop> {
        let Some(index) = self.of_claim(claim) else { return Ok(()) };
        if !matches!(self.clients[index].phase, Phase::Waiting | Phase::Cancelling) {
            return Ok(());
        }
        self.measures.refusals += 1;
        self.measures.left_queue(self.now, self.clients[index].place);
        self.laws.see(Observation::Refused { claim, why })?;
        if let Some(film) = self.trace.film() {
            film.change(Change::Gone { claim });
        }
        self.think(index);
        Ok(())
    }

    /// A client is told that its units are no longer its own. It hears that at once or later, up to
    /// its deadline: until then it may be using them.
    pub(crate) fn lose(&mut self, claim: ClaimId) {
        let Some(index) = self.of_claim(claim) else { return };
        if self.clients[index].phase != Phase::Using || self.clients[index].fate == Fate::Told {
            return;
        }
        let left = self.stop_at(index).saturating_sub(self.now);
        let heard = self.now + self.chance.clients.below(left.saturating_add(1));
        let client = &mut self.clients[index];
        if heard < client.done_at {
            (client.fate, client.done_at) = (Fate::Told, heard);
        }
        self.wake_for_next(index);
    }

    pub(crate) fn cancel(&mut self, index: usize) -> Result<(), Stop> {
        let client = &mut self.clients[index];
        client.phase = Phase::Cancelling;
        let (home, claim) = (client.home, client.claim(index));
        let stands = client.wanted.standing.is_some();
        if self.nodes[home.index()].is_running() {
            if stands {
                self.given_back.push((home, claim));
            }
            return self.step(home, Event::Cancel(claim));
        }
        Ok(())
    }

    /// A client process dies. Its home may notice.
    fn die(&mut self, index: usize) -> Result<(), Stop> {
        let claim = self.clients[index].claim(index);
        match self.clients[index].phase {
            Phase::Using => self.end(index, End::Died)?,
            _ => self.abandon(index)?,
        }
        self.clients[index].phase = Phase::Dead;
        let node = self.clients[index].home;
        self.note(&node, format_args!("client {index} dies, had claim {claim}"));
        if self.chance.faults.chance(self.plan.faults.noticed_ppm) {
            let at = self.now + self.plan.faults.respawn.draw(&mut self.chance.faults);
            let boot = self.nodes[node.index()].boot;
            self.queue.push(at, Happening::Notice { node, boot, claim });
        }
        let at = self.now + self.plan.faults.respawn.draw(&mut self.chance.faults);
        self.wake_at(index, at);
        Ok(())
    }

    /// A home notices that a client is gone.
    pub(crate) fn notice(&mut self, node: NodeId, boot: u32, claim: ClaimId) -> Result<(), Stop> {
        if self.nodes[node.index()].boot != boot || !self.nodes[node.index()].is_running() {
            return Ok(());
        }
        self.step(node, Event::Cancel(claim))
    }

    /// A claim whose answer nobody will see.
    pub(crate) fn abandon(&mut self, index: usize) -> Result<(), Stop> {
        let claim = self.clients[index].claim(index);
        self.abandoned.insert(claim);
        self.measures.abandoned += 1;
        self.measures.left_queue(self.now, self.clients[index].place);
        if let Some(film) = self.trace.film() {
            film.soon(Change::Gone { claim });
        }
        Ok(self.laws.see(Observation::Abandoned { claim })?)
    }

    /// A grant arrived after its own deadline. The client gives it back and starts over.
    fn give_up_late(&mut self, index: usize) -> Result<(), Stop> {
        self.abandon(index)?;
        self.abandoned.remove(&self.clients[index].claim(index));
        let node = self.clients[index].home;
        let claim = self.clients[index].claim(index);
        let boot = self.nodes[node.index()].boot;
        self.note(&node, format_args!("client {index} gets {claim} too late to use it"));
        // Told later: a home is not stepped from inside one of its own steps.
        self.queue.push(self.now, Happening::Notice { node, boot, claim });
        self.think(index);
        Ok(())
    }

    /// A client stops using its units.
    fn end(&mut self, index: usize, how: End) -> Result<(), Stop> {
        let client = &self.clients[index];
        let claim = client.claim(index);
        self.measures.ended(self.now, &client.shares, how == End::Released);
        let ended = Observation::Ended { claim, shares: &client.shares, how };
        self.laws.see(ended)?;
        if let Some(rolling) = &mut self.rolling {
            rolling.law.see(ended)?;
        }
        if let Some(film) = self.trace.film() {
            film.soon(Change::Gone { claim });
        }
        if how != End::Released {
            let home = client.home;
            self.note(&home, format_args!("client {index} stops using {claim}: {how:?}"));
        }
        Ok(())
    }

    /// A client is through with a claim: it thinks, or is done for good.
    fn think(&mut self, index: usize) {
        self.clients[index].phase = Phase::Done;
        if self.clients[index].wake.take().is_some() {
            self.take_back();
        }
        match &self.plan.workload.arrivals {
            Arrivals::Closed { think, .. } if !self.calm => {
                let at = self.now + think.draw(&mut self.chance.clients);
                self.clients[index].phase = Phase::Thinking;
                self.wake_at(index, at);
            }
            Arrivals::Open { .. } => self.idle.push(index as u32),
            Arrivals::Closed { .. } | Arrivals::Script(_) => {}
        }
    }

    /// A node runs again: its clients say again what it may have missed.
    pub(crate) fn clients_call_again(&mut self, node: NodeId, restarted: bool) -> Result<(), Stop> {
        for index in 0..self.clients.len() {
            if self.clients[index].home != node || !self.nodes[node.index()].is_running() {
                continue;
            }
            match self.clients[index].phase {
                Phase::Due => self.begin(index)?,
                Phase::Waiting if restarted => self.ask(index)?,
                Phase::Cancelling => self.cancel(index)?,
                Phase::Releasing => self.release(index)?,
                _ => {}
            }
        }
        if restarted && !self.given_back.is_empty() {
            self.end_again(node, node)?;
        }
        Ok(())
    }

    /// The node will not come back: whoever waits there waits for nothing.
    pub(crate) fn clients_give_up(&mut self, node: NodeId) -> Result<(), Stop> {
        if let Some(other) = self.somebody().filter(|_| !self.given_back.is_empty()) {
            self.end_again(node, other)?;
        }
        for index in 0..self.clients.len() {
            if self.clients[index].home != node {
                continue;
            }
            match self.clients[index].phase {
                Phase::Waiting | Phase::Cancelling => {
                    self.abandon(index)?;
                    let client = &mut self.clients[index];
                    client.phase = Phase::Done;
                    // It may have been granted what stands, and goes elsewhere to say no.
                    let (stands, claim) = (client.wanted.standing.is_some(), client.claim(index));
                    if let Some(other) = self.somebody().filter(|_| stands) {
                        self.given_back.push((other, claim));
                        self.step(other, Event::Release(claim))?;
                    }
                }
                Phase::Thinking | Phase::Due | Phase::Dead => {
                    self.clients[index].phase = Phase::Done;
                }
                Phase::Releasing if self.clients[index].wanted.standing.is_some() => {
                    self.release(index)?;
                }
                Phase::Using | Phase::Releasing | Phase::Done => {}
            }
        }
        Ok(())
    }

    /// Everybody at a node dies, and nobody takes their place.
    pub(crate) fn clients_die(&mut self, node: NodeId) -> Result<(), Stop> {
        for index in 0..self.clients.len() {
            if self.clients[index].home != node {
                continue;
            }
            match self.clients[index].phase {
                Phase::Using => self.end(index, End::Died)?,
                Phase::Waiting | Phase::Cancelling => self.abandon(index)?,
                _ => {}
            }
            self.clients[index].phase = Phase::Done;
        }
        Ok(())
    }

    /// The first claim of each client comes after a random part of the time that it thinks.
    pub(crate) fn stagger(&mut self) {
        let Arrivals::Closed { think, .. } = self.plan.workload.arrivals else { return };
        for index in 0..self.clients.len() {
            let think = think.draw(&mut self.chance.clients);
            let at = self.now + (think as f64 * self.chance.clients.unit()) as u64;
            self.wake_at(index, at);
        }
    }

    /// The rate of a node's clock changed, and with it the true time of its clients' deadlines.
    pub(crate) fn clients_look_again(&mut self, node: NodeId) {
        for index in 0..self.clients.len() {
            if self.clients[index].home == node && self.clients[index].phase == Phase::Using {
                self.wake_for_next(index);
            }
        }
    }

    /// Claims that wait, as the law about them has it.
    pub(crate) fn who_waits(&self) -> EveryoneServed {
        let mut law = EveryoneServed::default();
        for (index, client) in self.clients.iter().enumerate() {
            if client.phase == Phase::Waiting {
                let (claim, units) = (client.claim(index), client.wanted.units);
                law.see(Observation::Claimed { claim, units });
            }
        }
        law
    }

    /// Whether nobody waits for or uses anything, or ever will.
    pub(crate) fn everybody_is_done(&self) -> bool {
        self.clients.iter().all(|client| client.phase == Phase::Done)
    }

    fn of_claim(&self, claim: ClaimId) -> Option<usize> {
        let index = usize::try_from(claim.origin).ok()?;
        self.clients.get(index).is_some_and(|c| c.claim(index) == claim).then_some(index)
    }
}
