//! What a model checker must know about `ticket`.

use quorate_core::{ClaimId, Explorable, NodeId, Number, Numbers, numbers};

use super::Ticket;
use super::local::{Local, Said};
use super::message::{Message, Rival};

impl Explorable for Ticket {
    fn promise(message: &Message) -> Option<ClaimId> {
        match message {
            Message::View { claim, .. } | Message::Renewed { claim, .. } => Some(*claim),
            _ => None,
        }
    }

    fn relies_on(&self, member: NodeId, claim: ClaimId) -> bool {
        self.requester.claims.get(&claim).is_some_and(|local| local.relies_on(member))
    }
}

impl Numbers for Ticket {
    fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>)) {
        let Ticket { requester, member } = self;
        requester.clock.numbers(see);
        requester.claims.numbers(see);
        member.numbers(see);
    }
}

// Tickets count like fences: proposals go up from the largest known, and a holder's fence is one.
numbers!(plain Rival);
numbers!(Local { units, draw: plain, attempt, ticket, phase: plain, quorum, shown });
numbers!(Said { proposed, rivals, mark, until, joins, rings });
numbers!(enum Message {
    Register { claim, attempt, units, above, sent },
    Propose { claim, attempt, ticket },
    Settle { claim, attempt, units, ticket, standing: plain, seen, sent },
    View { claim, attempt, rivals, mark, sent },
    Queued { claim, attempt, mark },
    Renewed { claim, attempt, sent },
    Lost { claim, attempt },
    Release { claim, attempt, whole },
});
