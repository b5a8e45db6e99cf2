//! A pool whose lease changes while its seat moves: every history of small worlds.

use std::time::Duration;

use quorate_check::{Budget, Report, Scope, Sometimes};
use quorate_core::{
    Charter, Effect, Event, Lease, Moment, NodeId, Outbox, Protocol, Seat, Start, Tenure,
};

use super::exhaustive::{QUIET, explore, pair, under};
use crate::central::moving::{Alarm, Message, Moving, Pool};
use crate::central::pool::Mutant;
use crate::goods::LeaseEver;

pub(super) const SHORT: Duration = Duration::from_secs(10);
pub(super) const LONG: Duration = Duration::from_secs(40);

/// The lease is these, one after the other.
pub(super) fn leased(leases: &[Duration], mut scope: Scope<Moving>) -> Scope<Moving> {
    let edition = |at: usize| {
        let mut pool: Pool = scope.pool.clone();
        pool.central.goods.lease = Lease::new(leases[at], 200);
        let longest = leases[..=at].iter().max().copied().unwrap();
        let ever = LeaseEver { first: leases[0], longest };
        pool.central.goods.lease_ever = Some(ever).filter(|_| at > 0);
        pool
    };
    let mut pools = (0..leases.len()).map(edition).collect::<Vec<_>>().into_iter();
    scope.pool = pools.next().expect("there is one lease");
    scope.editions = pools.collect();
    scope.leases = leases.to_vec();
    scope
}

fn staying(scope: Scope<Moving>) -> Scope<Moving> {
    under(scope, |council| council.moves = 0)
}

const RENEWAL: Budget = Budget { renewals: 1, ..QUIET };

fn broken(mut scope: Scope<Moving>, mutant: Mutant) -> Report {
    for pool in scope.editions.iter_mut().chain([&mut scope.pool]) {
        pool.central.goods.mutant = Some(mutant);
    }
    explore(&scope, &[])
}

/// A changed number is a changed protocol or a changed checker.
#[test]
fn a_lease_that_changes_while_the_seat_moves_is_exhausted_in_as_many_states_as_ever() {
    let all = [Sometimes::Full];
    let longer = [Sometimes::Full, Sometimes::LongerThanNow];
    let moved = [Sometimes::Full, Sometimes::SeatMoved, Sometimes::OpenedByTime];
    let (mut counted, mut pinned) = (Vec::new(), Vec::new());
    for (name, scope, required, states) in [
        ("lengthened", leased(&[SHORT, LONG], staying(pair(RENEWAL))), &all[..], 34_024),
        ("shortened", leased(&[LONG, SHORT], staying(pair(RENEWAL))), &longer[..], 182_445),
        ("lengthened, moved", leased(&[SHORT, LONG], pair(QUIET)), &moved[..], 449_364),
    ] {
        let report = explore(&scope, required);
        assert!(report.holds(), "{name}: {report}");
        counted.push((name, report.states));
        pinned.push((name, states));
    }
    assert_eq!(counted, pinned);
}

/// Each broken rule, the smallest change in which it shows, and the law that finds it.
#[test]
fn every_broken_rule_of_leases_is_found_by_the_law_it_breaks() {
    for (mutant, scope) in [
        (Mutant::GraceByNewLease, leased(&[LONG, SHORT], pair(QUIET))),
        (Mutant::SettleAtOnce, leased(&[LONG, SHORT], pair(QUIET))),
        (Mutant::DecideAmendedAtOnce, leased(&[SHORT, LONG], pair(QUIET))),
        (Mutant::KeepByNewLease, leased(&[LONG, SHORT], staying(pair(RENEWAL)))),
        (Mutant::TellByNewLease, leased(&[SHORT, LONG], staying(pair(QUIET)))),
        (Mutant::CountByOwnLease, leased(&[SHORT, LONG], staying(pair(QUIET)))),
        (Mutant::CountByOwnLease, leased(&[LONG, SHORT], staying(pair(QUIET)))),
    ] {
        let report = broken(scope, mutant);
        assert_eq!(report.broken_law(), Some("capacity"), "{mutant:?}: {report}");
    }
}

/// What its clients were told before it was restarted may be by a lease of which it hears later.
#[test]
fn a_home_that_forgot_and_hears_of_a_longer_lease_does_not_know_all_yet() {
    for (mutant, knows_all) in [(None, false), (Some(Mutant::CompleteByOldLease), true)] {
        let scope = leased(&[SHORT, LONG], pair(QUIET));
        let pools = [&scope.pool, &scope.editions[0]].map(|pool| {
            let mut pool = pool.clone();
            pool.central.goods.mutant = mutant;
            pool
        });
        let mut out = Outbox::new();
        let seat = |which: usize| {
            let (me, boot, now) = (NodeId(1), 1, Moment(1));
            Seat { me, boot, now, pool: &pools[which] }
        };
        let mut home = Moving::boot(&seat(0), Start::Amnesia, &mut out);
        let armed = |out: &mut Outbox<Moving>| {
            out.drain().find_map(|effect| match effect {
                Effect::Arm { alarm: Alarm::Complete, after } => Some(after),
                _ => None,
            })
        };
        assert_eq!(armed(&mut out), Some(SHORT));
        home.step(&seat(0), Event::Ring(Alarm::Complete), &mut out);
        home.step(&seat(1), Event::Charter(Charter::Amended { edition: 1 }), &mut out);
        assert_eq!(armed(&mut out), (!knows_all).then_some(LONG), "{mutant:?}");
        let tenure = Tenure { term: 2, after: Some(1), node: NodeId(0), boot: 0 };
        home.step(&seat(1), Event::Charter(Charter::Applied(tenure)), &mut out);
        let message = Message::Roll { term: 2 };
        home.step(&seat(1), Event::Hear { from: NodeId(0), message }, &mut out);
        let complete = out.drain().find_map(|effect| match effect {
            Effect::Tell { message: Message::Answer { complete, .. }, .. } => Some(complete),
            _ => None,
        });
        assert_eq!(complete, Some(knows_all), "{mutant:?}");
    }
}
