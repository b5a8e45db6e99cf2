//! The messages of `broadcast` (the weighted variant, which is what nodes run). The order of
//! variants and fields is the format. It keeps no record.

use quorate_core::NodeId;
use quorate_protocols::broadcast::{Knowledge, Known, Message, Pool, Weighted};
use serde::{Deserialize, Serialize};

use crate::codec::{self, DecodeError, Wire, WireNodes};

/// The sender's life, unheard, and who crashed in which life, in the order of nodes.
#[derive(Serialize, Deserialize)]
struct WireKnown(u64, WireNodes, Vec<(u32, u64)>);

impl From<&Knowledge> for WireKnown {
    fn from(known: &Knowledge) -> Self {
        let crashed = known.crashed.iter().map(|(node, life)| (node.0, life)).collect();
        WireKnown(known.life, (&known.unheard).into(), crashed)
    }
}

impl TryFrom<WireKnown> for Knowledge {
    type Error = DecodeError;

    fn try_from(known: WireKnown) -> Result<Self, DecodeError> {
        let WireKnown(life, unheard, crashed) = known;
        if !crashed.is_sorted_by(|(a, _), (b, _)| a < b) {
            return Err(DecodeError::Impossible("crashed nodes out of order".into()));
        }
        let crashed = crashed.into_iter().map(|(node, life)| (NodeId(node), life)).collect();
        Ok(Known { life, unheard: unheard.try_into()?, crashed }.into())
    }
}

#[derive(Serialize, Deserialize)]
enum WireMessage {
    Request(u64, u64, Option<u64>, WireKnown),
    Reply(Option<u64>, u32, Option<u64>, WireKnown),
    Query(u64, WireKnown),
    Notice(WireKnown),
    Join(u64),
    Joined(u64, u64, WireKnown),
    Expelled(u64),
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
            Message::Join { life } => WireMessage::Join(*life),
            Message::Joined { life, clock, known } => {
                WireMessage::Joined(*life, *clock, known.into())
            }
            Message::Expelled { life } => WireMessage::Expelled(*life),
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
            WireMessage::Join(life) => Message::Join { life },
            WireMessage::Joined(life, clock, known) => {
                Message::Joined { life, clock: codec::clock(clock)?, known: known.try_into()? }
            }
            WireMessage::Expelled(life) => Message::Expelled { life },
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
