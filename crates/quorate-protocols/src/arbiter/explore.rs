//! What a model checker must know about `arbiter`.

use quorate_core::{ClaimId, Explorable, NodeId, Number, Numbers, numbers};

use super::Arbiter;
use super::booked::{Booked, State};
use super::floors::Floors;
use super::grantor::Grantor;
use super::local::{Local, Permit, PermitState};
use super::message::{End, GrantNumber, Message, Pick, Wish};
use super::naming::Picked;
use super::recovery::Record;

impl Explorable for Arbiter {
    fn promise(message: &Message) -> Option<ClaimId> {
        match message {
            Message::Grant { claim, .. } | Message::Renewed { claim, .. } => Some(*claim),
            _ => None,
        }
    }

    /// A requester that waits for the rest of a quorum has its own deadline for each permission it
    /// already has.
    fn relies_on(&self, arbiter: NodeId, claim: ClaimId) -> bool {
        let local = self.requester.claims.get(&claim);
        local.is_some_and(|local| {
            !local.is_held() && local.enlisted.get(&arbiter).is_some_and(|p| p.is_given())
        })
    }
}

impl Numbers for Arbiter {
    fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>)) {
        let Arbiter { requester, grantor } = self;
        requester.clock.numbers(see);
        requester.own.fence.numbers(see);
        requester.claims.numbers(see);
        grantor.numbers(see);
    }
}

/// Numbers of permissions count like fences: each from the largest of its boot.
impl Numbers for GrantNumber {
    fn numbers(&mut self, see: &mut dyn FnMut(Number<'_>)) {
        let GrantNumber(number) = self;
        numbers!(@see see number fence);
    }
}

numbers!(plain End, Wish);
numbers!(Pick { round: clock, names });
numbers!(Picked { pick, state: plain, used, asked });
numbers!(Floors { base, units });
numbers!(Record { grants, floors, unsure });
numbers!(Local {
    wanted,
    wish,
    stamp,
    draw: plain,
    token,
    enlisted,
    phase: plain,
    moves,
    pick,
    taken,
    shown,
    lacks,
    #[cfg(test)]
    failed,
});
numbers!(Permit {
    attempt,
    token,
    yielded,
    state,
    #[cfg(test)]
    inquired,
});
numbers!(enum PermitState {
    Asked { rings },
    Given { grant, floor, until, retold, told: clock, named: clock, watched },
    Shown,
});
numbers!(Grantor {
    clock,
    entries,
    queue,
    granted,
    used,
    locks,
    last,
    floors,
    boots,
    top,
    ceiling,
    opening,
    lag: plain,
    reclaims: plain,
});
numbers!(Booked {
    asker,
    stamp,
    wish,
    token,
    overtaken,
    sent,
    arrived,
    state,
    picked,
    offered,
    shared,
});
numbers!(enum State { Waiting, Granted { grant, inquired, waited, adopted } });
numbers!(enum Message {
    Request { claim, attempt, stamp, wish, token, sent },
    Grant { claim, attempt, grant, floor, sent, waited, taken, clock: clock },
    Queued { claim, attempt, taken, clock: clock },
    Inquire { claim, attempt, grant, clock: clock },
    Yield { claim, attempt, grant },
    Release { claim, attempt, end },
    Renew { claim, attempt, grant, stamp, wish, token, sent },
    Renewed { claim, attempt, grant, floor, round: clock, sent, clock: clock },
    Lost { claim, attempt, grant, clock: clock },
    Retoken { claim, attempt, grant, token },
    Retokened { claim, attempt, grant, token, clock: clock },
    Survey { clock: clock },
    Report { highest, boot, sure, clock: clock },
    Name { claim, attempt, grant, pick, used },
    Named { claim, attempt, grant, round: clock, floor, clock: clock },
    Taken { claim, attempt, grant, round: clock, taken, clock: clock },
    Roll { clock: clock },
    Alive { attempt, claims },
});
