//! What a model checker must know about `sharing`: it counts nothing and has no leases.

use quorate_core::{ClaimId, Explorable, numbers};

use super::{Message, Sharing};

impl Explorable for Sharing {
    fn promise(_: &Message) -> Option<ClaimId> {
        None
    }
}

numbers!(plain Message, Sharing);
