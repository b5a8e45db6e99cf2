//! The messages and the record of `arbiter`. The order of variants and fields is the format.

use std::time::Duration;

use std::sync::Arc;

use quorate_core::{Fence, Moment, NodeId, UNITS_MAX, Unit};
use quorate_protocols::arbiter::{
    Arbiter, End, GrantNumber, Message, Pick, Pool, Record, RecordLine, RecordLines, Wish,
};
use serde::{Deserialize, Serialize};

use crate::codec::{self, DecodeError, Wire, WireAttempt, WireClaim, WireShares, WireStamp};

/// How many units, and which if they have names.
#[derive(Serialize, Deserialize)]
struct WireWish(u32, Option<Vec<u32>>);

impl From<&Wish> for WireWish {
    fn from(wish: &Wish) -> Self {
        let names = wish.names.as_deref().map(from_units);
        WireWish(wish.units.get(), names)
    }
}

impl TryFrom<WireWish> for Wish {
    type Error = DecodeError;

    fn try_from(wish: WireWish) -> Result<Self, DecodeError> {
        let units = codec::units(wish.0)?;
        let names = wish.1.map(|names| {
            if names.len() != wish.0 as usize {
                return Err(DecodeError::Impossible("names that are not so many units".into()));
            }
            to_units(names)
        });
        Ok(Wish { units, names: names.transpose()? })
    }
}

fn from_units(units: &[Unit]) -> Vec<u32> {
    units.iter().map(|unit| unit.0).collect()
}

fn to_units(names: Vec<u32>) -> Result<Arc<[Unit]>, DecodeError> {
    let ascending = names.windows(2).all(|pair| pair[0] < pair[1]);
    let inside = names.last().is_none_or(|unit| *unit < UNITS_MAX);
    if !ascending || !inside {
        return Err(DecodeError::Impossible("names that are not units in order".into()));
    }
    Ok(names.into_iter().map(Unit).collect())
}

/// The round, and the units.
#[derive(Serialize, Deserialize)]
struct WirePick(u64, Vec<u32>);

impl From<&Pick> for WirePick {
    fn from(pick: &Pick) -> Self {
        WirePick(pick.round, from_units(&pick.names))
    }
}

impl TryFrom<WirePick> for Pick {
    type Error = DecodeError;

    fn try_from(pick: WirePick) -> Result<Self, DecodeError> {
        Ok(Pick { round: codec::clock(pick.0)?, names: to_units(pick.1)? })
    }
}

#[derive(Serialize, Deserialize)]
enum WireMessage {
    /// The last two: the fence, the requester's clock.
    Request(WireClaim, WireAttempt, WireStamp, WireWish, u64, u64),
    /// Number, floor, echoed clock, wait in nanoseconds, units taken, logical clock.
    Grant(WireClaim, WireAttempt, u64, u64, u64, u64, Vec<u32>, u64),
    /// Units taken, logical clock.
    Queued(WireClaim, WireAttempt, Vec<u32>, u64),
    Inquire(WireClaim, WireAttempt, u64, u64),
    Yield(WireClaim, WireAttempt, u64),
    /// The last: 0 unused, 1 used, 2 over.
    Release(WireClaim, WireAttempt, u8),
    Renew(WireClaim, WireAttempt, Option<u64>, WireStamp, WireWish, u64, u64),
    /// Number, floor, round, echoed clock, logical clock.
    Renewed(WireClaim, WireAttempt, u64, u64, u64, u64, u64),
    Lost(WireClaim, WireAttempt, Option<u64>, u64),
    Retoken(WireClaim, WireAttempt, u64, u64),
    Retokened(WireClaim, WireAttempt, u64, u64, u64),
    Survey(u64),
    Report(u64, u32, bool, u64),
    Name(WireClaim, WireAttempt, u64, WirePick, bool),
    /// Number, round, floor, logical clock.
    Named(WireClaim, WireAttempt, u64, u64, u64, u64),
    /// Number, round, units taken, logical clock.
    Taken(WireClaim, WireAttempt, u64, u64, Vec<u32>, u64),
    Roll(u64),
    Alive(WireAttempt, Vec<WireClaim>),
}

impl From<&Message> for WireMessage {
    fn from(message: &Message) -> Self {
        match message {
            Message::Request { claim, attempt, stamp, wish, token, sent } => WireMessage::Request(
                (*claim).into(),
                (*attempt).into(),
                (*stamp).into(),
                wish.into(),
                token.0,
                sent.0,
            ),
            Message::Grant { claim, attempt, grant, floor, sent, waited, taken, clock } => {
                let (waited, taken) = (codec::nanos(*waited), from_units(taken));
                let (claim, attempt) = ((*claim).into(), (*attempt).into());
                WireMessage::Grant(claim, attempt, grant.0, floor.0, sent.0, waited, taken, *clock)
            }
            Message::Queued { claim, attempt, taken, clock } => {
                let taken = from_units(taken);
                WireMessage::Queued((*claim).into(), (*attempt).into(), taken, *clock)
            }
            Message::Inquire { claim, attempt, grant, clock } => {
                WireMessage::Inquire((*claim).into(), (*attempt).into(), grant.0, *clock)
            }
            Message::Yield { claim, attempt, grant } => {
                WireMessage::Yield((*claim).into(), (*attempt).into(), grant.0)
            }
            Message::Release { claim, attempt, end } => {
                let end = match end {
                    End::Unused => 0,
                    End::Used => 1,
                    End::Over => 2,
                };
                WireMessage::Release((*claim).into(), (*attempt).into(), end)
            }
            Message::Renew { claim, attempt, grant, stamp, wish, token, sent } => {
                WireMessage::Renew(
                    (*claim).into(),
                    (*attempt).into(),
                    grant.map(|grant| grant.0),
                    (*stamp).into(),
                    wish.into(),
                    token.0,
                    sent.0,
                )
            }
            Message::Renewed { claim, attempt, grant, floor, round, sent, clock } => {
                let (claim, attempt) = ((*claim).into(), (*attempt).into());
                WireMessage::Renewed(claim, attempt, grant.0, floor.0, *round, sent.0, *clock)
            }
            Message::Lost { claim, attempt, grant, clock } => {
                let grant = grant.map(|grant| grant.0);
                WireMessage::Lost((*claim).into(), (*attempt).into(), grant, *clock)
            }
            Message::Retoken { claim, attempt, grant, token } => {
                WireMessage::Retoken((*claim).into(), (*attempt).into(), grant.0, token.0)
            }
            Message::Retokened { claim, attempt, grant, token, clock } => {
                let (claim, attempt) = ((*claim).into(), (*attempt).into());
                WireMessage::Retokened(claim, attempt, grant.0, token.0, *clock)
            }
            Message::Survey { clock } => WireMessage::Survey(*clock),
            Message::Report { highest, boot, sure, clock } => {
                WireMessage::Report(highest.0, *boot, *sure, *clock)
            }
            Message::Name { claim, attempt, grant, pick, used } => {
                let (claim, attempt) = ((*claim).into(), (*attempt).into());
                WireMessage::Name(claim, attempt, grant.0, pick.into(), *used)
            }
            Message::Named { claim, attempt, grant, round, floor, clock } => {
                let (claim, attempt) = ((*claim).into(), (*attempt).into());
                WireMessage::Named(claim, attempt, grant.0, *round, floor.0, *clock)
            }
            Message::Taken { claim, attempt, grant, round, taken, clock } => {
                let (claim, attempt) = ((*claim).into(), (*attempt).into());
                let taken = from_units(taken);
                WireMessage::Taken(claim, attempt, grant.0, *round, taken, *clock)
            }
            Message::Roll { clock } => WireMessage::Roll(*clock),
            Message::Alive { attempt, claims } => {
                let claims = claims.iter().map(|&claim| claim.into()).collect();
                WireMessage::Alive((*attempt).into(), claims)
            }
        }
    }
}

/// Numbers of permissions are made like fences, and bounded like them.
fn number(number: u64) -> Result<GrantNumber, DecodeError> {
    codec::fence(number).map(|Fence(number)| GrantNumber(number))
}

impl TryFrom<WireMessage> for Message {
    type Error = DecodeError;

    fn try_from(message: WireMessage) -> Result<Self, DecodeError> {
        Ok(match message {
            WireMessage::Request(claim, attempt, stamp, wish, token, sent) => Message::Request {
                claim: claim.into(),
                attempt: attempt.try_into()?,
                stamp: stamp.try_into()?,
                wish: wish.try_into()?,
                token: codec::fence(token)?,
                sent: Moment(sent),
            },
            WireMessage::Grant(claim, attempt, grant, floor, sent, waited, taken, clock) => {
                Message::Grant {
                    claim: claim.into(),
                    attempt: attempt.try_into()?,
                    grant: number(grant)?,
                    floor: codec::fence(floor)?,
                    sent: Moment(sent),
                    waited: Duration::from_nanos(waited),
                    taken: to_units(taken)?,
                    clock: codec::clock(clock)?,
                }
            }
            WireMessage::Queued(claim, attempt, taken, clock) => Message::Queued {
                claim: claim.into(),
                attempt: attempt.try_into()?,
                taken: to_units(taken)?,
                clock: codec::clock(clock)?,
            },
            WireMessage::Inquire(claim, attempt, grant, clock) => Message::Inquire {
                claim: claim.into(),
                attempt: attempt.try_into()?,
                grant: number(grant)?,
                clock: codec::clock(clock)?,
            },
            WireMessage::Yield(claim, attempt, grant) => Message::Yield {
                claim: claim.into(),
                attempt: attempt.try_into()?,
                grant: number(grant)?,
            },
            WireMessage::Release(claim, attempt, end) => Message::Release {
                claim: claim.into(),
                attempt: attempt.try_into()?,
                end: match end {
                    0 => End::Unused,
                    1 => End::Used,
                    2 => End::Over,
                    _ => return Err(DecodeError::Impossible(format!("a release of kind {end}"))),
                },
            },
            WireMessage::Renew(claim, attempt, grant, stamp, wish, token, sent) => Message::Renew {
                claim: claim.into(),
                attempt: attempt.try_into()?,
                grant: grant.map(number).transpose()?,
                stamp: stamp.try_into()?,
                wish: wish.try_into()?,
                token: codec::fence(token)?,
                sent: Moment(sent),
            },
            WireMessage::Renewed(claim, attempt, grant, floor, round, sent, clock) => {
                Message::Renewed {
                    claim: claim.into(),
                    attempt: attempt.try_into()?,
                    grant: number(grant)?,
                    floor: codec::fence(floor)?,
                    round: codec::clock(round)?,
                    sent: Moment(sent),
                    clock: codec::clock(clock)?,
                }
            }
            WireMessage::Lost(claim, attempt, grant, clock) => Message::Lost {
                claim: claim.into(),
                attempt: attempt.try_into()?,
                grant: grant.map(number).transpose()?,
                clock: codec::clock(clock)?,
            },
            WireMessage::Retoken(claim, attempt, grant, token) => Message::Retoken {
                claim: claim.into(),
                attempt: attempt.try_into()?,
                grant: number(grant)?,
                token: codec::fence(token)?,
            },
            WireMessage::Retokened(claim, attempt, grant, token, clock) => Message::Retokened {
                claim: claim.into(),
                attempt: attempt.try_into()?,
                grant: number(grant)?,
                token: codec::fence(token)?,
                clock: codec::clock(clock)?,
            },
            WireMessage::Survey(clock) => Message::Survey { clock: codec::clock(clock)? },
            WireMessage::Report(highest, boot, sure, clock) => Message::Report {
                highest: codec::fence(highest)?,
                boot: codec::boot(boot)?,
                sure,
                clock: codec::clock(clock)?,
            },
            WireMessage::Name(claim, attempt, grant, pick, used) => Message::Name {
                claim: claim.into(),
                attempt: attempt.try_into()?,
                grant: number(grant)?,
                pick: pick.try_into()?,
                used,
            },
            WireMessage::Named(claim, attempt, grant, round, floor, clock) => Message::Named {
                claim: claim.into(),
                attempt: attempt.try_into()?,
                grant: number(grant)?,
                round: codec::clock(round)?,
                floor: codec::fence(floor)?,
                clock: codec::clock(clock)?,
            },
            WireMessage::Taken(claim, attempt, grant, round, taken, clock) => Message::Taken {
                claim: claim.into(),
                attempt: attempt.try_into()?,
                grant: number(grant)?,
                round: codec::clock(round)?,
                taken: to_units(taken)?,
                clock: codec::clock(clock)?,
            },
            WireMessage::Roll(clock) => Message::Roll { clock: codec::clock(clock)? },
            WireMessage::Alive(attempt, claims) => Message::Alive {
                attempt: attempt.try_into()?,
                claims: claims.into_iter().map(Into::into).collect(),
            },
        })
    }
}

/// Version of the record, its first byte.
const RECORD_VERSION: u8 = 2;

#[derive(Serialize, Deserialize)]
struct WireRecord {
    version: u8,
    unsure: bool,
    base: u64,
    floors: WireShares,
    lines: Vec<WireLine>,
}

#[derive(Serialize, Deserialize)]
struct WireLine {
    claim: WireClaim,
    node: u32,
    attempt: WireAttempt,
    stamp: WireStamp,
    wish: WireWish,
    token: u64,
    overtaken: u32,
    sent: u64,
    arrived: u64,
    grant: u64,
    inquired: bool,
    waited: u64,
    /// Bit 0: adopted. Bit 1: shared.
    history: u8,
    pick: Option<WirePick>,
}

impl From<RecordLine> for WireLine {
    fn from(line: RecordLine) -> Self {
        WireLine {
            claim: line.claim.into(),
            node: line.node.0,
            attempt: line.attempt.into(),
            stamp: line.stamp.into(),
            wish: (&line.wish).into(),
            token: line.token.0,
            overtaken: line.overtaken,
            sent: line.sent.0,
            arrived: line.arrived.0,
            grant: line.grant.0,
            inquired: line.inquired,
            waited: codec::nanos(line.waited),
            history: u8::from(line.adopted) | u8::from(line.shared) << 1,
            pick: line.pick.as_ref().map(Into::into),
        }
    }
}

impl TryFrom<WireLine> for RecordLine {
    type Error = DecodeError;

    fn try_from(line: WireLine) -> Result<Self, DecodeError> {
        if line.history > 3 {
            let text = format!("a permission of kind {}", line.history);
            return Err(DecodeError::Impossible(text));
        }
        Ok(RecordLine {
            claim: line.claim.into(),
            node: NodeId(line.node),
            attempt: line.attempt.try_into()?,
            stamp: line.stamp.try_into()?,
            wish: line.wish.try_into()?,
            token: codec::fence(line.token)?,
            overtaken: line.overtaken,
            sent: Moment(line.sent),
            arrived: Moment(line.arrived),
            grant: number(line.grant)?,
            inquired: line.inquired,
            waited: Duration::from_nanos(line.waited),
            adopted: line.history & 1 != 0,
            shared: line.history & 2 != 0,
            pick: line.pick.map(TryInto::try_into).transpose()?,
        })
    }
}

impl Wire for Arbiter {
    fn encode_message(message: &Message, out: &mut Vec<u8>) {
        codec::put(&WireMessage::from(message), out);
    }

    fn decode_message(bytes: &[u8]) -> Result<Message, DecodeError> {
        codec::take::<WireMessage>(bytes)?.try_into()
    }

    fn encode_record(record: &Record, out: &mut Vec<u8>) {
        let RecordLines { unsure, base, floors, lines } = record.lines();
        let record = WireRecord {
            version: RECORD_VERSION,
            unsure,
            base: base.0,
            floors: (&floors).into(),
            lines: lines.into_iter().map(WireLine::from).collect(),
        };
        codec::put(&record, out);
    }

    fn decode_record(pool: &Pool, bytes: &[u8]) -> Result<Record, DecodeError> {
        let record: WireRecord = codec::take(bytes)?;
        if record.version != RECORD_VERSION {
            let text = format!("a record of version {}", record.version);
            return Err(DecodeError::Impossible(text));
        }
        let lines: Result<Vec<_>, _> = record.lines.into_iter().map(TryInto::try_into).collect();
        let lines = RecordLines {
            unsure: record.unsure,
            base: codec::fence(record.base)?,
            floors: record.floors.try_into()?,
            lines: lines?,
        };
        Record::from_lines(pool, lines).map_err(DecodeError::Impossible)
    }
}
