//! The messages of `broadcast` (the weighted variant, which is what nodes run). The order of
//! variants and fields is the format. It keeps no record.

use std::sync::Arc;

use quorate_protocols::broadcast::{Known, Message, Pool, Weighted};
use serde::{Deserialize, Serialize};

use crate::codec::{self, DecodeError, Wire, WireNodes};

/// Unheard, crashed.
#[derive(Serialize, Deserialize)]
struct WireKnown(WireNodes, WireNodes);

impl From<&Arc<Known>> for WireKnown {
    fn from(known: &Arc<Known>) -> Self {
        WireKnown((&known.unheard).into(), (&known.crashed).into())
    }
}

impl TryFrom<WireKnown> for Arc<Known> {
    type Error = DecodeError;

    fn try_from(known: WireKnown) -> Result<Self, DecodeError> {
        Ok(Arc::new(Known { unheard: known.0.try_into()?, crashed: known.1.try_into()? }))
    }
}

#[derive(Serialize, Deserialize)]
enum WireMessage {
    Request(u64, u64, Option<u64>, WireKnown),
    Reply(Option<u64>, u32, Option<u64>, WireKnown),
    Query(u64, WireKnown),
    Notice(WireKnown),
}

impl From<&Message> for WireMessage {
    fn from(message: &Message) -> Self {
        match message {
            Message::Request { clock, oldest, query, known } => {
                WireMessage::Request(*clock, *oldest, *query, known.into())
            }
            Message::Reply { request, used, query, known } => {
                WireMessage::Reply(*request, *used, *query, known.into())
            }
            Message::Query { query, known } => WireMessage::Query(*query, known.into()),
            Message::Notice { known } => WireMessage::Notice(known.into()),
        }
    }
}

impl TryFrom<WireMessage> for Message {
    type Error = DecodeError;

    fn try_from(message: WireMessage) -> Result<Self, DecodeError> {
        let maybe = |number: Option<u64>| number.map(codec::clock).transpose();
        Ok(match message {
            WireMessage::Request(clock, oldest, query, known) => Message::Request {
                clock: codec::clock(clock)?,
                oldest: codec::clock(oldest)?,
                query: maybe(query)?,
                known: known.try_into()?,
            },
            WireMessage::Reply(request, used, query, known) => Message::Reply {
                request: maybe(request)?,
                used,
                query: maybe(query)?,
                known: known.try_into()?,
            },
            WireMessage::Query(query, known) => {
                Message::Query { query: codec::clock(query)?, known: known.try_into()? }
            }
            WireMessage::Notice(known) => Message::Notice { known: known.try_into()? },
        })
    }
}

impl Wire for Weighted {
    fn encode_message(message: &Message, out: &mut Vec<u8>) {
        codec::put(&WireMessage::from(message), out);
    }

    fn decode_message(bytes: &[u8]) -> Result<Message, DecodeError> {
        codec::take::<WireMessage>(bytes)?.try_into()
    }

    fn encode_record((): &(), _: &mut Vec<u8>) {}

    fn decode_record(_: &Pool, bytes: &[u8]) -> Result<(), DecodeError> {
        codec::take(bytes)
    }
}
