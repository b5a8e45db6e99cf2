//! Frames: what every byte between two nodes is part of.
//!
//! | bytes | what |
//! |---|---|
//! | 2 | `Qu` |
//! | 1 | [`VERSION`] |
//! | 1 | kind |
//! | 4 | length of the body, little-endian, at most [`BODY_MAX`] |
//! | length | the body: postcard, then for what has a number on the link the load itself |

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::codec::{self, DecodeError};
use crate::hello::Hello;
use crate::survey::{Answer, Labelled, Question};

/// The first two bytes of every frame.
pub const MAGIC: [u8; 2] = *b"Qu";
/// The version of everything between nodes.
pub const VERSION: u8 = 1;

/// The version that this process speaks.
#[cfg(not(feature = "planted-bugs"))]
fn spoken() -> u8 {
    VERSION
}

#[cfg(feature = "planted-bugs")]
static SPOKEN: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(VERSION);

#[cfg(feature = "planted-bugs")]
fn spoken() -> u8 {
    SPOKEN.load(std::sync::atomic::Ordering::Relaxed)
}

/// From now on this process speaks the version after [`VERSION`], which differs in nothing but its
/// number: for tests of clusters of which some nodes are newer.
#[cfg(feature = "planted-bugs")]
pub fn speak_next_version() {
    SPOKEN.store(VERSION + 1, std::sync::atomic::Ordering::Relaxed);
}

/// Longest body.
pub const BODY_MAX: usize = 4 << 20;
/// Length of the header.
pub const HEADER: usize = 8;
/// Longest load that a frame of the link can carry, beside two numbers.
pub const PACKED_MAX: usize = BODY_MAX - 20;

const HELLO: u8 = 1;
const REFUSED: u8 = 2;
const DATA: u8 = 3;
const ACK: u8 = 4;
const ASK: u8 = 5;
const TELL: u8 = 6;
const PING: u8 = 7;
const PONG: u8 = 8;
const ORDER: u8 = 9;
const RECEIPT: u8 = 10;
const LABELS: u8 = 11;
const TIDINGS: u8 = 12;
const HEARD: u8 = 13;
const COUNCIL: u8 = 14;
const ENQUIRY: u8 = 15;
const REPLY: u8 = 16;

/// One frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame<'a> {
    /// Who calls.
    Hello(Hello),
    /// The same on a connection of its own that carries nothing but enquiries of the caller.
    Council(Hello),
    /// What the control plane of one member asks that of another, with a number of its own.
    Enquiry(u64, &'a [u8]),
    /// The answer to the enquiry of this number.
    Reply(u64, &'a [u8]),
    /// Why the caller is refused, in a sentence for its log.
    Refused(String),
    /// Something that the lasting link carries, numbered.
    Data(Data<'a>),
    /// Everything up to this number has arrived. Also says that the sender lives.
    Ack(u64),
    /// A question outside the protocols.
    Ask(u64, Question),
    /// Its answer.
    Tell(u64, Answer),
    /// A reading of the sender's clock, to be sent back: how long is the way?
    Ping(u64),
    /// The reading that was sent.
    Pong(u64),
    /// Whoever decides over a pool tells which of its units have other labels than the
    /// configuration says.
    Labels(String, Labelled),
}

/// Something that the lasting link carries, on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data<'a> {
    /// What it is.
    pub load: Load,
    /// Its number on this link.
    pub seq: u64,
    /// The last number that has arrived from the other side.
    pub ack: u64,
    /// Itself, as [`pack`] or [`seal`] wrote it.
    pub packed: &'a [u8],
}

/// What the lasting link carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// A protocol's message, behind the name of its pool: [`pack`], [`unpack`].
    Message,
    /// An [`Order`](crate::order::Order): [`seal`], [`open`].
    Order,
    /// A [`Receipt`](crate::order::Receipt), likewise.
    Receipt,
    /// [`Tidings`](crate::tidings::Tidings), likewise.
    Tidings,
    /// That they were [`Heard`](crate::tidings::Heard), likewise.
    Heard,
}

impl Load {
    fn kind(self) -> u8 {
        match self {
            Load::Message => DATA,
            Load::Order => ORDER,
            Load::Receipt => RECEIPT,
            Load::Tidings => TIDINGS,
            Load::Heard => HEARD,
        }
    }
}

/// Why bytes are not a frame. Nothing was delivered; the connection is closed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FrameError {
    /// Not one of ours.
    #[error("bytes that do not begin like a frame")]
    Magic,
    /// Another version.
    #[error("version {0} of the wire; this node speaks {spoken}", spoken = spoken())]
    Version(u8),
    /// There is no such kind.
    #[error("a frame of kind {0}, which does not exist")]
    Kind(u8),
    /// Longer than [`BODY_MAX`].
    #[error("a frame of {0} bytes: at most {BODY_MAX} are allowed")]
    Length(usize),
    /// The body is wrong.
    #[error("the body of a frame: {0}")]
    Body(#[from] DecodeError),
}

/// Appends a frame to `out`. A body longer than [`BODY_MAX`] must not be given: the other side will
/// refuse it.
pub fn encode(frame: &Frame<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    let kind = match frame {
        Frame::Hello(_) => HELLO,
        Frame::Council(_) => COUNCIL,
        Frame::Enquiry(..) => ENQUIRY,
        Frame::Reply(..) => REPLY,
        Frame::Refused(_) => REFUSED,
        Frame::Data(data) => data.load.kind(),
        Frame::Ack(_) => ACK,
        Frame::Ask(..) => ASK,
        Frame::Tell(..) => TELL,
        Frame::Ping(_) => PING,
        Frame::Pong(_) => PONG,
        Frame::Labels(..) => LABELS,
    };
    out.extend_from_slice(&[MAGIC[0], MAGIC[1], spoken(), kind, 0, 0, 0, 0]);
    match frame {
        Frame::Hello(hello) | Frame::Council(hello) => codec::put(hello, out),
        Frame::Enquiry(number, bytes) | Frame::Reply(number, bytes) => {
            codec::put(number, out);
            out.extend_from_slice(bytes);
        }
        Frame::Refused(why) => codec::put(why, out),
        Frame::Data(data) => {
            codec::put(&(data.seq, data.ack), out);
            out.extend_from_slice(data.packed);
        }
        Frame::Ack(number) | Frame::Ping(number) | Frame::Pong(number) => codec::put(number, out),
        Frame::Ask(number, question) => codec::put(&(number, question), out),
        Frame::Tell(number, answer) => codec::put(&(number, answer), out),
        Frame::Labels(pool, labels) => codec::put(&(pool, labels), out),
    }
    let length = u32::try_from(out.len() - start - HEADER).unwrap_or(u32::MAX);
    out[start + 4..start + HEADER].copy_from_slice(&length.to_le_bytes());
}

/// An answer, with less in it if it were too long for a frame: whoever asks must not lose the link.
pub fn encode_answer(number: u64, mut answer: Answer) -> Vec<u8> {
    loop {
        let (frame, mut bytes) = (Frame::Tell(number, answer), Vec::new());
        encode(&frame, &mut bytes);
        let Frame::Tell(_, long) = frame else { unreachable!("just made") };
        if bytes.len() <= HEADER + BODY_MAX {
            return bytes;
        }
        answer = long;
        if !answer.shorten() {
            answer = answer.emptied();
        }
    }
}

/// Takes one frame off the front of `bytes`: the frame and how many bytes it took, or nothing if
/// more bytes are needed.
///
/// # Errors
/// The bytes are not a frame of this version.
pub fn decode(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    let Some((kind, length)) = header(bytes)? else { return Ok(None) };
    let Some(body) = bytes.get(HEADER..HEADER + length) else { return Ok(None) };
    let frame = match kind {
        HELLO => Frame::Hello(codec::take(body)?),
        COUNCIL => Frame::Council(codec::take(body)?),
        ENQUIRY => {
            let (number, bytes) = numbered(body)?;
            Frame::Enquiry(number, bytes)
        }
        REPLY => {
            let (number, bytes) = numbered(body)?;
            Frame::Reply(number, bytes)
        }
        REFUSED => Frame::Refused(codec::take(body)?),
        DATA => Frame::Data(data(Load::Message, body)?),
        ORDER => Frame::Data(data(Load::Order, body)?),
        RECEIPT => Frame::Data(data(Load::Receipt, body)?),
        TIDINGS => Frame::Data(data(Load::Tidings, body)?),
        HEARD => Frame::Data(data(Load::Heard, body)?),
        ACK => Frame::Ack(codec::take(body)?),
        ASK => {
            let (number, question) = codec::take(body)?;
            Frame::Ask(number, question)
        }
        TELL => {
            let (number, answer) = codec::take(body)?;
            Frame::Tell(number, answer)
        }
        PING => Frame::Ping(codec::take(body)?),
        PONG => Frame::Pong(codec::take(body)?),
        LABELS => {
            let (pool, labels) = codec::take(body)?;
            Frame::Labels(pool, labels)
        }
        kind => return Err(FrameError::Kind(kind)),
    };
    Ok(Some((frame, HEADER + length)))
}

fn data(load: Load, body: &[u8]) -> Result<Data<'_>, DecodeError> {
    let ((seq, ack), packed) =
        postcard::take_from_bytes::<(u64, u64)>(body).map_err(|_| DecodeError::Garbage)?;
    Ok(Data { load, seq, ack, packed })
}

fn numbered(body: &[u8]) -> Result<(u64, &[u8]), DecodeError> {
    postcard::take_from_bytes(body).map_err(|_| DecodeError::Garbage)
}

/// The kind and the length of the body, if the header is there.
fn header(bytes: &[u8]) -> Result<Option<(u8, usize)>, FrameError> {
    let present = bytes.len().min(MAGIC.len());
    if bytes[..present] != MAGIC[..present] {
        return Err(FrameError::Magic);
    }
    match bytes.get(2) {
        Some(&version) if version != spoken() => return Err(FrameError::Version(version)),
        _ => {}
    }
    let Some(header) = bytes.first_chunk::<HEADER>() else { return Ok(None) };
    let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
    if length > BODY_MAX {
        return Err(FrameError::Length(length));
    }
    Ok(Some((header[3], length)))
}

/// How many of the bytes are whole frames, as far as their headers tell.
///
/// # Errors
/// The bytes are not frames of this version.
pub fn whole(bytes: &[u8]) -> Result<usize, FrameError> {
    let mut used = 0;
    while let Some((_, length)) = header(&bytes[used..])? {
        if bytes.len() < used + HEADER + length {
            break;
        }
        used += HEADER + length;
    }
    Ok(used)
}

/// The bytes of an order, a receipt or tidings.
pub fn seal(load: &impl Serialize) -> Box<[u8]> {
    let mut bytes = Vec::new();
    codec::put(load, &mut bytes);
    bytes.into()
}

/// The order, receipt or tidings in these bytes.
///
/// # Errors
/// It is none.
pub fn open<T: DeserializeOwned>(packed: &[u8]) -> Result<T, DecodeError> {
    codec::take(packed)
}

/// What goes in front of a protocol's message.
#[derive(Serialize, Deserialize)]
struct Label<'a> {
    pool: &'a str,
}

/// Appends a pool's name, after which the message is to be written.
pub fn pack(pool: &str, out: &mut Vec<u8>) {
    codec::put(&Label { pool }, out);
}

/// The pool's name, and the bytes of the message.
///
/// # Errors
/// There is no name.
pub fn unpack(packed: &[u8]) -> Result<(&str, &[u8]), DecodeError> {
    let (label, message) =
        postcard::take_from_bytes::<Label<'_>>(packed).map_err(|_| DecodeError::Garbage)?;
    Ok((label.pool, message))
}
