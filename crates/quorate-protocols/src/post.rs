//! Where messages of one step go: to peers through the outbox, to the own seat through a queue that
//! is emptied before the step ends. A handler is never entered again while it runs.

use std::collections::VecDeque;

use quorate_core::{NodeId, Outbox, Protocol};

/// The post office of one step. Protocols whose nodes are requesters and arbiters at once send
/// through it, and deliver what they sent to themselves before the step ends: such messages are
/// free, and the contract forbids telling oneself.
pub(crate) struct Post<'a, P: Protocol> {
    me: NodeId,
    pub(crate) out: &'a mut Outbox<P>,
    /// Made when it is needed: most steps send nothing to their own seat.
    own: Option<VecDeque<P::Message>>,
}

impl<'a, P: Protocol> Post<'a, P> {
    pub(crate) fn new(me: NodeId, out: &'a mut Outbox<P>) -> Self {
        Post { me, out, own: None }
    }

    #[inline(always)]
    pub(crate) fn send(&mut self, to: NodeId, message: P::Message) {
        if to == self.me {
            self.own.get_or_insert_default().push_back(message);
        } else {
            self.out.tell(to, message);
        }
    }

    /// The next message of the own seat to itself.
    pub(crate) fn next_own(&mut self) -> Option<P::Message> {
        self.own.as_mut()?.pop_front()
    }
}
