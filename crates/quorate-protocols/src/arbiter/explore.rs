//! What a model checker must know about `arbiter`.

use quorate_core::{ClaimId, Explorable, Fence, LeaseEnd, NodeId, Number};

use super::booked::{Booked, State};
use super::floors::Floors;
use super::grantor::Grantor;
use super::local::{Local, PermitState};
use super::message::{GrantNumber, Message};
use super::naming::Picked;
use super::recovery::Record;
use super::{Alarm, Arbiter};
use crate::attempt::Attempt;
use crate::opening::Opening;

type See<'a> = dyn FnMut(Number<'_>) + 'a;

impl Explorable for Arbiter {
    fn numbers(&mut self, see: &mut See<'_>) {
        see(Number::Clock(&mut self.requester.clock.0));
        see(Number::Fence(&mut self.requester.own.fence));
        for local in self.requester.claims.values_mut() {
            local_numbers(local, see);
        }
        let Some(grantor) = &mut self.grantor else { return };
        see(Number::Clock(&mut grantor.clock.0));
        grant_number(&mut grantor.last, see);
        floor_numbers(&mut grantor.floors, see);
        see(Number::Fence(&mut grantor.top));
        see(Number::Fence(&mut grantor.ceiling));
        if let Opening::Survey { reports } = &mut grantor.opening {
            for report in reports.values_mut() {
                see(Number::Fence(&mut report.fence));
            }
        }
        for booked in grantor.entries.values_mut() {
            booked_numbers(booked, see);
        }
        rebuild_order(grantor);
    }

    fn message_numbers(message: &mut Message, see: &mut See<'_>) {
        match message {
            Message::Request { attempt, stamp, token, .. } => {
                attempt_numbers(attempt, see);
                see(Number::Clock(&mut stamp.clock));
                see(Number::Fence(token));
            }
            Message::Name { attempt, grant, pick, .. } => {
                attempt_numbers(attempt, see);
                grant_number(grant, see);
                see(Number::Clock(&mut pick.round));
            }
            Message::Named { attempt, grant, round, floor, clock, .. }
            | Message::Renewed { attempt, grant, round, floor, clock, .. } => {
                attempt_numbers(attempt, see);
                grant_number(grant, see);
                see(Number::Clock(round));
                see(Number::Fence(floor));
                see(Number::Clock(clock));
            }
            Message::Taken { attempt, grant, round, clock, .. } => {
                attempt_numbers(attempt, see);
                grant_number(grant, see);
                see(Number::Clock(round));
                see(Number::Clock(clock));
            }
            Message::Alive { attempt, .. } => attempt_numbers(attempt, see),
            Message::Grant { attempt, grant, floor, clock, .. } => {
                attempt_numbers(attempt, see);
                grant_number(grant, see);
                see(Number::Fence(floor));
                see(Number::Clock(clock));
            }
            Message::Queued { attempt, clock, .. } => {
                attempt_numbers(attempt, see);
                see(Number::Clock(clock));
            }
            Message::Inquire { attempt, grant, clock, .. } => {
                attempt_numbers(attempt, see);
                grant_number(grant, see);
                see(Number::Clock(clock));
            }
            Message::Yield { attempt, grant, .. } => {
                attempt_numbers(attempt, see);
                grant_number(grant, see);
            }
            Message::Release { attempt, .. } => attempt_numbers(attempt, see),
            Message::Renew { attempt, grant, stamp, token, .. } => {
                attempt_numbers(attempt, see);
                grant.iter_mut().for_each(|grant| grant_number(grant, see));
                see(Number::Clock(&mut stamp.clock));
                see(Number::Fence(token));
            }
            Message::Lost { attempt, grant, clock, .. } => {
                attempt_numbers(attempt, see);
                grant.iter_mut().for_each(|grant| grant_number(grant, see));
                see(Number::Clock(clock));
            }
            Message::Retoken { attempt, grant, token, .. } => {
                attempt_numbers(attempt, see);
                grant_number(grant, see);
                see(Number::Fence(token));
            }
            Message::Retokened { attempt, grant, token, clock, .. } => {
                attempt_numbers(attempt, see);
                grant_number(grant, see);
                see(Number::Fence(token));
                see(Number::Clock(clock));
            }
            Message::Survey { clock } | Message::Roll { clock } => see(Number::Clock(clock)),
            Message::Report { highest, clock, .. } => {
                see(Number::Fence(highest));
                see(Number::Clock(clock));
            }
        }
    }

    fn durable_numbers(record: &mut Record, see: &mut See<'_>) {
        floor_numbers(&mut record.floors, see);
        for (_, booked) in &mut record.grants {
            booked_numbers(booked, see);
        }
    }

    fn lease_end(alarm: &Alarm) -> LeaseEnd {
        match alarm {
            Alarm::Retry | Alarm::Survey => LeaseEnd::Nothing,
            Alarm::LeaseEnd(bid) => LeaseEnd::Of(bid.claim),
            Alarm::Grace => LeaseEnd::Earlier,
        }
    }

    fn promise(message: &Message) -> Option<ClaimId> {
        match message {
            Message::Grant { claim, .. } | Message::Renewed { claim, .. } => Some(*claim),
            _ => None,
        }
    }

    /// A requester that waits for the rest of a quorum has its own deadline for each permission it
    /// already has.
    fn relies_on(&self, arbiter: NodeId, claim: ClaimId) -> bool {
        let local = self.requester.claims.get(&claim);
        local.is_some_and(|local| {
            !local.is_held() && local.enlisted.get(&arbiter).is_some_and(|p| p.is_given())
        })
    }
}

fn local_numbers(local: &mut Local, see: &mut See<'_>) {
    see(Number::Clock(&mut local.stamp.clock));
    see(Number::Fence(&mut local.token));
    if let Some(pick) = &mut local.pick {
        see(Number::Clock(&mut pick.round));
    }
    for permit in local.enlisted.values_mut() {
        attempt_numbers(&mut permit.attempt, see);
        see(Number::Fence(&mut permit.token));
        grant_number(&mut permit.yielded, see);
        if let PermitState::Given { grant, floor, retold, told, named, .. } = &mut permit.state {
            grant_number(grant, see);
            see(Number::Fence(floor));
            see(Number::Fence(retold));
            see(Number::Clock(told));
            see(Number::Clock(named));
        }
    }
}

fn booked_numbers(booked: &mut Booked, see: &mut See<'_>) {
    see(Number::Clock(&mut booked.stamp.clock));
    attempt_numbers(&mut booked.asker.attempt, see);
    see(Number::Fence(&mut booked.token));
    if let Some(Picked { pick, .. }) = &mut booked.picked {
        see(Number::Clock(&mut pick.round));
    }
    if let State::Granted { grant, .. } = &mut booked.state {
        grant_number(grant, see);
    }
}

fn attempt_numbers(attempt: &mut Attempt, see: &mut See<'_>) {
    see(Number::Clock(&mut attempt.clock));
}

/// Numbers of permissions count like fences: each from the largest of its boot.
fn grant_number(number: &mut GrantNumber, see: &mut See<'_>) {
    let mut fence = Fence(number.0);
    see(Number::Fence(&mut fence));
    number.0 = fence.0;
}

fn floor_numbers(floors: &mut Floors, see: &mut See<'_>) {
    see(Number::Fence(&mut floors.base));
    for floor in floors.units.values_mut() {
        see(Number::Fence(floor));
    }
}

/// The books' orders are by stamp, and stamps may have been renamed.
fn rebuild_order(grantor: &mut Grantor) {
    grantor.queue.clear();
    grantor.granted.clear();
    for (&bid, booked) in &grantor.entries {
        let order = if booked.is_waiting() { &mut grantor.queue } else { &mut grantor.granted };
        order.insert((booked.stamp, bid));
    }
}
