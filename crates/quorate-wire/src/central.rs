//! The messages and the record of `central`. The order of variants and fields is the format.

use std::sync::Arc;
use std::time::Duration;

use quorate_core::{Moment, Move, NodeId, Share, Unit};
use quorate_protocols::central::{Central, Message, Pool, Record, RecordLine};
use serde::{Deserialize, Serialize};

use crate::codec::{
    self, DecodeError, Wire, WireAttempt, WireClaim, WireLabels, WireShares, WireStamp, WireUnits,
    WireWanted, put_labels, take_labels,
};

#[derive(Serialize, Deserialize)]
enum WireMessage {
    /// The last: the requester's clock.
    Request(WireClaim, WireAttempt, WireWanted, u64),
    /// The last two: the echoed clock, the wait in nanoseconds.
    Grant(WireClaim, WireAttempt, WireShares, u64, u64),
    Release(WireClaim),
    Decline(WireClaim, WireAttempt),
    Renew(WireClaim, WireAttempt, WireShares, u64),
    Renewed(WireClaim, WireAttempt, u64),
    Lost(WireClaim, WireAttempt),
    /// The last two: the unit to leave and the one to have, each with its fence.
    Move(WireClaim, WireAttempt, (u32, u64), (u32, u64)),
    Refused(WireClaim, WireAttempt),
}

fn put_share(share: Share) -> (u32, u64) {
    (share.unit.0, share.fence.0)
}

fn take_move(from: (u32, u64), to: (u32, u64)) -> Result<Move, DecodeError> {
    let share = |(unit, fence)| Ok(Share { unit: Unit(unit), fence: codec::fence(fence)? });
    Ok(Move { from: share(from)?, to: share(to)? })
}

impl From<&Message> for WireMessage {
    fn from(message: &Message) -> Self {
        match message {
            Message::Request { claim, attempt, wanted, sent } => {
                WireMessage::Request((*claim).into(), (*attempt).into(), wanted.into(), sent.0)
            }
            Message::Grant { claim, attempt, shares, sent, waited } => WireMessage::Grant(
                (*claim).into(),
                (*attempt).into(),
                shares.into(),
                sent.0,
                codec::nanos(*waited),
            ),
            Message::Release { claim } => WireMessage::Release((*claim).into()),
            Message::Decline { claim, attempt } => {
                WireMessage::Decline((*claim).into(), (*attempt).into())
            }
            Message::Renew { claim, attempt, shares, sent } => {
                WireMessage::Renew((*claim).into(), (*attempt).into(), shares.into(), sent.0)
            }
            Message::Renewed { claim, attempt, sent } => {
                WireMessage::Renewed((*claim).into(), (*attempt).into(), sent.0)
            }
            Message::Lost { claim, attempt } => {
                WireMessage::Lost((*claim).into(), (*attempt).into())
            }
            Message::Move { claim, attempt, it } => {
                let (from, to) = (put_share(it.from), put_share(it.to));
                WireMessage::Move((*claim).into(), (*attempt).into(), from, to)
            }
            Message::Refused { claim, attempt } => {
                WireMessage::Refused((*claim).into(), (*attempt).into())
            }
        }
    }
}

impl TryFrom<WireMessage> for Message {
    type Error = DecodeError;

    fn try_from(message: WireMessage) -> Result<Self, DecodeError> {
        Ok(match message {
            WireMessage::Request(claim, attempt, wanted, sent) => Message::Request {
                claim: claim.into(),
                attempt: attempt.try_into()?,
                wanted: wanted.try_into()?,
                sent: Moment(sent),
            },
            WireMessage::Move(claim, attempt, from, to) => Message::Move {
                claim: claim.into(),
                attempt: attempt.try_into()?,
                it: take_move(from, to)?,
            },
            WireMessage::Refused(claim, attempt) => {
                Message::Refused { claim: claim.into(), attempt: attempt.try_into()? }
            }
            WireMessage::Grant(claim, attempt, shares, sent, waited) => Message::Grant {
                claim: claim.into(),
                attempt: attempt.try_into()?,
                shares: shares.try_into()?,
                sent: Moment(sent),
                waited: Duration::from_nanos(waited),
            },
            WireMessage::Release(claim) => Message::Release { claim: claim.into() },
            WireMessage::Decline(claim, attempt) => {
                Message::Decline { claim: claim.into(), attempt: attempt.try_into()? }
            }
            WireMessage::Renew(claim, attempt, shares, sent) => Message::Renew {
                claim: claim.into(),
                attempt: attempt.try_into()?,
                shares: shares.try_into()?,
                sent: Moment(sent),
            },
            WireMessage::Renewed(claim, attempt, sent) => Message::Renewed {
                claim: claim.into(),
                attempt: attempt.try_into()?,
                sent: Moment(sent),
            },
            WireMessage::Lost(claim, attempt) => {
                Message::Lost { claim: claim.into(), attempt: attempt.try_into()? }
            }
        })
    }
}

/// Version of the record, its first byte.
const RECORD_VERSION: u8 = 3;

#[derive(Serialize, Deserialize)]
struct WireRecord {
    version: u8,
    grace: bool,
    lines: Vec<WireLine>,
    drained: WireUnits,
    relabelled: Vec<(u32, WireLabels)>,
}

#[derive(Serialize, Deserialize)]
struct WireLine {
    claim: WireClaim,
    node: u32,
    attempt: WireAttempt,
    stamp: WireStamp,
    shares: WireShares,
    sent: u64,
    arrived: u64,
    waited: u64,
    adopted: bool,
    /// Moves that are not answered: from which unit, to which.
    moves: Vec<((u32, u64), (u32, u64))>,
}

impl From<RecordLine> for WireLine {
    fn from(line: RecordLine) -> Self {
        WireLine {
            claim: line.claim.into(),
            node: line.node.0,
            attempt: line.attempt.into(),
            stamp: line.stamp.into(),
            shares: (&line.shares).into(),
            sent: line.sent.0,
            arrived: line.arrived.0,
            waited: codec::nanos(line.waited),
            adopted: line.adopted,
            moves: line.moves.iter().map(|it| (put_share(it.from), put_share(it.to))).collect(),
        }
    }
}

impl TryFrom<WireLine> for RecordLine {
    type Error = DecodeError;

    fn try_from(line: WireLine) -> Result<Self, DecodeError> {
        Ok(RecordLine {
            claim: line.claim.into(),
            node: NodeId(line.node),
            attempt: line.attempt.try_into()?,
            stamp: line.stamp.try_into()?,
            shares: line.shares.try_into()?,
            sent: Moment(line.sent),
            arrived: Moment(line.arrived),
            waited: Duration::from_nanos(line.waited),
            adopted: line.adopted,
            moves: line
                .moves
                .into_iter()
                .map(|(from, to)| take_move(from, to))
                .collect::<Result<_, _>>()?,
        })
    }
}

impl Wire for Central {
    fn encode_message(message: &Message, out: &mut Vec<u8>) {
        codec::put(&WireMessage::from(message), out);
    }

    fn decode_message(bytes: &[u8]) -> Result<Message, DecodeError> {
        codec::take::<WireMessage>(bytes)?.try_into()
    }

    fn encode_record(record: &Record, out: &mut Vec<u8>) {
        let lines = record.lines().map(WireLine::from).collect();
        let (version, grace) = (RECORD_VERSION, record.grace());
        let drained = record.drained().into();
        let labels = record.relabelled().iter();
        let relabelled = labels.map(|(unit, labels)| (unit.0, put_labels(labels))).collect();
        codec::put(&WireRecord { version, grace, lines, drained, relabelled }, out);
    }

    fn decode_record(pool: &Pool, bytes: &[u8]) -> Result<Record, DecodeError> {
        let record: WireRecord = codec::take(bytes)?;
        if record.version != RECORD_VERSION {
            let text = format!("a record of version {}", record.version);
            return Err(DecodeError::Impossible(text));
        }
        let lines: Result<Vec<_>, _> = record.lines.into_iter().map(TryInto::try_into).collect();
        let drained: Arc<[Unit]> = record.drained.try_into()?;
        let labels = |(unit, labels)| Ok((Unit(unit), take_labels(labels)?));
        let relabelled: Result<_, DecodeError> =
            record.relabelled.into_iter().map(labels).collect();
        Record::from_lines(pool, record.grace, lines?, drained.to_vec(), relabelled?)
            .map_err(DecodeError::Impossible)
    }
}
