//! What a model checker must know about `table`.

use std::sync::Arc;

use quorate_core::{ClaimId, Explorable, LeaseEnd, NodeId, Number, Shares};

use super::message::Message;
use super::section::Phase;
use super::sheet::{Errand, Sheet, State, Version};
use super::{Alarm, Record, Table};
use crate::attempt::Attempt;
use crate::opening::Opening;

type See<'a> = dyn FnMut(Number<'_>) + 'a;

/// Rounds and versions count like fences: up from the largest known.
impl Explorable for Table {
    const SHARED_LEASES: bool = true;

    fn numbers(&mut self, see: &mut See<'_>) {
        let requester = &mut self.requester;
        see(Number::Clock(&mut requester.clock.0));
        see(Number::Fence(&mut requester.round));
        for local in requester.claims.values_mut() {
            attempt_numbers(&mut local.attempt, see);
        }
        requester.errands.values_mut().for_each(|errand| errand_numbers(errand, see));
        if let Some(section) = &mut requester.section {
            attempt_numbers(&mut section.id, see);
            see(Number::Fence(&mut section.round));
            match &mut section.phase {
                Phase::Locking { known } => {
                    for known in known {
                        sheet_numbers(Arc::make_mut(&mut known.sheet), see);
                        see(Number::Fence(&mut known.floor));
                        overdue_numbers(&mut known.overdue, see);
                    }
                }
                Phase::Storing { sheet, errands, upshot, .. } => {
                    sheet_numbers(Arc::make_mut(sheet), see);
                    errands.values_mut().for_each(|errand| errand_numbers(errand, see));
                    for (_, _, attempt, shares) in &mut upshot.ended {
                        attempt_numbers(attempt, see);
                        share_numbers(shares, see);
                    }
                }
            }
        }
        let Some(member) = &mut self.member else { return };
        sheet_numbers(Arc::make_mut(&mut member.sheet), see);
        see(Number::Fence(&mut member.promised));
        see(Number::Fence(&mut member.floor));
        for lock in member.lock.iter_mut().chain(&mut member.queue) {
            attempt_numbers(&mut lock.section, see);
            see(Number::Fence(&mut lock.round));
        }
        if let Opening::Survey { reports } = &mut member.opening {
            for report in reports.values_mut() {
                see(Number::Fence(&mut report.round));
                see(Number::Fence(&mut report.fence));
            }
        }
        if let Some((round, fence)) = &mut member.written {
            see(Number::Fence(round));
            see(Number::Fence(fence));
        }
    }

    fn message_numbers(message: &mut Message, see: &mut See<'_>) {
        match message {
            Message::Lock { section, round } | Message::Refused { section, round, .. } => {
                attempt_numbers(section, see);
                see(Number::Fence(round));
            }
            Message::Locked { section, sheet, overdue, floor, .. } => {
                attempt_numbers(section, see);
                sheet_numbers(Arc::make_mut(sheet), see);
                overdue_numbers(overdue, see);
                see(Number::Fence(floor));
            }
            Message::Store { section, sheet } => {
                attempt_numbers(section, see);
                sheet_numbers(Arc::make_mut(sheet), see);
            }
            Message::Queued { section }
            | Message::Stored { section }
            | Message::Unlock { section, .. }
            | Message::Probe { section }
            | Message::Busy { section } => attempt_numbers(section, see),
            Message::Notify { attempt, shares, .. } => {
                attempt_numbers(attempt, see);
                share_numbers(shares, see);
            }
            Message::Lost { attempt, .. }
            | Message::Ask { attempt, .. }
            | Message::Told { attempt, .. } => attempt_numbers(attempt, see),
            Message::Survey => {}
            Message::Report { round, fence, .. } => {
                see(Number::Fence(round));
                see(Number::Fence(fence));
            }
        }
    }

    fn durable_numbers(record: &mut Record, see: &mut See<'_>) {
        see(Number::Fence(&mut record.round));
        see(Number::Fence(&mut record.fence));
        if let Some(sheet) = &mut record.sheet {
            sheet_numbers(sheet, see);
        }
    }

    fn lease_end(alarm: &Alarm) -> LeaseEnd {
        match alarm {
            Alarm::Retry | Alarm::Hold | Alarm::Survey => LeaseEnd::Nothing,
            Alarm::LeaseEnd(claim) => LeaseEnd::Of(*claim),
            Alarm::Grace => LeaseEnd::Earlier,
        }
    }

    fn promise(message: &Message) -> Option<ClaimId> {
        match message {
            Message::Notify { claim, .. } => Some(*claim),
            _ => None,
        }
    }

    /// On any member, also one that has the lease from somebody who went on from the same table.
    fn relies_on(&self, _member: NodeId, claim: ClaimId) -> bool {
        self.requester.section.as_ref().is_some_and(|section| section.relies_on(claim))
    }
}

fn attempt_numbers(attempt: &mut Attempt, see: &mut See<'_>) {
    see(Number::Clock(&mut attempt.clock));
}

fn errand_numbers(errand: &mut Errand, see: &mut See<'_>) {
    match errand {
        Errand::Ask | Errand::End(None) => {}
        Errand::Renew(shares) => share_numbers(shares, see),
        Errand::End(Some(attempt)) => attempt_numbers(attempt, see),
    }
}

fn version_numbers(version: &mut Version, see: &mut See<'_>) {
    see(Number::Fence(&mut version.round));
    see(Number::Fence(&mut version.count));
}

fn sheet_numbers(sheet: &mut Sheet, see: &mut See<'_>) {
    version_numbers(&mut sheet.version, see);
    see(Number::Fence(&mut sheet.fence));
    for row in sheet.rows.values_mut() {
        attempt_numbers(&mut row.attempt, see);
        if let State::Granted { shares, since } = &mut row.state {
            share_numbers(shares, see);
            version_numbers(since, see);
        }
    }
}

fn overdue_numbers(overdue: &mut Arc<[(ClaimId, Version)]>, see: &mut See<'_>) {
    Arc::make_mut(overdue).iter_mut().for_each(|(_, version)| version_numbers(version, see));
}

fn share_numbers(shares: &mut Shares, see: &mut See<'_>) {
    *shares = shares.map_fences(|mut fence| {
        see(Number::Fence(&mut fence));
        fence
    });
}
