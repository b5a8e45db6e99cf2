//! The rules of every home, under every protocol that has one: the same play, each protocol an
//! instance. Nodes 0 to 2 decide, clients are at nodes 3 and 4, and no alarm ever rings.

use std::time::Duration;

use quorate_core::{
    Claim, ClaimId, Effect, Event, EventOf, Fence, Moment, NodeId, Outbox, Protocol, Refusal, Seat,
    Share, Shares, Start, Unit, Units,
};

use crate::attempt::Attempt;
use crate::by_hand::ByHand;
use crate::{arbiter, central, table, ticket};

const HOME: usize = 3;
const OTHER: usize = 4;

/// A protocol, and what a grant for other units than the claim asked for looks like in it, if one
/// message makes a grant.
trait Instance: Protocol {
    fn pool(units: u32) -> Self::Pool;
    fn misfit(_: ClaimId, _: Attempt, _: Shares) -> Option<Self::Message> {
        None
    }
}

impl Instance for central::Central {
    fn pool(units: u32) -> central::Pool {
        central::Pool::new(units)
    }

    fn misfit(claim: ClaimId, attempt: Attempt, shares: Shares) -> Option<central::Message> {
        let (sent, waited) = (Moment::ZERO, Duration::ZERO);
        Some(central::Message::Grant { claim, attempt, shares, sent, waited })
    }
}

impl Instance for table::Table {
    fn pool(units: u32) -> table::Pool {
        table::Pool::new(units, 3)
    }

    fn misfit(claim: ClaimId, attempt: Attempt, shares: Shares) -> Option<table::Message> {
        let (sent, waited) = (Moment::ZERO, Duration::ZERO);
        Some(table::Message::Notify { claim, attempt, shares, sent, waited })
    }
}

impl Instance for ticket::Ticket {
    fn pool(units: u32) -> ticket::Pool {
        ticket::Pool::new(units, 3)
    }
}

impl Instance for arbiter::Arbiter {
    fn pool(units: u32) -> arbiter::Pool {
        arbiter::Pool::named(units, 3)
    }
}

/// What clients are told.
#[derive(Clone, PartialEq, Debug)]
enum Told {
    Granted(Shares, Moment),
    Extended(Moment),
    Lost,
    Refused(Refusal),
    /// A node was told of something that no correct peer says.
    Anomaly,
}

struct World<P: Instance> {
    nodes: ByHand<P>,
    told: Vec<Told>,
}

impl<P: Instance> World<P> {
    fn new(units: u32) -> Self {
        World::of(P::pool(units))
    }

    fn of(pool: P::Pool) -> Self {
        World { nodes: ByHand::new(5, pool, Moment::ZERO).0, told: Vec::new() }
    }

    fn step(&mut self, node: usize, event: EventOf<P>) {
        for effect in self.nodes.step(node.into(), event) {
            self.told.push(match effect {
                Effect::Grant { shares, until, .. } => Told::Granted(shares, until),
                Effect::Extend { until, .. } => Told::Extended(until),
                Effect::Lose { .. } => Told::Lost,
                Effect::Refuse { why, .. } => Told::Refused(why),
                Effect::Anomaly { .. } => Told::Anomaly,
                _ => continue,
            });
        }
    }

    /// Everything arrives, in order; returns what clients were told by then.
    fn settle(&mut self) -> Vec<Told> {
        while let Some((to, event)) = self.nodes.next() {
            self.step(to.index(), event);
        }
        std::mem::take(&mut self.told)
    }

    fn claim(&mut self, node: usize, number: u64) {
        let claim = Claim::any(id(number), Units::ONE);
        self.step(node, Event::Claim(claim));
    }

    /// A client's claim is asked for and granted.
    fn granted(&mut self, node: usize, number: u64) -> (Shares, Moment) {
        self.claim(node, number);
        match &self.settle()[..] {
            [Told::Granted(shares, until)] => (shares.clone(), *until),
            other => panic!("{}: {other:?}", P::NAME),
        }
    }
}

fn id(number: u64) -> ClaimId {
    ClaimId { origin: number, serial: 1 }
}

/// The same test of every protocol whose nodes have homes.
macro_rules! under_every_protocol {
    ($test:ident) => {
        $test::<central::Central>();
        $test::<table::Table>();
        $test::<ticket::Ticket>();
        $test::<arbiter::Arbiter>();
    };
}

#[test]
fn a_renewal_past_its_deadline_is_a_loss_and_the_units_are_free_at_once() {
    fn play<P: Instance>() {
        let mut world = World::<P>::new(1);
        let (shares, until) = world.granted(HOME, 1);
        world.nodes.now = until;
        world.step(HOME, Event::Renew { claim: id(1), shares });
        assert_eq!(world.settle(), [Told::Lost], "{}", P::NAME);
        world.granted(OTHER, 2);
    }
    under_every_protocol!(play);
}

#[test]
fn an_answer_past_the_deadline_revives_nothing() {
    fn play<P: Instance>() {
        let mut world = World::<P>::new(1);
        let (shares, until) = world.granted(HOME, 1);
        world.nodes.now = Moment(until.0 - 1);
        world.step(HOME, Event::Renew { claim: id(1), shares: shares.clone() });
        world.nodes.now = until;
        assert_eq!(world.settle(), [], "{}", P::NAME);
        // In time it does.
        let mut world = World::<P>::new(1);
        let (shares, until) = world.granted(HOME, 1);
        world.nodes.now = Moment(until.0 - 1);
        world.step(HOME, Event::Renew { claim: id(1), shares });
        assert!(matches!(world.settle()[..], [Told::Extended(longer)] if longer > until));
    }
    under_every_protocol!(play);
}

#[test]
fn a_grant_that_does_not_fit_is_another_claim_of_that_name() {
    fn play<P: Instance>() {
        let mut world = World::<P>::new(2);
        world.claim(HOME, 1);
        let share = |unit| Share { unit: Unit(unit), fence: Fence(1) };
        let two = Shares::new(&[share(0), share(1)]);
        let Some(message) = P::misfit(id(1), Attempt { boot: 0, clock: 1 }, two) else { return };
        world.step(HOME, Event::Hear { from: NodeId(0), message });
        let told = std::mem::take(&mut world.told);
        assert_eq!(told, [Told::Refused(Refusal::NameTaken)], "{}", P::NAME);
        // The client is told nothing more, and what was asked for in its name is given back.
        assert_eq!(world.settle(), [], "{}", P::NAME);
        world.granted(OTHER, 2);
    }
    under_every_protocol!(play);
}

#[test]
fn a_claim_that_is_repeated_changes_nothing() {
    fn play<P: Instance>() {
        let mut world = World::<P>::new(1);
        world.claim(HOME, 1);
        let sent = world.nodes.wire.len();
        world.claim(HOME, 1);
        assert_eq!((world.nodes.wire.len(), world.told.len()), (sent, 0), "{}", P::NAME);
        assert!(matches!(world.settle()[..], [Told::Granted(..)]), "{}", P::NAME);
        world.claim(HOME, 1);
        assert_eq!(world.settle(), [], "{}", P::NAME);
    }
    under_every_protocol!(play);
}

#[test]
fn what_is_cancelled_on_its_way_is_free() {
    fn play<P: Instance>() {
        let mut world = World::<P>::new(1);
        world.claim(HOME, 1);
        world.step(HOME, Event::Cancel(id(1)));
        assert_eq!(world.settle(), [Told::Refused(Refusal::Cancelled)], "{}", P::NAME);
        world.granted(OTHER, 2);
    }
    under_every_protocol!(play);
}

#[test]
fn a_client_that_outlives_its_home_renews_and_releases_there() {
    fn play<P: Instance>() {
        let mut world = World::<P>::new(1);
        let (shares, until) = world.granted(HOME, 1);
        world.nodes.boots[HOME] = 1;
        let seat =
            Seat { me: NodeId::from(HOME), boot: 1, now: world.nodes.now, pool: &world.nodes.pool };
        world.nodes.nodes[HOME] = P::boot(&seat, Start::Recovered(None), &mut Outbox::new());
        world.nodes.now = Moment(until.0 / 2);
        world.step(HOME, Event::Renew { claim: id(1), shares });
        let told = world.settle();
        assert!(matches!(told[..], [Told::Extended(longer)] if longer > until), "{told:?}");
        world.step(HOME, Event::Release(id(1)));
        assert_eq!(world.settle(), [], "{}", P::NAME);
        world.granted(OTHER, 2);
    }
    under_every_protocol!(play);
}

/// Its client went to another home while it waited: what the first gives up is its own, and the
/// units go to where the client is.
#[test]
fn what_one_home_gives_up_is_not_what_another_asked_for() {
    fn play<P: Instance>() {
        let mut world = World::<P>::new(1);
        world.granted(HOME, 1);
        world.claim(HOME, 2);
        world.settle();
        world.claim(OTHER, 2);
        world.settle();
        world.step(HOME, Event::Withdraw(id(2)));
        assert_eq!(world.settle(), [], "{}", P::NAME);
        world.step(HOME, Event::Release(id(1)));
        assert!(matches!(world.settle()[..], [Told::Granted(..)]), "{}", P::NAME);
        // The other home has it, and can give it back.
        world.step(OTHER, Event::Release(id(2)));
        world.settle();
        world.granted(HOME, 3);
    }
    under_every_protocol!(play);
}

/// A grant of which nobody was told goes to the next claim, and the same claim can be made again.
#[test]
fn what_nobody_came_for_goes_to_the_next() {
    fn play<P: Instance>() {
        let mut world = World::<P>::new(1);
        world.granted(HOME, 1);
        world.claim(OTHER, 2);
        world.settle();
        world.step(HOME, Event::Withdraw(id(1)));
        assert!(matches!(world.settle()[..], [Told::Granted(..)]), "{}", P::NAME);
        world.claim(HOME, 1);
        assert_eq!(world.settle(), [], "{}", P::NAME);
        world.step(OTHER, Event::Withdraw(id(2)));
        assert!(matches!(world.settle()[..], [Told::Granted(..)]), "{}", P::NAME);
    }
    under_every_protocol!(play);
}

/// A client uses a unit by the word of one home, and the same claim was made at another, where
/// nobody is any more. Says what clients are told afterwards, one of whom wants the unit.
fn given_up_elsewhere<P: Instance>(pool: P::Pool) -> Vec<Told> {
    let mut world = World::<P>::of(pool);
    world.granted(HOME, 1);
    world.claim(OTHER, 1);
    world.settle();
    world.step(OTHER, Event::Withdraw(id(1)));
    world.claim(OTHER, 2);
    world.settle()
}

#[test]
fn what_two_homes_asked_for_is_given_back_by_neither_alone() {
    fn play<P: Instance>() {
        assert_eq!(given_up_elsewhere::<P>(P::pool(1)), [], "{}: it is in use", P::NAME);
    }
    under_every_protocol!(play);
    let mut pool = central::Pool::new(1);
    pool.goods.mutant = Some(central::pool::Mutant::DeclineShared);
    let told = given_up_elsewhere::<central::Central>(pool);
    assert!(matches!(told[..], [Told::Granted(..)]), "{told:?}");
    let mutant = Some(table::pool::Mutant::EndShared);
    let pool = table::Pool { mutant, ..table::Pool::new(1, 3) };
    let told = given_up_elsewhere::<table::Table>(pool);
    assert!(matches!(told[..], [Told::Granted(..)]), "{told:?}");
}

/// A home that cannot know of a renewal through another takes nothing back on its own account: only
/// a client's word ends what the client was given elsewhere.
#[test]
fn a_home_whose_deadline_passed_takes_nothing_from_a_client_that_renewed_elsewhere() {
    fn play<P: Instance>() {
        let mut world = World::<P>::new(1);
        let (shares, until) = world.granted(HOME, 1);
        world.nodes.now = Moment(until.0 / 2);
        world.step(OTHER, Event::Renew { claim: id(1), shares: shares.clone() });
        let told = world.settle();
        assert!(matches!(told[..], [Told::Extended(later)] if later > until), "{told:?}");
        world.nodes.now = until;
        world.step(HOME, Event::Renew { claim: id(1), shares: shares.clone() });
        assert_eq!(world.settle(), [Told::Lost], "{}", P::NAME);
        // The unit is in use.
        world.claim(HOME, 2);
        assert_eq!(world.settle(), [], "{}", P::NAME);
        world.step(OTHER, Event::Renew { claim: id(1), shares });
        let told = world.settle();
        assert!(matches!(told[..], [Told::Extended(_)]), "{}: {told:?}", P::NAME);
    }
    under_every_protocol!(play);
}
