//! The messages and the record of `table`.

use quorate_core::ClaimId;
use quorate_protocols::table::{Asking, Message, Pool, Record, Row, Sheet, State, Table, Version};

use crate::codec::{self, Boot, Clock, Coded, DecodeError, Wire, coded};

coded!(struct Version { round, count });

coded!(struct Row { node, attempt, age: Clock, wanted, passed, shared, others, state });

coded!(struct Asking { node, attempt, sent, waited });

coded!(enum State {
    0 => Waiting { sent, waited, absent, absences },
    1 => Granted { shares, since },
});

/// Version, last fence, the claims in the order of their names.
impl Coded for Sheet {
    fn put(&self, out: &mut Vec<u8>) {
        self.version.put(out);
        self.fence.put(out);
        (self.rows.len() as u64).put(out);
        for (claim, row) in &self.rows {
            claim.put(out);
            row.put(out);
        }
    }

    fn take(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        let (version, fence) = Coded::take(bytes)?;
        let rows: Vec<(ClaimId, Row)> = Vec::take(bytes)?;
        if !rows.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(codec::impossible("claims out of order"));
        }
        Ok(Sheet { version, fence, rows: rows.into_iter().collect() })
    }
}

coded!(enum Message {
    0 => Lock { section, round },
    1 => Queued { section },
    2 => Locked { section, sheet, known_for, overdue, floor },
    3 => Refused { section, round, closed },
    4 => Store { section, sheet },
    5 => Stored { section },
    6 => Unlock { section, clean },
    7 => Probe { section },
    8 => Busy { section },
    9 => Notify { claim, attempt, shares, sent, waited },
    10 => Lost { claim, attempt },
    11 => Ask { claim, attempt },
    12 => Told { claim, attempt, waits },
    13 => Survey,
    14 => Report { round, fence, boot: Boot, sure, sheet },
});

coded!(struct Record { round, fence, unsure, sheet });

/// Version of the record, its first byte.
const RECORD_VERSION: u8 = 6;

/// How many holds without a lease a record has, whatever pool it is of; none if it is no record of
/// a table.
pub fn standing_holds(mut record: &[u8]) -> usize {
    let read = codec::take_version(&mut record, RECORD_VERSION).and_then(|()| codec::whole(record));
    let Ok(Record { sheet: Some(sheet), .. }) = read else { return 0 };
    sheet
        .rows
        .values()
        .filter(|row| row.wanted.standing.is_some() && row.granted().is_some())
        .count()
}

impl Wire for Table {
    fn encode_message(message: &Message, out: &mut Vec<u8>) {
        message.put(out);
    }

    fn decode_message(bytes: &[u8]) -> Result<Message, DecodeError> {
        codec::whole(bytes)
    }

    fn encode_record(record: &Record, out: &mut Vec<u8>) {
        RECORD_VERSION.put(out);
        record.put(out);
    }

    fn decode_record(pool: &Pool, mut bytes: &[u8]) -> Result<Record, DecodeError> {
        codec::take_version(&mut bytes, RECORD_VERSION)?;
        let record: Record = codec::whole(bytes)?;
        if !record.is_sound(pool) {
            return Err(codec::impossible("a table that this pool cannot have"));
        }
        Ok(record)
    }
}
