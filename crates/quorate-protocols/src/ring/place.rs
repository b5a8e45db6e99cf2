//! One place of a node on the ring: a station with the claim it works for.
//!
//! The paper's processor has one request and one critical section. A node has many clients, so it
//! takes several places next to each other, as if it were several processors with links that take
//! no time: every argument about the ring holds for them as it is. A free place holds nothing and
//! may be added or taken away ("join" in ring spec 7).

use quorate_core::{ClaimId, Fence, Shares, Units};

use super::legitimate::Stabilizing;
use super::machine::{Machine, Role};
use super::message::Message;
use super::pool::{Pool, Variant};
use super::station::{Post, Station, StationClaim};
use super::tokens::{Named, Tokens};
use super::train::Train;
use crate::reference::ring::Core;

/// What a place works for. This is the application's side and no part of the ring's state: a fault
/// in the ring does not make clients forget what they asked or got.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Job {
    /// Nothing.
    Free,
    /// A claim that waits.
    Waiting { claim: ClaimId, units: Units },
    /// A claim that was granted.
    Granted { claim: ClaimId, shares: Shares },
}

/// A station of either kind.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Seated {
    Core(Core<Named>),
    Train(Train<Named>),
}

/// One place.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Place {
    /// Which visit of the ring to its node this place belongs to.
    pub(super) visit: usize,
    pub(super) job: Job,
    pub(super) seated: Seated,
}

/// Calls a function of [`Machine`] on whatever is seated.
macro_rules! seated {
    ($place:expr, $machine:ident => $call:expr) => {
        match &mut $place.seated {
            Seated::Core($machine) => $call,
            Seated::Train($machine) => $call,
        }
    };
}

impl Place {
    pub(super) fn new(pool: &Pool, visit: usize, role: Role) -> Self {
        let seated = match pool.variant {
            Variant::Core => Seated::Core(Core::new(role, pool.terms())),
            Variant::Train => Seated::Train(Train::new(role, pool.terms())),
        };
        Place { visit, job: Job::Free, seated }
    }

    /// Another place, just to the right of this one, as if the last traversal had passed it too.
    pub(super) fn beside(&self, pool: &Pool) -> Self {
        let mut place = Place::new(pool, self.visit, Role::Other);
        match (&mut place.seated, &self.seated) {
            (Seated::Train(new), Seated::Train(old)) => {
                (new.crowded, new.woke) = (old.crowded, old.woke);
                new.barred = old.barred;
                new.phase = if old.root.is_some() { old.station.turn } else { old.phase };
            }
            (Seated::Core(_), Seated::Core(_)) => {}
            _ => unreachable!("a pool has one variant"),
        }
        let (mut seq, turn) = (self.station().seq, self.station().turn);
        if self.is_root() && self.awaited().is_none() {
            // A parked root already has the number of the next traversal, which is to count us.
            seq = seq.checked_sub(1).unwrap_or(pool.terms().seqs - 1);
        }
        (place.station_mut().seq, place.station_mut().turn) = (seq, turn);
        place
    }

    pub(super) fn station(&self) -> &Station<Named> {
        match &self.seated {
            Seated::Core(machine) => &machine.station,
            Seated::Train(machine) => &machine.station,
        }
    }

    pub(super) fn station_mut(&mut self) -> &mut Station<Named> {
        match &mut self.seated {
            Seated::Core(machine) => &mut machine.station,
            Seated::Train(machine) => &mut machine.station,
        }
    }

    pub(super) fn claim(&self) -> Option<ClaimId> {
        match &self.job {
            Job::Free => None,
            Job::Waiting { claim, .. } | Job::Granted { claim, .. } => Some(*claim),
        }
    }

    /// Tokens released here that the next claim here may use at once.
    pub(super) fn kept(&self) -> u32 {
        match &self.seated {
            Seated::Core(_) => 0,
            Seated::Train(machine) => machine.kept.len(),
        }
    }

    /// Whether it can be taken away without anybody noticing.
    pub(super) fn is_bare(&self) -> bool {
        self.job == Job::Free && self.kept() == 0 && self.station().nominal() == 0
    }

    /// Whether it is the root.
    pub(super) fn is_root(&self) -> bool {
        match &self.seated {
            Seated::Core(machine) => machine.is_root(),
            Seated::Train(machine) => machine.is_root(),
        }
    }

    /// Root: which traversal it waits for; `None` if the train is parked.
    pub(super) fn awaited(&self) -> Option<u64> {
        let launched = match &self.seated {
            Seated::Core(machine) => machine.has_launched(),
            Seated::Train(machine) => machine.has_launched(),
        };
        launched.then_some(self.station().seq)
    }

    /// Whether its node was restarted and may not know what its clients use.
    pub(super) fn set_blind(&mut self, blind: bool) {
        if let Seated::Train(machine) = &mut self.seated {
            machine.blind = blind;
        }
    }

    /// Whether it has heard that somebody waits, and not that nobody does any more.
    pub(super) fn hears_of_claims(&self) -> bool {
        matches!(&self.seated, Seated::Train(machine) if machine.crowded || machine.woke)
    }

    /// Whether its node has no licence.
    pub(super) fn set_barred(&mut self, barred: bool) {
        if let Seated::Train(machine) = &mut self.seated {
            machine.barred = barred;
        }
    }

    /// Whether its node has no licence, so that nothing is granted here.
    pub(super) fn is_barred(&self) -> bool {
        matches!(&self.seated, Seated::Train(machine) if machine.barred)
    }

    /// Root: whether it is destroying tokens, because it found too many.
    pub(super) fn is_flushing(&self) -> bool {
        match &self.seated {
            Seated::Core(machine) => machine.root.as_ref().is_some_and(|root| root.flush),
            Seated::Train(machine) => machine.root.as_ref().is_some_and(|root| root.flush),
        }
    }

    /// Forgets the tokens here. What is in use stays in use.
    pub(super) fn forget_tokens(&mut self) {
        if let Seated::Train(machine) = &mut self.seated {
            machine.kept = Named::default();
        }
        let station = self.station_mut();
        if !matches!(station.standing, StationClaim::Using { .. }) {
            (station.held, station.disabled) = (Named::default(), 0);
            station.favoured = false;
        }
    }

    /// Its node fences itself: a claim that was granted is over. Returns it.
    pub(super) fn fence(&mut self) -> Option<ClaimId> {
        let granted = match self.job {
            Job::Granted { claim, .. } => Some(claim),
            Job::Free | Job::Waiting { .. } => None,
        };
        if granted.is_some() {
            self.job = Job::Free;
            self.station_mut().standing = StationClaim::Out;
        }
        self.forget_tokens();
        self.set_barred(true);
        granted
    }

    pub(super) fn hear(&mut self, pool: &Pool, message: Message<Named>, out: &mut Post<Named>) {
        seated!(self, machine => machine.hear(pool.terms(), message, out));
    }

    pub(super) fn request(
        &mut self,
        pool: &Pool,
        claim: ClaimId,
        units: Units,
        out: &mut Post<Named>,
    ) {
        assert_eq!(self.job, Job::Free, "a place works for one claim");
        self.job = Job::Waiting { claim, units };
        seated!(self, machine => machine.request(pool.terms(), units.get(), out));
    }

    pub(super) fn leave(&mut self, pool: &Pool, out: &mut Post<Named>) {
        self.job = Job::Free;
        seated!(self, machine => machine.leave(pool.terms(), out));
    }

    pub(super) fn nudge(&mut self, pool: &Pool, out: &mut Post<Named>) {
        seated!(self, machine => machine.nudge(pool.terms(), out));
    }

    pub(super) fn timeout(&mut self, pool: &Pool, out: &mut Post<Named>) {
        seated!(self, machine => machine.timeout(pool.terms(), out));
    }

    pub(super) fn launch(&mut self, pool: &Pool, out: &mut Post<Named>) {
        seated!(self, machine => machine.launch(pool.terms(), out));
    }

    pub(super) fn first_start(&mut self, pool: &Pool, out: &mut Post<Named>) {
        seated!(self, machine => machine.first_start(pool.terms(), out));
    }

    /// A client of an earlier boot shows what it has: it uses that, without tokens (ring spec 7,
    /// "restart of a daemon whose children still hold units").
    pub(super) fn adopt(&mut self, claim: ClaimId, shares: &Shares) {
        self.job = Job::Granted { claim, shares: shares.clone() };
        let units = Named::new(shares.as_slice());
        *self.station_mut() = Station {
            standing: StationClaim::Using { units },
            seq: self.station().seq,
            turn: self.station().turn,
            ..Station::default()
        };
    }

    /// A fault: every variable of the ring is anything that it can be.
    pub(super) fn scramble(&mut self, pool: &Pool, draw: &mut dyn FnMut(u64) -> u64) {
        seated!(self, machine => machine.scramble(pool.terms(), draw));
        self.station_mut().standing = match &self.job {
            Job::Free => StationClaim::Out,
            Job::Waiting { units, .. } => StationClaim::Requesting { need: units.get() },
            Job::Granted { shares, .. } => {
                StationClaim::Using { units: Named::new(shares.as_slice()) }
            }
        };
    }

    pub(super) fn settle(&mut self, pool: &Pool, out: &mut Post<Named>) {
        seated!(self, machine => machine.settle(pool.terms(), out));
    }

    /// Bytes that this place takes, with what it points to.
    pub(super) fn bytes(&self) -> usize {
        let units = match &self.station().standing {
            StationClaim::Using { units } => units.heap_bytes(),
            StationClaim::Out | StationClaim::Requesting { .. } => 0,
        };
        let fences = |mint: &Vec<Fence>| mint.capacity() * size_of::<Fence>();
        let (kept, root) = match &self.seated {
            Seated::Core(machine) => (
                0,
                machine.root.as_ref().map_or(0, |root| {
                    let bags = root.collected.heap_bytes() + root.left_over.heap_bytes();
                    size_of_val(&**root) + fences(&root.mint) + bags
                }),
            ),
            Seated::Train(machine) => (
                machine.kept.heap_bytes(),
                machine.root.as_ref().map_or(0, |root| {
                    let bags = root.bag.heap_bytes() + root.pool.heap_bytes();
                    size_of_val(&**root) + fences(&root.mint) + bags
                }),
            ),
        };
        size_of::<Self>() + units + kept + root + self.station().held.heap_bytes()
    }

    /// Whether the ring's idea of the claim is the application's.
    pub(super) fn agrees(&self) -> bool {
        match (&self.job, &self.station().standing) {
            (Job::Free, StationClaim::Out) => true,
            (Job::Waiting { units, .. }, StationClaim::Requesting { need }) => units.get() == *need,
            (Job::Granted { shares, .. }, StationClaim::Using { units }) => {
                units.shares() == *shares
            }
            _ => false,
        }
    }
}
