//! What a model checker must know about a protocol beyond driving it: which numbers only count, and
//! what the arithmetic of leases forbids.

use std::time::Duration;

use crate::{ClaimId, NodeId, Numbers, Protocol};

/// A protocol whose state space can be explored exhaustively.
///
/// Lamport clocks and fences grow without bound, which would make every state new. Only their order
/// matters, so the checker renames them; for that it must see each of them ([`Numbers`]). Likewise
/// it does not model durations: it takes the *order* that the arithmetic of leases achieves (see
/// [`crate::Lease`]) as given, and must know where that order applies.
pub trait Explorable: Numbers + Protocol<Message: Numbers, Durable: Numbers> {
    /// Whether the lease of a claim is one and the same wherever it is kept, and anybody may tell
    /// of it. Then a promise from whomever is late once the lease is over anywhere, and whoever
    /// [relies on](Explorable::relies_on) it may be any node, not only the claim's home.
    const SHARED_LEASES: bool = false;

    /// Forgets running totals: they decide nothing, and would make every state a new one.
    fn forget_totals(&mut self) {}

    /// The claim whose holder's deadline this message sets, if it does that. Once the arbiter's
    /// lease has run out, such a message arrives after the deadline it carries: the checker then
    /// delivers it with [`crate::Seat::now`] at [`crate::Moment::NEVER`].
    fn promise(message: &Self::Message) -> Option<ClaimId>;

    /// How long that promise lasts from when it was made, if the message says so and not the pool.
    fn lasts(_message: &Self::Message) -> Option<Duration> {
        None
    }

    /// Whether this participant counts on what `arbiter` promised this claim although its client
    /// has no grant yet, as one does that waits for the rest of a quorum. It has a deadline of its
    /// own for that, which passes before the arbiter's lease: until it has, no alarm of the arbiter
    /// that says the lease is over may ring.
    fn relies_on(&self, _arbiter: NodeId, _claim: ClaimId) -> bool {
        false
    }

    /// The licence of this participant, if it has one, is over. The checker's clock stands still,
    /// so it says this by hand.
    fn end_licence(&mut self) {}

    /// Whether it has one.
    fn is_licensed(&self) -> bool {
        false
    }

    /// Whether its node has taken no seat in the pool yet, where it does that on demand.
    fn is_unused(&self) -> bool {
        false
    }
}
