//! What a model checker must know about `ticket`.

use quorate_core::{ClaimId, Explorable, LeaseEnd, NodeId, Number};

use super::message::Message;
use super::{Alarm, Ticket};
use crate::attempt::Attempt;

type See<'a> = dyn FnMut(Number<'_>) + 'a;

/// Tickets count like fences: proposals go up from the largest known, and a holder's fence is one.
impl Explorable for Ticket {
    fn numbers(&mut self, see: &mut See<'_>) {
        see(Number::Clock(&mut self.requester.clock.0));
        for local in self.requester.claims.values_mut() {
            attempt_numbers(&mut local.attempt, see);
            see(Number::Fence(&mut local.ticket));
            for said in local.quorum.values_mut() {
                see(Number::Fence(&mut said.mark));
                said.proposed.as_mut().into_iter().for_each(|known| see(Number::Fence(known)));
            }
        }
        let Some(member) = &mut self.member else { return };
        see(Number::Fence(&mut member.top));
        see(Number::Fence(&mut member.mark));
        for entry in member.entries.values_mut() {
            attempt_numbers(&mut entry.asker.attempt, see);
            see(Number::Fence(&mut entry.ticket));
            see(Number::Fence(&mut entry.seen));
            see(Number::Fence(&mut entry.joined));
        }
        member.order = member.entries.iter().map(|(&id, entry)| (entry.ticket, id)).collect();
    }

    fn message_numbers(message: &mut Message, see: &mut See<'_>) {
        match message {
            Message::Register { attempt, above: ticket, .. }
            | Message::Propose { attempt, ticket, .. }
            | Message::View { attempt, mark: ticket, .. }
            | Message::Queued { attempt, mark: ticket, .. } => {
                attempt_numbers(attempt, see);
                see(Number::Fence(ticket));
            }
            Message::Settle { attempt, ticket, seen, .. } => {
                attempt_numbers(attempt, see);
                see(Number::Fence(ticket));
                see(Number::Fence(seen));
            }
            Message::Renewed { attempt, .. }
            | Message::Lost { attempt, .. }
            | Message::Release { attempt, .. } => attempt_numbers(attempt, see),
        }
    }

    fn durable_numbers(_record: &mut (), _see: &mut See<'_>) {}

    fn lease_end(alarm: &Alarm) -> LeaseEnd {
        match alarm {
            Alarm::Retry => LeaseEnd::Nothing,
            Alarm::LeaseEnd(bid) => LeaseEnd::Of(bid.claim),
            Alarm::Grace => LeaseEnd::Earlier,
        }
    }

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

fn attempt_numbers(attempt: &mut Attempt, see: &mut See<'_>) {
    see(Number::Clock(&mut attempt.clock));
}
