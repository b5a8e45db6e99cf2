//! The messages and the record of `table`. The order of variants and fields is the format.

use std::sync::Arc;
use std::time::Duration;

use quorate_core::{ClaimId, Moment, NodeId};
use quorate_protocols::table::{Message, Pool, Record, Row, Sheet, State, Table, Version};
use serde::{Deserialize, Serialize};

use crate::codec::{self, DecodeError, Wire, WireAttempt, WireClaim, WireShares, WireWanted};

/// Round, count.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct WireVersion(u64, u64);

impl From<Version> for WireVersion {
    fn from(version: Version) -> Self {
        WireVersion(version.round.0, version.count.0)
    }
}

impl TryFrom<WireVersion> for Version {
    type Error = DecodeError;

    fn try_from(WireVersion(round, count): WireVersion) -> Result<Self, DecodeError> {
        Ok(Version { round: codec::fence(round)?, count: codec::fence(count)? })
    }
}

/// Version, last fence, the claims in the order of their names.
#[derive(Serialize, Deserialize)]
struct WireSheet(WireVersion, u64, Vec<WireRow>);

#[derive(Serialize, Deserialize)]
struct WireRow {
    claim: WireClaim,
    node: u32,
    attempt: WireAttempt,
    age: u64,
    wanted: WireWanted,
    passed: u32,
    state: WireState,
}

#[derive(Serialize, Deserialize)]
enum WireState {
    /// The clock of its home, and for how long since, in nanoseconds.
    Waiting(u64, u64),
    Granted(WireShares, WireVersion),
}

impl From<(&ClaimId, &Row)> for WireRow {
    fn from((claim, row): (&ClaimId, &Row)) -> Self {
        WireRow {
            claim: (*claim).into(),
            node: row.node.0,
            attempt: row.attempt.into(),
            age: row.age,
            wanted: (&row.wanted).into(),
            passed: row.passed,
            state: match &row.state {
                State::Waiting { sent, waited } => {
                    WireState::Waiting(sent.0, codec::nanos(*waited))
                }
                State::Granted { shares, since } => {
                    WireState::Granted(shares.into(), (*since).into())
                }
            },
        }
    }
}

impl TryFrom<WireRow> for (ClaimId, Row) {
    type Error = DecodeError;

    fn try_from(row: WireRow) -> Result<Self, DecodeError> {
        let state = match row.state {
            WireState::Waiting(sent, waited) => {
                State::Waiting { sent: Moment(sent), waited: Duration::from_nanos(waited) }
            }
            WireState::Granted(shares, since) => {
                State::Granted { shares: shares.try_into()?, since: since.try_into()? }
            }
        };
        let of = Row {
            node: NodeId(row.node),
            attempt: row.attempt.try_into()?,
            age: codec::clock(row.age)?,
            wanted: row.wanted.try_into()?,
            passed: row.passed,
            state,
        };
        Ok((row.claim.into(), of))
    }
}

impl From<&Sheet> for WireSheet {
    fn from(sheet: &Sheet) -> Self {
        let rows = sheet.rows.iter().map(WireRow::from).collect();
        WireSheet(sheet.version.into(), sheet.fence.0, rows)
    }
}

impl TryFrom<WireSheet> for Sheet {
    type Error = DecodeError;

    fn try_from(WireSheet(version, fence, rows): WireSheet) -> Result<Self, DecodeError> {
        let rows: Vec<(ClaimId, Row)> =
            rows.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?;
        if rows.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
            return Err(DecodeError::Impossible("claims out of order".into()));
        }
        let rows = rows.into_iter().collect();
        Ok(Sheet { version: version.try_into()?, fence: codec::fence(fence)?, rows })
    }
}

#[derive(Serialize, Deserialize)]
enum WireMessage {
    /// Round.
    Lock(WireAttempt, u64),
    Queued(WireAttempt),
    /// The table, for how long it is known in nanoseconds, what is overdue, floor of fences.
    Locked(WireAttempt, WireSheet, u64, Vec<(WireClaim, WireVersion)>, u64),
    /// Round, whether it gives its lock to nobody.
    Refused(WireAttempt, u64, bool),
    Store(WireAttempt, WireSheet),
    Stored(WireAttempt),
    /// Whether it stored nothing.
    Unlock(WireAttempt, bool),
    Probe(WireAttempt),
    Busy(WireAttempt),
    /// The last two: the echoed clock, the wait in nanoseconds.
    Notify(WireClaim, WireAttempt, WireShares, u64, u64),
    Lost(WireClaim, WireAttempt),
    Ask(WireClaim, WireAttempt),
    /// Whether it waits.
    Told(WireClaim, WireAttempt, bool),
    Survey,
    /// Round, fence, boot, whether it forgot nothing.
    Report(u64, u64, u32, bool),
}

impl From<&Message> for WireMessage {
    fn from(message: &Message) -> Self {
        match message {
            Message::Lock { section, round } => WireMessage::Lock((*section).into(), round.0),
            Message::Queued { section } => WireMessage::Queued((*section).into()),
            Message::Locked { section, sheet, known_for, overdue, floor } => {
                let overdue =
                    overdue.iter().map(|(claim, since)| ((*claim).into(), (*since).into()));
                let (overdue, known_for) = (overdue.collect(), codec::nanos(*known_for));
                let sheet = (&**sheet).into();
                WireMessage::Locked((*section).into(), sheet, known_for, overdue, floor.0)
            }
            Message::Refused { section, round, closed } => {
                WireMessage::Refused((*section).into(), round.0, *closed)
            }
            Message::Store { section, sheet } => {
                WireMessage::Store((*section).into(), (&**sheet).into())
            }
            Message::Stored { section } => WireMessage::Stored((*section).into()),
            Message::Unlock { section, clean } => WireMessage::Unlock((*section).into(), *clean),
            Message::Probe { section } => WireMessage::Probe((*section).into()),
            Message::Busy { section } => WireMessage::Busy((*section).into()),
            Message::Notify { claim, attempt, shares, sent, waited } => WireMessage::Notify(
                (*claim).into(),
                (*attempt).into(),
                shares.into(),
                sent.0,
                codec::nanos(*waited),
            ),
            Message::Lost { claim, attempt } => {
                WireMessage::Lost((*claim).into(), (*attempt).into())
            }
            Message::Ask { claim, attempt } => WireMessage::Ask((*claim).into(), (*attempt).into()),
            Message::Told { claim, attempt, waits } => {
                WireMessage::Told((*claim).into(), (*attempt).into(), *waits)
            }
            Message::Survey => WireMessage::Survey,
            Message::Report { round, fence, boot, sure } => {
                WireMessage::Report(round.0, fence.0, *boot, *sure)
            }
        }
    }
}

impl TryFrom<WireMessage> for Message {
    type Error = DecodeError;

    fn try_from(message: WireMessage) -> Result<Self, DecodeError> {
        Ok(match message {
            WireMessage::Lock(section, round) => {
                Message::Lock { section: section.try_into()?, round: codec::fence(round)? }
            }
            WireMessage::Queued(section) => Message::Queued { section: section.try_into()? },
            WireMessage::Locked(section, sheet, known_for, overdue, floor) => Message::Locked {
                section: section.try_into()?,
                sheet: Arc::new(sheet.try_into()?),
                known_for: Duration::from_nanos(known_for),
                overdue: overdue
                    .into_iter()
                    .map(|(claim, since)| Ok((claim.into(), since.try_into()?)))
                    .collect::<Result<Vec<_>, DecodeError>>()?
                    .into(),
                floor: codec::fence(floor)?,
            },
            WireMessage::Refused(section, round, closed) => Message::Refused {
                section: section.try_into()?,
                round: codec::fence(round)?,
                closed,
            },
            WireMessage::Store(section, sheet) => {
                Message::Store { section: section.try_into()?, sheet: Arc::new(sheet.try_into()?) }
            }
            WireMessage::Stored(section) => Message::Stored { section: section.try_into()? },
            WireMessage::Unlock(section, clean) => {
                Message::Unlock { section: section.try_into()?, clean }
            }
            WireMessage::Probe(section) => Message::Probe { section: section.try_into()? },
            WireMessage::Busy(section) => Message::Busy { section: section.try_into()? },
            WireMessage::Notify(claim, attempt, shares, sent, waited) => Message::Notify {
                claim: claim.into(),
                attempt: attempt.try_into()?,
                shares: shares.try_into()?,
                sent: Moment(sent),
                waited: Duration::from_nanos(waited),
            },
            WireMessage::Lost(claim, attempt) => {
                Message::Lost { claim: claim.into(), attempt: attempt.try_into()? }
            }
            WireMessage::Ask(claim, attempt) => {
                Message::Ask { claim: claim.into(), attempt: attempt.try_into()? }
            }
            WireMessage::Told(claim, attempt, waits) => {
                Message::Told { claim: claim.into(), attempt: attempt.try_into()?, waits }
            }
            WireMessage::Survey => Message::Survey,
            WireMessage::Report(round, fence, boot, sure) => Message::Report {
                round: codec::fence(round)?,
                fence: codec::fence(fence)?,
                boot: codec::boot(boot)?,
                sure,
            },
        })
    }
}

/// Version of the record, its first byte.
const RECORD_VERSION: u8 = 2;

#[derive(Serialize, Deserialize)]
struct WireRecord {
    version: u8,
    round: u64,
    fence: u64,
    unsure: bool,
    sheet: Option<WireSheet>,
}

impl Wire for Table {
    fn encode_message(message: &Message, out: &mut Vec<u8>) {
        codec::put(&WireMessage::from(message), out);
    }

    fn decode_message(bytes: &[u8]) -> Result<Message, DecodeError> {
        codec::take::<WireMessage>(bytes)?.try_into()
    }

    fn encode_record(record: &Record, out: &mut Vec<u8>) {
        let Record { round, fence, unsure, sheet } = record;
        let (version, sheet) = (RECORD_VERSION, sheet.as_ref().map(WireSheet::from));
        codec::put(
            &WireRecord { version, round: round.0, fence: fence.0, unsure: *unsure, sheet },
            out,
        );
    }

    fn decode_record(pool: &Pool, bytes: &[u8]) -> Result<Record, DecodeError> {
        let record: WireRecord = codec::take(bytes)?;
        if record.version != RECORD_VERSION {
            let text = format!("a record of version {}", record.version);
            return Err(DecodeError::Impossible(text));
        }
        let record = Record {
            round: codec::fence(record.round)?,
            fence: codec::fence(record.fence)?,
            unsure: record.unsure,
            sheet: record.sheet.map(TryInto::try_into).transpose()?,
        };
        if !record.is_sound(pool) {
            return Err(DecodeError::Impossible("a table that this pool cannot have".into()));
        }
        Ok(record)
    }
}
