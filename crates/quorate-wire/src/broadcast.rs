//! The messages of `broadcast` (the weighted variant, which is what nodes run). It keeps no record.

use quorate_core::NodeId;
use quorate_protocols::broadcast::{Knowledge, Known, Message, Pool, Weighted};

use crate::codec::{self, Clock, Coded, DecodeError, Wire, coded};

/// The sender's life, unheard, and who crashed in which life, in the order of nodes.
impl Coded for Knowledge {
    fn put(&self, out: &mut Vec<u8>) {
        self.life.put(out);
        self.unheard.put(out);
        self.crashed.iter().collect::<Vec<(NodeId, u64)>>().put(out);
    }

    fn take(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        let (life, unheard) = Coded::take(bytes)?;
        let crashed: Vec<(NodeId, u64)> = Vec::take(bytes)?;
        if !crashed.is_sorted_by(|(a, _), (b, _)| a < b) {
            return Err(codec::impossible("crashed nodes out of order"));
        }
        Ok(Known { life, unheard, crashed: crashed.into_iter().collect() }.into())
    }
}

coded!(enum Message {
    0 => Request { clock: Clock, oldest: Clock, query: Clock, known },
    1 => Reply { request: Clock, used, query: Clock, known },
    2 => Query { query: Clock, known },
    3 => Notice { known },
    4 => Join { life },
    5 => Joined { life, clock: Clock, known },
    6 => Expelled { life },
});

impl Wire for Weighted {
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
