//! The messages of `ring`. The order of variants and fields is the format. It keeps no record.

use quorate_core::Share;
use quorate_protocols::ring::{Census, Epoch, Frame, Message, Named, Parcel, Pool, Ring};
use serde::{Deserialize, Serialize};

use crate::codec::{self, DecodeError, Delivery, Wire, WireNodes, WireShares};

impl From<&Named> for WireShares {
    fn from(tokens: &Named) -> Self {
        (&tokens.shares()).into()
    }
}

impl TryFrom<WireShares> for Named {
    type Error = DecodeError;

    fn try_from(tokens: WireShares) -> Result<Self, DecodeError> {
        Ok(Named::new(&codec::distinct(tokens)?))
    }
}

/// The units counted, and how many more that cannot be.
#[derive(Serialize, Deserialize)]
struct WireCensus(WireShares, u32);

impl From<&Census> for WireCensus {
    fn from(census: &Census) -> Self {
        let (seen, twins) = census.parts();
        let seen: Vec<Share> = seen.collect();
        WireCensus((&Named::new(&seen)).into(), twins)
    }
}

impl TryFrom<WireCensus> for Census {
    type Error = DecodeError;

    fn try_from(census: WireCensus) -> Result<Self, DecodeError> {
        Ok(Census::from_parts(&codec::distinct(census.0)?, census.1))
    }
}

#[derive(Serialize, Deserialize)]
struct WireParcel {
    config: u32,
    boot: u32,
    change: u32,
    back: Option<u64>,
    skipped: WireNodes,
    message: WireMessage,
}

#[derive(Serialize, Deserialize)]
enum WireMessage {
    Token(WireShares),
    Controller(u64),
    Enabled(WireShares),
    Collect(WireShares),
    Allocate(WireShares, bool),
    Disable,
    Frame(WireFrame),
    Wake,
}

#[derive(Serialize, Deserialize)]
struct WireFrame {
    seq: u64,
    free: WireShares,
    alloc: WireShares,
    coll: WireShares,
    counted: WireCensus,
    order: bool,
    kill: bool,
    waited: bool,
    waits: bool,
    blind: bool,
}

impl From<&Frame<Named>> for WireFrame {
    fn from(frame: &Frame<Named>) -> Self {
        WireFrame {
            seq: frame.seq,
            free: (&frame.free).into(),
            alloc: (&frame.alloc).into(),
            coll: (&frame.coll).into(),
            counted: (&frame.counted).into(),
            order: frame.order,
            kill: frame.kill,
            waited: frame.waited,
            waits: frame.waits,
            blind: frame.blind,
        }
    }
}

impl TryFrom<WireFrame> for Frame<Named> {
    type Error = DecodeError;

    fn try_from(frame: WireFrame) -> Result<Self, DecodeError> {
        Ok(Frame {
            seq: frame.seq,
            order: frame.order,
            free: frame.free.try_into()?,
            alloc: frame.alloc.try_into()?,
            coll: frame.coll.try_into()?,
            counted: frame.counted.try_into()?,
            kill: frame.kill,
            waited: frame.waited,
            waits: frame.waits,
            blind: frame.blind,
        })
    }
}

impl From<&Message<Named>> for WireMessage {
    fn from(message: &Message<Named>) -> Self {
        match message {
            Message::Token(tokens) => WireMessage::Token(tokens.into()),
            Message::Controller(seq) => WireMessage::Controller(*seq),
            Message::Enabled(token) => WireMessage::Enabled(token.into()),
            Message::Collect(tokens) => WireMessage::Collect(tokens.into()),
            Message::Allocate { tokens, order } => WireMessage::Allocate(tokens.into(), *order),
            Message::Disable => WireMessage::Disable,
            Message::Frame(frame) => WireMessage::Frame((&**frame).into()),
            Message::Wake => WireMessage::Wake,
        }
    }
}

impl TryFrom<WireMessage> for Message<Named> {
    type Error = DecodeError;

    fn try_from(message: WireMessage) -> Result<Self, DecodeError> {
        Ok(match message {
            WireMessage::Token(tokens) => Message::Token(tokens.try_into()?),
            WireMessage::Controller(seq) => Message::Controller(seq),
            WireMessage::Enabled(token) => Message::Enabled(token.try_into()?),
            WireMessage::Collect(tokens) => Message::Collect(tokens.try_into()?),
            WireMessage::Allocate(tokens, order) => {
                Message::Allocate { tokens: tokens.try_into()?, order }
            }
            WireMessage::Disable => Message::Disable,
            WireMessage::Frame(frame) => Message::Frame(Box::new(frame.try_into()?)),
            WireMessage::Wake => Message::Wake,
        })
    }
}

impl From<&Parcel> for WireParcel {
    fn from(parcel: &Parcel) -> Self {
        let Epoch { config, boot, change } = parcel.epoch;
        WireParcel {
            config,
            boot,
            change,
            back: parcel.back,
            skipped: (&parcel.skipped).into(),
            message: (&parcel.message).into(),
        }
    }
}

impl TryFrom<WireParcel> for Parcel {
    type Error = DecodeError;

    fn try_from(parcel: WireParcel) -> Result<Self, DecodeError> {
        let WireParcel { config, boot, change, .. } = parcel;
        Ok(Parcel {
            epoch: Epoch { config, boot, change },
            back: parcel.back,
            skipped: parcel.skipped.try_into()?,
            message: parcel.message.try_into()?,
        })
    }
}

impl Wire for Ring {
    /// A frame *is* its tokens: it must not come twice, and one that comes late finds that the root
    /// has made them anew ("Links" in ring spec 7).
    const DELIVERY: Delivery = Delivery::Fleeting;

    fn encode_message(parcel: &Parcel, out: &mut Vec<u8>) {
        codec::put(&WireParcel::from(parcel), out);
    }

    fn decode_message(bytes: &[u8]) -> Result<Parcel, DecodeError> {
        codec::take::<WireParcel>(bytes)?.try_into()
    }

    fn encode_record((): &(), _: &mut Vec<u8>) {}

    fn decode_record(_: &Pool, bytes: &[u8]) -> Result<(), DecodeError> {
        codec::take(bytes)
    }
}
