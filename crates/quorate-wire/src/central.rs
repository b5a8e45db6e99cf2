//! The messages and the record of `central`.

use std::collections::BTreeMap;

use quorate_core::Unit;
use quorate_protocols::central::{Central, Message, Pool, Record, RecordLine};

use crate::codec::{self, Bitmap, Coded, DecodeError, Way, Wire, coded};

coded!(enum Message {
    0 => Request { claim, attempt, wanted, sent },
    1 => Grant { claim, attempt, shares, sent, waited },
    2 => Release { claim },
    3 => Decline { claim, attempt, fence },
    4 => Renew { claim, attempt, shares, sent },
    5 => Renewed { claim, attempt, sent },
    6 => Lost { claim, attempt, fence },
    7 => Move { claim, attempt, it },
    8 => Refused { claim, attempt },
});

coded!(struct RecordLine {
    claim, node, attempt, stamp, shares, sent, arrived, waited, adopted, moves,
});

/// Version of the record, its first byte.
const RECORD_VERSION: u8 = 3;

impl Wire for Central {
    fn encode_message(message: &Message, out: &mut Vec<u8>) {
        message.put(out);
    }

    fn decode_message(bytes: &[u8]) -> Result<Message, DecodeError> {
        codec::whole(bytes)
    }

    fn encode_record(record: &Record, out: &mut Vec<u8>) {
        RECORD_VERSION.put(out);
        record.grace().put(out);
        record.lines().collect::<Vec<_>>().put(out);
        Bitmap::put(&record.drained().to_vec(), out);
        let labels = record.relabelled().iter().map(|(unit, labels)| (*unit, labels.clone()));
        labels.collect::<Vec<_>>().put(out);
    }

    fn decode_record(pool: &Pool, mut bytes: &[u8]) -> Result<Record, DecodeError> {
        codec::take_version(&mut bytes, RECORD_VERSION)?;
        let grace = bool::take(&mut bytes)?;
        let lines: Vec<RecordLine> = Vec::take(&mut bytes)?;
        let drained: Vec<Unit> = Bitmap::take(&mut bytes)?;
        let relabelled: Vec<(Unit, BTreeMap<_, _>)> = Vec::take(&mut bytes)?;
        codec::nothing_after(bytes)?;
        let relabelled = relabelled.into_iter().collect();
        Record::from_lines(pool, grace, lines, drained, relabelled).map_err(DecodeError::Impossible)
    }
}
