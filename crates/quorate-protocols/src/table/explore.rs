//! What a model checker must know about `table`.

use quorate_core::{ClaimId, Explorable, NodeId, Number, Numbers, numbers};

use super::message::Message;
use super::requester::Wait;
use super::sheet::{Asking, Errand, Row, Sheet, State, Upshot, Version};
use super::{Record, Table};
use crate::home::Asked;

impl Explorable for Table {
    const SHARED_LEASES: bool = true;

    fn promise(message: &Message) -> Option<ClaimId> {
        match message {
            Message::Notify { claim, .. } => Some(*claim),
            _ => None,
        }
    }

    /// On any member, also one that has the lease from somebody who went on from the same table.
    fn relies_on(&self, _member: NodeId, claim: ClaimId) -> bool {
        self.requester.own.section.as_ref().is_some_and(|section| section.relies_on(claim))
    }
}

impl Numbers for Table {
    fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>)) {
        let Table { requester, member } = self;
        requester.clock.numbers(see);
        requester.own.round.numbers(see);
        requester.claims.numbers(see);
        requester.own.errands.numbers(see);
        requester.own.section.numbers(see);
        member.numbers(see);
    }
}

// Rounds and versions count like fences: up from the largest known.
numbers!(Asked<Wait> { wanted, attempt, phase: plain, holds });
numbers!(Version { round, count });
numbers!(Sheet { version, fence, rows });
numbers!(Row { node, attempt, age: plain, wanted, passed, shared, others, state });
numbers!(Asking { node, attempt, sent, waited });
numbers!(enum State { Waiting { sent, waited, absent, absences }, Granted { shares, since } });
numbers!(
    enum Errand {
        Ask,
        Renew(shares),
        End(attempt),
    }
);
numbers!(Upshot { granted, ended, clashes });
numbers!(Record { round, fence, unsure, sheet });
numbers!(enum Message {
    Lock { section, round },
    Queued { section },
    Locked { section, sheet, known_for, overdue, floor },
    Refused { section, round, closed },
    Store { section, sheet },
    Stored { section },
    Unlock { section, clean },
    Probe { section },
    Busy { section },
    Notify { claim, attempt, shares, sent, waited },
    Lost { claim, attempt },
    Ask { claim, attempt },
    Told { claim, attempt, waits },
    Survey,
    Report { round, fence, boot, sure, sheet },
});
