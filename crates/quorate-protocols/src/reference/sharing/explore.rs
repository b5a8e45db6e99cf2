//! What a model checker must know about `sharing`: it counts nothing and has no leases.

use std::convert::Infallible;

use quorate_core::{ClaimId, Explorable, LeaseEnd, Number};

use super::{Message, Sharing};

impl Explorable for Sharing {
    fn numbers(&mut self, _: &mut dyn FnMut(Number<'_>)) {}

    fn message_numbers(_: &mut Message, _: &mut dyn FnMut(Number<'_>)) {}

    fn durable_numbers((): &mut (), _: &mut dyn FnMut(Number<'_>)) {}

    fn lease_end(alarm: &Infallible) -> LeaseEnd {
        match *alarm {}
    }

    fn promise(_: &Message) -> Option<ClaimId> {
        None
    }
}
