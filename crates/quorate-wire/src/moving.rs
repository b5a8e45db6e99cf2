//! The messages of `central` with a seat that moves. It keeps no record.

use std::convert::Infallible;

use quorate_core::Tenure;
use quorate_protocols::central::moving::{Books, Message, Moving, Pool, Shown, Waiting};

use crate::codec::{self, Boot, Coded, DecodeError, Wire, coded};

coded!(struct Shown { claim, attempt, shares });
coded!(struct Waiting { node, claim, attempt, wanted, sent });
// To fences a term is a boot number.
coded!(struct Books { of: Boot, term: Boot, granted, waiting });

coded!(enum Message {
    0 => Word { term: Boot, word },
    1 => Roll { term: Boot },
    2 => Answer { term: Boot, complete, sent, grants },
    3 => Books(books),
    4 => Tell { term: Boot, boot: Boot, naming, all, granted, ended },
    5 => Told { term: Boot, naming, all, claims },
    6 => Promise { term: Boot, lease, word },
});

/// First byte of what the charter has begun, in a pool that was pinned before. Words of a pinned
/// pool have lower ones.
const SINCE: u8 = 0x40;

/// A message in a pool that was pinned before there was a charter: until that says who decides it
/// is what members say whose files know of none.
pub fn put_pinned(message: &Message, out: &mut Vec<u8>) {
    match message {
        Message::Word { term: Tenure::PINNED, word } => word.put(out),
        message => {
            out.push(SINCE);
            message.put(out);
        }
    }
}

/// Reads such a message.
///
/// # Errors
/// The bytes are none.
pub fn take_pinned(bytes: &[u8]) -> Result<Message, DecodeError> {
    match bytes.split_first() {
        Some((&SINCE, message)) => codec::whole(message),
        _ => Ok(Message::Word { term: Tenure::PINNED, word: codec::whole(bytes)? }),
    }
}

impl Wire for Moving {
    fn encode_message(message: &Message, out: &mut Vec<u8>) {
        message.put(out);
    }

    fn decode_message(bytes: &[u8]) -> Result<Message, DecodeError> {
        codec::whole(bytes)
    }

    fn encode_record(record: &Infallible, _: &mut Vec<u8>) {
        match *record {}
    }

    fn decode_record(_: &Pool, _: &[u8]) -> Result<Infallible, DecodeError> {
        Err(codec::impossible("a record of a seat that writes nothing down"))
    }
}
