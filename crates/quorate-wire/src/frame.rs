//! Frames: what every byte between two nodes is part of.
//!
//! | bytes | what |
//! |---|---|
//! | 2 | `Qu` |
//! | 1 | [`VERSION`] |
//! | 1 | kind |
//! | 4 | length of the body, little-endian, at most [`BODY_MAX`] |
//! | length | the body: postcard, then for `data` the message itself |

use serde::{Deserialize, Serialize};

use crate::codec::{self, DecodeError};
use crate::hello::Hello;
use crate::survey::{Question, Survey};

/// The first two bytes of every frame.
pub const MAGIC: [u8; 2] = *b"Qu";
/// The version of everything between nodes.
pub const VERSION: u8 = 1;
/// Longest body.
pub const BODY_MAX: usize = 4 << 20;
/// Length of the header.
pub const HEADER: usize = 8;
/// Longest pool's name and message that a `data` frame can carry, beside two numbers.
pub const PACKED_MAX: usize = BODY_MAX - 20;

const HELLO: u8 = 1;
const REFUSED: u8 = 2;
const DATA: u8 = 3;
const ACK: u8 = 4;
const ASK: u8 = 5;
const TELL: u8 = 6;
const PING: u8 = 7;
const PONG: u8 = 8;

/// One frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame<'a> {
    /// Who calls.
    Hello(Hello),
    /// Why the caller is refused, in a sentence for its log.
    Refused(String),
    /// A protocol's message, numbered.
    Data(Data<'a>),
    /// Everything up to this number has arrived. Also says that the sender lives.
    Ack(u64),
    /// A question outside the protocols.
    Ask(u64, Question),
    /// Its answer.
    Tell(u64, Survey),
    /// A reading of the sender's clock, to be sent back: how long is the way?
    Ping(u64),
    /// The reading that was sent.
    Pong(u64),
}

/// A protocol's message on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data<'a> {
    /// Its number on this link.
    pub seq: u64,
    /// The last number that has arrived from the other side.
    pub ack: u64,
    /// Pool and message, as [`pack`] wrote them.
    pub packed: &'a [u8],
}

/// Why bytes are not a frame. Nothing was delivered; the connection is closed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FrameError {
    /// Not one of ours.
    #[error("bytes that do not begin like a frame")]
    Magic,
    /// Another version.
    #[error("version {0} of the wire; this node speaks {VERSION}")]
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
        Frame::Refused(_) => REFUSED,
        Frame::Data(_) => DATA,
        Frame::Ack(_) => ACK,
        Frame::Ask(..) => ASK,
        Frame::Tell(..) => TELL,
        Frame::Ping(_) => PING,
        Frame::Pong(_) => PONG,
    };
    out.extend_from_slice(&[MAGIC[0], MAGIC[1], VERSION, kind, 0, 0, 0, 0]);
    match frame {
        Frame::Hello(hello) => codec::put(hello, out),
        Frame::Refused(why) => codec::put(why, out),
        Frame::Data(data) => {
            codec::put(&(data.seq, data.ack), out);
            out.extend_from_slice(data.packed);
        }
        Frame::Ack(number) | Frame::Ping(number) | Frame::Pong(number) => codec::put(number, out),
        Frame::Ask(number, question) => codec::put(&(number, question), out),
        Frame::Tell(number, survey) => codec::put(&(number, survey), out),
    }
    let length = u32::try_from(out.len() - start - HEADER).unwrap_or(u32::MAX);
    out[start + 4..start + HEADER].copy_from_slice(&length.to_le_bytes());
}

/// An answer, with less in it if it were too long for a frame: whoever asks must not lose the link.
pub fn encode_answer(number: u64, mut survey: Survey) -> Vec<u8> {
    loop {
        let (frame, mut bytes) = (Frame::Tell(number, survey), Vec::new());
        encode(&frame, &mut bytes);
        let Frame::Tell(_, long) = frame else { unreachable!("just made") };
        if bytes.len() <= HEADER + BODY_MAX {
            return bytes;
        }
        survey = long;
        if !survey.shorten() {
            survey = Survey::default();
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
        REFUSED => Frame::Refused(codec::take(body)?),
        DATA => {
            let ((seq, ack), packed) = postcard::take_from_bytes::<(u64, u64)>(body)
                .map_err(|_| FrameError::Body(DecodeError::Garbage))?;
            Frame::Data(Data { seq, ack, packed })
        }
        ACK => Frame::Ack(codec::take(body)?),
        ASK => {
            let (number, question) = codec::take(body)?;
            Frame::Ask(number, question)
        }
        TELL => {
            let (number, survey) = codec::take(body)?;
            Frame::Tell(number, survey)
        }
        PING => Frame::Ping(codec::take(body)?),
        PONG => Frame::Pong(codec::take(body)?),
        kind => return Err(FrameError::Kind(kind)),
    };
    Ok(Some((frame, HEADER + length)))
}

/// The kind and the length of the body, if the header is there.
fn header(bytes: &[u8]) -> Result<Option<(u8, usize)>, FrameError> {
    let present = bytes.len().min(MAGIC.len());
    if bytes[..present] != MAGIC[..present] {
        return Err(FrameError::Magic);
    }
    match bytes.get(2) {
        Some(&version) if version != VERSION => return Err(FrameError::Version(version)),
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
