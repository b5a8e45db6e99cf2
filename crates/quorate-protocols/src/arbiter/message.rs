//! What seats of an `arbiter` pool tell each other (arbiter spec 7.2, C1, C2, C6).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quorate_core::{ClaimId, Fence, Moment, Stamp, Unit, Units};

use crate::attempt::Attempt;

/// What a claim wants: so many units and, where units have names, which.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Wish {
    /// How many.
    pub units: Units,
    /// Which, ascending; `None` where the pool only counts.
    pub names: Option<Arc<[Unit]>>,
}

impl fmt::Display for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(names) = &self.names else { return write!(f, "h{}", self.units) };
        write_names(f, names)
    }
}

/// Units that a claim picks once it has permissions that only count (arbiter spec C7).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pick {
    /// Its requester's logical clock: a later pick of the same claim has a larger one.
    pub round: u64,
    /// Which units, ascending; none while the claim finds too few that it could have.
    pub names: Arc<[Unit]>,
}

impl fmt::Display for Pick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{} ", self.round)?;
        write_names(f, &self.names)
    }
}

fn write_names(f: &mut fmt::Formatter<'_>, names: &[Unit]) -> fmt::Result {
    for (position, unit) in names.iter().enumerate() {
        let comma = if position > 0 { "," } else { "" };
        write!(f, "{comma}{unit}")?;
    }
    Ok(())
}

/// One permission of one arbiter, unique among all that arbiter ever gives (arbiter spec 7.1, `g`):
/// a permission given again after it was yielded is another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct GrantNumber(pub u64);

impl GrantNumber {
    /// Below all that boot number `boot` will give, and above all that earlier boots gave.
    pub fn floor(boot: u32) -> GrantNumber {
        GrantNumber(Fence::floor(boot).0)
    }

    /// The next one.
    pub fn next(self) -> GrantNumber {
        GrantNumber(Fence(self.0).next().0)
    }
}

impl fmt::Display for GrantNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let boot = self.0 >> 40;
        write!(f, "g{}", self.0 & ((1 << 40) - 1))?;
        if boot > 0 { write!(f, "b{boot}") } else { Ok(()) }
    }
}

/// What a requester says of a permission that it gives back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum End {
    /// Nobody used it.
    Unused,
    /// It may have been used.
    Used,
    /// Its client says that the claim is over: whatever earlier lives of the requester were given
    /// for it may have been used, and is not any more.
    Over,
}

/// See the table in [the module's documentation](super).
///
/// `clock` is always the sender's logical clock; `attempt` the requester's try at this arbiter.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs, reason = "the fields are described once, here and below")]
pub enum Message {
    /// `stamp`: how old the claim is. `token`: the fence it will have if no arbiter objects.
    /// `sent`: the requester's clock, to be echoed.
    Request {
        claim: ClaimId,
        attempt: Attempt,
        stamp: Stamp,
        wish: Wish,
        token: Fence,
        sent: Moment,
    },
    /// `floor`: the largest fence of those units that the arbiter has seen end. `sent`: echo of the
    /// request that put the claim in the queue. `waited`: for how long it has been there. `taken`:
    /// units that others have picked, where the claim has yet to pick its own; where units are
    /// locks and the claim asks again, those that others have or wait for: it may wait elsewhere.
    Grant {
        claim: ClaimId,
        attempt: Attempt,
        grant: GrantNumber,
        floor: Fence,
        sent: Moment,
        waited: Duration,
        taken: Arc<[Unit]>,
        clock: u64,
    },
    /// The answer to a request that repeats itself, so that a queue is not mistaken for a dead
    /// arbiter. `taken`: units that others have or wait for, where units are locks; a claim that
    /// could have others instead is told at once.
    Queued { claim: ClaimId, attempt: Attempt, taken: Arc<[Unit]>, clock: u64 },
    /// An older claim needs this permission.
    Inquire { claim: ClaimId, attempt: Attempt, grant: GrantNumber, clock: u64 },
    /// It may have it; the claim waits again, at its age.
    Yield { claim: ClaimId, attempt: Attempt, grant: GrantNumber },
    /// The try is over here.
    Release { claim: ClaimId, attempt: Attempt, end: End },
    /// `grant`: the permission to be kept; `None` if the requester was restarted and does not know.
    /// All else is for an arbiter that was.
    Renew {
        claim: ClaimId,
        attempt: Attempt,
        grant: Option<GrantNumber>,
        stamp: Stamp,
        wish: Wish,
        token: Fence,
        sent: Moment,
    },
    /// `sent`: echo of the renewal. `round`: the pick that the arbiter has locked for it, or 0.
    Renewed {
        claim: ClaimId,
        attempt: Attempt,
        grant: GrantNumber,
        floor: Fence,
        round: u64,
        sent: Moment,
        clock: u64,
    },
    /// `grant`: the permission that is no more; `None` says it of the whole attempt.
    Lost { claim: ClaimId, attempt: Attempt, grant: Option<GrantNumber>, clock: u64 },
    /// Its fence will be this, larger than the one in the request.
    Retoken { claim: ClaimId, attempt: Attempt, grant: GrantNumber, token: Fence },
    /// The arbiter knows.
    Retokened { claim: ClaimId, attempt: Attempt, grant: GrantNumber, token: Fence, clock: u64 },
    /// From an arbiter that forgot, to another.
    Survey { clock: u64 },
    /// `highest`: the largest fence the other one has known. `boot`: how often it was restarted.
    /// `sure`: it has forgotten none.
    Report { highest: Fence, boot: u32, sure: bool, clock: u64 },
    /// The claim has a permission and picks its units. `used`: its client uses them already.
    Name { claim: ClaimId, attempt: Attempt, grant: GrantNumber, pick: Pick, used: bool },
    /// They are locked for it. `floor`: the largest fence of theirs that the arbiter has seen end.
    Named {
        claim: ClaimId,
        attempt: Attempt,
        grant: GrantNumber,
        round: u64,
        floor: Fence,
        clock: u64,
    },
    /// Pick others, unless your client uses them. `taken`: those that it cannot have.
    Taken {
        claim: ClaimId,
        attempt: Attempt,
        grant: GrantNumber,
        round: u64,
        taken: Arc<[Unit]>,
        clock: u64,
    },
    /// Somebody waits for what claims of yours have here: which of them are not over?
    Roll { clock: u64 },
    /// Of all tries up to this one, these.
    Alive { attempt: Attempt, claims: Arc<[ClaimId]> },
}

impl Message {
    pub(super) const KINDS: &'static [&'static str] = &[
        "request",
        "grant",
        "queued",
        "inquire",
        "yield",
        "release",
        "renew",
        "renewed",
        "lost",
        "retoken",
        "retokened",
        "survey",
        "report",
        "name",
        "named",
        "taken",
        "roll",
        "alive",
    ];

    pub(super) fn kind(&self) -> usize {
        match self {
            Message::Request { .. } => 0,
            Message::Grant { .. } => 1,
            Message::Queued { .. } => 2,
            Message::Inquire { .. } => 3,
            Message::Yield { .. } => 4,
            Message::Release { .. } => 5,
            Message::Renew { .. } => 6,
            Message::Renewed { .. } => 7,
            Message::Lost { .. } => 8,
            Message::Retoken { .. } => 9,
            Message::Retokened { .. } => 10,
            Message::Survey { .. } => 11,
            Message::Report { .. } => 12,
            Message::Name { .. } => 13,
            Message::Named { .. } => 14,
            Message::Taken { .. } => 15,
            Message::Roll { .. } => 16,
            Message::Alive { .. } => 17,
        }
    }

    pub(super) fn is_for_arbiter(&self) -> bool {
        match self {
            Message::Request { .. }
            | Message::Yield { .. }
            | Message::Release { .. }
            | Message::Renew { .. }
            | Message::Retoken { .. }
            | Message::Survey { .. }
            | Message::Report { .. }
            | Message::Name { .. }
            | Message::Alive { .. } => true,
            Message::Grant { .. }
            | Message::Queued { .. }
            | Message::Inquire { .. }
            | Message::Renewed { .. }
            | Message::Lost { .. }
            | Message::Retokened { .. }
            | Message::Named { .. }
            | Message::Taken { .. }
            | Message::Roll { .. } => false,
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::KINDS[self.kind()])?;
        match self {
            Message::Request { claim, attempt, stamp, wish, .. } => {
                write!(f, " {claim} {wish} {stamp} {attempt}")
            }
            Message::Grant { claim, attempt, grant, .. }
            | Message::Inquire { claim, attempt, grant, .. }
            | Message::Yield { claim, attempt, grant }
            | Message::Renewed { claim, attempt, grant, .. } => {
                write!(f, " {claim} {attempt} {grant}")
            }
            Message::Queued { claim, attempt, .. } => write!(f, " {claim} {attempt}"),
            Message::Release { claim, attempt, end } => {
                write!(f, " {claim} {attempt}{}", if *end == End::Unused { "" } else { " held" })
            }
            Message::Renew { claim, attempt, grant, .. }
            | Message::Lost { claim, attempt, grant, .. } => match grant {
                Some(grant) => write!(f, " {claim} {attempt} {grant}"),
                None => write!(f, " {claim} {attempt}"),
            },
            Message::Retoken { claim, attempt, grant, token }
            | Message::Retokened { claim, attempt, grant, token, .. } => {
                write!(f, " {claim} {attempt} {grant} {token}")
            }
            Message::Name { claim, attempt, grant, pick, used } => {
                write!(f, " {claim} {attempt} {grant} {pick}{}", if *used { " used" } else { "" })
            }
            Message::Named { claim, attempt, grant, round, .. } => {
                write!(f, " {claim} {attempt} {grant} r{round}")
            }
            Message::Taken { claim, attempt, grant, round, taken, .. } => {
                write!(f, " {claim} {attempt} {grant} r{round} ")?;
                write_names(f, taken)
            }
            Message::Alive { attempt, claims } => {
                write!(f, " {attempt}")?;
                claims.iter().try_for_each(|claim| write!(f, " {claim}"))
            }
            Message::Survey { .. } | Message::Roll { .. } => Ok(()),
            Message::Report { highest, sure, .. } => {
                write!(f, " {highest}{}", if *sure { "" } else { " unsure" })
            }
        }
    }
}
