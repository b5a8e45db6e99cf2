//! What a test must know of a protocol that heals from any state: how to bring it into one, and
//! when it is right again.

use crate::{EventOf, NodeId, Outbox, Protocol, Seat};

/// A self-stabilizing protocol.
///
/// The contract has no event for a fault in memory: nothing that happens in the world may change a
/// participant behind its back. A driver that wants to see the pool heal therefore calls
/// [`Corruptible::corrupt`] instead of a step, and performs its effects as it does a step's. The
/// simulator does so at the start of a run, a daemon when an administrator asks for it in a test.
///
/// Chance comes in as `draw(n)`, any number below n.
pub trait Corruptible: Protocol {
    /// A fault: every variable becomes anything that it can be. What clients asked for and what
    /// they were granted stays, since those are clients' variables.
    fn corrupt(
        &mut self,
        seat: &Seat<'_, Self>,
        draw: &mut dyn FnMut(u64) -> u64,
        out: &mut Outbox<Self>,
    );

    /// Messages that a fault may have left on the links, each shown with who sends it to whom.
    fn garbage(
        pool: &Self::Pool,
        draw: &mut dyn FnMut(u64) -> u64,
        show: &mut dyn FnMut(NodeId, NodeId, Self::Message),
    );

    /// Whether the whole pool is as it should be, given all participants in order and all messages
    /// on their way in the order of their arrival: then it stays so, and the laws hold from now on.
    fn is_legitimate(
        pool: &Self::Pool,
        participants: &[&Self],
        under_way: &[(NodeId, NodeId, &Self::Message)],
    ) -> bool;

    /// Whether a legitimate pool may be anything but that after this event at this participant,
    /// without any fault in memory: it suspects a node, say, or a timer rings although nothing was
    /// lost. The laws hold nevertheless.
    fn is_disturbed_by(&self, seat: &Seat<'_, Self>, event: &EventOf<Self>) -> bool;
}
