//! What must come to pass: from every state, without any further fault, a waiting claim can still
//! be granted, a cancel can still be acknowledged, and once all clients are gone every unit can
//! still become free.
//!
//! *Can* and not *will*: which continuation a real network takes is a matter of luck and alarms,
//! but a state from which no continuation leads out is a deadlock. A crash that would heal a
//! deadlock does not count as a way out, so only actions without a fault are followed.

use quorate_core::{Entry, Explorable};
use quorate_laws::{Breach, no_lost_units};

use crate::client::Client;
use crate::scope::CLIENTS_MAX;
use crate::search::Search;
use crate::world::World;

/// What a state owes or has: one bit per client for a grant, one per client for an answer to its
/// cancel, and one for all books showing every unit as free.
type Bits = u32;

const GRANTED: usize = 0;
const ANSWERED: usize = CLIENTS_MAX;
const FREE: usize = 2 * CLIENTS_MAX;

/// How the three look in one state.
#[derive(Clone, Copy, Debug, Default)]
struct Standings {
    /// What is so here.
    has: Bits,
    /// What must be so somewhere ahead.
    owes: Bits,
    /// What being so ahead does not count for the states behind this one.
    bars: Bits,
}

impl<P: Explorable> Search<'_, P> {
    /// The first state from which something that must come to pass cannot.
    pub(crate) fn dead_end(&mut self) -> Option<(usize, Breach)> {
        let first = self.model.first_world().ok()?;
        let (mut world, mut words) = (first.clone(), Vec::new());
        let mut standings = |number: usize| {
            self.atlas.read(number, &mut words);
            world.copy_from(&words);
            self.standings(&world)
        };
        let mut ahead: Vec<Bits> = Vec::with_capacity(self.atlas.len());
        // Only grants are ever barred: the lowest bits.
        let mut bars: Vec<u8> = Vec::with_capacity(self.atlas.len());
        for number in 0..self.atlas.len() {
            let here = standings(number);
            ahead.push(here.has);
            bars.push(u8::try_from(here.bars).expect("a bit for each client"));
        }
        // Most worlds lead to worlds found later, so going backwards settles nearly all at once.
        let mut settled = false;
        while !settled {
            settled = true;
            for number in (0..ahead.len()).rev() {
                let leads_to = self.atlas.leads_to(number);
                let beyond = leads_to.fold(0, |bits, next| bits | ahead[next]);
                let bits = ahead[number] | beyond & !Bits::from(bars[number]);
                settled &= bits == ahead[number];
                ahead[number] = bits;
            }
        }
        let number = (0..ahead.len()).find(|&n| standings(n).owes & !ahead[n] != 0)?;
        let missing = standings(number).owes & !ahead[number];
        Some((number, self.breach(&world, missing)))
    }

    fn standings(&self, world: &World) -> Standings {
        let mut standings = Standings::default();
        let mut live = false;
        for (client, &number) in world.clients().iter().enumerate() {
            let (granted, answered) = (1 << (GRANTED + client), 1 << (ANSWERED + client));
            let state = self.model.parts.clients.get(number);
            live |= state.is_live();
            match state {
                Client::Waiting { cancelling: false, .. } => standings.owes |= granted,
                // A claim that is granted only if its client first takes it back is not served.
                Client::Waiting { cancelling: true, .. } => {
                    standings.owes |= answered;
                    standings.bars |= granted;
                }
                Client::Using { .. } => standings.has |= granted | answered,
                // Where the pool changes, what was asked for may not be there any more.
                Client::Refused if !self.model.scope.editions.is_empty() => {
                    standings.has |= granted | answered;
                }
                _ => standings.has |= answered,
            }
        }
        if !live {
            standings.owes |= 1 << FREE;
            let free = |node| {
                let participant = world.participant(node)?;
                let ledger = &self.model.parts.participants.card(participant).ledger;
                // As the law has it: of claims without a lease a copy may be old for ever.
                let free = |entry: &Entry| entry.standing.waits() || entry.kept.is_some();
                ledger.iter().all(free).then_some(())
            };
            if world.nodes().all(|node| free(node).is_some()) {
                standings.has |= 1 << FREE;
            }
        }
        standings
    }

    fn breach(&self, world: &World, missing: Bits) -> Breach {
        let place = missing.trailing_zeros() as usize;
        if place == FREE {
            let books = world.nodes().filter_map(|node| {
                let participant = world.participant(node)?;
                Some((node, &self.model.parts.participants.card(participant).ledger[..]))
            });
            return no_lost_units(books).err().unwrap_or(Breach {
                law: "no lost units",
                what: "all clients are gone, and units can never all be free again".to_string(),
            });
        }
        let claim = self.model.scope.clients[place % CLIENTS_MAX].claim.id;
        let what = match place >= ANSWERED {
            false => format!("{claim} waits, and without a further fault it is never granted"),
            true => format!("{claim} was cancelled, and without a further fault never answered"),
        };
        Breach { law: "no deadlock", what }
    }
}
