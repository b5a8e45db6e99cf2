//! A pool with its clients, and the laws asked after everything that happens.

use std::collections::{BTreeMap, BTreeSet};

use quorate_core::{ClaimId, Dice, Unit};

use super::super::oracle::{self, Demand};
use super::super::{Allocator, Deed, Mutant, Policy, Ticket, Want};

/// What a client asks for, again and again.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) wants: Vec<Demand>,
    pub(crate) movable: bool,
}

impl Client {
    pub(crate) fn lines(&self) -> Vec<Want> {
        let line = |want: &Demand| {
            let units = (0..32).filter(|unit| want.alpha >> unit & 1 == 1).map(Unit);
            Want { among: Some(units.collect()), units: want.units }
        };
        self.wants.iter().map(line).collect()
    }
}

/// Something that a client does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Happening {
    Request(usize),
    Cancel(Ticket),
    Release(Ticket),
    /// It has left the unit of this move.
    Answer(usize),
}

/// The allocator, and what its clients see of it.
#[derive(Clone)]
pub(crate) struct Watch {
    allocator: Allocator,
    clients: Vec<Client>,
    policy: Policy,
    age: u64,
    waiting: BTreeMap<Ticket, usize>,
    /// What each holder has, line by line.
    holding: BTreeMap<Ticket, (usize, Vec<Unit>)>,
    /// Who uses a unit. Movers use two until they have answered.
    users: BTreeMap<Unit, Ticket>,
    /// Moves that are not answered yet.
    asked: Vec<(Ticket, Unit, Unit)>,
    /// The oldest who waits, and those who held units when it became the oldest.
    oldest: Option<(Ticket, BTreeSet<Ticket>)>,
    pub(crate) moves: u32,
}

impl Watch {
    pub(crate) fn new(
        units: u32,
        clients: Vec<Client>,
        policy: Policy,
        mutant: Option<Mutant>,
    ) -> Self {
        let mut allocator = Allocator::new(units, policy);
        allocator.mutant = mutant;
        Watch {
            allocator,
            clients,
            policy,
            age: 0,
            waiting: BTreeMap::new(),
            holding: BTreeMap::new(),
            users: BTreeMap::new(),
            asked: Vec::new(),
            oldest: None,
            moves: 0,
        }
    }

    /// Something happens: a claim, a release, a cancel, an answer to a move; sometimes several
    /// things before the next pass.
    pub(crate) fn step(&mut self, dice: &mut Dice) -> Result<(), String> {
        for _ in 0..1 + dice.below(2) {
            self.happen(dice);
        }
        self.settle()
    }

    /// All that clients can do now.
    pub(crate) fn possible(&self) -> Vec<Happening> {
        let idle = |client: &usize| {
            let holds = self.holding.values().any(|(who, _)| who == client);
            !holds && !self.waiting.values().any(|who| who == client)
        };
        let answers = (0..self.asked.len()).map(Happening::Answer);
        let requests = (0..self.clients.len()).filter(idle).map(Happening::Request);
        let cancels = self.waiting.keys().copied().map(Happening::Cancel);
        let releases = self.holding.keys().copied().map(Happening::Release);
        answers.chain(requests).chain(cancels).chain(releases).collect()
    }

    /// One of them does so, and the allocator decides.
    pub(crate) fn play(&mut self, happening: Happening) -> Result<(), String> {
        match happening {
            Happening::Request(client) => self.request(client),
            Happening::Cancel(ticket) => self.cancel(ticket),
            Happening::Release(ticket) => self.release(ticket),
            Happening::Answer(at) => self.answer(at),
        }
        self.settle()
    }

    /// Whether nobody is asked to move.
    pub(crate) fn is_at_rest(&self) -> bool {
        !self.allocator.is_moving()
    }

    /// All that matters of a pool at rest, without names that only grow: client by client whether
    /// it waits, at which place, or holds which units, and since before the oldest was that.
    pub(crate) fn standing(&self) -> Vec<Vec<u32>> {
        let mut clients = vec![Vec::new(); self.clients.len()];
        for (place, client) in (0..).zip(self.waiting.values()) {
            clients[*client] = vec![place];
        }
        for (ticket, (client, units)) in &self.holding {
            let before = self.oldest.as_ref().is_some_and(|(_, before)| before.contains(ticket));
            let units = units.iter().map(|unit| unit.0);
            clients[*client] = [100 + u32::from(before)].into_iter().chain(units).collect();
        }
        clients
    }

    fn happen(&mut self, dice: &mut Dice) {
        if !self.asked.is_empty() && dice.below(2) == 0 {
            let at = dice.below(self.asked.len() as u64) as usize;
            return self.answer(at);
        }
        let client = dice.below(self.clients.len() as u64) as usize;
        let waits = self.waiting.iter().find(|(_, who)| **who == client).map(|(t, _)| *t);
        let holds = self.holding.iter().find(|(_, (who, _))| *who == client).map(|(t, _)| *t);
        match (waits, holds) {
            (Some(ticket), _) => {
                if dice.below(8) == 0 {
                    self.cancel(ticket);
                }
            }
            (None, Some(ticket)) => self.release(ticket),
            (None, None) => self.request(client),
        }
    }

    fn request(&mut self, client: usize) {
        self.age += 1;
        let claim = ClaimId { origin: client as u64, serial: self.age };
        let ticket = Ticket { age: self.age, claim };
        let Client { movable, .. } = self.clients[client];
        let lines = self.clients[client].lines();
        self.allocator.enter(ticket, &lines, movable).expect("it can be served alone");
        self.waiting.insert(ticket, client);
    }

    fn cancel(&mut self, ticket: Ticket) {
        assert!(self.allocator.cancel(ticket));
        self.waiting.remove(&ticket);
    }

    fn release(&mut self, ticket: Ticket) {
        let (_, units) = self.holding.remove(&ticket).expect("a holder");
        self.allocator.release(ticket, units);
        self.users.retain(|_, user| *user != ticket);
        self.asked.retain(|(mover, ..)| *mover != ticket);
    }

    fn answer(&mut self, at: usize) {
        let (ticket, add, drop) = self.asked.remove(at);
        self.allocator.moved(ticket, drop);
        let (_, units) = self.holding.get_mut(&ticket).expect("a holder");
        let place = units.iter_mut().find(|unit| **unit == drop).expect("it held it");
        *place = add;
        if self.users.get(&drop) == Some(&ticket) {
            self.users.remove(&drop);
        }
    }

    /// A pass, and all laws.
    fn settle(&mut self) -> Result<(), String> {
        let resting = !self.allocator.is_moving();
        let (holders, waiting) = (self.demands(), self.waiting_demands());
        let tickets: Vec<Ticket> = self.waiting.keys().copied().collect();
        let (granted, protected) = oracle::decide(&holders, &waiting, self.policy.protect);
        let mut deeds = Vec::new();
        self.allocator.pass(&mut deeds);
        let mut told = BTreeSet::new();
        for deed in deeds {
            told.extend(self.see(deed)?);
        }
        if self.allocator.mutant.is_none() {
            self.allocator.audit();
        }
        if self.allocator.is_moving() {
            return Ok(()); // The laws below are about pools at rest.
        }
        if resting {
            let expected: BTreeSet<Ticket> = granted.iter().map(|index| tickets[*index]).collect();
            self.law_m(&tickets, &told, &expected, &holders, &waiting)?;
            self.law_a(&protected, &waiting, &holders)?;
        }
        self.law_w()?;
        self.law_b()
    }

    /// S: units of holders are disjoint, will do for their holder, and are as many as it asked for.
    fn see(&mut self, deed: Deed) -> Result<Option<Ticket>, String> {
        match deed {
            Deed::Grant { ticket, units } => {
                let client =
                    self.waiting.remove(&ticket).ok_or("law S: granted without a claim")?;
                let wants = &self.clients[client].wants;
                let asked: u32 = wants.iter().map(|want| want.units).sum();
                if units.len() != asked as usize {
                    return Err(format!("law S: {units:?} for a claim on {asked}"));
                }
                let lines = wants.iter().flat_map(|want| vec![want.alpha; want.units as usize]);
                for (unit, alpha) in units.iter().zip(lines) {
                    if alpha >> unit.0 & 1 == 0 {
                        return Err(format!("law S: {unit} will not do"));
                    }
                    if let Some(user) = self.users.insert(*unit, ticket) {
                        return Err(format!("law S: {unit} granted while {user:?} uses it"));
                    }
                }
                self.holding.insert(ticket, (client, units));
                Ok(Some(ticket))
            }
            Deed::Move { ticket, add, drop } => {
                self.moves += 1;
                let (client, units) = &self.holding[&ticket];
                let client = &self.clients[*client];
                if !client.movable || !units.contains(&drop) {
                    return Err(format!("law S: {ticket:?} cannot move from {drop}"));
                }
                if let Some(user) = self.users.insert(add, ticket) {
                    return Err(format!("law S: {add} given to a mover while {user:?} uses it"));
                }
                self.asked.push((ticket, add, drop));
                Ok(None)
            }
        }
    }

    /// The holders' effective demands: where they are, or what will do for those who can move.
    fn demands(&self) -> Vec<Demand> {
        let mut demands = Vec::new();
        for (client, units) in self.holding.values() {
            let client = &self.clients[*client];
            if client.movable {
                demands.extend(&client.wants);
            } else {
                let own = units.iter().fold(0, |own, unit| own | 1 << unit.0);
                demands.push(Demand { alpha: own, units: units.len() as u32 });
            }
        }
        demands
    }

    fn waiting_demands(&self) -> Vec<Vec<Demand>> {
        self.waiting.values().map(|client| self.clients[*client].wants.clone()).collect()
    }

    /// M, and more: exactly those are granted whom the specification grants. In particular, if all
    /// can be served together, all are.
    fn law_m(
        &self,
        tickets: &[Ticket],
        told: &BTreeSet<Ticket>,
        expected: &BTreeSet<Ticket>,
        holders: &[Demand],
        waiting: &[Vec<Demand>],
    ) -> Result<(), String> {
        let all = [holders, &waiting.concat()].concat();
        let together = oracle::rho(&all) == all.iter().map(|demand| demand.units).sum::<u32>();
        if together && told.len() < tickets.len() {
            return Err(format!("law M: {told:?} of {tickets:?}, who can be served together"));
        }
        if told != expected && self.policy.patience == 0 {
            let law = if self.all_ask_for_one() { "law W" } else { "decision" };
            return Err(format!("{law}: granted {told:?}, expected {expected:?}"));
        }
        Ok(())
    }

    /// A: what a protected claim lacks is not changed by grants to younger ones.
    fn law_a(
        &self,
        protected: &[usize],
        waiting: &[Vec<Demand>],
        before: &[Demand],
    ) -> Result<(), String> {
        let after = self.demands();
        // Grants to older ones may add to it; for the oldest there are none.
        let Some(oldest) = protected.first().filter(|first| **first == 0) else { return Ok(()) };
        let (was, is) =
            (oracle::lack(before, &waiting[*oldest]), oracle::lack(&after, &waiting[*oldest]));
        if was != is {
            return Err(format!("law A: the oldest lacked {was} units, and now {is}"));
        }
        Ok(())
    }

    fn all_ask_for_one(&self) -> bool {
        self.clients.iter().all(|client| client.wants.len() == 1 && client.wants[0].units == 1)
    }

    /// W: if all ask for one unit, nobody waits who could be served beside the holders.
    fn law_w(&self) -> Result<(), String> {
        if !self.all_ask_for_one() {
            return Ok(());
        }
        let holders = self.demands();
        for (ticket, client) in &self.waiting {
            if oracle::lack(&holders, &self.clients[*client].wants) == 0 {
                return Err(format!("law W: {ticket:?} waits for a unit that is free"));
            }
        }
        Ok(())
    }

    /// B: the oldest is granted when all who held units before it was the oldest have released.
    fn law_b(&mut self) -> Result<(), String> {
        let Some((&oldest, _)) = self.waiting.first_key_value() else {
            self.oldest = None;
            return Ok(());
        };
        match &mut self.oldest {
            Some((known, before)) if *known == oldest => {
                before.retain(|ticket| self.holding.contains_key(ticket));
                if before.is_empty() {
                    return Err(format!("law B: {oldest:?} waits although all before it released"));
                }
            }
            _ => self.oldest = Some((oldest, self.holding.keys().copied().collect())),
        }
        Ok(())
    }
}
