//! The messages of `ring`. It keeps no record.

use quorate_core::Share;
use quorate_protocols::ring::{self, Census, Epoch, Named, Parcel, Pool, Ring};

use crate::codec::{self, Coded, DecodeError, Delivery, Wire, coded};

type Frame = ring::Frame<Named>;
type Message = ring::Message<Named>;

impl Coded for Named {
    fn put(&self, out: &mut Vec<u8>) {
        self.shares().put(out);
    }

    fn take(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        Ok(Named::new(&codec::take_distinct(bytes)?))
    }
}

/// The units counted, and how many more that cannot be.
impl Coded for Census {
    fn put(&self, out: &mut Vec<u8>) {
        let (seen, twins) = self.parts();
        Named::new(&seen.collect::<Vec<Share>>()).put(out);
        twins.put(out);
    }

    fn take(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        let seen = codec::take_distinct(bytes)?;
        Ok(Census::from_parts(&seen, u32::take(bytes)?))
    }
}

coded!(struct Epoch { config, boot, change });
coded!(struct Parcel { epoch, back, skipped, message });

coded!(enum Message {
    0 => Token(tokens),
    1 => Controller(seq),
    2 => Enabled(token),
    3 => Collect(tokens),
    4 => Allocate { tokens, order },
    5 => Disable,
    6 => Frame(frame),
    7 => Wake,
});

coded!(struct Frame { seq, free, alloc, coll, counted, order, kill, waited, waits, blind });

impl Wire for Ring {
    /// A frame *is* its tokens: it must not come twice, and one that comes late finds that the root
    /// has made them anew ("Links" in ring spec 7).
    const DELIVERY: Delivery = Delivery::Fleeting;

    fn encode_message(parcel: &Parcel, out: &mut Vec<u8>) {
        parcel.put(out);
    }

    fn decode_message(bytes: &[u8]) -> Result<Parcel, DecodeError> {
        codec::whole(bytes)
    }

    fn encode_record((): &(), _: &mut Vec<u8>) {}

    fn decode_record(_: &Pool, bytes: &[u8]) -> Result<(), DecodeError> {
        codec::nothing_after(bytes)
    }
}
