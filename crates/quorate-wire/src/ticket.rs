//! The messages of `ticket`. It keeps no record.

use quorate_protocols::ticket::{Bid, Message, Pool, Rival, Standing, Ticket};

use crate::codec::{self, Coded, DecodeError, Wire, coded};

coded!(struct Bid { claim, node, boot });
coded!(struct Rival { bid, units });

coded!(enum Standing { 0 => Waiting, 1 => Shown, 2 => Held, 3 => Joins });

coded!(enum Message {
    0 => Register { claim, attempt, units, above, sent },
    1 => Propose { claim, attempt, ticket },
    2 => Settle { claim, attempt, units, ticket, standing, seen, sent },
    3 => View { claim, attempt, rivals, mark, sent },
    4 => Queued { claim, attempt, mark },
    5 => Renewed { claim, attempt, sent },
    6 => Lost { claim, attempt },
    7 => Release { claim, attempt, whole },
});

impl Wire for Ticket {
    fn encode_message(message: &Message, out: &mut Vec<u8>) {
        message.put(out);
    }

    fn decode_message(bytes: &[u8]) -> Result<Message, DecodeError> {
        codec::whole(bytes)
    }

    fn encode_record((): &(), _: &mut Vec<u8>) {}

    fn decode_record(_: &Pool, bytes: &[u8]) -> Result<(), DecodeError> {
        codec::nothing_after(bytes)
    }
}
