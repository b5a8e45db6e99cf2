//! What a model checker must know about `central`.

use quorate_core::{ClaimId, Explorable, LeaseEnd, Number, Shares};

use super::arbiter::{Booked, State};
use super::message::{Attempt, Message};
use super::{Alarm, Central, Record};

type See<'a> = dyn FnMut(Number<'_>) + 'a;

impl Explorable for Central {
    fn numbers(&mut self, see: &mut See<'_>) {
        see(Number::Clock(&mut self.requester.clock.0));
        for local in self.requester.claims.values_mut() {
            see(Number::Clock(&mut local.stamp.clock));
            see(Number::Clock(&mut local.attempt.clock));
        }
        let Some(arbiter) = &mut self.arbiter else { return };
        see(Number::Clock(&mut arbiter.clock.0));
        see(Number::Fence(&mut arbiter.fence));
        for booked in arbiter.entries.values_mut() {
            booked_numbers(booked, see);
        }
        arbiter.queue = arbiter
            .entries
            .iter()
            .filter(|(_, booked)| matches!(booked.state, State::Waiting { .. }))
            .map(|(&claim, booked)| (booked.stamp, claim))
            .collect();
    }

    fn message_numbers(message: &mut Message, see: &mut See<'_>) {
        match message {
            Message::Request { attempt, stamp, .. } => {
                see(Number::Clock(&mut stamp.clock));
                attempt_numbers(attempt, see);
            }
            Message::Grant { attempt, shares, clock, .. } => {
                attempt_numbers(attempt, see);
                share_numbers(shares, see);
                see(Number::Clock(clock));
            }
            Message::Release { .. } => {}
            Message::Decline { attempt, .. } => attempt_numbers(attempt, see),
            Message::Renew { attempt, shares, .. } => {
                attempt_numbers(attempt, see);
                share_numbers(shares, see);
            }
            Message::Renewed { attempt, clock, .. } | Message::Lost { attempt, clock, .. } => {
                attempt_numbers(attempt, see);
                see(Number::Clock(clock));
            }
        }
    }

    fn durable_numbers(record: &mut Record, see: &mut See<'_>) {
        for (_, booked) in &mut record.grants {
            booked_numbers(booked, see);
        }
    }

    fn lease_end(alarm: &Alarm) -> LeaseEnd {
        match alarm {
            Alarm::Retry => LeaseEnd::Nothing,
            Alarm::LeaseEnd(claim) => LeaseEnd::Of(*claim),
            Alarm::Grace => LeaseEnd::Earlier,
        }
    }

    fn promise(message: &Message) -> Option<ClaimId> {
        match message {
            Message::Grant { claim, .. } | Message::Renewed { claim, .. } => Some(*claim),
            _ => None,
        }
    }
}

fn booked_numbers(booked: &mut Booked, see: &mut See<'_>) {
    see(Number::Clock(&mut booked.stamp.clock));
    attempt_numbers(&mut booked.asker.attempt, see);
    if let State::Granted { shares, .. } = &mut booked.state {
        share_numbers(shares, see);
    }
}

fn attempt_numbers(attempt: &mut Attempt, see: &mut See<'_>) {
    see(Number::Clock(&mut attempt.clock));
}

fn share_numbers(shares: &mut Shares, see: &mut See<'_>) {
    *shares = shares.map_fences(|mut fence| {
        see(Number::Fence(&mut fence));
        fence
    });
}
