//! The messages and the record of `arbiter`.

use std::sync::Arc;

use quorate_core::Unit;
use quorate_protocols::arbiter::{
    Arbiter, End, Message, Pick, Pool, Record, RecordLine, RecordLines, Wish,
};

use crate::codec::{self, Boot, Clock, Coded, DecodeError, Names, Way, Wire, coded};

coded!(struct Wish { units, names: MaybeNames } if has_its_names);
coded!(
    struct Pick {
        round: Clock,
        names: Names,
    }
);

/// Where units are only counted there are none.
enum MaybeNames {}

impl Way<Option<Arc<[Unit]>>> for MaybeNames {
    fn put(names: &Option<Arc<[Unit]>>, out: &mut Vec<u8>) {
        names.put(out);
    }

    fn take(bytes: &mut &[u8]) -> Result<Option<Arc<[Unit]>>, DecodeError> {
        bool::take(bytes)?.then(|| Names::take(bytes)).transpose()
    }
}

fn has_its_names(wish: &Wish) -> Result<(), DecodeError> {
    match wish.names.as_ref().is_none_or(|names| names.len() == wish.units.get() as usize) {
        true => Ok(()),
        false => Err(codec::impossible("names that are not so many units")),
    }
}

coded!(enum End { 0 => Unused, 1 => Used, 2 => Over });

coded!(enum Message {
    0 => Request { claim, attempt, stamp, wish, token, sent },
    1 => Grant { claim, attempt, grant, floor, sent, waited, taken: Names, clock: Clock },
    2 => Queued { claim, attempt, taken: Names, clock: Clock },
    3 => Inquire { claim, attempt, grant, clock: Clock },
    4 => Yield { claim, attempt, grant },
    5 => Release { claim, attempt, end },
    6 => Renew { claim, attempt, grant, stamp, wish, token, sent },
    7 => Renewed { claim, attempt, grant, floor, round: Clock, sent, clock: Clock },
    8 => Lost { claim, attempt, grant, clock: Clock },
    9 => Retoken { claim, attempt, grant, token },
    10 => Retokened { claim, attempt, grant, token, clock: Clock },
    11 => Survey { clock: Clock },
    12 => Report { highest, boot: Boot, sure, clock: Clock },
    13 => Name { claim, attempt, grant, pick, used },
    14 => Named { claim, attempt, grant, round: Clock, floor, clock: Clock },
    15 => Taken { claim, attempt, grant, round: Clock, taken: Names, clock: Clock },
    16 => Roll { clock: Clock },
    17 => Alive { attempt, claims },
});

coded!(struct RecordLine {
    claim, node, attempt, stamp, wish, token, overtaken, sent, arrived, grant, inquired, waited,
    adopted, shared, pick,
});
coded!(struct RecordLines { unsure, base, floors, lines });

/// Version of the record, its first byte.
const RECORD_VERSION: u8 = 3;

impl Wire for Arbiter {
    fn encode_message(message: &Message, out: &mut Vec<u8>) {
        message.put(out);
    }

    fn decode_message(bytes: &[u8]) -> Result<Message, DecodeError> {
        codec::whole(bytes)
    }

    fn encode_record(record: &Record, out: &mut Vec<u8>) {
        RECORD_VERSION.put(out);
        record.lines().put(out);
    }

    fn decode_record(pool: &Pool, mut bytes: &[u8]) -> Result<Record, DecodeError> {
        codec::take_version(&mut bytes, RECORD_VERSION)?;
        Record::from_lines(pool, codec::whole(bytes)?).map_err(DecodeError::Impossible)
    }
}
