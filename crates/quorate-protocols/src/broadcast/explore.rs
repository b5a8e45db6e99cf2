//! What a model checker must know about `broadcast`: which numbers are clocks.

use quorate_core::{ClaimId, Explorable, numbers};

use super::Weighted;
use super::message::Message;
use super::weighted::Asked;

impl Explorable for Weighted {
    fn promise(_: &Message) -> Option<ClaimId> {
        None
    }
}

numbers!(Weighted {
    clock,
    desk: plain,
    asked,
    deferred,
    detector,
    counting: plain,
    retrying,
    life: plain,
    expulsions,
    expelled,
    membership: plain,
});
numbers!(Asked { clock: clock, claim, units, standing: plain });
numbers!(enum Message {
    Request { known: plain, clock: clock, oldest: clock, query: clocks },
    Reply { known: plain, request: clocks, query: clocks, used },
    Query { known: plain, query: clock },
    Notice { known: plain },
    Join { life: plain },
    Joined { known: plain, life: plain, clock: clock },
    Expelled { life: plain },
});
