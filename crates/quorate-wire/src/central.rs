//! The messages and the record of `central`. The order of variants and fields is the format.

use std::time::Duration;

use quorate_core::{LINES_MAX, Line, Moment, NodeId};
use quorate_protocols::central::{Central, Message, Pool, Record, RecordLine};
use serde::{Deserialize, Serialize};

use crate::codec::{
    self, DecodeError, Wire, WireAttempt, WireClaim, WireShares, WireStamp, WireUnits,
};

#[derive(Serialize, Deserialize)]
enum WireMessage {
    Request(WireClaim, WireAttempt, u32, u64),
    /// The last two: the echoed clock, the wait in nanoseconds.
    Grant(WireClaim, WireAttempt, WireShares, u64, u64),
    Release(WireClaim),
    Decline(WireClaim, WireAttempt),
    Renew(WireClaim, WireAttempt, WireShares, u64),
    Renewed(WireClaim, WireAttempt, u64),
    Lost(WireClaim, WireAttempt),
    /// A request for units that differ: how many of which, line by line.
    Choose(WireClaim, WireAttempt, Vec<(u32, WireUnits)>, u64),
}

impl From<&Message> for WireMessage {
    fn from(message: &Message) -> Self {
        match message {
            Message::Request { claim, attempt, units, lines: None, sent } => {
                WireMessage::Request((*claim).into(), (*attempt).into(), units.get(), sent.0)
            }
            Message::Request { claim, attempt, lines: Some(lines), sent, .. } => {
                let lines = lines.iter().map(|line| (line.units.get(), (&*line.among).into()));
                let lines = lines.collect();
                WireMessage::Choose((*claim).into(), (*attempt).into(), lines, sent.0)
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
        }
    }
}

impl TryFrom<WireMessage> for Message {
    type Error = DecodeError;

    fn try_from(message: WireMessage) -> Result<Self, DecodeError> {
        Ok(match message {
            WireMessage::Request(claim, attempt, units, sent) => Message::Request {
                claim: claim.into(),
                attempt: attempt.try_into()?,
                units: codec::units(units)?,
                lines: None,
                sent: Moment(sent),
            },
            WireMessage::Choose(claim, attempt, lines, sent) => {
                if lines.len() > LINES_MAX {
                    let text = format!("{} lines in a claim", lines.len());
                    return Err(DecodeError::Impossible(text));
                }
                let line = |(count, among): (u32, WireUnits)| {
                    Ok(Line { units: codec::units(count)?, among: among.try_into()? })
                };
                let lines: Vec<Line> =
                    lines.into_iter().map(line).collect::<Result<_, DecodeError>>()?;
                // Each is at most 2^20, and there are few.
                let sum = lines.iter().map(|line| line.units.get()).sum();
                Message::Request {
                    claim: claim.into(),
                    attempt: attempt.try_into()?,
                    units: codec::units(sum)?,
                    lines: Some(lines.into()),
                    sent: Moment(sent),
                }
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
const RECORD_VERSION: u8 = 1;

#[derive(Serialize, Deserialize)]
struct WireRecord {
    version: u8,
    grace: bool,
    lines: Vec<WireLine>,
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
        codec::put(&WireRecord { version: RECORD_VERSION, grace: record.grace(), lines }, out);
    }

    fn decode_record(pool: &Pool, bytes: &[u8]) -> Result<Record, DecodeError> {
        let record: WireRecord = codec::take(bytes)?;
        if record.version != RECORD_VERSION {
            let text = format!("a record of version {}", record.version);
            return Err(DecodeError::Impossible(text));
        }
        let lines: Result<Vec<_>, _> = record.lines.into_iter().map(TryInto::try_into).collect();
        Record::from_lines(pool, record.grace, lines?).map_err(DecodeError::Impossible)
    }
}
