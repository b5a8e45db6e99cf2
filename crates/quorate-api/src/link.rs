//! The client link: claims over one long-lived connection, for programs in a hurry.
//!
//! It is spoken on the same port as HTTP. A client opens with [`PREFACE`], then sends frames; the
//! node answers with frames from the start. A frame is
//!
//! | bytes | what |
//! |---|---|
//! | 4 | length of what follows, little-endian, at most [`FRAME_MAX`] |
//! | 1 | [`VERSION`] |
//! | length - 1 | one [`FromClient`] or [`FromNode`] in postcard's encoding |
//!
//! Every [`Request`] has a number chosen by the client and gets exactly one [`Answer`] with that
//! number, in any order. A claim is answered when it is **granted or over**, which may take long;
//! an error is answered at once. What happens to a grant later is pushed. A connection that breaks
//! ends nothing: the client connects again, to this node or another, and repeats its claims and
//! renewals under their ids.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{ClaimId, ClaimState, Problem, Want};

/// The first bytes a client sends; no HTTP request begins like that.
pub const PREFACE: [u8; 8] = *b"QUORATE\x01";
/// The version in every frame.
pub const VERSION: u8 = 1;
/// Longest frame, after the length field.
pub const FRAME_MAX: usize = 1 << 20;
/// The same from somebody who has not shown a token, where nodes ask for one.
pub const STRANGE_FRAME_MAX: usize = 16 << 10;

const LENGTH: usize = 4;

/// What a client sends.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum FromClient {
    /// Something that wants an answer.
    Request(Request),
}

/// Something that wants an answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Request {
    /// Tells answers apart; not used again while its answer is outstanding.
    pub number: u64,
    /// What is asked.
    pub ask: Ask,
}

/// What can be asked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Ask {
    /// Who is there? Answered by [`Reply::Welcome`]. `client` names this client in what others see.
    Hello {
        /// The client, in its own words.
        client: String,
    },
    /// Wants units. Answered by [`Reply::Granted`] or [`Reply::Over`], when it is so.
    Claim {
        /// From which pool.
        pool: String,
        /// The claim's name.
        id: ClaimId,
        /// What it asks for.
        want: Want,
    },
    /// Keeps units, and leaves what it was asked to leave and no longer shows. Answered by
    /// [`Reply::Granted`] once the lease is extended, or by [`Reply::Over`]; not answered while no
    /// arbiter can be reached.
    Renew {
        /// The pool.
        pool: String,
        /// The claim.
        id: ClaimId,
        /// What was granted.
        units: Vec<Share>,
    },
    /// Gives units back, or no longer wants them. Answered by [`Reply::Over`]; the claim's own
    /// request, if it still waits, is answered likewise.
    Release {
        /// The pool.
        pool: String,
        /// The claim.
        id: ClaimId,
    },
    /// How does it stand? Answered by [`Reply::Granted`], [`Reply::Waiting`] or [`Reply::Over`].
    Status {
        /// The pool.
        pool: String,
        /// The claim.
        id: ClaimId,
    },
    /// Answered by [`Reply::Pong`].
    Ping,
    /// As [`Ask::Hello`], by somebody who has a token. It is welcomed with any: what the token is
    /// not good for is refused when it is asked for.
    Introduce {
        /// The client, in its own words.
        client: String,
        /// What gives it rights.
        token: Token,
    },
}

/// What gives rights. Never shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token(pub String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

/// One unit as its holder has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Share {
    /// Which unit.
    pub unit: u32,
    /// Its fence.
    pub fence: u64,
}

/// What is known of a unit.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct About {
    /// What it is called.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// A unit to leave, and another to have instead.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Move {
    /// The unit to leave.
    pub from: Share,
    /// The unit to have.
    pub to: Share,
    /// What is known of that.
    pub about: About,
}

/// What a node sends.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum FromNode {
    /// The one answer to a request.
    Answer(Answer),
    /// A claim that this connection made or renewed, and that was granted, is over.
    Over {
        /// The pool.
        pool: String,
        /// The claim.
        id: ClaimId,
        /// How it ended.
        state: ClaimState,
        /// Why, in a sentence.
        why: String,
    },
    /// The node is stopping: go elsewhere. Nothing has ended.
    Goodbye {
        /// The name of a node that is there, if it knows one.
        go_on: Option<String>,
    },
    /// A claim that this connection made or renewed is asked to move.
    Move {
        /// The pool.
        pool: String,
        /// The claim.
        id: ClaimId,
        /// From where, and where to.
        it: Move,
    },
    /// Another node decides over a pool of which this connection made a claim: claims that are made
    /// there take a message less each way. A hint: every node takes every claim.
    Decides {
        /// The pool.
        pool: String,
        /// The name of the node that decides.
        node: String,
    },
}

/// The one answer to a request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// The request's number.
    pub number: u64,
    /// The answer.
    pub reply: Reply,
}

/// What can be answered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Reply {
    /// Here is a node.
    Welcome {
        /// Its name.
        node: String,
        /// Its cluster.
        cluster: String,
        /// How often it has been started.
        boot: u32,
    },
    /// The claim has these units.
    Granted {
        /// Which, with their fences.
        units: Vec<Share>,
        /// For how many microseconds, counted from the node's receipt of the request that this
        /// answers, drift already taken off.
        valid_for_micros: u64,
        /// How long one lease of the pool is: renew well before this has passed.
        lease_micros: u64,
        /// Whether the pool only counts units: their numbers and fences are then a receipt for
        /// renewals and mean nothing else.
        counted: bool,
        /// In answer to a claim: what is known of the units, in their order. Empty if they have no
        /// names; and those that do not fit in a frame are left out at the end.
        about: Vec<About>,
        /// What it is asked to do and has not done: it has both units of each until it renews
        /// without the one to leave.
        moves: Vec<Move>,
    },
    /// The claim is in the queue.
    Waiting,
    /// The claim is over.
    Over {
        /// How it ended.
        state: ClaimState,
        /// Why, in a sentence.
        why: String,
    },
    /// The request was not carried out.
    Problem(Problem),
    /// Still there.
    Pong,
    /// The claim asks for more than the pool can ever grant. Nothing changed.
    TooLarge {
        /// How many units the pool has.
        units: u32,
    },
}

/// Why bytes are not a frame. The connection cannot go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FrameError {
    /// Longer than [`FRAME_MAX`], or empty.
    #[error("a frame of {0} bytes: at least 1 and at most {FRAME_MAX} are allowed")]
    Length(usize),
    /// Another version.
    #[error("version {0} of the client link; this side speaks {VERSION}")]
    Version(u8),
    /// Not what such a frame holds.
    #[error("a frame that does not decode")]
    Garbage,
}

/// Appends one frame to `out`.
///
/// # Panics
/// If the value cannot be encoded, which none of this module's types can do.
pub fn encode<T: Serialize>(value: &T, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH]);
    out.push(VERSION);
    let taken = std::mem::take(out);
    *out = postcard::to_extend(value, taken).expect("plain data always encodes");
    let length = u32::try_from(out.len() - start - LENGTH).expect("frames are short");
    out[start..start + LENGTH].copy_from_slice(&length.to_le_bytes());
}

/// Takes one frame off the front of `bytes`: the value and how many bytes it took, or nothing if
/// more bytes are needed.
///
/// # Errors
/// The bytes are not a frame; the connection should be closed.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<Option<(T, usize)>, FrameError> {
    decode_within(bytes, FRAME_MAX)
}

/// The same, of somebody from whom no longer frames are read.
///
/// # Errors
/// The bytes are not a frame, or a longer one; the connection should be closed.
pub fn decode_within<T: DeserializeOwned>(
    bytes: &[u8],
    max: usize,
) -> Result<Option<(T, usize)>, FrameError> {
    let Some((length, rest)) = bytes.split_first_chunk::<LENGTH>() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if length == 0 || length > max.min(FRAME_MAX) {
        return Err(FrameError::Length(length));
    }
    if rest.first().is_some_and(|&version| version != VERSION) {
        return Err(FrameError::Version(rest[0]));
    }
    let Some(frame) = rest.get(1..length) else { return Ok(None) };
    match postcard::take_from_bytes(frame) {
        Ok((value, [])) => Ok(Some((value, LENGTH + length))),
        Ok(_) | Err(_) => Err(FrameError::Garbage),
    }
}
