//! What stations tell their right neighbours.

use std::fmt;

use super::tokens::{Tally, Tokens};

/// See the table in [the module's documentation](super).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Message<T: Tokens> {
    /// Free tokens: one in `core`, any number in `train`.
    Token(T),
    /// The controller's token with its sequence number; a traversal ends when it is back.
    Controller(u64),
    /// One token that a station reports to the root.
    Enabled(T),
    /// Takes tokens from stations that have some but not enough.
    Collect(T),
    /// Hands out what was collected; the order says whose turn it is.
    Allocate {
        /// What is left of it.
        tokens: T,
        /// The root's order bit when it left.
        order: bool,
    },
    /// Destroys every token it passes.
    Disable,
    /// All of that in one message: the train.
    Frame(Box<Frame<T>>),
    /// Somebody waits while the train is parked.
    Wake,
}

/// The train (ring spec 6): everything that the root sends at the start of a traversal.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Frame<T: Tokens> {
    /// Which traversal.
    pub seq: u64,
    /// As in [`Message::Allocate`].
    pub order: bool,
    /// Free tokens.
    pub free: T,
    /// As in [`Message::Allocate`].
    pub alloc: T,
    /// As in [`Message::Collect`].
    pub coll: T,
    /// What stations reported so far.
    pub counted: T::Tally,
    /// As [`Message::Disable`].
    pub kill: bool,
    /// Whether anybody waited in the traversal before.
    pub waited: bool,
    /// Whether anybody waits in this one, so far.
    pub waits: bool,
    /// Whether it passed somebody who may have forgotten what its clients use: then what is not
    /// counted may still be in use. Not in the specification.
    pub blind: bool,
}

impl<T: Tokens> Frame<T> {
    /// Destroys its tokens. Returns how many there were.
    pub(super) fn discard(&mut self) -> u32 {
        let Frame { free, alloc, coll, .. } = self;
        [free, alloc, coll].into_iter().map(|tokens| tokens.take_all().len()).sum()
    }
}

impl<T: Tokens> Message<T> {
    /// Counts the tokens that travel in it.
    pub(crate) fn count(&self, tally: &mut T::Tally) {
        match self {
            Message::Token(tokens)
            | Message::Collect(tokens)
            | Message::Allocate { tokens, .. } => tally.add(tokens, u32::MAX),
            Message::Frame(frame) => {
                tally.add(&frame.free, u32::MAX);
                tally.add(&frame.alloc, u32::MAX);
                tally.add(&frame.coll, u32::MAX);
            }
            Message::Controller(_) | Message::Enabled(_) | Message::Disable | Message::Wake => {}
        }
    }

    /// All tokens that travel in it, for a root that takes what is late: its count means nothing.
    pub(super) fn into_tokens(self) -> T {
        match self {
            Message::Token(tokens) => tokens,
            Message::Frame(frame) => {
                let Frame { mut free, alloc, coll, .. } = *frame;
                free.put(alloc);
                free.put(coll);
                free
            }
            _ => T::default(),
        }
    }

    pub(super) fn kind(&self) -> usize {
        match self {
            Message::Token(_) => 0,
            Message::Controller(_) => 1,
            Message::Enabled(_) => 2,
            Message::Collect(_) => 3,
            Message::Allocate { .. } => 4,
            Message::Disable => 5,
            Message::Frame(_) => 6,
            Message::Wake => 7,
        }
    }
}

/// The kinds of message, in the order of [`Message::kind`].
pub(super) struct Kinds;

impl Kinds {
    pub(super) const KINDS: &'static [&'static str] =
        &["token", "controller", "enabled", "collect", "allocate", "disable", "frame", "wake"];
}

impl<T: Tokens> fmt::Display for Message<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Kinds::KINDS[self.kind()])?;
        match self {
            Message::Token(tokens) | Message::Enabled(tokens) | Message::Collect(tokens) => {
                write!(f, " {tokens}")
            }
            Message::Controller(seq) => write!(f, " s{seq}"),
            Message::Allocate { tokens, order } => write!(f, " {tokens} o{}", u8::from(*order)),
            Message::Disable | Message::Wake => Ok(()),
            Message::Frame(frame) => {
                let Frame { seq, free, alloc, coll, counted, .. } = &**frame;
                write!(f, " s{seq} o{}", u8::from(frame.order))?;
                write!(f, " free {free} alloc {alloc} coll {coll} counted {counted}")?;
                for (flag, word) in [
                    (frame.kill, " kill"),
                    (frame.waited, " waited"),
                    (frame.waits, " waits"),
                    (frame.blind, " blind"),
                ] {
                    if flag {
                        f.write_str(word)?;
                    }
                }
                Ok(())
            }
        }
    }
}
