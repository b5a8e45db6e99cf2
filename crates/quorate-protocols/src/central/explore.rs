//! What a model checker must know about `central`.

use quorate_core::{ClaimId, Explorable, Number, Numbers, numbers};

use super::arbiter::Arbiter;
use super::booked::{Asking, Booked, State};
use super::message::Message;
use super::{Central, Record};
use crate::allocator::Allocator;

impl Explorable for Central {
    fn promise(message: &Message) -> Option<ClaimId> {
        match message {
            Message::Grant { claim, .. } | Message::Renewed { claim, .. } => Some(*claim),
            _ => None,
        }
    }
}

// Attempts are not among the numbers: they are compared within one claim only, and there are as
// many as things that happen.
// What the allocator wants done is done when a step ends.
numbers!(Arbiter {
    clock,
    entries,
    allocator,
    deeds: plain,
    tags: plain,
    fence,
    grace,
    longest: plain,
    promised: plain,
    lag: plain
});
numbers!(Booked { asker: plain, stamp, wanted, sent, arrived, others, state });
numbers!(Asking { asker: plain, sent, arrived });
numbers!(enum State { Waiting, Absent, Granted { held, waited, adopted } });
numbers!(Record { grants, grace, drained, relabelled });
numbers!(enum Message {
    Request { claim, attempt: plain, wanted, sent },
    Grant { claim, attempt: plain, shares, sent, waited },
    Release { claim },
    Decline { claim, attempt: plain, fence },
    Renew { claim, attempt: plain, shares, sent },
    Renewed { claim, attempt: plain, sent },
    Lost { claim, attempt: plain, fence },
    Move { claim, attempt: plain, it },
    Refused { claim, attempt: plain },
});

impl Numbers for Central {
    fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>)) {
        let Central { requester, arbiter } = self;
        requester.holds_mut().for_each(|has| has.numbers(see));
        arbiter.numbers(see);
    }
}

/// Ages are stamps' clocks.
impl Numbers for Allocator {
    fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>)) {
        self.ages(&mut |age| see(Number::Clock(age)));
    }
}
