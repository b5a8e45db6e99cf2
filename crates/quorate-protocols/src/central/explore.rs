//! What a model checker must know about `central`.

use quorate_core::{ClaimId, Explorable, Holding, LeaseEnd, Move, Number, Shares};

use super::arbiter::{Booked, State};
use super::message::Message;
use super::{Alarm, Central, Record};

type See<'a> = dyn FnMut(Number<'_>) + 'a;

impl Explorable for Central {
    /// Attempts are not among them: they are compared within one claim only, and there are as many
    /// as things that happen.
    fn numbers(&mut self, see: &mut See<'_>) {
        self.requester.held_mut().for_each(|held| held_numbers(held, see));
        let Some(arbiter) = &mut self.arbiter else { return };
        see(Number::Clock(&mut arbiter.clock.0));
        see(Number::Fence(&mut arbiter.fence));
        for booked in arbiter.entries.values_mut() {
            booked_numbers(booked, see);
        }
        arbiter.allocator.ages(&mut |age| see(Number::Clock(age)));
    }

    fn message_numbers(message: &mut Message, see: &mut See<'_>) {
        if let Message::Grant { shares, .. } | Message::Renew { shares, .. } = message {
            share_numbers(shares, see);
        }
        if let Message::Move { it, .. } = message {
            move_numbers(it, see);
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
    if let State::Granted { held, .. } = &mut booked.state {
        held_numbers(held, see);
    }
}

fn held_numbers(held: &mut Holding, see: &mut See<'_>) {
    share_numbers(&mut held.shares, see);
    held.moves.iter_mut().for_each(|it| move_numbers(it, see));
}

fn move_numbers(it: &mut Move, see: &mut See<'_>) {
    see(Number::Fence(&mut it.from.fence));
    see(Number::Fence(&mut it.to.fence));
}

fn share_numbers(shares: &mut Shares, see: &mut See<'_>) {
    *shares = shares.map_fences(|mut fence| {
        see(Number::Fence(&mut fence));
        fence
    });
}
